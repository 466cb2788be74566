"""Answers computed at ingest (store/answers.py): which profiles lack them, in which batches, in which processes."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from nsightlens.errors import UsageError
from nsightlens.pipeline import executors, memory, workers
from nsightlens.pipeline.meter import Meter, counter
from nsightlens.pipeline.plan import Resources
from nsightlens.readers.measure import count_into, counted
from nsightlens.schema import TABLES, templates_of
from nsightlens.store import answers
from nsightlens.store.answers import EVENTS
from nsightlens.store.catalog import Change
from nsightlens.store.writer import Known

_READ = TABLES.keys() | {templates_of(name) for name, table in TABLES.items() if table.varying}
_FEW = 2
_WITHOUT = (duckdb.Error, OSError)
"""Errors (too little memory, a full disk) that leave a store without answers: its views then compute."""


@dataclass(slots=True)
class Profile:
    """A profile of a run. parts: table -> part; shared: whether there are rows of others in them."""

    name: str
    run: str
    parts: dict[str, Path] = field(default_factory=dict)
    shared: bool = False


def answer(change: Change, known: Known, root: Path, resources: Resources, wanted: bool | None) -> float | None:
    """Add to `change` the answers for all profiles of the store that lack them; return the seconds that took, None for none.

    root: the store. wanted: True for all that can be kept, False for none; None: where the store is large enough to need them,
    those that are asked for often.
    """
    profiles, events = _profiles(change, known, root.absolute())
    if wanted is False or (wanted is None and sum(events.values()) < answers.WORTH_IT):
        return None
    names = answers.answerable().keys() - (frozenset() if wanted else answers.SELDOM)
    lacking = [name for name in profiles if name in change.gone or not names <= known.answered.get(name, set())]
    if not lacking:
        return None
    began = time.perf_counter()
    batches = [[profiles[name] for name in names] for names in answers.batches(lacking, events)]
    targets = [root.absolute() / "staging" / f"answers-{number}.duckdb" for number in range(len(batches))]
    (root / "staging").mkdir(parents=True, exist_ok=True)
    sizes = {target.stem: (_label(batch), len(names)) for batch, target in zip(batches, targets, strict=True)}
    with Meter(root / "staging", sizes, resources.on_progress, "answers") as meter:
        for batch, target, made in zip(batches, targets, _computed(batches, names, targets, resources), strict=True):
            if made is not None:
                change.answers.append(made)
            meter.finished(target.stem, f"answers of {_label(batch)}")
    return time.perf_counter() - began


def _profiles(change: Change, known: Known, root: Path) -> tuple[dict[str, Profile], dict[str, int]]:
    """Return all profiles that the store will have, with their parts, and the events of each."""
    profiles: dict[str, Profile] = {}
    events: dict[str, int] = defaultdict(int)
    gone = set(change.gone)
    holders = Counter(path for *_, path, _ in known.parts)
    places = {path: root / path for path in holders}
    for table, run, name, path, count in known.parts:
        if name not in gone and path not in change.lost and table in _READ:
            one = profiles.setdefault(name, Profile(name, run))
            one.parts[table] = places[path]
            one.shared |= holders[path] > 1
            events[name] += count if table in EVENTS else 0
    for name, run, _, folder, rows in change.added:
        profiles[name] = Profile(name, run, {table: folder.absolute() / f"{table}.parquet" for table in rows if table in _READ})
        events[name] = sum(rows.get(table, 0) for table in EVENTS)
    return profiles, events


def _computed(
    batches: list[list[Profile]], names: Collection[str], targets: list[Path], resources: Resources,
) -> Iterator[Path | None]:
    """Yield the file of each batch as it is done; None where it could not be computed: those views compute when asked."""
    jobs, executor = resources.jobs, resources.executor
    if executor is None and (jobs == 1 or len(batches) == 1):
        for batch, target in zip(batches, targets, strict=True):
            with suppress(*_WITHOUT):
                compute(batch, names, target, jobs)
            yield target if target.is_file() else None
        return
    with ExitStack() as stack:
        pool: Executor = executor or stack.enter_context(workers.Pool(min(jobs, len(batches))))
        futures = [pool.submit(compute, batch, set(names), target, max(1, jobs // len(batches)))
                   for batch, target in zip(batches, targets, strict=True)]
        for future, target in zip(futures, targets, strict=True):
            yield target if _is_done(future) else None


def _is_done(future: Future[None]) -> bool:
    try:
        future.result()
    except UsageError:  # the workers' nsightlens is another one
        raise
    except Exception as exc:
        if isinstance(exc, _WITHOUT) or executors.has_died(exc):
            return False
        raise
    return True


def compute(batch: list[Profile], names: Collection[str], target: Path, threads: int) -> None:
    """Compute the answers of views for a batch into `target`. Raises duckdb.Error, OSError."""
    sources: dict[str, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for one in batch:
        for table, path in one.parts.items():
            if path not in sources[table][one.run]:
                sources[table][one.run].append(path)
    memory.give_back()
    only = [one.name for one in batch] if any(one.shared for one in batch) else None
    with count_into(counter(target.parent, target.stem)):
        answers.compute(sources, names, target, threads, only, on_answer=lambda: counted(1))


def _label(batch: list[Profile]) -> str:
    """Return the runs of a batch, and how many profiles it holds where they are several."""
    runs = ", ".join(list(dict.fromkeys(one.run for one in batch))[:_FEW])
    return f"{len(batch)} profiles of {runs}" if len(batch) > 1 else runs
