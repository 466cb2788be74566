"""What must hold for the rows of every view: there are some, in an order that is unique, and no tool is added to another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from nsightlens import analyses
from nsightlens.views import registry
from tests.catalogs import asking, catalog
from tests.views.three_tools import TOOLS, Rows, launches, together

SQL = registry.public(registry.load())
ANALYSES = list(registry.analyses())
PLACES = {name: view.place for name, view in registry.known().items()}
CROSSING = ("kernels_joined", "tool_agreement", "profiler_overhead")  # they set tools side by side, each in its own column
SORTED = [name for name in SQL if name != "timeline_kernels"]  # that one is a table, as large as kernels
WALL_TIME = [name for name, view in SQL.items() if {"start_ns", "span_ns", "busy_ns", "idle_ns"} & dict(view.columns).keys()
             and name not in CROSSING]
ASKED: dict[str, dict[str, object]] = {
    "gpu_gaps": {"per": "process_device"},  # on a GPU as a whole only one gap begins at a time
    "operator_summary": {"by_shapes": True},  # without, shapes is NULL in every row
    "run_difference": {"base": "base", "other": "fused"},
    "run_waterfall": {"base": "base", "other": "fused"},
    "tree_difference": {"base": "base", "other": "fused"},
    "run_match": {"base": "direction", "other": "memory"},  # the kernels of both are equal
}
"""What a view is asked with where its default parameters leave nothing to compare."""
PLACED = {"place": "attributed_to"}
"""Columns that a view has for its order only, and the column of the result that each gives a place; else that is X of X_order."""


class Recorded:
    """A catalog of rows, and what each view returns of it: asked once."""

    def __init__(self, rows: Rows) -> None:
        self.connection = catalog(**rows)
        self._ask = asking(self.connection)
        self.rows = cache(self._rows)

    def _rows(self, name: str) -> list[tuple[Any, ...]]:
        view, parameters = registry.known()[name], ASKED.get(name, {})
        table = self._ask(*registry.query(view, parameters)) if view.sql else analyses.run(view, parameters, self._ask)
        return [tuple(str(value) if isinstance(value, dict | list) else value for value in row.values())
                for row in table.to_pylist()]

    def count(self, name: str, keys: Sequence[str]) -> int:
        """Return how many rows of the view differ in `keys`."""
        query, values = registry.query(SQL[name], ASKED.get(name, {}))
        distinct = ", ".join(keys) or "0"
        (found,) = self.connection.execute(f"SELECT count(DISTINCT ({distinct})) FROM ({query})", values).fetchall()
        return int(found[0])


@pytest.fixture(scope="module")
def single() -> dict[str, Recorded]:
    return {tool: Recorded(launches(tool)) for tool in TOOLS}


@pytest.fixture(scope="module")
def timelines() -> Recorded:
    return Recorded(together("nsys", "kineto"))


@pytest.fixture(scope="module")
def all_tools() -> Recorded:
    return Recorded(together(*TOOLS))


@pytest.fixture(scope="module")
def backwards() -> Recorded:
    return Recorded({table: rows[::-1] for table, rows in together(*TOOLS).items()})


def keys(sql: str) -> list[str]:
    """Return what a view is ordered by, as columns of its result or expressions of them."""
    order = sql.rpartition("ORDER BY")[2].rstrip(";\n ")
    bare = (re.sub(r"( DESC)?( NULLS \w+)?$", "", key) for key in _split(order))
    plain = (re.sub(r"\b[a-z]\w*\.(?=\w)", "", key) for key in bare)
    return [PLACED.get(key, key).removesuffix("_order") for key in plain]


def _split(text: str) -> Iterator[str]:
    """Yield what stands between the commas that lie in no brackets."""
    depth, begin = 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            yield text[begin:i].strip()
            begin = i + 1
    yield text[begin:].strip()


@pytest.mark.parametrize("name", registry.known())
def test_every_view_has_rows_here(name: str, all_tools: Recorded) -> None:
    assert all_tools.rows(name), (
        f"{name} returns no row of the test rows, so that the tests of its order and sums compare nothing with nothing: "
        "give it some in tests/views/three_tools.py")


@pytest.mark.parametrize("name", SORTED)
def test_the_order_ends_in_a_unique_key(name: str, all_tools: Recorded) -> None:
    order = keys(SQL[name].sql)
    assert all_tools.count(name, order) == len(all_tools.rows(name)), (
        f"rows tie in all of ({', '.join(order)}): end the ORDER BY of {PLACES[name]} in a key that tells them apart")


@pytest.mark.parametrize("name", SORTED)
def test_two_rows_tie_in_all_keys_but_the_last(name: str, all_tools: Recorded) -> None:
    """Else the test above could not see that a key is missing."""
    order = keys(SQL[name].sql)
    assert all_tools.count(name, order[:-1]) < len(all_tools.rows(name)), (
        f"without {order[-1]} the order of {PLACES[name]} is as unique on the test rows: drop the key, or add two rows that "
        "differ in nothing else to DIFFERENCES in tests/views/three_tools.py")


@pytest.mark.parametrize("name", [*SORTED, *ANALYSES])
def test_rows_and_their_order_do_not_depend_on_storage_order(name: str, all_tools: Recorded, backwards: Recorded) -> None:
    assert backwards.rows(name) == all_tools.rows(name), f"{PLACES[name]}: rows stored in reverse give another answer"


@pytest.mark.parametrize("name", [
    name for name, view in SQL.items() if "other_tool" not in dict(view.columns) and name not in CROSSING])
def test_no_view_adds_up_the_tools(name: str, single: dict[str, Recorded], all_tools: Recorded) -> None:
    """Three tools saw the same launches: each row of the result is one that a single tool gives alone."""
    alone = Counter(row for tool in single.values() for row in tool.rows(name))
    mixed = Counter(all_tools.rows(name)) - alone
    assert not mixed, f"{PLACES[name]} mixes tools: no tool alone gives {next(iter(mixed))}"


@pytest.mark.parametrize("name", WALL_TIME)
def test_ncu_durations_never_enter_wall_time(
    name: str, single: dict[str, Recorded], timelines: Recorded, all_tools: Recorded,
) -> None:
    assert single["ncu"].rows(name) == [], f"{PLACES[name]} has rows of ncu, which has no timeline: leave tool 'ncu' out"
    assert Counter(all_tools.rows(name)) == Counter(timelines.rows(name)), f"what ncu recorded changes the rows of {PLACES[name]}"


def test_timeline_is_that_of_nsys_alone(single: dict[str, Recorded], all_tools: Recorded) -> None:
    assert sorted(all_tools.rows("timeline_kernels"), key=str) == sorted(single["nsys"].rows("timeline_kernels"), key=str)


@pytest.mark.parametrize(("order", "expected"), [
    ("run, tool DESC, x.total_ns DESC NULLS LAST, name;", ["run", "tool", "total_ns", "name"]),
    ("array_position(['a', 'b'], w.grade), level_order", ["array_position(['a', 'b'], grade)", "level"]),
    ("recorded_under <> 'none', at_ns;\n", ["recorded_under <> 'none'", "at_ns"]),
])
def test_keys_of_an_order(order: str, expected: list[str]) -> None:
    assert keys(f"SELECT a, row_number() OVER (ORDER BY b)\nORDER BY {order}") == expected
