"""What goes wrong around an ingest, row by row of docs/store.md: each costs what it must and leaves a store that opens."""

from __future__ import annotations

import errno
import itertools
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.discovery import files
from nsightlens.errors import StoreError
from nsightlens.pipeline import ingest as pipeline
from nsightlens.pipeline import plan
from tests.places import ROOT
from tests.readers.kineto_text import kernel, trace
from tests.readers.nsys_report import base, write

COMPILER = shutil.which("cc") or shutil.which("gcc")
TABLE = (ROOT / "docs" / "store.md").read_text().partition("\n## What a fault costs\n")[2]


def row(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Say which row of the table a test holds; it must be there."""
    assert f"\n| {name} |" in TABLE, f"docs/store.md has no row {name!r}"
    return lambda test: test


def run_of(folder: Path) -> Path:
    """Return a folder with one capture of each tool."""
    run = folder / "run"
    write(run / "rank0.sqlite", base())
    (run / "rank1.json").write_text(trace(kernel(), kernel(ts="2000011.500")))
    shutil.copyfile(ROOT / "fixtures/simulated_resnet18_ddp/ncu/rank0.raw.csv", run / "rank2.csv")
    return run


def outcomes(store: nl.Store) -> dict[str, str]:
    return {Path(row["path"]).name: row["outcome"] for row in store.sql("SELECT path, outcome FROM files").to_pylist()}


def codes(store: nl.Store) -> set[str]:
    return {row["code"] for row in store.sql("SELECT code FROM diagnostics").to_pylist()}


def kernels(store: Path) -> int:
    with nl.open(store) as opened:
        return int(opened.sql("SELECT count(*) AS n FROM kernels").to_pylist()[0]["n"])


def refusing(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, what: str, code: int) -> None:
    """Let calls of owner.name fail whose first argument names `what`. Not by permissions: tests may run as root."""
    real = getattr(owner, name)

    def call(path: object, *others: object, **options: object) -> object:
        if what in str(path):
            raise OSError(code, os.strerror(code), str(path))
        return real(path, *others, **options)

    monkeypatch.setattr(owner, name, call)


@row("A capture may not be read")
def test_permission_denied_on_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(tmp_path)
    refusing(monkeypatch, Path, "open", "rank1", errno.EACCES)
    with nl.ingest([run], store=tmp_path / "store", jobs=1) as store:
        assert outcomes(store) == {"rank0.sqlite": "read", "rank1.json": "refused", "rank2.csv": "read"}
        assert "unreadable" in codes(store)


@row("A folder may not be listed")
def test_permission_denied_on_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(tmp_path)
    (run / "closed").mkdir()
    refusing(monkeypatch, os, "scandir", "closed", errno.EACCES)
    refusing(monkeypatch, os, "listdir", "closed", errno.EACCES)
    with nl.ingest([run], store=tmp_path / "store", jobs=1) as store:
        assert outcomes(store)["closed"] == "refused"
        assert outcomes(store)["rank0.sqlite"] == "read"


@row("The store is read-only")
def test_a_store_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, store = run_of(tmp_path), tmp_path / "store"
    nl.ingest([run], store=store).close()
    before = kernels(store)
    refusing(monkeypatch, os, "open", "store/lock", errno.EROFS)
    with pytest.raises(StoreError, match="cannot be written"):
        nl.ingest([run], store=store)
    monkeypatch.undo()
    assert kernels(store) == before


@pytest.mark.parametrize("name", ["rank0.sqlite", "rank1.json", "rank2.csv"])
@pytest.mark.parametrize("when", ["before the fingerprint", "before it is read"])
@row("A capture vanishes before it is read")
def test_a_file_that_vanishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, when: str) -> None:
    run = run_of(tmp_path)
    owner, function = (pipeline, "_fingerprints") if when == "before the fingerprint" else (plan, "read_profile")
    real = getattr(owner, function)

    def later(*arguments: object) -> object:
        (run / name).unlink(missing_ok=True)
        return real(*arguments)

    monkeypatch.setattr(owner, function, later)
    with nl.ingest([run], store=tmp_path / "store", jobs=1) as store:
        found = outcomes(store)
        assert found.pop(name) == "refused"
        assert set(found.values()) == {"read"}


@pytest.mark.parametrize("name", ["rank0.sqlite", "rank1.json", "rank2.csv"])
@pytest.mark.parametrize("change", ["grows", "is cut", "goes away behind the reader"])
@row("A capture grows or is cut while it is read")
def test_a_file_that_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: str) -> None:
    run = run_of(tmp_path)
    real = plan.read_profile

    def later(task: plan.Task, jobs: int) -> dict[str, int]:
        path = run / name
        if task.profile.windows[0][0] != path:
            return real(task, jobs)
        content = path.read_bytes()
        if change != "goes away behind the reader":
            path.write_bytes(content + content[-100:] if change == "grows" else content[:len(content) * 2 // 3])
            return real(task, jobs)
        rows = real(task, jobs)
        path.unlink()
        return rows

    monkeypatch.setattr(plan, "read_profile", later)
    with nl.ingest([run], store=tmp_path / "store", jobs=1) as store:
        assert outcomes(store)[name] == "refused" or "changed_while_read" in codes(store)
        assert set(outcomes(store).values()) <= {"read", "partial", "refused"}
    monkeypatch.undo()
    if (run / name).exists():  # the next ingest sees another content
        report = pipeline.ingest([run], tmp_path / "store", jobs=1)
        assert next(one.state for one in report.outcomes if one.paths[0].name == name) != "unchanged"


@row("Links that form a loop, or lead nowhere")
def test_symlinks(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    (run / "loop").symlink_to(run, target_is_directory=True)
    (run / "self.json").symlink_to(run / "self.json")
    (run / "gone.sqlite").symlink_to(run / "nothing")
    with nl.ingest([run], store=tmp_path / "store", jobs=1) as store:
        found = outcomes(store)
        assert [found[name] for name in ("rank0.sqlite", "rank1.json", "rank2.csv")] == ["read"] * 3
        assert found["self.json"] == found["gone.sqlite"] == "refused"


@row("Pipes, sockets and devices")
def test_no_regular_files(tmp_path: Path) -> None:
    """A pipe that nobody writes to would be waited for without end."""
    run = run_of(tmp_path)
    os.mkfifo(run / "pipe.json")
    (run / "null.csv").symlink_to("/dev/null")
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(os.path.relpath(run / "s.sqlite"))
        with nl.ingest([run], store=tmp_path / "store", jobs=1) as store:
            found = outcomes(store)
            assert {found[name] for name in ("pipe.json", "null.csv", "s.sqlite")} == {"ignored"}


ODD = ("-rf", "a\nb.json", "\x1b[31mred.json", "quote'\".json", "%s.json", "?*[x].json", " .json", "é漢.json",
       "x" * 240 + ".json", os.fsdecode(b"\xff\xfe.json"), "run=a.json")


@row("Bytes that are not UTF-8 in a PyTorch trace")
def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    text = trace(kernel(name="gemm_QQ_kernel"), kernel(ts="2000011.500"))
    (run / "rank0.json").write_bytes(text.encode().replace(b"QQ", b"\xff\xfe"))
    with nl.ingest([run], store=tmp_path / "store", jobs=1) as store:
        assert outcomes(store) == {"rank0.json": "read"}
        assert {row["name"] for row in store.sql("SELECT name FROM kernels").to_pylist()} > {"gemm_\ufffd\ufffd_kernel"}
        said = [row["message"] for row in store.sql("SELECT message FROM diagnostics WHERE severity = 'warning'").to_pylist()]
        assert any("UTF-8" in message for message in said), said


@row("Odd names")
def test_odd_names(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for number, name in enumerate(ODD):
        (run / name).write_text(trace(kernel(ts=str(2000000 + number))))
    with nl.ingest([run], store=tmp_path / "store", jobs=1) as store:
        assert len(outcomes(store)) == len(ODD)
        assert set(outcomes(store).values()) == {"read"}
        assert kernels(tmp_path / "store") == len(ODD)


@row("Very many small files")
def test_ten_thousand_files(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    for folder in range(10):
        (run / str(folder)).mkdir()
        for number in range(1000):
            (run / str(folder) / f"{number}.json").write_text(f'{{"step": {number}}}')
    found = files.find([run])
    assert len(found) == 10_003
    assert sum(one.tool is not None for one in found) == 3


@pytest.mark.parametrize("days", [-400, 400])
@row("The clock is set back, or runs ahead")
def test_a_clock_that_jumps_at_every_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    run, store = run_of(tmp_path), tmp_path / "store"
    real, looks = time.time, itertools.count()

    def now() -> float:
        return real() + next(looks) % 50 * days * 86_400

    monkeypatch.setattr(time, "time", now)
    monkeypatch.setattr(time, "time_ns", lambda: int(now() * 1e9))
    with nl.ingest([run], store=store, jobs=1) as opened:
        assert set(outcomes(opened).values()) == {"read"}
        busy, count = opened.view("busy_time").to_pylist(), kernels(store)
    assert {one.state for one in pipeline.ingest([run], store, jobs=1).outcomes} == {"unchanged"}
    (run / "rank1.json").write_text(trace(kernel(), kernel(ts="2000013.500"), kernel(ts="2000019.500")))
    changed = {one.paths[0].name for one in pipeline.ingest([run], store, jobs=1).outcomes if one.state != "unchanged"}
    assert changed == {"rank1.json"} and kernels(store) == count + 1
    with nl.open(store) as opened:
        assert opened.view("busy_time").to_pylist() != busy, "what was kept of the older catalog is not read"
    assert not list(store.glob(".nsightlens-*")) and next(looks) > 3


_LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
from nsightlens.cli import main
sys.argv[:] = ["nsightlens", "ingest", sys.argv[2], "--store", sys.argv[3], "--jobs", "1", "--quiet"]
main()
"""


@pytest.mark.parametrize("limit", [0, 100, 4_000, 20_000, 200_000, 1_000_000])
@row("The disk is full")
def test_no_room_for_what_is_written(tmp_path: Path, limit: int) -> None:
    """Every file that would grow beyond a limit fails to, in Arrow and DuckDB too, as on a full disk."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    run, store = run_of(tmp_path), tmp_path / "store"
    nl.ingest([run / "rank0.sqlite"], store=store).close()
    before = kernels(store)
    done = subprocess.run([sys.executable, "-c", _LIMITED, str(limit), str(run), str(store)], capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == 1, done.stderr
    assert re.search("cannot be written|could not|no room|too large", done.stderr, re.IGNORECASE), done.stderr
    assert kernels(store) == before
    with nl.ingest([run], store=store, jobs=1) as again:
        assert set(outcomes(again).values()) == {"read"}


@pytest.mark.skipif(not COMPILER or sys.platform != "linux", reason="needs a C compiler, on Linux")
@row("The disk is full")
def test_a_disk_that_is_full_from_some_write_on(tmp_path: Path) -> None:
    run, store, shim, writes = run_of(tmp_path), tmp_path / "store", tmp_path / "full_disk.so", tmp_path / "writes"
    subprocess.run([COMPILER or "", "-shared", "-fPIC", "-o", shim, Path(__file__).with_name("full_disk.c"), "-ldl"], check=True)
    nl.ingest([run / "rank0.sqlite"], store=store).close()
    before, kept = kernels(store), tmp_path / "kept"
    shutil.copytree(store, kept)
    command = [sys.executable, "-m", "nsightlens", "ingest", str(run), "--store", str(store), "--jobs", "1", "--quiet"]
    environment = os.environ | {"LD_PRELOAD": str(shim), "NSL_WRITES": str(writes), "PYTHONDONTWRITEBYTECODE": "1"}
    assert subprocess.run(command, env=environment).returncode == 0
    after, count = kernels(store), int(writes.read_text())
    assert after > before and count > 50
    for at in sorted({1, 2, 5, count // 4, count // 2, count * 3 // 4, count * 9 // 10, count - 2, count - 1, count}):
        shutil.rmtree(store)
        shutil.copytree(kept, store)
        full = subprocess.run(command, env=environment | {"NSL_FULL_AT": str(at)}, capture_output=True, text=True)
        assert "Traceback" not in full.stderr, (at, full.stderr)
        assert (full.returncode, kernels(store)) in ((1, before), (0, after)), (at, full.stderr)
        assert "nsightlens:" in full.stderr or "rror" in full.stderr or full.returncode == 0, (at, full.stderr)
        assert subprocess.run(command).returncode == 0
        assert kernels(store) == after


def test_every_row_has_a_test() -> None:
    names = set(re.findall(r"^\| ([^|]+?) \|", TABLE.split("|---", 1)[1], re.MULTILINE)) - {"---"}
    held = set(re.findall(r'^@row\("([^"]+)"\)', Path(__file__).read_text(), re.MULTILINE))
    assert names - held == {
        "An ingest is killed",  # tests/long/test_kill.py
        "A command is interrupted or asked to end (Ctrl-C, SIGTERM, SIGHUP)",  # tests/long/test_kill.py
        "A recording was killed, or left nothing",  # tests/discovery/test_orphan_sidecars.py
        "The network goes while a capture at a URL is read",  # tests/discovery/test_remote.py
        "The network goes while a store at a URL is written",  # tests/store/test_remote.py
    }
