"""The summary sends whoever has counters of a kernel to headroom, which knows its limit."""

from __future__ import annotations

from pathlib import Path

import nsightlens as nl
from tests.captures import kineto, ncu
from tests.cli.command_line import run


def test_a_kernel_with_most_of_the_kernel_time_and_counters_has_its_limit_in_headroom(tmp_path: Path) -> None:
    kineto(tmp_path / "run" / "trace.json", [("stencil", 1000, 30.0), ("copy_kernel", 2000, 10.0)])
    ncu(tmp_path / "run" / "ncu.csv", {"gpu__time_duration.sum": ("us", "30.00")}, name="stencil")
    nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1).close()
    page = "".join(run("summary", "--store", tmp_path / "store").stdout.split())
    store = f"--store{tmp_path / 'store'}"
    assert f"Onekernelhas75.0%ofthekerneltime.Whatlimitsit:nsightlensshowheadroom{store}" in page
    assert "plan-ncu" not in page
