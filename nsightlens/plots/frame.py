"""What the plots share: colours, labels, panels per run and tool, and axes whose time has a unit that people read."""

from __future__ import annotations

import functools
import io
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Patch
from matplotlib.text import Text

from nsightlens.errors import NsightlensError, UsageError
from nsightlens.names.distinct import shortened
from nsightlens.names.process_label import process_label
from nsightlens.public_calls import gated

Row = dict[str, Any]
Gpus = Mapping[tuple[str, str], str]

_P = ParamSpec("_P")
_Figure = TypeVar("_Figure", bound=Figure)
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_BYTES = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "bytes"))
MOST_PANELS = 16
NAME_LENGTH = 58  # characters of a name beside a bar
_CHARACTERS = 15  # of a legend, in an inch
_SMALLEST = 0.72  # of the letters of a full width, in those of a column of text
_LETTERS, _POINTS, _SHORTEST = 1.7, 72, 12  # letters in the length of a letter's height; points of an inch; letters of a line
_UNDER = 0.6  # of a panel's width: names beside it take the rest


class Picture(Figure):
    """A figure that a notebook shows by itself: pyplot, whose import would do that, is not needed.

    notes: what a reader must know of it, to stand below it in a text.
    """

    notes: str = ""

    def _repr_png_(self) -> bytes:
        """Return the picture as notebooks show it; where %matplotlib inline was given, that comes first."""
        drawn = io.BytesIO()
        self.savefig(drawn, format="png", dpi=100)
        return drawn.getvalue()


def resize(figure: Figure, size: tuple[float, float]) -> None:
    """Make a figure as large as it is printed, in inches: what is narrower than before gets smaller letters, down to a limit,
    titles of several lines, and fewer columns in its legend."""
    factor = max(_SMALLEST, min(1.0, size[0] / figure.get_figwidth()))
    figure.set_size_inches(*size)
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            for label in axis.get_ticklabels()[:1]:
                axis.set_tick_params(labelsize=factor * float(label.get_fontsize()))
    ticks = {label for axes in figure.axes for label in (*axes.get_xticklabels(), *axes.get_yticklabels())}
    for text in figure.findobj(Text):
        if isinstance(text, Text) and text not in ticks:
            text.set_fontsize(factor * float(text.get_fontsize()))
    _wrap(figure)
    for old in figure.legends[:]:
        patches = [handle for handle in old.legend_handles if isinstance(handle, Patch)]
        if len(patches) == len(old.get_texts()):
            entries = {text.get_text(): patch.get_facecolor() for text, patch in zip(old.get_texts(), patches, strict=True)}
            old.remove()
            legend(figure, entries, "\n".join(wrap(old.get_title().get_text(), int(size[0] * _CHARACTERS * 1.3))), 8 * factor)


def _wrap(figure: Figure) -> None:
    """Break titles, and what stands below an axis, into lines that fit into the width of the figure."""
    width = figure.get_figwidth()
    whole = [part._suptitle for part in (figure, *figure.subfigs)]  # type: ignore[attr-defined]
    texts = [(text, width) for text in whole if text]
    for axes in figure.axes:
        columns = axes.get_subplotspec().get_gridspec().ncols if axes.get_subplotspec() else 1  # type: ignore[union-attr]
        texts += [(axes._left_title, width / columns), (axes.xaxis.label, _UNDER * width / columns)]  # type: ignore[attr-defined]
    for text, room in texts:
        letters = int(room * _LETTERS * _POINTS / float(text.get_fontsize()))
        text.set_text("\n".join(wrap(text.get_text(), max(_SHORTEST, letters))))


def drawn_from_rows(draw: Callable[_P, _Figure]) -> Callable[_P, _Figure]:
    """Let a plot pass the gate, and refuse rows of another view, with the call that draws them."""
    name = draw.__name__

    @functools.wraps(draw)
    def drawn(*given: _P.args, **named: _P.kwargs) -> _Figure:
        try:
            return draw(*given, **named)
        except KeyError as exc:
            raise UsageError(f"nl.plots.{name} draws the rows of {name}, and these have no column {exc}: "
                             f"nl.plots.{name}(store.view({name!r}))", subject="table", view=name) from exc

    return gated(drawn)


def time_unit(longest_ns: float) -> tuple[float, str]:
    """Return ns per unit, and the unit in which a time of `longest_ns` has one to three digits before the point."""
    return next((pair for pair in _UNITS if longest_ns >= pair[0]), _UNITS[-1])


def byte_unit(most: float) -> tuple[float, str]:
    """Return bytes per unit, and the unit for amounts up to `most`."""
    return next((pair for pair in _BYTES if most >= pair[0]), _BYTES[-1])


def clean(text: str) -> str:
    """Return the text as matplotlib shows it literally: no control characters, no mathematics between dollar signs."""
    return "".join(c if c.isprintable() else "?" for c in text).replace("$", r"\$")


def short(text: str, length: int = 60) -> str:
    """Return the text, cut in its middle to about `length` characters."""
    half = (length - 1) // 2
    return text if len(text) <= length else f"{text[:half]}…{text[-half:]}"


def rows_of(table: pa.Table, what: str) -> list[Row]:
    """Return the rows. Raises NsightlensError where there are none, with what the plot would need."""
    if not table.num_rows:
        raise NsightlensError(f"nothing to draw: {what}")
    return table.to_pylist()  # type: ignore[no-any-return]


def grouped(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows by their values in `columns`, groups in the order of their first row."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(column) for column in columns), []).append(row)
    return found


def by_tool(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return the rows by (run, tool): figures of two tools are never drawn as one."""
    return grouped(rows, "run", "tool")


def is_row_of(table: pa.Table, key: Mapping[str, Any]) -> pa.ChunkedArray:
    """Return which rows of the table have the values of `key`; None is NULL."""
    tests = [pc.is_null(table[name]) if value is None else pc.fill_null(pc.equal(table[name], value), False)
             for name, value in key.items()]
    return functools.reduce(pc.and_, tests)


def title(what: str, key: tuple[str, str], gpus: Gpus | None, *more: str) -> str:
    """Return 'What: run, tool, GPU': what a picture says of itself when it stands alone."""
    run, tool = key
    parts = [short(clean(str(run)), 32), str(tool), short(clean((gpus or {}).get(key, "")), 40), *more]
    return f"{what}: " + ", ".join(part for part in parts if part)


def place(row: Row) -> tuple[Any, ...]:
    """Return which process, GPU and window of which run and tool a row belongs to."""
    return tuple(row.get(column) for column in ("rank", "process_id", "device_id", "window_index", "run", "tool"))


def labels(rows: Iterable[Row], before_rank: str = "rank ") -> dict[tuple[Any, ...], str]:
    """Return {place: what people call it in its run}: its rank; process, GPU and window only where that is not enough.

    before_rank: "" beside an axis that is of ranks.
    """
    places = list(dict.fromkeys(place(row) for row in rows))
    found = {here: "rank unknown" if here[0] is None else f"{before_rank}{here[0]}" for here in places}
    for index, kind in ((1, "process"), (2, "GPU"), (3, "window")):
        count = Counter((text, here[4:]) for here, text in found.items())
        for here, text in found.items():
            if count[text, here[4:]] > 1 and here[index] is not None:
                known = _tail(here[index])
                if index == 1:
                    beside = {other[1] for other in places if other[1] is not None and other[4:] == here[4:]}
                    known = clean(process_label(here[1], beside))
                tail = f"{kind} {known}"
                found[here] = tail if here[0] is None and index == 1 else f"{text}, {tail}"
    return found


def _tail(value: Any) -> str:
    """Return what distinguishes an id: the part after its last colon or slash."""
    return short(clean(str(value).replace("/", ":").rsplit(":", 1)[-1].removeprefix("gpu")), 14)


def stacked(axes: Axes, labels: Sequence[str], parts: Mapping[str, Sequence[float]], colours: Mapping[str, str], *,
            horizontal: bool = False, width: float = 0.8) -> None:
    """Draw bars, one per label, each stacked from `parts` (name -> a value per label, in the axes' unit)."""
    base = [0.0] * len(labels)
    for name, values in parts.items():
        style: dict[str, Any] = {"color": colours[name], "label": name}
        style |= {"edgecolor": "white", "linewidth": 0.4} if width < 1 else {"linewidth": 0, "antialiased": False}
        if horizontal:
            axes.barh(range(len(labels)), values, left=base, height=width, **style)
        else:
            axes.bar(range(len(labels)), values, bottom=base, width=width, **style)
        base = [low + value for low, value in zip(base, values, strict=True)]
    if horizontal:
        axes.set_yticks(range(len(labels)), [clean(text) for text in labels])
        axes.invert_yaxis()
    else:
        axes.set_xticks(range(len(labels)), [clean(text) for text in labels])


def tidy(axes: Axes, grid: str = "y") -> None:
    """Take away what no reader needs, and lay a pale grid under the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, axis=grid, color="0.9", linewidth=0.6)  # type: ignore[arg-type]
    axes.set_axisbelow(True)


def parts(figure: Figure, titles: Sequence[str], heights: Sequence[float]) -> list[SubFigure]:
    """Return a part of the figure per title, one below the other, each under its title."""
    found = list(figure.subfigures(len(titles), 1, squeeze=False, height_ratios=heights)[:, 0])
    for part, text in zip(found, titles, strict=True):
        part.suptitle(text, fontsize=10, x=0.01, ha="left")
    return found


def ranked(axes: Axes, names: Sequence[str], values: Sequence[float], colours: Sequence[str], notes: Sequence[str]) -> None:
    """Draw a horizontal bar per name, first on top, with a note at its end."""
    for number, (value, colour, note) in enumerate(zip(values, colours, notes, strict=True)):
        axes.barh(number, value, height=0.75, color=colour, label="_bar")
        axes.annotate(note, (value, number), xytext=(3, 0), textcoords="offset points", va="center", fontsize=7, color="0.3")
    shown = shortened(names, NAME_LENGTH)
    axes.set_yticks(range(len(names)), [clean(shown[name]) for name in names], fontsize=7)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, (max(values) or 1) * 1.18)
    axes.tick_params(axis="x", labelsize=8)
    tidy(axes, "x")


def thinned(xs: Any, ys: Any, most: int = 4000) -> tuple[Any, Any]:
    """Return at most about `most` of the points (arrays in order of x): the least and greatest y of each stretch stay."""
    if len(xs) <= most:
        return xs, ys
    edges = np.linspace(0, len(xs), most // 2, endpoint=False).astype(np.int64)
    stretches = [(start, stop) for start, stop in zip(edges, [*edges[1:], len(xs)], strict=True)]
    kept = np.unique([place for a, b in stretches for place in (a + int(ys[a:b].argmin()), a + int(ys[a:b].argmax()))])
    return xs[kept], ys[kept]


def legend(figure: Figure, entries: Mapping[str, Any], note: str = "", height: float = 8) -> None:
    """Write one legend for all panels below them: name -> colour; `note` stands under it. height: of its letters, in points."""
    handles = [Patch(facecolor=colour, edgecolor="0.6", linewidth=0.4, label=name) for name, colour in entries.items()]
    widest = max(map(len, entries), default=0) + 5
    columns = max(1, min(len(handles), int(figure.get_figwidth() * _CHARACTERS * 8 / height / widest)))
    found = figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=height, frameon=False,
                          title=note or None, title_fontsize=height - 1)
    found.get_title().set_color("0.35")


def settle(figure: Figure) -> Figure:
    """Return the figure, laid out; a kernel may have any name, and the font need not know its letters."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure.draw_without_rendering()
    return figure
