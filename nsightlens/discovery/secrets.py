"""A command line without its secrets: sidecars are also written by hand, and by wrappers that strike nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAME = (r"[\w.+-]*(?:secret|passw|passphrase|credential|(?:api|access|private)[-_.]?key|authorization)[\w.-]*"
         r"|[\w.+-]*token(?![\w.-])|(?:[\w.+-]*[^a-z0-9])?(?:auth|pwd|pw|pass|key|bearer)(?![\w.-])")
_VALUE = r"'[^']*'|\"[^\"]*\"|[^\s;&|]+"
_NAMED = re.compile(rf"(?<![\w.+-])({_NAME})=(?:{_VALUE})", re.IGNORECASE)
_HEADER = re.compile(rf"(?<![\w.+-])({_NAME}):\s*(?:(?:bearer|basic|token)\s+)?(?:{_VALUE})", re.IGNORECASE)
_OPTION = re.compile(rf"(?<!\S)(-(?:{_NAME}))\s+(?!--)(?:{_VALUE})", re.IGNORECASE)
_OPTION_NAME = re.compile(rf"-(?:{_NAME})", re.IGNORECASE)
_WHOLE = re.compile(rf"({_NAME})=.+", re.IGNORECASE | re.DOTALL)
_SHAPE = re.compile(r"(?<=://)[^/@\s]+(?=@)|\b(?:hf_|ghp_|gho_|github_pat_|glpat-|sk-|xox[abp]-|AKIA|nvapi-)[A-Za-z0-9_-]{12,}|"
                    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]+")


def without_secrets(command: object) -> object:
    """Return a command (one text, or its words) with *** for the values of options and variables named like secrets, and for
    words of well-known shapes; anything else as it is."""
    if isinstance(command, str):
        return _struck(command)
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        return _words(command)
    return command


def _words(command: Sequence[str]) -> list[str]:
    shown: list[str] = []
    hide = False
    for word in command:
        whole = _WHOLE.fullmatch(word)
        hidden = hide and not word.startswith("--")
        shown.append("***" if hidden else f"{whole[1]}=***" if whole else _struck(word))
        hide = not hidden and _OPTION_NAME.fullmatch(word) is not None
    return shown


def _struck(text: str) -> str:
    for pattern, kept in ((_NAMED, r"\1=***"), (_HEADER, r"\1: ***"), (_OPTION, r"\1 ***"), (_SHAPE, "***")):
        text = pattern.sub(kept, text)
    return text
