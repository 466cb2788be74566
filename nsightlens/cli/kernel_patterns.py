"""What people write after --kernel -> one regular expression: parts of names, `*` and `?`, regular expressions, lists.

Where no kernel is like it: the nearest names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsightlens.errors import UsageError
from nsightlens.names.closest import closest_words
from nsightlens.names.display_names import resolve_display_name
from nsightlens.names.kernel_names import labels
from nsightlens.terminal.quoting import quoted

if TYPE_CHECKING:
    from nsightlens.store.store import Store

_REGEX_ONLY = re.compile(r"\.[*+?]|[\^$|\\]|\[.*\]|\(.*\)")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which kernels were meant: a regular expression (None: all), how it was understood, and what is like no kernel."""

    regex: str | None
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def choice(texts: Sequence[str], names: Collection[str], *, regex: bool) -> Choice:
    """Return what the texts mean for kernels of these names. Raises UsageError for a text that cannot be read as `regex` says.

    A text is a part of a name in any case; where no name has it, a pattern with `*` and `?`, a name as tables show it, cut with
    `…`, a regular expression, or a list with commas, whichever fits a name.
    """
    if not texts:
        return Choice(None)
    if regex:
        return Choice("|".join(f"(?:{_checked(text)})" for text in texts))
    found: dict[str, None] = {}
    notes: list[str] = []
    unknown: list[str] = []
    for text in texts:
        parts = [text] if _meaning(text, names) else [part.strip() for part in text.split(",") if part.strip()]
        for part in parts:
            meaning = _meaning(part, names)
            if meaning is None:
                unknown.append(part)
                continue
            found[meaning[0]] = None
            notes += [f"--kernel {part}: {meaning[1]}"] if meaning[1] else []
    return Choice("|".join(found) or None, tuple(notes), tuple(unknown))


def _meaning(text: str, names: Collection[str]) -> tuple[str, str] | None:
    """Return the regular expression that a text stands for and a note on how it was understood; None where no name fits."""
    glob = (_glob, "")
    expression = (_expression, "taken as a regular expression, as with --regex")
    shown = (lambda text: _exactly(resolve_display_name(text, names)), "")
    others = [shown, expression, glob] if _REGEX_ONLY.search(text) else [glob, shown]
    for make, note in [(_part, ""), *others]:
        pattern = make(text)
        if pattern and any(re.search(pattern, name) for name in names):
            return pattern, note
    return None


def _part(text: str) -> str:
    return f"(?i:{re.escape(text)})"


def _exactly(names: Sequence[str]) -> str | None:
    return f"^(?:{'|'.join(map(re.escape, names))})$" if names else None


def _glob(text: str) -> str | None:
    """Return `*` and `?` as people mean them: over the whole base name, or from and to wherever a `*` stands at an end."""
    if "*" not in text and "?" not in text:
        return None
    body = re.escape(text.strip("*")).replace(r"\*", ".*").replace(r"\?", ".")
    start, end = ("" if text.startswith("*") else r"(?:^|[\s:])"), ("" if text.endswith("*") else r"(?:$|[<(])")
    return f"{start}(?is:{body}){end}"


def _expression(text: str) -> str | None:
    try:
        re.compile(text)
    except re.error:
        return None
    return f"(?:{text})"


def _checked(text: str) -> str:
    """Return the regular expression; what Python cannot read, DuckDB cannot either."""
    try:
        re.compile(text)
    except re.error as exc:
        raise UsageError(f"--kernel {text}: not a regular expression: {exc}") from exc
    return text


def known_names(store: Store, time: str) -> set[str]:
    """Return all names by which the kernels that may be shown can be asked for."""
    query = "SELECT name, kernel_key FROM ncu_by_config"
    if time != "ncu":
        query += " UNION SELECT DISTINCT name, kernel_key FROM kernels"
    found = store.sql(query)
    return {name for column in found.columns for name in column.to_pylist() if name is not None}


def unlike(store: Store, texts: Sequence[str]) -> list[str]:
    """Return for each text that no kernel is like it, and which are the nearest: once, where they are the same."""
    rows = store.sql("SELECT DISTINCT name, coalesce(kernel_key, name) AS key FROM ncu_by_config").to_pylist()
    alike: dict[str, list[str]] = {}
    for text in texts:
        alike.setdefault(", ".join(_nearest(text, rows)) + _elsewhere(store, text), []).append(text)
    return [f"ncu profiled no kernel like {' or '.join(map(repr, one))}; similar names: {near}" for near, one in alike.items()]


def _nearest(kernel: str, rows: list[dict[str, Any]]) -> list[str]:
    """Return up to five names similar to `kernel`, quoted, by a word, or a part of one, of the full name."""
    near = closest_words(kernel, {row["name"]: row["key"] for row in rows})
    found = labels(near)
    best = sorted(near, key=lambda name: (-near[name][0], name))[:5]
    return [quoted(found[name]) + ("" if near[name][1] in found[name] else f" ({near[name][1]})") for name in best]


def _elsewhere(store: Store, kernel: str) -> str:
    """Return that other tools recorded such kernels; nothing where none did."""
    seen = store.sql("SELECT DISTINCT tool FROM kernels WHERE tool <> 'ncu' AND contains(lower(name), lower(?)) ORDER BY tool",
                     [kernel]).column("tool").to_pylist()
    return f". {' and '.join(seen)} recorded such kernels, without counters: profile them with ncu" if seen else ""
