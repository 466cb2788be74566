"""nsightlens plan-ncu: the ncu command lines for the launches worth profiling."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsightlens.cli.complete import store_value
from nsightlens.cli.filters import confirm
from nsightlens.cli.output import emit, output_options, store_option, views_option
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.terminal.output import echo
from nsightlens.terminal.quoting import quoted, shell_line
from nsightlens.views.figures import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.store.store import Store

_SECONDS = {"": 1, "s": 1, "min": 60, "m": 60, "h": 3600}
_SHOWN = ("start", "kernel", "launch_skip", "launch_count", "configurations", "time_pct", "passes", "estimated_s")


@click.command("plan-ncu")
@click.argument("application", nargs=-1, type=click.UNPROCESSED)
@click.option("--run", default=None, metavar="NAME", shell_complete=store_value("run"),
              help="The run to plan for [default: the only one].")
@click.option("--rank", default=None, type=int, help="The rank to profile [default: the lowest].")
@click.option("--cover", default=90.0, show_default=True, metavar="PERCENT",
              help="Share of the GPU time, without collectives, to cover.")
@click.option("--set", "metric_set", default="roofline", show_default=True,
              type=click.Choice(["minimal", "basic", "roofline", "detailed", "full"]), help="Counters, as in ncu_wrapper.sh.")
@click.option("--budget", default=None, metavar="TIME", help="Only what fits into this time, such as 90s, 10min or 2h.")
@click.option("--wrapper", default="wrappers/ncu_wrapper.sh", show_default=True, help="Path of ncu_wrapper.sh.")
@click.option("--run-dir", default="ncu-plan", show_default=True, metavar="DIR", help="Folder for captures: DIR/01, DIR/02, ….")
@click.option("--lines", is_flag=True, help="Print the command lines only.")
@output_options
@store_option
@views_option
def command(
    application: tuple[str, ...], run: str | None, rank: int | None, cover: float, metric_set: str, budget: str | None,
    wrapper: str, run_dir: str, lines: bool, form: str | None, output: Path | None, wide: bool, store: Path | None,
    views: Path | None,
) -> None:
    """Choose the launches worth profiling with ncu, and print the command lines that do it.

    The plan takes one launch per kernel and configuration, until --cover percent of the GPU time has counters, but never
    collectives or the warm-up. APPLICATION is the program with its arguments, after --; without it the lines end in "$@", and
    the script takes the program as its arguments. Passes and seconds are rough estimates (see the view ncu_plan). With these
    lines ncu also records the NVTX ranges around each launch, by which ingest matches the launch with the timeline.

    \b
    nsightlens plan-ncu --run base --budget 10min -- python train.py --steps 5
    nsightlens plan-ncu --lines > plan.sh; bash plan.sh python train.py --steps 5
    nsightlens ingest ncu-plan
    """
    import nsightlens as nl

    if lines and (form or output):
        raise UsageError("--lines goes with neither --format nor --output: nsightlens plan-ncu --lines > plan.sh")
    with nl.open(store, views=views) as opened:
        confirm(opened, {} if rank is None else {"rank": [rank]})
        plan = opened.view("ncu_plan", which_run=_chosen(opened, run), which_rank=rank, cover=cover, metric_set=metric_set,
                           budget_s=None if budget is None else seconds(budget))
    rows = [row for row in plan.to_pylist() if row["fits"]]
    _report(plan, rows, budget)
    printed = [_line(number, row, wrapper, run_dir, metric_set, application) for number, row in enumerate(rows, 1)]
    if lines:
        echo("\n".join(printed))
        return
    if output or form not in (None, "table"):
        emit(_table(plan, rows, printed), form, output, wide=wide)
        return
    named = [row | {"kernel": row["word"] or row["kernel"] or "all but collectives"} for row in rows]
    emit(_table(plan, named, printed).select(_SHOWN), form, None, wide=wide)
    echo("\n" + "\n".join(printed))


def seconds(text: str) -> float:
    """Return the seconds that people write as 90, 90s, 10min or 1.5h. Raises UsageError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|m|h|)\s*", text)
    if found is None:
        raise UsageError(f"--budget {text}: give a time such as 90s, 10min or 2h", subject="budget", value=text)
    return float(found[1]) * _SECONDS[found[2]]


def _chosen(store: Store, run: str | None) -> str:
    """Return the run to plan for. Raises UsageError where it is not there or open, NsightlensError where there is none."""
    runs: list[str] = store.sql("SELECT DISTINCT run FROM timeline_kernels ORDER BY run")["run"].to_pylist()
    if not runs:
        raise NsightlensError("the store has no kernel timeline to plan from: ingest an nsys or PyTorch-profiler capture")
    if run is None and len(runs) > 1:
        raise UsageError(f"there are several runs; give --run {' or --run '.join(map(quoted, runs))}",
                         subject="run", choices=runs)
    if run is not None and run not in runs:
        raise UsageError(f"no kernel timeline of a run {run}; there are {', '.join(runs)}",
                         subject="run", value=run, choices=runs)
    return runs[0] if run is None else run


def _line(
    number: int, row: dict[str, Any], wrapper: str, run_dir: str, metric_set: str, application: tuple[str, ...],
) -> str:
    """Return the command line of one start, quoted for a shell."""
    ranks = () if row["rank"] is None else ("--ranks", str(row["rank"]))
    words = (Path(wrapper), *ranks, "--run-dir", Path(run_dir, f"{number:02}"), "--run-id", row["run"], "--set", metric_set,
             *(() if row["kernel"] is None else ("-k", row["kernel"], "--kernel-name-base", row["name_base"])),
             "--launch-skip", str(row["launch_skip"]), "--launch-count", str(row["launch_count"]), "--")
    return f"{shell_line(*words)} " + (shell_line(*application) if application else '"$@"')


def _table(plan: pa.Table, rows: list[dict[str, Any]], printed: list[str]) -> pa.Table:
    """Return the plan with the number of each start and its command line."""
    import pyarrow as pa

    table = pa.Table.from_pylist(rows, schema=plan.schema).drop_columns(["fits"])
    table = table.add_column(0, "start", pa.array(range(1, len(rows) + 1), pa.int64()))
    return table.append_column("line", pa.array(printed, pa.string()))


def _report(plan: pa.Table, rows: list[dict[str, Any]], budget: str | None) -> None:
    """Say what the plan covers and what it assumes. Raises NsightlensError where it is empty."""
    if not plan.num_rows:
        raise NsightlensError("no kernel to profile: the rank has no timeline, launched only collectives, or its kernels have "
                              "no names")
    if not rows:
        least = min(plan["estimated_s"].to_pylist())
        raise NsightlensError(f"nothing fits into {budget}: the cheapest run takes about {least:.0f} s")
    minutes, covered = sum(row["estimated_s"] for row in rows) / 60, sum(row["time_pct"] for row in rows)
    left = plan.num_rows - len(rows)
    more = f"; {left} more do not fit into {budget}" if left else ""
    echo(f"{counted(len(rows), 'run')} of the program, about {minutes:.0f} min (a rough estimate), cover {covered:.0f} % "
         f"of the GPU time without collectives{more}", err=True)
    if rows[0]["tool"] == "kineto":
        echo("the trace does not show what ran before it: --launch-skip is an estimate, and a whole step of each kernel is "
             "profiled", err=True)
