"""What an installed nsightlens weighs, package by package: `python -m benchmarks.installed` with the Python to measure."""

from __future__ import annotations

import re
from importlib import metadata


def weights(name: str = "nsightlens") -> dict[str, int]:
    """Return {distribution: bytes of its files} of a distribution, of its extras and of what these need, as far as installed."""
    found: dict[str, int] = {}
    waiting = [name]
    while waiting:
        try:
            one = metadata.distribution(waiting.pop())
        except metadata.PackageNotFoundError:  # of an extra, or of another system
            continue
        if one.name not in found:
            found[one.name] = sum(path.stat().st_size for file in one.files or () if (path := file.locate()).is_file())  # type: ignore[attr-defined]
            needed = [line for line in one.requires or () if one.name == name or "extra ==" not in line]
            waiting += [match[0] for line in needed if (match := re.match(r"[\w.-]+", line))]
    return found


if __name__ == "__main__":
    table = weights()
    for name, size in sorted(table.items(), key=lambda pair: -pair[1]):
        print(f"| {name} {metadata.version(name)} | {size / 1e6:,.0f} |")
    print(f"| all | {sum(table.values()) / 1e6:,.0f} |")
