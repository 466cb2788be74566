"""What earlier ingests saw: a capture that has not changed is not read again, and no change goes unseen."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.discovery import files, sniff_cache
from nsightlens.pipeline.ingest import ingest
from tests.captures import kineto

HOUR_NS = 3_600_000_000_000


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return kineto(tmp_path / "job" / "rank0.json", [("first_kernel", 1000.0, 10.0)], rank=0)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ingest an hour from now: what was written for a test is fresh."""
    import time

    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + HOUR_NS)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the captures that are read to tell what they are, as it happens."""
    found: list[Path] = []
    real = files._classify

    def classify(path: Path, head: bytes, size: int) -> files._Class:
        found.append(path)
        return real(path, head, size)

    monkeypatch.setattr(files, "_classify", classify)
    return found


def _names(store: Path) -> list[str]:
    with nl.open(store) as found:
        return sorted(row["name"] for row in found.sql("SELECT name FROM kernels").to_pylist())


@pytest.mark.usefixtures("later")
def test_what_has_not_changed_is_not_opened_again(trace: Path, tmp_path: Path, opened: list[Path]) -> None:
    ingest([trace.parent], tmp_path / "store", jobs=1)
    kineto(trace.with_name("rank1.json"), [("second_kernel", 1000.0, 10.0)], rank=1, pid=78)
    report = ingest([trace.parent], tmp_path / "store", jobs=1)
    assert opened == [trace, trace.with_name("rank1.json")]
    assert [outcome.state for outcome in report.outcomes] == ["unchanged", "new"]
    assert _names(tmp_path / "store") == ["first_kernel", "second_kernel"]


@pytest.mark.usefixtures("later")
def test_other_content_of_the_same_size_and_time_is_noticed(trace: Path, tmp_path: Path) -> None:
    ingest([trace], tmp_path / "store", jobs=1)
    before = trace.stat()
    trace.write_text(trace.read_text().replace("first_kernel", "other_kernel"))
    os.utime(trace, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (trace.stat().st_size, trace.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    ingest([trace], tmp_path / "store", jobs=1)
    assert _names(tmp_path / "store") == ["other_kernel"]


def test_what_was_written_just_now_is_looked_at_again(trace: Path, tmp_path: Path, opened: list[Path]) -> None:
    for _ in range(2):
        ingest([trace], tmp_path / "store", jobs=1)
    assert opened == [trace, trace]


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("damage", [b"", b"\xc1", b"no msgpack", None])
def test_what_cannot_be_read_is_forgotten(trace: Path, tmp_path: Path, opened: list[Path], damage: bytes | None) -> None:
    ingest([trace], tmp_path / "store", jobs=1)
    kept = tmp_path / "store" / sniff_cache.FILE
    kept.write_bytes(kept.read_bytes()[:-3] if damage is None else damage)
    assert [outcome.state for outcome in ingest([trace], tmp_path / "store", jobs=1).outcomes] == ["unchanged"]
    assert opened == [trace, trace]


@pytest.mark.usefixtures("later")
def test_other_readers_look_for_themselves(
    trace: Path, tmp_path: Path, opened: list[Path], monkeypatch: pytest.MonkeyPatch,
) -> None:
    ingest([trace], tmp_path / "store", jobs=1)
    monkeypatch.setattr(sniff_cache, "_code", lambda: "another source")
    ingest([trace], tmp_path / "store", jobs=1)
    assert opened == [trace, trace]


@pytest.mark.usefixtures("later")
def test_a_store_that_cannot_remember_works(
    trace: Path, tmp_path: Path, opened: list[Path], monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(_: object) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("msgspec.msgpack.encode", full)
    for _ in range(2):
        ingest([trace], tmp_path / "store", jobs=1)
    assert opened == [trace, trace]
