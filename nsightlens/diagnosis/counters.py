"""What ncu says of a run that only it measured: kernels by time, each with what limits it, and the first of ncu's own rules."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nsightlens.diagnosis.busy_time import as_number, has_tensor_cores
from nsightlens.diagnosis.profile_arrays import Ask, Row
from nsightlens.names.kernel_names import labels

SM = "SM"
"""The unit of a kernel of whose SMs only the whole is known: the busiest of its pipes, whichever that is."""
_NAME = 400
"""Characters of a kernel's label: sentences show fewer."""
_PRODUCTS = ("gemm", "convolution", "attention")
_NO_PRODUCT = re.compile(r"gemv|gemmk1|dot_kernel|reduce|dgemm|double|f64", re.I)
"""Names of such families that multiply no matrices, or numbers that few tensor cores take."""
_FIGURES = ("unit_pct", "memory_pct", "dram_pct", "dram_bytes_per_s", "occupancy_pct", "max_occupancy_pct", "stall_pct", "waves")
_KERNELS = f"""
SELECT c.run, c.configuration_id, c.kernel_key, c.name, c.family, c.gpu, c.compute_capability, c.sm_count, c.launches,
    c.total_ns AS ns, c.grid_x::BIGINT * c.grid_y * c.grid_z AS blocks,
    c.block_x::BIGINT * c.block_y * c.block_z AS threads, t.tensor_cores, limited_by, unit, occupancy_limit, stall,
    {', '.join(_FIGURES)}
FROM _ncu_by_config AS c LEFT JOIN speed_of_light AS s ON s.configuration_id = c.configuration_id
LEFT JOIN _tensor_core_counters AS t ON t.run = c.run AND t.kernel_key = c.kernel_key
ORDER BY ns DESC NULLS LAST, launches DESC, c.kernel_key, c.configuration_id
"""
# What a rule estimates to win of a kernel: of each launch its largest estimate for the whole launch, weighed by time.
_RULES = """
WITH own AS (
    SELECT kernel_id, profile_id, duration_ns FROM kernels WHERE run = $1 AND tool = 'ncu' AND kernel_key = $2
), estimated AS (
    SELECT a.rule, o.kernel_id, any_value(o.duration_ns) AS ns, max(a.estimated_speedup_pct) AS pct,
        arg_max(a.message, a.estimated_speedup_pct) AS message
    FROM advice AS a JOIN own AS o ON a.kernel_id = o.kernel_id AND a.profile_id = o.profile_id
    WHERE a.speedup_type = 'global' AND a.message IS NOT NULL GROUP BY a.rule, o.profile_id, o.kernel_id
)
SELECT rule, arg_max(message, pct) AS message,
    coalesce(sum(pct * ns) / (SELECT nullif(sum(duration_ns), 0) FROM own), sum(pct) / (SELECT count(*) FROM own)) AS pct
FROM estimated GROUP BY rule HAVING pct >= $3 ORDER BY pct DESC, rule LIMIT 1
"""
_WORTH_PCT = 5
"""Share of the kernel's time from which on an estimate is worth a sentence."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What ncu itself advises. speedup_pct: the share of the kernel's time that it estimates to win."""

    name: str
    message: str
    speedup_pct: float


@dataclass(frozen=True, slots=True)
class Measured:
    """A kernel that ncu measured. ns: None where no time was recorded.

    limit: as `limited_by` of speed_of_light, '' unknown: that of most of its time; the figures are means over that time.
    blocks: of its largest grid; threads: of its smallest block; is_plain: a product whose tensor pipes are idle on a GPU that
    has some.
    """

    name: str
    ns: int | None
    launches: int
    limit: str
    unit: str
    figures: dict[str, float]
    blocks: int | None
    threads: int | None
    sms: int | None
    occupancy_limit: str
    stall: str
    is_plain: bool
    capability: float | None


@dataclass(frozen=True, slots=True)
class Counters:
    """What ncu measured of a run. kernels: the most time first, then the most launches; rule: on the first of them, if any."""

    kernels: tuple[Measured, ...]
    rule: Rule | None

    @property
    def name(self) -> str:
        """Return the kernel that takes most of the time."""
        return self.kernels[0].name

    @property
    def timed_ns(self) -> int | None:
        """Return the time of all kernels of which it is known; None where none is."""
        times = [kernel.ns for kernel in self.kernels if kernel.ns is not None]
        return sum(times) if times else None


def counters(ask: Ask) -> dict[str, Counters]:
    """Return what ncu measured of each run of which it measured a kernel."""
    by_run: dict[str, list[Row]] = defaultdict(list)
    for row in ask(_KERNELS, []).to_pylist():
        by_run[row["run"]].append(row)
    return {run: _counters(ask, run, rows) for run, rows in by_run.items()}


def _counters(ask: Ask, run: str, rows: Sequence[Row]) -> Counters:
    by_key: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_key[row["kernel_key"]].append(row)
    named = labels({those[0]["name"] for those in by_key.values()}, _NAME)
    measured = sorted(((_measured(named[those[0]["name"]], those), key) for key, those in by_key.items()),
                      key=lambda pair: (pair[0].ns is None, -(pair[0].ns or 0), -pair[0].launches, pair[1]))
    rules = ask(_RULES, [run, measured[0][1], _WORTH_PCT]).to_pylist()
    rule = Rule(rules[0]["rule"] or "", rules[0]["message"], rules[0]["pct"]) if rules else None
    return Counters(tuple(kernel for kernel, _ in measured), rule)


def _measured(name: str, rows: Sequence[Row]) -> Measured:
    """Return a kernel from its launch configurations."""
    by_limit: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_limit[row["limited_by"] or ""].append(row)
    limit, limited = max(by_limit.items(), key=lambda item: (_weight(item[1]), item[0]))
    largest = max(limited, key=lambda row: _weight([row]))
    timed = [row["ns"] for row in rows if row["ns"] is not None]
    return Measured(
        name, sum(timed) if timed else None, sum(row["launches"] for row in rows), limit, largest["unit"] or "",
        {figure: mean for figure in _FIGURES if (mean := _mean(figure, limited)) is not None},
        max((row["blocks"] for row in limited if row["blocks"]), default=None),
        min((row["threads"] for row in limited if row["threads"]), default=None), largest["sm_count"],
        largest["occupancy_limit"] or "", largest["stall"] or "", _is_plain(largest), as_number(rows[0]["compute_capability"]))


def _weight(rows: Sequence[Row]) -> tuple[int, int]:
    return sum(row["ns"] or 0 for row in rows), sum(row["launches"] for row in rows)


def _mean(figure: str, rows: Iterable[Row]) -> float | None:
    """Return the mean of a figure over the time of the rows that have it; over their launches where no time is known."""
    weighted = [(row[figure], row["ns"] or 0, row["launches"]) for row in rows if row[figure] is not None]
    place = 1 if any(ns for _, ns, _ in weighted) else 2
    weight = sum(each[place] for each in weighted)
    return sum(each[0] * each[place] for each in weighted) / weight if weight else None


def _is_plain(row: Row) -> bool:
    """Return whether a product of matrices left the tensor pipes idle, by the counters, on a GPU that has tensor cores."""
    return (row["tensor_cores"] is False and row["family"] in _PRODUCTS and row["unit"] != "FP64"
            and not _NO_PRODUCT.search(row["kernel_key"]) and has_tensor_cores("cuda", row["gpu"], row["compute_capability"]))
