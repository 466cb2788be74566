"""Memory over time: allocated and reserved, a panel per device."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsightlens.errors import NsightlensError
from nsightlens.plots import frame
from nsightlens.plots.frame import Gpus, Picture
from nsightlens.views import palette

_SIZES = ("allocated_bytes", "reserved_bytes", "net_bytes")
_KEYS = ("run", "tool", "rank", "profile_id", "process_id", "window_index", "device_type", "device")


@frame.drawn_from_rows
def memory_curve(table: pa.Table, *, gpus: Gpus | None = None) -> Figure:
    """Return a panel per process and device of `table` (rows of the view `memory_curve`), GPUs first, at most 16.

    Where the trace holds no totals, the curve is what was allocated since its beginning. `gpus`: product name per (run, tool),
    for the titles. Raises NsightlensError where there are no rows.
    """
    table = table.filter(functools.reduce(pc.or_, [pc.is_valid(table[name]) for name in _SIZES]))
    if not table.num_rows:
        raise NsightlensError("nothing to draw: memory_curve has no rows with sizes; record with profile_memory=True")
    keys = table.select(_KEYS).group_by(list(_KEYS), use_threads=False).aggregate([]).to_pylist()
    keys.sort(key=lambda key: key["device_type"] == "cpu")
    shown = keys[: frame.MOST_PANELS]
    figure = Picture(figsize=(7.6, 0.5 + 2.3 * len(shown)), layout="constrained")
    names = frame.labels(keys)
    for axes, key in zip(figure.subplots(len(shown), 1, squeeze=False)[:, 0], shown, strict=True):
        _draw(axes, table.filter(frame.is_row_of(table, key)))
        kind = f"device type {key['device_type']}," if key["device_type"].isdigit() else key["device_type"].upper()
        device = kind if key["device"] is None else f"{kind} {key['device']}"
        gpu = gpus if key["device_type"] != "cpu" else None
        text = frame.title("Memory", (key["run"], key["tool"]), gpu, names[frame.place(key)], device)
        axes.set_title(text, loc="left", fontsize=9)
    note = f"{len(keys) - len(shown)} more devices are not drawn" if len(keys) > len(shown) else ""
    reserved = table["reserved_bytes"].null_count < table.num_rows
    entries = {"allocated": palette.BLUE} | ({"reserved by the allocator": palette.AMBER} if reserved else {})
    frame.legend(figure, entries, note)
    return frame.settle(figure)


def _draw(axes: Axes, rows: pa.Table) -> None:
    at = rows["at_ns"].to_numpy()
    factor, unit = frame.time_unit(int(at.max() - at.min()))
    when = (at - at.min()) / factor
    known = rows["allocated_bytes"].null_count < rows.num_rows
    curves = {"allocated_bytes" if known else "net_bytes": palette.BLUE, "reserved_bytes": palette.AMBER}
    values = {name: rows[name].to_numpy().astype(np.float64) for name in curves if rows[name].null_count < rows.num_rows}
    size, size_unit = frame.byte_unit(max(float(np.nanmax(np.abs(column))) for column in values.values()))
    for name, column in values.items():
        axes.step(*frame.thinned(when, column / size), where="post", color=curves[name], linewidth=1.1, label=name)
    first = next(iter(values))
    peak = int(np.nanargmax(values[first]))
    axes.plot([when[peak]], [values[first][peak] / size], marker="v", color=palette.ORANGE, markersize=6, linestyle="none")
    axes.annotate(f"peak {values[first][peak] / size:.4g} {size_unit}", (when[peak], values[first][peak] / size), xytext=(5, 5),
                  textcoords="offset points", fontsize=8, ha="left" if when[peak] < 0.75 * when[-1] else "right")
    axes.margins(y=0.15)
    axes.set_ylabel(f"{'Memory' if known else 'Since the start'} ({size_unit})", fontsize=8)
    axes.set_xlabel(f"Time since the first event ({unit})", fontsize=8)
    axes.tick_params(labelsize=8)
    frame.tidy(axes)
