"""nsightlens roofline: rooflines of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsightlens.cli.column_options import order, ordered, sort_option
from nsightlens.cli.complete import store_value
from nsightlens.cli.filters import chosen, confirm, filter_options, parameters_of
from nsightlens.cli.kernel_patterns import choice, known_names, unlike
from nsightlens.cli.messages import say
from nsightlens.cli.output import PICTURES, emit, format_options, store_option, views_option
from nsightlens.cli.picture import picture_options
from nsightlens.cli.roofline_messages import (
    check_gpu,
    no_match,
    report_clock,
    report_missing_roofs,
    report_problems,
    report_roofs,
    timed_elsewhere,
)
from nsightlens.cli.roofline_table import ROOFS, by_time, choose, longest, summary
from nsightlens.cli.target import Target
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.terminal.printable import printable

if TYPE_CHECKING:
    import pyarrow as pa

_LEVELS = ("dram", "l2", "l1", "all")
_TIMES = ("ncu", "nsys", "kineto")
_GRADES = ("configuration", "key", "short_name")
_TRUE_ONLY = {"grade": "configuration", "ranks": "same", "launches": "auto", "work": "any"}  # of --time nsys|kineto: defaults
_FIRST = ("roof_pct", "gflop_per_s", "flop_per_byte", "gbyte_per_s", "grid", "level", "precision", "duration_us")
"""Columns that stay longest where room is short: what the chart draws, and of what."""


@click.command("roofline")
@click.argument("captures", nargs=-1, metavar="[FILE]...", type=click.Path(path_type=Path, exists=True))
@click.option("-k", "--kernel", "kernels", multiple=True, metavar="NAME", shell_complete=store_value("kernel"),
              help="Part of the kernel's name, case-insensitive, or a pattern such as 'gemm*'; several: -k A -k B, or A,B "
                   "[default: all that ncu profiled].")
@click.option("--regex", is_flag=True, help="--kernel is a regular expression, case-sensitive.")
@click.option("--level", type=click.Choice(_LEVELS), default="dram", show_default=True, help="Memory level whose bytes count.")
@click.option("--precision", default="main", show_default=True, metavar="NAME",
              help="fp64, fp32, fp16, tensor, part of a tensor path (bf16, int8, ...), all, or main: the one with most "
                   "operations.")
@click.option("--roofs", type=click.Choice(ROOFS), default="ncu", show_default=True,
              help="ncu: peaks at the clock that ncu measured; datasheet: dense peaks. Where one is unknown, the other is used.")
@click.option("--gpu", default=None, help="Product name for the datasheet, where the report lacks it; checked against the "
                                           "report's compute capability and SMs.")
@click.option("--force-gpu", is_flag=True, help="Use --gpu for every kernel, unchecked.")
@click.option("--time", type=click.Choice(_TIMES), default="ncu", show_default=True,
              help="Source of the durations: ncu, or undisturbed launches of the same kernels in nsys or Kineto.")
@click.option("--grade", type=click.Choice(_GRADES), default="configuration", show_default=True,
              help="With --time nsys or kineto: weakest match to accept. key: other grids too; short_name: other variants too.")
@click.option("--ranks", type=click.Choice(["same", "each"]), default="same", show_default=True,
              help="With --time nsys or kineto: only the rank that ncu profiled, or each rank with the same counters.")
@click.option("--launches", type=click.Choice(["auto", "all", "matched"]), default="auto", show_default=True,
              help="With --time nsys or kineto: all launches of a configuration; only those that ncu profiled (matched); or "
                   "auto: "
                   "all where they take about the same time, else the matched ones.")
@click.option("--work", type=click.Choice(["any", "counters", "shapes"]), default="any", show_default=True,
              help="With --time nsys or kineto: work and bytes from ncu's counters, from operator shapes, or any: shapes where "
                   "there are no counters.")
@click.option("--roof", "own_roofs", multiple=True, metavar="NAME=VALUE",
              help="A roof that you measured, before ncu's and the datasheet's: dram=2.9TB/s, bf16=280TFLOP/s; repeatable.")
@click.option("--flops", "own_flops", multiple=True, metavar="KERNEL=COUNT",
              help="Operations of one launch that you counted, instead of ncu's: sgemm=2.1e9; repeatable.")
@sort_option
@filter_options
@format_options
@click.option("-o", "--output", type=Target(), default=None,
              help="Draw the chart to FILE.png, .svg or .pdf.")
@picture_options
@click.option("--notes", is_flag=True, help="Draw what is said of the chart below it.")
@click.option("--points", type=Target(), default=None,
              help="Write all columns of the view to FILE.csv, .json or .parquet.")
@store_option
@views_option
def command(
    captures: tuple[Path, ...], kernels: tuple[str, ...], regex: bool, level: str, precision: str, roofs: str, gpu: str | None,
    force_gpu: bool, time: str, grade: str, ranks: str, launches: str, work: str,
    own_roofs: tuple[str, ...], own_flops: tuple[str, ...], sort: str | None, form: str | None, wide: bool,
    output: Path | None, size: tuple[float, float] | None, title: str | None, dpi: int, notes: bool, points: Path | None,
    store: Path | None, views: Path | None, **filters: Any,
) -> None:
    """Roofline of kernels: work and traffic from ncu's counters, durations from ncu or from an undisturbed timeline.

    A table on standard output lists each kernel's performance (work / duration), arithmetic intensity (work / bytes) and share
    of the roof, longest first; --output draws the chart. Kernels that cannot be plotted are listed with what to collect.
    FILE: captures or run directories to read instead of a store; nothing is left behind.

    ncu replays each kernel alone, at a locked clock and with flushed caches. --time nsys (or kineto) takes the duration from
    the timeline instead, reports how certain the match is (grade), and also draws ncu's own point.

    \b
    nsightlens roofline --kernel s16816gemm --output roofline.pdf
    nsightlens roofline --kernel s16816gemm --time nsys --output true.pdf
    nsightlens roofline --kernel gemm --level all --precision all --points gemm.csv
    nsightlens roofline --kernel gemm --output roofline.png runs/base
    """
    import nsightlens as nl
    from nsightlens.cli.captures import opened as opened_store
    from nsightlens.op_cost.roofline_given import figures, quantities
    from nsightlens.pages.envelope import About, window_of

    if regex and not kernels:
        raise UsageError("--regex needs --kernel EXPRESSION")
    if force_gpu and gpu is None:
        raise UsageError("--force-gpu needs --gpu NAME")
    _check_ending(output, points)
    given = quantities(own_roofs, "--roof", "dram=2.9TB/s"), quantities(own_flops, "--flops", "sgemm=2.1e9")
    of_time = {"grade": grade, "ranks": ranks, "launches": launches, "work": work}
    if time == "ncu" and of_time != _TRUE_ONLY:
        raise UsageError(f"--{next(name for name in of_time if of_time[name] != _TRUE_ONLY[name])} needs --time nsys or kineto")
    with ExitStack() as stack:
        opened = opened_store(captures, store, views, stack)
        wanted = chosen(filters)
        view, more = ("roofline", {}) if time == "ncu" else ("true_roofline", of_time | {"time": time})
        filtered, about = parameters_of(view, opened.views, wanted), About(window=window_of(wanted))
        confirm(opened, wanted)
        meant = choice(kernels, known_names(opened, time) if kernels and not regex else (), regex=regex)
        for note in meant.notes:
            say(note)
        if kernels and meant.regex is None:
            raise no_match(opened, meant.unknown, wanted, time)
        for line in unlike(opened, meant.unknown):
            say(line)
        parameters: dict[str, Any] = {"kernel_regex": meant.regex, "assume_gpu": gpu, "force_gpu": force_gpu}
        table = opened.view(view, **filtered, **parameters, **more)
        if table.num_rows == 0:
            raise no_match(opened, kernels, wanted, time)
        check_gpu(opened, table, gpu)
        table = by_time(figures(choose(table, level, precision), *given))
        if not kernels and time != "ncu":
            table = longest(table)
        hint = timed_elsewhere(opened, table) if time == "ncu" else None
    points_of = summary(table, roofs)
    by = order(sort, points_of.column_names, "the table")
    emit(ordered(points_of, by), form, None, wide=wide, first=_first(points_of, [name for name, _ in by]),
         about=about)
    report_problems(table)
    report_roofs(table, roofs)
    report_missing_roofs(table, gpu)
    report_clock(table)
    if hint is not None:
        say(hint)
    if points is not None:
        emit(table, None, points, about=about)
    if output is not None:
        if not any(table["plottable"].to_pylist()):
            raise NsightlensError(f"{output} is not drawn: no kernel can be plotted, for the reasons above")
        asked: dict[str, Any] = {"roofs": roofs, "size": size, "title": title and printable(title)}
        figure = nl.plots.roofline(table, notes=notes, **asked)
        nl.plots.save(figure, output, dpi=dpi)
        for line in () if notes else figure.notes.splitlines():
            say(line)
        say(f"drawn: {output}")


def _first(points: pa.Table, asked: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that stay longest where room is short: whose kernel it is, what is asked for, what the chart draws."""
    whose = [name for name in ("run", "rank") if len(set(points[name].to_pylist())) > 1]
    return tuple(dict.fromkeys(["kernel", *whose, *asked, *_FIRST]))


def _check_ending(output: Path | None, points: Path | None) -> None:
    """Raise UsageError for an extension that cannot be written."""
    from nsightlens.store.outputs import check_ending

    for path, endings in ((output, PICTURES), (points, (".csv", ".json", ".parquet"))):
        if path is not None:
            check_ending(path, endings)
