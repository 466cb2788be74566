"""What the page of survivors names is there."""

from __future__ import annotations

import re

import pytest

from tests.places import ROOT

_LINE = re.compile(r"^- `(?P<file>[^`]+)`: `(?P<old>.+)` -> `(?P<new>.+)`$")
LINES = [line for line in (ROOT / "tests/mutants/survivors.md").read_text(encoding="utf-8").splitlines() if line.startswith("- ")]


@pytest.mark.parametrize("line", LINES)
def test_the_code_of_a_survivor_is_there(line: str) -> None:
    named = _LINE.match(line)
    assert named, "a survivor is: - `file`: `code` -> `changed code`"
    source = " ".join(map(str.strip, (ROOT / "nsightlens" / named["file"]).read_text(encoding="utf-8").splitlines()))
    assert named["old"] in source and named["old"] != named["new"], (
        f"nsightlens/{named['file']} has no such line any more: take it and its reason out of tests/mutants/survivors.md")
