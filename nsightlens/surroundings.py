"""What lies around what among the ranges of a profile: parents, operators, modules, phases, steps (rules: attribution.py)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.autograd import Operators, forward_of
from nsightlens.nesting import Int, Mask, Nest, Places, at, codes, each_once, nest, stretches
from nsightlens.normalise import MISSING

FORWARD, BACKWARD, OPTIMIZER = 1, 2, 3
PHASES = (None, "forward", "backward", "optimizer")
_OPEN = np.iinfo(np.int64).max

_OPTIMIZER = r"^Optimizer\.(step|zero_grad)#"
_BACKWARD = r"^autograd::engine::|^torch::autograd::|Backward\d*$"
_WORDS = {FORWARD: "forward", BACKWARD: "backward", OPTIMIZER: "optimizer"}


@dataclass(frozen=True, slots=True)
class Traits:
    """What each kind of ranges is: operator, module, step or moment (an instant); what it says of the phase (0: nothing);
    whether it is backward by its name or its forward thread; that thread's number, -1 where there is none."""

    operator: Mask
    module: Mask
    step: Mask
    moment: Mask
    phase: npt.NDArray[np.int8]
    backward: Mask
    forward_thread: Int


def traits(kinds: Iterable[pa.RecordBatch]) -> Traits:
    """Return the traits of kinds of ranges: batches with the columns kind, name and forward_thread."""
    found = [_traits(batch) for batch in kinds]
    return Traits(*(np.concatenate([getattr(one, name) for one in found]) for name in Traits.__slots__))


def _traits(batch: pa.RecordBatch) -> Traits:
    kind = batch.column("kind").cast(pa.string())
    name = batch.column("name")

    def is_kind(wanted: str) -> Mask:
        return np.asarray(pc.fill_null(pc.equal(kind, wanted), False).to_numpy(zero_copy_only=False))

    def matches(pattern: str, *, ignore_case: bool = False) -> Mask:
        texts = pc.match_substring_regex(name.dictionary, pattern, ignore_case=ignore_case)
        return np.asarray(pc.fill_null(texts.take(name.indices), False).to_numpy(zero_copy_only=False))

    operator, module = is_kind("operator"), is_kind("module")
    forward_thread = pc.fill_null(batch.column("forward_thread"), -1).to_numpy(zero_copy_only=False)
    backward = operator & (matches(_BACKWARD) | (forward_thread >= 0))
    words = {phase: matches(f"(^|[^a-z]){word}([^a-z]|$)", ignore_case=True) for phase, word in _WORDS.items()}
    worded = ~operator & ~module & (sum(has.astype(np.int8) for has in words.values()) == 1)
    phase = np.zeros(batch.num_rows, dtype=np.int8)
    for one, has in words.items():
        phase[worded & has] = one
    phase[module] = FORWARD
    phase[backward] = BACKWARD
    phase[matches(_OPTIMIZER)] = OPTIMIZER
    return Traits(operator, module, is_kind("step"), is_kind("nvtx_mark"), phase, backward, forward_thread)


@dataclass(slots=True)
class Gathered:
    """The ranges of a profile, a value per row but for the traits (per kind). track: window, process and thread as one number,
    -1 for ranges on no thread. group: window and process as one number. Unknown times and numbers are MISSING."""

    kind: Places
    track: Places
    group: Places
    start: Int
    duration: Int
    sequence: Int
    traits: Traits

    def forget_times(self) -> None:
        """Drop the times once they stand in a nest."""
        self.start = self.duration = self.start[:0].copy()


class Around:
    """What lies around what, in one profile. Places are those of `nest`; rows are those of `ranges`; -1 is none."""

    def __init__(self, ranges: Gathered, *, unclosed: bool) -> None:
        """Takes the times out of `ranges`. unclosed: a range without a duration was open to the end (nsys); else it is not known
        when it ended (Kineto)."""
        known = (ranges.track >= 0) & (ranges.start != MISSING)
        closed = ranges.duration != MISSING
        spans = known & ~ranges.traits.moment[ranges.kind] & (closed | unclosed)
        end = np.where(closed, ranges.start + np.where(closed, ranges.duration, 0), _OPEN)
        self._unplaced = np.flatnonzero(known & ~spans)
        self.nest: Nest = nest(np.where(spans, ranges.track, -1), ranges.start, end)
        self.kind = ranges.kind[self.nest.rows]
        self.group = ranges.group[self.nest.rows]
        self.is_step = ranges.traits.step[self.kind]
        self.operator = self.nest.nearest(ranges.traits.operator[self.kind])
        self.steps = Steps(ranges, self.nest)
        self.parent, self.depth, self.operator_parent = self._by_row(ranges)
        del known, closed, spans, end
        ranges.forget_times()
        self.forward = np.full(len(ranges.kind), -1, dtype=np.int32)
        self.phase, self.module = self._phase_and_module(ranges)

    def _by_row(self, ranges: Gathered) -> tuple[Places, Places, Places]:
        """Return the row of the parent, the depth (-1: on no thread) and the row of the enclosing operator of each range."""
        nested, around = self.nest, np.full(len(ranges.kind), -1, dtype=np.int32)
        around[nested.rows] = nested.above
        start = ranges.start[self._unplaced]
        around[self._unplaced] = nested.innermost(ranges.track[self._unplaced], start, start)
        depth = np.where(around >= 0, nested.depth()[around] + 1, 0) if len(nested.rows) else np.zeros_like(around)
        depth[(ranges.track < 0) | (ranges.start == MISSING)] = -1
        return self.row(around), depth.astype(np.int32), self.row(self.operator_at(around))

    def forget(self) -> None:
        """Drop what only the search for places, phases and modules needs: half of the memory."""
        nested = self.nest
        self.nest = replace(nested, start=nested.start[:0].copy(), end=nested.end[:0].copy(), above=nested.above[:0].copy())
        self.kind, self.group, self.module = (one[:0].copy() for one in (self.kind, self.group, self.module))

    def row(self, places: Places) -> Places:
        """Return the row of `ranges` at each place."""
        return at(self.nest.rows, places)

    def operator_at(self, places: Places) -> Places:
        """Return the place of the innermost operator at or around each place."""
        return at(self.operator, places)

    def _phase_and_module(self, ranges: Gathered) -> tuple[npt.NDArray[np.int8], Places]:
        """Return per place the phase, and the place of the module."""
        nested, traits_ = self.nest, ranges.traits
        forward = self._link(ranges)
        says = traits_.phase[self.kind]
        says[self._of_linked(forward, ranges)] = FORWARD
        saying = nested.nearest(says > 0)
        phase = at(says, saying, missing=0)
        phase[(phase == FORWARD) & (nested.nearest(says == BACKWARD) >= 0)] = BACKWARD
        self.forward[nested.rows] = self.row(forward)
        module = nested.nearest(traits_.module[self.kind])
        linked = at(forward, nested.nearest(forward >= 0))
        return phase, np.where(module >= 0, module, at(module, linked))

    def _link(self, ranges: Gathered) -> Places:
        """Return the place of the forward operator of each backward operator."""
        nested, traits_ = self.nest, ranges.traits
        numbered = np.flatnonzero((ranges.sequence >= 0)[nested.rows] & traits_.operator[self.kind]).astype(np.int32)
        found = np.full(len(nested.rows), -1, dtype=np.int32)
        is_backward = traits_.backward[self.kind[numbered]]
        if not is_backward.any():
            return found
        within, part = self._recomputed_in(ranges, numbered)
        is_told = is_backward & (traits_.forward_thread[self.kind[numbered]] >= 0)
        is_forward = ~is_backward & ~part
        group = self.group[numbered]

        def operators(which: Mask) -> Operators:
            places = numbered[which]
            thread = ranges.track[nested.rows[places]] if which is is_forward else traits_.forward_thread[self.kind[places]]
            return Operators(places, group[which], thread, self._sequence(ranges, places), nested.start[places])

        if is_told.any():
            found[numbered[is_told]] = forward_of(operators(is_told), operators(is_forward))
        untold = is_backward & ~is_told
        if untold.any():
            # Without a thread, what is recomputed within a backward operator and what is not are told apart by that operator.
            group = codes(group, within)
            found[numbered[untold]] = forward_of(operators(untold), operators(is_forward))
        return found

    def _sequence(self, ranges: Gathered, places: Places) -> Int:
        """Return the sequence number at each place (those of all places would be large)."""
        return at(ranges.sequence, self.row(places), missing=MISSING)

    def _recomputed_in(self, ranges: Gathered, numbered: Places) -> tuple[Places, Mask]:
        """Return for each of these operators the innermost backward operator around it that has another number, and whether it
        runs, without being one itself, within one of its own number: it is then a part of that."""
        is_backward = ranges.traits.backward[self.kind]
        outer = at(self.nest.nearest(is_backward), self.nest.above)
        within, sequence = outer[numbered], self._sequence(ranges, numbered)
        own = (within >= 0) & (self._sequence(ranges, within) == sequence)
        part, todo = own & ~is_backward[numbered], np.flatnonzero(own)
        while len(todo):
            within[todo] = outer[within[todo]]
            todo = todo[(within[todo] >= 0) & (self._sequence(ranges, within[todo]) == sequence[todo])]
        return within, part

    def _of_linked(self, forward: Places, ranges: Gathered) -> Places:
        """Return the places of the forward operators that are linked, and of those around them with their number."""
        found = [each_once(forward)]
        while len(found[-1]):
            places = found[-1]
            above = self.nest.above[places]
            same = (above >= 0) & (self._sequence(ranges, above) == self._sequence(ranges, places))
            found.append(each_once(above[same]))
        return each_once(np.concatenate(found))


class Steps:
    """The steps of a profile: rows: those ranges of kind step that no other one of their process encloses; inner: the others."""

    def __init__(self, ranges: Gathered, nested: Nest) -> None:
        places = np.flatnonzero(ranges.traits.step[ranges.kind[nested.rows]])
        rows, start, end = nested.rows[places], nested.start[places], nested.end[places]
        every = nest(ranges.group[rows], start, end)
        outermost = every.rows[every.above < 0]
        self.rows, self.inner = rows[outermost], rows[every.rows[every.above >= 0]]
        self._nest = nest(ranges.group[self.rows], start[outermost], end[outermost])

    def at(self, group: Places, time: Int) -> Places:
        """Return the place in `rows` of the step that was open at each time, -1 where there is none or the time is MISSING."""
        found = np.empty(len(time), dtype=np.int32)
        for some in stretches(len(time)):
            known = time[some] != MISSING
            begin = np.where(known, time[some], 0)
            found[some] = at(self._nest.rows, self._nest.innermost(np.where(known, group[some], -1), begin, begin + 1))
        return found

