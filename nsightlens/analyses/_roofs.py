"""How long each launch would take at its roof: from ncu's counters where they are known, else from the shapes of its operator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from nsightlens import op_cost
from nsightlens.analyses import Ask, shape_work
from nsightlens.analyses._peaks import Peak, peaks
from nsightlens.analyses.run_difference import ITEMS
from nsightlens.columns.arrays import Int, numbered

Fact = TypeVar("Fact", bound=Hashable)
_WITH_COUNTERS = """
SELECT k.kernel_id, coalesce(n.configuration_id, c.configuration_id) AS configuration_id, n.grade
FROM _ncu_known AS n
JOIN timeline_kernels AS k ON n.kernel_id = k.kernel_id
LEFT JOIN kernels AS m ON n.ncu_kernel_id = m.kernel_id AND m.tool = 'ncu'
LEFT JOIN _ncu_by_config AS c ON m.run = c.run AND m.rank IS NOT DISTINCT FROM c.rank AND m.kernel_key = c.kernel_key
    AND m.grid_x = c.grid_x AND m.grid_y = c.grid_y AND m.grid_z = c.grid_z
    AND m.block_x = c.block_x AND m.block_y = c.block_y AND m.block_z = c.block_z
    AND m.clock_control IS NOT DISTINCT FROM c.clock_control AND m.cache_control IS NOT DISTINCT FROM c.cache_control
    AND NOT c.summarised
WHERE n.grade IS NOT NULL"""
_COUNTED = """
SELECT configuration_id, precision, peak_key, CAST(work_flop AS DOUBLE) AS work_flop,
    CAST(traffic_bytes AS DOUBLE) AS traffic_bytes
FROM _roofline_point WHERE level = 'dram'"""
_UNEVEN = f"""
SELECT run, process_id, {ITEMS['kernel']} AS configuration
FROM timeline_kernels WHERE duration_ns >= 0 AND coalesce(overrun_ns, 0) = 0 GROUP BY ALL
HAVING quantile_cont(duration_ns, 0.95) > 1.5 * quantile_cont(duration_ns, 0.05)"""
_KINETO = f"SELECT kernel_id, run, {ITEMS['kernel']} AS configuration FROM kernels WHERE tool = 'kineto'"


class LaunchWork(NamedTuple):
    """What a launch does: (peak key, operations) of each unit that works at once, bytes of DRAM, and where that is from."""

    flop: tuple[tuple[str | None, float | None], ...]
    bytes: float | None
    source: str


class RoofTime(NamedTuple):
    """Time of a launch at its roof (ns; None: unknown, for the reason given), and which roof is the lower: memory or compute."""

    ns: int | None
    bound: str | None = None
    source: str | None = None
    reason: str | None = None


class Roofs:
    """The roof of each launch of the timeline."""

    def __init__(self, ask: Ask, assume_gpu: str | None, force_gpu: bool) -> None:
        self._peaks, self._why = peaks(ask, assume_gpu, force_gpu)
        known = ask(_WITH_COUNTERS, [])
        self._counters = ById(known["kernel_id"].to_numpy(), list(zip(
            known["configuration_id"].to_pylist(), (grade == "launch" for grade in known["grade"].to_pylist()), strict=True)))
        self._counted = _counted(ask(_COUNTED, [])) if known.num_rows else {}
        uneven = ask(_UNEVEN, []).to_pylist() if known.num_rows else []
        self._uneven = {(row["run"], row["process_id"], row["configuration"]) for row in uneven}
        works = shape_work.analyse(ask)
        self._shapes = _by_launch(works)
        self._calls, self._call_of = _by_call(works)
        self._alike = _by_configuration(ask(_KINETO, []), self._shapes) if works.num_rows else {}
        self._roofs: dict[tuple[LaunchWork, str | None, bool], RoofTime] = {}

    def of(
        self, kernel_ids: Int, kineto_ids: Int, kind: Int, kinds: Sequence[Mapping[str, Any]],
    ) -> tuple[Int, list[tuple[int, RoofTime | None]]]:
        """Return for each launch its place in the list that follows: different pairs of a kind and a roof, None of collectives.

        kineto_ids: the same launches in Kineto, where one is certain. kind: what each launch is, a place in `kinds`: its run,
        process_id, device_id, family and configuration.
        """
        facts = (kind, self._counters.of(kernel_ids), self._shapes.of(kernel_ids), self._shapes.of(kineto_ids))
        first, alike = _alike(facts)
        found = [(place, None if kinds[place]["family"] == "collective" else self._of(kinds[place], *told))
                 for place, *told in zip(*(fact[first].tolist() for fact in facts), strict=True)]
        return alike, found

    def _of(self, kind: Mapping[str, Any], counters: int, own: int, kineto: int) -> RoofTime:
        """Return the roof of launches of a kind, of which these facts are known."""
        place, is_same_launch = (None, False) if counters < 0 else self._counters.facts[counters]
        # Launches of very different times may differ in work: there the counters count only for the launches they are of.
        key = kind["run"], kind["process_id"], kind["configuration"]
        is_doubtful = place is not None and not is_same_launch and key in self._uneven
        counted = None if is_doubtful else self._counted.get(place)
        shapes = [self._shapes.facts[fact] for fact in (own, kineto) if fact >= 0]
        shaped = next((work for work, _ in shapes if work is not None), None) or self._alike.get((key[0], key[2]))
        reason = next((reason for _, reason in shapes if reason), "neither counters nor shapes")
        if is_doubtful:
            reason = "its launches take different times, and it is unknown which of them ncu measured"
        found = RoofTime(None, reason=reason)
        device_id, is_contraction = kind["device_id"], kind["family"] in shape_work.FAMILIES
        for work in (counted, shaped):
            if work is None:
                continue
            asked = (work, device_id, is_contraction)
            if asked not in self._roofs:
                self._roofs[asked] = roof(work, self._peaks.get(device_id), is_contraction, self._why[device_id])
            found = self._roofs[asked]
            if found.ns is not None:
                break
        return found

    def calls_of(self, kernel_ids: Int, kineto_ids: Int) -> Iterator[tuple[int, tuple[int, int]]]:
        """Yield the place of each launch whose operator's call is known to have several, with the call and their number."""
        own, kineto = self._call_of.of(kernel_ids), self._call_of.of(kineto_ids)
        found = np.where(own >= 0, own, kineto)
        for place in np.flatnonzero(found >= 0).tolist():
            yield place, self._call_of.facts[found[place]]

    def call_roof(self, call: int, device_id: str | None) -> RoofTime:
        """Return the roof of a whole call of an operator, by its shapes."""
        work, is_contraction = self._calls[call]
        return roof(work, self._peaks.get(device_id), is_contraction, self._why[device_id])


def roof(work: LaunchWork, peak: Peak | None, is_contraction: bool, why: str = "its peaks are unknown") -> RoofTime:
    """Return the roof of some work on a device: the longest of its units' times at their peaks and of its bytes' time.

    why: the reason where there are no peaks.
    """
    if peak is None:
        return RoofTime(None, reason=why)
    if work.bytes is None:
        return RoofTime(None, reason="bytes are unknown")
    if peak.bytes is None:
        return RoofTime(None, reason="a slice of a GPU: its bandwidth is unknown")
    times = [1e9 * flop / (peak.flop.get(key or "") or 0) if peak.flop.get(key or "") else None if flop else 0.0
             for key, flop in work.flop if flop is not None]
    if is_contraction and (not times or None in times or None in (flop for _, flop in work.flop)):
        return RoofTime(None, reason="operations, or the peak for their precision, are unknown")
    compute, memory = max((time for time in times if time is not None), default=0.0), 1e9 * work.bytes / peak.bytes
    return RoofTime(round(max(compute, memory)), "compute" if compute > memory else "memory", work.source)


def _counted(table: pa.Table) -> dict[str | None, LaunchWork]:
    """Return per configuration of ncu what it counted."""
    rows: dict[str, list[dict[str, object]]] = defaultdict(list)
    for row in table.to_pylist():
        rows[row["configuration_id"]].append(row)
    return {place: LaunchWork(_units(many), _number(many[0]["traffic_bytes"]), "counters") for place, many in rows.items()}


def _units(rows: Sequence[dict[str, object]]) -> tuple[tuple[str | None, float | None], ...]:
    """Return the operations of each precision; those that were not counted stay unknown only where they are the main ones."""
    counted = [(row["peak_key"], row["work_flop"]) for row in rows if row["work_flop"] is not None]
    if any(row["precision"] == "tensor" for row in rows) or not counted:
        return ((None, None),)
    return tuple((None if key is None else str(key), _number(flop)) for key, flop in counted)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _by_launch(table: pa.Table) -> ById[tuple[LaunchWork | None, str | None]]:
    """Return the work of each launch by its shapes, or the reason why it is unknown."""
    columns = (table[name].to_pylist() for name in ("work_flop", "minimal_bytes", "peak_key", "reason"))
    return ById(table["kernel_id"].to_numpy(), [
        (None, reason) if size is None else (LaunchWork(((key, flop),), size, "shapes"), None)
        for flop, size, key, reason in zip(*columns, strict=True)])


def _by_call(table: pa.Table) -> tuple[dict[int, tuple[LaunchWork, bool]], ById[tuple[int, int]]]:
    """Return the work of calls with several launches by their shapes, whether they are products, and the call of each launch."""
    calls: dict[int, tuple[LaunchWork, bool]] = {}
    kernel_ids: list[int] = []
    call_of: list[tuple[int, int]] = []
    keys: dict[int, set[str]] = defaultdict(set)
    names = ("kernel_id", "op_range_id", "op", "call_flop", "call_bytes", "call_launches", "peak_key")
    for kernel_id, call, op, flop, size, launches, key in zip(*(table[name].to_pylist() for name in names), strict=True):
        if launches is None or launches == 1 or size is None:
            continue
        keys[call] |= {key} - {None}
        peak_key = next(iter(keys[call])) if len(keys[call]) == 1 else None
        calls[call] = LaunchWork(((peak_key, flop),), size, "shapes"), op in op_cost.CONTRACTIONS
        kernel_ids.append(kernel_id)
        call_of.append((call, launches))
    return calls, ById(np.array(kernel_ids, np.int64), call_of)


def _by_configuration(launches: pa.Table, works: ById[tuple[LaunchWork | None, str | None]]) -> dict[tuple[str, str], LaunchWork]:
    """Return the work of kernels and configurations by their shapes, where all Kineto launches of one agree."""
    found: dict[tuple[str, str], LaunchWork | None] = {}
    facts = works.of(launches["kernel_id"].to_numpy()).tolist()
    for fact, run, configuration in zip(facts, launches["run"].to_pylist(), launches["configuration"].to_pylist(), strict=True):
        work = works.facts[fact][0] if fact >= 0 else None
        if found.setdefault((run, configuration), work) != work:
            found[run, configuration] = None
    return {key: work for key, work in found.items() if work is not None}


class ById(Generic[Fact]):
    """What is known of launches, by their ids. facts: the different ones; the later of two of one launch counts."""

    def __init__(self, ids: Int, facts: Sequence[Fact]) -> None:
        numbers: dict[Fact, int] = {}
        code = np.array([numbers.setdefault(fact, len(numbers)) for fact in facts], np.int64)
        order = np.argsort(ids, kind="stable")
        self._ids, self._code, self.facts = ids[order], code[order], list(numbers)

    def of(self, ids: Int) -> Int:
        """Return for each launch the place of its fact; -1 where nothing is known."""
        if not len(self._ids):
            return np.full(len(ids), -1)
        place = np.maximum(np.searchsorted(self._ids, ids, "right") - 1, 0)
        return np.where(self._ids[place] == ids, self._code[place], -1)


def _alike(columns: Sequence[Int]) -> tuple[Int, Int]:
    """Return the places of the first rows that differ from each other, and for each row which of them it equals."""
    code = numbered(*columns).astype(np.int64)
    first = np.zeros(int(code.max(initial=-1)) + 1, np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]  # the last assignment stays
    return first, code
