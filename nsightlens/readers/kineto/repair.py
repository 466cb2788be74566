"""Malformed JSON of one value -> valid JSON text of the same value, as far as that can be done without inventing anything.

What Kineto's writers get wrong: quotes, backslashes and control characters that are not escaped, bare inf/nan/N/A, values
that are missing or not quoted, commas before a closing bracket. Numbers stay as written. A string with an escape that JSON
does not know was written without escaping, so all its backslashes are taken literally.
"""

from __future__ import annotations

import re
from collections import Counter

BARE_WORD = "bare inf, nan or N/A, taken as unknown"
BARE_TEXT = "texts without quotes, taken as unknown"
NO_VALUE = "values that are missing, taken as unknown"
BACKSLASH = "backslashes that are not escaped, taken literally"
_MAX_DEPTH = 64
_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?=[\s,}\]]|$)")
_WORD = re.compile(r"[^\s,{}\[\]\":]+")
_TEXT = re.compile(r"[^\n,{}\[\]\":]+")
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE = rf'\\["\\/bfnrt]|{_PAIR}|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{{4}}'
_PLAIN_STRING = re.compile(rf'"(?:[^"\\\x00-\x1f]|{_ESCAPE})*+"')
# An escape; group 1: half of a surrogate pair; group 2: a backslash that begins no escape.
_ODD_ESCAPE = re.compile(rf"{_ESCAPE}|(\\u[dD][89a-fA-F][0-9a-fA-F]{{2}})|(\\)")
_CONTROL = re.compile(r"[\x00-\x1f]")
_BARE_QUOTE = re.compile(r'(?<!\\)((?:\\\\)*)"')
_AFTER_KEY = re.compile(r"[ \t\r\n]*:")
_AFTER_MEMBER = re.compile(r'[ \t\r\n]*(?:,[ \t\r\n]*"(?:[^"\\\n]|\\.)*+"[ \t\r\n]*:|,?[ \t\r\n]*\}[ \t\r\n]*(?:[,}\]]|$))')
# What follows a text of the event itself, which has few keys: a text with quotes and commas in it ends only there.
_AFTER_FIELD = re.compile(r'[ \t\r\n]*(?:,[ \t\r\n]*"(?:ph|cat|name|pid|tid|ts|dur|args|id|s|bp)"[ \t\r\n]*:'
                          r'|,?[ \t\r\n]*\}[ \t\r\n]*$)')
_AFTER_ITEM = re.compile(r'[ \t\r\n]*(?:,[ \t\r\n]*["\[{\-\dtfnN]|,?[ \t\r\n]*\])')
# Where a string holds one of these, its end was missed and it has swallowed members of its event.
_SWALLOWED = re.compile(r'(?<!\\)"(?:ph|cat|name|pid|tid|ts|dur|args)"\s*:')


class Unrepairable(ValueError):
    """The text cannot be repaired without guessing."""


class Incomplete(Unrepairable):
    """The text ends before the value does."""


class Repairer:
    """One pass over one text. After `value`: what was repaired and how often, where first, and where the value ended."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0
        self.repaired: Counter[str] = Counter()
        self.first: int | None = None

    def value(self, start: int = 0, depth: int = 0) -> str:
        """Return valid JSON of the value that begins at or after `start`. Raises Unrepairable."""
        if depth > _MAX_DEPTH:
            raise Unrepairable("nested too deeply")
        self._skip_to(start)
        opening = self._text[self.at : self.at + 1]
        if opening == "{":
            return self._container("}", depth)
        if opening == "[":
            return self._container("]", depth)
        if opening == '"':
            return self._string(_AFTER_MEMBER, _AFTER_FIELD if depth == 1 else None)
        return self._scalar()

    def _skip_to(self, start: int) -> None:
        found = _SPACE.match(self._text, start)
        self.at = found.end() if found else start

    def _note(self, kind: str, at: int) -> None:
        self.repaired[kind] += 1
        self.first = at if self.first is None else min(at, self.first)

    def _stop(self, why: str) -> Unrepairable:
        return Incomplete(why) if self.at >= len(self._text) else Unrepairable(f"{why} at {self.at}")

    def _container(self, closing: str, depth: int) -> str:
        opening = self._text[self.at]
        self._skip_to(self.at + 1)
        items: list[str] = []
        while self._text[self.at : self.at + 1] != closing:
            items.append(self._member(depth) if closing == "}" else self._item(depth))
            self._skip_to(self.at)
            if self._text[self.at : self.at + 1] == ",":
                comma = self.at
                self._skip_to(self.at + 1)
                if self._text[self.at : self.at + 1] == closing:
                    self._note("commas before a closing bracket", comma)
            elif self._text[self.at : self.at + 1] != closing:
                raise self._stop(f"neither a comma nor {closing}")
        self.at += 1
        return opening + ", ".join(items) + closing

    def _member(self, depth: int) -> str:
        if self._text[self.at : self.at + 1] != '"':
            raise self._stop("no key")
        key = self._string(_AFTER_KEY)
        self._skip_to(self.at)
        colon = self.at
        self._skip_to(colon + 1)
        if self._text[self.at : self.at + 1] in (",", "}"):
            self._note(NO_VALUE, colon + 1)
            return f"{key}: null"
        return f"{key}: {self.value(self.at, depth + 1)}"

    def _item(self, depth: int) -> str:
        if self._text[self.at : self.at + 1] == '"':
            return self._string(_AFTER_ITEM)
        return self.value(self.at, depth + 1)

    def _scalar(self) -> str:
        number = _NUMBER.match(self._text, self.at)
        if number and abs(float(number[0])) != float("inf"):
            self.at = number.end()
            return number[0]
        bare_word = _WORD.match(self._text, self.at)
        if not bare_word:
            raise self._stop("no value")
        bare_text = _TEXT.match(self._text, self.at)
        bare_value = bare_text[0].rstrip() if bare_text else bare_word[0]
        if bare_value not in ("true", "false", "null"):
            self._note(BARE_WORD if bare_value == bare_word[0] else BARE_TEXT, self.at)
        self.at += len(bare_value)
        return bare_value if bare_value in ("true", "false", "null") else "null"

    def _string(self, after: re.Pattern[str], rather: re.Pattern[str] | None = None) -> str:
        """Return the string at the position, which ends where `after` matches, or `rather`, if that is anywhere."""
        plain = _PLAIN_STRING.match(self._text, self.at)
        if plain and after.match(self._text, plain.end()):
            self.at = plain.end()
            return plain[0]
        start = self.at
        content = self._content(start, rather) if rather else None
        if content is None or _SWALLOWED.search(content):
            content = self._content(start, after)
        if content is None:
            raise Incomplete(f"the string at {start} does not end")
        self.at = start + len(content) + 2
        return self._escaped(content, start)

    def _content(self, start: int, after: re.Pattern[str]) -> str | None:
        """Return the string up to a quote that what must follow a string follows, an unescaped one if there is."""
        for escaped in (False, True):
            quote = start
            while (quote := self._text.find('"', quote + 1)) >= 0:
                if self._is_escaped(quote, start) == escaped and after.match(self._text, quote + 1):
                    return self._text[start + 1 : quote]
        return None

    def _is_escaped(self, quote: int, start: int) -> bool:
        first = quote
        while first > start + 1 and self._text[first - 1] == "\\":
            first -= 1
        return (quote - first) % 2 == 1

    def _escaped(self, content: str, start: int) -> str:
        if _SWALLOWED.search(content):
            raise Unrepairable(f"the string at {start} does not end before the next members")
        odd = [m for m in _ODD_ESCAPE.finditer(content) if m.lastindex]
        if any(m[2] for m in odd):
            self._note(BACKSLASH, start)
            content = content.replace("\\", "\\\\").replace('"', '\\"')
        elif _BARE_QUOTE.search(content):
            self._note("quotes that are not escaped", start)
            content = _BARE_QUOTE.sub(r'\1\\"', content)
        if _CONTROL.search(content):
            self._note("control characters that are not escaped", start)
            content = _CONTROL.sub(lambda c: f"\\u{ord(c[0]):04x}", content)
        if odd and not any(m[2] for m in odd):
            self._note("halves of surrogate pairs, replaced", start)
            content = _ODD_ESCAPE.sub(lambda m: "\\ufffd" if m[1] else m[0], content)
        return f'"{content}"'
