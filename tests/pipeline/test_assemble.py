"""The parts of a profile are the same whenever they are written: nothing that is derived later changes what they read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nsightlens.pipeline import profile_rows
from nsightlens.pipeline.assemble import ParquetPart, parts
from nsightlens.pipeline.profile import write_parts
from nsightlens.pipeline.profile_rows import ProfileInput
from tests.places import ROOT

RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"
FILES = {"kineto": next((RUN / "torch").rglob("*.json*")), "nsys": next((RUN / "nsys").rglob("*.sqlite"))}


def _profile(tool: str) -> ProfileInput:
    return ProfileInput("p", "run", tool, ((FILES[tool],),))


def _rows(part: ParquetPart) -> pa.Table:
    return pa.Table.from_batches(part.batches, schema=part.schema)


@pytest.mark.parametrize("tool", FILES)
def test_parts_do_not_depend_on_when_they_are_read(tool: str, tmp_path: Path) -> None:
    at_once = {part.name: _rows(part) for part in parts(profile_rows.read(_profile(tool), tmp_path, jobs=1))}
    last_first = list(parts(profile_rows.read(_profile(tool), tmp_path, jobs=1)))[::-1]
    assert {part.name: _rows(part) for part in last_first} == at_once
    assert at_once["api_calls"].column("range_id").null_count < at_once["api_calls"].num_rows
    assert at_once["kernels"].column("op_range_id").null_count < at_once["kernels"].num_rows


def test_a_part_can_be_written_before_the_next_is_derived(tmp_path: Path) -> None:
    early = next(parts(profile_rows.read(_profile("kineto"), tmp_path, jobs=1)))
    assert early.name == "api_calls"
    assert _rows(early).num_rows > 0


def test_written_by_one_thread_or_by_two(tmp_path: Path) -> None:
    counts = [write_parts(_profile("kineto"), tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2)]
    assert counts[0] == counts[1]
    assert counts[0]["_kernels_templates"] < counts[0]["kernels"]
    for name in counts[0]:
        one, two = (pq.read_table(tmp_path / str(jobs) / f"{name}.parquet") for jobs in (1, 2))
        assert one == two
    left = {path.name for path in (tmp_path / "1").iterdir()}
    assert left == {f"{name}.parquet" for name in counts[0]}, "what was spooled is gone"
