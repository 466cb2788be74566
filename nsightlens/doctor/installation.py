"""Whether nsightlens itself is well installed: Python, packages and their bounds, extras, cache, locks, terminal."""

from __future__ import annotations

import locale
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from nsightlens.doctor.fitness import BAD, GOOD, NOTE, CheckResult
from nsightlens.terminal.quoting import Verbatim, shell_line

EXTRAS = {
    "remote": "captures and stores at URLs (s3://, gs://, hf://)",
    "dask": "ingest by Dask workers",
    "mpi": "ingest by the ranks of an MPI job",
    "hta": "the command hta",
    "mcp": "the command mcp",
}
"""The extras of pyproject.toml that add something for a user, and what."""
_NATIVE = ("numpy", "pyarrow", "duckdb", "msgspec", "isal", "adbc_driver_sqlite", "pandas", "scipy", "matplotlib")
"""Packages with compiled parts: installed is not yet importable."""
_IMPORT = "import importlib, sys\nfor name in sys.argv[1:]: print(name, flush=True); importlib.import_module(name)"
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[\w,-]+\])?\s*(?:>=\s*(?P<lowest>[\w.]+))?"
                          r"(?:;.*extra == [\"'](?P<extra>[\w-]+)[\"'])?")


def examine_installation(cache: Path | None, columns: int, distribution: str = "nsightlens") -> Iterator[CheckResult]:
    """Yield the findings.

    cache: the folder of the user's cache, None where there is no place for one. columns: the width of the output.
    """
    try:
        requires, lowest = metadata.requires(distribution) or [], metadata.metadata(distribution)["Requires-Python"] or ">=3"
    except metadata.PackageNotFoundError:
        yield CheckResult("packages", NOTE, "nsightlens runs from a folder and is not installed: its requirements are unknown",
                          ("In the checkout: ", Verbatim("pip install .")))
    else:
        yield python_finding(lowest)
        yield from package_findings(requires)
    yield import_finding(_NATIVE)
    yield cache_finding(cache)
    if find_spec("fcntl") is None:
        yield CheckResult("file locks", NOTE,
                          f"{platform.system()} has no POSIX file locks: stores can be read here, not written",
                          "Ingest on Linux, macOS or WSL, and copy the store")
    yield terminal_finding(columns)


def python_finding(requires: str, version: tuple[int, ...] = tuple(sys.version_info[:3])) -> CheckResult:
    """Return whether this Python is recent enough. requires: such as '>=3.11'."""
    found = f"{'.'.join(map(str, version))} in {sys.prefix}, {platform.system()} {platform.machine()}"
    lowest = requires.removeprefix(">=")
    if version < _numbers(lowest):
        return CheckResult("Python", BAD, found, f"Install nsightlens into Python {lowest} or later")
    return CheckResult("Python", GOOD, found)


def package_findings(requires: Iterable[str]) -> Iterator[CheckResult]:
    """Yield whether the packages of the core are recent enough, and which extras are there. requires: lines of the metadata."""
    core: list[tuple[str, str | None]] = []
    extras: dict[str, list[tuple[str, str | None]]] = {name: [] for name in EXTRAS}
    for line in requires:
        if (found := _REQUIREMENT.match(line)) and (found["extra"] is None or found["extra"] in extras):
            (core if found["extra"] is None else extras[found["extra"]]).append((found["name"], found["lowest"]))
    wrong = [text for name, lowest in core if (text := _wrong(name, lowest))]
    if wrong:
        yield CheckResult("packages", BAD, "; ".join(wrong), Verbatim("pip install --upgrade nsightlens"))
    else:
        yield CheckResult("packages", GOOD, ", ".join(f"{name} {_version(name)}" for name, _ in core))
    for extra, needs in extras.items():
        if wrong := [text for name, lowest in needs if (text := _wrong(name, lowest))]:
            yield CheckResult(f"extra {extra}", NOTE, f"{'; '.join(wrong)}. It is for {EXTRAS[extra]}",
                              shell_line("pip", "install", f"nsightlens[{extra}]"))
        elif needs:
            there = ", ".join(f"{name} {_version(name)}" for name, _ in needs)
            yield CheckResult(f"extra {extra}", GOOD, f"{there}, for {EXTRAS[extra]}")


def import_finding(modules: Iterable[str]) -> CheckResult:
    """Return whether the compiled packages can be imported, tried in a process of their own."""
    names = list(modules)
    try:
        done = subprocess.run([sys.executable, "-c", _IMPORT, *names], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=120, check=False)
    except (OSError, subprocess.SubprocessError) as exc:
        return CheckResult("imports", BAD, f"could not be tried: {exc}",
                           ("Run ", shell_line(sys.executable, "-c", "import pyarrow, duckdb")))
    if done.returncode == 0:
        return CheckResult("imports", GOOD, f"{', '.join(names)} can be imported")
    last = (done.stdout.split() or names)[-1]
    why = (done.stderr.strip().splitlines() or [f"the process ended with {done.returncode}"])[-1]
    return CheckResult("imports", BAD, f"{last} cannot be imported: {why}",
                       shell_line("pip", "install", "--force-reinstall", last.replace("_", "-")))


def cache_finding(folder: Path | None) -> CheckResult:
    """Return whether the user's cache can be written."""
    if folder is None:
        return CheckResult("cache", NOTE, "this user has no home folder: results are not kept between commands",
                           Verbatim("export XDG_CACHE_HOME=FOLDER"))
    there = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=there):
            pass
    except OSError as exc:
        return CheckResult("cache", NOTE, f"{folder} cannot be written ({exc.strerror}): results are not kept between commands",
                           ("Name one that you may write to: ", Verbatim("export XDG_CACHE_HOME=FOLDER")))
    return CheckResult("cache", GOOD, f"{folder} is writable")


def terminal_finding(columns: int) -> CheckResult:
    """Return what the output can show: its encoding, the locale and the width."""
    encoding = (getattr(sys.stdout, "encoding", None) or "none").lower()
    terminal = os.environ.get("TERM") or "not set"
    found = f"{encoding}, locale {locale.setlocale(locale.LC_CTYPE)}, {columns} columns, TERM {terminal}"
    if encoding.replace("-", "") != "utf8":
        return CheckResult("terminal", NOTE, f"{found}: rules and dashes are printed as ASCII", Verbatim("export PYTHONUTF8=1"))
    return CheckResult("terminal", GOOD, found)


def _wrong(name: str, lowest: str | None) -> str:
    """Return what is wrong with a package, an empty text where nothing is."""
    version = _version(name)
    if version is None:
        return f"{name} is not installed"
    return f"{name} {version} is older than {lowest}" if lowest and _numbers(version) < _numbers(lowest) else ""


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    """Return the release of a version as numbers: (2, 0) for 2.0rc1."""
    return tuple(int(part) for part in re.match(r"[\d.]*", version)[0].strip(".").split(".") if part)  # type: ignore[index]
