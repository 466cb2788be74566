"""The tree of a profile's ranges: parent, operator, module, phase and step of each range (rules: attribute.py)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.attribution.autograd import Operators, forward_of
from nsightlens.attribution.intervals import Nest, at, each_once, nest
from nsightlens.attribution.stacks import Stacks
from nsightlens.columns.arrays import MISSING, Int, Mask, Places, numbered, row_chunks
from nsightlens.names import collectives

FORWARD, BACKWARD, OPTIMIZER = 1, 2, 3
PHASES = (None, "forward", "backward", "optimizer")
COLLECTIVES = (None, *collectives.OPERATIONS, collectives.UNNAMED)
_UNNAMED = len(COLLECTIVES) - 1
_OPEN = np.iinfo(np.int64).max

_OPTIMIZER = r"^Optimizer\.(step|zero_grad)#"
_BACKWARD = r"^autograd::engine::|^torch::autograd::|Backward\d*$"
_WORDS = {FORWARD: "forward", BACKWARD: "backward", OPTIMIZER: "optimizer"}


@dataclass(frozen=True, slots=True)
class Traits:
    """What the ranges of each template are: operator, module, step or moment (an instant); their phase and the collective
    that they name (its number in COLLECTIVES; 0: none); whether they are backward by name or forward thread; that thread's
    number, -1 where there is none."""

    operator: Mask
    module: Mask
    step: Mask
    moment: Mask
    phase: npt.NDArray[np.int8]
    collective: npt.NDArray[np.int8]
    backward: Mask
    forward_thread: Int


def traits(templates: Iterable[pa.RecordBatch]) -> Traits:
    """Return the traits of templates of ranges: batches with the columns kind, name and forward_thread."""
    found = [_traits(batch) for batch in templates]
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
    return Traits(operator, module, is_kind("step"), is_kind("nvtx_mark"), phase, _collectives(name), backward, forward_thread)


def _collectives(name: pa.DictionaryArray) -> npt.NDArray[np.int8]:
    """Return per row the number in COLLECTIVES of what its name says."""
    codes = np.zeros(len(name.dictionary) + 1, dtype=np.int8)
    naming = pc.match_substring_regex(name.dictionary, collectives.NAMING)
    for place in np.flatnonzero(pc.fill_null(naming, False).to_numpy(zero_copy_only=False)).tolist():
        codes[place] = COLLECTIVES.index(collectives.operation(name.dictionary[place].as_py()))
    communicating = pc.match_substring_regex(name.dictionary, collectives.COMMUNICATING)
    codes[:-1][pc.fill_null(communicating, False).to_numpy(zero_copy_only=False) & (codes[:-1] == 0)] = _UNNAMED
    found: npt.NDArray[np.int8] = codes[pc.fill_null(name.indices, len(codes) - 1).to_numpy(zero_copy_only=False)]
    return found


@dataclass(frozen=True, slots=True)
class RangeRows:
    """The ranges of a profile, a value per row but for the traits (per template). track: window, process and thread as one
    number, -1 for ranges on no thread. group: window and process as one number. Unknown sequence numbers are MISSING."""

    template: Places
    track: Places
    group: Places
    sequence: Int
    traits: Traits


@dataclass(frozen=True, slots=True)
class RangeTree:
    """The ranges by row, and the rows of their places in the nest: what is written of them. -1 is none.

    parent, depth, operator_parent, forward: per row; the parent and the operators as rows. rows, operator: per place, the row
    that stands there, and the place of the innermost operator at or around it. steps: the rows of the steps.
    """

    parent: Places
    depth: Places
    operator_parent: Places
    forward: Places
    rows: Places
    operator: Places
    steps: Places

    def row(self, places: Places) -> Places:
        """Return the row of the range at each place."""
        return at(self.rows, places)

    def operator_at(self, places: Places) -> Places:
        """Return the place of the innermost operator at or around each place."""
        return at(self.operator, places)


@dataclass(frozen=True, slots=True)
class StepRanges:
    """The steps of a profile: rows: those ranges of kind step that no other one of their process encloses; inner: the others."""

    rows: Places
    inner: Places
    nest: Nest

    def at(self, group: Places, time: Int) -> Places:
        """Return the place in `rows` of the step that was open at each time, -1 where there is none or the time is MISSING."""
        found = np.empty(len(time), dtype=np.int32)
        for some in row_chunks(len(time)):
            known = time[some] != MISSING
            begin = np.where(known, time[some], 0)
            found[some] = at(self.nest.rows, self.nest.innermost(np.where(known, group[some], -1), begin, begin + 1))
        return found


@dataclass(frozen=True, slots=True)
class Nested:
    """Ranges in their nest: per place the template, the group, whether it is a step, the place of the innermost operator; per row
    parent, depth (-1: on no thread) and enclosing operator."""

    nest: Nest
    template: Places
    group: Places
    is_step: Mask
    operator: Places
    steps: StepRanges
    parent: Places
    depth: Places
    operator_parent: Places


@dataclass(frozen=True, slots=True)
class RangeIndex:
    """What it takes to find the ranges around calls and GPU work, on top of the tree. phase, collective, module: per place;
    so is frame, the Python frame around each range (-1: none); None in a profile without stacks."""

    tree: RangeTree
    nested: Nested
    phase: npt.NDArray[np.int8]
    collective: npt.NDArray[np.int8]
    module: Places
    frame: Places | None = None


def nested(ranges: RangeRows, start: Int, duration: Int, *, unclosed: bool) -> Nested:
    """Return the ranges in their nest. Unknown times are MISSING.

    unclosed: a range without a duration was open to the end (nsys); else it is not known when it ended (Kineto).
    """
    known = (ranges.track >= 0) & (start != MISSING)
    closed = duration != MISSING
    spans = known & ~ranges.traits.moment[ranges.template] & (closed | unclosed)
    end = np.where(closed, start + np.where(closed, duration, 0), _OPEN)
    found = nest(np.where(spans, ranges.track, -1), start, end)
    template = ranges.template[found.rows]
    operator = found.nearest(ranges.traits.operator[template])
    around = _around(ranges, found, start, np.flatnonzero(known & ~spans))
    depth = np.where(around >= 0, found.depth()[around] + 1, 0) if len(found.rows) else np.zeros_like(around)
    depth[(ranges.track < 0) | (start == MISSING)] = -1
    is_step, group = ranges.traits.step[template], ranges.group[found.rows]
    return Nested(found, template, group, is_step, operator, _steps(found, is_step, ranges.group), at(found.rows, around),
                  depth.astype(np.int32), at(found.rows, at(operator, around)))


def _around(ranges: RangeRows, found: Nest, start: Int, unplaced: Int) -> Places:
    """Return for each row the place of the innermost range around it; unplaced: the rows that have no place in the nest."""
    around = np.full(len(ranges.template), -1, dtype=np.int32)
    around[found.rows] = found.above
    begin = start[unplaced]
    around[unplaced] = found.innermost(ranges.track[unplaced], begin, begin)
    return around


def _steps(found: Nest, is_step: Mask, group: Places) -> StepRanges:
    """Return the steps among the ranges in the nest. group: per row."""
    places = np.flatnonzero(is_step)
    rows, start, end = found.rows[places], found.start[places], found.end[places]
    every = nest(group[rows], start, end)
    outermost = every.rows[every.above < 0]
    outer = rows[outermost]
    return StepRanges(outer, rows[every.rows[every.above >= 0]], nest(group[outer], start[outermost], end[outermost]))


def index(ranges: RangeRows, placed: Nested, stacks: Stacks | None = None) -> RangeIndex:
    """Return the index of ranges: their tree, and phase, module and frame at each place."""
    forward = _forward(ranges, placed)
    by_row = np.full(len(ranges.template), -1, dtype=np.int32)
    by_row[placed.nest.rows] = at(placed.nest.rows, forward)
    tree = RangeTree(placed.parent, placed.depth, placed.operator_parent, by_row, placed.nest.rows, placed.operator,
                     placed.steps.rows)
    module = placed.nest.nearest(ranges.traits.module[placed.template])
    linked = at(forward, placed.nest.nearest(forward >= 0))
    collective = _collective(ranges, placed)
    around = np.where(module >= 0, module, at(module, linked))
    frame = None
    if stacks:
        frame = stacks.at(ranges.track[placed.nest.rows], placed.nest.start)
        frame = np.where(frame >= 0, frame, at(frame, linked))
    return RangeIndex(tree, placed, _phase(ranges, placed, forward), collective, around, frame)


def _collective(ranges: RangeRows, placed: Nested) -> npt.NDArray[np.int8]:
    """Return the collective at each place: that of the innermost range that names one, else whether one communicates."""
    names = ranges.traits.collective[placed.template]
    is_unnamed = names == _UNNAMED
    found = at(names, placed.nest.nearest((names > 0) & ~is_unnamed), missing=0)
    return np.where(found > 0, found, at(names, placed.nest.nearest(is_unnamed), missing=0)) if is_unnamed.any() else found


def _phase(ranges: RangeRows, placed: Nested, forward: Places) -> npt.NDArray[np.int8]:
    """Return the phase at each place. forward: the place of the forward operator of each backward one."""
    says = ranges.traits.phase[placed.template]
    says[_linked_ranges(ranges, placed, forward)] = FORWARD
    phase = at(says, placed.nest.nearest(says > 0), missing=0)
    phase[(phase == FORWARD) & (placed.nest.nearest(says == BACKWARD) >= 0)] = BACKWARD
    return phase


def _forward(ranges: RangeRows, placed: Nested) -> Places:
    """Return the place of the forward operator of each backward operator, -1 at other places."""
    found_nest, traits_ = placed.nest, ranges.traits
    sequenced = np.flatnonzero((ranges.sequence >= 0)[found_nest.rows] & traits_.operator[placed.template]).astype(np.int32)
    found = np.full(len(found_nest.rows), -1, dtype=np.int32)
    is_backward = traits_.backward[placed.template[sequenced]]
    if not is_backward.any():
        return found
    within, part = _recomputed_in(ranges, placed, sequenced)
    is_told = is_backward & (traits_.forward_thread[placed.template[sequenced]] >= 0)
    is_forward = ~is_backward & ~part
    group = placed.group[sequenced]

    def operators(which: Mask) -> Operators:
        places = sequenced[which]
        thread = ranges.track[found_nest.rows[places]] if which is is_forward else traits_.forward_thread[placed.template[places]]
        return Operators(places, group[which], thread, _sequence(ranges, placed, places), found_nest.start[places])

    if is_told.any():
        found[sequenced[is_told]] = forward_of(operators(is_told), operators(is_forward))
    untold = is_backward & ~is_told
    if untold.any():
        # Without a thread, what is recomputed within a backward operator and what is not are distinguished by that operator.
        group = numbered(group, within)
        found[sequenced[untold]] = forward_of(operators(untold), operators(is_forward))
    return found


def _sequence(ranges: RangeRows, placed: Nested, places: Places) -> Int:
    """Return the sequence number at each place (those of all places would be large)."""
    return at(ranges.sequence, at(placed.nest.rows, places), missing=MISSING)


def _recomputed_in(ranges: RangeRows, placed: Nested, sequenced: Places) -> tuple[Places, Mask]:
    """Return for each of these operators the innermost backward operator around it that has another number, and whether it
    runs, without being one itself, within one of its own number: it is then a part of that."""
    is_backward = ranges.traits.backward[placed.template]
    outer = at(placed.nest.nearest(is_backward), placed.nest.above)
    within, sequence = outer[sequenced], _sequence(ranges, placed, sequenced)
    own = (within >= 0) & (_sequence(ranges, placed, within) == sequence)
    part, todo = own & ~is_backward[sequenced], np.flatnonzero(own)
    while len(todo):
        within[todo] = outer[within[todo]]
        todo = todo[(within[todo] >= 0) & (_sequence(ranges, placed, within[todo]) == sequence[todo])]
    return within, part


def _linked_ranges(ranges: RangeRows, placed: Nested, forward: Places) -> Places:
    """Return the places of the forward operators that are linked, and of those around them with their number."""
    found = [each_once(forward)]
    while len(found[-1]):
        places = found[-1]
        above = placed.nest.above[places]
        same = (above >= 0) & (_sequence(ranges, placed, above) == _sequence(ranges, placed, places))
        found.append(each_once(above[same]))
    return each_once(np.concatenate(found))
