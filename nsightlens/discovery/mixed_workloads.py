"""Captures of one run that are certainly of different GPUs or different programs: somebody's download folder, not one workload.

Only what two captures both state is compared, and a capture may name more GPUs or programs than took part: those that share one
agree. Kineto's process names are no programs (a job sets them per rank), and nsys may name the script instead of its Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import PurePath
from typing import TYPE_CHECKING

from nsightlens.readers.reader import Origin

if TYPE_CHECKING:
    from nsightlens.discovery.files import CaptureFile

CODE = "captures_differ"
REMEDY = "If they are not one workload, ingest each under its own run name (--run NAME), or from its own folder"
_MOST = 3
_ONE_JOB_NS = 3_600_000_000_000
"""Ranks of one job begin within an hour of each other, clocks of hosts included."""
_PYTHON = re.compile(r"(python|pt_main_thread|pt_data_worker)[\d.]*")
_LAUNCHER = re.compile(r"(ba|da|k|z|fi|c|tc)?sh|.*\.sh|env|numactl|taskset|timeout|nice|stdbuf|xargs|srun|mpirun|mpiexec.*|orted|"
                       r"hydra.*|prte.*|apptainer|singularity|docker|podman|nsys.*|ncu.*|.*[ :#].*")
_LONGEST = 15
"""Linux cuts the name of a process there."""


@dataclass(frozen=True, slots=True)
class Capture:
    """One capture of a run. first_ns: epoch of its first event. ranks: those known of it."""

    path: str
    run: str
    tool: str
    origin: Origin
    ranks: frozenset[int] = frozenset()
    host: str | None = None
    first_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Mixture:
    """Captures of a run that differ, the first of each kind, and in what: GPUs, programs."""

    what: tuple[str, ...]
    kinds: tuple[Capture, ...]

    @property
    def message(self) -> str:
        """Return one sentence that says so."""
        more = len(self.kinds) - _MOST
        others = f"; and {more} more kind{'' if more == 1 else 's'}" if more > 0 else ""
        return (f"run {self.kinds[0].run} combines captures of different {' and '.join(self.what)}: "
                f"{'; '.join(_described(one) for one in self.kinds[:_MOST])}{others}")


def mixed_runs(files: Iterable[CaptureFile]) -> list[Mixture]:
    """Return the runs of these files that mix captures, as far as a quick look shows."""
    return mixtures(_capture(file) for file in files if file.probe and not file.refused)


def mixtures(captures: Iterable[Capture]) -> list[Mixture]:
    """Return one mixture per run of which captures certainly differ."""
    runs: dict[str, dict[tuple[str, Origin], list[Capture]]] = {}
    for capture in captures:
        runs.setdefault(capture.run, {}).setdefault((capture.tool, capture.origin), []).append(capture)
    found = (_mixture([_pooled(alike) for alike in run.values()]) for run in runs.values())
    return [mixture for mixture in found if mixture]


def _pooled(alike: Sequence[Capture]) -> Capture:
    """Return captures of one tool and origin as one; its ranks are not known where those of one are not."""
    first, times = alike[0], [one.first_ns for one in alike if one.first_ns is not None]
    ranks = frozenset().union(*(one.ranks for one in alike)) if all(one.ranks for one in alike) else frozenset()
    return Capture(first.path, first.run, first.tool, first.origin, ranks, first.host, min(times, default=None))


def _mixture(kinds: Sequence[Capture]) -> Mixture | None:
    apart: list[list[Capture]] = []
    what: dict[str, None] = {}
    for kind in kinds:
        differing = [[reason for other in members for reason in _difference(kind, other)] for members in apart]
        home = next((members for members, reasons in zip(apart, differing, strict=True) if not reasons), None)
        if home is None:
            what.update(dict.fromkeys(reason for reasons in differing for reason in reasons))
            apart.append([kind])
        else:
            home.append(kind)
    return Mixture(tuple(sorted(what)), tuple(members[0] for members in apart)) if what else None


def _difference(one: Capture, other: Capture) -> list[str]:
    """Return in what two captures certainly differ; nothing for ranks of one job, which may use several GPUs and programs."""
    if one.tool == other.tool and one.ranks and other.ranks and not one.ranks & other.ranks and _is_one_time(one, other):
        return []
    return [*(["GPUs"] if _other_gpus(one.origin, other.origin) else ()), *(["programs"] if _other_programs(one, other) else ())]


def _is_one_time(one: Capture, other: Capture) -> bool:
    return one.first_ns is None or other.first_ns is None or abs(one.first_ns - other.first_ns) < _ONE_JOB_NS


def _other_gpus(one: Origin, other: Origin) -> bool:
    products = [{_product(name) for name in origin.gpus} for origin in (one, other)]
    return any(mine and theirs and mine.isdisjoint(theirs)
               for mine, theirs in (products, (one.compute_capabilities, other.compute_capabilities)))


def _product(name: str) -> str:
    """Return the product of a device: drivers of different age print it with and without the maker, and slices as devices."""
    return name.split(" MIG ")[0].casefold().removeprefix("nvidia ").strip()


def _other_programs(one: Capture, other: Capture) -> bool:
    if "kineto" in (one.tool, other.tool):
        return False
    mine, theirs = ({_program(name) for name in side.origin.programs} for side in (one, other))
    if not mine or not theirs or None in mine | theirs:
        return False
    return not any(a == b or (side.tool == "nsys" and (a if side is other else b) == "python")
                   for (a, b), side in product(product(mine, theirs), (one, other)))


def _program(name: str) -> str | None:
    """Return a program's name without what differs between tools; None for what starts programs."""
    bare = name.casefold().removesuffix(".exe")
    if _PYTHON.fullmatch(bare):
        return "python"
    return None if _LAUNCHER.fullmatch(bare) else bare[:_LONGEST]


def _described(one: Capture) -> str:
    origin = one.origin
    gpus = sorted(origin.gpus) or [f"compute capability {number}" for number in sorted(origin.compute_capabilities)]
    when = f"{datetime.fromtimestamp(one.first_ns // 1_000_000_000, UTC):%Y-%m-%d %H:%M} UTC" if one.first_ns else None
    programs = [] if one.tool == "kineto" else sorted(origin.programs)
    facts = [one.tool, "/".join(gpus[:_MOST]), "/".join(programs[:_MOST]), one.host and f"host {one.host}", when]
    return f"{PurePath(one.path).name} ({', '.join(fact for fact in facts if fact)})"


def _capture(file: CaptureFile) -> Capture:
    assert file.tool and file.probe
    rank, _ = file.rank
    host = next((process.host for process in file.probe.processes if process.host), None)
    ranks = frozenset() if rank is None else frozenset((rank,))
    return Capture(str(file.path), file.run, file.tool, file.probe.origin, ranks, host, file.probe.first_epoch_ns)
