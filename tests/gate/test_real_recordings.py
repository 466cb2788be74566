"""ResNet-50 of the TensorBoard plugin's page: two files are two cycles of one process, and the data loader is the difference."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import nsightlens as nl
from tests.places import ROOT

DATA = ROOT.parent / "shared" / "data" / "kineto"
STEM = "pytorch__kineto__tb_plugin__resnet50_num_workers_"


@pytest.mark.captures
def test_without_and_with_workers(tmp_path: Path) -> None:
    """Steps 5 to 10 and 16 to 21 of one pid: 1,635 and 1,271 ms in ten steady steps."""
    sides = [sorted(DATA.glob(f"{STEM}{workers}__worker0.16*")) for workers in (0, 4)]
    if not all(sides):
        pytest.skip("needs the recordings of ResNet-50")
    found = nl.check(*sides)
    assert [[(one.windows, one.steps) for one in side] for side in found.sides] == [[(2, 10)], [(2, 10)]]
    assert (found.verdict, found.exit_code) == ("undecided", 4)
    first = found.sentences[0]
    assert first.startswith("Undecided: A step takes 127.1 instead of 163.5 ms")
    assert re.search(r"the data loader 277\.0 µs instead of 44\.75 ms\.$", first)
