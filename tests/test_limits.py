"""docs/limits.md: what it says of each view is what the view does, asked of a capture of each tool alone."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens import views
from nsightlens.errors import UsageError
from nsightlens.store import Store

ROOT = Path(__file__).resolve().parents[1]
SIMULATED, RECORDED = ROOT / "fixtures" / "simulated_resnet18_ddp", ROOT / "fixtures" / "resnet18_cpu"
CAPTURES = {
    "nsys": SIMULATED / "nsys", "PyTorch profiler": SIMULATED / "torch", "CPU": RECORDED / "torch", "ncu": SIMULATED / "ncu",
}
WORDS = {"yes", "no", "in part", "if any", "with another tool", "of two runs"}


def _table() -> dict[str, dict[str, str]]:
    """Return {view: {capture: cell}} of the page."""
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8").partition("## View by view")[2]
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in
                        text.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return {row[0].strip("`"): dict(zip(header[1:], row[1:], strict=True)) for row in rows}


TABLE = _table()


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Store]:
    root = tmp_path_factory.mktemp("limits")
    return {name: nl.ingest(path, store=root / name) for name, path in CAPTURES.items()}


def _answer(store: Store, name: str) -> pa.Table | None:
    try:
        return store.view(name)
    except UsageError:
        return None


def test_every_view_has_its_row() -> None:
    assert list(TABLE) == sorted(views.known())
    assert all(row["what it cannot tell"] for row in TABLE.values())


@pytest.mark.parametrize("capture", CAPTURES)
def test_the_page_says_what_the_views_do(capture: str, stores: dict[str, Store]) -> None:
    wrong = []
    for name, row in TABLE.items():
        word, _, rest = row[capture].partition(",")
        table = _answer(stores[capture], name)
        unknown = set() if table is None else {c for c in table.column_names if table[c].null_count == table.num_rows}
        answers = table is not None and table.num_rows > 0
        assert word in WORDS
        fits = {"yes": answers, "no": not answers, "in part": answers and bool(unknown), "if any": table is not None,
                "with another tool": not answers, "of two runs": table is None}[word]
        if not fits or not set(re.findall(r"`(\w+)`", rest)) <= unknown:
            wrong.append((name, row[capture], table and table.num_rows, sorted(unknown)))
    assert wrong == []


def test_what_needs_two_tools_answers_with_two(tmp_path: Path) -> None:
    store = nl.ingest(SIMULATED, store=tmp_path / "store")
    for name, row in TABLE.items():
        for capture, tool in (("nsys", "nsys"), ("PyTorch profiler", "kineto"), ("ncu", "ncu")):
            if row[capture] == "with another tool":
                rows = store.view(name).to_pylist()
                assert any(tool in (r.get("tool", tool), r.get("other_tool", tool)) for r in rows), (name, capture)


def test_what_was_not_recorded_has_no_rows(tmp_path: Path) -> None:
    """The recording of two ranks has neither memory nor stacks; that of one process has both."""
    one = nl.ingest(RECORDED / "torch", store=tmp_path / "one")
    two = nl.ingest(ROOT / "fixtures" / "resnet18_cpu_ddp" / "torch", store=tmp_path / "two")
    for name in ("memory_curve", "memory_peak", "memory_by_operator", "module_summary"):
        assert one.view(name).num_rows > 0, name
        assert two.view(name).num_rows == 0, name
