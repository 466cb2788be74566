"""How many launches wait in each stream, over time."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from nsightlens.errors import NsightlensError
from nsightlens.plots import frame
from nsightlens.plots.frame import Gpus, Picture
from nsightlens.views import palette

_KEYS = ("run", "tool", "rank", "profile_id", "process_id", "window_index", "device_id")
_FULL = 1024  # launches that a stream's queue holds


@frame.drawn_from_rows
def queue_length_series(table: pa.Table, *, gpus: Gpus | None = None) -> Figure:
    """Return a panel per process and GPU of `table` (rows of the view `queue_length_series`), a line per stream, at most 16.

    `gpus`: product name per (run, tool), for the titles. Raises NsightlensError where there are no rows.
    """
    if not table.num_rows:
        raise NsightlensError("nothing to draw: queue_length_series has no rows; it needs launch calls and their kernels")
    keys = table.select(_KEYS).group_by(list(_KEYS), use_threads=False).aggregate([]).to_pylist()
    shown = keys[: frame.MOST_PANELS]
    figure = Picture(figsize=(7.6, 0.5 + 2.1 * len(shown)), layout="constrained")
    names = frame.labels(keys)
    for axes, key in zip(figure.subplots(len(shown), 1, squeeze=False, sharey=True)[:, 0], shown, strict=True):
        rows = table.filter(frame.is_row_of(table, key))
        begin, end = pc.min(rows["at_ns"]).as_py(), pc.max(rows["at_ns"]).as_py()
        factor, unit = frame.time_unit(end - begin)
        streams = rows["stream"].value_counts().to_pylist()
        streams.sort(key=lambda found: (-found["counts"], found["values"] is None, found["values"]))
        for colour, found in zip(palette.COLOURS, streams, strict=False):
            line = rows.filter(frame.is_row_of(rows, {"stream": found["values"]}))
            xs, ys = frame.thinned((line["at_ns"].to_numpy() - begin) / factor, line["length"].to_numpy())
            axes.step(xs, ys, where="post", color=colour, linewidth=0.9, label=f"stream {found['values']}")
        left_out = len(streams) - len(palette.COLOURS)
        more = f"{left_out} more streams are not drawn" if left_out > 0 else None
        axes.legend(loc="upper right", fontsize=7, framealpha=0.85, title=more, title_fontsize=7)
        if pc.max(rows["length"]).as_py() > _FULL / 2:
            axes.axhline(_FULL, color="0.4", linewidth=0.8, linestyle=(0, (4, 3)))
        text = frame.title("Launches waiting", (key["run"], key["tool"]), gpus, names[frame.place(key)])
        axes.set_title(text, loc="left", fontsize=9)
        axes.set_ylabel("Launches in the queue", fontsize=8)
        axes.set_xlabel(f"Time since the first launch ({unit})", fontsize=8)
        axes.tick_params(labelsize=8)
        frame.tidy(axes)
    return frame.settle(figure)
