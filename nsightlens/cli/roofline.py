"""nsightlens roofline: rooflines of kernels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsightlens.cli.arranging import order, ordered, sort_option
from nsightlens.cli.complete import of_store
from nsightlens.cli.filters import chosen, confirm, filter_options, parameters_of
from nsightlens.cli.kernel_patterns import choice, known_names, unlike
from nsightlens.cli.messages import say
from nsightlens.cli.output import PICTURES, emit, format_options, store_option, views_option
from nsightlens.cli.picture import picture_options
from nsightlens.cli.target import Target
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.names.kernel_names import labels
from nsightlens.terminal.printable import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.store.store import Store

_ROOFS = ("ncu", "datasheet")
_SHARES = {"ncu": "roof_pct", "datasheet": "datasheet_roof_pct"}
_LEVELS = ("dram", "l2", "l1", "all")
_CORE = ("fp64", "fp32", "fp16")
_NO_SHAPES = "; nor is their work known from operator shapes (record_shapes=True)"
_NAMED = 3
_TIMES = ("ncu", "nsys", "kineto")
_GRADES = ("configuration", "key", "short_name")
_TYPES = {"rank": "int64", "launches": "int64", **dict.fromkeys((
    "run", "kernel", "grid", "block", "clocks", "level", "precision", "work", "time", "grade", "time_launches",
    "roof_clock", "shapes"), "string")}
_TRUE_ONLY = {"grade": "configuration", "ranks": "same", "launches": "auto", "work": "any"}  # of --time nsys|kineto: defaults
_FIRST = ("roof_pct", "gflop_per_s", "flop_per_byte", "gbyte_per_s", "grid", "level", "precision", "duration_us")
"""Columns that stay longest where room is short: what the chart draws, and of what."""
_MOST = 20  # kernels from shapes, where none is asked for by name


@click.command("roofline")
@click.argument("captures", nargs=-1, metavar="[FILE]...", type=click.Path(path_type=Path, exists=True))
@click.option("-k", "--kernel", "kernels", multiple=True, metavar="NAME", shell_complete=of_store("kernel"),
              help="Part of the kernel's name, case-insensitive, or a pattern such as 'gemm*'; several: -k A -k B, or A,B "
                   "[default: all that ncu profiled].")
@click.option("--regex", is_flag=True, help="--kernel is a regular expression, case-sensitive.")
@click.option("--level", type=click.Choice(_LEVELS), default="dram", show_default=True, help="Memory level whose bytes count.")
@click.option("--precision", default="main", show_default=True, metavar="NAME",
              help="fp64, fp32, fp16, tensor, part of a tensor path (bf16, int8, ...), all, or main: the one with most "
                   "operations.")
@click.option("--roofs", type=click.Choice(_ROOFS), default="ncu", show_default=True,
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
    force_gpu: bool, time: str, grade: str, ranks: str, launches: str, work: str, sort: str | None, form: str | None, wide: bool,
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

    if regex and not kernels:
        raise UsageError("--regex needs --kernel EXPRESSION")
    if force_gpu and gpu is None:
        raise UsageError("--force-gpu needs --gpu NAME")
    _check_ending(output, points)
    of_time = {"grade": grade, "ranks": ranks, "launches": launches, "work": work}
    if time == "ncu" and of_time != _TRUE_ONLY:
        raise UsageError(f"--{next(name for name in of_time if of_time[name] != _TRUE_ONLY[name])} needs --time nsys or kineto")
    with ExitStack() as stack:
        opened = opened_store(captures, store, views, stack)
        wanted = chosen(filters)
        view, more = ("roofline", {}) if time == "ncu" else ("true_roofline", of_time | {"time": time})
        filtered = parameters_of(view, opened.views, wanted)
        confirm(opened, wanted)
        meant = choice(kernels, known_names(opened, time) if kernels and not regex else (), regex=regex)
        for note in meant.notes:
            say(note)
        if kernels and meant.regex is None:
            raise _no_match(opened, meant.unknown, wanted, time)
        for line in unlike(opened, meant.unknown):
            say(line)
        parameters: dict[str, Any] = {"kernel_regex": meant.regex, "assume_gpu": gpu, "force_gpu": force_gpu}
        table = opened.view(view, **filtered, **parameters, **more)
        if table.num_rows == 0:
            raise _no_match(opened, kernels, wanted, time)
        _check_gpu(opened, table, gpu)
        table = by_time(choose(table, level, precision))
        if not kernels and time != "ncu":
            table = _longest(table)
        hint = _timed_elsewhere(opened, table) if time == "ncu" else None
    points_of = summary(table, roofs)
    by = order(sort, points_of.column_names, "the table")
    emit(ordered(points_of, by), form, None, wide=wide, first=_first(points_of, [name for name, _ in by]))
    _report_problems(table)
    _report_roofs(table, roofs)
    _report_missing_roofs(table, gpu)
    _report_clock(table)
    if hint is not None:
        say(hint)
    if points is not None:
        emit(table, None, points)
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


def _timed_elsewhere(store: Store, table: pa.Table) -> str | None:
    """Return a hint that another tool timed the same configurations undisturbed; None where none did."""
    key = ("run", "kernel_key", *(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"))
    mine = {tuple(row[name] for name in key) for row in table.to_pylist()}
    timed = store.sql(f"SELECT DISTINCT tool, {', '.join(key)} FROM kernels WHERE tool <> 'ncu' AND list_contains(?, kernel_key)",
                      [sorted({str(one[1]) for one in mine})]).to_pylist()
    tools = Counter(row["tool"] for row in timed if tuple(row[name] for name in key) in mine)
    tool = max(tools, default=None)  # 'nsys' before 'kineto'
    return tool and (f"{tool} timed {tools[tool]} of these {len(mine)} configurations undisturbed: "
                     f"for the true roofline add --time {tool}")


def _report_clock(table: pa.Table) -> None:
    """Print the clock that the roofs hold for."""
    if "roof_clock_source" in table.column_names:
        clocks: dict[str, set[str]] = defaultdict(set)
        for row in table.to_pylist():
            if row["plottable"] and row["roof_clock_source"]:
                clocks[row["roof_clock_source"]].add(f"{row['roof_clock_hz'] / 1e9:.3g}")
        sampled = {row["roof_clock_source"] for row in table.to_pylist() if row.get("sampled_launches")}
        for name, hz in clocks.items():
            span = " to ".join(dict.fromkeys((min(hz, key=float), max(hz, key=float))))
            unknown = "" if name in sampled else "; the clock during the launches is unknown"
            say(f"roofs at the {name}, {span} GHz{unknown}")


def _clock(row: dict[str, Any]) -> str | None:
    """Return the clock of a row's roofs: '1.41 GHz, locked clock of ncu'."""
    return row["roof_clock_source"] and f"{row['roof_clock_hz'] / 1e9:.3g} GHz, {row['roof_clock_source']}"


def choose(table: pa.Table, level: str, precision: str) -> pa.Table:
    """Return the rows of this level and precision. Raises UsageError for a precision that no row has."""
    import pyarrow.compute as pc

    if level != "all":
        table = table.filter(pc.equal(table["level"], level))
    wanted = precision.lower()
    if wanted == "all":
        # A path that a kernel does not use is not worth a line.
        return table.filter(pc.or_(table["is_main"], pc.not_equal(table["achieved_flop_per_s"].fill_null(1), 0)))
    if wanted == "main":
        return table.filter(table["is_main"])
    names = table["precision"].fill_null("")
    # A row whose tensor work was not counted belongs to every tensor path: it says what to collect.
    is_path = pc.and_(pc.starts_with(names, "tensor"), pc.or_(pc.match_substring(names, wanted), pc.equal(names, "tensor")))
    chosen = table.filter(pc.equal(names, wanted) if wanted in _CORE else is_path)
    if chosen.num_rows == 0:
        known = sorted({name for name in names.to_pylist() if name})
        raise UsageError(f"no kernel has precision {precision}; there are {', '.join(known) or 'none'}",
                         subject="precision", value=precision, choices=known)
    return chosen


def by_time(table: pa.Table) -> pa.Table:
    """Return the rows, configurations with the longest launches first; in a true roofline those with the most time in all.

    Rows of a configuration stay together; those of unknown time come last.
    """
    rows = table.to_pylist()
    times: dict[object, float] = defaultdict(lambda: -1.0)
    for row in rows:
        launches = row["launches"] if "time_tool" in row else 1
        times[row["configuration_id"]] = max(times[row["configuration_id"]], (row["duration_ns"] or -1) * (launches or 1))
    first = {key: place for place, key in enumerate(dict.fromkeys(row["configuration_id"] for row in rows))}
    order = sorted(range(len(rows)), key=lambda i: (-times[rows[i]["configuration_id"]], first[rows[i]["configuration_id"]], i))
    return table.take(order)


def summary(table: pa.Table, roofs: str) -> pa.Table:
    """Return the key columns, in units that people read."""
    import pyarrow as pa

    points = table.to_pylist()
    names = labels({row["name"] for row in points})
    is_true = "time_tool" in table.column_names
    rows = []
    for row in points:
        shares = [row[_SHARES[source]] for source in sorted(_ROOFS, key=roofs.__ne__)]
        other, others_rate = ("ncu", "ncu_achieved_flop_per_s") if is_true else ("ncu_chart", "ncu_chart_flop_per_s")
        rows.append({
            "run": row["run"], "rank": row["rank"], "kernel": names[row["name"]],
            "grid": _shape(row, "grid"), "block": _shape(row, "block"), "clocks": row["clock_control"],
            "level": row["level"], "precision": row["precision"], "duration_us": _scaled(row["duration_ns"], 1e3),
            "gflop_per_s": _scaled(row["achieved_flop_per_s"], 1e9) if row["plottable"] else None,
            "flop_per_byte": row["arithmetic_intensity"] if row["plottable"] else None,
            "roof_pct": next((share for share in shares if share is not None), None),
            "gbyte_per_s": _scaled(row["achieved_bytes_per_s"], 1e9), "launches": row["launches"],
            **(_timing(row) if is_true else _range(row)),
            f"{other}_gflop_per_s": _scaled(row[others_rate], 1e9) if row["plottable"] else None,
            **(_spread(row) if is_true else {}),
        } | ({"roof_clock": _clock(row), "shapes": _shapes(row)} if is_true else {}))
    found = pa.Table.from_pylist(rows, schema=pa.schema([(name, _TYPES.get(name, "float64")) for name in rows[0]]))
    one_clock = ["clocks"] if len({row["clocks"] for row in rows}) < 2 else []
    no_shapes = ["shapes"] if is_true and not any(row["shapes"] for row in rows) else []
    spread = [] if is_true or any(row["min_gflop_per_s"] != row["max_gflop_per_s"] for row in rows) else list(_range({}))
    return found.drop_columns(one_clock + no_shapes + spread)


def _range(row: dict[str, Any]) -> dict[str, float | None]:
    """Return what the launches achieved at least and at most, where there are several."""
    several = row.get("plottable") and (row["launches"] or 0) > 1
    return {f"{end}_{name}": _scaled(row[f"{end}_achieved_{column}"], 1e9) if several else None for name, column in
            (("gflop_per_s", "flop_per_s"), ("gbyte_per_s", "bytes_per_s")) for end in ("min", "max")}


def _timing(row: dict[str, Any]) -> dict[str, Any]:
    """Return the sources of work and time, and how certain it is that they are of the same launches."""
    some = {"all ranks": ", all ranks", "another rank": ", another rank"}.get(row["time_ranks"], "")
    return {"work": row["work_source"], "time": row["time_tool"], "grade": row["time_grade"] and row["time_grade"] + some,
            "time_launches": row["time_launches"]}


def _shapes(row: dict[str, Any]) -> str | None:
    """Return the operator and its shapes, where the work comes from them."""
    return row["traffic_source"] if row["work_source"] == "shapes" else None


def _longest(table: pa.Table) -> pa.Table:
    """Return the table with at most _MOST kernels from shapes: those with the most time, which come first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    counted, shaped = (table.filter(pc.equal(table["work_source"], source)) for source in ("counters", "shapes"))
    if shaped.num_rows <= _MOST:
        return table
    say(f"{shaped.num_rows - _MOST} more kernels from shapes with less time: --kernel NAME shows them")
    return pa.concat_tables([counted, shaped.slice(0, _MOST)])


def _spread(row: dict[str, Any]) -> dict[str, float | None]:
    """Return the spread of the launches around their median, in us."""
    return {f"{name}_us": _scaled(row[f"{name}_duration_ns"], 1e3) for name in ("min", "p5", "p95", "max")}


def _shape(row: dict[str, Any], what: str) -> str:
    return "x".join("?" if row[f"{what}_{axis}"] is None else str(row[f"{what}_{axis}"]) for axis in "xyz")


def _scaled(value: float | None, by: float) -> float | None:
    return None if value is None else value / by


def _report_problems(table: pa.Table) -> None:
    """Print, once per reason, which kernels could not be plotted, and which points may mislead."""
    named = labels({row["name"] for row in table.to_pylist()})
    unmatched = {row["not_plottable_reason"] for row in table.to_pylist() if row.get("time_tool") and row["time_grade"] is None}
    for column, verb in (("not_plottable_reason", "not plotted"), ("warning", "warning")):
        kernels: dict[str, dict[str, None]] = defaultdict(dict)
        for row in table.to_pylist():
            if row[column] is not None:
                kernels[row[column]][named[row["name"]]] = None
        for reason, names in kernels.items():
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            say(f"{verb}: {', '.join(list(names)[:_NAMED])}{more}: {reason}")
            if reason in unmatched:
                say("if the captures are of different programs, ingest each with a --run NAME of its own")


def _report_roofs(table: pa.Table, roofs: str) -> None:
    """Print the roofs that the shares are of, with five digits."""
    found: dict[str, dict[tuple[str, str], set[float]]] = defaultdict(lambda: defaultdict(set))
    for row in table.to_pylist():
        for what, kind, unit in ((row["precision"], "flop", "FLOP/s"), (row["level"], "bytes", "B/s")):
            values = {"ncu": row[f"peak_{kind}_per_s"], "datasheet": row[f"datasheet_peak_{kind}_per_s"]}
            source = next((one for one in sorted(_ROOFS, key=roofs.__ne__) if values[one]), None)
            if source is not None and row["achieved_bytes_per_s"] is not None:
                found[source][what, unit].add(values[source])
    for source, by_what in found.items():
        listed = [f"{what} {_span(values)}{unit}" for (what, unit), values in by_what.items()]
        say(f"roofs of {'ncu' if source == 'ncu' else 'the datasheet'}: {', '.join(listed)}")


def _span(values: set[float]) -> str:
    scale, prefix = (1e12, "T") if max(values) >= 1e12 else (1e9, "G")
    return " to ".join(dict.fromkeys(f"{value / scale:,.5g}" for value in (min(values), max(values)))) + f" {prefix}"


def _report_missing_roofs(table: pa.Table, gpu: str | None) -> None:
    """Print for which precisions and levels no roof is known, and how to get one."""
    missing: dict[str, dict[str, None]] = defaultdict(dict)
    for row in table.to_pylist():
        if row["plottable"]:
            hint = "the report does not name its GPU: use --gpu NAME"
            if row["gpu"] or gpu:
                sheet = row["datasheet_gpu"]
                hint = f"the datasheet of {sheet} has none" if sheet else f"no datasheet for {row['gpu'] or gpu}"
            for what, roof in ((row["precision"], "peak_flop_per_s"), (row["level"], "peak_bytes_per_s")):
                if row[roof] is None and row[f"datasheet_{roof}"] is None:
                    missing[hint][what] = None
    for hint, names in missing.items():
        say(f"no roof for {', '.join(names)}: {hint}")


def _no_match(store: Store, kernels: Sequence[str], wanted: dict[str, list[object]], time: str) -> NsightlensError:
    """Return why there are no rows: no kernel of such a name (a UsageError), or no ncu capture at all."""
    counted = store.sql("SELECT DISTINCT name, run, rank, family FROM ncu_by_config").to_pylist()
    unknown = "" if time == "ncu" else _NO_SHAPES
    if not counted:
        timed = store.sql("SELECT DISTINCT tool FROM timeline_kernels ORDER BY tool DESC")["tool"].to_pylist()
        shapes = f"; from operator shapes alone: --time {timed[0]}" if timed and time == "ncu" else ""
        return NsightlensError("the store has no kernel that ncu profiled: ingest an ncu report (ncu --set roofline --export "
                               f"FILE){shapes}{unknown}")
    here = [row for row in counted if all(row[column] in values for column, values in wanted.items())]
    if not here:
        selected = ", ".join(f"{column} {', '.join(map(str, values))}" for column, values in wanted.items())
        runs = ", ".join(sorted({f"{row['run']} (rank {'unknown' if row['rank'] is None else row['rank']})" for row in counted}))
        return NsightlensError(f"ncu profiled nothing of {selected}; it profiled kernels of {runs}{unknown}")
    if not kernels:
        return NsightlensError(f"ncu profiled kernels, but none of their counters can be read{unknown}")
    return UsageError("; ".join(unlike(store, kernels)) + unknown, subject="kernel", value=kernels[0],
                      choices=sorted({row["name"] for row in counted}))


def _check_gpu(store: Store, table: pa.Table, gpu: str | None) -> None:
    """Print where --gpu is not used, and why. Raises UsageError where it is used for no kernel."""
    if gpu is None:
        return
    known = store.sql("SELECT s.datasheet AS mine, g.name FROM _datasheet(product := ?) AS s, gpu_peaks AS g ORDER BY g.name",
                      [gpu]).to_pylist()
    if known[0]["mine"] is None:
        raise UsageError(f"no datasheet for {gpu!r}; there are: {', '.join(row['name'] for row in known)}", subject="gpu",
                         value=gpu, choices=[row["name"] for row in known])
    rows = table.to_pylist()
    reasons = dict.fromkeys(row["datasheet_source"] for row in rows if " not used: it has " in (row["datasheet_source"] or ""))
    named = dict.fromkeys(row["gpu"] for row in rows if row["gpu"] and "; forced" not in (row["datasheet_source"] or ""))
    texts = [*reasons, *(f"{gpu} not used: the report's GPU is named, {name}" for name in named)]
    hint = "; --force-gpu uses it anyway"
    if texts and all(row["datasheet_gpu"] is None for row in rows):
        raise UsageError(f"--gpu {'; '.join(texts)}{hint}")
    for text in texts:
        say(f"--gpu {text}{hint}")
