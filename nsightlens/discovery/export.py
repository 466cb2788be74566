"""Files that are converted before they are read: binary reports of nsys by nsys itself, packed SQLite by us."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nsightlens.discovery.remote import RemotePath, on_disk
from nsightlens.errors import ReadError
from nsightlens.readers.budget import most_unpacked
from nsightlens.terminal.quoting import shell_line
from nsightlens.terminal.text import parts

if TYPE_CHECKING:
    from nsightlens.terminal.quoting import Verbatim
    from nsightlens.terminal.text import Text

_LAST_LINES = 3
_BLOCK = 1 << 20
_UNSTATED = 1 << 63


@dataclass(frozen=True, slots=True)
class VendorReport:
    """One kind of binary report: the tool that reads it and what its export is called."""

    kind: str
    tool: str
    suffix: str
    magic: bytes


REPORTS = (
    VendorReport("nsys report (binary)", "nsys", ".sqlite", b"NVIDIA Tegra Profiler Report "),
)


def recognise(head: bytes) -> VendorReport | None:
    """Return which binary report begins with `head`, or None."""
    return next((report for report in REPORTS if head.startswith(report.magic)), None)


PACKED_SQLITE = VendorReport("nsys sqlite (gzip)", "nsys", ".sqlite", b"SQLite format 3\0")
"""An SQLite export under gzip: SQLite reads no such file, so it is unpacked first. It needs no tool of the vendor."""


def packed(path: Path, head: bytes) -> VendorReport | None:
    """Return PACKED_SQLITE where the file is gzip and `head`, its decompressed beginning, is that of an SQLite file."""
    if not head.startswith(PACKED_SQLITE.magic) or path.is_dir():
        return None
    with path.open("rb") as file:
        return PACKED_SQLITE if file.read(2) == b"\x1f\x8b" else None


def command(report: VendorReport, path: Path, output: Path, program: str | None = None) -> list[str | Path]:
    """Return the command line that converts `path` into `output`. program: the vendor's tool [on PATH]."""
    return [program or report.tool, "export", "--type=sqlite", "--force-overwrite=true", f"--output={output}", path]


def advice(report: VendorReport, path: Path) -> Text:
    """Return the sentence that says how to convert `path` by hand."""
    output = path.with_suffix(report.suffix)
    if isinstance(path, RemotePath):
        run = shell_line(*command(report, Path(path.name), Path(output.name)))
        return (f"Copy it to where {report.tool} is installed, run there: ", run,
                f"   put {output.name} beside it, and ingest again")
    return f"Run where {report.tool} is installed: ", shell_line(*command(report, path, output)), "   and ingest again"


def advice_for_all(paths: Sequence[Path]) -> Text:
    """Return the sentence that says how to convert binary reports of one tool with one command."""
    if any(isinstance(path, RemotePath) for path in paths):
        return *parts(advice(REPORTS[0], paths[0])), " (and so the others)"
    run = find(paths, "nsys", "export", "--type=sqlite", "--force-overwrite=true", "{}")
    return "Run where nsys is installed: ", run, "   and ingest again"


def find(paths: Sequence[Path], *words: str, ending: str = "") -> Verbatim:
    """Return the command line that runs a program on each file in the folder of some whose name ends as one of theirs.

    words: the program and its arguments, {} for the file. ending: theirs, where it is more than the suffix.
    """
    names = sorted({f"*{_literally(ending or path.suffix)}" if path.suffix else _literally(path.name) for path in paths})
    tests = [test for name in names for test in ("-o", "-name", name)][1:]
    folder = Path(os.path.commonpath([path.parent for path in paths]))
    return shell_line("find", folder, *(tests if len(names) == 1 else ("(", *tests, ")")), "-exec", *words, ";")


def _literally(name: str) -> str:
    """Return the pattern of find that only this name fits."""
    return re.sub(r"[]*?[\\]", r"\\\g<0>", name)


def convert(report: VendorReport, path: Path, output: Path, program: str | None = None, again: bool = False) -> Path:
    """Return `output`, the export of `path`, made by the vendor's tool unless it is there already.

    program: the tool [on PATH]. again: replace the one that is there, which is damaged.
    Raises ReadError where the tool is not installed or fails; a failed conversion leaves nothing behind.
    """
    if output.is_file() and not again:
        return output
    if report == PACKED_SQLITE:
        return _unpack(path, output)
    if shutil.which(program or report.tool) is None:
        where = f"{program} cannot be run" if program else f"{report.tool} is not on PATH"
        raise ReadError(path, f"a binary {report.tool} report, and {where} here",
                        advice(report, path), "needs_export")
    output.parent.mkdir(exist_ok=True)
    part = output.with_name(f".{os.urandom(8).hex()}.{output.name}")
    try:
        with on_disk([path]) as (here,):
            _run(report, here, part, program)
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)
    return output


def _run(report: VendorReport, path: Path, part: Path, program: str | None) -> None:
    environment = {**os.environ, "LC_ALL": "C"}
    arguments = command(report, path.absolute(), part, program)
    try:
        done = subprocess.run(arguments, env=environment, capture_output=True, check=False)
    except OSError as exc:
        raise ReadError(path, f"{report.tool} could not be started: {exc}", advice(report, path), "export_failed") from exc
    if done.returncode != 0 or not part.is_file():
        said = " | ".join((done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()[-_LAST_LINES:])
        raise ReadError(path, f"{report.tool} could not convert it (exit code {done.returncode}): {said}",
                        advice(report, path), "export_failed")


def _unpack(path: Path, output: Path) -> Path:
    """Return `output`, the SQLite file unpacked from `path`: all that can be unpacked, and no more than its header states and
    the budget allows; a file that is shorter than its header states is read as one that is cut.

    Raises ReadError where it cannot be written.
    """
    output.parent.mkdir(exist_ok=True)
    part = output.with_name(f".{os.urandom(8).hex()}.{output.name}")
    try:
        with (path.open("rb") as file, gzip.GzipFile(fileobj=file) as packed_file, part.open("xb") as unpacked,
              suppress(EOFError, gzip.BadGzipFile, zlib.error)):
            left, is_first = most_unpacked(path), True
            while block := packed_file.read(min(_BLOCK, left)):
                left = (min(left, _stated_size(block)) if is_first else left) - len(block)
                unpacked.write(block)
                is_first = False
        part.replace(output)
    except OSError as exc:
        raise ReadError(path, f"it cannot be unpacked into {output.parent} ({exc.strerror})",
                        "Make room there, or unpack it yourself (gunzip -k) and ingest the .sqlite file",
                        "export_failed") from exc
    finally:
        part.unlink(missing_ok=True)
    return output


def _stated_size(beginning: bytes) -> int:
    """Return the size that the header of an SQLite file states: so a small file of zeros under gzip does not fill the disk."""
    page = int.from_bytes(beginning[16:18], "big")
    pages = int.from_bytes(beginning[28:32], "big")
    return max((1 << 16 if page == 1 else page) * pages, len(beginning)) if pages else _UNSTATED
