"""Every exception that nsightlens raises on purpose, each with the exit code that the command line gives it."""

from __future__ import annotations

from os import PathLike


class NsightlensError(Exception):
    """Something could not be done; the message says what and what to do next."""

    exit_code = 1


class UsageError(NsightlensError):
    """The request itself was wrong (an unknown view, a bad parameter); the message names the choices."""

    exit_code = 2


class ReadError(NsightlensError):
    """One input file could not be read. `code` is the diagnostic code it is recorded under."""

    def __init__(self, path: str | PathLike[str], reason: str, what_to_do: str, code: str = "unreadable") -> None:
        super().__init__(f"{path}: {reason}. {what_to_do}")
        self.path = str(path)
        self.reason = reason
        self.what_to_do = what_to_do
        self.code = code

    def __reduce__(self) -> tuple[type[ReadError], tuple[str, str, str, str]]:
        return type(self), (self.path, self.reason, self.what_to_do, self.code)


class UnknownFormatError(ReadError):
    """The file is none of the formats that a reader knows."""

    def __init__(self, path: str | PathLike[str], reason: str, what_to_do: str, code: str = "unknown_format") -> None:
        super().__init__(path, reason, what_to_do, code)


class OverlapError(NsightlensError):
    """Files taken for windows of one process overlap in time, so they are not: each has to be read for itself."""


class SchemaError(NsightlensError):
    """A table does not have the columns that schema.py defines: a defect of ours, not of the input."""


class ViewError(NsightlensError):
    """The file of a view is wrong, one of ours or of the user's own folder; the message begins with FILE:LINE."""

    def __init__(self, file: str | PathLike[str], line: int, what: str) -> None:
        super().__init__(f"{file}:{line}: {what}")


class MissingExtraError(NsightlensError):
    """A package that only an extra of nsightlens installs is missing; the message has the command that installs it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'nsightlens[{extra}]'")
        self.package = package
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        return type(self), (self.package, self.extra)


class StoreError(NsightlensError):
    """The store cannot be opened or written; the message says what to do."""


class BalanceWarning(UserWarning):
    """The parts of a breakdown do not sum to its total; the message says where and by how much."""


class OldRulesWarning(UserWarning):
    """Profiles of a store were read by older rules than those of this nsightlens; the message says how many, and what to run."""
