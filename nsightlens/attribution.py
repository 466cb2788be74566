"""GPU work -> its launching call -> the ranges around that call: operator, module, phase, step.

A range lies around whatever began on its thread while it was open. The rules, over all that lies around the launching call:

| column | is |
|---|---|
| range_id | the innermost range; those that the tool drew on a GPU's track take no part |
| op | the innermost range of kind operator |
| step | the range of kind step that was open in the process, on any thread, when the call began |
| module | the innermost range of kind module, else that around the forward operator of the innermost backward operator |
| phase | what the innermost range says that says something: |
| . optimizer | `Optimizer.step#...`, `Optimizer.zero_grad#...`, and names with the word optimizer |
| . backward | ranges of the autograd engine, backward operators, and names with the word backward |
| . forward | modules, operators that a backward operator belongs to, and names with the word forward |
| range_path | the names from the outermost to the innermost range, steps left out |

Words count in annotations and NVTX ranges, never in operators; a name with two of them says nothing. What says forward inside
of what says backward is backward: a recomputation. GPU work with no
operator around its call, or whose call was not recorded, takes the operator with its External id (where that is a link) and
what lies around that. A step inside another step of its process is an annotation. What is not known is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.kinds import KIND, Kinds, expand
from nsightlens.linking import Launched, used_by_several
from nsightlens.nesting import Int, Places, at, codes, each_once, stretches
from nsightlens.normalise import MISSING, Narrow, nullable
from nsightlens.origins import Origins
from nsightlens.shelf import Gathered as Column
from nsightlens.shelf import Shelf, Stretches, values_at, whole
from nsightlens.surroundings import Around, Gathered, traits

TABLES = ("kernels", "memory_ops")
INNER_STEP = "annotation"


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The distinct (kind, number) of a table's rows as kind << 32 | number, ascending, and which of them each row has."""

    pairs: Int
    code: Places

    def numbers(self, code: Places | slice) -> Places:
        """Return the number of each pair."""
        return (self.pairs[code] & 0xFFFFFFFF).astype(np.int32)


@dataclass(frozen=True, slots=True)
class _Work:
    """GPU work of one table, per row: its kind, the place it was launched from and the number of its step (-1: none)."""

    kind: Stretches
    place: Places
    step: Stretches


class Attribution:
    """The columns of stage `attribution` of a profile that has ranges. First `add_calls`, then `add_work`, then `finish`."""

    def __init__(
        self, narrow: Narrow, kinds: dict[str, Kinds], processes: dict[str, Int], windows: Sequence[tuple[Int, int]], base: int,
        shelf: Shelf,
    ) -> None:
        """processes: the number of the process of each kind, by table. windows: of each, the numbers of its processes and what to
        add to its starts. base: the first id of the profile's rows. shelf: for what is needed again when the rows are written."""
        self._base = base
        self._shelf = shelf
        self._kept: dict[str, tuple[Stretches, ...]] = {}
        self._narrow = narrow
        self._kinds = kinds
        self._work: dict[str, _Work] = {}
        self._pairs: dict[str, _Pairs] = {}
        every = 1 + max(int(numbers.max(initial=0)) for numbers, _ in windows)
        self._groups = {name: _windows(kinds[name]) * every + processes[name] for name in ("ranges", "api_calls", *TABLES)}
        groups = [self._groups["ranges"], self._groups["api_calls"], _groups_of_allocations(narrow, windows, every)]
        tracks = _tracks(groups, [narrow.take(name, "thread") for name in ("ranges", "api_calls", "allocations")])
        shifts = [shift for _, shift in windows]
        self.around = self._surround(tracks[0], shifts)
        self._call_track = tracks[1]
        self._call: Stretches = np.zeros(0, dtype=np.int32)
        at = _shifted(narrow, "allocations", narrow.take("allocations", "at_ns"), shifts)
        self._allocation = self.around.operator_at(self.around.nest.innermost(tracks[2], at, at + 1))
        self._step_number = narrow.take("ranges", "step")[self.around.steps.rows]
        self._external = narrow.take("ranges", "external_id")[self.around.nest.rows]
        if narrow.tool == "kineto":
            self._forget_shared_ids(every)

    def _forget_shared_ids(self, every: int) -> None:
        """Forget the External ids that operators of several processes have: GPU work does not tell whose it is."""
        window, process = np.divmod(self.around.group, every)
        if len(process) and (process != process[0]).any():
            self._external[used_by_several(process, codes(window, self._external))] = MISSING

    def _surround(self, track: Places, shifts: Sequence[int]) -> Around:
        narrow, kinds = self._narrow, self._kinds["ranges"]
        kind = narrow.take("ranges", "kind")
        ranges = Gathered(kind, track[kind], self._groups["ranges"][kind].astype(np.int32),
                          _shifted(narrow, "ranges", narrow.take("ranges", "start_ns"), shifts),
                          narrow.take("ranges", "duration_ns"), narrow.take("ranges", "sequence"),
                          traits(batch for _, _, batch in kinds.read()))
        around = Around(ranges, unclosed=narrow.tool == "nsys")
        if len(around.steps.inner):
            is_inner = np.zeros(len(kind), dtype=np.int32)
            is_inner[around.steps.inner] = 1
            self._pairs["ranges"] = _paired(kind, is_inner)
        return around

    def add_calls(self, kind: Stretches, start: Stretches) -> None:
        """Take in the API calls: the kind and the start of each row."""
        places = Column(self._shelf, np.int32)
        for some in stretches(len(kind)):
            begin = start[some]
            known = begin != MISSING
            track = np.where(known, self._call_track[kind[some]], -1)
            places.add(self.around.nest.innermost(track, begin, np.where(known, begin + 1, begin)))
        self._call = places.column()
        self._kept["api_calls"] = (self._call,)

    def add_work(self, table: str, kind: Stretches, links: Launched) -> None:
        """Take in the GPU work of one table: the kind of each row, and its launching calls."""
        place = np.full(len(kind), -1, dtype=np.int32)
        for some in stretches(len(kind)):
            call = links.call[some]
            linked = np.flatnonzero(call >= 0)
            place[some][linked] = values_at(self._call, call[linked])
        place, time = self._by_external_id(table, kind, place, links.start)
        group, step = self._groups[table], Column(self._shelf, np.int32)
        for some in stretches(len(kind)):
            step.add(self.around.steps.at(group[kind[some]].astype(np.int32), time[some]))
        self._work[table] = _Work(kind, place, step.column())

    def _by_external_id(self, table: str, kind: Stretches, place: Places, launch: Stretches) -> tuple[Places, Stretches]:
        """Return place and launch time, with those of the operator with its External id for work that has no operator."""
        external = self._narrow.take(table, "external_id")
        named = np.flatnonzero((self._external != MISSING) & (self.around.operator == np.arange(len(self._external))))
        if not len(named):
            return place, launch
        open_ = np.flatnonzero((external != MISSING) & (self.around.operator_at(place) < 0))
        if not len(open_):
            return place, launch
        group = self._groups[table][whole(kind)].astype(np.int32)
        owner = self.around.group[named]
        code = codes(np.concatenate([owner, group[open_]]), np.concatenate([self._external[named], external[open_]]))
        operators, first = np.unique(code[: len(named)], return_index=True)
        found = np.minimum(np.searchsorted(operators, code[len(named) :]), len(operators) - 1)
        same = operators[found] == code[len(named) :]
        rows, places = open_[same], named[first[found[same]]]
        place, time = place.copy(), whole(launch).copy()
        place[rows] = places
        time[rows] = np.where(time[rows] == MISSING, self.around.nest.start[places], time[rows])
        return place, time

    def finish(self) -> None:
        """Number the origins of all work that was taken in; nothing can be added afterwards."""
        used = each_once(np.concatenate([work.place for work in self._work.values()]))
        self.origins = Origins(self.around, used, (batch for _, _, batch in self._kinds["ranges"].read()))
        for table, work in self._work.items():
            pairs = _paired(whole(work.kind), self.origins.of(work.place))
            self._kept[table] = self._shelf.keep(pairs.code), self._shelf.keep(work.place), work.step
            self._pairs[table] = replace(pairs, code=pairs.code[:0].copy())
        self._work.clear()
        self._external = self._external[:0].copy()
        self.around.forget()

    def splits(self, table: str) -> bool:
        """Say whether rows of one kind differ in what is attributed to them, so that `kinds` has the kinds to store."""
        return table in self._pairs

    def kinds(self, table: str, first: int, kinds: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the columns of the kinds to store in place of these, the first of which has the number `first`."""
        found = self._pairs[table]
        some = slice(*np.searchsorted(found.pairs >> 32, [first, first + kinds.num_rows]).tolist())
        columns = expand(kinds, (found.pairs[some] >> 32).astype(np.int32) - first)
        columns[KIND] = pa.array(np.arange(some.start, some.stop, dtype=np.int32))
        numbers = found.numbers(some)
        if table in TABLES:
            return columns | self.origins.columns(numbers)
        return columns | {"kind": _unless_inner(numbers, columns["kind"], INNER_STEP)}

    def add_columns(self, table: str, columns: dict[str, pa.Array], rows: slice) -> None:
        """Add to the columns of some rows of a table those of this stage; under KIND, the kinds that are stored."""
        if table in TABLES:
            columns |= self._work_columns(table, rows)
        elif table == "api_calls":
            columns |= self._ranges_at(self._kept["api_calls"][0][rows])
        elif table == "allocations":
            columns["op_range_id"] = self._ids(self.around.row(self._allocation[rows]))
        elif table == "ranges":
            columns |= self._range_columns(rows)
            if table in self._pairs:
                code = self._pairs[table].code[rows]
                inner = self._pairs[table].numbers(code)
                columns |= {KIND: pa.array(code), "kind": _unless_inner(inner, columns["kind"], INNER_STEP),
                            "step": _unless_inner(inner, columns["step"], None)}

    def _work_columns(self, table: str, rows: slice) -> dict[str, pa.Array]:
        code, place, step = (column[rows] for column in self._kept[table])
        return {
            KIND: pa.array(code),
            **self.origins.columns(self._pairs[table].numbers(code)),
            **self._ranges_at(place),
            "step": nullable(at(self._step_number, step, MISSING)),
            "step_id": self._ids(at(self.around.steps.rows, step)),
        }

    def _range_columns(self, rows: slice) -> dict[str, pa.Array]:
        around, depth = self.around, self.around.depth[rows]
        return {
            "parent_id": self._ids(around.parent[rows]),
            "depth": pa.array(depth, mask=depth < 0),
            "op_parent_id": self._ids(around.operator_parent[rows]),
            "forward_id": self._ids(around.forward[rows]),
        }

    def _ranges_at(self, places: Places) -> dict[str, pa.Array]:
        around = self.around
        return {"range_id": self._ids(around.row(places)), "op_range_id": self._ids(around.row(around.operator_at(places)))}

    def _ids(self, rows: Places) -> pa.Array:
        return pa.array(rows.astype(np.int64) + self._base, mask=rows < 0)


def _paired(kind: Places, number: Places) -> _Pairs:
    """Return the distinct pairs of kind and number, and which each row has."""
    numbers = int(number.max(initial=0)) + 1
    size = (int(kind.max(initial=-1)) + 1) * numbers
    if size <= 4 * len(kind):
        return _paired_by_table(kind, number, size, numbers)
    both = pa.array((kind.astype(np.int64) << 32) | number).dictionary_encode()
    pairs, place = np.unique(both.dictionary.to_numpy(), return_inverse=True)
    return _Pairs(pairs, place.reshape(-1).astype(np.int32)[both.indices.to_numpy()])


def _paired_by_table(kind: Places, number: Places, size: int, numbers: int) -> _Pairs:
    """Return the same by marking the pairs that occur in a table of all `size` possible ones; `numbers`: of one kind."""
    occurs = np.zeros(size, dtype=np.bool_)
    for some in stretches(len(kind)):
        occurs[kind[some].astype(np.int64) * numbers + number[some]] = True
    code_of = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    code = np.empty(len(kind), dtype=np.int32)
    for some in stretches(len(kind)):
        code[some] = code_of[kind[some].astype(np.int64) * numbers + number[some]]
    kinds, inner = np.divmod(np.flatnonzero(occurs), numbers)
    return _Pairs((kinds << 32) | inner, code)


def _unless_inner(inner: Places, column: pa.Array, instead: str | None) -> pa.Array:
    """Return the column, with another value where `inner` is 1."""
    plain = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
    return pc.if_else(pa.array(inner == 1), pa.scalar(instead, plain.type), plain).cast(column.type)


def _windows(kinds: Kinds) -> Int:
    """Return the window of each kind."""
    return np.concatenate([np.full(end - first, window) for window, first, end in kinds.stretches()])


def _groups_of_allocations(narrow: Narrow, windows: Sequence[tuple[Int, int]], every: int) -> Int:
    """Return the number of window and process of each allocation."""
    local = narrow.take("allocations", "process_index")
    ends = [narrow.first_row("allocations", window + 1) for window in range(len(windows))]
    pieces = np.split(local, ends[:-1])
    owners = zip(windows, pieces, strict=True)
    return np.concatenate([n * every + processes[piece] for n, ((processes, _), piece) in enumerate(owners)]).astype(np.int64)


def _tracks(groups: list[Int], threads: list[Int]) -> list[Places]:
    """Return a number per (group, thread), the same in all tables; -1 where the thread is not known."""
    group, thread = np.concatenate(groups), np.concatenate(threads)
    number = codes(group, thread).astype(np.int32)
    number[thread == MISSING] = -1
    return np.split(number, np.cumsum([len(one) for one in groups])[:-1])


def _shifted(narrow: Narrow, table: str, start: Int, shifts: Sequence[int]) -> Int:
    if not any(shifts):
        return start
    return np.where(start == MISSING, MISSING, start + narrow.per_window(table, shifts))
