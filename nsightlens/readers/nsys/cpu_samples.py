"""Samples of the CPUs: where each thread was when nsys looked, and the functions around that place as a tree per thread.

The call chains are folded into a tree before the samples are read: a function that is called from one place is one frame, however
many samples it has. Memory grows with the chains that differ, up to a limit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.readers.batches import Batch
from nsightlens.readers.nsys.columns import Names, batch_of, moments, raw, threads
from nsightlens.readers.nsys.processes import Processes
from nsightlens.readers.nsys.source import SAMPLE_STACKS, SAMPLES, Kind, Source

_STACK_COLUMNS: dict[str, Kind] = {
    "id": "integer", "symbol": "name", "module": "name", "unresolved": "integer", "stackDepth": "integer",
}
_SAMPLE_COLUMNS: dict[str, Kind] = {"id": "integer", "start": "integer", "globalTid": "integer"}
_ADDRESS = re.compile(r"(0x)?[0-9a-fA-F]{6,16}")
MOST_FRAMES = 1 << 22
"""Frames that the chains hold together, each that differs counted once; what is beyond keeps its innermost frame."""
DEEPEST = 512
"""Frames of a chain that are kept, the innermost ones."""
MOST_SAMPLES = 1 << 21
"""Samples that are kept, about: of more, chance decides, the same way each time. Shares of functions and threads stay right."""
_MOST_ROWS = 1 << 16
"""Most rows of one sample that are held back until the sample is complete."""
_UNKNOWN = -1

Ints = npt.NDArray[np.int64]
Chain = tuple[int, ...]
"""Codes of frames, from the innermost outwards."""


class Chains:
    """The call chains of a report: those that differ, and which of them each sample has."""

    def __init__(self, source: Source, tally: Counter[str]) -> None:
        self.frames: list[tuple[str, str | None]] = []
        """Name and module of each frame, by its code."""
        self.chains: list[Chain] = []
        self._unnamed: list[bool] = []
        self._symbols = Names(source.strings, _unless_address)
        self._modules = Names(source.strings, _file_name)
        self._codes: dict[tuple[str, str | None], int] = {}
        self._packed: dict[int, int] = {}
        self._numbers: dict[bytes, int] = {}
        self._room = MOST_FRAMES
        self._tally = tally
        self._ids: list[Ints] = []
        self._chain_of: list[Ints] = []

    def read(self, source: Source, jobs: int) -> None:
        """Read all chains. A sample whose rows do not stand together has the chain that came first."""
        rest = np.zeros((3, 0), dtype=np.int64)
        for batch in source.batches(SAMPLE_STACKS, _STACK_COLUMNS, jobs):
            rows = np.concatenate([rest, self._rows(batch)], axis=1)
            others = np.flatnonzero(rows[0] != rows[0, -1:])  # the sample of the last row may go on in the next batch
            whole = int(others[-1]) + 1 if len(others) else 0
            if rows.shape[1] - whole > _MOST_ROWS:
                whole = rows.shape[1]
            self._add(rows[:, :whole])
            rest = rows[:, whole:]
        self._add(rest)
        ids = np.concatenate([np.zeros(0, dtype=np.int64), *self._ids])
        chain_of = np.concatenate([np.zeros(0, dtype=np.int64), *self._chain_of])
        self._known, first = np.unique(ids, return_index=True)
        self._tally["split_stacks"] += len(ids) - len(self._known)
        self._number = chain_of[first]

    def of(self, ids: Ints) -> Ints:
        """Return the number of the chain of each sample, -1 where it has none."""
        if not len(self._known):
            return np.full(len(ids), _UNKNOWN, dtype=np.int64)
        place = np.minimum(np.searchsorted(self._known, ids), len(self._known) - 1)
        return np.where(self._known[place] == ids, self._number[place], _UNKNOWN)

    def _rows(self, batch: pa.RecordBatch) -> Ints:
        """Return sample, depth and code of the frame of each row that has all of them."""
        id_, depth, symbol, module = (raw(batch, name) for name in ("id", "stackDepth", "symbol", "module"))
        resolved = pc.equal(pc.fill_null(raw(batch, "unresolved"), 0), 0)
        names = self._symbols.encode(pc.if_else(resolved, symbol, None))
        modules = self._modules.encode(module)
        packed = ((pc.fill_null(names.indices, -1).to_numpy().astype(np.int64) + 1) << 31) | (
            pc.fill_null(modules.indices, -1).to_numpy().astype(np.int64) + 1)
        found, where = np.unique(packed, return_inverse=True)
        codes = np.array([self._code(one, names.dictionary, modules.dictionary) for one in found.tolist()], dtype=np.int64)
        whole = pc.and_(id_.is_valid(), depth.is_valid()).to_numpy(zero_copy_only=False)
        rows = np.stack([pc.fill_null(id_, 0).to_numpy(), pc.fill_null(depth, 0).to_numpy(), codes[where.reshape(-1)]])
        return rows[:, whole].astype(np.int64)

    def _code(self, packed: int, symbols: pa.Array, modules: pa.Array) -> int:
        """Return the code of a frame: its function and module or, where the function is not known, the module alone."""
        if packed not in self._packed:
            symbol, module = (packed >> 31) - 1, (packed & ((1 << 31) - 1)) - 1
            name = symbols[symbol].as_py() if symbol >= 0 else None
            file = modules[module].as_py() if module >= 0 else None
            frame = (name or _unnamed(file), file)
            if frame not in self._codes:
                self._codes[frame] = len(self.frames)
                self.frames.append(frame)
                self._unnamed.append(not name)
            self._packed[packed] = self._codes[frame]
        return self._packed[packed]

    def _add(self, rows: Ints) -> None:
        """Add the chains of whole samples. rows: sample, depth and code of each frame."""
        if not rows.shape[1]:
            return
        rows = rows[:, np.lexsort((rows[1], rows[0]))]
        # addresses of one module next to each other say nothing that one of them does not
        again = (rows[0, 1:] == rows[0, :-1]) & (rows[2, 1:] == rows[2, :-1]) & np.array(self._unnamed)[rows[2, 1:]]
        rows = rows[:, np.concatenate([[True], ~again])]
        begins = np.flatnonzero(np.concatenate([[True], rows[0, 1:] != rows[0, :-1]]))
        ends = np.append(begins[1:], rows.shape[1])
        self._ids.append(rows[0, begins])
        codes = rows[2].astype(np.int32)
        numbers = [self._chain(codes[begin:end]) for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        self._chain_of.append(np.array(numbers, dtype=np.int64))

    def _chain(self, codes: npt.NDArray[np.int32]) -> int:
        number = self._numbers.get(key := codes.tobytes())
        if number is not None:
            return number
        kept = min(len(codes), DEEPEST, max(self._room, 1))
        if kept < len(codes):
            self._tally["cut_stacks"] += 1
            return self._chain(codes[:kept])
        self._room -= kept
        self.chains.append(tuple(codes.tolist()))
        return self._numbers.setdefault(key, len(self.chains) - 1)


@dataclass(slots=True)
class _Tree:
    """Frames from the outermost inwards, each before those within it. A value per frame: the thread that it is of (globalTid),
    the code of its name, its caller (-1: none), the last frame within it, the frames around it, and whether one of its name is
    among these."""

    thread: list[int]
    code: list[int]
    caller: list[int]
    last: list[int]
    depth: list[int]
    recursive: list[bool]


def _tree(paths: list[tuple[int, Chain]]) -> tuple[_Tree, dict[tuple[int, Chain], int]]:
    """Return the tree of (thread, frames from the outermost), which are sorted, and the innermost frame of each path."""
    tree, innermost = _Tree([], [], [], [], [], []), {}
    open_: list[int] = []
    before: tuple[int, Chain] | None = None
    for thread, path in paths:
        shared = _shared(before[1], path) if before is not None and before[0] == thread else 0
        del open_[shared:]
        for code in path[shared:]:
            number = len(tree.code)
            tree.recursive.append(any(tree.code[one] == code for one in open_))
            tree.thread.append(thread)
            tree.code.append(code)
            tree.caller.append(open_[-1] if open_ else -1)
            tree.depth.append(len(open_))
            tree.last.append(number)
            open_.append(number)
        innermost[thread, path] = open_[-1]
        before = thread, path
    for number in range(len(tree.code) - 1, -1, -1):
        caller = tree.caller[number]
        if caller >= 0:
            tree.last[caller] = max(tree.last[caller], tree.last[number])
    return tree, innermost


def _shared(one: Chain, other: Chain) -> int:
    """Return how many frames two paths share from the outermost on."""
    return next((place for place, (left, right) in enumerate(zip(one, other, strict=False)) if left != right),
                min(len(one), len(other)))


def cpu_samples(
    source: Source, processes: Processes, base_ns: int, tally: Counter[str], jobs: int,
) -> Iterator[Batch]:
    """Yield the frames of the CPU samples, then the samples: those of processes that other tables tell of, if any do."""
    chains = Chains(source, tally)
    chains.read(source, jobs)
    chosen = _chooser(processes, source.edges(SAMPLES, "start")[0])
    met: dict[int, Ints] = {}
    for batch in source.batches(SAMPLES, _SAMPLE_COLUMNS, jobs):
        thread, chain = _placed(chosen(batch, None), chains)
        for one in np.unique(thread).tolist():
            met[one] = np.union1d(met.get(one, np.zeros(0, dtype=np.int64)), chain[(thread == one) & (chain >= 0)])
    paths = sorted((thread, chains.chains[number][::-1]) for thread, numbers in met.items() for number in numbers.tolist())
    tree, innermost = _tree(paths)
    if tree.code:
        yield "sampled_frames", _frames(tree, chains, processes)
    number = {(thread, chain): innermost[thread, chains.chains[chain][::-1]]
              for thread, numbers in met.items() for chain in numbers.tolist()}
    for batch in source.batches(SAMPLES, _SAMPLE_COLUMNS, jobs):
        kept = chosen(batch, tally)
        if kept.num_rows:
            yield "cpu_samples", _samples(kept, chains, number, processes, base_ns, tally)


def _chooser(processes: Processes, rows: int) -> Callable[[pa.RecordBatch, Counter[str] | None], pa.RecordBatch]:
    """Return a function that leaves out samples without a time, those of processes or threads that nothing else is known of
    (nsys can sample the whole system), and what of so many rows is too much. It counts them where it is given a tally."""
    known = pa.array([key for key in processes.keys if key is not None], pa.int64())
    limit = np.uint64(MOST_SAMPLES / max(rows, MOST_SAMPLES) * (1 << 32))

    def chosen(batch: pa.RecordBatch, tally: Counter[str] | None) -> pa.RecordBatch:
        thread, start = raw(batch, "globalTid"), raw(batch, "start")
        whole = start.is_valid()
        ours = pc.is_in(processes.owner(thread), value_set=known) if len(known) else thread.is_valid()
        if tally is not None:
            tally["no_start"] += batch.num_rows - (pc.sum(whole).as_py() or 0)
            tally["foreign_samples"] += pc.sum(pc.and_(whole, pc.invert(ours))).as_py() or 0
        kept = batch.filter(pc.and_(whole, ours))
        if rows <= MOST_SAMPLES:
            return kept
        lucky = _scattered(raw(kept, "start").to_numpy() ^ raw(kept, "globalTid").to_numpy()) < limit
        if tally is not None:
            tally["samples_thinned"] += kept.num_rows - int(lucky.sum())
        return kept.filter(pa.array(lucky))

    return chosen


def _scattered(values: Ints) -> npt.NDArray[np.uint64]:
    """Return a number below 2^32 for each value, which says nothing of it (the finisher of SplitMix64)."""
    mixed = values.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed ^ (mixed >> np.uint64(31))) >> np.uint64(32)


def _placed(batch: pa.RecordBatch, chains: Chains) -> tuple[Ints, Ints]:
    """Return the thread (globalTid) and the chain of each sample; -1: it has none."""
    id_ = pc.fill_null(raw(batch, "id"), -1).to_numpy()
    return raw(batch, "globalTid").to_numpy(), chains.of(id_)


def _samples(
    batch: pa.RecordBatch, chains: Chains, number: dict[tuple[int, int], int], processes: Processes, base_ns: int,
    tally: Counter[str],
) -> pa.RecordBatch:
    thread, chain = _placed(batch, chains)
    pairs, where = np.unique(np.stack([thread, chain]), axis=1, return_inverse=True)
    frames = pa.array([number.get((one, other)) for one, other in pairs.T.tolist()], pa.int64())
    global_tid = raw(batch, "globalTid")
    return batch_of({
        "process_index": processes.index(global_tid), "thread": threads(global_tid),
        "at_ns": moments(raw(batch, "start"), base_ns, tally), "frame_row": frames.take(pa.array(where.reshape(-1))),
    })


def _frames(tree: _Tree, chains: Chains, processes: Processes) -> pa.RecordBatch:
    global_tid = pa.array(tree.thread, pa.int64())
    names, modules = zip(*chains.frames, strict=True)
    code = pa.array(tree.code, pa.int32())
    caller = pa.array(tree.caller, pa.int64())
    return batch_of({
        "process_index": processes.index(global_tid), "thread": threads(global_tid),
        "parent_row": pc.if_else(pc.greater_equal(caller, 0), caller, None), "last_row": pa.array(tree.last, pa.int64()),
        "depth": pa.array(tree.depth, pa.int32()), "name": pa.array(names, pa.string()).take(code).dictionary_encode(),
        "module": pa.array(modules, pa.string()).take(code).dictionary_encode(),
        "recursive": pa.array(tree.recursive, pa.bool_()),
    })


def _unless_address(symbol: str) -> str:
    """Return the name of a function, and nothing where it is an address: the function is not known then."""
    return "" if _ADDRESS.fullmatch(symbol) else symbol


def _file_name(module: str) -> str:
    """Return the file of a module without its folders, which may tell whose machine it was."""
    return re.split(r"[/\\]", module)[-1]


def _unnamed(module: str | None) -> str:
    """Return what stands for a function that is not known: its module."""
    if not module:
        return "[unknown]"
    return module if module.startswith("[") else f"[{module}]"
