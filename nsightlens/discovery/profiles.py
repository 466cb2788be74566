"""Files of a run -> profiles: duplicates set aside, pages of one report together, windows of one process in order.

Nothing may be counted twice, and nothing that is different may be taken for the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from nsightlens.discovery.export import PACKED_SQLITE
from nsightlens.discovery.files import CaptureFile
from nsightlens.discovery.ranks import natural_key
from nsightlens.discovery.sniff_cache import Fingerprint
from nsightlens.readers.nsys.identity import PRINTED, is_first_kernel

_WHOLE = 0.99
"""A copy of less than this share of the largest is cut."""
_NCU_REPORT = "ncu report"
_PREFERRED = ("nsys sqlite", "nsys parquetdir")
_REPORT_OF = {kind: report for report, kind in PRINTED.items()}
"""Kind of a table that nsys stats prints -> what it puts behind the name of the report, in the name of the table."""


@dataclass(frozen=True, slots=True)
class Group:
    """The files of one profile: `windows` in order of time, each with the files that are read together."""

    run: str
    tool: str
    windows: tuple[tuple[CaptureFile, ...], ...]
    notes: tuple[tuple[str, str], ...] = ()

    @property
    def files(self) -> list[CaptureFile]:
        """Return all files of the profile."""
        return [file for window in self.windows for file in window]

    @property
    def first(self) -> CaptureFile:
        """Return the file that the profile is named after."""
        return self.windows[0][0]


@dataclass(slots=True)
class Grouping:
    """The profiles, files that double others (run and path -> the file that is read, why), decompressed sizes."""

    groups: list[Group] = field(default_factory=list)
    duplicates: dict[tuple[str, Path], tuple[Path, str]] = field(default_factory=dict)
    sizes: dict[Path, int] = field(default_factory=dict)


def group(
    found: Sequence[CaptureFile], fingerprints: Mapping[Path, Fingerprint], agree: Callable[[Sequence[Path]], bool],
) -> Grouping:
    """Return the profiles that the files make up. `agree`: whether ncu CSVs hold no contradicting values."""
    result = Grouping(sizes={path: print_.plain[0] for path, print_ in fingerprints.items()})
    candidates = sorted((f for f in found if f.tool), key=lambda f: natural_key(str(f.path)))
    for run in dict.fromkeys(f.run for f in candidates):
        files = _without_doubles([f for f in candidates if f.run == run], fingerprints, result)
        files = _without_exported_reports(files, result)
        for tool in dict.fromkeys(f.tool for f in files):
            one = [f for f in files if f.tool == tool]
            result.groups.extend(_GROUPERS[str(tool)](one, result, agree))
    return result


def profile_id(group: Group, fingerprints: Mapping[Path, Fingerprint]) -> str:
    """Return the id of a profile seen for the first time: its tool, run and first file's content."""
    digest = blake2b(f"{group.run}\0{fingerprints[group.first.path].text}".encode(), digest_size=6)
    return f"{group.tool}-{digest.hexdigest()}"


def _without_doubles(files: list[CaptureFile], fingerprints: Mapping[Path, Fingerprint], result: Grouping) -> list[CaptureFile]:
    """Set aside files whose (decompressed) content another file has."""
    kept: dict[object, CaptureFile] = {}
    for file in files:
        print_ = fingerprints[file.path]
        for key in (print_.text, (file.tool, print_.plain)):
            if key in kept and kept[key].path != file.path:
                result.duplicates[file.run, file.path] = (kept[key].path, "the same content")
        if (file.run, file.path) not in result.duplicates:
            kept[print_.text] = kept[file.tool, print_.plain] = file
    return [f for f in files if (f.run, f.path) not in result.duplicates]


def _without_exported_reports(files: list[CaptureFile], result: Grouping) -> list[CaptureFile]:
    """Set aside a binary report that lies beside its own export."""
    for report, export in exports_beside(files):
        result.duplicates[report.run, report.path] = (export.path, "its export lies beside it")
    return [f for f in files if (f.run, f.path) not in result.duplicates]


def exports_beside(files: Sequence[CaptureFile]) -> Iterator[tuple[CaptureFile, CaptureFile]]:
    """Yield the binary reports that lie beside their own export, a file of their name with another ending, with that export."""
    exports: dict[tuple[Path, str | None], list[CaptureFile]] = defaultdict(list)
    for file in sorted(files, key=lambda f: f.path.name):
        if not _is_report(file):
            exports[file.path.parent, file.tool].append(file)
    for file in filter(_is_report, files):
        stem = file.path.name.rsplit(".", 1)[0]
        beside = exports[file.path.parent, file.tool]
        for start in (stem, f"{stem}.", f"{stem}_pqtdir"):
            at = bisect_left(beside, start, key=lambda f: f.path.name)
            if at < len(beside) and _is_named_after(beside[at], file):
                yield file, beside[at]
                break


def _is_report(file: CaptureFile) -> bool:
    return file.report not in (None, PACKED_SQLITE)


def _is_named_after(export: CaptureFile, report: CaptureFile) -> bool:
    """Return whether an export lies beside a report and has its name with another ending."""
    stem = report.path.name.rsplit(".", 1)[0]
    named = export.path.name == stem or export.path.name.startswith((f"{stem}.", f"{stem}_pqtdir"))
    return named and export.path.parent == report.path.parent


Agree = Callable[[Sequence[Path]], bool]


def _nsys(files: list[CaptureFile], result: Grouping, agree: Agree) -> Iterable[Group]:
    """One profile per report; of several exports of one report (same session, same content) the SQLite file is read.

    A table printed of a report is none beside it: it begins with the same kernel, or is called after the report and the table.
    """
    kept: dict[str, CaptureFile] = {}
    exports: dict[tuple[Path, str], CaptureFile] = {}
    for file in sorted(files, key=lambda f: (_PREFERRED.index(f.kind) if f.kind in _PREFERRED else len(_PREFERRED))):
        names = file.probe.identity if file.probe else frozenset()
        printed = _REPORT_OF.get(file.kind)
        twin = next((kept[name] for name in sorted(names) if name in kept and is_first_kernel(name) == bool(printed)), None)
        if printed and not twin:
            stem, named, _ = file.path.name.partition(f"_{printed}")
            twin = exports.get((file.path.parent, stem)) if named else None
        if twin:
            what = "printed of a report that is read" if printed else "another export of the same report"
            result.duplicates[file.run, file.path] = (twin.path, what)
        else:
            kept.update(dict.fromkeys(names, file))
            exports.setdefault((file.path.parent, file.path.name.rsplit(".", 1)[0]), file)
    return [Group(f.run, "nsys", ((f,),)) for f in files if (f.run, f.path) not in result.duplicates]


@dataclass(slots=True)
class _Pages:
    """Pages of one ncu report, and what is to be said of it."""

    files: list[CaptureFile]
    notes: list[tuple[str, str]] = field(default_factory=list)


def _ncu(files: list[CaptureFile], result: Grouping, agree: Agree) -> Iterable[Group]:
    """Files of one rank and execution that share launches and do not contradict each other are pages of one report.

    So are CSV pages of the same process that are named after the report that they lie beside, whatever they print.
    """
    reports: list[_Pages] = []
    for file in sorted(files, key=lambda f: f.kind != _NCU_REPORT):
        names = file.probe.identity if file.probe else frozenset()
        alone = _Pages([file])
        for report in reports:
            shares = any(f.probe and names & f.probe.identity for f in report.files)
            printed = _is_printed_from(file, report.files[0])
            if not ((shares or printed) and all(_same_start(file, f) for f in report.files)):
                continue
            if printed or agree([*(f.path for f in report.files), file.path]):
                report.notes += [("merge_is_doubtful", doubt) for doubt in _doubts(file, report.files)]
                report.files.append(file)
                break
            alone.notes = [("same_launches_differ", f"it names the same launches as {report.files[0].path.name}, but with other "
                            "values: read as another report; if both are one report, delete the stale one")]
        else:
            reports.append(alone)
    for report in reports:
        if len(report.files) > 1:
            report.notes.append(("files_merged", "one report, read together: " + ", ".join(f.path.name for f in report.files)))
        yield Group(report.files[0].run, "ncu", (tuple(report.files),), tuple(report.notes))


def _is_printed_from(page: CaptureFile, report: CaptureFile) -> bool:
    """Return whether CSV pages are named after a report of the same process."""
    one, other = ({p.pid for p in f.probe.processes} if f.probe else set() for f in (page, report))
    return report.kind == _NCU_REPORT != page.kind and _is_named_after(page, report) and bool(one & other)


def _doubts(page: CaptureFile, pages: Sequence[CaptureFile]) -> Iterable[str]:
    """Yield what speaks against a file being another page of the report that `pages` are of."""
    if pages[0].kind == _NCU_REPORT:
        return  # the reader says what pages print beyond the report
    here, there = (frozenset[str]().union(*(p.probe.identity for p in some if p.probe)) for some in ([page], pages))
    versions = {p.probe.tool_version for p in [page, *pages] if p.probe and p.probe.tool_version}
    if len(versions) > 1:
        why = "are of different versions of ncu"
    elif here - there and there - here:
        why = "each hold launches that the other lacks"
    elif here != there and all(page.path.parent != p.path.parent for p in pages):
        why = "lie in different folders, and one holds launches that the other lacks"
    else:
        return
    yield (f"{page.path.name} and {pages[0].path.name} {why}. They are read as one report, because they share launches (process "
           "id, ID, name, grid, block) and do not contradict each other. If they are two reports, say of two containers, give "
           "each a sidecar, or ingest each from its own folder")


def _kineto(files: list[CaptureFile], result: Grouping, agree: Agree) -> Iterable[Group]:
    """Files of one process and rank are its windows, in order of time: of one host and pid; without a host, of one pid.

    Those that turn out to overlap are read as profiles of their own.
    """
    _set_twins_aside(files, result)
    by_process: dict[object, list[CaptureFile]] = {}
    for file in (f for f in files if (f.run, f.path) not in result.duplicates):
        by_process.setdefault(_process_of(file), []).append(file)
    for members in by_process.values():
        members.sort(key=lambda f: (f.probe.first_epoch_ns or 0) if f.probe else 0)
        merged = () if len(members) == 1 else (("windows_of_one_process", f"{len(members)} files are windows of one process: "
                                                + ", ".join(m.path.name for m in members)),)
        yield Group(members[0].run, "kineto", tuple((m,) for m in members), merged)


def _process_of(file: CaptureFile) -> object:
    """Return what the windows of one process have in common: nothing but the file itself where no process is known."""
    known = file.probe.window_of if file.probe else None
    pids = {process.pid for process in file.probe.processes} if file.probe else set()
    if known is None and file.rank[0] is not None and len(pids) == 1 and file.probe and file.probe.first_epoch_ns is not None:
        known = f"{pids.pop()}"
    execution = file.sidecar.execution if file.sidecar else None
    return (known, file.rank[0], execution) if known not in (None, "None") else file.path


def _set_twins_aside(files: list[CaptureFile], result: Grouping) -> None:
    """Of traces that begin with the same events (re-saved, or cut while copying) only the first whole one is read."""
    twins: dict[str, list[CaptureFile]] = {}
    for file in files:
        for name in file.probe.identity if file.probe else ():
            twins.setdefault(name, []).append(file)
    for members in twins.values():
        whole = max(result.sizes[f.path] for f in members) * _WHOLE
        read = next(f for f in members if result.sizes[f.path] >= whole)
        for other in members:
            if other is not read and (other.run, other.path) not in result.duplicates:
                result.duplicates[other.run, other.path] = (read.path, "it begins with the same events: a copy, whole or cut")


def _each(files: list[CaptureFile], result: Grouping, agree: Agree) -> Iterable[Group]:
    """Each file is a profile."""
    return [Group(f.run, str(f.tool), ((f,),)) for f in files]


def _same_start(one: CaptureFile, other: CaptureFile) -> bool:
    """Return whether nothing distinguishes two files: rank, or the host and execution in their sidecars."""
    stated = [(f.rank[0], *((f.sidecar.host, f.sidecar.execution) if f.sidecar else (None, None))) for f in (one, other)]
    return all(a is None or b is None or a == b for a, b in zip(*stated, strict=True))


_GROUPERS: dict[str, Callable[[list[CaptureFile], Grouping, Agree], Iterable[Group]]] = {
    "nsys": _nsys, "ncu": _ncu, "kineto": _kineto, "steps": _each, "nccl_inspector": _each, "flight_recorder": _each,
}
