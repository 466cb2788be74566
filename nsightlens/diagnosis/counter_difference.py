"""Two runs that only ncu measured: each kernel and launch configuration of one beside that of the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nsightlens.diagnosis.difference import Property, in_common, property_of
from nsightlens.diagnosis.profile_arrays import Ask
from nsightlens.names.kernel_names import family, labels
from nsightlens.views.figures import duration, figure_and_unit, share

_CONFIGURATIONS = """
SELECT c.kernel_key, c.name, concat(c.grid_x, 'x', c.grid_y, 'x', c.grid_z, ' of ', c.block_x, 'x', c.block_y, 'x', c.block_z) AS
    configuration, c.launches, c.total_ns AS ns, c.gpu, c.clock_control, s.limited_by, s.unit, s.unit_pct
FROM _ncu_by_config AS c LEFT JOIN speed_of_light AS s ON s.configuration_id = c.configuration_id
WHERE c.run = $1 ORDER BY ns DESC NULLS LAST, c.kernel_key, configuration, c.configuration_id
"""
_MOST, _NAME, _OF_LARGEST_PCT = 2, 40, 15


@dataclass(frozen=True, slots=True)
class Counted:
    """A kernel in one launch configuration, as ncu measured it. ns: of a mean launch, None unknown; limit: what limits it, with a
    figure; '' unknown."""

    key: str
    name: str
    configuration: str
    launches: int
    ns: float | None
    limited_by: str
    limit: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A kernel and configuration in both runs; None where a run has none."""

    base: Counted | None
    other: Counted | None

    @property
    def kernel(self) -> Counted:
        """Return it as the other run has it, else as base has it."""
        known = self.other or self.base
        assert known
        return known

    @property
    def difference(self) -> float | None:
        """Return the ns of a launch in the other run minus those in base; None where one is not known."""
        before, after = (0.0 if side is None else side.ns for side in (self.base, self.other))
        return None if before is None or after is None else after - before


def counted(ask: Ask, run: str) -> list[Counted]:
    """Return the kernels and configurations of a run that ncu measured, the most time first."""
    rows = ask(_CONFIGURATIONS, [run]).to_pylist()
    return [Counted(row["kernel_key"], row["name"], row["configuration"], row["launches"],
                    None if row["ns"] is None else row["ns"] / row["launches"],
                    row["limited_by"] or "", _limit(row["limited_by"], row["unit"], row["unit_pct"]))
            for row in rows]


def _limit(limited_by: str | None, unit: str | None, pct: float | None) -> str:
    figure = f"{unit} {share(pct)}" if unit and pct is not None else ""
    return f"{limited_by} ({figure})" if limited_by and figure else limited_by or ""


def pairs(base: Sequence[Counted], other: Sequence[Counted]) -> list[Pair]:
    """Return the pairs, the largest change first: the same kernel and configuration; else of a kernel what is left of it, in the
    order of time; else the only kernel that is left of each, where family and configuration are the same."""
    unpaired, new, paired = list(base), list(other), []
    for needs_configuration in (True, False):
        for after in list(new):
            before = next((one for one in unpaired if one.key == after.key and (
                not needs_configuration or one.configuration == after.configuration)), None)
            if before:
                unpaired.remove(before)
                new.remove(after)
                paired.append(Pair(before, after))
    if len(unpaired) == len(new) == 1 and _are_alike(unpaired[0], new[0]):
        paired.append(Pair(unpaired.pop(), new.pop()))
    paired += [Pair(one, None) for one in unpaired] + [Pair(None, one) for one in new]
    return sorted(paired, key=lambda pair: (pair.difference is None, -abs(pair.difference or 0), pair.kernel.key))


def properties(base: Sequence[Counted], other: Sequence[Counted]) -> list[Property]:
    """Return what two runs should have in common, by the launches that ncu measured."""
    base_launches, other_launches = (f"{sum(kernel.launches for kernel in those):,}" for those in (base, other))
    return [in_common("kernels", {one.key for one in base}, {one.key for one in other}),
            in_common("launch configurations", {(one.key, one.configuration) for one in base},
                      {(one.key, one.configuration) for one in other}),
            property_of("launches", base_launches, other_launches)]


def _are_alike(base: Counted, other: Counted) -> bool:
    return base.configuration == other.configuration and family(base.name) == family(other.name)


def sentence(found: Sequence[Pair], runs: tuple[str, str]) -> list[str]:
    """Return what changed, in a sentence: the time of all kernels, then those that changed most, with what limits them."""
    both = [(pair.base, pair.other) for pair in found if pair.base and pair.other]
    apart = [] if any(base.key == other.key for base, other in both) else [f"No kernel of {runs[0]} is in {runs[1]}."]
    timed = [pair for pair in found if pair.difference is not None]
    if not timed:
        return [*apart, "ncu recorded no times in one of the two, so that only limits can be compared."]
    are_alike = len(both) == len(found) and all(base.launches == other.launches for base, other in both)
    sums = [_total([pair.base for pair in timed], are_alike), _total([pair.other for pair in timed], are_alike)]
    largest = abs(timed[0].difference or 0)
    worth = [pair for pair in timed[:_MOST] if pair.difference and 100 * abs(pair.difference) >= _OF_LARGEST_PCT * largest]
    names = labels({side.name for pair in worth for side in (pair.base, pair.other) if side}, _NAME)
    parts = "; ".join(_part(pair, names) for pair in worth)
    subject = "the kernels take" if are_alike else "one launch of each kernel takes"
    if not worth and sums[0] == sums[1]:
        return [*apart, f"Under ncu, {subject} {duration(sums[0])} in both; no kernel changed."]
    pct = _pct(*sums) if both else ""
    change = f"{after_before(sums[1], sums[0])} ({'+' if sums[1] > sums[0] else ''}{duration(sums[1] - sums[0])}{pct})"
    return [*apart, f"Under ncu, {subject} {change}{': ' if parts else ''}{parts}."]


def _total(kernels: Sequence[Counted | None], of_all_launches: bool) -> float:
    return sum((kernel.ns or 0) * (kernel.launches if of_all_launches else 1) for kernel in kernels if kernel)


def _pct(before: float, after: float) -> str:
    return f", {100 * (after - before) / before:+.1f} %" if before else ""


def after_before(after: float, before: float) -> str:
    """Return two times, the later one first: '0.600 instead of 113.7 ms'."""
    (figure, unit), (figure_before, unit_before) = (figure_and_unit(ns) if ns else ("none", "") for ns in (after, before))
    shown = figure if unit in ("", unit_before) else f"{figure} {unit}"
    return f"{shown} instead of {figure_before}{' ' if unit_before else ''}{unit_before}"


def _part(pair: Pair, names: Mapping[str, str]) -> str:
    is_renamed = pair.base and pair.other and pair.base.key != pair.other.key
    was = f" (was {names[pair.base.name]})" if pair.base and is_renamed else ""
    times = after_before(*(side.ns or 0 if side else 0 for side in (pair.other, pair.base)))
    return f"{names[pair.kernel.name]}{was} {times}{_limits(pair)}"


def _limits(pair: Pair) -> str:
    before, after = (side.limit if side else "" for side in (pair.base, pair.other))
    if not after or not before or (pair.base and pair.other and pair.base.limited_by == pair.other.limited_by):
        return f", limited by {after or before}" if after or before else ""
    return f", limited by {after} instead of {before}"
