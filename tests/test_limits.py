"""docs/limits.md: what it says of each view is what the view does, asked of a capture of each tool alone."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens.errors import UsageError
from nsightlens.store.store import Store
from nsightlens.views import registry
from tests.conftest import Shared
from tests.places import ROOT

SIMULATED, RECORDED = ROOT / "fixtures" / "simulated_resnet18_ddp", ROOT / "fixtures" / "resnet18_cpu"
CAPTURES = {
    "nsys": SIMULATED / "nsys", "PyTorch profiler": SIMULATED / "torch", "CPU": RECORDED / "torch", "ncu": SIMULATED / "ncu",
}


def _tables() -> list[dict[str, dict[str, str]]]:
    """Return {view: {capture: cell}} of each table, whose cells are columns or, the same for all its views, its first header."""
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8").partition("## View by view")[2].partition("\n## ")[0]
    found = []
    for part in text.split("\n### "):
        lines = [line for line in part.splitlines() if line.startswith("|")]
        header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        said = dict(pair.split(": ") for pair in header[0].split(", ") if ": " in pair)
        found.append({row[0].strip("`"): said | dict(zip(header[1:], row[1:], strict=True)) for row in rows})
    return found


TABLES = _tables()
TABLE = {view: row for table in TABLES for view, row in table.items()}


def _ingest(folder: Path) -> None:
    for name, path in CAPTURES.items():
        nl.ingest(path, store=folder / name, jobs=1).close()


@pytest.fixture(scope="module")
def stores(shared: Shared) -> dict[str, Store]:
    made = shared("limits", _ingest)
    return {name: nl.open(made / name) for name in CAPTURES}


def _answer(store: Store, name: str) -> pa.Table | None:
    try:
        return store.view(name)
    except UsageError:
        return None


def _wrong(name: str, capture: str, cell: str, table: pa.Table | None) -> str | None:
    """Return what is wrong with the cell of a view, and what it may say instead; None where it is right."""
    word, _, rest = cell.partition(",")
    unknown = set() if table is None else {c for c in table.column_names if table[c].null_count == table.num_rows}
    answers = table is not None and table.num_rows > 0
    fits = {"yes": answers, "no": not answers, "in part": answers and bool(unknown), "if any": table is not None,
            "with another tool": not answers, "of two runs": table is None}
    if fits.get(word) and set(re.findall(r"`(\w+)`", rest)) <= unknown:
        return None
    columns = ", ".join(sorted(unknown)) or "no column"
    seen = "refuses it" if table is None else f"has {table.num_rows} rows there; NULL in all of them: {columns}"
    allowed = " or ".join(text for text, fit in fits.items() if fit)
    return f"`{name}`, column {capture}: {cell!r}, but the view {seen}. It may say {allowed}"


def test_every_view_has_its_row() -> None:
    views = sorted(registry.known())
    missing, unknown = set(views) - set(TABLE), set(TABLE) - set(views)
    assert not missing, f"docs/limits.md, View by view: add a row for {missing}"
    assert not unknown, f"docs/limits.md, View by view: there is no view {unknown}; take the row out"
    assert sum(map(len, TABLES)) == len(TABLE), "docs/limits.md, View by view: a view stands in two tables"
    assert all(list(table) == sorted(table) for table in TABLES), "docs/limits.md, View by view: rows stand in the order of names"
    silent = [name for name, row in TABLE.items() if not row["what it cannot show"]]
    assert not silent, f"docs/limits.md, View by view: the last cell of {silent} is empty; there is always something"


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.long
def test_the_page_says_what_the_views_do(capture: str, stores: dict[str, Store]) -> None:
    found = (_wrong(name, capture, row[capture], _answer(stores[capture], name)) for name, row in TABLE.items())
    wrong = [line for line in found if line]
    assert not wrong, "\n".join(["docs/limits.md, View by view (columns that are NULL: yes, not `column`):", *wrong])


@pytest.mark.parametrize(("cell", "rows", "wrong"), [
    ("TODO", 3, "`x`, column nsys: 'TODO', but the view has 3 rows there; NULL in all of them: b. It may say yes or in part"),
    ("no", 3, "'no', but the view has 3 rows"), ("yes, not `a`", 3, "NULL in all of them: b"), ("yes, not `b`", 3, None),
    ("yes", 0, "has 0 rows there; NULL in all of them: a, b. It may say no or if any"), ("no", 0, None),
    ("yes", None, "refuses it. It may say no or with another tool or of two runs"), ("of two runs", None, None),
])
def test_a_wrong_cell_is_named_with_what_it_may_say(cell: str, rows: int | None, wrong: str | None) -> None:
    table = None if rows is None else pa.table({"a": pa.array([1] * rows, pa.int64()), "b": pa.nulls(rows)})
    found = _wrong("x", "nsys", cell, table)
    assert found is None if wrong is None else found is not None and wrong in found


def test_what_needs_two_tools_answers_with_two(bundled_store: Path) -> None:
    store = nl.open(bundled_store)
    for name, row in TABLE.items():
        for capture, tool in (("nsys", "nsys"), ("PyTorch profiler", "kineto"), ("ncu", "ncu")):
            if row[capture] == "with another tool":
                rows = store.view(name).to_pylist()
                assert any(tool in (r.get("tool", tool), r.get("other_tool", tool)) for r in rows), (name, capture)


def test_what_was_not_recorded_has_no_rows(stores: dict[str, Store], tmp_path: Path) -> None:
    """The recording of two ranks has neither memory nor stacks; that of one process has both."""
    one = stores["CPU"]
    two = nl.ingest(ROOT / "fixtures" / "resnet18_cpu_ddp" / "torch", store=tmp_path / "two", jobs=1)
    for name in ("memory_curve", "memory_peak", "memory_by_operator", "module_summary"):
        assert one.view(name).num_rows > 0, name
        assert two.view(name).num_rows == 0, name
