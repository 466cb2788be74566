"""One step of a process: GPU streams above, CPU threads below, on one axis of time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nsightlens.errors import NsightlensError
from nsightlens.plots import frame
from nsightlens.plots.frame import Gpus, Picture
from nsightlens.views import palette
from nsightlens.views.figures import thread_name

_KEYS = ("run", "tool", "rank", "profile_id", "process_id", "window_index", "step", "step_ns")
_DARK = (palette.BLUE, palette.GREEN, palette.ORANGE, palette.SLICES["other"], palette.SLICES["graph, kernels unknown"])
_MOST_PROCESSES, _MOST_THREADS, _MOST_STREAMS, _DEEPEST = 4, 5, 12, 6
_WRITTEN = 0.055  # of the width: a bar this long holds its name
_CHARACTERS = 150  # that fit into the width
_RASTER_FROM = 4000  # bars: more are drawn as an image inside SVG and PDF

Bar = tuple[float, float, str, str]  # start and length in the axes' unit, colour, name


@frame.drawn_from_rows
def step_timeline(table: pa.Table, *, gpus: Gpus | None = None) -> Figure:
    """Return a panel per process and step of `table` (rows of the view `step_timeline`), at most four.

    A lane per stream, coloured by family, and per thread: calls above, ranges below them by depth. The busiest five threads
    and the first six levels are drawn. `gpus`: product name per (run, tool), for the titles. Raises NsightlensError where
    there are no rows.
    """
    if not table.num_rows:
        raise NsightlensError("nothing to draw: step_timeline has no rows; there is no such step, or nothing on a timeline")
    keys = table.select(_KEYS).group_by(list(_KEYS), use_threads=False).aggregate([]).to_pylist()
    panels = []
    for key in keys[:_MOST_PROCESSES]:
        rows = table.filter(frame.is_row_of(table, key))
        factor, unit = frame.time_unit(key["step_ns"] or 1)
        panels.append((key, _lanes(rows, factor), key["step_ns"] / factor, unit))
    heights = [0.9 + 0.2 * len(lanes) for _, lanes, _, _ in panels]
    figure = Picture(figsize=(12, 0.6 + sum(heights)), layout="constrained")
    names, used = frame.labels(keys), set()
    titles = []
    for key, _, _, _ in panels:
        step = "whole capture (no steps)" if key["step"] is None else f"step {key['step']}"
        titles.append(frame.title("Timeline", (key["run"], key["tool"]), gpus, names[frame.place(key)], step))
    for part, (key, lanes, length, unit) in zip(frame.parts(figure, titles, heights), panels, strict=True):
        axes = part.subplots()
        used |= _draw(axes, lanes, length)
        axes.set_xlabel(f"Time since the {'capture' if key['step'] is None else 'step'}'s start ({unit})", fontsize=8)
    entries = {name: colour for name, colour in palette.SLICES.items() if colour in used}
    left_out = len(keys) - len(panels)
    frame.legend(figure, entries, f"{left_out} more processes are not drawn: choose with --rank and --run" if left_out else "")
    return frame.settle(figure)


def _lanes(rows: pa.Table, factor: float) -> list[tuple[str, list[Bar]]]:
    """Return (label, bars) of each lane, top to bottom; a lane without label belongs to the one above."""
    lanes: list[tuple[str, list[Bar]]] = []
    work = rows.filter(pc.is_in(rows["kind"], value_set=pa.array(["kernel", "memory", "graph"])))
    streams = work.select(["device_id", "stream"]).group_by(["device_id", "stream"]).aggregate([([], "count_all")]).to_pylist()
    streams.sort(key=lambda found: (-found["count_all"], str(found["device_id"]), found["stream"] or 0))
    several = len({found["device_id"] for found in streams}) > 1
    for found in streams[:_MOST_STREAMS]:
        key = {name: found[name] for name in ("device_id", "stream")}
        gpu = f", GPU {str(key['device_id']).replace('gpu', '').rsplit(':', 1)[-1].rsplit('/', 1)[-1][:8]}" if several else ""
        name = "no stream" if key["stream"] is None else f"stream {key['stream']}"
        lanes.append((name + gpu, _bars(work.filter(frame.is_row_of(work, key)), factor)))
    host = rows.filter(pc.is_valid(rows["thread"]))
    threads = sorted(host["thread"].value_counts().to_pylist(), key=lambda found: (-found["counts"], found["values"]))
    for found in threads[:_MOST_THREADS]:
        mine = host.filter(pc.equal(host["thread"], found["values"]))
        lanes += _thread(mine, thread_name(found["values"]), factor)
    return lanes


def _thread(rows: pa.Table, name: str, factor: float) -> list[tuple[str, list[Bar]]]:
    """Return the lanes of a thread: its API calls, then its ranges by depth, steps left out."""
    calls = pc.equal(rows["kind"], "api_call")
    ranges = rows.filter(pc.and_(pc.invert(calls), pc.not_equal(rows["kind"], "step")))
    depths = sorted({depth or 0 for depth in ranges["depth"].to_pylist()})
    found = [_bars(rows.filter(calls), factor)]
    found += [_bars(ranges.filter(pc.equal(pc.fill_null(ranges["depth"], 0), depth)), factor) for depth in depths[:_DEEPEST]]
    found = [bars for bars in found if bars]
    return [(name if number == 0 else "", bars) for number, bars in enumerate(found)]


def _bars(rows: pa.Table, factor: float) -> list[Bar]:
    names = ("start_ns", "duration_ns", "kind", "family", "name")
    columns: Iterable[Any] = zip(*(rows[name].to_pylist() for name in names), strict=True)
    return [(start / factor, length / factor, _colour(kind, family), str(name or ""))
            for start, length, kind, family, name in columns]


def _colour(kind: str, family: str | None) -> str:
    return palette.SLICES[palette.slice_kind(kind, family)]


def _draw(axes: Axes, lanes: list[tuple[str, list[Bar]]], length: float) -> set[str]:
    """Draw the lanes and return the colours used."""
    raster = sum(len(bars) for _, bars in lanes) > _RASTER_FROM
    used: set[str] = set()
    for number, (_, bars) in enumerate(lanes):
        for colour in {colour for _, _, colour, _ in bars}:
            spans = [(start, span) for start, span, mine, _ in bars if mine == colour]
            axes.broken_barh(spans, (number - 0.42, 0.84), facecolors=colour, linewidth=0, rasterized=raster)
            used.add(colour)
        for start, span, colour, name in bars:
            begin, end = max(start, 0.0), min(start + span, length)
            if end - begin >= _WRITTEN * length:
                text = frame.short(frame.clean(name), max(6, int(_CHARACTERS * (end - begin) / length)))
                axes.text((begin + end) / 2, number, text, ha="center", va="center", fontsize=6, clip_on=True,
                          color="white" if colour in _DARK else "0.1")
    axes.set_xlim(0, length)
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    axes.set_yticks([number for number, (name, _) in enumerate(lanes) if name], [name for name, _ in lanes if name], fontsize=7)
    axes.tick_params(axis="x", labelsize=8)
    frame.tidy(axes, "x")
    return used
