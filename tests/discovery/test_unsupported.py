"""What is recognised but not read: each is named, with the reason and one thing to do; what is no capture is left alone."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import feather, ipc
from pyarrow import parquet as pq

import nsightlens as nl
from nsightlens.cli.ingest import command as ingest_command
from nsightlens.cli.scan import command as scan_command
from nsightlens.discovery.files import look_at
from nsightlens.discovery.unsupported import advice_for_all
from nsightlens.terminal.text import written
from tests.captures import kineto
from tests.places import ROOT
from tests.terminal.pasted import between

SHARED = ROOT / "../shared/data"
RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"
NSYS_TABLE = pa.table({"start": [1], "correlationId": [7]})


PERFETTO = b"\n\x0a\xe2\x03\x07\x08\x01\x12\x03gpu" + b"\n\x96\x01" + b"\x08" * 150
"""Two packets, of 10 and of 150 bytes."""

Write = Callable[[Path], object]


def _zip(*names: str) -> Write:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, "x")
    return write


def _tar(mode: str, *names: str) -> Write:
    def write(path: Path) -> None:
        with tarfile.open(path, f"w:{mode}") as archive:  # type: ignore[call-overload]
            for name in names:
                member = tarfile.TarInfo(name)
                member.size = 1
                archive.addfile(member, io.BytesIO(b"x"))
    return write


def _text(text: str) -> Write:
    return lambda path: path.write_text(text)


def _bytes(content: bytes) -> Write:
    return lambda path: path.write_bytes(content)


def _arrow_stream(path: Path) -> None:
    with ipc.new_stream(path, NSYS_TABLE.schema) as stream:
        stream.write_table(NSYS_TABLE)


REFUSED: dict[str, tuple[str, Write, str, str]] = {
    "zip": ("run.zip", _zip("a/rank0.sqlite", "a/notes.txt"), "zip archive", "unzip {}/run.zip -d {}/run.zip.unpacked"),
    "nsys-jax": ("job.zip", _zip("nvtx_gpu_proj_trace/rank0.parquet", "nvtx_pushpop_trace.csv.xz"), "nsys-jax archive",
                 "nsys export --type sqlite"),
    "xz": ("rank0.sqlite.xz", _bytes(lzma.compress(b"SQLite format 3\0")), "xz-compressed file", "unxz -k {}/rank0.sqlite.xz"),
    "bzip2": ("t.json.bz2", _bytes(bz2.compress(b"{}")), "bzip2-compressed file", "bunzip2 -k {}/t.json.bz2"),
    "zstd": ("t.json.zst", _bytes(b"\x28\xb5\x2f\xfd...."), "zstd-compressed file", "unzstd {}/t.json.zst"),
    "7-Zip": ("t.json.7z", _bytes(b"7z\xbc\xaf\x27\x1c...."), "7-Zip-compressed file",
              "7z x {0}/t.json.7z -o{0}/t.json.7z.unpacked"),
    "gzip twice": ("t.json.gz", _bytes(gzip.compress(gzip.compress(b"{}"))), "gzip within gzip", "gunzip -k {}/t.json.gz"),
    **{f"tar, {mode}": (f"run.{ending}", _tar(mode, "a/notes.txt", "a/rank0.sqlite"), "tar archive",
                        f"tar -xf {{}}/run.{ending} -C")
       for mode, ending in (("", "tar"), ("gz", "tar.gz"), ("gz", "tgz"), ("gz", "dat"), ("xz", "tar.xz"), ("bz2", "tar.bz2"))},
    "tar, zstd": ("run.tar.zst", _bytes(b"\x28\xb5\x2f\xfd...."), "tar archive", "tar -xf {}/run.tar.zst -C"),
    "hdf": ("report.h5", _bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 64 + b"CUPTI_ACTIVITY_KIND_KERNEL"), "HDF5 file",
            "nsys export --type sqlite"),
    "arrow file": ("report.arrow", lambda path: feather.write_feather(NSYS_TABLE, path), "Arrow file", "--type sqlite"),
    "arrow stream": ("report.arrow", _arrow_stream, "Arrow stream", "--type sqlite"),
    "a table of a recipe": ("stats.parquet", lambda path: pq.write_table(pa.table({"Total Time": [1.0]}), path), "Parquet file",
                            "ingest the whole folder"),
    "Perfetto": ("rank0.pftrace", _bytes(PERFETTO), "Perfetto trace", "traceconv json {0}/rank0.pftrace {0}/rank0.json"),
    "Perfetto under gzip": ("rank0.perfetto-trace.gz", _bytes(gzip.compress(PERFETTO)), "Perfetto trace",
                            "gunzip -k {0}/rank0.perfetto-trace.gz; traceconv json {0}/rank0.perfetto-trace {0}/rank0.json"),
    "Perfetto, cut, of another name": ("t.json", _bytes(PERFETTO[:-1]), "Perfetto trace",
                                       "traceconv json {0}/t.json {0}/t.converted.json"),
    "a large table of a recipe": (
        "stats.parquet", lambda path: pq.write_table(pa.table({"Total Time": [i / 7 for i in range(100_000)]}), path),
        "Parquet file", "ingest the whole folder"),
    "jsonlines": ("report.json", _text('{"CudaEvent": {"startNs": "1"}}\n{"CudaEvent": {"startNs": "2"}}\n'), "nsys JSON lines",
                  "--type sqlite"),
    "stats json": ("sums.json", _text('[\n {"Time (%)": 50.0, "Total Time (ns)": 7, "Instances": 1, "Name": "k"}\n]'),
                   "nsys stats json", "--type sqlite"),
    "projection trace": ("proj.csv", _text("Name,Projected Start (ns),Projected Duration (ns),NumGPUOps\nstep,1,2,3\n"),
                         "nsys projection trace csv", "--type sqlite"),
    "launch trace": ("trace.csv", _text("Start (ticks),Duration (ticks),CorrId,GrdX,GrdY,GrdZ,Name\n1,2,3,1,1,1,k\n"),
                     "nsys cuda_gpu_trace csv", "--type sqlite"),
    "ncu text page": ("page.csv", _text("  k (1, 1, 1)x(32, 1, 1), Context 1\n    Section: GPU Speed Of Light Throughput\n"
                                        "    Metric Name     Metric Unit Metric Value\n"), "ncu text page", ".ncu-rep"),
    **{f"flight recorder, protocol {protocol}": (
        f"dump {protocol}.pkl", _bytes(pickle.dumps({"pg_config": {}, "entries": []}, protocol)), "flight recorder pickle",
        f" '{{0}}/dump {protocol}.pkl' '{{0}}/dump {protocol}.pkl.json'") for protocol in (2, 3, 4, 5)},
    "a title in Markdown": ("notes.csv", _text("# What I ran\n\nresnet, 5 steps\n"), "Markdown", "Leave it"),
    "Markdown": ("kernels.csv", _text("| Kernel | Time |\n|---|---|\n| gemm | 5 |\n"), "Markdown", "Leave it"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_read_is_named_with_what_to_do(case: str, tmp_path: Path) -> None:
    name, write, kind, advice = REFUSED[case]
    write(tmp_path / name)
    found = look_at(tmp_path / name, tmp_path, "r")
    assert (found.kind, found.tool) == (kind, None)
    assert found.refused is not None and found.refused.reason
    assert advice.format(tmp_path, tmp_path) in found.refused.what_to_do


@pytest.mark.parametrize(("name", "write"), [
    ("photos.zip", _zip("a.jpg")), ("paper.txt.xz", _bytes(lzma.compress(b"text"))),
    ("photos.tar", _tar("", "a.jpg")), ("photos.tar.gz", _tar("gz", "a.jpg")), ("photos.tar.xz", _tar("xz", "a.jpg")),
    ("weights.parquet", lambda path: pq.write_table(pa.table({"weight": [1.0]}), path)),
    ("NOTES.md", _text("# What I ran\n")), ("notes.txt", _text("\n\x09a list of things\n")),
    ("install.txt", _text("\npip install nothing: a packet of 112 bytes, if it were one\n")),
    *((f"model{protocol}.pkl", _bytes(pickle.dumps({"weights": [1.0]}, protocol))) for protocol in (2, 3, 4, 5)),
    ("weights.h5", _bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 64)),
])
def test_what_is_no_capture_is_no_error(name: str, write: Write, tmp_path: Path) -> None:
    write(tmp_path / name)
    found = look_at(tmp_path / name, tmp_path, "r")
    assert found.tool is None and found.refused is None


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"PK\x05\x06" + b"\0" * 18, b"PAR1", b"ARROW1", b"\xff" * 64, b"BZh"])
def test_a_cut_one_is_no_traceback(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(content)
    found = look_at(tmp_path / "x.sqlite", tmp_path, "r")
    assert found.tool is None and found.refused is not None


def test_a_gzipped_sqlite_export_is_read(tmp_path: Path) -> None:
    plain = next((RUN / "nsys").glob("*.sqlite"))
    (tmp_path / "run").mkdir()
    packed = tmp_path / "run" / f"{plain.name}.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes(), 1))
    with nl.ingest(plain, store=tmp_path / "a") as one, nl.ingest(tmp_path / "run", store=tmp_path / "b") as other:
        query = "SELECT name, start_ns, duration_ns, rank, grid_x FROM kernels ORDER BY ALL"
        assert one.sql(query).equals(other.sql(query)) and one.sql(query).num_rows
    assert not list((tmp_path / "run").glob("*.sqlite")), "nothing is unpacked beside the capture"


def test_a_gzipped_sqlite_of_something_else_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as base:
        base.execute("CREATE TABLE books (title TEXT)")
        base.commit()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "x.sqlite.gz").write_bytes(gzip.compress((tmp_path / "other.db").read_bytes()))
    done = CliRunner().invoke(ingest_command, [str(tmp_path / "run"), "--store", str(tmp_path / "store")])
    assert "x.sqlite.gz" in done.stderr and "Traceback" not in done.stderr


def test_a_linked_folder_is_followed_once(tmp_path: Path) -> None:
    kineto(tmp_path / "elsewhere" / "rank0.json", rank=0)
    run = tmp_path / "run"
    run.mkdir()
    (run / "rank0").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (run / "again").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (run / "loop").symlink_to(run, target_is_directory=True)
    with nl.ingest(run, store=tmp_path / "store") as store:
        assert store.sql("SELECT count(*) AS n FROM files WHERE outcome = 'read'").to_pylist() == [{"n": 1}]


def test_scan_shows_every_file_with_its_verdict(tmp_path: Path) -> None:
    kineto(tmp_path / "rank0.json", rank=0)
    _zip("rank1.sqlite")(tmp_path / "more.zip")
    (tmp_path / "notes.txt").write_text("x")
    done = CliRunner().invoke(scan_command, [str(tmp_path), "--format", "csv"])
    assert done.exit_code == 0, done.stderr
    assert all(name in done.stdout for name in ("rank0.json", "more.zip", "notes.txt"))


def test_refusals_of_one_kind_are_one_line_with_one_command(tmp_path: Path) -> None:
    for rank in range(5):
        (tmp_path / f"rank{rank}.sqlite.xz").write_bytes(lzma.compress(b"SQLite format 3\0"))
    done = CliRunner().invoke(ingest_command, [str(tmp_path), "--store", str(tmp_path / "store")])
    assert done.exit_code == 1
    assert done.stderr.count("unxz") == 1 and "rank0.sqlite.xz" in done.stderr
    assert "summary" not in done.stderr, "there is nothing to look at"


@pytest.mark.skipif(sys.platform != "linux", reason="needs file names of any bytes")
def test_a_name_that_is_no_utf8_is_listed(tmp_path: Path) -> None:
    kineto(tmp_path / "rank0.json", rank=0)
    (tmp_path / "rank0.json").rename(tmp_path / os.fsdecode(b"rank\xff0.json"))
    done = CliRunner().invoke(scan_command, [str(tmp_path)], env={"COLUMNS": "200"})
    assert done.exit_code == 0 and "kineto" in done.stdout.lower()


@pytest.mark.skipif(not SHARED.is_dir(), reason="the real captures are not here")
@pytest.mark.parametrize("path", sorted(SHARED.glob("kineto/notkineto__*")), ids=lambda p: p.name[:60])
def test_real_foreign_files_are_refused_with_advice(path: Path) -> None:
    found = look_at(path, path.parent, "r")
    assert found.tool is None
    assert found.refused is None or (found.refused.reason and found.refused.what_to_do)


@pytest.mark.parametrize("name", ["a run.tar.gz", "host:run.tar.gz", "-y.tar.gz", "$(touch PWN).tar.gz", "it's.tgz"])
def test_the_command_for_a_tar_archive_unpacks_it(name: str, tmp_path: Path) -> None:
    _tar("gz", "a/rank0.sqlite")(tmp_path / name)
    refused = look_at(tmp_path / name, tmp_path, "r").refused
    assert refused is not None
    subprocess.run(["sh", "-c", refused.what_to_do.partition(": ")[2]], check=True)
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted([name, f"{name}.unpacked", "a", "rank0.sqlite"])


def test_several_tar_archives_are_unpacked_by_one_command(tmp_path: Path) -> None:
    for name, member in (("a.tar.gz", "x.sqlite"), ("b.tar.gz", "x.sqlite"), ("c.tar", "x.sqlite")):
        _tar("gz" if name.endswith("gz") else "", member)(tmp_path / name)
    advice = written(advice_for_all(sorted(tmp_path.iterdir())))
    subprocess.run(["sh", "-c", advice.removeprefix("Run ").partition("   and")[0]], check=True)
    assert sorted(path.parent.name for path in tmp_path.rglob("x.sqlite")) == [
        f"{name}.unpacked" for name in ("a.tar.gz", "b.tar.gz", "c.tar")]


@pytest.mark.parametrize("program", ["xz", "bzip2", "gzip"])
@pytest.mark.parametrize("count", [1, 2])
def test_what_unpacks_a_file_acts_on_that_file_and_keeps_it(program: str, count: int, tmp_path: Path) -> None:
    """Also where another of its name lies where the user stands."""
    if not shutil.which(program):
        pytest.skip(f"no {program} here")
    packs: dict[str, tuple[Callable[[bytes], bytes], str]] = {
        "xz": (lzma.compress, "xz"), "bzip2": (bz2.compress, "bz2"), "gzip": (gzip.compress, "gz")}
    pack, ending = packs[program]
    if program == "gzip" and count == 2:
        pytest.skip("no one command for several")
    captures = [tmp_path / "sub" / f"{letter} b.json.{ending}" for letter in "ac"[:count]]
    other, inner = tmp_path / captures[0].name, pack(b"{}") if program == "gzip" else b"{}"
    captures[0].parent.mkdir()
    for path in (*captures, other):
        path.write_bytes(pack(inner))
    refused = look_at(captures[0], tmp_path, "r").refused
    assert refused is not None
    command = (refused.what_to_do.partition(": ")[2] if count == 1
               else between(written(advice_for_all(captures)), "Run ", "   and ingest again"))
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    assert sorted(tmp_path.rglob("*.*")) == sorted([other, *captures, *(path.with_suffix("") for path in captures)])
    assert [path.with_suffix("").read_bytes() for path in captures] == [inner] * count


def test_an_archive_that_is_a_bomb_is_not_unpacked_to_be_listed(tmp_path: Path) -> None:
    member = tarfile.TarInfo("zeros")
    member.size = 1 << 40
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(member.tobuf() + bytes(1 << 16)))
    refused = look_at(tmp_path / "a.tar.gz", tmp_path, "r").refused
    assert refused is not None and "tar -xf" in refused.what_to_do
