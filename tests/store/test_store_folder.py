"""Only what a store's writer has made is deleted, truncated or written: files and links of others stay, byte for byte."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import nsightlens as nl
from nsightlens.errors import StoreError
from nsightlens.pipeline.ingest import ingest
from nsightlens.store import catalog, journal, lock
from nsightlens.store.store import CATALOG
from tests.captures import kineto
from tests.cli.command_line import run

NAMES = ("staging", "staging/a", "staging/a/b.parquet", "parts", "parts/x/y/z.parquet", "parts/kernels/run=base/theirs.parquet",
         "parts/kernels/empty", "converted", "converted/.x", "converted/a.sqlite", "lock", "lock-holder", "lock-holder/x",
         ".lock-holder.1", "looks.msgpack", ".looks.msgpack.1", f".{CATALOG}.1", f".{CATALOG}.1.wal", CATALOG, journal.FILE,
         "nsightlens.schema-x.duckdb", ".nsightlens-scratch-1/a", "journal", "notes.txt", "src/main.py", ".git/config", "a/b/c")
"""Names that somebody's folder may have, and where earlier versions deleted or wrote."""
READ = (("summary",), ("show", "kernel_summary"), ("sql", "FROM files"))
WRITTEN = (("compact",), ("refresh",), ("remove", "--run", "base"))


def tree(folder: Path) -> dict[str, tuple[int, str | bytes]]:
    """Return mode, and content or target, of all that lies below a folder."""
    found: dict[str, tuple[int, str | bytes]] = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = str(path.readlink()) if stat.S_ISLNK(mode) else path.read_bytes() if stat.S_ISREG(mode) else ""
        found[path.relative_to(folder).as_posix()] = (mode, content)
    return found


def plant(chance: random.Random, store: Path, beside: Path) -> dict[str, tuple[int, str | bytes]]:
    """Put files, folders and links of somebody into a folder, where nothing is yet; return them as `tree` does."""
    for number in range(3):
        kineto(beside / f"{number}" / "x.json")
        (beside / f"{number}" / "deeper").mkdir(parents=True, exist_ok=True)
        (beside / f"{number}" / "deeper" / "x.parquet").write_bytes(chance.randbytes(9))
    before = tree(store)
    for name in chance.sample(NAMES, chance.randrange(1, 9)):
        path = store / name
        if os.path.lexists(path) or any(parent.is_symlink() or parent.is_file() for parent in path.parents):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        match chance.choice(("file", "folder", "capture", "link")):
            case "file":
                path.write_bytes(chance.randbytes(chance.randrange(40)))
            case "folder":
                path.mkdir()
            case "capture":
                kineto(path / "c.json")
            case _:
                path.symlink_to(chance.choice([beside / "0", beside / "1" / "x.json", beside / "gone", Path("..")]))
        if not path.is_symlink():
            path.chmod(chance.choice([0o600, 0o644, 0o755]) | (0o700 if path.is_dir() else 0))
    return {name: entry for name, entry in tree(store).items() if name not in before}


# -- a folder that is no store -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_a_folder_of_somebody_is_refused_as_it_is(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    place = tmp_path / "place"
    place.mkdir()
    plant(chance, place, tmp_path / "beside")
    if not {name for name, (_, content) in tree(place).items() if content or not name.startswith("lock")}:
        (place / "notes.txt").touch()  # an empty `lock` or `lock-holder` alone may be of an ingest that has just begun
    before = tree(tmp_path)
    for words in (("ingest", tmp_path / "beside"), ("ingest", place), *WRITTEN, chance.choice(READ)):
        done = run(*words, "--store", place)
        assert done.returncode in (1, 2) and "Traceback" not in done.stderr, done.stderr
        assert tree(tmp_path) == before, words
    assert str(place) in done.stderr


def test_captures_in_a_folder_called_staging_are_no_parts_in_the_making(tmp_path: Path) -> None:
    kineto(tmp_path / "runs" / "staging" / "base" / "a.json")
    before = tree(tmp_path)
    with pytest.raises(StoreError, match="not a store, and not empty") as caught:
        nl.ingest(tmp_path / "runs", tmp_path / "runs")
    assert caught.value.what_to_do and f"--store {tmp_path / 'runs' / 'nsightlens-store'}" in caught.value.what_to_do
    assert tree(tmp_path) == before


def test_a_database_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / CATALOG)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1 AS x; CREATE VIEW _store AS SELECT 3 AS schema_version")
    before = tree(tmp_path)
    kineto(tmp_path.parent / f"{tmp_path.name}-run" / "a.json")
    with pytest.raises(StoreError, match="not an nsightlens store"):
        ingest([tmp_path.parent / f"{tmp_path.name}-run"], tmp_path, jobs=1)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("left", [(), (lock.FILE,), (lock.FILE, "parts", journal.FILE), (CATALOG,)])
def test_new_empty_and_earlier_stores_are_taken(small: Path, tmp_path: Path, left: tuple[str, ...]) -> None:
    """A catalog alone is a store of an earlier version; the lock's file alone one whose first ingest was killed."""
    place = tmp_path / "place"
    place.mkdir()
    for name in left:
        if name == journal.FILE:
            (place / name).touch()  # of a writer that was killed before it made anything
        else:
            (shutil.copytree if (small / name).is_dir() else shutil.copyfile)(small / name, place / name)
    report = ingest([kineto(tmp_path / "run" / "a.json").parent], place, jobs=1)
    assert [outcome.state for outcome in report.outcomes] == ["new"]
    assert (place / lock.FILE).read_bytes() == lock.MARK


@pytest.mark.parametrize("place", ["parts/x", "parts/kernels/run=base", "converted", "staging/a/b", "link/x"])
def test_a_store_is_made_in_no_folder_of_another(small: Path, tmp_path: Path, place: str) -> None:
    """What lies below parts/ is read as a part by every other engine."""
    store = tmp_path / "store"
    shutil.copytree(small, store)
    (tmp_path / "link").symlink_to(store / "parts")
    target = tmp_path / place if place.startswith("link") else store / place
    before = tree(tmp_path)
    kineto(tmp_path.parent / f"{tmp_path.name}-run" / "a.json")
    done = run("ingest", tmp_path.parent / f"{tmp_path.name}-run", "--store", target)
    assert done.returncode == 1 and f"in a folder of the store {store}, where only its own files are" in done.stderr
    assert f"--store {store}-2" in done.stderr and tree(tmp_path) == before


# -- a store with files of others in it ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of one small capture."""
    folder = tmp_path_factory.mktemp("small")
    ingest([kineto(folder / "base" / "b.json", rank=1).parent], folder / "store", jobs=1)
    return folder / "store"


def confirm_only_ours(store: Path, theirs: dict[str, tuple[int, str | bytes]]) -> None:
    """Raise AssertionError unless all that lies in a store is somebody's, as it was, or named by its catalog or by us."""
    found = tree(store)
    assert {name: found.get(name) for name in theirs} == theirs
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{store / CATALOG}' AS c (READ_ONLY)")
        parts = {part for (part,) in connection.execute("SELECT path FROM c._parts").fetchall()}
    ours = {CATALOG, "lock", "looks.msgpack", *parts, *(str(above) for path in (*parts, *theirs) for above in Path(path).parents)}
    assert found.keys() - theirs.keys() <= ours
    assert parts <= found.keys()


def commands(run_: Path, others: Path) -> tuple[tuple[str | Path, ...], ...]:
    return (("ingest", run_), ("ingest", others, "--no-answers"), *WRITTEN[:2], ("remove", "--run", "others"), *READ[2:],
            WRITTEN[2])


def _store_with_theirs(chance: random.Random, small: Path, folder: Path) -> tuple[Path, dict[str, tuple[int, str | bytes]]]:
    store = folder / "store"
    shutil.copytree(small, store)
    kineto(folder / "base" / "a.json", rank=0)
    kineto(folder / "others" / "a.json", [("relu", 5.0, 1.0)], rank=0)
    (folder / "beside").mkdir()
    return store, plant(chance, store, folder / "beside")


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 40))])
def test_commands_leave_what_is_not_the_stores(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Whether they succeed, refuse (for a link where a store has none, say) or fail in the middle."""
    chance = random.Random(seed)
    store, theirs = _store_with_theirs(chance, small, tmp_path)
    beside = tree(tmp_path / "beside")
    for words in commands(tmp_path / "base", tmp_path / "others"):
        with monkeypatch.context() as patched:
            if chance.random() < 0.3:
                patched.setattr(catalog, "renew_matches", _full)
            done = run(*words, "--store", store)
        assert "Traceback" not in done.stderr, done.stderr
        confirm_only_ours(store, theirs)
        assert tree(tmp_path / "beside") == beside


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


KILLED = """
import os, random, signal, sys, threading, time
from nsightlens.cli import main
threading.Thread(target=lambda: (time.sleep(float(sys.argv.pop(1))), os.kill(os.getpid(), signal.SIGKILL)), daemon=True).start()
time.sleep(0)
main()
"""


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.long
def test_killed_commands_leave_what_is_not_the_stores(small: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    store, theirs = _store_with_theirs(chance, small, tmp_path)
    beside = tree(tmp_path / "beside")
    for words in commands(tmp_path / "base", tmp_path / "others"):
        subprocess.run([sys.executable, "-c", KILLED, f"{chance.uniform(0.5, 2.5)}", *map(str, words), "--store", str(store)],
                       capture_output=True, check=False)
        found = tree(store)
        assert {name: found.get(name) for name in theirs} == theirs and tree(tmp_path / "beside") == beside
    if run("ingest", tmp_path / "others", "--store", store).returncode == 0:
        confirm_only_ours(store, theirs)


@pytest.mark.parametrize("name", ["lock", "parts", "parts/kernels", "parts/kernels/run=base", "part", "converted", CATALOG,
                                  journal.FILE, "looks.msgpack", "nsightlens.schema-1.duckdb"])
def test_a_link_in_a_store_is_named_and_not_followed(small: Path, tmp_path: Path, name: str) -> None:
    store, elsewhere = tmp_path / "store", tmp_path / "elsewhere"
    shutil.copytree(small, store)
    kineto(tmp_path / "base" / "b.json", [("relu", 5.0, 1.0)], rank=1)  # what the part is of, recorded over
    place = next((store / "parts" / "kernels" / "run=base").iterdir()) if name == "part" else store / name
    if place.exists():
        place.rename(elsewhere)
    else:
        (elsewhere if name == "converted" else elsewhere.parent).mkdir(exist_ok=True)
        if name != "converted":
            elsewhere.write_text("theirs")
    place.symlink_to(elsewhere)
    before = tree(tmp_path)
    for words in (("ingest", tmp_path / "base"), *WRITTEN):
        done = run(*words, "--store", store)
        assert done.returncode == 1 and f"{place}: a link" in done.stderr, done.stderr
        found = tree(tmp_path)
        found.pop("store/lock"), before.pop("store/lock", None)
        assert found == before, words


def test_a_link_called_staging_is_left_alone(small: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(small, store)
    (tmp_path / "x" / "y").mkdir(parents=True)
    (tmp_path / "x" / "y" / "z").write_text("theirs")
    (store / "staging").symlink_to(tmp_path / "x")
    assert run("ingest", kineto(tmp_path / "run" / "a.json").parent, "--store", store).returncode == 0
    assert run("compact", "--store", store).returncode == 0
    assert (tmp_path / "x" / "y" / "z").read_text() == "theirs"


@pytest.mark.parametrize("kind", ["another's", "another name of another's", "another name of ours"])
def test_a_file_called_lock_keeps_its_bytes(small: Path, tmp_path: Path, kind: str) -> None:
    store, other = tmp_path / "store", tmp_path / "other"
    shutil.copytree(small, store)
    if kind != "another name of ours":
        (store / "lock").write_text("theirs")
    if kind != "another's":
        os.link(store / "lock", other)
    before = (store / "lock").read_bytes()
    ingest([kineto(tmp_path / "run" / "a.json").parent], store, jobs=1)
    assert (store / "lock").read_bytes() == before


def test_a_catalog_that_names_files_outside_is_refused(small: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    for path in ("../theirs.parquet", "parts/kernels/run=base/../../../../theirs.parquet", str(tmp_path / "theirs.parquet"),
                 "theirs.parquet"):
        shutil.copytree(small, store)
        (tmp_path / "theirs.parquet").write_text("theirs")
        (store / "theirs.parquet").write_text("theirs")
        with duckdb.connect(str(store / CATALOG)) as connection:
            connection.execute("UPDATE _parts SET path = ? WHERE table_name = 'kernels'", [path])
        for words in (("remove", "--run", "base"), ("compact",), ("refresh",)):
            done = run(*words, "--store", store)
            assert done.returncode == 1 and "which is no part of a store" in done.stderr
        assert (tmp_path / "theirs.parquet").read_text() == (store / "theirs.parquet").read_text() == "theirs"
        shutil.rmtree(store)


def test_a_journal_names_only_what_a_writer_makes(small: Path, tmp_path: Path) -> None:
    """Of another's lines only those count that have the shape of what we make, below the store and behind no link."""
    store = tmp_path / "store"
    shutil.copytree(small, store)
    kineto(tmp_path / "outside" / "run=x" / "a.parquet")
    (store / "parts" / "linked").symlink_to(tmp_path / "outside")
    made = f"kineto-{'ab' * 6}.{'cd' * 4}.parquet"
    left, scratch = store / "parts" / "kernels" / "run=gone" / made, store / f".nsightlens-scratch-{'ab' * 8}"
    theirs = [f"parts/kernels/run=base/{name}" for name in ("theirs.parquet", "a.parquet", f"a.{'cd' * 4}.parquet")]
    theirs += [f"parts/Kernels/run=x/{made}", f"parts/kernels/run=a b/{made}", f"parts/data/run=x/{made}.parquet"]
    for name in theirs:
        kineto(store / name)
    kineto(tmp_path / "outside" / "run=x" / made)
    kineto(left), kineto(scratch / "deeper" / "a")
    (scratch / "link").symlink_to(tmp_path / "outside")
    kineto(store / "notes.txt"), kineto(store / "src" / "a")
    live = sorted(path.relative_to(small).as_posix() for path in small.rglob("*.parquet"))
    lines = [left.relative_to(store).as_posix(), scratch.name, *live, "notes.txt", "src", ".", "..", "", "/", "parts",
             str(tmp_path / "outside"), f"parts/linked/run=x/{made}", f"parts/../run=x/{made}", f"../outside/run=x/{made}",
             ".nsightlens-scratch-", *theirs]
    (store / journal.FILE).write_text("\n".join([journal.HEADER, *lines, "half a li"]))
    ingest([kineto(tmp_path / "run" / "a.json").parent], store, jobs=1)
    assert not left.exists() and not left.parent.exists() and not scratch.exists() and not (store / journal.FILE).exists()
    assert all(path.exists() for path in (*map(store.joinpath, [*live, *theirs, "notes.txt", "src/a"]),
                                          tmp_path / "outside" / "run=x" / "a.parquet", tmp_path / "outside" / "run=x" / made))


@pytest.mark.long
def test_two_first_ingests_at_once(tmp_path: Path) -> None:
    captures = [kineto(tmp_path / name / "a.json", rank=rank).parent for rank, name in enumerate(("one", "two"))]
    both = [subprocess.Popen([sys.executable, "-m", "nsightlens", "ingest", str(path), "--store", str(tmp_path / "store")],
                             stderr=subprocess.PIPE) for path in captures]
    assert [(process.communicate()[1], process.returncode)[1] for process in both] == [0, 0]
    with nl.open(tmp_path / "store") as store:
        assert [row["run"] for row in store.sql("SELECT run FROM _runs ORDER BY run").to_pylist()] == ["one", "two"]


def test_an_interrupt_right_after_the_commit_leaves_its_parts(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = tmp_path / "store"
    shutil.copytree(small, store)
    real = Path.replace

    def replace(path: Path, target: Path) -> Path:
        moved = real(path, target)
        if target.name == CATALOG:
            signal.raise_signal(signal.SIGINT)
        return moved

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        ingest([kineto(tmp_path / "run" / "a.json").parent], store, jobs=1)
    monkeypatch.undo()
    assert not ingest([tmp_path / "run"], store, jobs=1).broken_parts
    confirm_only_ours(store, {})
