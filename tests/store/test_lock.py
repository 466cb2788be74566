"""The lock of a store: one writer at a time with flock and without, and nobody takes a lock that lives."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
import types
from dataclasses import replace
from pathlib import Path

import pytest

from nsightlens.errors import StoreError
from nsightlens.store import lock as locks
from nsightlens.store.lock import FILE, FOLDER, Holder, Lock
from tests.captures import kineto

NO_LOCKS = [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP]
COUNTERS, ROUNDS = 4, 25


def _fail_with(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let every file lock fail with this error, as on a file system that has none."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    fake = types.SimpleNamespace(flock=refuse, lockf=refuse, LOCK_EX=2, LOCK_NB=4, LOCK_SH=1)
    monkeypatch.setattr(locks, "_fcntl", lambda: fake)


def _waits(path: Path) -> tuple[threading.Thread, threading.Event, list[str]]:
    """Start a thread that takes the lock and gives it back; also an event set once it has to wait, and whom it waits for."""
    told = threading.Event()
    holders: list[str] = []
    taken: list[str] = holders

    def say(holder: str) -> None:
        taken.append(holder)
        told.set()

    def run() -> None:
        second = Lock(path, say)
        second.acquire()
        taken.append("taken")
        second.release()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, told, holders


@pytest.mark.parametrize("number", [None, *NO_LOCKS])
def test_a_second_writer_waits_for_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int | None) -> None:
    if number:
        _fail_with(monkeypatch, number)
    first = Lock(tmp_path / "store")
    first.acquire()
    thread, told, holders = _waits(tmp_path / "store")
    assert told.wait(60)
    assert [h for h in holders if f"process {os.getpid()} on " in h] == holders
    first.release()
    thread.join(60)
    assert holders[-1] == "taken"


@pytest.mark.parametrize("number", NO_LOCKS)
def test_without_flock_the_lock_is_a_folder_that_goes_when_it_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int,
) -> None:
    _fail_with(monkeypatch, number)
    lock = Lock(tmp_path)
    lock.acquire()
    assert {p.name for p in tmp_path.iterdir()} == {FILE, FOLDER}
    lock.release()
    assert [p.name for p in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
def test_any_other_error_names_the_store_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    _fail_with(monkeypatch, number)
    with pytest.raises(StoreError, match=f"{tmp_path}: .*{os.strerror(number)}.*--store"):
        Lock(tmp_path, lambda holder: pytest.fail("this is no contention")).acquire()


def test_without_fcntl_nothing_can_be_written_and_the_message_says_where_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(locks, "_fcntl", lambda: None)
    with pytest.raises(StoreError, match=r"Linux, macOS or WSL"):
        Lock(tmp_path).acquire()


def _child(code: str, path: Path) -> subprocess.Popen[str]:
    """Start a process for which no file system has locks."""
    refuse = ("import errno, os, sys, types\nfrom pathlib import Path\nfrom nsightlens.store import lock as locks\n"
              "def refuse(*_): raise OSError(errno.ENOSYS, 'Function not implemented')\n"
              "locks._fcntl = lambda: types.SimpleNamespace(flock=refuse, lockf=refuse, LOCK_EX=2, LOCK_NB=4, LOCK_SH=1)\n"
              "locks._POLL_SECONDS = 0.002\npath = Path(sys.argv[1])\n")
    return subprocess.Popen([sys.executable, "-c", refuse + code, str(path)], text=True, stdout=subprocess.PIPE)


def test_the_lock_of_a_writer_that_was_killed_is_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = _child("locks.Lock(path).acquire(); os._exit(9)", tmp_path)
    assert dying.wait() == 9
    assert [(tmp_path / FOLDER).exists(), len(os.listdir(tmp_path / FOLDER))] == [True, 1]
    _fail_with(monkeypatch, errno.ENOSYS)
    lock = Lock(tmp_path, lambda holder: pytest.fail(f"waits for {holder}"))
    lock.acquire()
    lock.release()


@pytest.mark.long
def test_no_two_writers_hold_it_though_some_die(tmp_path: Path) -> None:
    """Each process counts up a number in a file, by reading and writing it, and now and then dies holding the lock."""
    count = ("for each in range(int(os.environ['ROUNDS'])):\n"
             "    lock = locks.Lock(path / 'store')\n    lock.acquire()\n"
             "    number = int((path / 'number').read_text())\n    (path / 'number').write_text(str(number + 1))\n"
             "    if each + 1 == int(os.environ['ROUNDS']): os._exit(9)\n    lock.release()\n")
    (tmp_path / "number").write_text("0")
    os.environ["ROUNDS"] = str(ROUNDS)
    try:
        counters = [_child(count, tmp_path) for _ in range(COUNTERS)]
        assert [counter.wait() for counter in counters] == [9] * COUNTERS
    finally:
        del os.environ["ROUNDS"]
    assert (tmp_path / "number").read_text() == str(COUNTERS * ROUNDS)


@pytest.mark.parametrize(("boot", "namespace"), [("another", None), (None, "1"), ("", None)])
def test_a_holder_that_cannot_be_watched_is_never_robbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boot: str | None, namespace: str | None,
) -> None:
    _fail_with(monkeypatch, errno.ENOSYS)
    monkeypatch.setattr(locks, "_SILENT_SECONDS", 0.0)
    monkeypatch.setattr(locks, "_POLL_SECONDS", 0.0)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    here = Holder.here()
    holder = replace(here, pid=gone.pid, host="node7", boot=here.boot if boot is None else boot,
                     namespace=here.namespace if namespace is None else namespace)
    assert not holder.is_dead
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / holder.name).touch()
    with pytest.raises(StoreError, match=f"{tmp_path / FOLDER}: process {gone.pid} on node7 .*delete this folder"):
        Lock(tmp_path).acquire()
    assert os.listdir(tmp_path / FOLDER) == [holder.name]


def test_the_name_of_an_entry_says_who_the_holder_is() -> None:
    holder = replace(Holder.here(), host="a,b/ü")
    assert Holder.named(holder.name) == holder
    assert "/" not in holder.name
    assert Holder.named("left by something else") is None


def test_a_lock_that_somebody_deleted_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_with(monkeypatch, errno.ENOSYS)
    lock = Lock(tmp_path)
    lock.acquire()
    lock.check()
    shutil.rmtree(tmp_path / FOLDER)
    with pytest.raises(StoreError, match="replaced"):
        lock.check()
    lock.release()


@pytest.mark.skipif(not (sys.platform == "linux" and shutil.which("cc")), reason="needs Linux and a C compiler")
@pytest.mark.parametrize("number", NO_LOCKS)
@pytest.mark.long
def test_a_store_works_where_there_are_no_file_locks(tmp_path: Path, number: int) -> None:
    """Ingest, ingest again and read, where flock and fcntl fail for Python and for DuckDB."""
    library = tmp_path / "without_locks.so"
    source = Path(__file__).with_name("without_locks.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    store, temporary = tmp_path / "lustre" / "store", tmp_path / "tmp"
    temporary.mkdir()
    kineto(tmp_path / "base" / "a.json", rank=0)
    environment = {**os.environ, "LD_PRELOAD": str(library), "WITHOUT_LOCKS": str(tmp_path / "lustre"),
                   "WITHOUT_LOCKS_ERRNO": str(number), "TMPDIR": str(temporary)}

    def nsightlens(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "nsightlens", *words, "--store", str(store)], env=environment, text=True,
                              capture_output=True, check=True)

    assert "1 new" in nsightlens("ingest", str(tmp_path / "base")).stderr
    kineto(tmp_path / "base" / "b.json", rank=1)
    assert "1 new, 1 unchanged" in nsightlens("ingest", str(tmp_path / "base")).stderr
    assert nsightlens("sql", "SELECT count(*) AS n FROM kernels", "--format", "csv").stdout.split() == ["n", "2"]
    left = {p.name for p in store.iterdir()} - {"looks.msgpack"}  # kept only of captures older than the clock's resolution
    assert left == {"nsightlens.duckdb", "parts", FILE}
    assert list(temporary.iterdir()) == []


def test_reading_a_store_needs_no_fcntl(tmp_path: Path) -> None:
    kineto(tmp_path / "base" / "a.json", rank=0)
    code = ("import sys\nif sys.argv[2] == 'without': sys.modules['fcntl'] = None\nimport nsightlens as nl\n"
            "store = nl.open(sys.argv[1])\nprint(store.view('kernel_summary').num_rows)\n")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *words], text=True, capture_output=True, check=False)

    store = str(tmp_path / "store")
    assert run("-m", "nsightlens", "ingest", str(tmp_path / "base"), "--store", store).returncode == 0
    assert run("-c", code, store, "without").stdout == run("-c", code, store, "with").stdout == "1\n"
    ingest = ("import sys\nsys.modules['fcntl'] = None\nfrom nsightlens.cli import main\n"
              "sys.argv[0] = 'nsightlens'\nmain()\n")
    refused = run("-c", ingest, "ingest", str(tmp_path / "base"), "--store", store)
    assert (refused.returncode, "Linux, macOS or WSL" in refused.stderr) == (1, True)
