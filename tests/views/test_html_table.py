"""Tables as HTML: units, escapes, and how many rows there are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import nsightlens as nl
from nsightlens.views.html_table import html_table


def test_times_and_sizes_have_units_and_ids_no_commas() -> None:
    made = html_table(pa.table({"total_ns": [1_500_000, None], "start_ns": [1234567, 2], "total_bytes": [2048, 1],
                                "kernel_id": [1234, 5], "launches": [4321, 1], "is_known": [True, False]}))
    for text in ("1.500 ms", "–", "1,234,567", "2.000 KiB", ">1234<", "4,321", "True", "2 rows"):
        assert text in made


def test_names_are_hostile() -> None:
    made = html_table(pa.table({"name": ["<script>alert(1)</script>", "a\x1b[31m\u202eb"], "<b>": ["", ""]}))
    assert "<script" not in made and "<b>" not in made and "\x1b" not in made and "\u202e" not in made


def test_of_many_rows_the_first_are_shown_and_counted() -> None:
    made = html_table(pa.table({"a": range(30)}), rows=20)
    assert made.count("<tr>") == 21 and "the first 20 of 30 rows" in made


def test_a_notebook_shows_a_table_and_a_store(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store:
        table = store.view("busy_time")
        shown = nl.show(table, rows=1)
        note = f"<p>{store.views['busy_time'].note}</p>"
        assert shown._repr_html_() == html_table(table, 1) + note and shown.table is table
        runs = store._repr_html_()
    assert "simulated_resnet18_ddp" in runs and "ncu" in runs and "NVIDIA" in runs and "<p>" in runs
