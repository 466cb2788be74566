"""Suggestions for a misspelt name: a text and the names that there are -> the word of each name that is most like it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

_WORDS = 200  # of a name, for its likeness to what was asked for


def closest_words(text: str, forms: Mapping[str, str]) -> dict[str, tuple[float, str]]:
    """Return {name: (likeness, 0 to 1, and word)}: the word of its form, or the part of one, that is most like the text."""
    known: dict[str, float] = {}

    def likeness(word: str) -> float:
        if word not in known:
            known[word] = difflib.SequenceMatcher(None, text.lower(), word.lower()).ratio()
        return known[word]

    return {name: max(((likeness(word), word) for word in _words(form)), default=(0.0, "")) for name, form in forms.items()}


def closest_first(text: str, names: Iterable[str]) -> list[str]:
    """Return the names, those first that have a word most like the text."""
    near = closest_words(text, {name: name for name in names})
    return sorted(near, key=lambda name: (-near[name][0], name))


def _words(form: str) -> Iterable[str]:
    whole = re.findall(r"\w+", form)[:_WORDS]
    return dict.fromkeys([*whole, *(part for word in whole for part in word.split("_"))])
