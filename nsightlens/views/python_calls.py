"""A text that names commands -> the same text with the calls of Python that do the same; what has no call stays a command."""

from __future__ import annotations

import re
from collections.abc import Callable

from nsightlens.terminal.command import Argument, Command, keyword

_FILTERS = ("run", "rank", "step", "tool", "family")
_VALUE = r"[^\s,;()\"']*[^\s,;()\"'.:]"
_ARGUMENTS = rf"(?P<rest>(?: (?:--[a-z-]+={_VALUE}|--(?:{'|'.join(_FILTERS)}|limit) {_VALUE}|[a-z_]+={_VALUE}))*)"

_COMMANDS: tuple[tuple[str, Callable[[re.Match[str]], Command]], ...] = (
    (rf"nsightlens show (?P<view>\w+){_ARGUMENTS}", lambda found: Command("show", (found["view"], *arguments(found["rest"])))),
    (rf"nsightlens plot (?P<view>\w+)(?: --output (?P<file>{_VALUE}))?",
     lambda found: Command("plot", (found["view"], *_given("--output", found["file"])))),
    (r"nsightlens roofline(?: --time (?P<tool>\w+))?(?! -)", lambda found: Command("roofline", _given("--time", found["tool"]))),
    (r"nsightlens sql (?P<query>\"[^\"]*\"|'[^']*')", lambda found: Command("sql", (found["query"][1:-1],))),
    (rf"nsightlens compare ranks{_ARGUMENTS}", lambda found: Command("compare ranks", arguments(found["rest"]))),
    (r"nsightlens compare runs(?: (?P<base>\w+) (?P<other>\w+))?",
     lambda found: Command("compare runs", tuple(name for name in (found["base"], found["other"]) if name))),
    (rf"nsightlens summary{_ARGUMENTS}", lambda found: Command("summary", arguments(found["rest"]))),
    (r"nsightlens report(?: --open)?(?! -)", lambda found: Command("report")),
    (rf"nsightlens ingest (?P<captures>(?!-){_VALUE})(?: --run (?P<run>{_VALUE}))?(?! -)",
     lambda found: Command("ingest", (found["captures"], *_given("--run", found["run"])))),
    (rf"nsightlens remove --run (?P<run>{_VALUE})", lambda found: Command("remove", _given("--run", found["run"]))),
)
"""Each pattern of a command in our own sentences, and the command. Those with names in them are shown as calls from the first."""


def python_calls(text: str) -> str:
    """Return a text whose commands are the calls of Python that do the same, where there are such."""
    for pattern, command in _COMMANDS:
        text = re.sub(rf"(?<![\w.-]){pattern}", lambda found, made=command: made(found).python(), text)  # type: ignore[misc]
    return re.sub(rf"(?<![\w.-])--run (?P<run>{_VALUE})", lambda found: keyword("run", [found["run"]]), text)


def _given(option: str, value: str | None) -> tuple[Argument, ...]:
    return ((option, value),) if value else ()


def arguments(text: str) -> tuple[Argument, ...]:
    """Return the arguments of a command in our own sentences: options with their values, and words key=value."""
    return tuple((f"--{name}", value) if dashes else f"{name}={value}"
                 for dashes, name, value in re.findall(r"(--)?([a-z_-]+)[= ](\S+)", text))
