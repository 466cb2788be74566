"""Calls of Python functions -> a tree of frames per thread, and the frame that was running at a time.

A frame is a function in one place of the stack: its calls from there are one frame. What called what follows from time, as it
does for ranges: a call lies within the innermost one of its thread that was open when it began and ends no sooner. Most frames
are short calls that launch nothing; they are left out, and their time remains in the frame that called them.

Where a trace has no calls of functions, but the stack of each operator as a text, the frames are those of the texts: who called
whom stands there, how often and for how long does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from nsightlens.attribution.intervals import Nest, at, nest
from nsightlens.columns.arrays import MISSING, Int, Mask, Places, integers, lookup, nullable, numbered

SHORT = 1000
"""A frame is short where it takes less than this fraction of the outermost one around it."""


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions that were called, each once per thread. process, thread, name: of each; texts: the distinct names."""

    process: Places
    thread: Int
    name: Places
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FrameCalls:
    """Calls of Python functions, a value per call: its function, its track (window, process and thread as one number; -1:
    unknown), its times. Unknown times are MISSING."""

    function: Places
    track: Places
    start: Int
    duration: Int


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of a profile, depth first. base: the first id of its rows. function: a place in `functions`. parent: -1: none.
    last: the last frame within each. recursive: whether a frame of the same name lies around it. calls, host_ns: MISSING where
    calls were not recorded."""

    base: int
    functions: Functions
    function: Places
    parent: Places
    last: Places
    depth: Places
    recursive: Mask
    calls: Int
    host_ns: Int

    def process(self) -> Int:
        """Return the number of the process of each frame."""
        return self.functions.process[self.function].astype(np.int64)

    def columns(self) -> dict[str, pa.Array]:
        """Return the columns of `frames` that do not tell where the profile comes from."""
        rows = np.arange(len(self.function), dtype=np.int64) + self.base
        named, name = np.unique(self.functions.name[self.function], return_inverse=True)
        texts = [self.functions.texts[one] for one in named.tolist()]
        return {
            "frame_id": pa.array(rows), "parent_id": pa.array(self.parent.astype(np.int64) + self.base, mask=self.parent < 0),
            "last_id": pa.array(self.last.astype(np.int64) + self.base), "depth": pa.array(self.depth),
            "thread": nullable(self.functions.thread[self.function]), "name": lookup(name.reshape(-1), texts),
            "recursive": pa.array(self.recursive), "calls": nullable(self.calls), "host_ns": nullable(self.host_ns),
        }

    def without_short(self, used: Mask) -> tuple[Frames, Places]:
        """Return the frames with those left out that are short and in which nothing is `used`; and the number that each had
        (-1: left out)."""
        before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(used)])
        places = np.arange(len(used))
        outermost = np.maximum.accumulate(np.where(self.depth == 0, places, 0))
        is_long = (self.host_ns != MISSING) & (self.host_ns * SHORT >= self.host_ns[outermost])
        kept = (before[self.last + 1] > before[places]) | is_long
        upto = np.cumsum(kept, dtype=np.int32)
        number = np.where(kept, upto - 1, -1).astype(np.int32)
        some = Frames(self.base, self.functions, self.function[kept], at(number, self.parent[kept]), upto[self.last[kept]] - 1,
                      self.depth[kept], self.recursive[kept], self.calls[kept], self.host_ns[kept])
        return some, number


@dataclass(frozen=True, slots=True)
class Stacks:
    """The calls in their nest: of each place, its frame."""

    nest: Nest
    frame: Places

    def at(self, track: Places, start: Int) -> Places:
        """Return the frame that was running on each track at each time, -1 where none was or the time is MISSING."""
        known = start != MISSING
        begin = np.where(known, start, 0)
        return at(self.frame, self.nest.innermost(np.where(known, track, -1), begin, begin + 1))


def functions(process: Int, templates: Iterable[pa.RecordBatch]) -> tuple[Functions, Places]:
    """Return the functions, and which of them each template of calls is of. process: the number of each template's."""
    texts: dict[str, int] = {}
    names, threads = [], []
    for batch in templates:
        names += [texts.setdefault(text or "", len(texts)) for text in batch.column("name").to_pylist()]
        threads.append(integers(batch.column("thread")))
    return _distinct(process, np.concatenate(threads), np.array(names, dtype=np.int32), texts)


def _distinct(process: Int, thread: Int, name: Places, texts: Iterable[str]) -> tuple[Functions, Places]:
    number = numbered(process, thread, name)
    _, first = np.unique(number, return_index=True)
    return Functions(process[first].astype(np.int32), thread[first], name[first], tuple(texts)), number


def stacks(calls: FrameCalls, called: Functions, base: int) -> tuple[Stacks, Frames]:
    """Return the calls in their nest, and the frames that they are calls of. Those without a track or a time are left out."""
    known = (calls.track >= 0) & (calls.start != MISSING) & (calls.duration != MISSING)
    found = nest(np.where(known, calls.track, -1), calls.start, calls.start + np.where(known, calls.duration, 0))
    node, parent, function = _nodes(found, calls.function[found.rows])
    host_ns: Int = np.zeros(len(parent), dtype=np.int64)
    np.add.at(host_ns, node, calls.duration[found.rows])  # a sum of integers: bincount would add doubles
    frames, number = _frames(parent, function, called, base, np.bincount(node, minlength=len(parent)), host_ns)
    return Stacks(found, at(number, node)), frames


def operator_stacks(operators: FrameCalls, stacked: Functions, base: int) -> tuple[Stacks, Frames]:
    """Return operators in their nest, and the frames of their stacks. The function of each is a whole stack, innermost first.

    Those without a track or a time are left out. An operator without a duration lasts for 1 ns.
    """
    known = (operators.track >= 0) & (operators.start != MISSING) & (operators.duration != MISSING)
    lasts = np.where(known, np.maximum(operators.duration, 1), 0)
    found = nest(np.where(known, operators.track, -1), operators.start, operators.start + lasts)
    node_of: dict[tuple[int, int, str, int], int] = {}
    innermost = np.full(len(stacked.name), -1, dtype=np.int32)
    for stack, (process, thread) in enumerate(zip(stacked.process.tolist(), stacked.thread.tolist(), strict=True)):
        node = -1
        for name in reversed(stacked.texts[stacked.name[stack]].split(";")):
            node = node_of.setdefault((process, thread, name, node), len(node_of))
        innermost[stack] = node
    texts = {name: number for number, name in enumerate(dict.fromkeys(name for _, _, name, _ in node_of))}
    each = np.array([(process, thread, texts[name], outer) for process, thread, name, outer in node_of]).reshape(-1, 4)
    called, function = _distinct(each[:, 0], each[:, 1], each[:, 2].astype(np.int32), texts)
    unknown = np.full(len(each), MISSING)
    frames, number = _frames(each[:, 3].astype(np.int32), function, called, base, unknown, unknown)
    return Stacks(found, at(number, innermost[operators.function[found.rows]])), frames


def _frames(parent: Places, function: Places, called: Functions, base: int, calls: Int, host_ns: Int) -> tuple[Frames, Places]:
    """Return the nodes of a tree as frames, and the number that each has among these. parent: comes before."""
    number, last, depth = _depth_first(parent)
    order = np.argsort(number)
    outer, function = at(number, parent[order]), function[order]
    recursive = _recursive(outer, depth[order], called.name[function])
    return Frames(base, called, function, outer, last[order], depth[order], recursive, calls[order], host_ns[order]), number


def _nodes(found: Nest, function: Places) -> tuple[Places, Places, Places]:
    """Return the node of each call, and the parent and the function of each node; the nodes as they are first met, from the
    outermost inwards. Calls of one function from one node are one node."""
    node = np.full(len(function), -1, dtype=np.int32)
    parents, called, count = [node[:0]], [node[:0]], 0
    depth = found.depth()
    order = np.argsort(depth, kind="stable")
    ends = np.searchsorted(depth[order], np.arange(int(depth.max(initial=-1)) + 2))
    for begin, end in pairwise(ends.tolist()):
        places = order[begin:end]
        outer = at(node, found.above[places])
        called_by = (outer.astype(np.int64) << 32) | function[places]
        pairs, first, number = np.unique(called_by, return_index=True, return_inverse=True)
        rank = np.empty(len(pairs), dtype=np.int32)
        as_met = np.argsort(first)
        rank[as_met] = np.arange(len(pairs), dtype=np.int32) + count
        node[places] = rank[number.reshape(-1)]
        parents.append(outer[first[as_met]])
        called.append(function[places][first[as_met]])
        count += len(pairs)
    return node, np.concatenate(parents), np.concatenate(called)


def _depth_first(parent: Places) -> tuple[Places, Places, Places]:
    """Return for each node its number depth first, the number of the last one within it, and its depth. parent: comes before."""
    count = len(parent)
    size, depth, number = np.ones(count, dtype=np.int32), np.zeros(count, dtype=np.int32), np.zeros(count, dtype=np.int32)
    for one, above in zip(range(count - 1, -1, -1), parent[::-1].tolist(), strict=True):
        if above >= 0:
            size[above] += size[one]
    free = np.zeros(count + 1, dtype=np.int32)  # the next number within each node; at the end, of the outermost ones
    for one, above in enumerate(parent.tolist()):
        number[one] = free[above]
        free[above] += size[one]
        free[one] = number[one] + 1
        depth[one] = depth[above] + 1 if above >= 0 else 0
    return number, number + size - 1, depth


def _recursive(parent: Places, depth: Places, name: Places) -> Mask:
    """Return which frames, depth first, have one of the same name around them."""
    recursive = np.zeros(len(parent), dtype=np.bool_)
    around: list[int] = []
    open_: dict[int, int] = {}
    for one, (level, named) in enumerate(zip(depth.tolist(), name.tolist(), strict=True)):
        for left in around[level:]:
            open_[left] -= 1
        around[level:] = [named]
        recursive[one] = open_.get(named, 0) > 0
        open_[named] = open_.get(named, 0) + 1
    return recursive
