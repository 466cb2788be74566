"""nsightlens roofline: kernels under the roofs of their GPU."""

from __future__ import annotations

import difflib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsightlens.cli.output import as_text, emit, store_option
from nsightlens.errors import NsightlensError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.store import Store

_ROOFS = ("measured", "datasheet")
_LEVELS = ("dram", "l2", "l1", "all")
_CORE = ("fp64", "fp32", "fp16")
_NAMED = 3


@click.command("roofline")
@click.option("-k", "--kernel", default=None, help="Part of the kernel's name, in any case [default: all that ncu measured].")
@click.option("--regex", is_flag=True, help="--kernel is a regular expression.")
@click.option("--level", type=click.Choice(_LEVELS), default="dram", show_default=True, help="Where the bytes are counted.")
@click.option("--precision", default="main", show_default=True, metavar="NAME",
              help="fp64, fp32, fp16, tensor, a part of a tensor path (bf16, int8, ...), all, or main: that of most operations.")
@click.option("--roofs", type=click.Choice(_ROOFS), default="measured", show_default=True,
              help="Peaks at the clock that ncu measured, or dense ones of the datasheet; where one is unknown, the other.")
@click.option("--gpu", default=None, help="Product name for the datasheet, where the report does not tell it.")
@click.option("--run", default=None, help="Only this run.")
@click.option("--rank", type=int, default=None, help="Only this rank.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), default=None,
              help="Draw to FILE.png, .svg or .pdf.")
@click.option("--points", type=click.Path(path_type=Path, dir_okay=False), default=None,
              help="Write all columns of the view to FILE.csv, .json or .parquet.")
@store_option
def command(
    kernel: str | None, regex: bool, level: str, precision: str, roofs: str, gpu: str | None, run: str | None, rank: int | None,
    output: Path | None, points: Path | None, store: Path | None,
) -> None:
    """Place the kernels that ncu measured under the roofs of their GPU.

    Work over duration against work over bytes, from ncu's counters. A table on standard output says where each kernel stands;
    --output draws it. Kernels that cannot be placed are named with what to collect.

    \b
    nsightlens roofline --kernel s16816gemm --output roofline.pdf
    nsightlens roofline --kernel flash --level all --precision all --points flash.csv
    """
    import nsightlens as nl

    if regex and kernel is None:
        raise UsageError("--regex needs --kernel EXPRESSION")
    _check_ending(output, points)
    with nl.open(store) as opened:
        table = _ask(opened, kernel, regex, gpu=gpu, run=run, rank=rank)
        if table.num_rows == 0:
            raise NsightlensError(_no_match(opened, kernel, run, rank))
        _check_gpu(opened, table, gpu)
    table = choose(table, level, precision)
    click.echo(as_text(summary(table, roofs)), nl=False)
    _tell(table)
    if points is not None:
        emit(table, None, points)
    if output is not None:
        nl.plots.save(nl.plots.PLOTS["roofline"](table, roofs=roofs), output)
        click.echo(f"drawn: {output}", err=True)


def _check_ending(output: Path | None, points: Path | None) -> None:
    """Refuse a file name before the work is done, not after."""
    for path, endings in ((output, (".png", ".svg", ".pdf")), (points, (".csv", ".json", ".parquet"))):
        if path is not None and path.suffix.lower() not in endings:
            raise UsageError(f"{path}: the name must end in {' or '.join(endings)}")


def _ask(store: Store, kernel: str | None, regex: bool, *, gpu: str | None, run: str | None, rank: int | None) -> pa.Table:
    filters = {"only_run": run, "only_rank": rank}
    parameters: dict[str, object] = {name: value for name, value in filters.items() if value is not None}
    parameters["assume_gpu"] = gpu
    if kernel is not None:
        parameters["kernel_regex" if regex else "kernel"] = kernel
    return store.view("roofline", **parameters)


def choose(table: pa.Table, level: str, precision: str) -> pa.Table:
    """Return the rows of the level and the precision asked for. Raises UsageError for a precision that no row has."""
    import pyarrow.compute as pc

    if level != "all":
        table = table.filter(pc.equal(table["level"], level))
    wanted = precision.lower()
    if wanted == "all":
        # A path that a kernel does not use is not worth a line.
        return table.filter(pc.or_(table["is_main"], pc.not_equal(table["work_flop"].fill_null(1), 0)))
    if wanted == "main":
        return table.filter(table["is_main"])
    names = table["precision"].fill_null("")
    # A row whose tensor work was not counted answers every question for a tensor path: it says what to collect.
    is_path = pc.and_(pc.starts_with(names, "tensor"), pc.or_(pc.match_substring(names, wanted), pc.equal(names, "tensor")))
    chosen = table.filter(pc.equal(names, wanted) if wanted in _CORE else is_path)
    if chosen.num_rows == 0:
        known = sorted({name for name in names.to_pylist() if name})
        raise UsageError(f"no kernel has precision {precision}; there are {', '.join(known) or 'none'}")
    return chosen


def summary(table: pa.Table, roofs: str) -> pa.Table:
    """Return the few columns that a person reads first, in units a person reads."""
    import pyarrow as pa

    rows = []
    for row in table.to_pylist():
        shares = [row[f"{source}_share_pct"] for source in sorted(_ROOFS, key=roofs.__ne__)]
        rows.append({
            "kernel": row["short_name"] or row["name"],
            "grid": "x".join(str(row[f"grid_{axis}"]) for axis in "xyz"),
            "level": row["level"], "precision": row["precision"], "launches": row["launches"],
            "duration_us": _scaled(row["duration_ns"], 1e3),
            "gflop_per_s": _scaled(row["performance_flop_per_s"], 1e9) if row["placed"] else None,
            "gbyte_per_s": _scaled(row["bandwidth_bytes_per_s"], 1e9),
            "flop_per_byte": row["arithmetic_intensity"] if row["placed"] else None,
            "of_roof_pct": next((share for share in shares if share is not None), None),
            "chart_gflop_per_s": _scaled(row["chart_flop_per_s"], 1e9) if row["placed"] else None,
        })
    text, number = pa.string(), pa.float64()
    types = {"kernel": text, "grid": text, "level": text, "precision": text, "launches": pa.int64()}
    names = list(rows[0]) if rows else []
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, types.get(name, number)) for name in names]))


def _scaled(value: float | None, by: float) -> float | None:
    return None if value is None else value / by


def _tell(table: pa.Table) -> None:
    """Say, once per reason, which kernels could not be placed, and which points may mislead."""
    for column, verb in (("not_placed_reason", "not placed"), ("caution", "with caution")):
        kernels: dict[str, dict[str, None]] = defaultdict(dict)
        for row in table.to_pylist():
            if row[column] is not None:
                kernels[row[column]][_cut(row["short_name"] or row["name"])] = None
        for reason, names in kernels.items():
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            click.echo(f"{verb}: {', '.join(list(names)[:_NAMED])}{more}: {reason}", err=True)


def _no_match(store: Store, kernel: str | None, run: str | None, rank: int | None) -> str:
    """Return why no row came: other kernels near the name, or no ncu capture at all."""
    counted = store.sql("SELECT DISTINCT coalesce(short_name, name) AS short, run, rank FROM ncu_configuration").to_pylist()
    if not counted:
        return "the store holds no kernel that ncu measured: ingest a report of ncu (--set roofline --csv --page raw)"
    here = [row for row in counted if (run is None or row["run"] == run) and (rank is None or row["rank"] == rank)]
    if not here:
        runs = ", ".join(sorted({f"{row['run']} (rank {'unknown' if row['rank'] is None else row['rank']})" for row in counted}))
        return f"ncu measured nothing in run {run or 'any'}, rank {'any' if rank is None else rank}; there are: {runs}"
    if kernel is None:
        return "ncu measured kernels, but none of their counters can be read"
    near = ", ".join(_nearest(kernel, here))
    return f"ncu measured no kernel like {kernel!r}; the nearest names: {near}" + _elsewhere(store, kernel)


def _nearest(kernel: str, rows: list[dict[str, Any]]) -> list[str]:
    """Return up to five names near `kernel`, by the whole name or by a word of it."""
    def likeness(name: str) -> float:
        words = (name.lower(), *name.lower().split("_"))
        return max(difflib.SequenceMatcher(None, kernel.lower(), word).ratio() for word in words)

    names = sorted({row["short"] for row in rows}, key=lambda name: (-likeness(name), name))
    return [_cut(name) for name in names[:5]]


def _elsewhere(store: Store, kernel: str) -> str:
    seen = store.sql("SELECT DISTINCT tool FROM kernels WHERE tool <> 'ncu' AND contains(lower(name), lower(?)) ORDER BY tool",
                     [kernel]).column("tool").to_pylist()
    return f". {' and '.join(seen)} saw such kernels, without counters: profile them with ncu" if seen else ""


def _check_gpu(store: Store, table: pa.Table, gpu: str | None) -> None:
    if gpu is not None and not any(table["datasheet_gpu"].to_pylist()):
        known = store.sql("SELECT name FROM gpu_peaks ORDER BY name").column("name").to_pylist()
        raise UsageError(f"no datasheet of {gpu!r}; there are: {', '.join(known)}")


def _cut(name: str) -> str:
    printable = "".join(c if c.isprintable() else "?" for c in name)
    return printable if len(printable) <= 60 else f"{printable[:38]}…{printable[-21:]}"
