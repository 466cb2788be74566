"""Secrets on a command line: struck out of words and of one text, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsightlens.discovery.ranks import sidecar_of
from nsightlens.discovery.secrets import without_secrets
from tests.wrappers.test_sidecar import HARMLESS, SECRETS


@pytest.mark.parametrize("words", SECRETS)
def test_the_words_that_our_own_wrapper_strikes(words: tuple[str, ...]) -> None:
    assert without_secrets(list(words)) == SECRETS[words]


@pytest.mark.parametrize("words", [words for words in SECRETS if "--passphrase=a s3cret b" not in words])
def test_a_command_in_one_text(words: tuple[str, ...]) -> None:
    assert "s3cret" not in str(without_secrets(" ".join(words)))


def test_the_whole_of_a_word_is_a_value() -> None:
    assert without_secrets(["TOKEN=a s3cret\nof two lines"]) == ["TOKEN=***"]


def test_what_is_no_secret_stays() -> None:
    assert without_secrets(list(HARMLESS)) == HARMLESS
    assert without_secrets(" ".join(HARMLESS)) == " ".join(HARMLESS)
    assert without_secrets({"a": 1}) == {"a": 1}


@pytest.mark.parametrize("command", [["train.py", "--api-key", "s3cret"], "TOKEN=s3cret train.py --api-key s3cret"])
def test_a_sidecar_is_read_without_them(command: object) -> None:
    settings = dict(sidecar_of(Path("x"), {"command": command}).settings)
    assert "s3cret" not in settings["command"] and "train.py" in settings["command"]
