"""The text of the column `settings` of a profile, in one line."""

from __future__ import annotations

_LONGEST = 2_000


def setting(value: object) -> str | None:
    """Return a scalar, or a list of words, as the column `settings` holds it, in one line; None for other things."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        value = " ".join(value)
    if value is None or not isinstance(value, str | int | float) or value == "":
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return "".join(c if c.isprintable() else "?" for c in text[:_LONGEST])
