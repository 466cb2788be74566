"""The first bytes of a file that no reader takes -> what it is, why it is not read, and what to do.

Only what people really have beside their captures is listed: other forms of the same recordings, archives, and tables that
were made from them. All else is left to the readers, or is no capture.
"""

from __future__ import annotations

import csv
import json
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nsightlens.discovery.export import find
from nsightlens.discovery.remote import RemotePath
from nsightlens.errors import ReadError
from nsightlens.terminal.quoting import Verbatim, shell_line

if TYPE_CHECKING:
    from nsightlens.terminal.text import Text

_EXPORT = ("Export the report it was made from, and ingest the .sqlite file: ",
           Verbatim("nsys export --type sqlite REPORT.nsys-rep"))
_NCU = "Ingest the report it was made from (.ncu-rep), or print it again as CSV: ", Verbatim("ncu --csv --page raw")
_CAPTURES = re.compile(r"\.(sqlite|nsys-rep|qdrep|ncu-repz?|csv|json)(\.gz)?$", re.IGNORECASE)
_JAX = re.compile(r"nvtx_gpu_proj_trace|nvtx_pushpop_trace")
_NSYS_LINES = ("CudaEvent", "TraceProcessEvent", "NvtxEvent", "GenericEvent", "DiagnosticEvent", "ThreadInfo")
_NSYS_NAMES = (b"StringIds", b"CUPTI_ACTIVITY", b"TARGET_INFO", b"globalPid", b"globalTid", b"correlationId", b"Total Time",
               b"Proj Start", b"Projected Start", b"NumGPUOps")
_UNPACK = {".xz": ("unxz", "-k", "{}"), ".bz2": ("bunzip2", "-k", "{}"), ".zst": ("unzstd", "{}"),
           ".7z": ("7z", "x", "{}", "-o{}.unpacked"), ".zip": ("unzip", "{}", "-d", "{}.unpacked")}
"""The command that unpacks a file, by its ending, and removes nothing. {}: the file."""
OWN_TIMELINE = b'{"displayTimeUnit":"ns","otherData":{"executions":'
"""What a timeline that nsightlens exports begins with: not to be taken for the trace that it was made from."""
_TAR = re.compile(r"\.(tar|tar\.\w{1,4}|tgz|txz|tbz2?|tzst)$", re.IGNORECASE)
_UNTAR = ("sh", "-c", 'mkdir "$1.unpacked" && tar -xf "$1" -C "$1.unpacked"', "sh", "{}")
_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257
_LISTED_BYTES = 1 << 26
_MOST_MEMBERS = 100_000
_TAIL_BYTES = 1 << 16
_PACKET = re.compile(rb"\n([\x80-\xff]{0,4}[\x00-\x7f])", re.DOTALL)  # field 1 of a trace, and the length of the packet
_BINARY = re.compile(rb"[\x00-\x08]")


class Unsupported(NamedTuple):
    """What a file is, why it is not read, the advice what to do, and the code of its diagnostic.

    is_capture: it holds what somebody recorded with a profiler, so that not to read it must be reported.
    """

    kind: str
    reason: str
    advice: Text
    code: str = "unsupported_format"
    is_capture: bool = True

    def error(self, path: Path) -> ReadError:
        """Return the refusal of the file."""
        return ReadError(path, self.reason, self.advice, self.code)


def recognise(path: Path, head: bytes) -> Unsupported | None:
    """Return what a file is by the first bytes of its format, where that is none that a reader takes; else None.

    head: the beginning of the file, decompressed where it is gzip.
    """
    if head.startswith(_TAR_MAGIC, _TAR_MAGIC_AT):
        return _tar(path, head)
    for magic, look in _MAGIC:
        if head.startswith(magic):
            return look(path, head)
    text = _text(head)
    return _perfetto(path, head) or _json_lines(text) or _stats_json(text)


def advice_for_all(paths: Sequence[Path]) -> Text:
    """Return the sentence that says how to unpack several archives with one command."""
    of_ending: dict[str, list[Path]] = {}
    for path in paths:
        tar = _TAR.search(path.name)
        of_ending.setdefault(tar[0] if tar else path.suffix, []).append(path)
    lines = [find(found, *_UNTAR, ending=ending) if _TAR.search(ending) else find(found, *_UNPACK[ending])
             for ending, found in sorted(of_ending.items()) if _TAR.search(ending) or ending in _UNPACK]
    return ("Run ", Verbatim(" ; ".join(lines)), "   and ingest again") if lines else "Unpack them, and ingest again"


def recognise_text(head: bytes) -> Unsupported | None:
    """Return what a text is that no reader takes, or None where nothing here fits."""
    text = _text(head)
    looks = (_projection_trace, _launch_trace, _pipit, _ncu_text, _markdown)
    return next((named for look in looks if (named := look(text)) is not None), None)


def _text(head: bytes) -> str:
    return head.decode("utf-8", "replace").removeprefix("\ufeff")


def _zip(path: Path, head: bytes) -> Unsupported:
    """Return what kind of archive it is, from its table of contents alone: nothing is unpacked."""
    names: list[str] = []
    with (suppress(OSError, zipfile.BadZipFile, ValueError, NotImplementedError, UnicodeError), path.open("rb") as file,
          zipfile.ZipFile(file) as archive):
        names = [info.filename for info in archive.infolist()[:_MOST_MEMBERS]]
    if any(_JAX.search(name) for name in names) and not any(name.endswith((".sqlite", ".nsys-rep")) for name in names):
        return Unsupported("nsys-jax archive", "an archive of nsys-jax: ranges projected on the GPU and HLO modules, without the "
                           "launches themselves", _EXPORT)
    captures = [name for name in names if _CAPTURES.search(name)]
    if captures:
        return Unsupported("zip archive", "a zip archive with files that may be captures",
                           ("Unpack it, and ingest the folder: ", _unzip(path)), "archive")
    return Unsupported("zip archive", "a zip archive" + ("" if names else " that is damaged or empty"),
                       ("Unpack it, if it holds captures: ", _unzip(path)), "archive", is_capture=False)


def _here(path: Path) -> Path:
    """Return a path for a command: of a file at a URL the name that a copy of it has."""
    return Path(path.name) if isinstance(path, RemotePath) else path


def _unzip(path: Path) -> Verbatim:
    """Return the command for a zip archive: unzip looks for files by patterns itself."""
    here = _here(path)
    archive = here.with_name(re.sub(r"[*?[\\]", r"\\\g<0>", here.name))
    return shell_line("unzip", archive, "-d", here.with_name(f"{here.name}.unpacked"))


def _tar(path: Path, head: bytes) -> Unsupported:
    """Return that it is a tar archive, under whatever compression; one that cannot be listed here may hold captures."""
    names, is_all = _members_of_tar(path)
    is_capture = not is_all or any(_CAPTURES.search(name) for name in names)
    here = _here(path)
    archive = str(here) if here.is_absolute() else f"./{here}"  # what stands before a colon is a host to tar, but behind a slash
    unpack = Verbatim(f"{shell_line('mkdir', f'{archive}.unpacked')} && "
                      f"{shell_line('tar', '-xf', archive, '-C', f'{archive}.unpacked')}")
    return Unsupported("tar archive", "a tar archive" + (" with files that may be captures" if is_capture else ""),
                       ("Unpack it, and ingest the folder: ", unpack), "archive", is_capture)


def _members_of_tar(path: Path) -> tuple[list[str], bool]:
    """Return the names of the first members, and whether there are no others; little is unpacked for that."""
    names: list[str] = []
    with (suppress(OSError, tarfile.TarError, EOFError, ValueError, lzma.LZMAError, zlib.error), path.open("rb") as file,
          tarfile.open(fileobj=file, mode="r|*") as archive):
        for member in archive:
            names.append(member.name)
            if member.offset_data + member.size > _LISTED_BYTES or len(names) >= _MOST_MEMBERS:
                return names, False
        return names, True
    return names, False


def _packed(by: str, ending: str) -> Callable[[Path, bytes], Unsupported]:
    """Return the look at a compressed file: its name without the last ending says whether it is a capture.

    ending: of files that the same command unpacks.
    """
    def look(path: Path, head: bytes) -> Unsupported:
        if _TAR.search(path.name):
            return _tar(path, head)
        return Unsupported(f"{by}-compressed file", f"compressed with {by}, which is not read (gzip is)",
                           ("Unpack it, and ingest what is in it: ", _command(ending, path)), "archive",
                           bool(_CAPTURES.search(path.stem)))
    return look


def _command(ending: str, path: Path) -> Verbatim:
    here = _here(path)
    return shell_line(*(here if word == "{}" else word.replace("{}", str(here)) for word in _UNPACK[ending]))


def _gzip_twice(path: Path, head: bytes) -> Unsupported | None:
    """Return that it is gzip within gzip; None where the head is that of the file itself, as nothing of it can be unpacked."""
    with path.open("rb") as file:
        if file.read(len(head)) == head:
            return None
    return Unsupported("gzip within gzip", "compressed twice with gzip, and only the outer layer is taken off",
                       ("Unpack it, and ingest what is in it: ", shell_line("gunzip", "-k", _here(path))), is_capture=bool(
                           _CAPTURES.search(path.stem)))


def _pickle(path: Path, head: bytes) -> Unsupported:
    """Return what a pickle is by the words in it: it is never unpickled, for that runs what it says."""
    if b"pg_config" not in head and b"profiling_name" not in head:
        return Unsupported("pickle", "a Python pickle, which is never read", "Leave it", "not_a_capture", is_capture=False)
    convert = 'import json, pickle, sys; json.dump(pickle.load(open(sys.argv[1], "rb")), open(sys.argv[2], "w"))'
    return Unsupported("flight recorder pickle", "a dump of PyTorch's flight recorder as a pickle, which is never read: "
                       "unpickling a file runs code in it", ("If the file is your own, turn it into JSON, and ingest that: ",
                       shell_line("python", "-c", convert, _here(path), Path(f"{_here(path)}.json"))))


def _own_timeline(path: Path, head: bytes) -> Unsupported:
    return Unsupported("timeline of nsightlens", "a timeline that nsightlens export perfetto wrote",
                       "Leave it out: what it was made from can be ingested itself", "own_export", is_capture=False)


def _nsys_format(kind: str, reason: str, advice: Text = _EXPORT) -> Callable[[Path, bytes], Unsupported]:
    """Return the look at a file in a format that nsys also writes: the names in it say whether nsys did."""
    def look(path: Path, head: bytes) -> Unsupported:
        is_capture = any(name in part for part in (head, _tail(path)) for name in _NSYS_NAMES)
        return Unsupported(kind, reason if is_capture else f"an {kind}", advice, is_capture=is_capture)
    return look


def _perfetto(path: Path, head: bytes) -> Unsupported | None:
    """Return what a trace in Perfetto's own format is: a message of packets, which has no magic number."""
    if not _is_packets(head):
        return None
    here = _here(path)
    short = here.name.removesuffix(".gz")
    unpack = f"{shell_line('gunzip', '-k', here)}; " if short != here.name else ""
    stem = f"{short.removesuffix('.json')}.converted" if short.endswith(".json") else short.rpartition(".")[0] or short
    again = shell_line("traceconv", "json", here.with_name(short), here.with_name(f"{stem}.json"))
    return Unsupported("Perfetto trace", "a trace in Perfetto's binary format, which is not read (Chrome's JSON is)",
                       ("Export it as JSON (export_chrome_trace('trace.json')), or convert it with Perfetto's traceconv: ",
                        Verbatim(unpack + again)))


def _is_packets(head: bytes) -> bool:
    """Return whether bytes are packets of Perfetto, each with its length before it, up to the last, which may be cut.

    Text may begin so too, but has no bytes below that of a tab.
    """
    at, packets = 0, 0
    while at < len(head):
        size = _PACKET.match(head, at)
        if size is None:
            return False
        packets += 1
        at = size.end() + sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(size[1]))
    return packets > 0 and _BINARY.search(head) is not None


def _tail(path: Path) -> bytes:
    """Return the last bytes of a file, where some formats keep the names of their columns."""
    with suppress(OSError), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        return file.read(_TAIL_BYTES)
    return b""


_MAGIC: tuple[tuple[bytes, Callable[[Path, bytes], Unsupported | None]], ...] = (
    (b"\x1f\x8b", _gzip_twice),
    (b"PK\x03\x04", _zip), (b"PK\x05\x06", _zip),
    (b"\xfd7zXZ\x00", _packed("xz", ".xz")), (b"BZh", _packed("bzip2", ".bz2")),
    (b"\x28\xb5\x2f\xfd", _packed("zstd", ".zst")),
    (b"7z\xbc\xaf\x27\x1c", _packed("7-Zip", ".7z")),
    *((bytes((0x80, protocol)), _pickle) for protocol in (2, 3, 4, 5)),
    (b"\x89HDF\r\n\x1a\n", _nsys_format("HDF5 file", "an export of nsys in HDF5 (--type hdf)")),
    (b"ARROW1", _nsys_format("Arrow file", "an export of nsys in Arrow (--type arrow)")),
    (b"\xff\xff\xff\xff", _nsys_format("Arrow stream", "an export of nsys in Arrow (--type arrow)")),
    (OWN_TIMELINE, _own_timeline),
    (b"PAR1", _nsys_format("Parquet file", "a single Parquet table of nsys: one table of an export, or the sums of a recipe",
                           (*_EXPORT, "; of an export with --type parquetdir, ingest the whole folder"))),
)


def _json_lines(text: str) -> Unsupported | None:
    first, _, rest = text.lstrip().partition("\n")
    with suppress(ValueError, RecursionError):
        found = json.loads(first)
        if isinstance(found, dict) and rest.lstrip().startswith("{") and (set(_NSYS_LINES) & found.keys() or "Type" in found
                                                                           or {"id", "value"} <= found.keys()):
            return Unsupported("nsys JSON lines", "an export of nsys in JSON lines", _EXPORT)
    return None


def _stats_json(text: str) -> Unsupported | None:
    if not text.lstrip().startswith("["):
        return None
    keys = set(re.findall(r'"([^"\\]{1,60})"\s*:', text[:4000]))
    if {"Name", "Start (ns)"} <= keys or ("Total Time (ns)" in keys and keys & {"Instances", "Num Calls", "Count"}):
        return Unsupported("nsys stats json", "a table that nsys stats made of a report, in JSON", _EXPORT, "foreign_format")
    return None


def _header(text: str) -> list[str]:
    """Return the cells of the first line that has several."""
    for line in text.splitlines()[:50]:
        if "," in line:
            with suppress(csv.Error):
                return [cell.strip() for cell in next(csv.reader((line,)), [])]
    return []


def _projection_trace(text: str) -> Unsupported | None:
    cells = _header(text)
    if "Name" in cells and any(cell.startswith("Projected Start (") for cell in cells):
        return Unsupported("nsys projection trace csv", "the ranges of a report projected on the GPU (nsys stats "
                           "nvtx_gpu_proj_trace), but without their times on the host, or in unknown units (times "
                           "in ns, us, ms or s are read)", _EXPORT, "foreign_format")
    return None


def _launch_trace(text: str) -> Unsupported | None:
    cells = set(_header(text))
    if {"CorrId", "GrdX", "Name"} <= cells and any(cell.startswith("Duration (") for cell in cells):
        return Unsupported("nsys cuda_gpu_trace csv", "every launch and copy of a report as nsys stats cuda_gpu_trace prints "
                           "them, but in unknown units (times in ns, us, ms or s are read)", _EXPORT, "foreign_format")
    return None


def _pipit(text: str) -> Unsupported | None:
    if {"Trace Type", "Event Type", "_matching_event"} <= set(_header(text)):
        return Unsupported("pipit csv", "events of a report as pipit saved them: enter and leave apart, without devices and "
                           "processes", _EXPORT, "foreign_format")
    return None


def _markdown(text: str) -> Unsupported | None:
    lines = text.splitlines()
    ruled = any(re.fullmatch(r"\s*\|?(\s*:?-{3,}:?\s*\|)+\s*:?-*:?\s*", line) for line in lines)
    if ruled or (lines and re.match(r"#{1,6} \S|---\s*$", lines[0])):
        return Unsupported("Markdown", "a text that a person or program wrote", "Leave it", "not_a_capture", is_capture=False)
    return None


def _ncu_text(text: str) -> Unsupported | None:
    """Return that it is what ncu prints for people: sections with ruled tables of three columns."""
    ruled = r"^\s+Metric Name\s+Metric Unit\s+Metric Value"
    if re.search(r"^\s+Section: \S", text, re.MULTILINE) and re.search(ruled, text, re.MULTILINE):
        return Unsupported("ncu text page", "what ncu prints for people, not CSV", _NCU, "not_csv")
    return None
