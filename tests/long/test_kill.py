"""Commands killed or interrupted at many moments: the store is the old one or the new one, and nothing is left lying about."""

from __future__ import annotations

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

import pytest

import nsightlens as nl
from nsightlens.schema import TABLES
from nsightlens.store import rules
from tests.captures import kineto, ncu
from tests.places import ROOT

RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"
KILLS = int(os.environ.get("KILLS", "40"))
MOMENTS = int(os.environ.get("MOMENTS", "6"))
COMMANDS = {
    "ingest": ["ingest", "RUNS", "--store", "STORE", "--jobs", "2", "--answers"],
    "refresh": ["refresh", "--store", "STORE", "--jobs", "2"],
    "compact": ["compact", "--store", "STORE"],
    "remove": ["remove", "--store", "STORE", "--run", "a"],
    "summary": ["summary", "--store", "STORE"],
    "report": ["report", "--store", "STORE", "-o", "OUT/report.html"],
    "sql": ["sql", "SELECT count(*) FROM kernels a, kernels b, range(20000) WHERE a.start_ns % 7 = 3", "--store", "STORE"],
}
_OF_THIS_MACHINE = ("path", "reason", "message", "modified_ns")


def _start(runs: list[Path], store: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "nsightlens", "ingest", *map(str, runs), "--store", str(store), "--quiet"]
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
    """A command on a store of two runs, struck by a signal at one moment after the other."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._old = folder, folder / "old"
        self.store, self.out, self._scratch = folder / "store", folder / "out", folder / "scratch"
        self._command = [{"RUNS": str(folder / "runs")}.get(word, word.replace("STORE", str(self.store))
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
                kineto(folder / "runs" / "c" / f"{number}.json", [(f"c{i}", 1e3 + 20 * i, 9.0) for i in range(9000)], rank=number)
        self.before = self.contents(self._old)
        assert self.strike(0, 0, 0, alone=True).returncode == 0
        self.after = self.contents(self.store)
        self.strike(0, 0, 0, alone=True)  # with all caches warm, as the strikes that follow
        doings, seconds = (self._folder / "count").read_text().split()
        self._doings, self._seconds = int(doings), float(seconds)

    def strike(self, number: int, doing: int, seconds: float, *, alone: bool) -> subprocess.CompletedProcess[str]:
        """Run the command on the old store. alone: its workers get no signal."""
        shutil.rmtree(self.store, ignore_errors=True)
        shutil.copytree(self._old, self.store)
        environment = os.environ | {"TMPDIR": str(self._scratch), "XDG_CACHE_HOME": str(self._folder / "cache")}
        words = [number, doing, seconds, "process" if alone else "group", self._folder / "count", *self._command]
        script = Path(__file__).with_name("at_a_moment.py")
        return subprocess.run([sys.executable, str(script), *map(str, words)], env=environment, capture_output=True, text=True,
                              start_new_session=True, timeout=300)

    def strikes(self, number: int) -> Iterator[subprocess.CompletedProcess[str]]:
        """Yield the command struck at moments from its beginning to its end, by turns at doings and at times."""
        for moment in range(MOMENTS):
            part = (moment + 0.5) / MOMENTS
            doing, seconds = (0, self._seconds * part) if moment % 2 else (int(self._doings * part) + 1, 0.0)
            yield self.strike(number, doing, seconds, alone=moment % 4 < 2)

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


@pytest.mark.filterwarnings("ignore::nsightlens.errors.OldRulesWarning", "ignore::nsightlens.errors.IngestWarning")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
@pytest.mark.parametrize("name", COMMANDS)
def test_at_any_moment_a_store_is_old_or_new(name: str, number: signal.Signals, tmp_path: Path) -> None:
    """What answers a signal says what the store holds, and leaves nothing temporary; what is killed leaves no half of a file."""
    moments = Moments(tmp_path, name)
    struck = 0
    for done in moments.strikes(number):
        struck += done.returncode != 0
        assert done.returncode in (0, -number if number == signal.SIGKILL else 128 + number), done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        found = moments.contents(moments.store)
        assert found in (moments.before, moments.after)
        if number != signal.SIGKILL:
            assert moments.temporary() == []
            assert not done.returncode or ("unchanged" in done.stderr) == (found == moments.before), done.stderr
            assert found == moments.after or done.returncode
        assert all(page.read_text().endswith("</html>") for page in moments.out.glob("[!.]*"))
        nl.ingest(tmp_path / "runs", store=moments.store, jobs=1).close()  # the next writer takes away what is left
        listed = {str(part.relative_to(moments.store)) for part in moments.store.glob("parts/*/*/*")}
        assert listed == {path for _, path in _parts(moments.store)}
        assert {entry.name for entry in moments.store.iterdir()} <= {"nsightlens.duckdb", "parts", "lock", "looks.msgpack"}
    assert struck >= MOMENTS // 2


def _parts(store: Path) -> list[tuple[str, str]]:
    with nl.open(store) as opened:
        return [(row["run"], row["path"]) for row in opened.sql("SELECT DISTINCT run, path FROM _parts").to_pylist()]
