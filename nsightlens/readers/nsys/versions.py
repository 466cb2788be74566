"""The versions of the export's schema that were seen in real reports."""

from __future__ import annotations

import re

TESTED = ("2.9.1", "3.0.0", "3.1.2", "3.1.7", "3.4.0", "3.7.2", "3.7.4", "3.13.2", "3.16.1", "3.17.1", "3.20.2", "3.20.3",
          "3.23.3", "3.24.0", "3.24.7", "3.24.14", "3.25.0")
"""In ascending order. Exports of 2021 have no version, and were seen too."""

_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})(?:\.|$)")


def untested(version: str | None) -> str | None:
    """Return what is to be said of a report whose schema is newer than all that were tested; None where it is not.

    The last number of three does not count: it changes where something is added, which what is read here does not notice.
    """
    if version is None:
        return None
    found, newest = _numbers(version), _numbers(TESTED[-1])
    if found is None:
        return f"its schema version is invalid ({version[:40]!r}): it may not be read in full"
    if newest is None or found <= newest:
        return None
    return (f"its schema {version[:40]} is newer than what was tested ({TESTED[0]} to {TESTED[-1]}): tables and columns are read "
            "by their names, and what it renamed is missing. Compare totals with those of nsys stats")


def _numbers(version: str) -> tuple[int, int] | None:
    match = _VERSION.match(version)
    return (int(match[1]), int(match[2])) if match else None
