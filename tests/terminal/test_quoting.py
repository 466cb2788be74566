"""Words of a pasted command arrive as they were meant, in the shells that there are; none becomes an option or a command."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsightlens.terminal.quoting import quoted, shell_line
from tests.terminal.pasted import NAMES, every_name, every_shell, paste


@every_shell
def test_every_name_arrives(tmp_path: Path, shell: str) -> None:
    line = shell_line("show", *NAMES, *(name.replace("a", "é") for name in NAMES))
    assert paste(line, tmp_path, shell) == [["show", *NAMES, *(name.replace("a", "é") for name in NAMES)]]


@every_shell
@settings(max_examples=30, deadline=None)
@given(words=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=20))
def test_any_words_arrive(tmp_path_factory: pytest.TempPathFactory, shell: str, words: list[str]) -> None:
    assert paste(shell_line("show", *words), tmp_path_factory.mktemp("pasted"), shell) == [["show", *words]]


@every_name
def test_a_command_is_one_line_of_printable_text(name: str) -> None:
    shown = quoted(name)
    assert shown.isprintable() or (name.endswith("\n") and shown.replace("\n", "").isprintable())


@every_name
def test_a_path_is_never_an_option(name: str) -> None:
    is_plain = (name[0].isalnum() or name[0] in "_./") and ":" not in name
    assert quoted(Path(name)).lstrip("\"'$(printf ").startswith("./") or is_plain
