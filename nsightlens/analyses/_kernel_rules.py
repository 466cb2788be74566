"""Rules of findings about kernels: launched too slowly, worth fusing, without tensor cores, far below their roof.

What a kernel gives back is at most its time on the critical path that leads to the last GPU work of its process; what gaps give
back, the idle time itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses._finding import Key, Process, Row, exceeds, fired, key, span
from nsightlens.analyses._on_path import OnPath
from nsightlens.names.kernel_names import labels
from nsightlens.views import registry

_INTERVAL_NS = 100_000
"""Longest time from one launch of a thread to its next in which the host does nothing but launch."""
LAUNCHES = 200_000
"""Kernels of a run up to which rules look at each of them."""
_FAR_PCT = 50
"""Share of its roof below which a kernel is far from it."""
_LABEL = 60

# A gap that lasts until a call has launched the next kernel, which is shorter than the thread took from launch to launch.
_TINY = """
WITH work AS (
    SELECT profile_id, process_id, window_index, kind, launch_id, start_ns, end_ns, max(end_ns) OVER (
        PARTITION BY profile_id, process_id, window_index ORDER BY start_ns, end_ns, kind, work_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS idle_from_ns
    FROM _gpu_work WHERE profile_id IN (SELECT unnest($1))
), calls AS (
    SELECT profile_id, launch_id, name, start_ns + duration_ns AS returned_ns, start_ns - lag(start_ns) OVER (
        PARTITION BY profile_id, process_id, window_index, thread ORDER BY start_ns, launch_id) AS interval_ns
    FROM api_calls AS a SEMI JOIN work AS w ON w.profile_id = a.profile_id AND w.launch_id = a.launch_id
    WHERE duration_ns >= 0
), timed AS (
    SELECT w.*, c.interval_ns, end_ns - start_ns < interval_ns AND interval_ns <= $2 AND NOT contains(c.name, 'Graph') AS tiny,
        CASE WHEN returned_ns > idle_from_ns THEN greatest(start_ns - idle_from_ns, 0) ELSE 0 END AS idle_ns
    FROM work AS w LEFT JOIN calls AS c ON c.profile_id = w.profile_id AND c.launch_id = w.launch_id
    WHERE kind = 'kernel'
)
SELECT profile_id, process_id, window_index, count(*) AS kernels, count(*) FILTER (tiny) AS tiny,
    coalesce(sum(idle_ns) FILTER (tiny), 0)::BIGINT AS idle_ns, median(end_ns - start_ns) FILTER (tiny) AS median_ns,
    median(interval_ns) FILTER (tiny) AS interval_ns
FROM timed GROUP BY ALL ORDER BY ALL
"""
# Kernels that follow each other in a stream, each bound by memory; fused, the longest of them would be left.
_CHAINS = """
WITH placed AS (
    SELECT k.profile_id, k.process_id, k.window_index, k.kernel_id, k.name, k.duration_ns, k.family, k.phase, w.device_id,
        w.context, w.stream, w.start_ns,
        k.family IN ('elementwise', 'normalization', 'reduction') AND NOT regexp_matches(k.name, '^triton_|multi_tensor') AS light
    FROM _gpu_work AS w LEFT JOIN _bounded_kernels AS k ON w.kind = 'kernel' AND k.kernel_id = w.work_id
    WHERE w.profile_id IN (SELECT unnest($1))
), ordered AS (
    SELECT *, count(*) FILTER (light IS NOT TRUE) OVER (
        PARTITION BY profile_id, process_id, window_index, device_id, context, stream
        ORDER BY start_ns, kernel_id NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS chain
    FROM placed
), chained AS (
    SELECT *, row_number() OVER (same ORDER BY duration_ns DESC, kernel_id) AS place
    FROM ordered WHERE light
    WINDOW same AS (PARTITION BY profile_id, process_id, window_index, device_id, context, stream, chain, phase)
)
SELECT profile_id, process_id, window_index, kernel_id, duration_ns, name FROM chained WHERE place > 1 ORDER BY ALL
"""
# Products that run on CUDA cores though the GPU has tensor cores for single precision or less.
_PLAIN = """
WITH able AS (
    SELECT profile_id, process_id, device_id, max(name) AS gpu,
        min((SELECT max(1 - p.fp32_flop_per_s / coalesce(p.tf32_tensor_flop_per_s, p.fp16_tensor_flop_per_s)) FROM gpu_peaks AS p
            WHERE regexp_matches(d.name, p.pattern))) AS gain
    FROM devices AS d
    WHERE TRY_CAST(compute_capability AS DOUBLE) >= 7 AND NOT regexp_matches(coalesce(name, ''), 'GTX 16')
    GROUP BY profile_id, process_id, device_id
)
SELECT k.profile_id, k.process_id, k.window_index, k.kernel_id, k.duration_ns, k.name, coalesce(gain, 1) AS gain
FROM _bounded_kernels AS k JOIN able USING (profile_id, process_id, device_id)
WHERE tool <> 'ncu' AND k.profile_id IN (SELECT unnest($1)) AND family IN ('gemm', 'convolution', 'attention')
    AND tensor_cores = false AND start_ns IS NOT NULL AND k.duration_ns > 0
    AND NOT regexp_matches(name, '(?i)gemv|gemmk1_|reduce|dot_kernel|trsm|depthwise|dconv|im2d?2?col|col2im|offsets|nchwtonhwc|'
        'nhwctonchw|combine|decode|paged|[dz]gemm|zcgemm|double|f64')
ORDER BY k.kernel_id
"""
_COUNT = "SELECT run, tool, count(*) AS launches FROM kernels WHERE tool <> 'ncu' GROUP BY ALL"


def few(ask: Ask, processes: Sequence[Process]) -> list[Process]:
    """Return the processes of runs that have so few kernels that each can be looked at."""
    launches = {(row["run"], row["tool"]): row["launches"] for row in ask(_COUNT, []).to_pylist()}
    return [process for process in processes if launches.get(process.run, 0) <= LAUNCHES]


def are_few_in_all(ask: Ask) -> bool:
    """Return whether what looks at all runs at once may look at each kernel."""
    launches: int = sum(row["launches"] for row in ask(_COUNT, []).to_pylist())
    return launches <= LAUNCHES


def rules(ask: Ask, processes: Sequence[Process]) -> Iterator[Row]:
    """Yield what kernels themselves could give back. processes: as `few` returns them."""
    if processes:
        ask = _once(ask)  # two critical paths are walked over the same rows
        path = _OnPath(ask)
        yield from _fusion(ask, processes, path)
        yield from _tensor_cores(ask, processes, path)
        yield from _headroom(ask, processes)


def _once(ask: Ask) -> Ask:
    """Return an `ask` that keeps what it was answered."""
    answers: dict[str, pa.Table] = {}

    def asked(query: str, values: Sequence[object]) -> pa.Table:
        question = f"{query} {values!r}"
        if question not in answers:
            answers[question] = ask(query, values)
        return answers[question]

    return asked


class _OnPath:
    """Time of kernels on the critical path to the last GPU work of their process, which is walked once somebody asks."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._path: OnPath | None = None

    def bounded(self, whose: Key, kernels: Sequence[Row], lengths: Sequence[float]) -> int:
        """Return the sum of so many ns of kernels, of none of them more than it is on the path."""
        self._path = self._path or OnPath(self._ask, to_work=True)
        if whose not in self._path.windows:
            return int(sum(lengths))
        ids = np.array([kernel["kernel_id"] for kernel in kernels], np.int64)
        return int(np.minimum(np.array(lengths), self._path.of(ids)).sum())


def _by_process(table: pa.Table) -> dict[Key, list[Row]]:
    found: dict[Key, list[Row]] = defaultdict(list)
    for row in table.to_pylist():
        found[key(row)].append(row)
    return found


def tiny(ask: Ask, processes: Sequence[Process]) -> dict[Key, Row]:
    """Return of each process the kernels that are shorter than the time between their launches, and the idle time before them.

    idle_ns is no more than what the GPU waits for the host in the process's steps.
    """
    if not processes:
        return {}
    table = ask(_TINY, [sorted({process.row["profile_id"] for process in processes}), _INTERVAL_NS])
    found = {key(row): row for row in table.to_pylist()}
    return {process.key: row | {"idle_ns": min(row["idle_ns"], process.waits_for_host)}
            for process in processes if (row := found.get(process.key))}


def tiny_kernels(process: Process, row: Row, idle: int) -> Iterator[Row]:
    """Yield that the host launches more slowly than the GPU works. idle: the part of the time that nothing else explains; ns."""
    what = (f"the GPU idles between tiny kernels: {row['tiny']:,} of {row['kernels']:,} are shorter (median "
            f"{span(row['median_ns'] or 0)}) than the time between launches (median {span(row['interval_ns'] or 0)})")
    yield from fired(process, "tiny_kernels", what, idle)


def _fusion(ask: Ask, processes: Sequence[Process], path: _OnPath) -> Iterator[Row]:
    chains = _by_process(ask(_CHAINS, [sorted({process.row["profile_id"] for process in processes})]))
    for process in processes:
        kernels = chains[process.key]
        lengths = [kernel["duration_ns"] for kernel in kernels]
        if exceeds(process, "fusion", sum(lengths)):
            what = (f"{len(kernels):,} memory-bound kernels directly follow another one in their stream, "
                    f"mostly {_most(kernels, lengths)}: candidates for fusion")
            yield from fired(process, "fusion", what, path.bounded(process.key, kernels, lengths))


def _tensor_cores(ask: Ask, processes: Sequence[Process], path: _OnPath) -> Iterator[Row]:
    plain = _by_process(ask(_PLAIN, [sorted({process.row["profile_id"] for process in processes})]))
    for process in processes:
        kernels = plain[process.key]
        lengths = [kernel["duration_ns"] * kernel["gain"] for kernel in kernels]
        if exceeds(process, "tensor_cores", int(sum(lengths))):
            what = (f"{len(kernels):,} matrix products and convolutions run without tensor (matrix) cores, mostly "
                    f"{_most(kernels, lengths)}")
            yield from fired(process, "tensor_cores", what, path.bounded(process.key, kernels, lengths))


def _most(kernels: Sequence[Row], lengths: Sequence[float]) -> str:
    """Return the label of the name that most of the time is of."""
    by_name: dict[str, float] = defaultdict(float)
    for kernel, length in zip(kernels, lengths, strict=True):
        by_name[kernel["name"]] += length
    most = max(sorted(by_name), key=lambda name: by_name[name])
    return labels({most}, _LABEL)[most]


def _headroom(ask: Ask, processes: Sequence[Process]) -> Iterator[Row]:
    """Yield the kernels that run at less than half of their roof, as far as that makes the process longer."""
    if not are_few_in_all(ask) or "headroom" not in registry.analyses():  # a feature that may have been taken out
        return
    lengths: dict[tuple[Any, ...], list[Process]] = defaultdict(list)
    for process in processes:
        lengths[process.key[:2]].append(process)
    for row in import_module("nsightlens.analyses.headroom").analyse(ask, by="key").to_pylist():
        if row["headroom_ns"] is None:
            continue
        of = lengths[row["profile_id"], row["process_id"]]
        known = row["at_roof_ns"] + row["headroom_ns"]
        if len(of) == 1 and 100 * row["at_roof_ns"] < _FAR_PCT * known:
            name, of_roof = labels({row["item"]}, _LABEL)[row["item"]], 100 * row["at_roof_ns"] / known
            what = (f"the kernel {name} runs at {of_roof:.0f} % of its {row['bound_by']} roof ({row['launches']:,} launches, "
                    f"{span(known)}; work from {row['work_source']})")
            for found in fired(of[0], "headroom", what, row["max_gain_ns"]):
                yield found | {"subject": row["item"]} | ({} if row["work_source"] == "counters" else {"confidence": "low"})
