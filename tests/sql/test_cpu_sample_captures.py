"""CPU samples of the real captures, against plain SQL on their SQLite files."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.perfetto.flamegraph import stacks
from nsightlens.store.store import Store
from tests.places import sqlite_captures

GPU = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")
Path_ = tuple[str, ...]
"""Frames from the outermost."""


def _ask(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as database:
        database.text_factory = lambda data: data.decode("utf-8", "replace")
        return database.execute(query).fetchall()


def _tables(path: Path) -> set[object]:
    return {name for (name,) in _ask(path, "SELECT name FROM sqlite_master WHERE type = 'table'")}


SAMPLED = [path for path in sqlite_captures() if "COMPOSITE_EVENTS" in _tables(path)]
pytestmark = [pytest.mark.captures, pytest.mark.skipif(not SAMPLED, reason="the real captures are not here")]


@pytest.fixture(scope="module", params=SAMPLED, ids=[path.stem for path in SAMPLED])
def capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Store]:
    path: Path = request.param
    return path, nl.ingest([path], store=tmp_path_factory.mktemp("samples") / "store", run="r", jobs=1)


def _chains(path: Path) -> dict[object, Path_]:
    """Return the frames of each sample: functions, [modules] for addresses and empty names, once where one follows another."""
    found: dict[object, list[str]] = defaultdict(list)
    for id_, symbol, module, unresolved in _ask(
            path, "SELECT c.id, s.value, m.value, c.unresolved FROM SAMPLING_CALLCHAINS AS c LEFT JOIN StringIds AS s "
                  "ON s.id = c.symbol LEFT JOIN StringIds AS m ON m.id = c.module ORDER BY c.id, c.stackDepth DESC"):
        file = str(module).rsplit("/", 1)[-1]
        frame = str(symbol)
        unnamed = unresolved or not symbol
        if unnamed:
            frame = file if file.startswith("[") else f"[{file}]"
        if not (unnamed and found[id_] and found[id_][-1] == frame):
            found[id_].append(frame)
    return {id_: tuple(frames) for id_, frames in found.items()}


def test_every_sample_has_its_stack(capture: tuple[Path, Store]) -> None:
    path, store = capture
    chains = _chains(path)
    expected = Counter((tid, chains.get(id_, ("(no stack)",))) for id_, tid in _ask(
        path, "SELECT id, globalTid & 16777215 FROM COMPOSITE_EVENTS"))
    tree = store.view("cpu_sample_tree")
    threads = {row["thread"] for row in tree.to_pylist()}
    found: Counter[object] = Counter()
    for stack in stacks(tree, "cpu_samples"):
        frames = stack.frames
        if len(threads) > 1:
            thread, frames = int(frames[0].removeprefix("thread ")), frames[1:]
        else:
            (thread,) = threads
        found[thread, frames] += stack.weight
    assert found == expected and found


def test_samples_while_the_gpu_idled(capture: tuple[Path, Store]) -> None:
    path, store = capture
    tables = [f"CUPTI_ACTIVITY_KIND_{kind}" for kind in GPU if f"CUPTI_ACTIVITY_KIND_{kind}" in _tables(path)]
    work = " UNION ALL ".join(f'SELECT globalPid AS pid, start, "end" FROM {table}' for table in tables)
    expected: Counter[object] = Counter()
    if work:
        expected.update(dict(_ask(path, f"""WITH work AS ({work}), span AS (
            SELECT pid, min(start) AS first, max("end") AS last FROM work GROUP BY pid)
            SELECT c.globalTid & 16777215, count(*) FROM COMPOSITE_EVENTS AS c
            JOIN span AS s ON s.pid = c.globalTid - (c.globalTid & 16777215) AND c.start >= s.first AND c.start < s.last
            WHERE NOT EXISTS (SELECT 1 FROM work AS w WHERE w.pid = s.pid AND w.start <= c.start AND w."end" > c.start)
            GROUP BY 1""")))
    found: Counter[object] = Counter()
    for row in store.view("cpu_sample_summary").to_pylist():
        found[row["thread"]] += row["idle_samples"] or 0
    assert +found == +expected


