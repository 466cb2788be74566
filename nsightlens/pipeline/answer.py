"""Answers computed at ingest (store/answers.py): which profiles lack them, in which batches, in which processes."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
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
from nsightlens.store.bundle import Bundle, bundle
from nsightlens.store.catalog import Change
from nsightlens.store.writer import Known, StoreWriter

_READ = TABLES.keys() | {templates_of(name) for name, table in TABLES.items() if table.varying}
_FEW = 2
_WITHOUT = (duckdb.Error, OSError)
"""Errors (too little memory, a full disk) that leave a store without answers: its views then compute."""


@dataclass(slots=True)
class Profile:
    """A profile of a run. parts: table -> part."""

    name: str
    run: str
    parts: dict[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Batch:
    """Profiles that are answered together. is_whole: their parts hold no rows of others."""

    profiles: list[Profile]
    is_whole: bool

    @property
    def label(self) -> str:
        """Return their runs, and how many they are where they are several."""
        runs = ", ".join(list(dict.fromkeys(one.run for one in self.profiles))[:_FEW])
        return f"{len(self.profiles)} profiles of {runs}" if len(self.profiles) > 1 else runs


def answer(change: Change, known: Known, writing: StoreWriter, resources: Resources, wanted: bool | None) -> float | None:
    """Add to `change` the answers for all profiles of the store that lack them; return the seconds that took, None for none.

    writing: the store. wanted: True for all that can be kept, False for none; None: where the store is large enough to need them,
    those that are asked for often.
    """
    profiles, events, holders = _profiles(change, known, writing.path.absolute())
    if wanted is False or (wanted is None and sum(events.values()) < answers.WORTH_IT):
        return None
    names = answers.answerable().keys() - (frozenset() if wanted else answers.SELDOM)
    lacking = [name for name in profiles if name in change.gone or not names <= known.answered.get(name, set())]
    if not lacking:
        return None
    began = time.perf_counter()
    batches = [_batch([profiles[name] for name in some], holders) for some in answers.batches(lacking, events)]
    targets = [writing.staging.absolute() / f"answers-{number}.duckdb" for number in range(len(batches))]
    sizes = {target.stem: (batch.label, len(names)) for batch, target in zip(batches, targets, strict=True)}
    with Meter(writing.staging, sizes, resources.on_progress, "answers") as meter:
        for batch, target, made in zip(batches, targets, _computed(batches, names, targets, resources), strict=True):
            if made is not None:
                change.answers.append(made)
            meter.finished(target.stem, f"answers of {batch.label}")
    return time.perf_counter() - began


def _profiles(change: Change, known: Known, root: Path) -> tuple[dict[str, Profile], dict[str, int], Counter[Path]]:
    """Return all profiles that the store will have, with their parts, the events of each, and how many profiles a part is of."""
    profiles: dict[str, Profile] = {}
    events: dict[str, int] = defaultdict(int)
    gone = set(change.gone)
    held = Counter(path for *_, path, _ in known.parts)
    places = {path: root / path for path in held}
    for table, run, name, path, count in known.parts:
        if name not in gone and path not in change.lost and table in _READ:
            profiles.setdefault(name, Profile(name, run)).parts[table] = places[path]
            events[name] += count if table in EVENTS else 0
    holders = Counter({places[path]: count for path, count in held.items()})
    alone = {name: bundle(name, run, folder, rows) for name, run, _, folder, rows in change.added}
    for one in change.bundles:
        for name in one.profiles:
            events[name] = sum(one.rows.get(table, {}).get(name, 0) for table in EVENTS)
            shared, own = _parts(one, name), _parts(alone[name], name)
            profiles[name] = Profile(name, one.run, own if events[name] >= answers.WORTH_IT else shared)  # a large one is swept
            holders.update({*shared.values(), *own.values()})
    return profiles, events, holders


def _parts(of: Bundle, profile: str) -> dict[str, Path]:
    """Return the parts of a bundle that have rows of a profile, as far as views read them."""
    return {table: file.absolute() for table, file in of.files.items() if table in _READ and profile in of.rows[table]}


def _batch(profiles: list[Profile], holders: Mapping[Path, int]) -> Batch:
    here = Counter(path for one in profiles for path in one.parts.values())
    return Batch(profiles, all(holders[path] == count for path, count in here.items()))


def _computed(
    batches: list[Batch], names: Collection[str], targets: list[Path], resources: Resources,
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


def compute(batch: Batch, names: Collection[str], target: Path, threads: int) -> None:
    """Compute the answers of views for a batch into `target`. Raises duckdb.Error, OSError."""
    found: dict[str, dict[str, dict[Path, None]]] = defaultdict(lambda: defaultdict(dict))
    for one in batch.profiles:
        for table, path in one.parts.items():
            found[table][one.run][path] = None
    sources = {table: {run: list(paths) for run, paths in by_run.items()} for table, by_run in found.items()}
    memory.give_back()
    only = None if batch.is_whole else [one.name for one in batch.profiles]
    with count_into(counter(target.parent, target.stem)):
        answers.compute(sources, names, target, threads, only, on_answer=lambda: counted(1))
