"""The envelope of an answer as JSON: what it says of itself beside its rows. schemas/ has the shape of each; docs/python.md."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from nsightlens.errors import UsageError
from nsightlens.pages.arrow import rows_of

if TYPE_CHECKING:
    import pyarrow as pa

    from nsightlens.terminal.command import Command

VERSION = 1
"""Of all shapes: raised, with files beside those in schemas/, where a key, or what is below it, gets another name, place or
meaning. New keys and columns do not raise it."""
_UNITS = {
    "bytes_per_s": "bytes/s", "gbyte_per_s": "GB/s", "gflop_per_s": "GFLOP/s", "flop_per_s": "FLOP/s",
    "flop_per_byte": "FLOP/byte", "_flop": "FLOP",
    "_bytes": "bytes", "_ns": "ns", "_us": "µs", "_s": "s", "_pct": "%", "_hz": "Hz",
}
"""Endings of columns, and their unit; the first that fits."""
_CERTAINTY = ("grade", "confidence", "uncertainty_ns")
"""Endings of columns that say how certain a row is."""
_BOUNDS = ("run", "tool", "rank", "step")
Window = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class About:
    """What an answer says of itself, beside what its columns say.

    schema: its name, nsightlens. before it; "": the command's. program: the version of nsightlens.
    window: the filters that bound the time it is of, and the judged windows; None: it is of no recorded time.
    certainty: how certain it is, in a sentence. not_recorded: what was not, and why. notes: what people must know of the rows.
    Both are asked for when the rows are written.
    """

    schema: str = ""
    program: str = ""
    window: Window | None = None
    certainty: str | None = None
    not_recorded: Callable[[], Sequence[str]] = tuple
    notes: Callable[[], Sequence[str]] = tuple


def versions(about: About) -> dict[str, object]:
    """Return what says of which shape an answer is, of JSON and Parquet."""
    return {"schema": f"nsightlens.{about.schema}", "version": VERSION, "nsightlens": about.program}


def head(about: About, command: Command, columns: Iterable[str]) -> dict[str, object]:
    """Return what stands before the rows. command: what repeats the answer."""
    from nsightlens.discovery.secrets import struck  # its patterns take milliseconds to make, and a table says no command

    names = list(dict.fromkeys(columns))
    graded = [name for name in names if name.endswith(_CERTAINTY)]
    return {
        **versions(about), "command": command.name, "repeat": struck(command.shell()),
        "window": about.window,
        "units": {name: unit for name in names if (unit := unit_of(name))},
        "certainty": {"columns": graded, "text": about.certainty} if graded or about.certainty else None,
    }


def tail(about: About) -> dict[str, object]:
    """Return what stands behind the rows."""
    return {"not_recorded": list(about.not_recorded()), "notes": list(about.notes())}


def unit_of(column: str) -> str | None:
    """Return the unit of a column's numbers, by its name; None for what has none."""
    return next((unit for ending, unit in _UNITS.items() if f"_{column}".endswith(ending)), None)


def rows_as_json(about: About, command: Command, tables: Iterable[pa.Table]) -> Iterator[str]:
    """Yield the text of one object with the rows of tables of one schema, one at least, as they come."""
    before, unknown = "", set[str]()
    for number, table in enumerate(tables):
        if number == 0:
            yield f"{dumped(head(about, command, table.column_names))[:-2]},\n \"rows\": ["
            unknown = {*table.column_names}
        unknown -= known_columns(table)
        for row in records(table):
            yield f"{before}\n  " + dumped(row).replace("\n", "\n  ")  # no other end of a line
            before = ","
    last = {"unknown": sorted(unknown) if before else [], **tail(about)}
    yield ("\n ]" if before else "]") + f",{dumped(last)[1:]}\n"


def tables_as_json(about: About, command: Command, tables: Mapping[str, pa.Table]) -> str:
    """Return the text of one object with several tables, lists of rows under "tables"."""
    columns = (name for table in tables.values() for name in table.column_names)
    rows = {name: records(table) for name, table in tables.items()}
    return dumped({**head(about, command, columns), "tables": rows, **tail(about)}) + "\n"


def window_of(asked: Mapping[str, object]) -> Window:
    """Return the filters that bound the recorded time of an answer, from the parameters of a view or column -> values."""
    wanted = {name.removeprefix("only_").removeprefix("which_"): value for name, value in asked.items() if value is not None}
    return {name: list(value) if isinstance(value, (list, tuple, set)) else [value] for name, value in wanted.items()
            if name in _BOUNDS}


def known_columns(table: pa.Table) -> set[str]:
    """Return the columns that have a value in some row."""
    return {name for name, column in zip(table.column_names, table.columns, strict=True) if column.null_count < len(column)}


def judged_windows(time_tree: pa.Table) -> list[dict[str, Any]]:
    """Return the windows that are judged, summed over ranks and GPUs for each run and tool; steps: None without steady steps."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in time_tree.select(["run", "tool", "depth", "node", "count", "total_ns"]).to_pylist():
        if row["depth"] == 0 and row["node"] == "window":
            found.setdefault((row["run"], row["tool"]), []).append(row)
    return [{"run": run, "tool": tool, "windows": len(rows), "total_ns": sum(row["total_ns"] for row in rows),
             "steps": sum(row["count"] for row in rows) if all(row["count"] for row in rows) else None}
            for (run, tool), rows in found.items()]


def records(table: pa.Table) -> list[dict[str, object]]:
    """Return rows as values of JSON by column. Raises UsageError for two columns of one name."""
    if len(set(table.column_names)) < table.num_columns:
        raise UsageError("two columns have the same name, and JSON would lose one: rename them with AS, or use --format csv")
    return [dict(zip(table.column_names, map(_jsonable, row), strict=True)) for row in rows_of(table)]


def dumped(value: object) -> str:
    """Return the text of JSON."""
    return json.dumps(value, indent=1, ensure_ascii=False, default=plain)


def plain(value: object) -> object:
    """Return what stands in JSON for a value that it does not have."""
    return float(value) if isinstance(value, Decimal) else str(value)


def _jsonable(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
