"""Microseconds have one spelling for people, µs; where an output cannot show it, the command line prints us (nearest_ascii)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

_US = re.compile(r"(?:\d|whole|\}) us\b|\bμs\b")  # the second is Greek mu: it looks the same, and no search finds it
_ANSWERS = [path for folder in ("analyses", "sql", "plots", "cli", "views", "html_report")
            for path in sorted((ROOT / "nsightlens" / folder).rglob("*")) if path.suffix in (".py", ".sql", ".js")]
_PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", *sorted((ROOT / "notebooks").glob("*.ipynb")),
          ROOT / "nsightlens" / "schema.py"]


@pytest.mark.parametrize("text", ["5 us", "1.5 us", "whole us", "{ns / 1e3:.1f} us", "3 μs"])
def test_what_it_looks_for(text: str) -> None:
    assert _US.search(text) and not _US.search(text.replace(" us", " µs").replace("μ", "µ"))


def test_microseconds_have_one_spelling() -> None:
    found = [f"{path.relative_to(ROOT)}: {line.strip()}" for path in (*_ANSWERS, *_PAGES)
             for line in path.read_text(encoding="utf-8").splitlines() if _US.search(line)]
    assert found == []


def test_an_encoding_without_it_gets_ascii(bundled_store: Path) -> None:
    command = [sys.executable, "-m", "nsightlens", "show", "launch_statistics", "--store", str(bundled_store)]
    done = {encoding: subprocess.run(command, capture_output=True, check=True,
                                     env={**os.environ, "PYTHONIOENCODING": encoding}).stdout
            for encoding in ("utf-8", "koi8-r")}
    assert re.search(rb"\d us\b", done["koi8-r"]) and re.search("\\d µs\\b".encode(), done["utf-8"])
