"""Parts at a URL through DuckDB: each byte is asked for once, and nothing but parts is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import nsightlens as nl
from nsightlens.discovery import remote
from nsightlens.discovery.remote import RemotePath, path_of
from nsightlens.pipeline.ingest import ingest
from nsightlens.store import part_files
from tests.captures import kineto


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the server is asked for, as it happens."""
    found: list[str] = []
    real_fetch, real_list = remote._Stream._fetch, remote._listed

    def fetch(self: remote._Stream, wanted: int) -> None:
        found.append(str(self._path))
        real_fetch(self, wanted)

    def listed(root: RemotePath, *, deep: bool = False) -> remote._Tree:
        found.append(str(root))
        return real_list(root, deep=deep)

    monkeypatch.setattr(remote._Stream, "_fetch", fetch)
    monkeypatch.setattr(remote, "_listed", listed)
    return found


@pytest.mark.long
@pytest.mark.usefixtures("s3")
def test_a_second_question_asks_the_server_for_nothing(tmp_path: Path, asked: list[str]) -> None:
    job = kineto(tmp_path / "job" / "rank0.json", [("first", 1000.0, 10.0), ("second", 1020.0, 10.0)]).parent
    ingest([job], "s3://bucket/store", jobs=1, materialise=False)
    with nl.open("s3://bucket/store") as store:
        asked.clear()
        first = store.view("kernel_summary")
        assert asked.count("s3://bucket/store/parts") == 1 and any("/parts/kernels/" in each for each in asked)
        asked.clear()
        assert store.view("kernel_summary").equals(first) and first.num_rows == 2 and asked == []


def test_only_parts_are_there_and_none_is_written(memory: Any) -> None:
    store = path_of("memory://store")
    assert isinstance(store, RemotePath)
    memory.pipe_file("/store/parts/a.txt", b"a part")
    memory.pipe_file("/store/b.txt", b"no part")
    with duckdb.connect() as connection:
        part_files.let_read(connection, store)
        assert connection.execute("SELECT content FROM read_text('memory://store/parts/a.txt')").fetchall() == [("a part",)]
        with pytest.raises((duckdb.Error, OSError), match=r"b\.txt"):
            connection.execute("SELECT content FROM read_text('memory://store/b.txt')")
        with pytest.raises((duckdb.Error, OSError)):
            connection.execute("COPY (SELECT 1) TO 'memory://store/parts/c.csv'")
    assert not memory.exists("/store/parts/c.csv")
