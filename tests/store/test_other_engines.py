"""Other engines read the parts of a store: the lines of docs/store.md, run, and their sums beside ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.schema import TABLES
from tests.captures import kineto
from tests.places import ROOT

PAGE = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"### ([\w ]+)\n.*?```python\n(.*?)```", PAGE, re.DOTALL))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nl.Store]:
    """Two runs of the simulated job and of two small captures; one has no step, so that a column of it is empty."""
    folder = tmp_path_factory.mktemp("engines")
    for rank in range(2):
        kineto(folder / "small" / f"rank{rank}.json", [("gemm_kernel", 1000.0, 10.0 + rank)], rank=rank, pid=70 + rank)
    with nl.ingest([ROOT / "fixtures" / "simulated_resnet18_ddp", folder / "small"], store=folder / "store") as found:
        yield found


def _expected(store: nl.Store) -> list[tuple[Any, ...]]:
    query = "SELECT run, tool, family, sum(duration_ns)::BIGINT AS ns FROM kernels GROUP BY ALL ORDER BY ALL"
    return [tuple(row.values()) for row in store.sql(query).to_pylist()]


@pytest.mark.parametrize("engine", ["Polars", "Dask", "pandas", "DuckDB"])
@pytest.mark.long
def test_the_lines_of_the_page_give_the_sums_of_the_store(engine: str, store: nl.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip({"Polars": "polars", "Dask": "dask.dataframe", "pandas": "pandas", "DuckDB": "duckdb"}[engine])
    monkeypatch.chdir(store.path.parent)
    found: dict[str, Any] = {}
    exec(BLOCKS[engine], found)
    rows = found["by_family"]
    assert sorted((str(run), str(tool), str(family), int(ns)) for run, tool, family, ns in rows) == _expected(store)
    assert len(rows) > 10


def test_the_page_projects_columns_that_there_are() -> None:
    table = re.findall(r"^\| [^|]+ \| `(\w+)` \| ((?:`\w+`(?:, )?)+) \|$", PAGE, re.MULTILINE)
    assert len(table) > 4
    for name, columns in table:
        assert set(re.findall(r"`(\w+)`", columns)) <= {column.name for column in TABLES[name].columns}, name


def test_parts_lie_where_the_page_says(store: nl.Store) -> None:
    paths = [Path(row["path"]) for row in store.sql("SELECT path FROM _parts").to_pylist()]
    assert paths
    assert all(re.fullmatch(r"parts/_?\w+/run=[^/]+/[^/]+\.parquet", path.as_posix()) for path in paths)
