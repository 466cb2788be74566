"""Texts -> shorter ones, no two the same: cut in the middle, and where that is not enough, with words that tell them apart."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from nsightlens.terminal.printable import printable

_EXCERPT = 24  # characters that tell one text from another, at most
_ROUNDS = 3  # of words behind one label, for each of its forms


def shortened(texts: Iterable[str], longest: int) -> dict[str, str]:
    """Return {text: at most `longest` printable characters of it}, no two the same; texts that fit stay as they are.

    Texts longer than that are cut in the middle; those that this makes equal have the word behind them in which they differ.
    `longest`: 12 or more.
    """
    found = {text: printable(text) for text in texts}
    whole = {text: shown for text, shown in found.items() if text == shown and len(text) <= longest}
    others = {text: (text,) for text in found if text not in whole}
    return whole | distinct(others, longest, taken=whole.values()) if others else whole


def distinct(forms: Mapping[str, Sequence[str]], longest: int, taken: Iterable[str] = ()) -> dict[str, str]:
    """Return {name: label}, no two the same, none longer than `longest`, none of them in `taken`.

    forms: of each name, texts that say more and more. A label is the first of them; names that share it have behind it the words
    in which their forms differ, else a number.
    """
    words: dict[str, list[str]] = {name: [] for name in forms}
    first = {name: printable(texts[0]) for name, texts in forms.items()}
    for form in range(max(map(len, forms.values()), default=0)):
        for _ in range(_ROUNDS):
            shared = _shared({name: _join_words(first[name], words[name], longest) for name in forms})
            pairs = [pair for names in shared for pair in _disambiguate({name: forms[name][form] for name in names})]
            if not pairs:
                break
            for name, word in pairs:
                if word and len(", ".join([*words[name], word])) <= longest * 2 // 3:
                    words[name].append(word)
    return _numbered({name: _join_words(first[name], words[name], longest) for name in forms}, longest, taken)


def _shared(labels: Mapping[str, str]) -> list[list[str]]:
    """Return the names that share a label, by label."""
    names = defaultdict(list)
    for name in sorted(labels):
        names[labels[name]].append(name)
    return [members for members in names.values() if len(members) > 1]


def _disambiguate(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return (name, the word of its text in which the texts begin to differ); nothing where they are equal."""
    first, last = min(texts.values()), max(texts.values())
    if first == last:
        return []
    at = next((i for i, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), min(len(first), len(last)))
    for belongs in (_in_word, str.isalnum, _alone):
        start = at
        while start > 0 and at - start <= _EXCERPT and belongs(first[start - 1]):
            start -= 1
        found = {name: _word(text, start, belongs) for name, text in texts.items()}
        if len(set(found.values())) > 1 and max(map(len, found.values())) <= _EXCERPT:
            return [(name, printable(word)) for name, word in found.items()]
    return [(name, printable(text[at : at + _EXCERPT])) for name, text in texts.items()]


def _word(text: str, start: int, belongs: Callable[[str], bool]) -> str:
    """Return the word at `start`, or the sign there; no more of it than shows that it is too long."""
    end = start
    while end < len(text) and end - start <= _EXCERPT and belongs(text[end]):
        end += 1
    return text[start : max(end, start + 1)]


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _alone(character: str) -> bool:
    return False


def _join_words(text: str, words: Sequence[str], longest: int) -> str:
    said = ", ".join(words)
    return f"{_cut(text, longest - len(said) - 2)}: {said}" if words else _cut(text, longest)


def _numbered(labels: Mapping[str, str], longest: int, taken: Iterable[str]) -> dict[str, str]:
    """Return the labels; those that several names have, or that are taken, with a number."""
    several = {name for names in _shared(labels) for name in names}
    used = {*taken, *(label for name, label in labels.items() if name not in several)}
    several |= {name for name, label in labels.items() if label in set(taken)}
    found, numbers = dict(labels), Counter[str]()
    for name in sorted(several):
        label = labels[name]
        while found[name] in used or found[name] == label:
            numbers[label] += 1
            number = f" ({numbers[label]})"
            found[name] = _cut(label, longest - len(number)) + number
        used.add(found[name])
    return found


def _cut(text: str, longest: int) -> str:
    head = max(0, longest - 1) // 2
    return text if len(text) <= longest else f"{text[:head]}…{text[len(text) - max(0, longest - 1 - head):]}"
