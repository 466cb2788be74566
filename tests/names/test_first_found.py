"""What is asked of many names at once is what is asked of each alone, in both engines of expressions."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from nsightlens.names import first_found
from nsightlens.names.families import FAMILIES
from nsightlens.names.kernel_names import facts, family, kernel_key, short_name, tensor_cores
from nsightlens.names.tensor_cores import TENSOR_CORES
from tests.names.test_families import GOLDEN
from tests.names.test_tensor_cores import PLAIN, UNKNOWN, USE

NAMES = [*dict.fromkeys((*(name for _, name in GOLDEN), *USE, *PLAIN, *UNKNOWN))]


def _disfigured(count: int) -> list[str]:
    """Return real names, cut, joined, in other letters (which fold to ASCII ones, some of them), and with the ends of lines."""
    chance, found = random.Random(20261128), []
    for _ in range(count):
        name, other = chance.choice(NAMES), chance.choice(NAMES)
        begin, end = sorted((chance.randrange(len(name) + 1), chance.randrange(len(name) + 1)))
        found.append(chance.choice((name[:begin] + name[end:], name[begin:end] + other, name + "\n", name.upper(), name.title(),
                                    name.replace(chance.choice("askiem_"), chance.choice("\u00e4\u017f\u212aZ0<")))))
    return found


def _alone(name: str, tool: str) -> tuple[str, str, str, bool | None]:
    kind = family(name, kernel_key(name, tool))
    return short_name(name), kernel_key(name, tool), kind, tensor_cores(name, kind)


@pytest.mark.parametrize("tool", ["nsys", "ncu"])
def test_many_names_give_what_each_gives_alone(tool: str) -> None:
    names = [*dict.fromkeys((*NAMES, *_disfigured(3000)))]
    found = facts(names, tool)
    assert len(set(found.kernel_key)) == len(names) > 2000
    for name, (short, key, *others) in zip(names, zip(*found, strict=True), strict=True):
        alone = _alone(name, tool)
        assert (short, *others) == (alone[0], *alone[2:]) and (key.startswith(alone[1]) or key == name), name


@pytest.mark.parametrize("pattern", [pattern for _, pattern, _ in (*FAMILIES, *TENSOR_CORES)])
def test_arrow_reads_every_pattern(pattern: str) -> None:
    plain = first_found.without_lookarounds(pattern)
    assert "(?=" not in plain and "(?!" not in plain and "(?<" not in plain
    assert pc.match_substring_regex(pa.array([""]), plain).to_pylist() == [False]


def test_a_word_within_a_long_pattern_of_what_stands_around_it() -> None:
    assert first_found.without_lookarounds(r"a(?!b(?:c|[)(]|\))d)e(?<![A-Z])f") == "aef"
