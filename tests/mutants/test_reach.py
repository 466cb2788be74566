"""Which lines a changed line stands for, and which tests a mutant meets, in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("coverage")
from tests.mutants.reach import Reach, statement

SOURCE = """LIMIT = 3

class Shape:
    width: int = 1

    @property
    def area(
        self, scale: int = 2,
    ) -> int:
        if (self.width
                > LIMIT):
            total = sum(
                (1, 2,
                 scale))
            return total
        try:
            return 7
        except ValueError:
            return 8
"""


@pytest.mark.parametrize(("line", "lines"), [
    (1, None), (4, None), (6, None), (8, None),               # run at import
    (10, [10, 11]), (11, [10, 11]), (14, [12, 13, 14]), (15, [15]), (17, [17]), (18, [18]), (19, [19])])
def test_a_changed_line_stands_for_its_statement_without_the_body(line: int, lines: list[int] | None) -> None:
    found = statement(SOURCE, line)
    assert (None if found is None else list(found)) == lines


def test_a_mutant_meets_the_tests_that_run_its_line_or_all(tmp_path: Path) -> None:
    path = tmp_path / "_shape.py"
    path.write_text(SOURCE)
    slow, quick, other, own = "t/test_slow.py::a", "t/test_quick.py::b[1]", "t/test_other.py::c", "t/test_shape.py::d"
    lines = {"12": [slow], "13": [quick, own], "17": [quick, ""]}
    reach = Reach({slow: 9.0, other: 0.1, quick: 1.0, own: 20.0}, {str(path): lines})
    assert list(reach.tests(path, 14).items()) == [(own, 20.0), (quick, 1.0), (slow, 9.0)], "of the module's name, then the quick"
    for line in (1, 17):
        assert list(reach.tests(path, line)) == [own, quick, slow, other], "those that run the module first"
    assert reach.tests(path, 19) == {}
