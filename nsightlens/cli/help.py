"""nsightlens help: a command, a view, or a topic explained."""

from __future__ import annotations

import re
import textwrap
from difflib import get_close_matches

import click

from nsightlens.terminal.command import Command
from nsightlens.terminal.output import echo

_COLUMNS = re.compile(r"\S.*?\S? {2,}(?=\S)")
_NEAR = 3
_NARROWEST = 24  # characters of what stands beside a command
_TOPICS = {
    "start": """The first ten minutes

nsightlens scan RUN_DIR           what there is, and what ingest will read
nsightlens ingest RUN_DIR         read it into ./nsightlens-store
nsightlens summary                the verdict, what to look at, and the figures behind it
nsightlens report --open          the same, and more, as a page in the browser
nsightlens views                  all views by question, the ten to start with first
nsightlens show step_breakdown    one of them""",
    "filters": """Filters: --run, --rank, --step, --tool, --family

They select rows of the result; shares still refer to the whole run. Ranks and steps are numbers, lists or ranges: 3, 0,2
or 0-7. Each filter may be repeated. The command show also takes only_COLUMN=VALUE for every column of the view; in names,
* stands for any text, in any case. For an unknown run, tool, rank or name, an error lists the known ones, the closest
first. If filters leave no rows for another reason, a message says why.

nsightlens show kernel_by_rank --rank 0-1 --tool nsys
nsightlens show gpu_summary only_device=0
nsightlens show kernel_summary 'only_name=*gemm*'""",
    "output": """Output

Data goes to standard output, everything else to standard error. -f table, csv, json or parquet; -o FILE takes the
format from its extension. Tables for people have units (--exact: ns and bytes), fit the width (COLUMNS, else the
terminal's, else 120), and say what they leave out (--wide: nothing). csv, json and parquet are always exact.

nsightlens show top_kernels -f json | jq '.rows[].name'
nsightlens --quiet summary -f json > summary.json""",
    "store": """The store

A folder: Parquet files of each capture, and nsightlens.duckdb, which plain duckdb opens from anywhere. Name it with --store
or NSIGHTLENS_STORE; the default is ./nsightlens-store, and a URL (s3://…) works too. Ingesting the same files again reads
nothing; a changed file replaces only its own rows. nsightlens remove takes out a run that was ingested by mistake. Ctrl-C
leaves the store unchanged.

nsightlens ingest runs/base runs/fused --store store
nsightlens remove --run fused --store store
nsightlens sql --store store "SELECT run, tool, count(*) FROM kernels GROUP BY ALL\"""",
    "environment": """Environment variables

NSIGHTLENS_STORE            the store, without --store
NSIGHTLENS_VIEWS            the folder with views of your own, without --views
NSIGHTLENS_SQLITE_DECODER   off: read nsys exports through SQLite only
XDG_CACHE_HOME              the folder of the cache, nsightlens/ (see nsightlens cache)
COLUMNS                     the width of all output [default: the terminal's, 120 in a pipe or file]
NO_COLOR, FORCE_COLOR       1: no colour; colour in pipes, too""",
    "exit-codes": """Exit codes

0   success, even if a result has no rows
1   failure
2   usage error; the message lists what is possible
130 interrupted; the message says what is in the store""",
}


def _fitted(part: str) -> str:
    """Return a part of a topic at the width of a page: prose as a paragraph, lists line by line, examples as they are."""
    from nsightlens.pages.page import page_width

    width, lines = page_width(), part.splitlines()
    left = max((len(found[0]) for line in lines if (found := _COLUMNS.match(line))), default=0)
    if not left:
        is_prose = not part.startswith("nsightlens ")
        return textwrap.fill(" ".join(lines), width, break_on_hyphens=False, break_long_words=False) if is_prose else part
    return "\n".join(textwrap.fill(line, max(width, left + _NARROWEST), subsequent_indent=" " * left, break_on_hyphens=False,
                                   break_long_words=False) for line in lines)


def _topics(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    from nsightlens.cli import COMMANDS

    return [name for name in (*_TOPICS, *COMMANDS) if name.startswith(begun)]


@click.command("help")
@click.argument("topic", nargs=-1, shell_complete=_topics)
@click.pass_context
def command(context: click.Context, topic: tuple[str, ...]) -> None:
    """Explain TOPIC: a command, a view, or one of start, filters, output, store, environment, exit-codes.

    \b
    nsightlens help
    nsightlens help start
    nsightlens help compare runs
    nsightlens help busy_time
    """
    from nsightlens.cli import COMMANDS, root
    from nsightlens.errors import UsageError
    from nsightlens.views import search
    from nsightlens.views.registry import known

    if not topic:
        echo(root.get_help(context.find_root()))
        echo(f"\nTopics for nsightlens help: {', '.join(_TOPICS)}, a command or a view")
        return
    name = topic[0]
    if name in _TOPICS:
        echo("\n\n".join(_fitted(part) for part in _TOPICS[name].split("\n\n")))
    elif name in COMMANDS:
        _command_help(topic)
    else:
        views = known()
        names = [*views, *(alias.name for view in views.values() for alias in view.aliases)]
        if name not in names:
            near = (get_close_matches(name, [*_TOPICS, *COMMANDS]) or search.about(name, views)[:_NEAR]
                    or get_close_matches(name, names))
            others = f"there are {', '.join(_TOPICS)}, the commands and the views"
            meant = f"did you mean {' or '.join(near)}?"
            raise UsageError((f"there is no topic {name}; {meant if near else others} (", Command("views", (name,)), ")"))
        root.main(["views", name], prog_name="nsightlens", standalone_mode=False)


def _command_help(words: tuple[str, ...]) -> None:
    """Print what --help prints of a command. Raises UsageError for a part that it does not have."""
    from nsightlens.cli import root
    from nsightlens.views.registry import unknown

    context = click.Context(root, info_name="nsightlens")
    found: click.Command = root
    for word in words:
        inner = found.get_command(context, word) if isinstance(found, click.Group) else None
        if inner is None:
            known = found.list_commands(context) if isinstance(found, click.Group) else []
            raise unknown(f"topic {context.command_path}", word, known)
        found, context = inner, click.Context(inner, info_name=word, parent=context)
    echo(found.get_help(context))
