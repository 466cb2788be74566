"""Writing a store: a commit that fails or is killed leaves the old store and nothing else; what is broken is named."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nsightlens as nl
from nsightlens.errors import StoreError, UsageError
from nsightlens.pipeline import plan
from nsightlens.pipeline.ingest import ingest
from nsightlens.store import catalog, compaction, damage, journal, no_links, writer
from nsightlens.store.bundle import bundle
from nsightlens.store.store import CATALOG
from tests.captures import GEMM, kineto, ncu

KERNELS = "SELECT run, rank, name FROM kernels ORDER BY ALL"


@pytest.fixture()
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture()
def run(tmp_path: Path) -> Path:
    kineto(tmp_path / "base" / "a.json", rank=0)
    return tmp_path / "base"


def _rows(store: Path, query: str = KERNELS) -> list[tuple[Any, ...]]:
    with nl.open(store) as opened:
        return [tuple(row.values()) for row in opened.sql(query).to_pylist()]


def _files(store: Path) -> set[str]:
    """Return all files and folders of a store but its lock."""
    return {p.relative_to(store).as_posix() for p in store.rglob("*")} - {"lock", "looks.msgpack"}


def _parts(store: Path) -> list[Path]:
    return sorted((store / "parts").rglob("*.parquet"))


# -- a commit that fails -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["transaction", "_sync", "shutil.copyfile", "renew_matches", "show_parts"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.long
def test_a_commit_that_fails_leaves_the_old_store_and_nothing_else(
    run: Path, store: Path, monkeypatch: pytest.MonkeyPatch, at: str, error: BaseException,
) -> None:
    ingest([run], store)
    before, rows = _files(store), _rows(store)
    kineto(run / "b.json", rank=1)
    owner = "nsightlens.store.writer." if at in ("_sync", "shutil.copyfile") else "nsightlens.store.catalog."

    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(owner + at, fail)
        with pytest.raises(StoreError if isinstance(error, OSError) else KeyboardInterrupt):
            ingest([run], store)
    assert (_files(store), _rows(store)) == (before, rows)
    ingest([run], store)
    assert len(_rows(store)) == 2


def test_a_fault_while_writing_is_not_told_as_damage(run: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB calls its file corrupt or invalidated where the disk was full late in the commit: that is not the store's."""
    ingest([run], store)
    rows = _rows(store)
    kineto(run / "b.json", rank=1)
    for said in ("FATAL Error: Failed: database has been invalidated because of a previous fatal error",
                 "IO Error: Corrupt database file: computed checksum does not match"):
        def fail(*_: object, said: str = said) -> None:
            raise duckdb.FatalException(said)

        monkeypatch.setattr(catalog, "renew_matches", fail)
        with pytest.raises(StoreError, match="could not be written, and is as it was before") as caught:
            ingest([run], store)
        assert "delete" not in str(caught.value) and "damaged" not in str(caught.value)
    assert _rows(store) == rows


def test_a_disk_that_is_full_before_the_commit_is_named(run: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compaction, "gathered", fail)
    with pytest.raises(StoreError, match=r"could not be written, and is as it was before.*No space left on device"):
        ingest([run], store, jobs=1)
    assert not store.exists()


def test_damage_is_named_where_it_is(run: Path, store: Path) -> None:
    """Neither a query that speaks of it is damage, nor is deleting a file advised that is the only copy."""
    ingest([run], store)
    with nl.open(store) as opened, pytest.raises(UsageError) as asked:
        opened.sql("SELECT checksum FROM kernels")
    assert "damaged" not in str(asked.value)
    _damage(store / CATALOG, 5000)
    with pytest.raises(StoreError, match="damaged") as caught:
        nl.open(store)
    assert "delete" not in str(caught.value)


def test_a_first_commit_that_fails_leaves_no_store(run: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nsightlens.store.writer._sync", fail)
    with pytest.raises(StoreError, match="No space left on device"):
        ingest([run], store)
    assert not store.exists()


@pytest.fixture()
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Provide a file system of 6 MiB; skip where none can be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(disk)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no tmpfs can be mounted here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("free", [0, 1 << 16, 1 << 19, 1 << 20, 3 << 20])
@pytest.mark.long
def test_a_full_disk_leaves_the_old_store_and_its_room(run: Path, small_disk: Path, free: int) -> None:
    """Whatever fills up, the parts or the catalog: what was free before is free again."""
    store = small_disk / "store"
    ingest([run], store)
    before, rows = _files(store), _rows(store)
    kineto(run / "b.json", [(f"kernel_{i:07}_{i * 2654435761 % 2**32:x}", 10.0 * i, 5.0) for i in range(1, 40_000)], rank=1)
    left = shutil.disk_usage(small_disk).free
    if left > free:
        (small_disk / "ballast").write_bytes(bytes(left - free))
    left = shutil.disk_usage(small_disk).free
    with pytest.raises(StoreError, match=r"No space left on device|Is the disk full"):
        ingest([run], store, jobs=1)
    assert (_files(store), _rows(store)) == (before, rows)
    assert abs(shutil.disk_usage(small_disk).free - left) <= 4096 * 4  # the lock and its note


@pytest.mark.parametrize("at", ["rename", "clean-up", "deletion"])
def test_an_interrupt_just_after_the_rename_leaves_the_new_store(
    run: Path, store: Path, monkeypatch: pytest.MonkeyPatch, at: str,
) -> None:
    """It is whole, and what it replaced goes with the next writer at the latest."""
    ingest([run], store, jobs=1)
    kineto(run / "a.json", [("another", 1000.0, 10.0)], rank=0)
    owner, name = {"rename": (Path, "replace"), "clean-up": (journal.Journal, "remove"), "deletion": (no_links, "remove")}[at]
    real = getattr(owner, name)

    def interrupted(*arguments: Any) -> Any:
        done = real(*arguments) if at == "rename" else None
        if _rows(store)[0][2] == "another":
            monkeypatch.undo()
            raise KeyboardInterrupt
        return done if at == "rename" else real(*arguments)

    monkeypatch.setattr(owner, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        ingest([run], store, jobs=1)
    assert _rows(store) == [("base", 0, "another")]
    ingest([run], store, jobs=1)
    with nl.open(store) as opened:
        named = {row["path"] for row in opened.sql("SELECT path FROM _parts").to_pylist()}
    assert named == {part.relative_to(store).as_posix() for part in _parts(store)} != set()
    assert not (store / journal.FILE).exists()


@pytest.mark.parametrize(("at", "other", "is_new"), [
    ("plan.read_profile", "copy", False), ("compaction.gathered", "empty", True), ("compaction.renewed", "copy", False),
    ("catalog.renew_matches", "empty", True), ("writer._sync", "copy", True), ("writer._sync", "empty", False)])
def test_a_folder_put_in_the_place_of_the_store_stays_as_it_is(
    run: Path, store: Path, monkeypatch: pytest.MonkeyPatch, at: str, other: str, is_new: bool,
) -> None:
    """The writer tells, before, while and after it has made its parts; the store goes on where it was moved."""
    if not is_new:
        ingest([run], store, jobs=1)
        kineto(run / "b.json", rank=1)
    moved = store.with_name("moved")
    left: dict[Path, bytes] = {}
    owner = {"plan": plan, "compaction": compaction, "catalog": catalog, "writer": writer}[at.partition(".")[0]]
    name = at.partition(".")[2]
    genuine = getattr(owner, name)

    def moved_away(*arguments: Any) -> Any:
        if not left:
            store.rename(moved)
            store.mkdir() if other == "empty" else shutil.copytree(moved, store, ignore=shutil.ignore_patterns(".nsightlens-*"))
            left.update(_content(store))
        return genuine(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, moved_away)
        with pytest.raises(StoreError, match="moved or replaced"):
            ingest([run], store, jobs=1)
    assert _content(store) == left
    ingest([run], moved, jobs=1)
    assert len(_rows(moved)) == (1 if is_new else 2)


def _content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() if path.is_file() else b"" for path in [folder, *folder.rglob("*")]}


def test_a_full_disk_is_asked_about_only_where_there_was_no_room() -> None:
    quota = OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
    for error in (OSError(errno.ENOSPC, "x"), quota, duckdb.IOException(f"Could not write file: {os.strerror(errno.ENOSPC)}")):
        assert damage.is_of_space(error)
    for error in (OSError(errno.EACCES, "Permission denied"), OSError(errno.EIO, "Input/output error"), duckdb.IOException("x")):
        assert not damage.is_of_space(error)


def test_a_folder_that_cannot_be_written_is_no_full_disk(run: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(compaction, "gathered", fail)
    with pytest.raises(StoreError, match="Permission denied") as caught:
        ingest([run], store, jobs=1)
    assert "full" not in str(caught.value)


# -- a writer that is killed ---------------------------------------------------------------------------------------


KILLED = """
import os, signal, sys
from nsightlens.pipeline.ingest import ingest
from nsightlens.store import catalog, compaction, journal, writer

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

owner, name = sys.argv[3].split(".")
setattr({"catalog": catalog, "writer": writer}[owner], name, die)
ingest([sys.argv[1]], sys.argv[2], jobs=1)
"""


@pytest.mark.parametrize("at", ["catalog.apply", "catalog.renew_matches", "writer._sync"])
@pytest.mark.long
def test_what_a_killed_writer_left_goes_with_the_next_ingest(run: Path, store: Path, at: str) -> None:
    ingest([run], store)
    before, rows = _files(store), _rows(store)
    kineto(run / "b.json", rank=1)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(run), str(store), at], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert journal.FILE in _files(store), "it died before it had made anything"
    assert len(_parts(store)) > len([name for name in before if name.endswith(".parquet")])
    assert _rows(store) == rows
    (run / "b.json").unlink()
    ingest([run], store)
    assert (_files(store), _rows(store)) == (before, rows)


def test_an_ingest_that_waits_removes_nothing_of_the_one_that_runs(
    run: Path, store: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While the first commits, another is started: it waits, and what the first has made so far is still there."""
    second: list[subprocess.Popen[bytes]] = []
    made: list[set[str]] = []
    genuine = catalog.renew_matches

    def start_another(*arguments: Any) -> None:
        before = _files(store)
        second.append(subprocess.Popen([sys.executable, "-m", "nsightlens", "ingest", str(run), "--store", str(store)],
                                       stderr=subprocess.PIPE))
        assert second[0].stderr
        assert b"waiting for another ingest" in second[0].stderr.readline()
        made.append(before - _files(store))
        genuine(*arguments)

    monkeypatch.setattr(catalog, "renew_matches", start_another)
    ingest([run], store)
    _, errors = second[0].communicate()
    assert (made, second[0].returncode) == ([set()], 0)
    assert b"1 unchanged" in errors


@pytest.mark.parametrize("materialise", [True, False])
def test_a_reader_keeps_its_store_while_a_writer_replaces_it(run: Path, store: Path, materialise: bool) -> None:
    ingest([run], store, materialise=materialise)
    with nl.open(store) as reader:
        kineto(run / "a.json", [("relu", 5.0, 1.0)], rank=0)
        ingest([run], store)
        if materialise:
            assert reader.sql("SELECT name FROM kernels").to_pylist() == [{"name": GEMM}]
        else:
            with pytest.raises(StoreError, match="Open it again"):
                reader.sql("SELECT name FROM kernels")
    assert _rows(store, "SELECT name FROM kernels") == [("relu",)]


# -- what is broken ------------------------------------------------------------------------------------------------


def _damage(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("at", [5000, 9000])
def test_a_damaged_catalog_is_called_damaged(run: Path, store: Path, at: int) -> None:
    ingest([run], store)
    _damage(store / CATALOG, at)
    for use in (lambda: nl.open(store), lambda: ingest([run], store)):
        with pytest.raises(StoreError, match=r"nsightlens\.duckdb: damaged.*checksum") as caught:
            use()
        assert "Another program" not in str(caught.value)


@pytest.mark.long
def test_damage_that_only_a_query_meets_is_called_damage_too(run: Path, store: Path) -> None:
    """Every block of the catalog is damaged in turn: each is either never read, or named as damage."""
    kineto(run / "b.json", [(f"kernel_{i}", 10.0 * i, 5.0) for i in range(1, 20_000)], rank=1)
    ingest([run], store)
    whole = (store / CATALOG).read_bytes()
    met = 0
    for at in range(12288 + 4096, len(whole), 1 << 18):
        (store / CATALOG).write_bytes(whole)
        _damage(store / CATALOG, at)
        try:
            with nl.open(store) as opened:
                opened.sql("SELECT count(DISTINCT name), sum(start_ns), sum(duration_ns) FROM kernels")
        except StoreError as exc:
            assert "damaged" in str(exc)
            met += 1
    assert met


def test_a_catalog_open_elsewhere_is_called_that(run: Path, store: Path) -> None:
    ingest([run], store)
    code = "import duckdb, sys\nwith duckdb.connect(sys.argv[1]):\n    print('open', flush=True)\n    sys.stdin.read()\n"
    command = [sys.executable, "-c", code, str(store / CATALOG)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        with pytest.raises(StoreError, match="Another program has it open"):
            nl.open(store)


def _cut(part: Path) -> None:
    part.write_bytes(part.read_bytes()[:-20])


def _empty(part: Path) -> None:
    part.write_bytes(b"")


def _never_written(part: Path) -> None:
    part.write_bytes(bytes(part.stat().st_size))


BREAKS = [_cut, _empty, _never_written, Path.unlink]


@pytest.mark.parametrize("breaking", BREAKS)
@pytest.mark.long
def test_a_broken_part_is_named_when_its_rows_are_wanted(run: Path, store: Path, breaking: Any) -> None:
    ingest([run], store, materialise=False)
    part = next((store / "parts" / "kernels").rglob("*.parquet"))
    breaking(part)
    with nl.open(store) as opened, pytest.raises(StoreError) as caught:
        opened.view("kernel_summary")
    assert str(part) in str(caught.value)
    command = str(caught.value).partition("Make it again: ")[2].split()
    assert command[:2] == ["nsightlens", "ingest"] and str(run / "a.json") in command
    subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True)
    assert _rows(store) == [("base", 0, GEMM)]


@pytest.mark.parametrize("breaking", BREAKS)
@pytest.mark.parametrize("materialise", [True, False])
@pytest.mark.long
def test_an_ingest_of_its_capture_makes_a_broken_part_again(run: Path, store: Path, breaking: Any, materialise: bool) -> None:
    ingest([run], store, materialise=materialise)
    breaking(next((store / "parts" / "kernels").rglob("*.parquet")))
    report = ingest([run], store)
    assert [o.state for o in report.outcomes] == ["replaced"] and not report.broken_parts
    assert _rows(store) == [("base", 0, GEMM)]
    assert [o.state for o in ingest([run], store).outcomes] == ["unchanged"]


@pytest.mark.parametrize("materialise", [True, False])
def test_an_ingest_of_other_captures_says_which_part_is_broken(run: Path, store: Path, tmp_path: Path, materialise: bool) -> None:
    ingest([run], store, materialise=materialise)
    part = next((store / "parts" / "kernels").rglob("*.parquet"))
    _cut(part)
    ncu(tmp_path / "other" / "k.csv", {"gpu__time_duration.sum": ("ns", "7")})
    assert ingest([tmp_path / "other"], store).broken_parts == [part]
    kept = [("base", 0, GEMM)] if materialise else []
    assert [row for row in _rows(store) if row[0] == "base"] == kept
    lost = [] if materialise else [("error", str(run / "a.json"))]
    assert _rows(store, "SELECT severity, path FROM diagnostics WHERE code = 'part_lost'") == lost
    ingest([run], store)
    assert ("base", 0, GEMM) in _rows(store)
    assert _rows(store, "SELECT code FROM diagnostics WHERE code = 'part_lost'") == []


def test_the_command_line_names_broken_parts(run: Path, store: Path, tmp_path: Path) -> None:
    ingest([run], store)
    part = next((store / "parts" / "kernels").rglob("*.parquet"))
    os.truncate(part, 100)
    kineto(tmp_path / "other" / "b.json", rank=0)
    done = subprocess.run([sys.executable, "-m", "nsightlens", "ingest", str(tmp_path / "other"), "--store", str(store)],
                          capture_output=True, text=True, check=True)
    assert f"{part}: missing or damaged" in done.stderr


@pytest.mark.parametrize(("counters", "memory"), [(2, catalog.WRITE_MEMORY), (400, catalog.WRITE_MEMORY_WIDE)])
def test_rows_with_hundreds_of_counters_are_written_in_more_memory(tmp_path: Path, counters: int, memory: str) -> None:
    metrics = [{f"counter{at}": float(at * 1000 + row) for at in range(counters)} for row in range(50)]
    pq.write_table(pa.table({"metrics": pa.array([list(one.items()) for one in metrics], pa.map_(pa.string(), pa.float64()))}),
                   tmp_path / "kernels.parquet")
    assert writer._memory([bundle("P", "run", tmp_path, {"kernels": 50})]) == memory
