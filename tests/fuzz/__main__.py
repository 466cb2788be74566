"""`make fuzz`: run the campaign for a time, and say what it has found so far."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.fuzz.campaign import TARGETS, run


def main() -> int:
    """Return 1 if anything failed, in this campaign or before."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="how long to go on [default: %(default)s]")
    parser.add_argument("--state", type=Path, default=Path("fuzz-state"), help="where counts and failures are kept")
    parser.add_argument("--only", choices=[target.NAME for target in TARGETS])
    options = parser.parse_args()
    counts = run(options.seconds, options.state, options.only)
    done = {name: count for name, count in sorted(counts.items()) if not name.endswith(" next")}
    print(f"{sum(done.values()):,} inputs: " + ", ".join(f"{name} {count:,}" for name, count in done.items()))
    failures = sorted(options.state.glob("*.txt"))
    for failure in failures:
        print(failure)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
