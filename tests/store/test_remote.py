"""Stores at URLs: parts and catalog lie there, a commit is one request, and of two writers one wins."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

import nsightlens as nl
from nsightlens.discovery.remote import RemotePath, path_of
from nsightlens.errors import StoreError, UsageError
from nsightlens.pipeline.ingest import ingest
from nsightlens.pipeline.refresh import refresh
from nsightlens.store import remote
from nsightlens.store.store import Store
from tests.captures import kineto
from tests.cli.command_line import run
from tests.places import ROOT

pytestmark = pytest.mark.long

RUN = ROOT / "fixtures" / "simulated_resnet18_ddp"
URL = "memory://store"
NAMES = "SELECT name FROM kernels ORDER BY ALL"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return kineto(tmp_path / "job" / "rank0.json", [("first", 1000.0, 10.0)], rank=0).parent


def _store(text: str = URL) -> RemotePath:
    path = path_of(text)
    assert isinstance(path, RemotePath)
    return path


def _names(store: str | Path = URL) -> list[str]:
    with nl.open(store) as opened:
        return [row["name"] for row in opened.sql(NAMES).to_pylist()]


def _objects(memory: Any) -> set[str]:
    return {name.removeprefix("/store/") for name in memory.find("/store")}


def _parts(memory: Any) -> set[str]:
    return {name for name in _objects(memory) if name.startswith("parts/")}


def _forget_cache(tmp_path: Path) -> None:
    """Be another machine."""
    shutil.rmtree(tmp_path / "cache" / "nsightlens" / "stores")


def test_a_store_at_a_url_holds_parts_one_catalog_and_its_commits(memory: Any, job: Path, tmp_path: Path) -> None:
    report = ingest([job], URL, jobs=1)
    assert str(report.store) == URL and _names() == ["first"]
    with nl.open(URL) as store:
        named = {row["path"] for row in store.sql("SELECT path FROM _parts").to_pylist()}
    assert named and _parts(memory) == named
    assert {name.partition("/")[0] for name in _objects(memory)} == {"parts", "catalogs", "nsightlens-commits"}
    assert not list((tmp_path / "cache").rglob("*.parquet")), "no part stays here"
    before = _objects(memory)
    assert [outcome.state for outcome in ingest([job], URL, jobs=1).outcomes] == ["unchanged"]
    assert _objects(memory) == before, "nothing new, no commit"


def test_another_machine_fetches_the_catalog_and_goes_on(memory: Any, job: Path, tmp_path: Path) -> None:
    ingest([job], URL, jobs=1)
    _forget_cache(tmp_path)
    assert _names() == ["first"]
    _forget_cache(tmp_path)
    kineto(job / "rank1.json", [("second", 1000.0, 10.0)], rank=1, pid=5)
    report = ingest([job], URL, jobs=1)
    assert [outcome.state for outcome in report.outcomes] == ["unchanged", "new"] and _names() == ["first", "second"]
    catalogs = [name for name in _objects(memory) if name.startswith("catalogs/")]
    assert len(catalogs) == 1 and len(list((tmp_path / "cache").rglob("catalogs/*/nsightlens.duckdb"))) <= 2


@pytest.mark.long
def test_parts_of_a_capture_recorded_over_go(memory: Any, job: Path) -> None:
    ingest([job], URL, jobs=1)
    before = _parts(memory)
    kineto(job / "rank0.json", [("other", 1000.0, 10.0)], rank=0)
    ingest([job], URL, jobs=1)
    assert _names() == ["other"] and not before & _parts(memory) and _parts(memory)


def test_open_prints_a_catalog_that_plain_duckdb_reads(memory: Any, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest([job], URL, jobs=1)
    done = run("open", URL)
    assert done.returncode == 0 and "1 kernel " in done.stderr
    with duckdb.connect(done.stdout.strip(), read_only=True) as connection:
        assert connection.execute(NAMES).fetchall() == [("first",)]
    monkeypatch.setenv("NSIGHTLENS_STORE", URL)
    assert run("sql", NAMES, "-f", "csv").stdout == "name\nfirst\n"
    assert run("open").stdout == done.stdout


@pytest.mark.long
def test_a_copy_on_a_disk_is_a_store_once_its_catalog_has_its_name(memory: Any, job: Path, tmp_path: Path) -> None:
    ingest([job], URL, jobs=1)
    memory.get("/store", str(tmp_path / "copy"), recursive=True)
    (catalog,) = (tmp_path / "copy" / "catalogs").iterdir()
    catalog.rename(tmp_path / "copy" / "nsightlens.duckdb")
    assert _names(tmp_path / "copy") == ["first"]
    kineto(job / "rank1.json", [("second", 1000.0, 10.0)], rank=1, pid=5)
    ingest([job], tmp_path / "copy", jobs=1)
    assert _names(tmp_path / "copy") == ["first", "second"] and _names() == ["first"]


@pytest.mark.long
def test_a_store_in_a_run_directory_is_no_capture(memory: Any, job: Path) -> None:
    memory.pipe_file("/job/rank0.json", (job / "rank0.json").read_bytes())
    for _ in range(2):
        report = ingest(["memory://job"], "memory://job/store", jobs=1)
        assert report.files_seen == 1


def test_of_two_writers_one_wins_and_the_other_says_so(
    memory: Any, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    ingest([job], URL, jobs=1)
    late = kineto(tmp_path / "late" / "rank1.json", [("second", 1000.0, 10.0)], rank=1, pid=5).parent
    early = kineto(tmp_path / "early" / "rank2.json", [("third", 1000.0, 10.0)], rank=2, pid=6).parent
    real = remote.Far.upload

    def upload(self: remote.Far, *arguments: Any) -> None:
        monkeypatch.setattr(remote.Far, "upload", real)
        with monkeypatch.context() as other:
            other.setenv("XDG_CACHE_HOME", str(tmp_path / "of-another-machine"))
            ingest([early], URL, jobs=1)
        real(self, *arguments)

    monkeypatch.setattr(remote.Far, "upload", upload)
    with pytest.raises(StoreError, match=r"memory://store: another ingest .* nothing was changed\. Run it again"):
        ingest([late], URL, jobs=1)
    assert _names() == ["first", "third"]
    with nl.open(URL) as store:
        assert _parts(memory) == {row["path"] for row in store.sql("SELECT path FROM _parts").to_pylist()}
    ingest([late], URL, jobs=1)
    assert _names() == ["first", "second", "third"]


@pytest.mark.parametrize("arrives", [True, pytest.param(False, marks=pytest.mark.long)])
def test_an_answer_that_is_lost_is_asked_for(
    memory: Any, job: Path, monkeypatch: pytest.MonkeyPatch, arrives: bool,
) -> None:
    ingest([job], URL, jobs=1)
    before = _objects(memory)
    kineto(job / "rank1.json", [("second", 1000.0, 10.0)], rank=1, pid=5)
    real = type(memory).pipe_file

    def pipe(self: Any, path: str, value: bytes, **options: Any) -> None:
        if arrives:
            real(self, path, value, **options)
        raise ConnectionResetError("reset")

    monkeypatch.setattr(type(memory), "pipe_file", pipe)
    if arrives:
        ingest([job], URL, jobs=1)
        assert _names() == ["first", "second"]
        return
    with pytest.raises(StoreError, match="it cannot be written, and is as it was before"):
        ingest([job], URL, jobs=1)
    assert _names() == ["first"] and _objects(memory) == before


@pytest.mark.long
def test_what_may_be_committed_is_not_taken_away(memory: Any, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest([job], URL, jobs=1)
    kineto(job / "rank1.json", [("second", 1000.0, 10.0)], rank=1, pid=5)
    real, real_newest = type(memory).pipe_file, remote.newest

    def gone(*_: Any) -> Any:
        raise StoreError("memory://store: no answer")

    def pipe(self: Any, path: str, value: bytes, **options: Any) -> None:
        real(self, path, value, **options)
        monkeypatch.setattr(remote, "newest", gone)
        raise ConnectionResetError("reset")

    monkeypatch.setattr(type(memory), "pipe_file", pipe)
    with pytest.raises(StoreError, match="no answer"):
        ingest([job], URL, jobs=1)
    monkeypatch.setattr(remote, "newest", real_newest)
    assert _names() == ["first", "second"]
    with nl.open(URL) as store:
        assert _parts(memory) >= {row["path"] for row in store.sql("SELECT path FROM _parts").to_pylist()}


@pytest.mark.parametrize("at", [3, pytest.param(10**6, marks=pytest.mark.long)], ids=["a part", "the catalog"])
def test_an_upload_that_breaks_off_leaves_the_old_store(
    memory: Any, job: Path, monkeypatch: pytest.MonkeyPatch, at: int,
) -> None:
    ingest([job], URL, jobs=1)
    before = _objects(memory)
    kineto(job / "rank1.json", [("second", 1000.0, 10.0)], rank=1, pid=5)
    put: list[str] = []
    real = type(memory).put_file

    def put_file(self: Any, source: str, target: str, **options: Any) -> None:
        put.append(target)
        if len(put) == at or target.endswith(".duckdb"):
            raise ConnectionResetError("reset")
        real(self, source, target, **options)

    monkeypatch.setattr(type(memory), "put_file", put_file)
    done = run("ingest", job, "--store", URL, "-j", "1")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"nsightlens: {URL}: it cannot be written, and is as it was before (no answer")
    assert _names() == ["first"] and _objects(memory) == before
    monkeypatch.undo()


@pytest.mark.long
def test_what_a_killed_writer_left_goes_a_day_later(memory: Any, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest([job], URL, jobs=1)
    left = [f"parts/kernels/run=x/kineto-{'ab' * 6}.{'cd' * 4}.parquet", f"catalogs/{'ab' * 8}.duckdb"]
    for name in [*left, "parts/kernels/run=x/theirs.parquet", "catalogs/theirs.duckdb"]:
        memory.pipe_file(f"/store/{name}", b"left")
    named = [*left, "parts/kernels/run=x/theirs.parquet", "../job/rank0.json", "theirs"]
    memory.pipe_file("/store/nsightlens-commits/abc.journal", json.dumps(named).encode())
    kineto(job / "rank1.json", rank=1, pid=5)
    ingest([job], URL, jobs=1)
    assert _objects(memory).issuperset(left), "its writer may be about to commit"
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 90_000)
    kineto(job / "rank2.json", rank=2, pid=6)
    ingest([job], URL, jobs=1)
    assert "nsightlens-commits/abc.journal" in _objects(memory), "it is the clock of this machine that runs ahead"
    memory.store["/store/nsightlens-commits/abc.journal"].created -= timedelta(hours=25)
    kineto(job / "rank3.json", rank=3, pid=7)
    ingest([job], URL, jobs=1)
    assert not _objects(memory) & {*left, "nsightlens-commits/abc.journal"}
    assert {"parts/kernels/run=x/theirs.parquet", "catalogs/theirs.duckdb"} <= _objects(memory)
    assert len([name for name in _objects(memory) if name.startswith("catalogs/")]) == 2 and len(_names()) == 4


@pytest.mark.long
def test_a_place_with_something_else_is_no_place_for_a_store(memory: Any, job: Path) -> None:
    memory.pipe_file("/job/rank0.json", (job / "rank0.json").read_bytes())
    with pytest.raises(StoreError, match=r"memory://job: not a store, and not empty.*--store memory://job/nsightlens-store"):
        ingest(["memory://job"], "memory://job", jobs=1)
    assert memory.find("/") == ["/job/rank0.json"]


@pytest.mark.long
def test_a_part_that_is_missing_is_named_and_made_again(memory: Any, job: Path) -> None:
    ingest([job], URL, jobs=1)
    (part,) = (name for name in _parts(memory) if name.startswith("parts/kernels/"))
    memory.rm_file(f"/store/{part}")
    other = kineto(job.parent / "other" / "rank1.json", rank=1, pid=5).parent
    report = ingest([other], URL, jobs=1)
    assert [str(broken) for broken in report.broken_parts] == [f"{URL}/{part}"]
    assert ingest([job], URL, jobs=1).broken_parts == []
    assert any(name.startswith("parts/kernels/run=job/") for name in _parts(memory))


def test_a_catalog_that_is_replaced_while_it_is_fetched_is_fetched_anew(
    memory: Any, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    ingest([job], URL, jobs=1)
    _forget_cache(tmp_path)
    real = type(memory).get_file

    def get_file(self: Any, *arguments: Any, **options: Any) -> None:
        monkeypatch.setattr(type(memory), "get_file", real)
        with monkeypatch.context() as other:
            other.setenv("XDG_CACHE_HOME", str(tmp_path / "of-another-machine"))
            kineto(job / "rank1.json", [("second", 1000.0, 10.0)], rank=1, pid=5)
            ingest([job], URL, jobs=1)
        real(self, *arguments, **options)

    monkeypatch.setattr(type(memory), "get_file", get_file)
    assert _names() == ["first", "second"]


@pytest.mark.long
def test_compact_merges_parts_there(memory: Any, job: Path) -> None:
    for rank in range(3):
        kineto(job / f"rank{rank}.json", [(f"kernel{rank}", 1000.0, 10.0)], rank=rank, pid=5 + rank)
        ingest([job], URL, jobs=1)
    before = _parts(memory)
    assert run("compact", "--store", URL).returncode == 0
    assert _names() == ["kernel0", "kernel1", "kernel2"] and 0 < len(_parts(memory)) <= len(before) // 3
    kineto(job / "rank1.json", [("other", 1000.0, 10.0)], rank=1, pid=6)
    ingest([job], URL, jobs=1)  # the other rows of its parts stay
    assert _names() == ["kernel0", "kernel2", "other"]
    with nl.open(URL) as store:
        named = {row["path"] for row in store.sql("SELECT path FROM _parts").to_pylist()}
    assert _parts(memory) == named


@pytest.mark.long
def test_answers_are_kept_for_each_profile(memory: Any, job: Path) -> None:
    for rank in range(2):
        kineto(job / f"rank{rank}.json", [("first", 1000.0, 10.0)], rank=rank, pid=5 + rank)
        ingest([job], URL, jobs=1, answers=True)
        with nl.open(URL) as store:
            kept = store.kept("busy_time")
            assert kept is not None and kept[0] == rank + 1


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"catalog": "../../x"}', b'{"catalog": 3}'])
def test_a_damaged_commit_is_named(memory: Any, job: Path, content: bytes) -> None:
    ingest([job], URL, jobs=1)
    memory.pipe_file("/store/nsightlens-commits/0000000009.json", content)
    done = run("open", URL)
    assert done.returncode == 1 and "nsightlens-commits: its last commit is damaged" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_where_there_is_no_store_every_command_says_so(memory: Any, tmp_path: Path) -> None:
    for command in (["open", "memory://none"], ["summary", "--store", "memory://none"], ["refresh", "--store", "memory://none"]):
        done = run(*command)
        assert done.returncode == 1 and done.stderr.startswith("nsightlens: memory://none: no store here. Make one with:")
        assert len(done.stderr.splitlines()) == 1
    done = run("open", "s3://key:aVerySecret@bucket/store")
    assert done.returncode == 2 and "aVerySecret" not in done.stderr


@pytest.mark.long
def test_refresh_and_an_older_schema(memory: Any, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest([job], URL, jobs=1)
    assert refresh(URL, jobs=1).report.outcomes == []
    with nl.open(URL) as store:
        catalog = store.catalog
    with duckdb.connect(str(catalog)) as connection:
        connection.execute("UPDATE _store SET schema_version = schema_version - 1")
    memory.put_file(str(catalog), f"/store/catalogs/{catalog.parent.name}.duckdb")
    _forget_cache(tmp_path)
    with Store(URL) as older, pytest.raises(StoreError, match="refresh --store memory://store"):
        older.view("kernel_summary")
    before = _parts(memory)
    assert refresh(URL, jobs=1).rebuilt_from is not None
    assert _names() == ["first"] and not before & _parts(memory)


def test_a_cache_that_cannot_be_written_is_named(
    memory: Any, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(StoreError, match="Set XDG_CACHE_HOME to one you can write"):
        ingest([job], URL, jobs=1)


def test_hta_wants_files(memory: Any, job: Path, tmp_path: Path) -> None:
    memory.pipe_file("/job/rank0.json", (job / "rank0.json").read_bytes())
    ingest(["memory://job"], URL, jobs=1)
    done = run("hta", "job", "--print", "--store", URL)
    assert done.returncode == 1 and "memory://job/rank0.json: HTA reads local files only" in done.stderr


# -- on an S3 server ---------------------------------------------------------------------------------------------


def test_s3_gives_the_rows_and_keeps_no_credentials(s3: Any, tmp_path: Path, bundled_store: Path) -> None:
    for name in ("rank0.pt.trace.json.gz", "rank0.run.json"):
        s3.put(str(RUN / "torch" / name), f"bucket/simulated_resnet18_ddp/torch/{name}")
    done = run("ingest", "s3://bucket/simulated_resnet18_ddp", "--store", "s3://bucket/store", "-j", "1")
    assert done.returncode == 0 and "next: nsightlens summary --store s3://bucket/store" in done.stderr
    query = "SELECT name, rank, start_ns, duration_ns FROM kernels WHERE tool = 'kineto' AND rank = 0 ORDER BY ALL"
    with nl.open("s3://bucket/store") as far, nl.open(bundled_store) as near:
        assert far.sql(query).num_rows > 1000 and far.sql(query).equals(near.sql(query))
    contents = [s3.cat_file(name) for name in s3.find("bucket/store")]
    contents += [file.read_bytes() for file in (tmp_path / "cache").rglob("*") if file.is_file()]
    assert len(contents) > 15 and not [one for one in contents if b"made-up-id" in one or b"made-up-secret" in one]


def test_s3_refuses_the_second_of_two_commits(s3: Any, job: Path, tmp_path: Path) -> None:
    ingest([job], "s3://bucket/store", jobs=1)
    far = remote.Far(_store("s3://bucket/store"))
    (tmp_path / "catalog").write_bytes(b"")
    with pytest.raises(StoreError, match="another ingest into this store ended meanwhile"):
        far.commit(tmp_path / "catalog")  # one that began before there was a store
    (commit,) = s3.find("bucket/store/nsightlens-commits")
    (catalog,) = s3.find("bucket/store/catalogs")
    assert json.loads(s3.cat_file(commit))["catalog"] == Path(catalog).stem


@pytest.mark.long
def test_s3_serves_parts_that_are_not_in_the_catalog(s3: Any, job: Path, tmp_path: Path) -> None:
    store = "s3://bucket/of-parts"
    ingest([job], store, jobs=1, materialise=False)
    s3.put(str(next(iter(tmp_path.rglob("*.json")))), "bucket/other.json")
    _forget_cache(tmp_path)
    with nl.open(store) as opened:
        assert opened.sql(NAMES).to_pylist() == [{"name": "first"}]
        assert opened.view("kernel_summary").num_rows == 1
        refused: list[Callable[[], object]] = [
            lambda: opened.sql("FROM read_text('s3://bucket/other.json')"), lambda: opened.sql("FROM read_text('/etc/passwd')"),
            lambda: opened.sql("COPY (SELECT 1) TO 's3://bucket/of-parts/parts/x.csv'")]
        for ask in refused:
            with pytest.raises(UsageError):
                ask()
        (part,) = (name for name in s3.find("bucket/of-parts/parts/kernels"))
        s3.rm_file(part)
    missing = rf"s3://{part}: this part of the store is missing\. Make it again"
    with nl.open(store) as opened, pytest.raises(StoreError, match=missing):
        opened.sql(NAMES)


def test_s3_that_does_not_answer_or_has_no_such_bucket(s3: Any, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("ingest", job, "--store", "s3://no-such-bucket/store", "-j", "1")
    assert done.returncode == 1
    assert "s3://no-such-bucket/store: it cannot be written" in done.stderr and "no such file, folder or bucket" in done.stderr
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(type(s3), "retries", 1)
    type(s3).clear_instance_cache()
    for command in (["summary", "--store", "s3://bucket/store"], ["ingest", str(job), "--store", "s3://bucket/store"]):
        done = run(*command)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
        assert "s3://bucket/store: no answer from its server. Check the network" in done.stderr


def test_a_run_goes_from_a_store_at_s3(s3: Any, job: Path, tmp_path: Path) -> None:
    """The row of the run and its parts; the other run stays, and a removal of what is not there changes nothing."""
    store = "s3://bucket/store"
    other = kineto(tmp_path / "other" / "rank0.json", [("second", 60e6, 10.0)], rank=0, pid=9).parent
    nl.ingest(job, store=store, run="before", jobs=1).close()
    nl.ingest(other, store=store, run="after", jobs=1).close()
    assert sorted(_names(store)) == ["first", "second"]
    done = run("remove", "--run", "before", "--store", store)
    assert done.returncode == 0, done.stderr
    assert _names(store) == ["second"]
    with nl.open(store) as opened:
        assert {row["run"] for row in opened.sql("SELECT run FROM profiles").to_pylist()} == {"after"}
    held = set(s3.find("bucket/store"))
    assert run("remove", "--run", "before", "--store", store).returncode == 2
    assert set(s3.find("bucket/store")) == held and _names(store) == ["second"]
    nl.ingest(job, store=store, run="before", jobs=1).close()
    assert sorted(_names(store)) == ["first", "second"]
