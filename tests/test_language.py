"""What users read: no phrase that reads translated, a glossary of our own words."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator

import click
import pytest

from nsightlens.cli import COMMANDS
from tests.places import ROOT

BANNED = re.compile(
    r"\b(?:mend(?:s|ed|ing)?|asked wrongly|words to standard error|(?:is|are|was) waited for|not told|is told|are told|tells|"
    r"beyond mending|made anew|anew|fit for profiling)\b", re.IGNORECASE)
PAGES = ("README.md", "wrappers/README.md", *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md"))))
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
OURS = ("grade", "exclusive time", "undisturbed", "window", "books", "run", "execution", "recording", "profile", "answer",
        "matched at grade launch", "segment", "scope", "configuration", "lag",
        "headroom",
        "true roofline",
        )
"""Words of views and messages that no other tool uses so: each has a row in the glossary."""


def _commands(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        for one in command.commands.values():
            yield from _commands(one)


def _helps() -> Iterator[tuple[str, str]]:
    for name, about in COMMANDS.items():
        yield name, about
        for command in _commands(importlib.import_module(f"nsightlens.cli.{name.replace('-', '_')}").command):
            yield name, command.get_help(click.Context(command, info_name=name))


def test_the_pattern_finds_what_it_bans() -> None:
    for text in ("how to mend it", "2: asked wrongly", "who is waited for", "the file tells its epoch", "is made anew"):
        assert BANNED.search(text), text
    assert not BANNED.search("recommended; amends; cannot tell; Tell me more")


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_idiomatic(page: str) -> None:
    found = [line for line in (ROOT / page).read_text().splitlines() if BANNED.search(line)]
    assert not found, f"{page}: rephrase {found}"


def test_help_is_idiomatic() -> None:
    found = [(name, match[0]) for name, text in _helps() if (match := BANNED.search(text))]
    assert not found, f"nsightlens/cli: rephrase {found}"


@pytest.mark.parametrize("folder", ["nsightlens", "wrappers"])
def test_code_and_its_messages_are_idiomatic(folder: str) -> None:
    sources = [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".py", ".sql", ".sh", ".js", ".html")]
    found = [f"{path.relative_to(ROOT)}:{number}: {line.strip()}" for path in sources
             for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if BANNED.search(line)]
    assert len(sources) > 10 and not found, "rephrase\n" + "\n".join(found)


@pytest.mark.parametrize("word", OURS)
def test_the_glossary_explains_our_words(word: str) -> None:
    assert re.search(rf"^\| {re.escape(word)} \| .{{20,}} \|$", GLOSSARY, re.MULTILINE), f"docs/glossary.md has no row {word!r}"


def test_the_glossary_is_linked() -> None:
    assert "(docs/glossary.md)" in (ROOT / "README.md").read_text()
    assert "(glossary.md)" in (ROOT / "docs" / "README.md").read_text()
