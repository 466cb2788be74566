"""nsightlens export: the store in the formats of other programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsightlens.cli.complete import store_value
from nsightlens.cli.filters import chosen, confirm
from nsightlens.cli.output import store_option, views_option, write
from nsightlens.cli.target import Target
from nsightlens.errors import UsageError
from nsightlens.terminal.output import echo
from nsightlens.views.figures import counted

if TYPE_CHECKING:
    from nsightlens.perfetto import Export

_ENDINGS = {"speedscope": (".json",), "collapsed": (".txt", ".folded", ".collapsed")}
_VIEWERS = {"speedscope": "open it at speedscope.app", "collapsed": "draw it with flamegraph.pl"}


@click.group("export")
def command() -> None:
    """Write the store's content in another program's format.

    \b
    nsightlens export perfetto -o trace.json.gz
    nsightlens export flamegraph -o gpu.speedscope.json
    """


@command.command("perfetto")
@click.option("-o", "--output", required=True, type=Target(),
              help="FILE.json, or FILE.json.gz to compress it.")
@click.option("--run", "only_run", multiple=True, metavar="NAME", shell_complete=store_value("run"), help="Only this run.")
@click.option("--rank", "only_rank", multiple=True, metavar="NUMBERS", help="Only these ranks: 3, 0,2 or 0-7.")
@click.option("--step", "only_step", multiple=True, metavar="A-B", help="Only CPU work that began, and GPU work that was "
                                                                        "launched, in these steps.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary; errors only.")
@store_option
@views_option
def perfetto(output: Path, quiet: bool, store: Path | None, views: Path | None, **filters: tuple[str, ...]) -> None:
    """Write the timeline of nsys and PyTorch-profiler captures as a trace-event file.

    Open it at ui.perfetto.dev or in chrome://tracing. The ranks of one execution share a time axis, aligned by the epoch times
    in their captures; each other execution starts at its own zero. Times are exact to the ns.

    \b
    nsightlens export perfetto -o trace.json.gz
    nsightlens export perfetto --run base --rank 0-1 --step 2-3 -o steps.json.gz
    """
    import nsightlens as nl
    from nsightlens.perfetto import export

    asked: dict[str, Any] = chosen({"only_tool": (), "only_family": (), **filters})
    with nl.open(store, views=views) as opened, ExitStack() as stack:
        progress = None if quiet else _progress(stack)
        written = export(opened, output, runs=asked.get("run"), ranks=asked.get("rank"), steps=_span(asked.get("step")),
                         on_progress=progress)
    if not quiet:
        _report(written)


@command.command("flamegraph")
@click.option("--weight", type=click.Choice(["gpu", "host", "launches", "cpu_samples", "cpu_samples_while_gpu_idle"]),
              default="gpu", show_default=True,
              help="GPU time, host time, or kernels and memory operations launched, by Python stack; or CPU samples of nsys, by "
                   "sampled stack.")
@click.option("--format", "format_", type=click.Choice(["speedscope", "collapsed"]), default="speedscope", show_default=True,
              help="JSON for speedscope.app, or one line per stack for flamegraph.pl and similar tools.")
@click.option("-o", "--output", type=Target(), help="FILE; without it, standard output.")
@click.option("--run", "only_run", multiple=True, metavar="NAME", shell_complete=store_value("run"), help="Only this run.")
@click.option("--rank", "only_rank", multiple=True, metavar="NUMBERS", help="Only these ranks: 3, 0,2 or 0-7.")
@store_option
@views_option
def flamegraph(
    weight: str, format_: str, output: Path | None, store: Path | None, views: Path | None, **filters: tuple[str, ...],
) -> None:
    """Write the Python stacks of PyTorch-profiler captures, or the CPU samples of nsys, as a flame graph.

    A stack's weight is what its innermost frame launched or took itself, so the weights sum to the total. They come from the
    views stack_tree and cpu_sample_tree. Record Python stacks with with_stack=True, CPU samples with nsys --sample.

    \b
    nsightlens export flamegraph -o gpu.speedscope.json
    nsightlens export flamegraph --weight host --format collapsed --rank 0 | flamegraph.pl > host.svg
    """
    import nsightlens as nl
    from nsightlens.perfetto.flamegraph import WEIGHTS, collapsed, speedscope, stacks
    from nsightlens.store.outputs import check_ending

    if output is not None:
        check_ending(output, _ENDINGS[format_])
    asked = chosen({"only_tool": (), "only_family": (), "only_step": (), **filters})
    with nl.open(store, views=views) as opened:
        confirm(opened, asked)
        tree = opened.view(WEIGHTS[weight].view, **{f"only_{column}": values for column, values in asked.items()})
        found = stacks(tree, weight)
        first = next(found, None)
    if first is None:
        raise UsageError(_without_stacks(weight, tree.num_rows))
    every = [first, *found]
    lines = collapsed(every) if format_ == "collapsed" else [json.dumps(speedscope(every, weight), ensure_ascii=False)]
    write((f"{line}\n" for line in lines), output)
    if output is not None:
        processes = len({stack.process for stack in every})
        echo(f"{output}: {counted(len(every), 'stack')} of {counted(processes, 'process')}; "
             f"{_VIEWERS[format_]}", err=True)


def _without_stacks(weight: str, rows: int) -> str:
    """Return why there is nothing to draw, and what to do. rows: those of the view that a weight is of."""
    if weight == "host" and rows:
        return "these stacks have no host time (torch 1.8 to 1.10 recorded no function calls): use --weight gpu"
    if not weight.startswith("cpu_samples"):
        return "none of the chosen captures has Python stacks: record with torch.profiler and with_stack=True"
    if rows:
        return "no CPU was sampled while a GPU of its process idled: --weight cpu_samples has all samples"
    return "none of the chosen captures has CPU samples: record with nsys --sample=process-tree"


def _span(steps: list[int] | None) -> tuple[int, int] | None:
    """Return the first and the last step. Raises UsageError where steps between them are left out: a timeline has no holes."""
    if steps is None:
        return None
    if max(steps) - min(steps) + 1 != len(steps):
        raise UsageError(f"--step takes consecutive steps, as in {min(steps)}-{max(steps)}")
    return min(steps), max(steps)


def _progress(stack: ExitStack) -> Callable[[int, int], None] | None:
    """Return a callback that moves a bar; None where standard error is no terminal."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    bar = stack.enter_context(Progress(TextColumn("writing"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(),
                                       console=Console(stderr=True), transient=True))
    task = bar.add_task("", total=None)
    return lambda done, total: bar.update(task, completed=done, total=total)


def _report(written: Export) -> None:
    counts = written.counts
    processes = sum(len(execution.processes) for execution in written.executions)
    echo(f"{written.path}: {counted(written.events, 'event')} of {counted(processes, 'process')} in "
         f"{counted(len(written.executions), 'execution')}; {counted(counts.kernels, 'kernel')}, "
         f"{counted(counts.memory_ops, 'memory operation')}, {counted(counts.flows, 'arrow')} from launch to work",
         err=True)
    if counts.asides:
        echo(f"{counts.asides:,} spans overlap others of their thread or stream: they are on extra tracks named (2), (3), "
             "…", err=True)
    if written.unplaced:
        echo(f"left out: {written.unplaced:,} kernels and memory operations without a valid start time", err=True)
    echo("open it at ui.perfetto.dev or in chrome://tracing", err=True)
