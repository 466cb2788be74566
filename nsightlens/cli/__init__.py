"""The command line: the commands, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn, TextIO

import click

from nsightlens import __version__
from nsightlens.cli import messages
from nsightlens.cli.interrupts import interruptible
from nsightlens.cli.target import Target
from nsightlens.errors import InternalError, NsightlensError, OldRulesWarning, UsageError
from nsightlens.terminal.output import echo
from nsightlens.terminal.quoting import shell_line

COMMANDS = {
    "summary": "What bounds each run, and by how much: read first",
    "report": "One offline HTML page: the same, to click through",
    "show": "Print a view: show VIEW [key=value ...]",
    "sql": "Run one SQL statement, read-only",
    "views": "List the views, or describe one",
    "help": "Explain a command, a view or a topic",
    "compare": "Compare the ranks of a run, or two runs",
    "check": "Did it become slower? A verdict and an exit code",
    "baseline": "Keep what check compares with: set, list, rm",
    "history": "One figure of runs over time, and where it changed",
    "roofline": "Kernels against the roofs of the GPU",
    "plan-ncu": "Choose launches for ncu, and print its commands",
    "wrappers": "Write the capture scripts and job templates",
    "doctor": "Check whether this machine is ready to profile",
    "export-reports": "Export .nsys-rep files that have no export yet",
    "ingest": "Read captures into the store",
    "scan": "Identify files without reading them in",
    "refresh": "Update a store after an upgrade",
    "remove": "Take a run, or one capture, out of the store",
    "compact": "Merge the Parquet files of a store",
    "cache": "Show or clear the user's cache",
    "export": "Timeline for Perfetto, or a flame graph",
    "plot": "Draw a view: plot VIEW --output FILE.png",
    "mcp": "Serve the store to an assistant",
    "hta": "Open traces in Holistic Trace Analysis",
    "open": "Fetch the catalog of a remote store",
    "reconcile": "Check that the parts of a table sum to its total",
    "completion": "Print the completion script of a shell",
}
_GROUPS = {
    "look": "summary",
    "compare": "compare",
    "kernels": "roofline",
    "capture": "wrappers",
    "store": "ingest",
    "hand over": "export",
}
"""What commands are for, and the first command of each group."""
_UNLISTED = ("open", "reconcile", "completion")

_INTERRUPTED_QUERY = "Query interrupted"
"""What DuckDB raises, as a RuntimeError, for Ctrl-C during a query."""

_ASCII = {
    **dict.fromkeys("─━═╴╶–—", "-"), **dict.fromkeys("│┃", "|"), **dict.fromkeys("┌┐└┘├┤┬┴┼", "+"),
    **dict.fromkeys("█▉▊▋▌▍▎▏▁▂▃▄▅▆▇▓", "#"), **dict.fromkeys("µμ", "u"), **dict.fromkeys("≈±…", "~"),
    **dict.fromkeys("“”", '"'), **dict.fromkeys("‘’", "'"), "▒": "+", "░": ".", "·": ".", "→": ">", "←": "<", "↑": "^", "↓": "v",
    "×": "x", "•": "*", "≤": "<", "≥": ">", "√": "v",
}
"""What stands for a character that an output cannot show, one for one so that columns stay in line."""


class _Lazy(click.Group):
    """A group whose commands are imported when they are used: --help stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in the order of the work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by name: its module `cli/<name>.py` (- as _) holds it as `command`."""
        if cmd_name not in COMMANDS:
            return None
        found = import_module(f"nsightlens.cli.{cmd_name.replace('-', '_')}").command
        assert isinstance(found, click.Command)
        messages.everywhere(found, [option for option in self.params if isinstance(option, click.Option) and option.expose_value])
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str],
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` names; `summary` where they begin with a path. An unknown name gets the nearest ones."""
        from difflib import get_close_matches

        if args and args[0] not in COMMANDS and Path(args[0]).exists():
            from nsightlens.store.store import is_store

            return "summary", self.get_command(ctx, "summary"), ["--store", *args] if is_store(Path(args[0])) else args
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, 1)
            others = "" if Path(args[0]).name != args[0] else f" Commands: {', '.join(COMMANDS)}"
            hint = f" Did you mean {near[0]!r}?" if near else others
            raise click.UsageError(f"No such command or file {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, by what they are for, without importing them."""
        groups = {first: group for group, first in _GROUPS.items()}
        left = max(map(len, _GROUPS)) + 2
        with formatter.section("Commands"):
            formatter.write_dl([(f"{groups.get(name, ''):<{left}}{name}", about) for name, about in COMMANDS.items()
                                if name not in _UNLISTED])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands first; the options are named in the text."""
        self.format_commands(ctx, formatter)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="nsightlens")
@click.option("-q", "--quiet", is_flag=True, help="Errors only: no progress, hints, notes or warnings.")
@click.option("-v", "--verbose", is_flag=True, help="Report what is read and computed, and how long it takes.")
@click.option("--log-file", type=Target(), default=None, metavar="FILE",
              help="Append the messages of --verbose to FILE, in more detail.")
@click.option("--debug", is_flag=True, help="For bug reports: --verbose, versions and tracebacks.")
@click.pass_context
def root(context: click.Context, quiet: bool, verbose: bool, log_file: Path | None, debug: bool) -> None:
    """Say what bounds a GPU job: nsys, ncu and PyTorch profiles on one table.

    \b
    nsightlens runs/base                  what bounds it; or one file, or a store
    nsightlens ingest runs/base           keep it in a store, then ask more:
    nsightlens sql "SELECT tool, rank, family, sum(duration_ns) FROM kernels GROUP BY ALL"
    nsightlens roofline --kernel gemm --time nsys --output roofline.png

    The store is ./nsightlens-store unless --store or NSIGHTLENS_STORE says otherwise. Every command takes --help, --quiet,
    --verbose, --log-file FILE and --debug. Exit codes: 0 success, 1 failure, 2 usage error.
    """
    messages.listen(context, quiet=quiet, verbose=verbose, debug=debug, log_file=log_file)


def main() -> None:
    """Run the command line; every error raised on purpose ends as one message and its exit code."""
    if sys.stdout is None:  # closed by the shell: >&-
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - it lasts as long as the process
    _print_what_the_terminal_can_show()
    messages.begin()
    sys.excepthook = messages.defect
    warnings.showwarning = _say_warning
    received: list[int] = []
    committed = _commits()
    try:
        with interruptible(received):
            code = root.main(prog_name="nsightlens", standalone_mode=False)
        sys.stdout.flush()
        if isinstance(code, int):  # what a command ended with by context.exit()
            sys.exit(code)
    except click.exceptions.Exit as exc:
        sys.exit(exc.exit_code)
    except click.ClickException as exc:
        _complain_of_usage(exc, sys.argv[1:])
        sys.exit(exc.exit_code)
    except InternalError:
        raise  # to messages.defect
    except NsightlensError as exc:
        messages.explain(exc)
        sys.exit(exc.exit_code)
    except ImportError as exc:
        if (broken := messages.broken_installation(exc)) is None:
            raise
        messages.explain(broken)
        sys.exit(broken.exit_code)
    except (click.Abort, KeyboardInterrupt) as exc:
        _interrupted(received, _commits() > committed, str(exc.__cause__ or exc))
    except RuntimeError as exc:
        if str(exc) != _INTERRUPTED_QUERY:
            raise
        _interrupted(received, _commits() > committed)
    except BrokenPipeError:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        sys.exit(1)
    except OSError as exc:
        messages.complain(f"nsightlens: {exc.filename or 'standard output'}: {exc.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _complain_of_usage(exc: click.ClickException, args: Sequence[str]) -> None:
    moved = _behind_its_command(exc.option_name, args) if isinstance(exc, click.NoSuchOption) else None
    if isinstance(exc, click.NoSuchOption) and moved:
        messages.complain((f"nsightlens: {exc.option_name} comes after the command: ", shell_line("nsightlens", *moved)))
    else:
        text = io.StringIO()
        exc.show(text)
        messages.complain(text.getvalue().rstrip("\n"))


def _behind_its_command(option: str, args: Sequence[str]) -> list[str] | None:
    """Return the arguments with what stands before the command at their end; None where the command has no such option."""
    for names, command, before, behind in _commands(root, args):
        found = next((known for known in command.params if isinstance(known, click.Option) and option in known.opts), None)
        if found and before and (found.is_flag or before[-1] != option):
            return [*names, *behind, *before]
    return None


def _commands(group: click.Group, args: Sequence[str]) -> Iterator[tuple[list[str], click.Command, list[str], list[str]]]:
    """Yield each command that arguments may mean: its names, itself, and the arguments before and behind it."""
    for at, name in enumerate(args):
        command, before, behind = group.get_command(click.Context(group), name), list(args[:at]), list(args[at + 1:])
        if isinstance(command, click.Group):
            for names, inner, between, rest in _commands(command, behind):
                yield [name, *names], inner, before + between, rest
        elif command:
            yield [name], command, before, behind


def _commits() -> int:
    """Return how many changes this process has made to stores."""
    writer = sys.modules.get("nsightlens.store.writer")
    return writer.StoreWriter.commits if writer else 0


def _interrupted(received: Sequence[int], has_committed: bool, left: str = "") -> NoReturn:
    """End as the first of the signals asks for, else as Ctrl-C does. left: what is there now, where something is."""
    state = "the store has what was asked for" if has_committed else "the store is unchanged"
    echo(f"interrupted; {left or state}", err=True)
    sys.exit(128 + next(iter(received), signal.SIGINT))


def _print_what_the_terminal_can_show() -> None:
    """Print characters that the encoding of an output lacks as the nearest ASCII: rules and dashes above all."""
    codecs.register_error("nearest_ascii", _nearest_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="nearest_ascii")


def _nearest_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_ASCII.get(character, "?") for character in error.object[error.start:error.end]), error.end


def _say_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as one line."""
    messages.warn(message.text if isinstance(message, OldRulesWarning) else str(message))


def parameters(pairs: tuple[str, ...]) -> dict[str, object]:
    """Return {key: value} of 'key=value' arguments. Raises UsageError for an argument without '='."""
    found: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"{pair!r}: parameters are written name=value", subject="parameter", value=pair)
        found[key] = value
    return found
