"""Commands killed or interrupted at many moments: the store is the old one or the new one, and nothing is left lying about."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

import nsightlens as nl
from nsightlens.schema import TABLES
from nsightlens.store import rules
from tests.captures import kineto, ncu
from tests.places import ROOT
from tests.store.test_store_folder import tree

RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"
KILLS = int(os.environ.get("KILLS", "40"))
MOMENTS = int(os.environ.get("MOMENTS", "6"))
"""A sample; MOMENTS=30 takes ten minutes of CPU."""
THEIRS = ("notes.txt", "parts/kernels/theirs.parquet", "deeper/a.json", "converted/.x", "link")
COMMANDS = {
    "ingest": ["ingest", "RUNS", "--store", "STORE", "--jobs", "2", "--answers"],
    "refresh": ["refresh", "--store", "STORE", "--jobs", "2"],
    "compact": ["compact", "--store", "STORE"],
    "remove": ["remove", "--store", "STORE", "--run", "a"],
    "summary": ["summary", "--store", "STORE"],
    "report": ["report", "--store", "STORE", "-o", "OUT/report.html"],
    "perfetto": ["export", "perfetto", "--store", "STORE", "-o", "OUT/timeline.json.gz"],
    "plot": ["plot", "top_kernels", "--store", "STORE", "-o", "OUT/kernels.png"],
    "sql": ["sql", "SELECT count(*) FROM kernels a, kernels b, range(20000) WHERE a.start_ns % 7 = 3", "--store", "STORE"],
}
_OF_THIS_MACHINE = ("path", "reason", "message", "modified_ns")


def _start(runs: list[Path], store: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "nsightlens", "ingest", *map(str, runs), "--store", str(store), "--quiet", "--jobs", "2"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def _contents(store: Path) -> dict[str, list[tuple[str, ...]]]:
    """Every row of every table, sorted, without the columns that name this machine's folders."""
    found = {}
    with nl.open(store) as opened:
        for table in TABLES.values():
            columns = ", ".join(f'"{c.name}"' for c in table.columns if c.name not in _OF_THIS_MACHINE)
            rows = opened.sql(f"SELECT {columns} FROM {table.name}").to_pylist()
            found[table.name] = sorted(tuple(map(repr, row.values())) for row in rows)
        parts = {row["path"] for row in opened.sql("SELECT path FROM _parts").to_pylist()}
    assert all((store / part).is_file() for part in parts)
    return found


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[tuple[str, ...]]], float]:
    folder = tmp_path_factory.mktemp("clean")
    run = folder / "run"
    shutil.copytree(RUN, run)
    began = time.monotonic()
    assert _start([run], folder / "store").wait() == 0
    return run, _contents(folder / "store"), time.monotonic() - began


def test_killed_ingests_leave_the_old_store_or_the_new(
    clean: tuple[Path, dict[str, list[tuple[str, ...]]], float], tmp_path: Path,
) -> None:
    run, expected, seconds = clean
    chance = random.Random(20261120)
    store = tmp_path / "store"
    opened = finished = 0
    for kill in range(KILLS):
        if kill % 20 == 0:
            shutil.rmtree(store, ignore_errors=True)
        if kill % 3 == 0:
            _touch(run, chance)
        running = [_start([run], store) for _ in range(2 if kill % 4 == 0 else 1)]
        time.sleep(chance.uniform(0, seconds * (1.6 if len(running) > 1 else 1.1)))
        victim = chance.choice(running)
        finished += victim.poll() is not None
        if victim.poll() is None:
            os.killpg(victim.pid, signal.SIGKILL)
        for process in running:
            _, errors = process.communicate(timeout=120)
            assert b"Traceback" not in errors, errors.decode()
        if (store / "nsightlens.duckdb").exists():
            opened += 1
            with nl.open(store) as one:
                kernels = one.sql("SELECT count(*) AS n FROM kernels").to_pylist()[0]["n"]
            assert kernels in (0, len(expected["kernels"]))
    for sidecar in RUN.rglob("*.run.json"):
        shutil.copyfile(sidecar, run / sidecar.relative_to(RUN))
    process = _start([run], store)
    assert process.wait() == 0, process.communicate()[1]
    assert _contents(store) == expected
    assert {p.name for p in store.iterdir()} <= {"nsightlens.duckdb", "parts", "lock", "converted", "looks.msgpack"}
    listed = {str(p.relative_to(store)) for p in (store / "parts").rglob("*.parquet")}
    with nl.open(store) as one:
        assert listed == {row["path"] for row in one.sql("SELECT path FROM _parts").to_pylist()}
    assert opened > KILLS // 4 and finished < KILLS, f"{opened} stores opened, {finished} ingests were done before the kill"


def _touch(run: Path, chance: random.Random) -> None:
    """Give one capture another execution id, so that its profile is read again."""
    path = chance.choice(sorted(run.rglob("*.run.json")))
    sidecar = json.loads(path.read_text())
    path.write_text(json.dumps(sidecar | {"execution_id": f"e{chance.randrange(10**9)}"}))


class Moments:
    """A command on a store of two runs, struck by signals at one moment after the other."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._old = folder, folder / "old"
        self.store, self.out, self._scratch = folder / "store", folder / "out", folder / "scratch"
        self._words = [{"RUNS": str(folder / "runs")}.get(word, word.replace("STORE", str(self.store))
                       .replace("OUT", str(self.out))) for word in COMMANDS[name]]
        self.out.mkdir()
        self._scratch.mkdir()
        for run in "ab":
            for rank in range(2):
                kineto(folder / "runs" / run / f"{rank}.json", [(f"{run}{i}", 1e3 + 20 * i, 9.0) for i in range(300)], rank=rank)
            ncu(folder / "runs" / run / "0.csv", {"gpu__time_duration.sum": ("ns", "7")})
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(rules.VERSIONS, "kineto", rules.VERSIONS["kineto"] - 1)  # there is something to refresh
                nl.ingest(folder / "runs" / run, store=self._old, jobs=1).close()
        if name == "ingest":
            for number in range(3):
                kineto(folder / "runs" / "c" / f"{number}.json", [(f"c{i}", 1e3 + 20 * i, 9.0) for i in range(900)], rank=number)
        self._plant()
        self._server = subprocess.Popen([sys.executable, str(Path(__file__).with_name("at_a_moment.py"))], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.before = self.contents(self._old)
        assert self.strike() == 0, self.errors()
        self.after = self.contents(self.store)
        self.strike()  # with all caches warm, as the strikes that follow
        self._doings = json.loads((self._folder / "count").read_text())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()

    def _plant(self) -> None:
        """Put what is not ours into the store, and beside what is written."""
        for place in (self._old / "notes.txt", self._old / "parts/kernels/theirs.parquet", self._old / "deeper/a.json",
                      self._old / "converted/.x", self.out / "theirs.html"):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"theirs: {place}</html>")
        (self._old / "link").symlink_to(self._folder / "runs")
        self._old_tree, self._theirs = tree(self._old), {name: tree(self._old)[name] for name in THEIRS}

    def is_untouched(self) -> bool:
        """Return whether the store is the old one, byte for byte, with nothing more in it."""
        return tree(self.store) == self._old_tree

    def theirs_stay(self) -> bool:
        """Return whether what is not ours is as it was."""
        found = tree(self.store)
        return ({name: found.get(name) for name in THEIRS} == self._theirs
                and (self.out / "theirs.html").read_text().startswith("theirs"))

    def strike(self, number: int = 0, doing: int = 0, doings: str = "all", *, with_workers: bool = False) -> int:
        """Run the command on the old store, and return its exit code: that of a signal is negative."""
        shutil.rmtree(self.store, ignore_errors=True)
        shutil.copytree(self._old, self.store, symlinks=True)
        environment = {"TMPDIR": str(self._scratch), "XDG_CACHE_HOME": str(self._folder / "cache")}
        request = {"words": self._words, "signal": number, "doing": doing, "doings": doings, "with_workers": with_workers,
                   "environment": environment, "folder": str(self._folder)}
        assert self._server.stdin and self._server.stdout
        print(json.dumps(request), file=self._server.stdin, flush=True)
        return os.waitstatus_to_exitcode(int(self._server.stdout.readline()))

    def errors(self) -> str:
        """Return what the last command said."""
        return (self._folder / "stderr").read_text()

    def strikes(self, *numbers: int) -> Iterator[tuple[int, int]]:
        """Yield signal and exit code at each moment from the beginning to the end, by turns when it writes and at any doing."""
        for moment in range(MOMENTS):
            doings, number = ("writes", "all")[moment % 2], numbers[moment // 2 % len(numbers)]
            doing = int(self._doings[doings] * (moment + 0.5) / MOMENTS) + 1
            yield number, self.strike(number, doing, doings, with_workers=moment % 4 >= 2)

    @staticmethod
    def contents(store: Path) -> object:
        """Return the rows, by which rules each profile was read, and in how many parts they lie."""
        with nl.open(store) as opened:
            return _contents(store), *(opened.sql(f"SELECT {what} ORDER BY ALL").to_pylist()
                                       for what in ("* FROM _signatures", "count(DISTINCT path) FROM _parts"))

    def temporary(self) -> list[str]:
        """Return what lies in the folder for temporary files, and drafts beside what is kept."""
        drafts = [*self._scratch.iterdir(), *(self._folder / "cache").rglob(".*"), *self.out.glob(".*")]
        return [str(path.relative_to(self._folder)) for path in drafts]

    def is_whole(self) -> bool:
        """Return whether each file that the command has written is all there."""
        ends = {".html": b"</html>", ".png": b"IEND\xaeB`\x82"}
        return all(json.loads(gzip.decompress(path.read_bytes())) if path.suffix == ".gz"
                   else path.read_bytes().rstrip().endswith(ends[path.suffix]) for path in self.out.glob("[!.]*"))


@pytest.mark.filterwarnings("ignore::nsightlens.errors.OldRulesWarning", "ignore::nsightlens.errors.IngestWarning")
@pytest.mark.parametrize("numbers", [(signal.SIGKILL,), (signal.SIGINT, signal.SIGTERM)], ids=["killed", "asked to end"])
@pytest.mark.parametrize("name", COMMANDS)
def test_at_any_moment_a_store_is_old_or_new(name: str, numbers: tuple[int, ...], tmp_path: Path) -> None:
    """What answers a signal says what the store holds, and leaves nothing temporary; what is killed leaves no half of a file."""
    struck = 0
    with Moments(tmp_path, name) as moments:
        for number, code in moments.strikes(*numbers):
            errors = moments.errors()
            struck += code != 0
            assert code in (0, -number if number == signal.SIGKILL else 128 + number), errors
            assert "Traceback" not in errors, errors
            assert moments.is_whole() and moments.theirs_stay()
            if number != signal.SIGKILL:
                assert moments.temporary() == []
            has_old_rows = moments.is_untouched() or moments.contents(moments.store) == moments.before
            assert has_old_rows or moments.contents(moments.store) == moments.after
            if number != signal.SIGKILL:
                assert not code or ("unchanged" in errors) == has_old_rows, errors
                assert code or not has_old_rows or moments.before == moments.after
            if not moments.is_untouched():
                _confirm_that_the_next_ingest_tidies(moments, tmp_path / "runs")
    assert struck >= MOMENTS // 2


def _confirm_that_the_next_ingest_tidies(moments: Moments, runs: Path) -> None:
    nl.ingest(runs, store=moments.store, jobs=1).close()
    listed = {str(part.relative_to(moments.store)) for part in moments.store.glob("parts/*/*/*")}
    assert listed == {path for _, path in _parts(moments.store)}
    assert moments.theirs_stay()
    assert {entry.name for entry in moments.store.iterdir()} <= {
        "nsightlens.duckdb", "parts", "lock", "looks.msgpack", *(name.partition("/")[0] for name in THEIRS)}


def _parts(store: Path) -> list[tuple[str, str]]:
    with nl.open(store) as opened:
        return [(row["run"], row["path"]) for row in opened.sql("SELECT DISTINCT run, path FROM _parts").to_pylist()]
