"""Run the benchmarks and write their tables: `python -m benchmarks.run --help`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks import inputs, report, tables


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen benchmarks; return the exit code."""
    options = _options(arguments)
    if "kineto" in (options.only or tables.BENCHMARKS) and not options.trace.is_file():
        print(f"{options.trace}: no such trace; name another with --trace", file=sys.stderr)
        return 2
    options.work.mkdir(parents=True, exist_ok=True)
    setting = tables.Setting(tables.SIZES[options.size], options.runs, options.work, options.trace, options.before)
    made: list[report.Table] = []
    for name in options.only or tables.BENCHMARKS:
        began = time.perf_counter()
        for table in tables.BENCHMARKS[name](setting):
            made.append(table)
            if options.output:
                options.output.write_text(report.page(made, _heading(options)), encoding="utf-8")
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    print(report.page(made, _heading(options)))
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Measure nsightlens against its peers.")
    parser.add_argument("--only", action="append", choices=tables.BENCHMARKS, help="one benchmark (repeat for more)")
    parser.add_argument("--size", choices=tables.SIZES, default="full", help="small: only to see that it works [%(default)s]")
    parser.add_argument("--runs", type=int, default=3, help="rounds; medians are taken over them [%(default)s]")
    parser.add_argument("--output", type=Path, help="write the page here too, after each table")
    parser.add_argument("--trace", type=Path, default=inputs.DEFAULT_TRACE, help="Kineto trace to replicate [%(default)s]")
    parser.add_argument("--work", type=Path, default=inputs.default_folder(), help="where made inputs are kept [%(default)s]")
    parser.add_argument("--before", type=Path, help="checkout of an earlier version: its answers to the same questions")
    return parser.parse_args(arguments)


def _heading(options: argparse.Namespace) -> str:
    how = f"Made by `python -m benchmarks.run --size {options.size} --runs {options.runs}`. "
    how += "Programs of a table ran in turn, round after round; their input had been read once before. "
    if options.size == "small":
        how += "**Small inputs: they show that the machinery works; the figures say nothing.**"
    return how


if __name__ == "__main__":
    sys.exit(main())
