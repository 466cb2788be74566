"""Messages beside the data: how many (--quiet, --verbose, --debug), into which log, and with which --store."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

import click

from nsightlens import __version__
from nsightlens.errors import NsightlensError
from nsightlens.terminal.colour import colour_setting
from nsightlens.terminal.command import Command
from nsightlens.terminal.output import echo
from nsightlens.terminal.printable import LAYOUT, printable
from nsightlens.terminal.quoting import Verbatim, shell_line
from nsightlens.terminal.text import parts, written
from nsightlens.terminal.wrapping import printable_text, wrapped

if TYPE_CHECKING:
    import logging

    from nsightlens.terminal.text import Text

_OF_NO_STORE = ("doctor", "wrappers", "export-reports", "scan", "completion", "help", "cache", "open", "reconcile", "views")
"""Commands without --store, and the one that lists the same views for every store."""
_NEEDED = {"numpy": "numpy", "pyarrow": "pyarrow", "duckdb": "duckdb", "rich": "rich", "msgspec": "msgspec", "isal": "isal",
           "adbc_driver_sqlite": "adbc-driver-sqlite", "adbc_driver_manager": "adbc-driver-manager", "jinja2": "jinja2",
           "matplotlib": "matplotlib", "pandas": "pandas", "scipy": "scipy"}
"""The modules that every command may import, and the packages that hold them."""
_NARROWEST = 20  # columns
_PACKAGES = ("duckdb", "pyarrow", "numpy", "scipy", "click", "pandas", "matplotlib")


class _State:
    """What the options of the command line say; each command begins afresh."""

    store: str | None = None
    stderr: TextIO | None = None
    debug = False


def begin() -> None:
    """Forget what an earlier command of this process set."""
    _State.store, _State.stderr, _State.debug = None, None, False


def remember_store(context: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """Keep the --store that was given, for the hints (the callback of that option)."""
    _State.store = None if value is None else str(value)
    return value


def with_store(command: Command) -> str:
    """Return a command line that names the store, where one was given by --store and the command takes it."""
    return command.shell(None if command.name in _OF_NO_STORE else _State.store)


def complain(text: Text, *, styled: bool = False) -> None:
    """Print an error, --quiet or not. styled: as for `echo`."""
    stream = _State.stderr or sys.stderr
    echo(fitted(text, stream), stream=stream, styled=styled)


def say(text: Text, *, styled: bool = False) -> None:
    """Print a message beside the data, a line whatever names it holds. styled: as for `echo`; it is then `printable_text`."""
    echo(fitted(text if styled else printable_text(text), sys.stderr), err=True, styled=styled)


def warn(text: Text) -> None:
    """Print a warning as one line."""
    say((f"nsightlens: {click.style('warning:', fg='yellow')} ", *printable_text(text)), styled=True)


def fitted(text: Text, stream: TextIO) -> str:
    """Return a message without secrets, on a terminal in lines that fit COLUMNS, else its width; what is copied is whole."""
    pieces = tuple(_without_secrets(part) for part in _written_out(text))
    if not stream.isatty():
        return written(pieces)
    given = os.environ.get("COLUMNS", "")
    width = int(given) if given.isdecimal() and int(given) else os.get_terminal_size(stream.fileno()).columns
    return "\n".join(shown for line in _lines(pieces) for shown in _fitted_line(line, max(width, _NARROWEST)))


def _written_out(text: Text) -> Iterator[str]:
    """Yield the words and the command lines of a message."""
    return (part if isinstance(part, str) else Verbatim(with_store(part)) for part in parts(text))


def _lines(pieces: Iterable[str]) -> list[list[str]]:
    """Return each line of a message: only words end one."""
    lines: list[list[str]] = [[]]
    for piece in pieces:
        first, *others = piece.split("\n") if type(piece) is str else [piece]
        lines[-1].append(first)
        lines += [[other] for other in others]
    return lines


def _fitted_line(line: list[str], width: int) -> list[str]:
    indent = " " * (len(line[0]) - len(line[0].lstrip()) + 2)
    return wrapped(tuple(line), width, indent=indent, cuts=False) or [""]


def _without_secrets(text: str) -> str:
    from nsightlens.discovery.secrets import struck  # its patterns take milliseconds to make, and --help says nothing

    return type(text)(struck(text))


def _arguments() -> str:
    """Return the arguments of the command line, each struck as the word that it is."""
    from nsightlens.discovery.secrets import words_struck

    return shell_line(*words_struck(sys.argv[1:]))


def is_quiet() -> bool:
    """Return whether `nsightlens --quiet` was given."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().params.get("quiet"))


def listen(context: click.Context, *, quiet: bool, verbose: bool, debug: bool, log_file: Path | None) -> None:
    """Let the rest of a command say as much as is asked for. Raises NsightlensError where the log cannot be written."""
    _State.stderr = sys.stderr
    context.color = colour_setting()
    _apply(context, quiet=quiet, verbose=verbose, debug=debug, log_file=log_file)


def everywhere(command: click.Command, options: Sequence[click.Option]) -> None:
    """Let the options of the command line stand behind a command, too, unless it has one of that name."""
    for part in command.commands.values() if isinstance(command, click.Group) else ():
        everywhere(part, options)
    taken = {name for own in command.params for name in own.opts}
    for option in options:
        if not taken & {*option.opts}:
            command.params.append(click.Option(option.opts, is_flag=option.is_flag, type=option.type, hidden=True,
                                               expose_value=False, callback=_apply_one))


def _apply_one(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value:
        _apply(context.find_root(), **{str(option.name): value})


def _apply(context: click.Context, *, quiet: bool = False, verbose: bool = False, debug: bool = False,
           log_file: Path | None = None) -> None:
    if verbose or debug or log_file:
        context.with_resource(_logging(verbose=verbose or debug, debug=debug, log_file=log_file))
    if debug:
        _State.debug = True
        complain(_versions())
    if quiet:
        context.with_resource(contextlib.redirect_stderr(io.StringIO()))


@contextlib.contextmanager
def _logging(*, verbose: bool, debug: bool, log_file: Path | None) -> Iterator[None]:
    """Send what the package logs to standard error and to a file, for as long as the command runs."""
    import logging

    log, began = logging.getLogger("nsightlens"), time.monotonic()
    handlers: list[logging.Handler] = []
    if verbose:
        handlers.append(logging.Handler())
        handlers[-1].emit = lambda record: echo(handlers[0].format(record), stream=_State.stderr)  # type: ignore[method-assign]
        handlers[-1].setFormatter(_formatter("%(relativeCreated)7.0f ms  %(message)s"))
        handlers[-1].setLevel(logging.DEBUG if debug else logging.INFO)
    if log_file:
        try:
            handlers.append(logging.FileHandler(log_file, encoding="utf-8"))
        except OSError as exc:
            raise NsightlensError(f"{log_file}: the log cannot be written ({exc.strerror})") from exc
        handlers[-1].setFormatter(_formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    level = log.level
    log.setLevel(logging.DEBUG)
    for handler in handlers:
        log.addHandler(handler)
    try:
        log.info("nsightlens %s: %s", __version__, _arguments())
        yield
    except NsightlensError as exc:
        log.error("%s", exc)
        raise
    finally:
        log.info("done after %.2f s", time.monotonic() - began)
        log.setLevel(level)
        for handler in handlers:
            log.removeHandler(handler)
            handler.close()


def _formatter(pattern: str) -> logging.Formatter:
    """Return what makes a line of the log of a record, its traceback included, and strikes the secrets in it."""
    import logging

    class Formatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return _without_secrets(printable(super().format(record), LAYOUT))

        def formatMessage(self, record: logging.LogRecord) -> str:
            return printable(super().formatMessage(record))   # one line: a name makes no further ones

    return Formatter(pattern)


def explain(error: BaseException) -> None:
    """Print an error raised on purpose; with --debug, how it came about as well."""
    if _State.debug:
        complain("".join(traceback.format_exception(error)).rstrip())
    text = error.text if isinstance(error, NsightlensError) else str(error)
    complain((f"{click.style('nsightlens:', fg='red')} ", *printable_text(text, LAYOUT)), styled=True)


def broken_installation(error: ImportError) -> NsightlensError | None:
    """Return what to say of a package of nsightlens that is missing or cannot be loaded; None for any other module."""
    package = _NEEDED.get((error.name or "").partition(".")[0])
    if package is None:
        return None
    if isinstance(error, ModuleNotFoundError) and "." not in str(error.name):
        found = NsightlensError((f"{package} is not installed, and nsightlens needs it: ", Verbatim("pip install nsightlens")))
    else:
        found = NsightlensError((f"{package} is installed and cannot be loaded ({str(error).splitlines()[0]}): ",
                                 shell_line("pip", "install", "--force-reinstall", package)))
    found.__cause__ = error
    return found


def defect(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print what nobody foresaw, and how to report it: the hook of the interpreter. Ctrl-C after the end of a command is none."""
    if issubclass(kind, KeyboardInterrupt):
        return
    complain("".join(traceback.format_exception(kind, error, trace)).rstrip())
    if not _State.debug:
        complain("nsightlens: this is a bug in nsightlens. Please report it with the output of: nsightlens --debug and the "
                 "same arguments")


def _versions() -> str:
    """Return what a report from the field needs: versions of nsightlens, Python, the system and the packages."""
    import platform
    from importlib import metadata

    found = []
    for name in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    return (f"nsightlens {__version__}, Python {platform.python_version()}, {platform.platform()}, {platform.machine()}; "
            + ", ".join(found))
