"""A fast search for texts that may hold a secret, in Arrow: only what it finds goes through the grammar of secrets.py."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.discovery.secrets import ENCODED, INVISIBLE, NAMED, SHAPED, struck

_PATTERN = f"{INVISIBLE.pattern}|{ENCODED.pattern}|{NAMED}|{SHAPED}"


def suspects(texts: pa.Array) -> pa.Array:
    """Return which texts may hold a secret; NULL of NULL. A call compiles the pattern, which takes as long as 200 names."""
    return pc.match_substring_regex(texts, _PATTERN, ignore_case=True)


def struck_all(texts: Sequence[str | None]) -> list[str | None]:
    """Return texts with *** for the secrets in them; None stays."""
    found = list(texts)
    for place in pc.indices_nonzero(suspects(pa.array(texts, pa.string()))).to_pylist():
        found[place] = struck(texts[place] or "")
    return found
