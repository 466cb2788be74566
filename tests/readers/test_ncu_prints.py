"""What ncu and programs around it print that is no plain launch: units, encodings, ranges, other pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.errors import NsightlensError
from nsightlens.readers.ncu.units import base_unit
from tests.captures import ncu


def _metrics(path: Path) -> dict[str, Any]:
    return dict(nl.read(path)["kernels"]["metrics"].to_pylist()[0])


@pytest.mark.parametrize(("unit", "value", "expected"), [
    ("MiB", "2", 2 << 20), ("KiB", "1.5", 1536), ("GiB", "0.25", 1 << 28), ("Mbyte", "2", 2e6),
])
def test_binary_units_are_powers_of_two(tmp_path: Path, unit: str, value: str, expected: float) -> None:
    assert _metrics(ncu(tmp_path / "n.csv", {"dram__bytes.sum": (unit, value)}))["dram__bytes.sum"] == expected
    assert base_unit(f"{unit}/s").known


def test_no_break_spaces_in_latin_1_part_thousands(tmp_path: Path) -> None:
    path = ncu(tmp_path / "n.csv", {"dram__bytes.sum": ("byte", "2\xa0000\xa0000\xa0000"), "a": ("%", "65,77")})
    path.write_bytes(path.read_text().encode("latin-1"))
    assert _metrics(path) == {"dram__bytes.sum": 2e9, "a": 65.77}
    assert "text_replaced" not in nl.read(path).get("diagnostics", {"code": []})["code"]


def test_a_range_has_no_grid_and_is_no_launch(tmp_path: Path) -> None:
    path = ncu(tmp_path / "run" / "n.csv", {"gpu__time_duration.sum": ("ns", "5000")}, name="range")
    path.write_text(path.read_text().replace("(4, 1, 1)", "(0, 0, 0)").replace("(128, 1, 1)", "(0, 0, 0)"))
    with nl.ingest(tmp_path / "run", store=tmp_path / "store", jobs=1) as store:
        columns = ("grid_x", "block_x", "duration_ns", "replay_mode")
        assert store.sql(f"SELECT {', '.join(columns)} FROM kernels").to_pylist() == [
            dict(zip(columns, (None, None, 5000, "range"), strict=True))]
        assert store.view("ncu_by_config").num_rows == 0


def test_the_source_page_is_refused_by_name(tmp_path: Path) -> None:
    page = '"Kernel Name: k"\n"#","Address","Source","# Samples","Instructions Executed"\n"0","7f1","LDG","1","2"\n'
    (tmp_path / "s.csv").write_text(page)
    with pytest.raises(NsightlensError, match="source page"):
        nl.read(tmp_path / "s.csv")
