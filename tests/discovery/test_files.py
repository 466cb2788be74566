"""Files of a run directory: which are looked at, what each is, the run's name, and fingerprints that outlive a version."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import pytest

from nsightlens.discovery import files
from nsightlens.discovery.files import CaptureFile, find, fingerprint, look_at, path_text, run_names, walk
from nsightlens.discovery.ranks import Sidecar
from nsightlens.errors import ReadError, UsageError
from nsightlens.readers import nsys
from nsightlens.readers.reader import Probe, ProcessHint
from tests.captures import kineto


def test_folders_are_walked_in_natural_order_without_stores_and_hidden_ones(tmp_path: Path) -> None:
    for name in ("rank10/a.json", "rank9/b.json", "rank9/._b.json", "rank9/.seen", ".git/c.json", "store/parts/d.json",
                 "store/nsightlens.duckdb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [str(path.relative_to(tmp_path)) for path in walk(tmp_path)] == ["rank9/._b.json", "rank9/b.json", "rank10/a.json"]
    assert list(walk(tmp_path / "rank9" / "b.json")) == [tmp_path / "rank9" / "b.json"]


def test_a_run_is_named_after_its_folder(tmp_path: Path) -> None:
    roots = [tmp_path / name for name in ("one/base", "two/base", "other")]
    for root in roots:
        root.mkdir(parents=True)
    (roots[2] / "a.json").touch()
    assert run_names(roots[:1]) == {roots[0]: "base"}
    assert run_names(roots) == {roots[0]: "one/base", roots[1]: "two/base", roots[2]: "other"}
    assert run_names([roots[2] / "a.json"]) == {roots[2] / "a.json": "other"}
    assert run_names(roots, "given") == dict.fromkeys(roots, "given")
    assert run_names([Path("/")]) == {Path("/"): "root"}


def test_a_run_keeps_the_name_that_it_has_in_the_store(tmp_path: Path) -> None:
    base, other = tmp_path / "one" / "base", tmp_path / "two" / "base"
    for folder in (base, other):
        folder.mkdir(parents=True)
    assert run_names([base], taken={"before": str(base)}) == {base: "before"}
    assert run_names([base], taken={"before": str(base), "one/base": str(base)}) == {base: "one/base"}, "the one like its folder"
    assert run_names([base], taken={"before": str(base), "after": str(base)}) == {base: "base"}, "neither is the folder's"
    assert run_names([base], taken={"base": str(other)}) == {base: "one/base"}, "the name is another folder's"


def test_a_folder_of_several_runs_goes_on_with_the_run_that_holds_its_files(tmp_path: Path) -> None:
    job, before, after = (tmp_path / name for name in ("job", "archive", "other"))
    path = path_text(kineto(job / "a.json"))
    taken = {"one": str(job), "two": str(job), "before": str(before), "after": str(after)}

    def run(*holding: str) -> str:
        (found,) = find([job], taken=taken, held={path: set(holding)})
        return found.run

    assert [run(), run("one"), run("two"), run("two", "before", "after")] == ["job", "one", "two", "two"]
    assert run("before") == run("after") == "job", "a file that lay elsewhere"
    with pytest.raises(UsageError, match=r"this is the runs one, two\. Name the one you mean with --run"):
        run("one", "two")


@pytest.mark.parametrize(("run", "pattern", "message"), [
    ("", None, "at most 240 characters"), ("x" * 241, None, "at most 240 characters"), (None, "(", "is not a regular expression"),
])
def test_what_cannot_be_meant_is_refused(tmp_path: Path, run: str | None, pattern: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find([tmp_path], run=run, rank_pattern=pattern)
    with pytest.raises(UsageError, match="no such file"):
        find([tmp_path / "nowhere"])


def test_a_given_run_holds_for_every_file(tmp_path: Path) -> None:
    kineto(tmp_path / "a.json")
    (tmp_path / "a.run.json").write_text('{"run": "told"}')
    assert {file.run for file in find([tmp_path], run="x" * 240)} == {"x" * 240}


def test_files_without_a_sidecar_are_of_the_run_that_all_sidecars_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        kineto(tmp_path / f"{name}.json")
    (tmp_path / "a.run.json").write_text('{"run": "told"}')
    assert {file.path.name: file.run for file in find([tmp_path])} == {"a.json": "told", "a.run.json": "told", "b.json": "told"}
    (tmp_path / "b.run.json").write_text('{"run": "other"}')
    assert {f.path.name: f.run for f in find([tmp_path]) if f.tool} == {"a.json": "told", "b.json": "other"}


def test_the_rank_is_of_the_sidecar_else_of_the_content_else_of_the_name(tmp_path: Path) -> None:
    hint = (4, "filename")
    path = kineto(tmp_path / "a.json", rank=3)
    probe = look_at(path, tmp_path, "r").probe
    assert probe is not None
    found = CaptureFile(path, tmp_path, "r", 1, 0, "trace", "kineto", probe, rank_hint=hint)
    assert found.rank == (3, probe.processes[0].rank_source)
    assert CaptureFile(path, tmp_path, "r", 1, 0, "trace", "kineto", Probe("x"), rank_hint=hint).rank == hint
    sidecar = Sidecar(path, rank=5)
    both = CaptureFile(path, tmp_path, "r", 1, 0, "trace", "kineto", probe, sidecar=sidecar, rank_hint=hint)
    assert both.rank == (5, "sidecar")
    assert sidecar.simulated is False
    two = Probe("x", processes=(ProcessHint(1, rank=0, rank_source="content"), ProcessHint(2, rank=1, rank_source="content")))
    of_two_ranks = CaptureFile(path, tmp_path, "r", 1, 0, "trace", "kineto", two, rank_hint=hint)
    assert of_two_ranks.rank == (None, None)


def test_what_cannot_be_opened_has_no_size_and_no_time(tmp_path: Path) -> None:
    found = look_at(tmp_path / "gone.json", tmp_path, "r")
    assert (found.kind, found.bytes, found.modified_ns) == ("unreadable", 0, 0)
    assert found.refused is not None and found.refused.code == "unreadable"


def test_what_is_wrong_with_a_file_is_its_kind_in_a_few_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> Probe:
        raise ReadError(path, "w" * 80 + ": and more", "Do this", "code")

    monkeypatch.setattr(nsys, "probe", refuse)
    kind, _, _, _, refused = files._probe(nsys, tmp_path / "a.sqlite")
    assert kind == "w" * 60 and refused is not None and refused.code == "code"


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", '{"rank": -1}'])
def test_a_bad_sidecar_is_ignored_and_named(tmp_path: Path, text: str) -> None:
    kineto(tmp_path / "a.json")
    (tmp_path / "a.run.json").write_text(text)
    found = look_at(tmp_path / "a.json", tmp_path, "r")
    assert found.tool == "kineto" and found.sidecar is None
    assert found.sidecar_problem is not None and "a.run.json is ignored" in found.sidecar_problem


def test_a_file_and_its_gzip_have_the_same_plain_content(tmp_path: Path) -> None:
    content = bytes(range(256)) * 300
    plain, packed = tmp_path / "a.json", tmp_path / "a.json.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content, mtime=0))
    assert fingerprint(plain).plain == fingerprint(packed).plain == (len(content), zlib.crc32(content))
    assert fingerprint(plain).text != fingerprint(packed).text


def test_the_size_behind_gzip_is_read_where_the_last_block_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytes(range(256))
    packed = tmp_path / "a.json.gz"
    packed.write_bytes(gzip.compress(content))
    for rest in range(1, 9):
        monkeypatch.setattr(files, "_BLOCK", packed.stat().st_size - rest)
        assert fingerprint(packed).plain == (len(content), zlib.crc32(content))


def test_a_fingerprint_stays_what_it_is(tmp_path: Path) -> None:
    """Stores hold it: with another one, every file of every store would be read again."""
    path = tmp_path / "a.json"
    for content, text in ((b"", "c804ce198ec337e3dc762bdd1a09aece"), (b"kernel" * 1000, "4befb4e2fabdf4b3f2bd6899c6832480"),
                          (b"kernel" * 200_000, "cda5567f399af756f50285d87023a56a")):  # the last is of two blocks
        path.write_bytes(content)
        assert fingerprint(path).text == text
    path.unlink()
    path.mkdir()
    for name in ("b.parquet", "a.parquet"):
        (path / name).write_bytes(name.encode())
    folder = fingerprint(path).text
    (path / "a.parquet").rename(path / "c.parquet")
    assert fingerprint(path).text != folder, "the names are content, too"


def test_a_pointer_and_an_empty_capture_are_refused(tmp_path: Path) -> None:
    for name, content, code in (("a.sqlite", b"version https://git-lfs.github.com/spec/v1\n", "lfs_pointer"),
                                ("b.json", b"", "empty_file"), ("c.json", json.dumps({"a": 1}).encode(), "unknown_format")):
        (tmp_path / name).write_bytes(content)
        refused = look_at(tmp_path / name, tmp_path, "r").refused
        assert refused is not None and refused.code == code
    (tmp_path / "notes.txt").write_bytes(b"")
    assert look_at(tmp_path / "notes.txt", tmp_path, "r").refused is None


def test_the_log_of_our_ncu_wrapper_is_not_refused(tmp_path: Path) -> None:
    log = "==PROF== Connected to process 1 (/usr/bin/python)\n==PROF== Disconnected from process 1\n"
    for name in ("rank0000.ncu.log", "other.csv"):
        (tmp_path / name).write_text(log)
    found = {f.path.name: f for f in find([tmp_path])}
    assert (found["rank0000.ncu.log"].kind, found["rank0000.ncu.log"].refused) == ("ncu log", None)
    assert found["other.csv"].refused is not None
