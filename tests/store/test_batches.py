"""Rows that are streamed: those of `view`, batch by batch, in memory that is bounded."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import nsightlens as nl
from nsightlens.cli.show import command
from nsightlens.errors import UsageError
from nsightlens.store import answers, store
from nsightlens.store.store import Store
from nsightlens.views import registry

OF_ROWS = [name for name, view in registry.known().items()
           if view.scope == "rows" and (view.sql or name in ("critical_path", "nvtx_gpu_projection_trace"))]


@pytest.fixture
def streaming(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every store for a large one, and a batch of it for small."""
    monkeypatch.setattr(answers, "WORTH_IT", 0)
    monkeypatch.setattr(store, "_BATCH", 100)


@pytest.mark.usefixtures("streaming")
@pytest.mark.parametrize("view", OF_ROWS)
def test_batches_are_the_rows_of_the_view(bundled_store: Path, view: str) -> None:
    with nl.open(bundled_store) as opened:
        batches = list(opened.batches(view))
        whole = opened.view(view)
    assert pa.Table.from_batches(batches).to_pylist() == whole.to_pylist()
    assert all(batch.num_rows <= 100 for batch in batches) or registry.known()[view].balances
    assert batches[0].schema == whole.schema


@pytest.mark.usefixtures("streaming")
@pytest.mark.parametrize("view", ["cuda_gpu_trace", "critical_path"])
def test_the_first_rows_alone_are_those_of_all(bundled_store: Path, view: str) -> None:
    with nl.open(bundled_store) as opened:
        whole = opened.view(view)
        for first_rows in (0, 1, 99, 100, 250):
            some = pa.Table.from_batches(opened.batches(view, first_rows=first_rows))
            assert some.num_rows >= first_rows + 100
            assert some.to_pylist() == whole.slice(0, some.num_rows).to_pylist()
        assert pa.Table.from_batches(opened.batches("cuda_gpu_trace", first_rows=250)).num_rows == 400


@pytest.mark.usefixtures("streaming")
def test_filters_and_parameters_reach_what_is_streamed(bundled_store: Path) -> None:
    with nl.open(bundled_store) as opened:
        found = pa.Table.from_batches(opened.batches("cuda_gpu_trace", only_tool="kineto", only_rank=1))
        assert found.num_rows > 100 and set(found["tool"].to_pylist()) == {"kineto"} and set(found["rank"].to_pylist()) == {1}
        with pytest.raises(UsageError, match="only_colour"):
            next(opened.batches("timeline_kernels", only_colour="red"))
        with pytest.raises(UsageError, match="only_rank 77: the store has ranks 0-1"):
            next(opened.batches("cuda_gpu_trace", only_rank=77))
        with pytest.raises(UsageError, match="only_name nothing: cuda_gpu_trace has"):
            next(opened.batches("cuda_gpu_trace", only_name="nothing"))


@pytest.mark.usefixtures("streaming")
def test_where_memory_is_too_little_all_rows_come_from_the_view(bundled_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_STREAMED", "3MB")
    with Store(bundled_store, memory="3MB") as small:
        assert list(small._stream("SELECT list(i) FROM range(5000000) AS t(i) GROUP BY i % 3", [])) == [], "3 MB are too little"
        assert sum(batch.num_rows for batch in small._stream("FROM range(3)", [])) == 3
    with nl.open(bundled_store) as opened:
        assert pa.Table.from_batches(opened.batches("cuda_gpu_trace")).num_rows == opened.view("cuda_gpu_trace").num_rows > 0


@pytest.mark.usefixtures("streaming")
@pytest.mark.parametrize("filters", [[], ["--tool", "ncu"]])
def test_a_stream_is_written_as_one_table(bundled_store: Path, tmp_path: Path, filters: list[str]) -> None:
    written = {}
    for form in ("csv", "json", "parquet"):
        path = tmp_path / f"rows.{form}"
        asked = ["cuda_gpu_trace", "--store", str(bundled_store), "-o", str(path), *filters]
        assert CliRunner().invoke(command, asked).exit_code == 0
        written[form] = path
    rows = pq.read_table(written["parquet"])
    said = json.loads(written["json"].read_text())
    assert said["rows"] == rows.to_pylist() and said["version"] == 1
    texts = list(csv.reader(io.StringIO(written["csv"].read_text())))
    assert texts[0] == rows.column_names and len(texts) == rows.num_rows + 1
    assert bool(rows.num_rows) is not bool(filters)


def test_a_question_that_cannot_be_asked_leaves_the_file_as_it_was(bundled_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("precious")
    asked = ["cuda_gpu_trace", "nonsense=1", "--store", str(bundled_store), "-o", str(path)]
    assert CliRunner().invoke(command, asked).exit_code != 0
    assert path.read_text() == "precious"
