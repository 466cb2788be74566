"""The rows of the view _kernel_time for one large profile: its kernels summed template by template, then the templates in SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from nsightlens.columns.arrays import MISSING
from nsightlens.schema import TEMPLATE, templates_of
from nsightlens.store.host_steps import Steps
from nsightlens.store.profile_parts import UnfitError, Work, read

_TOO_LONG = 1 << 62
_ROWS = f"""
SELECT $run AS run, $profile_id AS profile_id, t.process_id, t.window_index, t.device_id, t.kernel_key, t.tensor_cores,
    s.of_operator, min(t.device) AS device, min(t.gpu) AS gpu, sum(s.kernels)::BIGINT AS kernels,
    sum(s.total_ns)::BIGINT AS total_ns,
    sum(s.inside_ns) FILTER (t.estimated_occupancy_pct IS NOT NULL)::BIGINT AS occupied_ns,
    fsum(t.estimated_occupancy_pct * s.inside_ns) AS occupancy_ns
FROM kernel_sums AS s JOIN read_parquet($templates) AS t ON t.{TEMPLATE} = s.template
WHERE s.kernels > 0
GROUP BY t.process_id, t.window_index, t.device_id, t.kernel_key, t.tensor_cores, s.of_operator
"""


def kernel_time(connection: duckdb.DuckDBPyConnection, parts: Mapping[str, Path], key: Mapping[str, str], work: Sequence[Work],
                placed: Steps) -> pa.Table:
    """Return the rows of _kernel_time. key: run and profile_id.

    Raises UnfitError where there are no kernels, or 63 bits are too few for a sum.
    """
    kernels = next((some for some in work if some.table == "kernels"), None)
    if kernels is None:
        raise UnfitError("no kernels")
    connection.register("kernel_sums", _sums(kernels, placed))
    try:
        return connection.sql(_ROWS, params={"run": key["run"], "profile_id": key["profile_id"],
                                             "templates": str(parts[templates_of("kernels")])}).to_arrow_table()
    finally:
        connection.unregister("kernel_sums")


def _sums(kernels: Work, placed: Steps) -> pa.Table:
    """Return per template, without and with an operator: how many kernels, their time, and that within the steps, in ns."""
    first, last = placed.bounds(kernels.line)
    has_steps = (np.bincount(placed.line, minlength=len(placed.lines)) > 0)[kernels.line]
    count, total, inside = (np.zeros(2 * len(kernels.line), dtype=np.int64) for _ in range(3))
    held = 0.0
    for start, duration, overrun, operator, template in read(
        kernels.file, ["start_ns", "duration_ns", "overrun_ns", "op_range_id", TEMPLATE],
    ):
        length = np.where(overrun == MISSING, duration, duration - overrun)
        there = np.flatnonzero((start != MISSING) & (duration != MISSING) & (length >= 0) & has_steps[template])
        start, length, template = start[there], length[there], template[there]
        group = 2 * template + (operator[there] != MISSING)
        count += np.bincount(group, minlength=len(count))
        np.add.at(total, group, length)
        np.add.at(inside, group, np.maximum(np.minimum(start + length, last[template]) - np.maximum(start, first[template]), 0))
        held += float(length.sum(dtype=np.float64))
    if held >= _TOO_LONG:
        raise UnfitError("63 bits are too few")
    template, of_operator = np.divmod(np.arange(len(count)), 2)
    return pa.table({"template": template, "of_operator": of_operator == 1, "kernels": count, "total_ns": total,
                     "inside_ns": inside})
