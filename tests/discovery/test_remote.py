"""Captures at URLs: read where they lie, with the rows that they have on a disk, and without a word of the credentials."""

from __future__ import annotations

import errno
import gzip
import io
import os
import pickle
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.discovery import profiles, remote
from nsightlens.discovery.files import find, walk
from nsightlens.discovery.remote import RemotePath, path_of
from nsightlens.errors import ReadError, UsageError
from nsightlens.pipeline.ingest import ingest
from nsightlens.readers.kineto import reading
from nsightlens.schema import TABLES
from tests.captures import kineto
from tests.cli.command_line import run
from tests.places import ROOT

pytestmark = pytest.mark.long

RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"
URL = "s3://bucket/simulated_resnet18_ddp"
SECRET = "aVerySecret/Value+9"


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ingest an hour from now: what was written for a test is fresh."""
    import time

    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 3_600_000_000_000)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the files whose content is asked for, as it happens."""
    names: list[str] = []
    real, real_copy = remote._Stream.__init__, remote._copy

    def stream(self: remote._Stream, path: RemotePath) -> None:
        names.append(path.name)
        real(self, path)

    def copy(path: RemotePath, folder: Path) -> Path:
        names.append(path.name)
        return real_copy(path, folder)

    monkeypatch.setattr(remote._Stream, "__init__", stream)
    monkeypatch.setattr(remote, "_copy", copy)
    return names


def _path(text: str) -> RemotePath:
    path = path_of(text)
    assert isinstance(path, RemotePath)
    return path


def _tables(store: Path, where: str) -> dict[str, Any]:
    """Return all tables; paths without `where`, in which they all lie, and without what a copy changes."""
    with nl.open(store) as found:
        tables: dict[str, Any] = {name: found.sql(f"FROM {name} ORDER BY ALL") for name in TABLES}
        assert found.sql("SELECT DISTINCT starts_with(path, ?) AS known FROM files", [where]).to_pylist() == [{"known": True}]
    for name in ("files", "diagnostics"):
        rows = [{key: str(value).replace(where, "") for key, value in row.items() if key != "modified_ns"}
                for row in tables[name].to_pylist()]
        tables[name] = sorted(rows, key=str)
    return tables


def test_a_url_has_the_face_of_a_path() -> None:
    path = _path("S3://bucket/run/rank0.pt.trace.json.gz")
    assert str(path) == os.fspath(path) == "s3://bucket/run/rank0.pt.trace.json.gz"
    assert str(path.parent) == "s3://bucket/run" and path.name == "rank0.pt.trace.json.gz"
    assert str(path.with_name("rank0.run.json")) == "s3://bucket/run/rank0.run.json"
    assert str(path.relative_to(path.parent)) == "rank0.pt.trace.json.gz"
    assert pickle.loads(pickle.dumps(path)) == path == path.resolve() == path.absolute() == path_of(path)
    assert type(pickle.loads(pickle.dumps(path))) is RemotePath


def test_what_is_no_url_stays_a_path() -> None:
    for text in ("runs/base", "/runs/s3:/x", "C:/runs", "s3:/bucket"):
        assert not isinstance(path_of(text), RemotePath) and path_of(text) == Path(text)
    assert path_of("file:///runs/base") == Path("/runs/base")


@pytest.mark.parametrize("url", [
    f"s3://AKIAMADEUP:{SECRET}@bucket/run", "s3://aVerySecret@bucket/run", f"s3://bucket/run?X-Amz-Signature={SECRET}",
    f"https://host/run.json?sig={SECRET}", f"s3://key:aVery?Secret{SECRET}", f"abfs://name:{SECRET}@account/run"])
def test_a_url_with_credentials_is_refused_without_naming_them(url: str, tmp_path: Path) -> None:
    for options in (("scan",), ("ingest", "--store", str(tmp_path / "store"))):
        done = run(*options, url)
        assert done.returncode == 2 and "must hold no credentials" in done.stderr
        for part in SECRET.split("/"):
            assert part not in done.stderr + done.stdout
        assert "aVery" not in done.stderr and "AKIA" not in done.stderr
    assert not (tmp_path / "store").exists()


def test_azure_names_the_container_before_the_at_sign() -> None:
    assert str(remote.path_given("abfs://container@account.example/run")) == "abfs://container@account.example/run"


def test_what_a_library_says_of_an_error_is_said_without_secrets() -> None:
    url = f"http://user:{SECRET.replace('/', '')}@host/b?X-Amz-Credential={SECRET}&list-type=2"
    told = f"cannot GET {url}, api_key={SECRET}\nand more"
    with pytest.raises(OSError, match="RuntimeError: cannot GET") as caught, remote.asking(_path("s3://bucket/x")):
        raise RuntimeError(told)
    assert caught.value.filename == "s3://bucket/x" and "\n" not in str(caught.value)
    assert "Secret" not in str(caught.value)


def test_of_a_long_error_the_beginning_is_said() -> None:
    with pytest.raises(OSError, match=r"^.Errno 5. RuntimeError: x{200}: ") as caught, remote.asking(_path("s3://bucket/x")):
        raise RuntimeError("x" * 300)
    assert caught.value.errno == errno.EIO


@pytest.mark.parametrize(("time", "seconds"), [
    (12.5, 12.5), (datetime.fromtimestamp(12.5, UTC), 12.5), ("1970-01-01T00:00:12.500000+00:00", 12.5), ("today", 0), (None, 0)])
def test_a_time_is_said_in_each_way_of_a_filesystem(
    memory: Any, monkeypatch: pytest.MonkeyPatch, time: object, seconds: float,
) -> None:
    monkeypatch.setattr(type(memory), "info", lambda *_, **__: {"type": "file", "size": 3, "LastModified": time})
    status = remote.stat_now(_path("memory://run/file"))
    assert (status.st_size, status.st_mtime_ns, status[stat.ST_MTIME], status.st_mtime) == (
        3, seconds * 10**9, int(seconds), int(seconds))


def test_neither_import_nor_help_needs_fsspec() -> None:
    code = ("import sys, nsightlens, nsightlens.pipeline.ingest\nfrom nsightlens.cli import main\n"
            "sys.argv = ['nsightlens', '--help']\ntry: main()\nexcept SystemExit: pass\n"
            "assert not {'fsspec', 's3fs', 'aiohttp'} & sys.modules.keys()")
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert "pip install 'nsightlens[remote]'" in run("scan", "s3://bucket/run").stderr
    monkeypatch.undo()
    pytest.importorskip("fsspec")
    assert "no package that reads gs:// is installed" in run("scan", "gs://bucket/run").stderr or "gcsfs" in sys.modules
    done = run("scan", "nosuch://bucket/run")
    assert done.returncode == 2 and "no package that reads nosuch://" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_stream_reads_any_bytes_with_few_requests(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytes(range(256)) * 4096
    memory.pipe_file("/run/file", content)
    monkeypatch.setattr(remote, "_FIRST", 1000)
    path = _path("memory://run/file")
    fetched: list[int] = []
    real = remote._Stream._fetch

    def fetch(self: remote._Stream, wanted: int) -> None:
        fetched.append(self._at)
        real(self, wanted)

    monkeypatch.setattr(remote._Stream, "_fetch", fetch)
    with path.open() as file:
        assert file.read() == content and len(fetched) < 12
        file.seek(-10, os.SEEK_END)
        assert file.read(4) == content[-10:-6] and file.tell() == len(content) - 6
        file.seek(3)
        assert file.read(2) == content[3:5] and file.seek(5, os.SEEK_CUR) == 10
        file.seek(len(content) + 5)
        assert file.read(1) == b"" and isinstance(file, io.BufferedReader)
    with path.open(buffering=0) as raw:
        assert isinstance(raw, io.RawIOBase) and raw.read(7) == content[:7]
    with pytest.raises(OSError, match="only read"):
        path.open("wb")


def test_a_folder_is_walked_as_on_a_disk(memory: Any, tmp_path: Path) -> None:
    for name in ("rank10/a.json", "rank2/a.json", ".hidden/a.json", "store/nsightlens.duckdb", "store/x.json", "._x", ".y", "z"):
        memory.pipe_file(f"/run/{name}", b"{}")
        (tmp_path / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / name).write_bytes(b"{}")
    remote.forget()
    remote.list_below(_path("memory://run"))
    here = [path.relative_to(tmp_path / "run").as_posix() for path in walk(tmp_path / "run")]
    assert [str(path).removeprefix("memory://run/") for path in walk(_path("memory://run"))] == here
    remote.forget()
    assert [str(path).removeprefix("memory://run/") for path in walk(_path("memory://run"))] == here, "without the list"


def test_odd_names_are_read_and_found_again(memory: Any, tmp_path: Path) -> None:
    content = kineto(tmp_path / "x.json").read_bytes()
    for name in ("what?.json", "a@b:c.json", "%20 [1]*.json", "größe.json"):
        memory.pipe_file(f"/run/{name}", content)
    for state in ("new", "unchanged"):
        report = ingest(["memory://run"], tmp_path / "store", jobs=1)
        assert ([outcome.state for outcome in report.outcomes], len(report.duplicates)) == ([state], 3)


def test_one_object_is_a_run_directory_too(memory: Any, tmp_path: Path) -> None:
    memory.pipe_file("/job/rank3.json", kineto(tmp_path / "x.json").read_bytes())
    (found,) = find(["memory://job/rank3.json"])
    assert (str(found.path), found.run, found.rank) == ("memory://job/rank3.json", "job", (3, "filename"))
    tables = nl.read("memory://job/rank3.json")
    assert tables["kernels"].num_rows == 1


@pytest.mark.long
def test_nsys_reports_under_gzip_and_reports_that_nsys_must_convert(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    packed = gzip.compress((RUN / "nsys" / "rank0.sqlite").read_bytes())
    memory.pipe_file("/packed/rank0.sqlite.gz", packed)
    memory.pipe_file("/packed/rank1.nsys-rep", b"NVIDIA Tegra Profiler Report " + bytes(100))
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("ingest", "memory://packed", "--store", tmp_path / "store", "-j", "1")
    assert done.returncode == 0 and "nsys is not on PATH" in done.stderr
    assert "Copy it to where nsys is installed" in done.stderr and "export --type=sqlite" in done.stderr
    (tmp_path / "nsys").write_text('#!/bin/sh\nwhile [ "$#" -gt 2 ]; do shift; done\nexec /bin/cp '
                                   f'{RUN / "nsys" / "rank1.sqlite"} "${{1#--output=}}"\n')
    (tmp_path / "nsys").chmod(0o755)
    assert run("ingest", "memory://packed", "--store", tmp_path / "store", "-j", "1").returncode == 0
    with nl.open(tmp_path / "store") as store:
        found = store.sql("SELECT DISTINCT rank FROM kernels ORDER BY rank").to_pylist()
    assert found == [{"rank": 0}, {"rank": 1}]


def test_journals_beside_a_copy_come_along(memory: Any, tmp_path: Path) -> None:
    memory.pipe_file("/run/a.sqlite", b"content")
    memory.pipe_file("/run/a.sqlite-wal", b"changes")
    with remote.on_disk([_path("memory://run/a.sqlite"), tmp_path]) as (copy, same):
        assert copy.read_bytes() == b"content" and copy.with_name("a.sqlite-wal").read_bytes() == b"changes" and same == tmp_path
        assert copy.parent.stat().st_mode & 0o077 == 0, "others must not read it"
    assert not copy.parent.exists()


def test_a_folder_is_copied_with_its_files(memory: Any) -> None:
    for name in ("a", "b"):
        memory.pipe_file(f"/run/export/{name}.parquet", name.encode())
    with remote.on_disk([_path("memory://run/export")]) as (copy,):
        assert {path.name: path.read_text() for path in copy.iterdir()} == {"a.parquet": "a", "b.parquet": "b"}


def test_an_error_in_a_copy_names_the_url(memory: Any, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("CREATE TABLE notes (text)")
    memory.pipe_file("/run/rank0.sqlite", (tmp_path / "other.sqlite").read_bytes())
    memory.pipe_file("/run/rank1.sqlite", (RUN / "nsys" / "rank1.sqlite").read_bytes()[:5000])
    for found in find(["memory://run"]):
        assert found.refused and found.refused.path == str(found.path) and tempfile.gettempdir() not in str(found.refused)


def test_a_run_at_a_url_has_the_rows_that_it_has_on_a_disk(s3: Any, tmp_path: Path, bundled_store: Path) -> None:
    s3.put(str(RUN), "bucket/simulated_resnet18_ddp", recursive=True)
    done = run("ingest", URL, "--store", tmp_path / "far", "-j", "1")
    assert done.returncode == 0
    assert "2 nsys reports copied to a temporary folder (SQLite reads local files only)" in done.stderr
    far, near = _tables(tmp_path / "far", URL), _tables(bundled_store, str(RUN))
    assert near["kernels"].num_rows > 4000
    assert [name for name in TABLES if far[name] != near[name]] == []
    assert run("scan", URL, "-f", "csv").stdout == run("scan", RUN, "-f", "csv").stdout


@pytest.mark.usefixtures("later")
def test_what_has_not_changed_is_not_asked_for_again(s3: Any, tmp_path: Path, opened: list[str]) -> None:
    for rank in (0, 1):
        s3.put(str(kineto(tmp_path / f"rank{rank}.json", rank=rank, pid=rank + 5)), f"bucket/job/rank{rank}.json")
    s3.put(str(RUN / "torch" / "rank0.run.json"), "bucket/job/rank0.run.json")
    s3.put(str(RUN / "nsys" / "rank0.sqlite"), "bucket/job/rank0.sqlite")
    ingest(["s3://bucket/job"], tmp_path / "store", jobs=1)
    assert {"rank0.json", "rank1.json", "rank0.sqlite"} <= set(opened)
    opened.clear()
    report = ingest(["s3://bucket/job"], tmp_path / "store", jobs=1)
    assert {outcome.state for outcome in report.outcomes} == {"unchanged"}
    assert {name for name in opened if not name.endswith(".run.json")} == set(), "sidecars are small"
    s3.put(str(kineto(tmp_path / "other.json", rank=1, pid=7)), "bucket/job/rank1.json")
    opened.clear()
    ingest(["s3://bucket/job"], tmp_path / "store", jobs=1)
    assert {name for name in opened if not name.endswith(".run.json")} == {"rank1.json"}


def test_a_large_plain_trace_is_streamed_to_helper_processes(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernels = [(f"kernel_{number % 7}", 1000.0 + 20 * number, 10.0) for number in range(3000)]
    s3.put(str(kineto(tmp_path / "job" / "rank0.json", kernels)), "bucket/job/rank0.json")
    expected = nl.read(tmp_path / "job" / "rank0.json")
    monkeypatch.setattr(reading, "PARALLEL_BYTES", 0)
    monkeypatch.setattr(reading, "PIECE_BYTES", 1 << 16)
    found = nl.read("s3://bucket/job/rank0.json")
    assert found["kernels"].num_rows == 3000 and found["kernels"].equals(expected["kernels"])


def test_what_is_recorded_over_while_it_is_read_is_not_mixed(s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_FIRST", 1000)
    s3.pipe_file("bucket/file", b"a" * 10_000)
    with _path("s3://bucket/file").open(buffering=0) as file:
        assert file.read(10) == b"a" * 10
        s3.pipe_file("bucket/file", b"b" * 10_000)
        file.seek(5000)
        with pytest.raises(OSError, match="changed or deleted while it was read"):
            file.read(10)


@pytest.mark.parametrize(("url", "reason", "next_step"), [
    ("s3://no-such-bucket/run", "no such file, folder or bucket", "Check the URL"),
    ("s3://bucket/nothing", "no such", "Check the URL"),
])
def test_what_is_not_there_is_said_in_one_line(s3: Any, tmp_path: Path, url: str, reason: str, next_step: str) -> None:
    for command in (("scan", url), ("ingest", url, "--store", tmp_path / "store")):
        done = run(*command)
        assert done.returncode == 1 and done.stderr.startswith(f"nsightlens: {url}: {reason}") and next_step in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "store").exists()


def test_without_an_answer_the_endpoint_is_named(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(type(s3), "retries", 1)
    type(s3).clear_instance_cache()
    done = run("scan", "s3://bucket/run")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "s3://bucket/run: no answer from its server. Check the network" in done.stderr and "made-up" not in done.stderr


@pytest.mark.parametrize(("error", "said"), [
    (PermissionError("Access Denied"), "access denied. Give credentials"),
    (type("NoCredentialsError", (Exception,), {})("Unable to locate"), "there are no credentials for it. Give credentials"),
    (type("HfHubHTTPError", (OSError,), {})("401 for url: https://host/x?token=aVerySecret"), "HfHubHTTPError: 401"),
])
def test_what_is_denied_is_said_in_one_line(memory: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str) -> None:
    def denied(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(type(memory), "find", denied)
    done = run("scan", "memory://run")
    assert done.returncode == 1 and f"memory://run: {said}" in done.stderr and len(done.stderr.splitlines()) == 1
    assert "aVerySecret" not in done.stderr


@pytest.mark.parametrize(
    "name", ["rank0.json", "rank0.json.gz", "rank0.csv", "rank0.ncu-rep", "rank0.sqlite", "rank0.steps.json"])
def test_a_network_that_goes_midway_costs_the_capture_and_nothing_else(
    memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str,
) -> None:
    source = {"rank0.json.gz": RUN / "torch" / "rank0.pt.trace.json.gz", "rank0.csv": RUN / "ncu" / "rank0.details.csv",
              "rank0.ncu-rep": ROOT / "fixtures" / "simulated_ncu_report" / "rank0.ncu-rep",
              "rank0.sqlite": RUN / "nsys" / "rank0.sqlite",
              "rank0.steps.json": ROOT / "fixtures" / "resnet18_cpu" / "plain" / "rank0000.steps.json"}.get(name)
    source = source or kineto(tmp_path / "x.json", [("a", 1e3 * number, 1.0) for number in range(2000)])
    memory.pipe_file(f"/run/{name}", source.read_bytes())
    memory.pipe_file("/run/whole/rank1.json", kineto(tmp_path / "rank1.json", rank=1, pid=5).read_bytes())
    real, real_get = remote._Stream._fetch, type(memory).get_file
    state = {"known": 0}

    def fetch(self: remote._Stream, wanted: int) -> None:
        if self._path.name == name and state["known"]:
            with remote.asking(self._path):
                raise ConnectionResetError(errno.ECONNRESET, "connection reset")
        real(self, wanted)

    def get(self: Any, source: str, target: str, **options: Any) -> None:
        if source.endswith(name) and state["known"]:
            Path(target).write_bytes(b"half")
            raise ConnectionResetError(errno.ECONNRESET, "connection reset")
        real_get(self, source, target, **options)

    def group(*arguments: Any) -> Any:
        state["known"] = 1
        return profiles.group(*arguments)

    monkeypatch.setattr("nsightlens.pipeline.ingest.group", group)
    monkeypatch.setattr(remote._Stream, "_fetch", fetch)
    monkeypatch.setattr(type(memory), "get_file", get)
    done = run("ingest", "memory://run", "--store", tmp_path / "store", "-j", "1")
    assert done.returncode == 0
    (line,) = [line for line in done.stderr.splitlines() if "refused  " in line]
    assert name in line and "no answer from its server" in line, line
    with nl.open(tmp_path / "store") as store:
        assert store.sql("SELECT DISTINCT rank FROM processes").to_pylist() == [{"rank": 1}]
    assert not list(Path(tempfile.gettempdir()).glob("nsightlens-*/rank0.sqlite"))


def test_credentials_are_in_no_store(s3: Any, tmp_path: Path) -> None:
    s3.put(str(RUN / "torch" / "rank0.pt.trace.json.gz"), "bucket/job/rank0.json.gz")
    done = run("ingest", "s3://bucket/job", "--store", tmp_path / "store", "-j", "1")
    assert done.returncode == 0 and "made-up" not in done.stderr
    for file in [file for file in (tmp_path / "store").rglob("*") if file.is_file()]:
        content = file.read_bytes()
        assert b"made-up-id" not in content and b"made-up-secret" not in content


@pytest.mark.long
def test_worker_processes_read_urls_themselves(s3: Any, tmp_path: Path) -> None:
    s3.put(str(RUN), "bucket/simulated_resnet18_ddp", recursive=True)
    report = ingest([URL], tmp_path / "store", jobs=2)
    assert [outcome.state for outcome in report.outcomes] == ["new"] * 5


def test_an_execution_moved_to_a_url_keeps_its_rows(memory: Any, tmp_path: Path) -> None:
    local = kineto(tmp_path / "job" / "rank0.json", rank=0)
    ingest([local.parent], tmp_path / "store", jobs=1)
    memory.pipe_file("/archive/job/rank0.json", local.read_bytes())
    shutil.rmtree(local.parent)
    report = ingest(["memory://archive/job"], tmp_path / "store", jobs=1)
    assert [outcome.state for outcome in report.outcomes] == ["unchanged"]
    with pytest.raises(ReadError, match=r"elsewhere: no such file or folder\. Check the URL"):
        remote.list_below(_path("memory://elsewhere"))
    with pytest.raises(UsageError, match="no such file or directory"):
        find([tmp_path / "job"])
