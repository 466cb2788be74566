"""What ncu says of a run that only it measured: the kernel that takes most time, and the first of ncu's own rules on it."""

from __future__ import annotations

from dataclasses import dataclass

from nsightlens.diagnosis.recorded import Ask

_KERNELS = """
SELECT short_name, kernel_key, count(*) AS launches, sum(duration_ns)::BIGINT AS ns, min(kernel_id) AS kernel_id
FROM kernels WHERE run = $1 AND tool = 'ncu' GROUP BY short_name, kernel_key
ORDER BY ns DESC NULLS LAST, launches DESC, kernel_key
"""
_RULES = """
SELECT a.rule, a.message, a.estimated_speedup_pct AS pct FROM advice AS a JOIN kernels AS k
    ON a.kernel_id = k.kernel_id AND a.profile_id = k.profile_id
WHERE k.run = $1 AND k.tool = 'ncu' AND k.kernel_key = $2 AND a.message IS NOT NULL AND a.type IS DISTINCT FROM 'ok'
ORDER BY pct DESC NULLS LAST, a.type = 'inf' OR a.type = 'info', a.rule LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Counters:
    """The kernel that takes most of the time that ncu measured; rule and message: ncu's own, '' where it has none."""

    name: str
    ns: int | None
    of_ns: int | None
    kernels: int
    rule: str
    message: str
    speedup_pct: float | None


def counters(ask: Ask, run: str) -> Counters | None:
    """Return what ncu measured of a run; None where it measured no kernel."""
    rows = ask(_KERNELS, [run]).to_pylist()
    if not rows:
        return None
    top = rows[0]
    times = [row["ns"] for row in rows if row["ns"] is not None]
    rules = ask(_RULES, [run, top["kernel_key"]]).to_pylist()
    rule = rules[0] if rules else {"rule": None, "message": None, "pct": None}
    return Counters(top["short_name"] or top["kernel_key"] or "", top["ns"], sum(times) if times else None,
                    sum(row["launches"] for row in rows), rule["rule"] or "", rule["message"] or "", rule["pct"])
