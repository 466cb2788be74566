"""The page of tables is what the schema says."""

from __future__ import annotations

from nsightlens.views.tables_page import markdown
from tests.places import ROOT


def test_the_page_of_tables_is_up_to_date() -> None:
    page = ROOT / "docs" / "schema.md"
    up_to_date = page.read_text(encoding="utf-8") == markdown()
    assert up_to_date, "docs/schema.md is not what nsightlens/schema.py says; run: make docs"
