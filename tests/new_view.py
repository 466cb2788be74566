"""Lay out a view with its test: `make new-view NAME=slow_copies [TOPIC=memory]`.

Writes sql/TOPIC/NAME.sql, tests/sql/TOPIC/NAME.toml and the view's row in docs/limits.md. The view answers at once; what begins
with TODO is left to fill in, and tests/views/test_registry.py and tests/test_limits.py say what belongs there.
"""

from __future__ import annotations

import re
import sys

from nsightlens import schema
from nsightlens.views import registry
from tests.places import ROOT

LIMITS = ROOT / "docs" / "limits.md"
_SQL = """\
-- TODO: what a row is and what it answers, in a sentence or two.
-- @scope run
-- @assumes TODO: what must be true of a capture for the answer to be; a line for each assumption.
-- @column run       Run (one workload in one configuration).
-- @column tool      Profiler: nsys, ncu or kineto. Never add them up: they saw the same launches.
-- @column launches  TODO: what it holds. A line for each column of the statement, in its order; units come last in the name.
CREATE VIEW {name} AS
SELECT run, tool, count(*) AS launches
FROM kernels
GROUP BY run, tool
ORDER BY run, tool; -- then what matters most first, then a key that is unique; sums of integers: TRY_CAST(sum(x) AS BIGINT)
"""
_CASE = '''\
[[case]]
about = "TODO: what this case shows, in a sentence"
kernels = """
run,tool,name,duration_ns
base,kineto,gemm,9
base,nsys,gemm,5
base,nsys,copy,7
"""
query = "SELECT * FROM {name}"
expected = """
TODO: the header, then the rows that the tables above must give, worked out by hand; an empty cell is NULL
"""
'''
_ROW = "| `{name}` | TODO | TODO | TODO | TODO | TODO: what it cannot show |"


def lay_out(name: str, topic: str) -> list[str]:
    """Write the three places of a new view and return them, relative to the repository. Raises SystemExit where it can't be."""
    topics = sorted({file.parent.name for file in registry.sql_files()})
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise SystemExit(f"{name!r} cannot name a view: use lower-case letters, digits and _, as in NAME=slow_copies")
    if topic not in topics:
        raise SystemExit(f"there is no topic {topic!r}: TOPIC is one of {', '.join(topics)}")
    if name in {*registry.load(), *registry.known(), *schema.TABLES}:
        raise SystemExit(f"there is a view or table {name} already: choose another NAME")
    texts = {f"nsightlens/sql/{topic}/{name}.sql": _SQL, f"tests/sql/{topic}/{name}.toml": _CASE}
    for place, text in texts.items():
        (ROOT / place).write_text(text.format(name=name), encoding="utf-8")
    LIMITS.write_text(with_row(LIMITS.read_text(encoding="utf-8"), name), encoding="utf-8")
    return [*texts, "docs/limits.md"]


def with_row(page: str, name: str) -> str:
    """Return the page of limits with a row for the view in the first table, in the order of names."""
    head, title, rest = page.partition("## View by view\n")
    table, end, tail = rest.partition("\n### ")
    rows = [line for line in table.splitlines(keepends=True) if line.startswith("| `")]
    rows.append(_ROW.format(name=name) + "\n")
    before = table[: table.index("| `")]
    return "".join([head, title, before, *sorted(rows, key=lambda row: row.split("`")[1]), end, tail])


def main() -> None:
    """Lay out the view that the command line names, and say what to do next."""
    if len(sys.argv) not in (2, 3):
        raise SystemExit("make new-view NAME=slow_copies [TOPIC=memory]")
    name, topic = sys.argv[1], (sys.argv[2:] or ["kernels"])[0]
    sql, case, limits = lay_out(name, topic)
    print(f"{sql}: what a row is, and the statement\n{case}: rows that go in, and the answer worked out by hand\n"
          f"{limits}: the row of {name}, what a capture of each tool can say\n"
          f"Fill in what begins with TODO, then: make docs && make test-view NAME={name}")


if __name__ == "__main__":
    main()
