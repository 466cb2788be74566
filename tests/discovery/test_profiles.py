from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nsightlens.discovery.export import REPORTS
from nsightlens.discovery.files import CaptureFile
from nsightlens.discovery.profiles import Grouping, group, profile_id
from nsightlens.discovery.ranks import Sidecar
from nsightlens.discovery.sniff_cache import Fingerprint
from nsightlens.readers.nsys.identity import PRINTED
from nsightlens.readers.reader import Probe, ProcessHint


def _found(name: str, tool: str, kind: str = "", **probe: object) -> CaptureFile:
    path = Path("/r") / name
    probed = Probe(kind or tool, **probe)  # type: ignore[arg-type]
    return CaptureFile(path, Path("/r"), "r", 1, 0, kind or f"{tool} x", tool, probed)


def _group(files: list[CaptureFile], contents: dict[str, str] | None = None, agree: bool = True) -> Grouping:
    prints = {f.path: Fingerprint((contents or {}).get(f.path.name, f.path.name), (hash(f.path.name) & 0xFFFF, 1)) for f in files}
    return group(files, prints, lambda paths: agree)


def _names(grouping: Grouping) -> list[list[list[str]]]:
    return [[[f.path.name for f in window] for window in g.windows] for g in grouping.groups]


def test_a_copy_is_set_aside() -> None:
    found = _group([_found("a.json", "kineto"), _found("b.json", "kineto")], {"a.json": "same", "b.json": "same"})
    assert _names(found) == [[["a.json"]]]
    assert found.duplicates == {("r", Path("/r/b.json")): (Path("/r/a.json"), "the same content")}


def test_a_trace_beside_its_gz_is_one() -> None:
    files = [_found("a.json", "kineto"), _found("a.json.gz", "kineto")]
    prints = {files[0].path: Fingerprint("1", (100, 77)), files[1].path: Fingerprint("2", (100, 77))}
    found = group(files, prints, lambda paths: True)
    assert _names(found) == [[["a.json"]]]
    assert list(found.duplicates) == [("r", Path("/r/a.json.gz"))]


def test_a_copy_is_set_aside_in_natural_order() -> None:
    found = _group([_found("r10.json", "kineto"), _found("r9.json", "kineto")], {"r10.json": "same", "r9.json": "same"})
    assert list(found.duplicates) == [("r", Path("/r/r10.json"))]


def test_of_traces_with_the_same_beginning_the_first_whole_one_is_read() -> None:
    def read(first_size: int) -> list[list[list[str]]]:
        files = [_found(name, "kineto", identity=frozenset({"begin"})) for name in ("a.json", "b.json")]
        prints = {file.path: Fingerprint(file.path.name, (size, i)) for i, (file, size) in
                  enumerate(zip(files, (first_size, 1000), strict=True))}
        found = group(files, prints, lambda paths: True)
        assert set(found.duplicates.values()) == {(next(f.path for f in files if ("r", f.path) not in found.duplicates),
                                                   "it begins with the same events: a copy, whole or cut")}
        return _names(found)

    assert read(1001) == read(1000) == read(990) == [[["a.json"]]]  # saved again, with other spaces or numbers
    assert read(989) == read(300) == [[["b.json"]]]  # cut while it was copied


def test_a_report_beside_its_export_is_one() -> None:
    (nsys,) = REPORTS
    files = [replace(_found("a.nsys-rep", "nsys"), report=nsys), _found("a.sqlite", "nsys"),
             replace(_found("b.nsys-rep", "nsys"), report=nsys)]
    found = _group(files)
    assert sorted(path.name for _, path in found.duplicates) == ["a.nsys-rep"]


def _report(name: str, *launches: str, pid: int = 7) -> CaptureFile:
    return _found(name, "ncu", "ncu report", identity=frozenset(launches), processes=(ProcessHint(pid),))


def _page(name: str, *launches: str, pid: int = 7, kind: str = "ncu csv") -> CaptureFile:
    return _found(name, "ncu", kind, identity=frozenset(launches), processes=(ProcessHint(pid),))


def test_pages_join_the_report_that_they_were_printed_from() -> None:
    report = _report("k.ncu-rep", "a")
    for agree in (True, False):  # what contradicts the report is told by the reader
        assert _names(_group([_page("k.details.csv", "renamed"), report, _page("k.csv", "renamed")], agree=agree)) == [
            [["k.ncu-rep", "k.csv", "k.details.csv"]]]
    for kind in ("ncu csv", "ncu x"):
        assert _names(_group([_page("a.csv", "a", kind=kind), report])) == [[["k.ncu-rep", "a.csv"]]]
    assert _names(_group([_page("other.csv", "a"), report], agree=False)) == [[["k.ncu-rep"]], [["other.csv"]]]


def test_pages_of_another_process_do_not_join_a_report_by_its_name() -> None:
    assert _names(_group([_page("k.csv", "b", pid=8), _report("k.ncu-rep", "a")])) == [[["k.ncu-rep"]], [["k.csv"]]]
    elsewhere = replace(_page("k.csv", "b"), path=Path("/r/other/k.csv"))
    assert len(_group([elsewhere, _report("k.ncu-rep", "a")]).groups) == 2


def test_two_exports_of_one_report() -> None:
    session = frozenset({"s"})
    found = _group([_found("a.parquet", "nsys", "nsys parquetdir", identity=session),
                    _found("b.sqlite", "nsys", "nsys sqlite", identity=session)])
    assert _names(found) == [[["b.sqlite"]]]
    assert found.duplicates == {("r", Path("/r/a.parquet")): (Path("/r/b.sqlite"), "another export of the same report")}


def test_a_table_beside_the_export_that_it_was_printed_of_is_none() -> None:
    ((report, kind), *_) = PRINTED.items()
    found = _group([_found(f"a_{report}.csv", "nsys", kind), _found("a.sqlite", "nsys", "nsys sqlite")])
    assert _names(found) == [[["a.sqlite"]]]
    assert found.duplicates == {
        ("r", Path(f"/r/a_{report}.csv")): (Path("/r/a.sqlite"), "printed of a report that is read")}


def test_pages_of_one_ncu_report_are_read_together() -> None:
    launch = frozenset({"7/0/k"})
    files = [_found("k.details.csv", "ncu", identity=launch), _found("k.raw.csv", "ncu", identity=launch),
             _found("other.csv", "ncu", identity=frozenset({"8/0/k"}))]
    assert _names(_group(files)) == [[["k.details.csv", "k.raw.csv"]], [["other.csv"]]]


def test_same_launches_with_other_values_are_another_report() -> None:
    launch = frozenset({"7/0/k"})
    found = _group([_found("a.csv", "ncu", identity=launch), _found("b.csv", "ncu", identity=launch)], agree=False)
    assert _names(found) == [[["a.csv"]], [["b.csv"]]]
    assert [code for code, _ in found.groups[1].notes] == ["same_launches_differ"]


def test_the_same_pid_on_two_ranks_is_not_one_report() -> None:
    launch = frozenset({"1/0/k"})
    files = [replace(_found(f"rank{r}.csv", "ncu", identity=launch), rank_hint=(r, "filename")) for r in (0, 1)]
    assert len(_group(files).groups) == 2


def test_windows_of_one_process_in_order_of_time() -> None:
    late = _found("w.2.json", "kineto", window_of="h:1", first_epoch_ns=20)
    early = _found("w.10.json", "kineto", window_of="h:1", first_epoch_ns=10)
    other = _found("v.json", "kineto", window_of=None)
    found = _group([late, early, other])
    assert _names(found) == [[["v.json"]], [["w.10.json"], ["w.2.json"]]]
    assert [[code for code, _ in g.notes] for g in found.groups] == [[], ["windows_of_one_process"]]
    windows = found.groups[1]
    assert windows.first is early and windows.files == [early, late]


def test_two_executions_are_never_windows_of_one_process() -> None:
    files = [_found(f"w.{i}.json", "kineto", window_of="h:1", first_epoch_ns=i) for i in (1, 2)]
    files = [replace(f, sidecar=Sidecar(f.path, execution=str(i))) for i, f in enumerate(files)]
    assert len(_group(files).groups) == 2


def test_profile_id_follows_run_and_content() -> None:
    one = _group([_found("a.json", "kineto")]).groups[0]
    prints = {one.first.path: Fingerprint("x", (0, 0))}
    assert profile_id(one, prints) == profile_id(one, prints)
    assert profile_id(one, prints) != profile_id(replace(one, run="s"), prints)
    assert profile_id(one, prints).startswith("kineto-")


def _launches(*numbers: int) -> frozenset[str]:
    return frozenset(f"7 {number} k" for number in numbers)


def _noted(files: list[CaptureFile]) -> list[list[str]]:
    return [[code for code, _ in g.notes] for g in _group(files).groups]


def test_pages_whose_launches_do_not_fit_are_told() -> None:
    both = _found("a.csv", "ncu", identity=_launches(0, 1)), _found("b.csv", "ncu", identity=_launches(1, 2))
    assert _noted(list(both)) == [["merge_is_doubtful", "files_merged"]]
    part = _found("b.csv", "ncu", identity=_launches(1))
    assert _noted([both[0], part]) == [["files_merged"]]   # a page printed with a filter
    assert _noted([both[0], replace(part, path=Path("/r/other/b.csv"))]) == [["merge_is_doubtful", "files_merged"]]
    more = _found("b.csv", "ncu", identity=_launches(0, 1))
    assert _noted([replace(part, path=Path("/r/a.csv")), more]) == [["files_merged"]]
    same = _found("b.csv", "ncu", identity=_launches(0, 1))
    assert _noted([both[0], replace(same, path=Path("/r/other/b.csv"))]) == [["files_merged"]]


def test_pages_of_two_versions_are_told() -> None:
    files = [_found(f"{v}.csv", "ncu", identity=_launches(0), tool_version=v) for v in ("2024.1", "2025.2")]
    assert _noted(files) == [["merge_is_doubtful", "files_merged"]]
    same = [_found(name, "ncu", identity=_launches(0), tool_version="2025.2") for name in ("a.csv", "b.csv")]
    assert _noted(same) == [["files_merged"]]


def test_sidecars_tell_two_containers_apart() -> None:
    files = [_found(f"{i}.csv", "ncu", identity=_launches(0)) for i in "ab"]
    for told in ("host", "execution"):
        named = [replace(f, sidecar=Sidecar(f.path, **{told: f.path.name})) for f in files]  # type: ignore[arg-type]
        assert len(_group(named).groups) == 2
    assert len(_group([replace(files[0], sidecar=Sidecar(files[0].path, host="n1")), files[1]]).groups) == 1


def test_a_file_is_in_a_profile_of_its_own_tool_only() -> None:
    files = [_found("a.json", "kineto"), _found("b.sqlite", "nsys"), _found("c.csv", "ncu"), _found("d.steps.json", "steps")]
    assert [(g.tool, [f.path.name for f in g.files]) for g in _group(files[::-1]).groups] == [
        (f.tool, [f.path.name]) for f in files]


def test_each_log_of_steps_is_a_profile() -> None:
    found = _group([_found("a.steps.json", "steps"), _found("b.steps.json", "steps")])
    assert _names(found) == [[["a.steps.json"]], [["b.steps.json"]]]
