"""Rules of findings about the capture: warm-up in it, clocks that differ or drift, the profiler's own time, what was lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from nsightlens.analyses import Ask
from nsightlens.analyses._advice import ADVICE
from nsightlens.analyses._finding import Key, Process, Row, fired, key, of_run, span
from nsightlens.terminal.command import Command

_FEWEST_STEPS = 4
_LONGER = 1.5
"""A first step is warm-up from so many times the median of those after it on."""
_SLOWER = 1.05
"""Kernels are slower from so many times the usual time on: clocks of like GPUs differ by a few per cent."""
_EVEN = 0.8
"""Share of the kernel time that must be slower: a clock slows all kernels, other data only some."""
_FEWEST_RANKS = 3
_NAMED = 8

_STEPS = """
SELECT profile_id, process_id, window_index, step, step_ns FROM step_breakdown() WHERE step IS NOT NULL ORDER BY ALL
"""
_ALIKE = "kernel_key, grid_x, grid_y, grid_z, block_x, block_y, block_z"
_SAME = " AND ".join(f"{{a}}.{name} IS NOT DISTINCT FROM {{b}}.{name}" for name in _ALIKE.split(", "))
_COMPUTE = """family <> 'collective' AND tool <> 'ncu' AND start_ns IS NOT NULL AND duration_ns > 0
    AND profile_id IN (SELECT unnest($1))"""
# Median time of each configuration on each rank, against the median over the ranks.
_OF_RANKS = f"""
WITH mine AS (
    SELECT run, tool, profile_id, process_id, window_index, {_ALIKE}, count(*) AS launches, median(duration_ns) AS median_ns
    FROM _bounded_kernels WHERE {_COMPUTE} GROUP BY ALL
), usual AS (
    SELECT run, tool, {_ALIKE}, median(median_ns) AS usual_ns FROM mine GROUP BY ALL HAVING count(DISTINCT process_id) >= $2
)
SELECT profile_id, process_id, window_index, sum(launches * median_ns) AS mine_ns, sum(launches * usual_ns) AS usual_ns,
    sum(launches * median_ns) FILTER (median_ns > 1.02 * usual_ns) AS slower_ns
FROM mine AS m JOIN usual AS u ON m.run = u.run AND m.tool = u.tool AND {_SAME.format(a='m', b='u')} GROUP BY ALL ORDER BY ALL
"""
# The same of the last third of a capture, against its first third.
_OF_THIRDS = f"""
WITH span AS (
    SELECT profile_id, process_id, window_index, min(start_ns) AS first_ns, max(start_ns) - min(start_ns) AS span_ns
    FROM _bounded_kernels WHERE {_COMPUTE} GROUP BY ALL
), thirds AS (
    SELECT k.profile_id, k.process_id, k.window_index, {_ALIKE}, least(3 * (start_ns - first_ns) // span_ns, 2) AS third,
        count(*) AS launches, median(duration_ns) AS median_ns
    FROM _bounded_kernels AS k JOIN span AS s ON s.profile_id = k.profile_id AND s.process_id = k.process_id
        AND s.window_index IS NOT DISTINCT FROM k.window_index AND span_ns > 0
    WHERE {_COMPUTE.replace('profile_id', 'k.profile_id')} GROUP BY ALL HAVING count(*) >= 3
)
SELECT l.profile_id, l.process_id, l.window_index, sum(l.launches * l.median_ns) AS mine_ns,
    sum(l.launches * f.median_ns) AS usual_ns,
    sum(l.launches * l.median_ns) FILTER (l.median_ns > 1.02 * f.median_ns) AS slower_ns
FROM thirds AS l JOIN thirds AS f ON f.third = 0 AND l.third = 2 AND f.profile_id = l.profile_id AND f.process_id = l.process_id
    AND f.window_index IS NOT DISTINCT FROM l.window_index AND {_SAME.format(a='f', b='l')}
GROUP BY ALL ORDER BY ALL
"""
_HELD_UP = "SELECT * FROM profiler_share WHERE span_ns > 0 ORDER BY ALL"
_SLOWED = "SELECT * FROM profiler_overhead WHERE quantity = 'step_time' AND tool_ns > other_ns ORDER BY ALL"
_LOST = ("changed_while_read", "damaged", "events_lost", "impossible_duration", "malformed_json", "missing_time",
         "negative_duration", "rank_contradictory", "truncated", "unfinished_export")
"""Diagnostics after which shares of time, and that something is not there, cannot be relied on."""
_DEFECTS = """
SELECT run, tool, code, sum("count")::BIGINT AS times, any_value(message ORDER BY path, message) AS message
FROM diagnostics
WHERE code IN (SELECT unnest($1)) AND severity <> 'info' AND run IS NOT NULL GROUP BY ALL ORDER BY ALL
"""
_MISSING = """
SELECT p.run, p.tool, max(p.world_size) AS world_size, count(DISTINCT p.rank) AS ranks
FROM processes AS p SEMI JOIN _gpu_work AS w ON w.profile_id = p.profile_id AND w.process_id = p.process_id
WHERE p.rank IS NOT NULL GROUP BY ALL HAVING max(p.world_size) > count(DISTINCT p.rank) ORDER BY ALL
"""


def rules(ask: Ask, processes: Sequence[Process], few: Sequence[Process]) -> Iterator[Row]:
    """Yield what the capture itself says about its figures. few: the processes each of whose kernels can be looked at."""
    if not processes:
        return
    yield from _warm_up(ask, processes)
    if few:
        profiles = sorted({process.row["profile_id"] for process in few})
        ranks = _slower(ask(_OF_RANKS, [profiles, _FEWEST_RANKS]).to_pylist())
        yield from _clock(few, ranks, "as the same kernels on the median rank: its GPU is slower")
        thirds = _slower(ask(_OF_THIRDS, [profiles]).to_pylist())
        yield from _clock(few, thirds, "in the last third of the capture as in the first: the GPU slows down")
    yield from _profiler(ask, processes)
    yield from _capture(ask, processes)


def _warm_up(ask: Ask, processes: Sequence[Process]) -> Iterator[Row]:
    """Yield the first steps that are much longer than those after them."""
    steps: dict[Key, list[Row]] = defaultdict(list)
    for row in ask(_STEPS, []).to_pylist():
        steps[key(row)].append(row)
    for process in processes:
        lengths = [row["step_ns"] for row in steps[process.key]]
        count = 0
        while len(lengths) - count >= _FEWEST_STEPS and lengths[count] > _LONGER * median(lengths[count + 1:]):
            count += 1
        if count:
            usual = median(lengths[count:])
            first = f"first {count} steps are" if count > 1 else "first step is"
            what = (f"the capture includes warm-up: its {first} up to {max(lengths[:count]) / usual:.1f} times as long as the "
                    f"median of the others ({span(usual)})")
            yield from fired(process, "warm_up", what, round(sum(lengths[:count]) - count * usual))


def _slower(rows: Iterable[Row]) -> Mapping[Key, Row]:
    """Return the processes nearly all of whose kernels are slower than usual."""
    return {key(row): row for row in rows
            if row["mine_ns"] > _SLOWER * row["usual_ns"] and (row["slower_ns"] or 0) > _EVEN * row["mine_ns"]}


def _clock(processes: Sequence[Process], slower: Mapping[Key, Row], than: str) -> Iterator[Row]:
    for process in processes:
        row = slower.get(process.key)
        if row is not None:
            what = f"kernels take {row['mine_ns'] / row['usual_ns']:.2f} times as long {than}"
            yield from fired(process, "clock", what, min(round(row["mine_ns"] - row["usual_ns"]), process.parts["kernel"]))


def _profiler(ask: Ask, processes: Sequence[Process]) -> Iterator[Row]:
    """Yield where the profiler held up threads, and where steps take longer under it."""
    known = {(process.row["profile_id"], process.row["process_id"]): process for process in processes}
    for row in ask(_HELD_UP, []).to_pylist():
        process = known.get((row["profile_id"], row["process_id"]))
        if process is not None:
            held = Process(process.row, row["span_ns"], {})
            what = f"{row['tool']} itself held up threads of the process"
            yield from (found | {"subject": row["tool"]} for found in fired(held, "profiler", what, row["profiler_ns"]))
    runs = {process.run for process in processes}
    for row in ask(_SLOWED, []).to_pylist():
        run, more = (row["run"], row["tool"]), row["tool_ns"] - row["other_ns"]
        if run in runs and 100 * more > ADVICE["profiler"].limit_pct * row["tool_ns"]:
            what = f"a step takes {row['ratio']:.2f} times as long under {row['tool']} as without a profiler ({row['part']})"
            yield of_run(run, "profiler", "all", what, more, row["tool_ns"]) | {
                "command": Command("show", ("profiler_overhead",))}


def _capture(ask: Ask, processes: Sequence[Process]) -> Iterator[Row]:
    """Yield what is missing in a capture, so that no share and no absence can be relied on."""
    runs = {process.run for process in processes}
    for row in ask(_DEFECTS, [list(_LOST)]).to_pylist():
        if (row["run"], row["tool"]) in runs:
            what = f"{row['code'].replace('_', ' ')} ({row['times'] or 1:,} times): {row['message'].rstrip('.')}"
            yield of_run((row["run"], row["tool"]), "capture", "all", what, None, None)
    for row in ask(_MISSING, []).to_pylist():
        if (row["run"], row["tool"]) in runs:
            what = f"{row['ranks']:,} of {row['world_size']:,} ranks were captured"
            yield of_run((row["run"], row["tool"]), "capture", "all", what, None, None)
