"""The offset of each rank's clock from the lowest rank's, fitted from the ends of matched collectives. All ranks leave a
collective together, so the difference of their ends is the difference of their clocks, whenever they started. Offset and drift
are medians (Theil-Sen), so outliers do not matter. The uncertainty is two robust standard deviations of the ends around the
line; it does not shrink with more calls, since ranks may leave in a fixed order. For up to ten calls it covers the farthest
end (for three of them, three times that distance), and it is never below the resolution of the times (1 µs in older PyTorch
traces). Ranks that share no communicator with the lowest rank are linked to it through others, and the uncertainties add up. A
rank with fewer than three matched calls has no row.
@scope run
@topic ranks
@needs collectives, ranks
@requires _collective_kernels, _profile_executions, profiles
@assumes All ranks leave a collective together: a rank that always leaves later looks as if its clock were behind.
@assumes A clock is off by an offset and a steady drift (at most 200 ppm) over the capture.
@assumes Captures without an execution_id belong to one execution per run and tool, unless `recordings` shows several.
@first rank, offset_ns, uncertainty_ns, same_host
@column run               Run.
@column tool              nsys or kineto.
@column execution_id      Start of the job: from a sidecar, else which recording of the run; NULL where there is one.
@column rank              Rank.
@column reference_rank    The rank whose clock is the measure.
@column offset_ns         This rank's clock minus the reference clock, at at_ns.
@column drift_ppb         How much faster it runs, in parts per billion; 0 where not beyond four standard errors.
@column uncertainty_ns    How far offset_ns may be off; NULL for the reference, whose clock is the measure.
@column at_ns             Time of the reference clock that offset_ns holds for (epoch time, where the file has it).
@column collectives       Matched calls behind the fit (its last link).
@column method            How these calls were matched; reference for the reference itself.
@column same_host         Whether both ranks name one host; NULL where one names none.
@column shares_clock      Whether the ranks name no two hosts and the fit agrees with one clock: then no correction is made.
"""

from __future__ import annotations

import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses._executions import executions

_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("execution_id", pa.string()), ("rank", pa.int32()),
    ("reference_rank", pa.int32()), ("offset_ns", pa.int64()), ("drift_ppb", pa.int64()), ("uncertainty_ns", pa.int64()),
    ("at_ns", pa.int64()), ("collectives", pa.int64()), ("method", pa.string()), ("same_host", pa.bool_()),
    ("shares_clock", pa.bool_()),
])


def analyse(ask: Ask) -> pa.Table:
    """Return a row per rank with a clock."""
    rows = []
    for execution in executions(ask):
        for rank, clock in sorted(execution.clocks.items()):
            hosts = execution.hosts[rank], execution.hosts[clock.reference]
            rows.append({
                "run": execution.run, "tool": execution.tool, "execution_id": execution.execution_id, "rank": rank,
                "reference_rank": clock.reference, "offset_ns": round(clock.offset), "drift_ppb": round(clock.drift * 1e9),
                "uncertainty_ns": None if rank == clock.reference else round(clock.uncertainty),
                "at_ns": clock.at, "collectives": clock.calls,
                "method": clock.method, "same_host": None if None in hosts else hosts[0] == hosts[1],
                "shares_clock": execution.shares_clock(rank),
            })
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
