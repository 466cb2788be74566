"""A text that names commands -> the same text with the calls of Python that do the same; what has no call stays a command."""

from __future__ import annotations

import re
from collections.abc import Callable

_FILTERS = ("run", "rank", "step", "tool", "family")
_VALUE = r"[^\s,;()\"']*[^\s,;()\"'.:]"
_ARGUMENTS = rf"(?P<rest>(?: (?:--[a-z-]+={_VALUE}|--(?:{'|'.join(_FILTERS)}|limit) {_VALUE}|[a-z_]+={_VALUE}))*)"


def _view(found: re.Match[str]) -> str:
    return f"store.view({', '.join([_quoted(found['view']), *_keywords(found['rest'], 'only_')])}){_sorted(found['rest'])}"


def _compared(found: re.Match[str]) -> str:
    names = [_quoted(name) for name in (found["base"], found["other"]) if name]
    return f"nl.compare({', '.join(['store', *names])})"


def _ranks(found: re.Match[str]) -> str:
    return f"nl.compare({', '.join(['store', 'ranks=True', *_keywords(found['rest'])])})"


def _summed_up(found: re.Match[str]) -> str:
    return f"nl.summary({', '.join(['store', *_keywords(found['rest'])])})"


def _plotted(found: re.Match[str]) -> str:
    call = f"nl.plots.{found['view']}(store.view({_quoted(found['view'])}))"
    return f"nl.plots.save({call}, {_quoted(found['file'])})" if found["file"] else call


def _roofline(found: re.Match[str]) -> str:
    asked = f"\"true_roofline\", time={_quoted(found['tool'])}" if found["tool"] else '"roofline"'
    return f"nl.plots.roofline(store.view({asked}))"


def _ingested(found: re.Match[str]) -> str:
    run = f", run={_quoted(found['run'])}" if found["run"] else ""
    return f"nl.ingest({_quoted(found['captures'])}{run})"


_CALLS: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (rf"nsightlens show (?P<view>\w+){_ARGUMENTS}", _view),
    (rf"nsightlens plot (?P<view>\w+)(?: --output (?P<file>{_VALUE}))?", _plotted),
    (r"nsightlens roofline(?: --time (?P<tool>\w+))?(?! -)", _roofline),
    (r"nsightlens sql (?P<query>\"[^\"]*\"|'[^']*')", lambda found: f"store.sql({found['query']})"),
    (rf"nsightlens compare ranks{_ARGUMENTS}", _ranks),
    (r"nsightlens compare runs(?: (?P<base>\w+) (?P<other>\w+))?", _compared),
    (rf"nsightlens summary{_ARGUMENTS}", _summed_up),
    (r"nsightlens report(?: --open)?(?! -)", lambda found: "nl.report(store)"),
    (rf"nsightlens ingest (?P<captures>(?!-){_VALUE})(?: --run (?P<run>{_VALUE}))?(?! -)", _ingested),
    (rf"nsightlens remove --run (?P<run>{_VALUE})", lambda found: f"nl.remove(store, run={_quoted(found['run'])})"),
    (rf"--run (?P<run>{_VALUE})", lambda found: f"run={_quoted(found['run'])}"),
)
"""Each pattern of a command, and what makes the call of it; the last is an option that a text names alone."""


def python_calls(text: str) -> str:
    """Return a text whose commands are the calls of Python that do the same, where there are such."""
    for pattern, call in _CALLS:
        text = re.sub(rf"(?<![\w.-]){pattern}", call, text)
    return text


def _keywords(arguments: str, filter_prefix: str = "") -> list[str]:
    """Return the arguments of a command as keyword arguments; how its table is sorted and cut is not among them."""
    found = []
    for name, value in re.findall(r"(?:--)?([a-z_-]+)[= ](\S+)", arguments):
        if name in _FILTERS:
            found.append(f"{filter_prefix}{name}={_literal(value)}")
        elif f"--{name}" not in arguments:
            found.append(f"{name}={_literal(value)}")
    return found


def _sorted(arguments: str) -> str:
    """Return the call that sorts a table as the command does; nothing where it does not."""
    sort = re.search(r"--sort=(\S+)", arguments)
    if sort is None:
        return ""
    keys = ", ".join(f"({_quoted(name.lstrip('-'))}, {_quoted('descending' if name.startswith('-') else 'ascending')})"
                     for name in sort[1].split(","))
    return f".sort_by([{keys}])"


def _literal(value: str) -> str:
    return value if re.fullmatch(r"-?\d+(\.\d+)?", value) else _quoted(value)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
