"""Which rank the others wait for: per rank of an execution, in how many collectives, for how long, and a verdict.

The same figures as rank_skew, over the whole execution: each wait is charged once, to the rank that caused it, or to none. The
rank with the largest caused_delay_ns is a straggler, as is every other rank with at least twice its even share of all delay,
always beyond the uncertainty of the clocks. The row with rank NULL counts the collectives whose last rank is unknown, with the
uncertainty that hides it.
@scope run
@alias get_potential_stragglers
@topic ranks
@needs collectives, ranks
@requires _collective_kernels, _profile_executions, profiles
@assumes All ranks leave a collective together, and a kernel's start on the GPU is its rank's arrival.
@assumes A rank's delay is its lag behind the second last: two ranks that are late together hide each other.
@assumes Lateness shows in collectives only; twice the even share of the delay is a rule of thumb.
@param  clock             'fitted' or 'recorded': starts as the fitted clocks correct them, or as the files have them.
@param  lag_threshold_ns  Lag in ns above which the last rank is named; NULL: the uncertainty of the two clocks.
@first rank, verdict, caused_delay_ns, times_last, others_wait_ns, wait_ns
@column run                Run.
@column tool               nsys or kineto.
@column execution_id       Start of the job: from a sidecar, else which recording of the run; NULL where there is one.
@column rank               Rank; NULL: the collectives whose last rank is unknown.
@column collectives        Matched collectives that the rank took part in (rank NULL: those whose last rank is unknown).
@column times_last         Collectives in which all others waited for this rank.
@column caused_delay_ns    How much earlier these would have begun without it: its lags, less what was or may be inherited.
@column inherited_delay_ns Its lags because its previous collective released it later than the second last (see collective_match).
@column others_wait_ns     Waits of all others up to its start where it was last, less the share it inherited, and in later ones.
@column propagated_wait_ns What ranks waited in later collectives of any group because this one was late in these by itself.
@column wait_ns            How long this rank waited for others, over all its collectives.
@column median_arrival_ns  Median of its starts after the first rank's start.
@column max_arrival_ns     The largest of these.
@column undecided_delay_ns Its lags that may be inherited or not: it depends on who came second last (see collective_match).
@column lag_threshold_ns   Largest lag that would not have been enough to name a rank.
@column verdict            straggler; late (was last once); held up (mostly inherited it); late or held up; on time; cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses.collective_match import ComparedRanks, compared
from nsightlens.analyses.rank_skew import summed

_KEYS = ("run", "tool", "execution_id")
_FEW_NS = 100
"""Below this a tenth of a microsecond says nothing."""
_SHARE = 2
"""A straggler has this many times its even share of all delay, if it has not the most."""


def analyse(ask: Ask, *, clock: str = "fitted", lag_threshold_ns: int | None = None) -> pa.Table:
    """Return a row per rank."""
    return judged(compared(ask, clock, lag_threshold_ns))


def judged(executions: Sequence[ComparedRanks]) -> pa.Table:
    """Return the same of executions whose ranks are compared."""
    table = summed(executions, by_step=False)
    rows = table.to_pylist()
    delays: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        if row["caused_delay_ns"] is not None:
            delays.setdefault(tuple(row[key] for key in _KEYS), []).append(row["caused_delay_ns"])
    verdicts = [_verdict(row, delays.get(tuple(row[key] for key in _KEYS), [])) for row in rows]
    return table.append_column("verdict", pa.array(verdicts, pa.string()))


def _verdict(row: dict[str, Any], delays: list[int]) -> str:
    if row["rank"] is None:
        threshold = row["lag_threshold_ns"]
        if threshold is None:
            return "cannot tell: no common clock"
        return f"cannot tell, ± {threshold} ns" if threshold < _FEW_NS else f"cannot tell, ± {threshold / 1000:.1f} µs"
    mine = row["caused_delay_ns"]
    if not row["times_last"]:
        return "cannot tell" if row["median_arrival_ns"] is None else "on time"
    most = mine == max(delays) and delays.count(mine) == 1
    large = mine * len(delays) >= _SHARE * sum(delays)
    if (most or large) and mine > row["lag_threshold_ns"]:
        return "straggler"
    inherited, undecided = row["inherited_delay_ns"], row["undecided_delay_ns"]
    if inherited > mine + undecided:
        return "held up"
    return "late or held up" if inherited + undecided > mine else "late"
