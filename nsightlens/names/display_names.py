"""A shortened name, pasted from a table or a message -> the full names that it stands for."""

from __future__ import annotations

import re
from collections.abc import Iterable

from nsightlens.names.distinct import shortened
from nsightlens.names.kernel_names import kernel_key, labels
from nsightlens.names.label import shorten
from nsightlens.terminal.printable import printable

_CUT = "…"
_NARROWEST = 12
_NUMBER = re.compile(r" \(\d+\)$")


def resolve_display_name(text: str, names: Iterable[str]) -> list[str]:
    """Return the names for which a text was shown: their label, or the name or label cut in its middle; none where it is neither.

    A text is looked up as all names would be shown in columns of its width, then as a pattern in which … stands for any text:
    what a table shows depends on its other rows, too.
    """
    keys = {name: kernel_key(name) for name in names}
    there = sorted(keys.keys() - {key for name, key in keys.items() if key != name})
    wide, longest = labels(there), max(len(text), _NARROWEST)
    cut = shortened(wide.values(), longest)
    for shown in (wide, labels(there, longest), {name: cut[wide[name]] for name in there}, shortened(there, longest)):
        if found := [name for name in there if shown[name] == text]:
            return found
    body, _, words = _NUMBER.sub("", text).partition(": ")
    if _CUT not in body:
        return []
    like = re.compile(".*".join(map(re.escape, body.split(_CUT))), re.DOTALL | re.IGNORECASE)
    return [name for name in there
            if any(like.fullmatch(form) for form in (wide[name], shorten(keys[name]), keys[name], printable(name)))
            and all(word in name or word in keys[name] for word in words.split(", "))]
