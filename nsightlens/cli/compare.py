"""nsightlens compare: the ranks of a run, or two runs, side by side."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nsightlens.cli import complete
from nsightlens.cli.filters import chosen, confirm, filter_options, parameters_of
from nsightlens.cli.messages import of_store, say
from nsightlens.cli.output import PICTURES, check_ending, emit_page, output_options, store_option, views_option
from nsightlens.cli.progress import steps
from nsightlens.terminal.command import Command
from nsightlens.terminal.output import echo

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.store.comparison import Comparison


@click.group("compare")
def command() -> None:
    """Compare the ranks of a run, or two runs of one workload.

    \b
    nsightlens compare ranks
    nsightlens compare runs base fused
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
    from nsightlens.pages.behind import Noting, composed
    from nsightlens.pages.page import Renderer
    from nsightlens.pipeline.memory import spare_pandas

    spare_pandas()
    asked = chosen(filters)
    with nl.open(store, views=views) as opened:
        confirm(opened, asked)
        overview = [row for row in opened.view("profile_overview").to_pylist() if row["tool"] in ranks_page.TOOLS]
        runs = list(dict.fromkeys(row["run"] for row in overview if "run" not in asked or row["run"] in asked["run"]))
        whole = Noting(opened, "", asked)
        pages = {run: replace(whole, run=run) for run in runs}
        with steps("comparing") as begin:
            made = dict(zip(pages, composed(pages.values(), ranks_page.parts, begin), strict=True))
        there = {run: parts for run, parts in made.items() if parts}
        if not there:
            raise ranks_page.too_few(overview, asked)
        if form or output:
            emit_page(lambda: ranks_page.verdicts_first(whole.tables),
                      lambda: opened.view("straggler", **parameters_of("straggler", opened.views, asked)),
                      form, output, wide=wide)
            return
        echo("\n".join(Renderer(of_store).drawn(ranks_page.sections(there))), styled=True)
        say("")
        say(("More: ", Command("show", ("straggler",)), ", rank_skew, communicator_summary, collective_match, rank_clock or "
             "rank_balance"))


@command.command("runs")
@click.argument("base", required=False, shell_complete=complete.of_store("run"))
@click.argument("other", required=False, shell_complete=complete.of_store("run"))
@click.option("--by", default=None, help="kernel (key and launch configuration), key, family, op, module, phase or step "
                                         "[default: kernel; for the waterfall, family].")
@click.option("--per", default="run", show_default=True, type=click.Choice(("run", "rank")),
              help="One waterfall of the mean over the ranks, or one for each rank.")
@click.option("--tool", default=None, type=click.Choice(("nsys", "kineto")),
              help="Tool whose captures are compared [default: nsys where both runs have it, else kineto].")
@click.option("--fdr", default=0.01, show_default=True,
              help="False-discovery rate: the largest expected share of false positives among the items reported. The step time "
                   "is one planned test, at 5 %.")
@click.option("--threshold", "threshold_pct", default=1.0, show_default=True, help="Smallest change to report, in "
                                                                                   "percent.")
@click.option("--skip-steps", default=0, show_default=True, help="Steps at the start of each recording to leave out "
                                                                       "(warm-up).")
@store_option
@views_option
@output_options
def runs(
    base: str | None, other: str | None, by: str | None, per: str, tool: str | None, store: Path | None, views: Path | None,
    form: str | None, output: Path | None, wide: bool, **judging: Any,
) -> None:
    """Show what changed from run BASE to run OTHER beyond chance: first what makes them hard to compare, then where the step
    time went, then the items. Without names it compares the two runs of the store.

    The verdict rests on how the recordings of each run vary (the view recordings). With one recording of each it is undecided,
    and the page shows how these two differ. --format json gives all tables behind the page, csv and parquet the view
    run_difference. --output FILE.png, .svg or .pdf also draws where the step time went (the view run_waterfall).

    \b
    nsightlens compare runs base fused
    nsightlens compare runs base fused --by op --format json
    nsightlens compare runs base fused --output waterfall.png
    """
    import nsightlens as nl
    from nsightlens.pages import runs_page
    from nsightlens.pages.page import Renderer
    from nsightlens.pipeline.memory import spare_pandas
    from nsightlens.store.comparison import of_runs

    spare_pandas()
    with nl.open(store, views=views) as opened:

        @cache
        def behind() -> Comparison:
            with steps("comparing") as begin:
                return of_runs(opened, base, other, by=by, per=per, on_question=begin, time=tool, **judging)

        if output is not None and form is None:
            check_ending(output, (*PICTURES, ".csv", ".json", ".parquet", ".txt"))
        if output is not None and output.suffix.lower() in PICTURES:
            from nsightlens.cli.plot import gpus_of

            nl.plots.save(nl.plots.run_waterfall(behind()["waterfall"], gpus=gpus_of(opened)), output)
            echo(f"drawn: {output}", err=True)
            output = None  # the page goes to standard output all the same

        def differences(of: str) -> pa.Table:
            with steps("comparing"):
                return opened.view("run_difference", base=base, other=other, by=of, time=tool, **judging)

        if form or output:
            emit_page(behind, lambda: differences(by or "kernel"), form, output, wide=wide)
            return
        compared = behind()
        if base is None:
            say(f"{compared.other} against {compared.base}")
        recordings = opened.view("recordings", only_run=[compared.base, compared.other]).to_pylist()
        families = differences("family").to_pylist() if by is None and not compared.unrelated else []
    page = runs_page.sections(compared, recordings, families, by, judging["threshold_pct"])
    echo("\n".join(Renderer(of_store).drawn(page)), styled=True)
