"""The lowest versions that pyproject.toml allows, as pins for pip: `python -m tests.lower_bounds`; see make test-lowest."""

from __future__ import annotations

import re
import tomllib

from tests.places import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pins() -> list[str]:
    """Return name==version of what the package and the tests need.

    Raises ValueError for a requirement without a lower bound.
    """
    return [_pin(requirement) for requirement in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"])]


def _pin(requirement: str) -> str:
    found = re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\w.]+)", requirement)
    if found is None:
        raise ValueError(f"pyproject.toml: {requirement!r} has no lower bound; write name>=version, then run: make test-lowest")
    return f"{found[1]}=={found[2]}"


if __name__ == "__main__":
    print("\n".join(pins()))
