"""The views stack_tree and cpu_sample_tree -> flame graphs: speedscope's JSON, or collapsed stacks, by what a stack weighs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa



@dataclass(frozen=True, slots=True)
class Weight:
    """What a stack may weigh: the view of its frames, the column that sums to what belongs to them, and speedscope's unit."""

    view: str
    column: str
    unit: str


WEIGHTS = {
    "gpu": Weight("stack_tree", "gpu_self_ns", "nanoseconds"),
    "host": Weight("stack_tree", "host_self_ns", "nanoseconds"),
    "launches": Weight("stack_tree", "launches", "none"),
    "cpu_samples": Weight("cpu_sample_tree", "samples", "none"),
    "cpu_samples_while_gpu_idle": Weight("cpu_sample_tree", "idle_samples", "none"),
}
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_SEPARATOR = ";"


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack that weighs something: whose it is, its frames from the outermost, and its weight (ns, launches or samples)."""

    process: str
    frames: tuple[str, ...]
    weight: int


def stacks(tree: pa.Table, weight: str) -> Iterator[Stack]:
    """Yield the stacks of the rows of the view that a weight is of, in its order. weight: one of WEIGHTS.

    A process is named by as much of run, rank and id as no other shares. Where it has several threads, the thread is
    the outermost frame.
    """
    rows: list[dict[str, Any]] = tree.to_pylist()
    names = _names(rows)
    threads: dict[str, set[int | None]] = {}
    for row in rows:
        if row["thread"] is not None:
            threads.setdefault(row["process_id"], set()).add(row["thread"])
    frames: dict[int, tuple[str, ...]] = {}
    for row in rows:
        around = frames.get(row["parent_id"], ())
        if not around and row["thread"] is not None and len(threads[row["process_id"]]) > 1:
            around = (f"thread {row['thread']}",)
        whole = (*around, row["name"])
        if row["frame_id"] is not None:
            frames[row["frame_id"]] = whole
        if row[WEIGHTS[weight].column]:
            yield Stack(names[row["process_id"]], whole, row[WEIGHTS[weight].column])


def _names(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return the name of each process: run and rank, with the id where several have the same or the rank is not known."""
    labels = {row["process_id"]: f"{row['run']} rank {row['rank']}" if row["rank"] is not None else None for row in rows}
    whose = {row["process_id"]: f"{row['run']} process {row['process_id']}" for row in rows}
    known = list(labels.values())
    return {one: label if label is not None and known.count(label) == 1 else whose[one] for one, label in labels.items()}


def collapsed(found: Iterable[Stack]) -> Iterator[str]:
    """Yield a line per stack, as flamegraph.pl and its kin read them: frames joined by ';', and the weight.

    Where there are several processes, the process is the outermost frame.
    """
    listed = list(found)
    several = len({stack.process for stack in listed}) > 1
    for stack in listed:
        frames = (stack.process, *stack.frames) if several else stack.frames
        yield f"{_SEPARATOR.join(_one_line(frame) for frame in frames)} {stack.weight}"


def _one_line(frame: str) -> str:
    """Return the frame without what would end it or its line."""
    return " ".join(frame.replace(_SEPARATOR, ":").split())


def speedscope(found: Iterable[Stack], weight: str) -> dict[str, Any]:
    """Return a file of speedscope (https://www.speedscope.app): a sampled profile per process, a sample per stack."""
    frames: dict[str, int] = {}
    profiles: dict[str, dict[str, Any]] = {}
    for stack in found:
        profile = profiles.setdefault(stack.process, {"type": "sampled", "name": f"{stack.process}, {weight}",
                                                      "unit": WEIGHTS[weight].unit, "startValue": 0, "endValue": 0, "samples": [],
                                                      "weights": []})
        profile["samples"].append([frames.setdefault(frame, len(frames)) for frame in stack.frames])
        profile["weights"].append(stack.weight)
        profile["endValue"] += stack.weight
    return {"$schema": _SCHEMA, "exporter": "nsightlens", "activeProfileIndex": 0,
            "shared": {"frames": [{"name": frame} for frame in frames]}, "profiles": list(profiles.values())}
