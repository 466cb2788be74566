"""Answers of tools: the envelope of JSON with as many rows as fit, and texts from captures that are data and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nsightlens import __version__
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.pages.envelope import About, head, known_columns, plain, records, tail
from nsightlens.terminal.command import Command
from nsightlens.terminal.printable import printable

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

FEW_BYTES, MOST_BYTES = 4_000, 64_000
"""Of an answer: where no limit was given, and where one was."""
MOST_ROWS = 1_000
_LONGEST, _LONGEST_PROSE = 160, 700
"""Characters of a text, and of one that is a sentence of ours."""
_PROSE = ("text", "message", "what", "action", "against", "meaning", "doc", "sql", "reason")
_LISTED = 30
_DIGITS = 7
_TRIES = 5
Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool found. command: what repeats it. tables: the one with its rows under the name "", or several by name.

    limit: how many rows were asked for; None: as many as fit a small answer. more: what asks for those that are left out.
    left: how many rows the table lacks; is_cut: at least.
    """

    command: Command
    tables: Mapping[str, pa.Table]
    about: About
    limit: int | None = None
    more: str = "ask with limit, or for fewer columns"
    left: int = 0
    is_cut: bool = False
    notes: Sequence[str] = field(default=())


def text_of(answer: Answer, store: Path, warnings: Sequence[str] = ()) -> str:
    """Return an answer as JSON of few bytes, its largest tables cut; notes say by how much. store: what it is of."""
    command = Command(answer.command.name, (*answer.command.arguments, ("--store", store)))
    tables = {name: table if answer.limit is None else table.slice(0, answer.limit) for name, table in answer.tables.items()}
    whole = {name: list(map(_cleaned, records(table))) for name, table in tables.items()}
    columns = [name for table in tables.values() for name in table.column_names]
    about = replace(answer.about, program=__version__)
    fixed = {**head(about, command, columns), **_unknown(tables), **tail(about)}
    noted = [*about.notes(), *answer.notes, *warnings]
    text, room = "", FEW_BYTES if answer.limit is None else MOST_BYTES
    excess = len(dumped(_cleaned(fixed, _LONGEST_PROSE)).encode())
    for _ in range(_TRIES):  # what is left out is said, which takes bytes itself
        shown, room = _fitting(whole, room - excess)
        said = _cleaned({**fixed, "notes": [*noted, *_left_out(answer, shown)]}, _LONGEST_PROSE)
        text = dumped({**said, **({"rows": shown[""]} if "" in shown else {"tables": shown})})
        excess = len(text.encode()) - (FEW_BYTES if answer.limit is None else MOST_BYTES)
        if excess <= 0:
            break
    return text


def _unknown(tables: Mapping[str, pa.Table]) -> dict[str, object]:
    if "" not in tables:
        return {}
    table = tables[""]
    return {"unknown": sorted({*table.column_names} - known_columns(table)) if table.num_rows else []}


def _fitting(tables: Mapping[str, Rows], room: int) -> tuple[dict[str, Rows], int]:
    """Return the first rows of each table, as many as there is room for, and their bytes.

    The largest table gives way, of two alike the later.
    """
    sizes = {name: [len(dumped(row).encode()) + 1 for row in rows] for name, rows in tables.items()}
    place, totals = {name: number for number, name in enumerate(sizes, 1)}, {name: sum(rows) for name, rows in sizes.items()}
    while sum(totals.values()) > room and max(map(len, sizes.values())) > 1:
        largest = max(sizes, key=lambda name: (len(sizes[name]) > 1, place[name] * totals[name]))
        totals[largest] -= sizes[largest].pop()
    return {name: rows[:len(sizes[name])] for name, rows in tables.items()}, sum(totals.values())


def _left_out(answer: Answer, shown: Mapping[str, Rows]) -> list[str]:
    said = []
    for name, rows in shown.items():
        left = answer.tables[name].num_rows - len(rows) + answer.left
        if left:
            of_table, least = f"{name}: " if name else "", "at least " if answer.is_cut and answer.left else ""
            said.append(f"{of_table}{least}{left:,} more: {answer.more}")
    return said


def error_text(error: NsightlensError) -> str:
    """Return what went wrong, and what can be asked for instead, as JSON."""
    choices = [_short(str(choice), _LONGEST) for choice in error.choices] if isinstance(error, UsageError) else []
    few = choices if len(choices) <= _LISTED and len(dumped(choices)) < FEW_BYTES // 2 else []
    said = " ".join(error.told(call_of).split())
    return dumped({"error": _short(said, _LONGEST_PROSE), **({"choices": few} if few else {})})


def call_of(command: Command) -> str:
    """Return the call of a tool that does what a command does; the command line where there is none."""
    words = [str(word) for word in command.words]
    match command.name, words:
        case "show", [view, *filters]:
            given = dict(word.split("=", 1) for word in filters)
            return f"show(view={dumped(view)}{f', filters={dumped(given)}' if given else ''})"
        case "sql", [statement]:
            return f"sql(statement={dumped(statement)})"
        case "views", words:
            return f"views(question={dumped(' '.join(words))})" if words else "views()"
        case ("summary" | "roofline" | "compare ranks"), _:
            return f"{command.name.replace(' ', '_')}()"
    return command.shell()


def dumped(value: object) -> str:
    """Return JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=plain)


def _cleaned(row: Mapping[str, Any], longest: int = _LONGEST) -> dict[str, Any]:
    return {_short(name, longest): _short(value, _LONGEST_PROSE if name in _PROSE else longest) for name, value in row.items()}


def _short(value: Any, longest: int) -> Any:
    """Return a value with few digits, whose texts have no control characters, and are cut in their middle where they are long."""
    if isinstance(value, str):
        text = printable(value)
        return text if len(text) <= longest else f"{text[:longest * 2 // 3]}…{text[-longest // 3:]}"
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {_short(name, longest): _short(each, longest) for name, each in [*value.items()][:_LISTED]}
    return [_short(each, longest) for each in value[:_LISTED]] if isinstance(value, (list, tuple)) else value
