"""Every exception that nsightlens raises on purpose, each with the exit code that the command line gives it.

What a caller may need of a message stands in attributes as well: docs/python.md lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING

from nsightlens.terminal.printable import printable
from nsightlens.terminal.text import parts, written

if TYPE_CHECKING:
    from nsightlens.terminal.command import Command
    from nsightlens.terminal.quoting import Verbatim
    from nsightlens.terminal.text import Part, Text


class NsightlensError(Exception):
    """Something could not be done; the message says what and what to do next.

    In the message commands of ours are values: each reader gets them as they are for that reader (`told`).
    """

    exit_code = 1

    def __init__(self, message: Text = "") -> None:
        super().__init__(message)

    @property
    def text(self) -> Text:
        """Return the message with its commands as values."""
        message: Text = self.args[0]
        return message

    def __str__(self) -> str:
        """Return the message with its commands as command lines."""
        return written(self.text)

    def told(self, command: Callable[[Command], str]) -> str:
        """Return the message. command: how its reader gives a command."""
        return written(self.text, command)


def _on_one_line(message: Text, names: Iterable[object]) -> tuple[Part, ...]:
    """Return a message in which no name breaks the line: what it holds of lines and of a terminal stands as its escapes."""
    broken = [name for name in names if isinstance(name, str) and not name.isprintable()]
    words = list(parts(message))
    for name in sorted(broken, key=len, reverse=True):
        words = [word.replace(name, printable(name)) if type(word) is str else word for word in words]
    return tuple(words)


class UsageError(NsightlensError):
    """The request itself was wrong (an unknown view, a bad parameter); the message names the choices.

    subject: what was wrong: view, run, plot, or the parameter, option or column by its name. value: what was given for it.
    choices: all that could have been given; empty where they are not a list. view: the view that was asked. None: not known.
    """

    exit_code = 2

    def __init__(self, message: Text, *, subject: str | None = None, value: object = None, choices: Sequence[object] = (),
                 view: str | None = None) -> None:
        super().__init__(_on_one_line(message, (value, *choices)))
        self.subject = subject
        self.value = value
        self.choices = tuple(choices)
        self.view = view


def not_a_choice(view: str | None, parameter: str, value: object, choices: Iterable[str]) -> UsageError:
    """Return the error for a value that a parameter of a view (None: of several) does not take."""
    known = tuple(choices)
    where = f"{view}: " if view else ""
    return UsageError(f"{where}{parameter} is one of {', '.join(known)}, not {value!r}", subject=parameter, value=value,
                      choices=known, view=view)


class ReadError(NsightlensError):
    """One input file could not be read.

    path: the file. reason: why. what_to_do: the next step. advice: the same, with its commands as values. code: the diagnostic
    code it is recorded under. kind: the reason without what is of this file alone.
    """

    def __init__(
        self, path: str | PathLike[str], reason: str, what_to_do: Text, code: str = "unreadable", kind: str | None = None,
    ) -> None:
        super().__init__((f"{printable(str(path))}: {reason}. ", *parts(what_to_do)))
        self.path = str(path)
        self.reason = reason
        self.advice = what_to_do
        self.what_to_do = written(what_to_do)
        self.code = code
        self.kind = kind or reason

    def __reduce__(self) -> tuple[type[ReadError], tuple[str, str, Text, str, str]]:
        return type(self), (self.path, self.reason, self.advice, self.code, self.kind)


class UnknownFormatError(ReadError):
    """The file is none of the formats that a reader knows."""

    def __init__(
        self, path: str | PathLike[str], reason: str, what_to_do: Text, code: str = "unknown_format", kind: str | None = None,
    ) -> None:
        super().__init__(path, reason, what_to_do, code, kind)


class OverlapError(NsightlensError):
    """Files taken for windows of one process overlap in time, so they are not: each has to be read for itself."""


class SchemaError(NsightlensError):
    """A table does not have the columns that schema.py defines: a defect of ours, not of the input. table: its name."""

    def __init__(self, message: str, table: str) -> None:
        super().__init__(message)
        self.table = table

    def __reduce__(self) -> tuple[type[SchemaError], tuple[str, str]]:
        return type(self), (str(self), self.table)


class InternalError(NsightlensError):
    """A bug of nsightlens; what went wrong is its __cause__."""


class ViewError(NsightlensError):
    """The file of a view is wrong, one of ours or of the user's own folder; the message begins with FILE:LINE.

    file, line: where. reason: what is wrong there.
    """

    def __init__(self, file: str | PathLike[str], line: int, reason: str) -> None:
        super().__init__(f"{file}:{line}: {reason}")
        self.file = str(file)
        self.line = line
        self.reason = reason

    def __reduce__(self) -> tuple[type[ViewError], tuple[str, int, str]]:
        return type(self), (self.file, self.line, self.reason)


class StoreError(NsightlensError):
    """The store cannot be opened or written; the message says what to do.

    message: what is wrong. path: the store. what_to_do: the next step, where it is a sentence of its own, else None. advice: the
    same, with its commands as values.
    """

    def __init__(self, message: Text, path: str | PathLike[str] | None = None, what_to_do: Text | None = None) -> None:
        words = _on_one_line(message, () if path is None else (str(path),))
        super().__init__((*words, ". ", *parts(what_to_do)) if what_to_do else words)
        self.path = None if path is None else str(path)
        self.what_to_do = None if what_to_do is None else written(what_to_do)
        self.advice = what_to_do

    def __reduce__(self) -> tuple[type[StoreError], tuple[Text, str | None, Text | None]]:
        behind = 1 + len(parts(self.advice)) if self.advice else 0
        return type(self), (parts(self.text)[:len(parts(self.text)) - behind], self.path, self.advice)


def no_store(path: str | PathLike[str]) -> StoreError:
    """Return the error for a path at which there is no store."""
    return StoreError(f"{path}: no store here", path, ("Make one with: ", _command("ingest", "RUN_DIR", store=path)))


def other_schema(path: str | PathLike[str], its: int, ours: int) -> StoreError:
    """Return the error for a store of an older schema than this version writes."""
    return StoreError(f"{path}: written with schema {its}, this nsightlens has {ours}", path,
                      ("Rebuild it from its captures first: ", _command("refresh", store=path)))


class BalanceWarning(UserWarning):
    """The parts of a breakdown do not sum to its total. view: the view. reason: where, and by how much."""

    def __init__(self, view: str, reason: str) -> None:
        super().__init__(f"{view}: {reason}")
        self.view = view
        self.reason = reason

    def __reduce__(self) -> tuple[type[BalanceWarning], tuple[str, str]]:
        return type(self), (self.view, self.reason)


class IngestWarning(UserWarning):
    """An ingest refused files, or pooled captures in one run that may be of different workloads.

    store: its path. code: that of the diagnostic; refused: files could not be read. reason: what, and what to do.
    """

    def __init__(self, store: str, code: str, reason: str) -> None:
        super().__init__(reason)
        self.store = store
        self.code = code
        self.reason = reason

    def __reduce__(self) -> tuple[type[IngestWarning], tuple[str, str, str]]:
        return type(self), (self.store, self.code, self.reason)


class OldRulesWarning(UserWarning):
    """Profiles of a store were read by older rules than those of this nsightlens.

    path: the store. profiles: how many. what_to_do: the command that reads again what the rules changed.
    """

    def __init__(self, path: str, profiles: int) -> None:
        self.path = path
        self.profiles = profiles
        self.what_to_do = _command("refresh", store=path)
        are = "profile is" if profiles == 1 else "profiles are"
        super().__init__(f"{profiles} {are} older than the rules of this version; to read what they changed again: ",
                         self.what_to_do)

    @property
    def text(self) -> Text:
        """Return the message."""
        return self.args

    def __str__(self) -> str:
        return written(self.text)

    def __reduce__(self) -> tuple[type[OldRulesWarning], tuple[str, int]]:
        return type(self), (self.path, self.profiles)


# Who imports the package waits for neither dataclasses nor regular expressions: few errors name a command.


def _command(name: str, *arguments: str, store: str | PathLike[str]) -> Verbatim:
    from nsightlens.terminal.command import Command

    return Command(name, arguments).shell(fspath(store))
