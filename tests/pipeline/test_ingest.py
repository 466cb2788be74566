"""The road from a run directory to the store: what is read, what is read again, what is never counted twice."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest

import nsightlens as nl
from nsightlens.errors import ReadError, StoreError, UsageError
from nsightlens.pipeline.ingest import IngestReport, ingest
from tests.captures import BASE_NS, GEMM, kineto, ncu


def _states(report: IngestReport) -> dict[str, str]:
    return {", ".join(p.name for p in o.paths): o.state for o in report.outcomes}


def _rows(store: Path, query: str) -> list[dict[str, Any]]:
    with nl.open(store) as opened:
        rows: list[dict[str, Any]] = opened.sql(query).to_pylist()
        return rows


def _codes(store: Path) -> set[str]:
    return {row["code"] for row in _rows(store, "SELECT code FROM diagnostics")}


@pytest.fixture()
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture()
def run(tmp_path: Path) -> Path:
    return tmp_path / "base"


def test_ranks_names_and_absolute_time(run: Path, store: Path) -> None:
    for rank in (10, 9):
        kineto(run / f"torch/rank{rank}.json", [(GEMM, 1000.125, 10.5), ("relu", 2000.0, 1.0)], rank=rank)
    ingest([run], store)
    rows = _rows(store, "SELECT run, rank, name, origin_epoch_ns + start_ns AS began, duration_ns, launch_index, nth, "
                        "queue_delay_ns, kernel_key, family, gpu "
                        "FROM kernels JOIN profiles USING (profile_id, run) ORDER BY rank, began")
    assert [(r["run"], r["rank"], r["name"], r["began"] - BASE_NS, r["duration_ns"], r["launch_index"], r["queue_delay_ns"])
            for r in rows] == [("base", rank, *rest) for rank in (9, 10) for rest in (
                (GEMM, 1000125, 10500, 0, 3000), ("relu", 2000000, 1000, 1, 3000))]
    assert {(r["family"], r["gpu"]) for r in rows if r["name"] == GEMM} == {("gemm", "NVIDIA A100")}
    assert [o.name for o in Path(store / "parts" / "kernels").iterdir()] == ["run=base"]


def test_a_second_ingest_reads_nothing_and_writes_nothing(run: Path, store: Path) -> None:
    kineto(run / "a.json", rank=0)
    assert _states(ingest([run], store)) == {"a.json": "new"}
    before = {p: p.stat().st_mtime_ns for p in store.rglob("*") if p.suffix in {".duckdb", ".parquet"}}
    assert _states(ingest([run], store)) == {"a.json": "unchanged"}
    assert before == {p: p.stat().st_mtime_ns for p in store.rglob("*") if p.suffix in {".duckdb", ".parquet"}}


def test_a_process_one_of_whose_windows_changed_is_read_again(run: Path, store: Path) -> None:
    """Its other window is as it was, and names it."""
    kineto(run / "a.json", [(GEMM, 1000.0, 1.0)] * 3, rank=0, host="h")
    kineto(run / "b.json", [("relu", 9000.0, 1.0)] * 3, rank=0, host="h")
    ingest([run], store, jobs=1)
    kineto(run / "b.json", [("tanh", 9000.0, 1.0)] * 3, rank=0, host="h")
    assert set(_states(ingest([run], store, jobs=1)).values()) == {"replaced"}
    assert [row["name"] for row in _rows(store, "SELECT name FROM kernels ORDER BY start_ns")] == [GEMM] * 3 + ["tanh"] * 3


def test_changed_content_replaces_its_own_profile_only(run: Path, store: Path) -> None:
    kineto(run / "a.json", rank=0)
    kineto(run / "b.json", rank=1)
    ingest([run], store)
    ids = {r["rank"]: r["kernel_id"] for r in _rows(store, "SELECT rank, kernel_id FROM kernels")}
    kineto(run / "a.json", [("relu", 5.0, 1.0), ("relu", 9.0, 1.0)], rank=0)
    assert _states(ingest([run], store)) == {"a.json": "replaced", "b.json": "unchanged"}
    rows = _rows(store, "SELECT rank, name, kernel_id FROM kernels ORDER BY rank, launch_index")
    assert [(r["rank"], r["name"]) for r in rows] == [(0, "relu"), (0, "relu"), (1, GEMM)]
    assert rows[2]["kernel_id"] == ids[1]
    assert len(list((store / "parts" / "kernels").rglob("*.parquet"))) == 2


def test_a_page_that_comes_later_joins_its_launch(run: Path, store: Path) -> None:
    ncu(run / "k.csv", {"gpu__time_duration.sum": ("us", "7.17"), "dram__bytes.sum": ("byte", "100")})
    ingest([run], store)
    before = _rows(store, "SELECT kernel_id, profile_id FROM kernels")
    late = ncu(run / "k2.csv", {"dram__bytes.sum": ("byte", "100"), "sm__cycles_elapsed.max": ("cycle", "9")})
    ingest([late], store)
    rows = _rows(store, "SELECT kernel_id, profile_id, duration_ns, metrics FROM kernels")
    assert [{k: r[k] for k in ("kernel_id", "profile_id")} for r in rows] == before
    assert dict(rows[0]["metrics"]) == {"gpu__time_duration.sum": 7170.0, "dram__bytes.sum": 100.0, "sm__cycles_elapsed.max": 9.0}
    assert rows[0]["duration_ns"] == 7170
    assert "files_merged" in _codes(store)
    assert _states(ingest([run], store)) == {"k2.csv, k.csv": "unchanged"}


def test_contradicting_pages_stay_two_reports(run: Path, store: Path) -> None:
    ncu(run / "a.csv", {"gpu__time_duration.sum": ("ns", "100")})
    ncu(run / "b.csv", {"gpu__time_duration.sum": ("ns", "200")})
    ingest([run], store)
    assert [r["duration_ns"] for r in _rows(store, "SELECT duration_ns FROM kernels ORDER BY 1")] == [100, 200]
    assert "same_launches_differ" in _codes(store)


def test_a_trace_beside_its_gz_counts_once(run: Path, store: Path) -> None:
    path = kineto(run / "a.json", rank=0)
    (run / "a.json.gz").write_bytes(gzip.compress(path.read_bytes()))
    shutil.copy(path, run / "copy.json")
    report = ingest([run], store)
    assert len(report.duplicates) == 2
    assert _rows(store, "SELECT count(*) AS n FROM kernels") == [{"n": 1}]
    assert {r["outcome"] for r in _rows(store, "SELECT outcome FROM files")} == {"read", "duplicate"}


def test_windows_of_one_process_share_one_origin(run: Path, store: Path) -> None:
    kineto(run / "n1_77.1750000001000.pt.trace.json", [(GEMM, 5_000_000.0, 10.0)])
    kineto(run / "n1_77.1750000002000.pt.trace.json", [(GEMM, 9_500_000.0, 20.0)])
    ingest([run], store)
    rows = _rows(store, "SELECT process_id, window_index, origin_epoch_ns + start_ns AS began, nth FROM kernels "
                        "JOIN profiles USING (profile_id) ORDER BY began")
    assert [(r["window_index"], r["began"] - BASE_NS, r["nth"]) for r in rows] == [(0, 5_000_000_000, 0), (1, 9_500_000_000, 1)]
    assert len({r["process_id"] for r in rows}) == 1
    assert [(r["span_ns"], r["idle_ns"]) for r in nl.open(store).view("busy_time").to_pylist()] == [(10_000, 0), (20_000, 0)]


def test_one_broken_file_never_stops_the_others(run: Path, store: Path) -> None:
    kineto(run / "good.json", rank=0)
    (run / "empty.json").write_bytes(b"")
    (run / "not.json").write_text('{"hello": 1}')
    (run / "not.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 200)
    (run / "._mac.json").write_bytes(b"\0\5\x16\7\0\2\0\0")
    (run / "notes.txt").write_text("hello")
    (run / "report.nsys-rep").write_bytes(b"NVIDIA Tegra Profiler Report 2025@5@2@266")
    report = ingest([run], store)
    assert {o.state for o in report.outcomes} == {"new", "refused"}
    outcomes = {Path(r["path"]).name: r["outcome"] for r in _rows(store, "SELECT path, outcome FROM files")}
    assert outcomes == {"good.json": "read", "empty.json": "refused", "not.json": "refused", "not.sqlite": "refused",
                        "._mac.json": "ignored", "notes.txt": "ignored", "report.nsys-rep": "refused"}
    assert {"empty_file", "unknown_format", "needs_export"} <= _codes(store)
    needs = next(e for e in report.refused if e.code == "needs_export")
    assert "nsys export --type=sqlite" in str(needs)


def test_a_git_lfs_pointer_is_named_with_the_command_that_fetches_the_file(run: Path, store: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0a' * 32}\nsize 552960\n"
    names = ("report.sqlite", "report.ncu-rep", "trace.json.gz", "weights.bin")
    run.mkdir(exist_ok=True)
    for name in names:
        (run / name).write_text(pointer)
    report = ingest([run], store)
    assert {Path(e.path).name for e in report.refused} == {*names} - {"weights.bin"}
    assert all(e.code == "lfs_pointer" and "git lfs pull" in e.what_to_do for e in report.refused)


def test_a_file_that_breaks_keeps_its_earlier_rows(run: Path, store: Path) -> None:
    path = kineto(run / "a.json", rank=0)
    ingest([run], store)
    path.write_bytes(b"")
    ingest([run], store)
    assert _rows(store, "SELECT count(*) AS n FROM kernels") == [{"n": 1}]
    kineto(path, [("relu", 1.0, 1.0)], rank=0)
    ingest([run], store)
    assert [r["name"] for r in _rows(store, "SELECT name FROM kernels")] == ["relu"]


def test_sidecar_names_run_and_rank(run: Path, store: Path) -> None:
    kineto(run / "rank0001.pt.trace.json", rank=1)
    (run / "rank0001.run.json").write_text(json.dumps({"run": "fused", "rank": 3, "world_size": 8, "host": "n7",
                                                       "execution_id": "e1", "simulated": True}))
    ingest([run], store)
    assert _rows(store, "SELECT run, rank, rank_source, world_size, host FROM processes") == [
        {"run": "fused", "rank": 3, "rank_source": "sidecar", "world_size": 8, "host": "n7"}]
    assert _rows(store, "SELECT execution_id, simulated FROM profiles") == [{"execution_id": "e1", "simulated": True}]
    assert "rank_disagrees" in _codes(store)
    (run / "rank0001.run.json").write_text(json.dumps({"run": "fused", "rank": 4}))
    assert _states(ingest([run], store)) == {"rank0001.pt.trace.json": "replaced"}
    assert _rows(store, "SELECT DISTINCT rank FROM kernels") == [{"rank": 4}]


def test_two_files_that_claim_one_rank_at_one_time_are_told(run: Path, store: Path) -> None:
    kineto(run / "a.json", rank=0, pid=1)
    kineto(run / "b.json", [(GEMM, 1000.0, 30.0)], rank=0, pid=2)
    ingest([run], store)
    assert _rows(store, "SELECT count(*) AS n FROM kernels") == [{"n": 2}]
    assert "rank_conflict" in _codes(store)


def test_two_folders_of_one_name_are_two_runs(tmp_path: Path, store: Path) -> None:
    kineto(tmp_path / "x/base/a.json", rank=0)
    kineto(tmp_path / "y/base/a.json", [("relu", 1.0, 1.0)], rank=0)
    ingest([tmp_path / "x/base"], store)
    ingest([tmp_path / "y/base"], store)
    assert {r["run"] for r in _rows(store, "SELECT run FROM kernels")} == {"base", "y/base"}
    ingest([tmp_path / "y/base"], store)
    assert _rows(store, "SELECT count(*) AS n FROM kernels") == [{"n": 2}]


def test_a_link_to_the_folder_is_the_same_run(run: Path, store: Path, tmp_path: Path) -> None:
    kineto(run / "a.json", rank=0)
    (tmp_path / "link").symlink_to(tmp_path)
    ingest([tmp_path / "link" / "base"], store)
    for root in (tmp_path / "link" / "base", run):
        report = ingest([root], store)
        assert [(o.run, o.state) for o in report.outcomes] == [("base", "unchanged")]
    assert _rows(store, "SELECT count(*) AS n FROM kernels") == [{"n": 1}]


def _many(offset: float = 0.0) -> list[tuple[str, float, float]]:
    return [(GEMM, 1000.0 * i + offset, 10.0) for i in range(1, 60)]


def test_a_trace_saved_again_or_cut_counts_once(run: Path, store: Path) -> None:
    text = kineto(run / "x.json", _many(), rank=0).read_text()
    (run / "y.json").write_text(json.dumps(json.loads(text)))
    (run / "z.json").write_text(text[: len(text) * 2 // 3])
    (run / "two.json.gz").write_bytes(gzip.compress(text[:5000].encode()) + gzip.compress(text[5000:].encode()))
    ingest([run], store)
    assert _rows(store, "SELECT count(*) AS n FROM kernels") == [{"n": 59}]
    assert [Path(r["path"]).name for r in _rows(store, "SELECT path FROM files WHERE outcome = 'read'")] == ["x.json"]


def test_one_pid_on_two_containers_at_one_time_is_two_processes(run: Path, store: Path) -> None:
    kineto(run / "a.json", _many(), host="box")
    kineto(run / "b.json", _many(7.0), host="box")
    ingest([run], store)
    assert _rows(store, "SELECT count(DISTINCT process_id) AS n, max(window_index) AS w FROM kernels") == [{"n": 2, "w": 0}]
    assert "windows_overlap" in _codes(store)
    assert set(_states(ingest([run], store)).values()) == {"unchanged"}


def test_a_file_without_sidecar_belongs_to_the_run_of_the_others(run: Path, store: Path) -> None:
    kineto(run / "rank0.json", rank=0)
    kineto(run / "rank1.json", rank=1)
    (run / "rank0.run.json").write_text('{"run": "job", "rank": 0}')
    ingest([run], store)
    assert _rows(store, "SELECT DISTINCT run FROM kernels") == [{"run": "job"}]


def test_a_moved_folder_keeps_its_run(run: Path, store: Path, tmp_path: Path) -> None:
    kineto(run / "a.json", rank=0)
    ingest([run], store)
    run.rename(tmp_path / "renamed")
    report = ingest([tmp_path / "renamed"], store)
    assert [(o.run, o.state) for o in report.outcomes] == [("base", "unchanged")]
    assert _rows(store, "SELECT count(*) AS n FROM kernels") == [{"n": 1}]
    outcomes = {Path(r["path"]).parent.name: r["outcome"] for r in _rows(store, "SELECT path, outcome FROM files")}
    assert outcomes == {"base": "missing", "renamed": "read"}


def test_a_deleted_page_takes_nothing_with_it(run: Path, store: Path) -> None:
    ncu(run / "k.csv", {"gpu__time_duration.sum": ("ns", "7")})
    ncu(run / "l.csv", {"dram__bytes.sum": ("byte", "100")})
    ingest([run], store)
    (run / "l.csv").unlink()
    ingest([run], store)
    metrics = dict(_rows(store, "SELECT metrics FROM kernels")[0]["metrics"])
    assert metrics == {"gpu__time_duration.sum": 7.0, "dram__bytes.sum": 100.0}
    assert "files_gone" in _codes(store)


def test_lost_parts_are_made_again(run: Path, store: Path) -> None:
    kineto(run / "a.json", rank=0)
    ingest([run], store, materialise=False)
    shutil.rmtree(store / "parts" / "kernels")
    ingest([run], store)
    assert _rows(store, "SELECT count(*) AS n FROM kernels") == [{"n": 1}]


def test_pipes_odd_names_and_bad_sidecars_stop_nothing(run: Path, store: Path) -> None:
    kineto(run / "a.json", rank=0)
    os.mkfifo(run / "pipe.json")
    os.mkfifo(run / "a.run.json")
    shutil.copy(run / "a.json", run / os.fsdecode(b"bad\xff.json"))
    for name, text in (("b", "[" * 200_000), ("c", json.dumps({"run": "x" * 300})), ("d", '{"run": "\\udc80"}')):
        kineto(run / f"{name}.json", [(name, 5.0, 1.0)], rank=0)
        (run / f"{name}.run.json").write_text(text)
    ingest([run], store)
    assert _rows(store, "SELECT count(*) AS n FROM kernels") == [{"n": 4}]
    assert "bad_sidecar" in _codes(store)
    assert any("\\xff" in r["path"] for r in _rows(store, "SELECT path FROM files"))


def test_what_the_wrapper_saw_go_wrong_is_told(run: Path, store: Path) -> None:
    for name, told in (("a", {"exit_code": 137, "problems": ["trace: No space left\ud800 on device", 3]}),
                       ("b", {"exit_code": 0, "problems": []}), ("c", {"exit_code": True, "problems": "none"})):
        kineto(run / f"{name}.json", [(name, 5.0, 1.0)], rank=0)
        (run / f"{name}.run.json").write_text(json.dumps(told))
    ingest([run], store)
    told_of = _rows(store, "SELECT message FROM diagnostics WHERE code = 'capture_problem' ORDER BY message")
    assert [row["message"] for row in told_of] == [
        "the program that was recorded ended with exit code 137: the capture may stop early",
        "the wrapper said: trace: No space left  on device",
    ]


def test_a_folder_without_captures_leaves_no_store(run: Path, store: Path) -> None:
    run.mkdir()
    (run / "notes.txt").write_text("x")
    assert ingest([run], store).outcomes == []
    assert not store.exists()


def test_two_stores_may_be_open_at_once(run: Path, store: Path) -> None:
    kineto(run / "a.json", rank=0)
    first = nl.ingest(run, store=store)
    with nl.open(store) as second:
        assert second.sql("SELECT sum(duration_ns) AS n FROM kernels")["n"].to_pylist() == [10_000]
        kineto(run / "b.json", rank=1)
        nl.ingest(run, store=store).close()
        assert first.sql("SELECT count(*) AS n FROM kernels")["n"].to_pylist() == [1], "readers see the old store"


def test_odd_run_names_survive(run: Path, store: Path) -> None:
    kineto(run / "a.json", rank=0)
    ingest([run], store, run="a b/ü='x'%20")
    assert _rows(store, "SELECT DISTINCT run FROM kernels") == [{"run": "a b/ü='x'%20"}]
    parts = f"{store}/parts/kernels/*/*.parquet"
    again = duckdb.execute("SELECT DISTINCT run FROM read_parquet(?, hive_partitioning = true)", [parts])
    assert again.fetchall() == [("a b/ü='x'%20",)]


def test_the_store_can_be_moved_and_opened_by_plain_duckdb(run: Path, store: Path, tmp_path: Path) -> None:
    kineto(run / "a.json", rank=0)
    ingest([run], store)
    moved = tmp_path / "else" / "where"
    moved.parent.mkdir()
    store.rename(moved)
    connection = duckdb.connect(str(moved / "nsightlens.duckdb"), read_only=True)
    assert connection.sql("SELECT count(*) FROM kernel_summary").fetchall() == [(1,)]
    assert _states(ingest([run], moved)) == {"a.json": "unchanged"}


def test_without_materialising_the_views_read_the_parts(run: Path, store: Path, tmp_path: Path) -> None:
    kineto(run / "a.json", rank=0)
    ingest([run], store, materialise=False)
    kineto(run / "b.json", rank=1)
    ingest([run], store)
    for place in (store, tmp_path / "moved"):
        if place != store:
            store.rename(place)
        with nl.open(place) as opened:
            assert opened.view("kernel_summary")["instances"].to_pylist() == [2]
    size = (tmp_path / "moved" / "nsightlens.duckdb").stat().st_size
    assert duckdb.connect(str(tmp_path / "moved" / "nsightlens.duckdb")).execute(
        "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'kernels'").fetchall() == [(0,)], size


def test_sql_cannot_leave_the_store(run: Path, store: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    kineto(run / "a.json", rank=0)
    ingest([run], store)
    with nl.open(store) as opened:
        for query in (f"FROM read_csv('{secret}')", f"COPY (SELECT 1) TO '{tmp_path}/out.csv'", "DELETE FROM kernels",
                      "DROP VIEW kernel_summary", f"ATTACH '{tmp_path}/x.duckdb'", "INSTALL httpfs", "SET threads = 1",
                      "SET enable_external_access = true", f"SELECT * FROM read_text('{secret}')", "SELECT 1; SELECT 2",
                      f"COPY (SELECT 1) TO '{store}/parts/kernels/x.parquet'"):
            with pytest.raises(UsageError):
                opened.sql(query)
        opened.allow_files()
        assert opened.sql(f"FROM read_csv('{secret}')").num_rows == 1
    assert not (tmp_path / "out.csv").exists()


def test_any_executor_reads(run: Path, store: Path) -> None:
    for rank in range(3):
        kineto(run / f"rank{rank}.json", rank=rank)
    with ThreadPoolExecutor(2) as pool:
        report = ingest([run], store, executor=pool)
    assert set(_states(report).values()) == {"new"}
    assert _rows(store, "SELECT count(*) AS n FROM kernels") == [{"n": 3}]


def test_a_script_without_a_main_guard_may_call_us(run: Path, store: Path, tmp_path: Path) -> None:
    for rank in range(2):
        kineto(run / f"rank{rank}.json", rank=rank)
    script = tmp_path / "job.py"
    script.write_text(f"import nsightlens as nl\nstore = nl.ingest({str(run)!r}, store={str(store)!r}, jobs=2)\n"
                      "print(store.sql('SELECT count(*) AS n FROM kernels').to_pylist())\n")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[{'n': 2}]\n", "")


def test_nl_read_gives_the_stored_columns_without_a_store(run: Path, tmp_path: Path) -> None:
    tables = nl.read(kineto(run / "a.json", rank=0))
    assert tables["kernels"]["launch_index"].to_pylist() == [0]
    assert tables["processes"]["rank"].to_pylist() == [0]
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ReadError):
        nl.read(tmp_path / "x.json")


def test_wrong_requests(run: Path, store: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        ingest([tmp_path / "absent"], store)
    with pytest.raises(StoreError, match="no store here"):
        nl.open(tmp_path / "absent")
    kineto(run / "a.json", rank=0)
    with pytest.raises(UsageError, match="regular expression"):
        ingest([run], store, rank_pattern="(")
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="a file, and a store is a folder"):
        ingest([run], tmp_path / "file" / "store")
