"""nsightlens check: whether a candidate became slower than a base, with an exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nsightlens.cli import complete
from nsightlens.cli.output import emit_page, store_option, views_option, write
from nsightlens.cli.target import Target
from nsightlens.errors import UsageError

FORMATS = ("text", "json", "markdown", "junit")
_ENDINGS = {".txt": "text", ".json": "json", ".md": "markdown", ".xml": "junit"}
_ON_UNDECIDED = {"pass": 0, "fail": 3}


def _regression(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """Return {item: limit} of ITEM=5%."""
    found = {}
    for value in values:
        item, equals, limit = value.rpartition("=")
        try:
            found[item] = float(limit.removesuffix("%"))
        except ValueError:
            equals = ""
        if not equals or not item:
            raise UsageError(f"{value!r}: a limit is written ITEM=5%", subject="max_regression", value=value)
    return found


@click.command("check")
@click.option("--base", multiple=True, metavar="RUN|PATH", shell_complete=complete.store_value("run"),
              help="What it is measured against: a run of the store, a store, a capture, or a folder of captures; repeatable.")
@click.option("--baseline", default=None, metavar="NAME", shell_complete=complete.baselines,
              help="The same, kept by `nsightlens baseline set NAME`.")
@click.option("--candidate", multiple=True, metavar="RUN|PATH", shell_complete=complete.store_value("run"),
              help="What may have become slower, likewise.")
@click.option("--limit", "limit_pct", default=3.0, show_default=True, help="Accepted growth of the step time, in percent.")
@click.option("--slow-steps", "slow_points", default=1.0, show_default=True,
              help="Accepted growth of the share of time above twice the median step, in points.")
@click.option("--max-regression", "regressions", multiple=True, metavar="ITEM=5%", callback=_regression,
              help="A question more: a family of kernels, a kernel's whole name, memory_peak (percent), or exposed_communication "
                   "(points).")
@click.option("--look", type=int, default=None, metavar="K",
              help="Where recordings are added until it is decided: 1 at the first verdict, 2 at the second; stricter each time.")
@click.option("--force", is_flag=True, help="Judge what is not comparable all the same.")
@click.option("--on-undecided", type=click.Choice([*_ON_UNDECIDED]), default=None,
              help="End with 0 or 3 instead of 4 where it is undecided.")
@click.option("-f", "--format", "form", type=click.Choice(FORMATS), default=None,
              help="Output format [default: text, or from the extension of --output].")
@click.option("-o", "--output", type=Target(), default=None, help="Write to FILE.txt, .json, .md or .xml (JUnit).")
@store_option
@views_option
def command(
    base: tuple[str, ...], baseline: str | None, candidate: tuple[str, ...], form: str | None, output: Path | None,
    on_undecided: str | None, store: Path | None, views: Path | None, **asked: Any,
) -> None:
    """Did it become slower? A gate for CI: the verdict, the difference and its cause, and an exit code.

    Each execution is one recording with one figure, the trimmed mean of its steady steps; a verdict is about recordings, so make
    5 of each, or keep a base of 10 and make 3. Steps that the workload timed itself without a profiler (steps.json) come first.
    Exit codes: 0 ok, 1 could not, 2 usage error, 3 slower, 4 undecided, 5 not comparable.

    \b
    nsightlens check --base base --candidate fused --on-undecided pass --force
    nsightlens check --baseline main --candidate runs/fused --on-undecided pass
    nsightlens check --base runs/before.json.gz --candidate runs/after.json.gz
    nsightlens check --base base --candidate fused --max-regression gemm=5% -f markdown -o comment.md --on-undecided pass --force
    """
    from nsightlens.cli.captures import read_run
    from nsightlens.gate import baselines
    from nsightlens.gate.check import Asked
    from nsightlens.gate.places import checked
    from nsightlens.gate.questions import UNDECIDED
    from nsightlens.pipeline.memory import spare_pandas

    spare_pandas()
    written_as = form or _form(output)
    if baseline:
        if base:
            raise UsageError("give --base or --baseline, not both", subject="baseline", value=baseline)
        base = (str(baselines.known(baseline)),)
    found = checked(base, candidate, store, views, Asked(**asked), read_run)
    if written_as == "json":
        emit_page(lambda: found, lambda: found["questions"], "json", output)
    else:
        _write(found, written_as, output)
    code = _ON_UNDECIDED[on_undecided] if on_undecided and found.verdict == UNDECIDED else found.exit_code
    raise click.exceptions.Exit(code)


def _form(output: Path | None) -> str:
    """Return the format of a file. Raises UsageError for an unknown extension."""
    ending = ".txt" if output is None else output.suffix.lower()
    if ending not in _ENDINGS:
        raise UsageError(f"{output}: unknown extension; use {', '.join(_ENDINGS)}, or give --format", subject="format",
                         value=ending, choices=FORMATS)
    return _ENDINGS[ending]


def _write(found: Any, form: str, output: Path | None) -> None:
    from nsightlens.cli.messages import with_store
    from nsightlens.pages import check_page
    from nsightlens.pages.page import Renderer
    from nsightlens.terminal.output import echo

    if form == "text":
        page = "\n".join(Renderer(with_store).drawn(check_page.sections(found)))
        if output is None:
            echo(page, styled=True)
        else:
            write([click.unstyle(page) + "\n"], output)
        return
    write([{"markdown": check_page.markdown, "junit": check_page.junit}[form](found)], output)
