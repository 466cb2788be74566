"""nsightlens compare: runs, or the ranks of a run, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsightlens.cli import complete
from nsightlens.cli.filters import chosen, confirm, filter_options, parameters_of
from nsightlens.cli.messages import say, with_store
from nsightlens.cli.output import PICTURES, emit_page, output_options, store_option, views_option
from nsightlens.cli.progress import steps
from nsightlens.errors import UsageError
from nsightlens.terminal.command import Command
from nsightlens.terminal.output import echo

if TYPE_CHECKING:
    from nsightlens.store.comparison import Comparison, RunPlace


class _OfRuns(click.Group):
    """A group in which what names no command is what the command runs compares."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the rest of the arguments, after those of the group."""
        is_help = args[:1] in ([], ["--help"], ["-h"])
        return super().parse_args(ctx, args if is_help or args[0] in self.commands else ["runs", *args])


@click.group("compare", cls=_OfRuns)
def command() -> None:
    """Compare two runs of one workload, or several, or the ranks of a run.

    \b
    nsightlens compare before.json.gz after.json.gz
    nsightlens compare base fused                     two runs of the store, as `compare runs`
    nsightlens compare g1 g2 g4 g8                    scaling efficiency
    nsightlens compare ranks                          who is late
    """


@command.command("ranks")
@filter_options
@store_option
@views_option
@output_options
def ranks(store: Path | None, views: Path | None, form: str | None, output: Path | None, wide: bool, **filters: Any) -> None:
    """Find stragglers and slow process groups; show clock accuracy, load imbalance and the top kernels.

    The figures come from the views straggler, communicator_summary, rank_clock, rank_balance and kernel_by_rank. With records of
    NCCL's Inspector or PyTorch's flight recorder, the page begins with the ranks that are worth a trace (the view
    ranks_to_trace). --format json gives all tables behind the page, csv and parquet the view straggler.

    \b
    nsightlens compare ranks
    nsightlens compare ranks --run base --tool kineto
    nsightlens compare ranks --format json
    """
    import nsightlens as nl
    from nsightlens.pages import ranks_page
    from nsightlens.pages.collected_page import CollectedPage, compose
    from nsightlens.pages.envelope import About, window_of
    from nsightlens.pages.page import Renderer
    from nsightlens.pipeline.memory import spare_pandas

    spare_pandas()
    asked = chosen(filters)
    with nl.open(store, views=views) as opened:
        confirm(opened, asked)
        overview = [row for row in opened.view("profile_overview").to_pylist() if row["tool"] in ranks_page.TOOLS]
        runs = list(dict.fromkeys(row["run"] for row in overview if "run" not in asked or row["run"] in asked["run"]))
        whole = CollectedPage(opened, "", asked)
        pages = {run: replace(whole, run=run) for run in runs}
        with steps("comparing") as begin:
            made = dict(zip(pages, compose(pages.values(), ranks_page.parts, begin), strict=True))
        there = {run: parts for run, parts in made.items() if parts}
        if not there:
            raise ranks_page.too_few(overview, asked)
        if form or output:
            emit_page(lambda: ranks_page.verdicts_first(whole.tables),
                      lambda: opened.view("straggler", **parameters_of("straggler", opened.views, asked)),
                      form, output, wide=wide, about=lambda _: About(window=window_of(asked)))
            return
        echo("\n".join(Renderer(with_store).drawn(ranks_page.sections(there))), styled=True)
        say("")
        say(("More: ", Command("show", ("straggler",)), ", rank_skew, communicator_summary, collective_match, rank_clock or "
             "rank_balance"))


@command.command("runs")
@click.argument("runs", nargs=-1, metavar="[A B]...", shell_complete=complete.store_value("run"))
@click.option("--by", default=None, help="Also list what changed by kernel (key and launch configuration), key, family, op, "
                                         "module, phase or step.")
@click.option("--tool", default=None, type=click.Choice(("nsys", "kineto")),
              help="Tool whose captures are compared [default: nsys where all have it, else kineto].")
@click.option("--fdr", default=0.01, show_default=True,
              help="False-discovery rate of --by: the largest expected share of false positives among the items reported.")
@click.option("--threshold", "threshold_pct", default=1.0, show_default=True,
              help="Smallest change that --by reports, in percent.")
@click.option("--skip-steps", default=0, show_default=True, help="Steps at the start of each recording that --by leaves out.")
@store_option
@views_option
@output_options
def runs(
    runs: tuple[str, ...], by: str | None, tool: str | None, store: Path | None, views: Path | None, form: str | None,
    output: Path | None, wide: bool, **judging: Any,
) -> None:
    """Show what changed from A to B: first the difference in a sentence, then their trees side by side, the kernels, what else
    differs, and how certain it is. `nsightlens compare A B` is the same.

    A and B: runs of the store, or stores, run directories and captures, which need no store. Without them it compares the two
    runs of the store. More than two: step times, scaling efficiency, and where the loss went. Runs that only ncu measured are
    compared kernel by kernel.

    --format json gives all tables behind the page, csv and parquet the view tree_difference (with --by: run_difference).
    --output FILE.png, .svg or .pdf draws where the step time went (the view run_waterfall, of two runs of a store).

    \b
    nsightlens compare before.json.gz after.json.gz
    nsightlens compare base fused
    nsightlens compare g1 g2 g4 g8
    nsightlens compare runs base fused --by op --format json
    """
    from nsightlens.cli.captures import opened_runs
    from nsightlens.pages import runs_page
    from nsightlens.pages.envelope import About
    from nsightlens.pages.page import Renderer
    from nsightlens.pipeline.memory import spare_pandas
    from nsightlens.store.comparison import compare_places
    from nsightlens.store.outputs import check_ending

    spare_pandas()
    if output is not None and form is None:
        check_ending(output, (*PICTURES, ".csv", ".json", ".parquet", ".txt"))
    with ExitStack() as stack:
        places, is_stored = opened_runs(runs, store, views, stack)

        @cache
        def behind() -> Comparison:
            with steps("comparing") as begin:
                items = by or ("kernel" if form == "json" or _ends(output, ".json") else None)
                return compare_places(places, by=items, on_question=begin, time=tool, **judging)

        if output is not None and _ends(output, *PICTURES):
            _draw(places, output, by, tool, judging)
            output = None  # the page goes to standard output all the same
        if form or output:
            emit_page(behind, lambda: behind()["differences" if by else "tree"], form, output, wide=wide, about=lambda _: About(
                window={"run": list(behind().runs)}, certainty=behind().certainty or None, notes=lambda: behind().first))
            return
        compared = behind()
        if not runs:
            say(f"{compared.runs[1]} against {compared.runs[0]}")
        recordings = [row for place in places for row in place.store.view("recordings", only_run=[place.run]).to_pylist()]
    echo("\n".join(Renderer(with_store).drawn(runs_page.sections(compared, recordings, by, is_stored=is_stored))), styled=True)


def _draw(places: Sequence[RunPlace], output: Path, by: str | None, tool: str | None, judging: Mapping[str, Any]) -> None:
    """Draw where the step time went between two runs of a store."""
    import nsightlens as nl
    from nsightlens.cli.plot import gpus_of

    if len(places) != 2 or places[0].store is not places[1].store:
        raise UsageError("a picture is of two runs of one store")
    opened, (base, other) = places[0].store, (place.run for place in places)
    table = opened.view("run_waterfall", base=base, other=other, by=by if by not in (None, "step") else "family", time=tool,
                        **judging)
    nl.plots.save(nl.plots.run_waterfall(table, gpus=gpus_of(opened)), output)
    echo(f"drawn: {output}", err=True)


def _ends(output: Path | None, *endings: str) -> bool:
    return output is not None and output.suffix.lower() in endings
