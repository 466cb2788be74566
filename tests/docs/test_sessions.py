"""The sessions of the pages run, and print what the pages show; a line `...` stands for any lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

DOCS = ROOT / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if "\n```console\n" in page.read_text(encoding="utf-8")]
_GAP = "..."
_PROGRESS = re.compile(r"\[\d+/\d+\] |[a-z ]+: .*\d+ (s|min|h) so far\b")
"""Lines of progress: how many there are depends on the time that a command takes."""


def sessions(text: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a page in their order, each with the lines that are shown of its output."""
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [(command, shown.splitlines()) for block in blocks
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)]


def differs(shown: list[str], printed: list[str]) -> str | None:
    """Return the first shown line that was not printed in its place, None where all were."""
    at, free = 0, False
    for line in shown:
        if line == _GAP:
            free = True
            continue
        there = next((i for i in range(at, len(printed) if free else min(at + 1, len(printed))) if printed[i] == line), None)
        if there is None:
            return line
        at, free = there + 1, False
    return None if free or at == len(printed) else f"(nothing more, but: {printed[at]})"


@pytest.mark.parametrize(("shown", "printed", "expected"), [
    (["a", "b"], ["a", "b"], None),
    (["a", "...", "c"], ["a", "b", "b", "c"], None),
    (["...", "c", "..."], ["a", "c", "d"], None),
    (["a", "c"], ["a", "b", "c"], "c"),
    (["...", "b", "a", "..."], ["a", "b"], "a"),
    (["a"], ["a", "b"], "(nothing more, but: b)"),
    ([], [], None),
])
def test_pages_are_compared_line_by_line(shown: list[str], printed: list[str], expected: str | None) -> None:
    assert differs(shown, printed) == expected


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_sessions_of_a_page_are_true(folder: Path, page: Path) -> None:
    environment = {**os.environ, "COLUMNS": "100", "XDG_CACHE_HOME": str(folder / "cache"),
                   "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("NSIGHTLENS_STORE", None)
    found = sessions(page.read_text(encoding="utf-8"))
    assert found
    for command, shown in found:
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, f"$ {command}\n{done.stdout}"
        printed = [line.rstrip() for line in done.stdout.splitlines() if not _PROGRESS.match(line)]
        missing = differs(shown, printed)
        assert missing is None, f"{page.relative_to(ROOT)}: $ {command}\ndoes not print: {missing}\nbut:\n" + "\n".join(printed)


def test_every_page_that_a_page_links_exists() -> None:
    for page in DOCS.rglob("*.md"):
        text = re.sub(r"^```.*?^```|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link]
        broken = [link for link in links if not (page.parent / link).exists()]
        assert not broken, f"{page.relative_to(ROOT)} links to {broken}, which are not there"
