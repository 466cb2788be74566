"""A command of nsightlens as a value: shown as a command line to paste, or as the call of Python that does the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import PurePath

from nsightlens.terminal.quoting import Verbatim, in_python, shell_line

Argument = str | PurePath | tuple[str] | tuple[str, str | PurePath]
"""A word, a path, or an option with its value: ("--run", "base"), ("--open",)."""
_FILTERS = ("run", "rank", "step", "tool", "family")
_NAMES = re.compile(r"(?:only_|which_)?(?:run|tool|family|name|kernel)|base|other|query")
"""Parameters whose values are names, also where they look like a number."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_WORDS = {"true": "True", "false": "False"}


@dataclass(frozen=True, slots=True)
class Command:
    """A command of nsightlens. name: such as "show" or "compare ranks"."""

    name: str
    arguments: tuple[Argument, ...] = ()

    @classmethod
    def of(cls, fields: Sequence[str]) -> Command:
        """Return the command that has these `fields`."""
        name, *arguments = fields
        return cls(name, tuple(_option_of(field) if field.startswith("--") else field for field in arguments))

    @property
    def fields(self) -> list[str]:
        """Return the name, and each argument as a text, for a column of a table: options as --name=value, words before them."""
        return [self.name, *map(str, self.words), *("=".join(map(str, option)) for option in self.options)]

    @property
    def words(self) -> list[str | PurePath]:
        """Return the arguments that are no options."""
        return [argument for argument in self.arguments if not isinstance(argument, tuple)]

    @property
    def options(self) -> list[tuple[str] | tuple[str, str | PurePath]]:
        """Return the options."""
        return [argument for argument in self.arguments if isinstance(argument, tuple)]

    def __str__(self) -> str:
        """Return the command line."""
        return self.shell()

    def shell(self, store: str | PurePath | None = None) -> Verbatim:
        """Return the command line. store: the --store that it names; None: none, or that of its arguments."""
        arguments = [*self.arguments, *([("--store", store)] if store is not None else [])]
        if any(isinstance(word, str) and word.startswith("-") for word in self.words):
            arguments = [*(one for one in arguments if isinstance(one, tuple)), "--", *self.words]
        return shell_line("nsightlens", *self.name.split(), *(word for argument in arguments for word in _words(argument)))

    def python(self) -> str:
        """Return the call of Python that does the same; the command line where there is none."""
        call = _CALLS.get(self.name)
        return call(self) if call else self.shell()


def _option_of(field: str) -> tuple[str] | tuple[str, str]:
    option, equals, value = field.partition("=")
    return (option, value) if equals else (option,)


def _words(argument: Argument) -> tuple[str | PurePath, ...]:
    if not isinstance(argument, tuple):
        return (argument,)
    option, *values = argument
    return (f"{option}={values[0]}",) if values and isinstance(values[0], str) and values[0].startswith("-") else argument


def keyword(name: str, values: Sequence[str]) -> str:
    """Return an argument by its name: a value, or a list of several."""
    shown = [_literal(name, value) for value in values]
    value = shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"
    is_plain = name.isascii() and name.isidentifier() and not iskeyword(name)
    return f"{name}={value}" if is_plain else f"**{{{in_python(name)}: {value}}}"


def _literal(name: str, value: str) -> str:
    if _NAMES.fullmatch(name):
        return in_python(value)
    return _WORDS.get(value, value if _NUMBER.fullmatch(value) else in_python(value))


def _option(command: Command, name: str) -> str | None:
    return next((str(value[0]) for option, *value in command.options if option == f"--{name}" and value), None)


def _keywords(command: Command, prefix: str = "") -> list[str]:
    """Return parameters and filters as keyword arguments, in their order."""
    found: dict[str, list[str]] = {}
    for argument in command.arguments:
        if not isinstance(argument, tuple):
            name, equals, value = str(argument).partition("=")
            if equals:
                found[name] = [value]
        elif argument[0].removeprefix("--") in _FILTERS and len(argument) > 1:
            found.setdefault(prefix + argument[0].removeprefix("--"), []).append(str(argument[-1]))
    return [keyword(name, values) for name, values in found.items()]


def _view(command: Command) -> str:
    view, sort = in_python(str(command.words[0])), _option(command, "sort")
    call = f"store.view({', '.join([view, *_keywords(command, 'only_')])})"
    keys = ", ".join(f"({in_python(name.lstrip('-'))}, {in_python('descending' if name.startswith('-') else 'ascending')})"
                     for name in (sort or "").split(","))
    return f"{call}.sort_by([{keys}])" if sort else call


def _plot(command: Command) -> str:
    view, file = str(command.words[0]), _option(command, "output")
    call = f"nl.plots.{view}(store.view({in_python(view)}))"
    return f"nl.plots.save({call}, {in_python(file)})" if file else call


def _roofline(command: Command) -> str:
    time = _option(command, "time")
    asked = f'"true_roofline", {keyword("time", [time])}' if time else '"roofline"'
    return f"nl.plots.roofline(store.view({asked}))"


def _ingest(command: Command) -> str:
    captures = [in_python(str(word)) for word in command.words]
    paths = captures[0] if len(captures) == 1 else f"[{', '.join(captures)}]"
    return f"nl.ingest({', '.join([paths, *_keywords(Command(command.name, tuple(command.options)))])})"


def _on_store(function: str) -> Callable[[Command], str]:
    return lambda command: f"{function}({', '.join(['store', *_keywords(command)])})"


_CALLS: dict[str, Callable[[Command], str]] = {
    "show": _view, "plot": _plot, "roofline": _roofline, "ingest": _ingest,
    "sql": lambda command: f"store.sql({in_python(str(command.words[0]))})",
    "summary": _on_store("nl.summary"), "remove": _on_store("nl.remove"), "report": _on_store("nl.report"),
    "compare ranks": lambda command: f"nl.compare({', '.join(['store', 'ranks=True', *_keywords(command)])})",
    "compare runs": lambda command: f"nl.compare({', '.join(['store', *(in_python(str(run)) for run in command.words)])})",
}
