"""What changed from one run to another: the difference of their trees, and the tables behind `nsightlens compare`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nsightlens.analyses import _compared_runs, _runs, tree_difference
from nsightlens.diagnosis import counter_difference, difference_words
from nsightlens.diagnosis.difference import Difference, Property, difference, properties, property_of
from nsightlens.errors import UsageError, not_a_choice

if TYPE_CHECKING:
    from nsightlens.store.store import Store

_SHOWN = ("node", "kernel_key", "base_ns", "other_ns", "difference_ns", "change_pct")
_PROPERTIES = pa.schema([("property", pa.string()), ("tool", pa.string()), ("base_value", pa.string()),
                         ("other_value", pa.string()), ("same", pa.bool_())])
_ROWS = 12
OnQuestion = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class RunPlace:
    """A run: the store that holds it, its name there, and what it is called here."""

    store: Store
    run: str
    name: str


class Comparison(dict[str, pa.Table]):
    """The tables of a comparison by name; printed, and in a notebook, its verdict.

    found: the difference of the trees; None for runs that only ncu measured. first: it in a sentence, behind what makes two
    runs hard to compare. certainty: how certain it is, nothing for more than two runs. verdict: both.
    """

    def __init__(
        self, runs: Sequence[str], tables: dict[str, pa.Table], first: Sequence[str], found: Difference | None = None,
    ) -> None:
        super().__init__(tables)
        self.runs, self.found, self.first = tuple(runs), found, list(first)
        self.certainty = "" if len(self.runs) > 2 else difference_words.certainty(found) if found else difference_words.REPLAYED
        self.verdict = [*self.first, *filter(None, [self.certainty])]

    @property
    def _summary_lines(self) -> list[str]:
        rows = self["comparability"].to_pylist() if "comparability" in self else []
        differ = ", ".join(row["property"] for row in rows if row["same"] is False)
        return [f"{' and '.join(self.runs[1:])} against {self.runs[0]}", *self.verdict,
                *([f"The recordings differ in {differ}: see comparability."] if differ else [])]

    def __repr__(self) -> str:
        """Return the verdict and the names of the tables with their numbers of rows."""
        tables = ", ".join(f"{name} ({table.num_rows})" for name, table in self.items())
        return "\n".join([*self._summary_lines, f"tables (rows): {tables}"])

    def _repr_html_(self) -> str:
        """Return the verdict and what changed most, as notebooks show them."""
        from nsightlens.views.html_table import escaped, html_table

        paragraphs = "".join(f"<p>{escaped(line)}</p>" for line in self._summary_lines)
        table = next(iter(self.values()))
        return paragraphs + html_table(table.select([name for name in _SHOWN if name in table.column_names]), _ROWS)


def compare_two_runs(store: Store, base: str | None = None, other: str | None = None, *, by: str | None = "kernel",
                     on_question: OnQuestion | None = None, time: str | None = None, **judging: Any) -> Comparison:
    """Return what changed between two runs of a store, as tables: tree (tree_difference), comparability, and differences
    (run_difference of items; by=None: left out).

    base, other: may be left out where the store has two runs. judging: parameters of run_difference.
    on_question: called before each question: how many are answered, of how many, and its name.
    Raises UsageError for runs and parameters that there are not.
    """
    places = [RunPlace(store, run, run) for run in _runs.named(store.sql, base, other)]
    return compare_places(places, by=by, on_question=on_question, time=time, **judging)


def compare_places(places: Sequence[RunPlace], *, by: str | None = None, on_question: OnQuestion | None = None,
                   time: str | None = None, **judging: Any) -> Comparison:
    """Return what changed between runs, of one store or of several; of more than two: their step times and trees.

    by: differences of items (one store and two runs only). Raises UsageError as compare_two_runs.
    """
    asked = on_question or (lambda *_: None)
    if time not in (None, *_runs.TIMELINE):
        raise not_a_choice(None, "time", time, _runs.TIMELINE)
    asked(0, 3, "trees")
    runs, names = [place.run for place in places], [place.name for place in places]
    tools_of_places = [_compared_runs.tools(place.store.sql, place.run) for place in places]
    if len(places) == 2 and not any(tools_of_places) and (compared := _compare_counters(places)):
        return compared
    tool = _compared_runs.common_tool(names, tools_of_places, time)
    differences = difference([_compared_runs.side(place.store.sql, place.run, tool, place.name) for place in places])
    if len(places) > 2:
        return Comparison(names, {"tree": tree_difference.series(differences)}, difference_words.first(differences), differences)
    tables = {"tree": tree_difference.table(differences)}
    asked(1, 3, "comparability")
    tables["comparability"] = _comparability(places, properties(differences), tool)
    if by and places[0].store is places[1].store:
        asked(2, 3, "run_difference")
        tables["differences"] = places[0].store.view("run_difference", base=runs[0], other=runs[1], by=by, time=tool, **judging)
    elif by and judging:
        raise UsageError("items are compared between two runs of one store", subject="by", value=by)
    return Comparison(names, tables, difference_words.first(differences), differences)


def _compare_counters(places: Sequence[RunPlace]) -> Comparison | None:
    """Return the kernels of two runs that only ncu measured, compared; None where ncu measured none of one."""
    base, other = (counter_difference.counted(place.store.sql, place.run) for place in places)
    if not base or not other:
        return None
    paired, runs = counter_difference.pairs(base, other), (places[0].name, places[1].name)
    tables = {"counters": tree_difference.counters(paired, runs),
              "comparability": _comparability(places, counter_difference.properties(base, other), "ncu")}
    return Comparison(runs, tables, counter_difference.sentence(paired, runs))


def _comparability(places: Sequence[RunPlace], of_work: Sequence[Property], tool: str) -> pa.Table:
    """Return what was the same and what differed: what the view comparability asks, then what the tool recorded of the work."""
    values: dict[tuple[str, str], list[str | None]] = {}
    for at, place in enumerate(places):
        for row in place.store.view("comparability", base=place.run, other=place.run).to_pylist():
            values.setdefault((row["property"], row["tool"]), [None, None])[at] = row["base_value"]
    properties = [(of_tool, property_of(name, base, other)) for (name, of_tool), (base, other) in values.items()]
    rows = [{"property": each.name, "tool": of_tool, "base_value": each.base, "other_value": each.other, "same": each.same}
            for of_tool, each in [*properties, *((tool, each) for each in of_work)]]
    return pa.Table.from_pylist(sorted(rows, key=lambda row: (row["same"] is None, row["same"] or False)), schema=_PROPERTIES)
