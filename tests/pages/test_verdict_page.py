"""The first part of a page on a run: three findings, and how many more there are."""

from __future__ import annotations

from pathlib import Path

import pytest

import nsightlens as nl
from tests.cli.command_line import run
from tests.readers.nsys_report import base, call, kernel, strings, write

_MS = 1_000_000
_CALLS = ("cudaStreamCreate_v3020", "cudaFuncGetAttributes_v3020", "cudaHostAlloc_v3020")


@pytest.mark.parametrize(("causes", "found"), [(3, 5), (1, 3)])
def test_findings_that_are_left_out_are_counted(tmp_path: Path, causes: int, found: int) -> None:
    """Each gap between kernels is another call of the host, and a finding; so are computing and code outside of calls."""
    starts = [10 * _MS * number for number in range(1, causes + 2)]
    calls = [call(start - 6000, start - 1000, correlationId=start, nameId=3) for start in starts]
    calls += [call(start + 6 * _MS, start + 9 * _MS, correlationId=start + 1, nameId=4 + number)
              for number, start in enumerate(starts[:-1])]
    tables = base(CUPTI_ACTIVITY_KIND_KERNEL=[kernel(start, start + 6 * _MS - 1000, correlationId=start) for start in starts],
                  CUPTI_ACTIVITY_KIND_RUNTIME=calls, StringIds=strings("k", "k", "cudaLaunchKernel_v7000", *_CALLS))
    with nl.ingest(write(tmp_path / "a.sqlite", tables), store=tmp_path / "store", jobs=1) as store:
        assert store.view("findings").num_rows == found
    page = " ".join(run("summary", "--store", tmp_path / "store").stdout.split())
    assert page.count("more: nsightlens show findings") == (found > 3)
    assert (f"{found - 3} more: nsightlens show findings" in page) == (found > 3)
