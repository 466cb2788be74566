"""Text that cannot steer a terminal, nor be read otherwise than it is written."""

from __future__ import annotations

LAYOUT = "\n\t"
"""What lays a text out."""


def printable(text: str, but: str = "") -> str:
    r"""Return the text with what has no sign of its own as its escape: \x1b, \u202e, \udcff.

    That is every control, format, private and unassigned character, each separator but the space, and lone surrogates: they come
    from names in captures. but: characters that stay.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in but else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
