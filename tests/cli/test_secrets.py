"""Planted secrets reach nothing: the store, each output, the messages, the log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from nsightlens.store.store import CATALOG
from tests.cli.command_line import run
from tests.discovery.planted import COMMANDS, HARMLESS, TEXTS, TOKEN
from tests.readers import ncu_text, nsys_report
from tests.readers.kineto_text import event, kernel, trace
from tests.readers.test_nsys_processes import environment

ADDRESSES = ("s3://KEY:plan/ted+planted@bucket/x", "file://KEY:planted@host/x", "https://planted@host/x",
             "s3://bucket/x?X-Amz-Signature=planted", "https://host/x?sig=planted")


def _sidecar(stem: Path, number: int, **more: object) -> None:
    words = [word for case in COMMANDS for word in ("--", *case)]
    stem.with_name(f"{stem.name}.run.json").write_text(json.dumps({
        "run": f"base-{TOKEN}", "execution_id": f"job-{TOKEN}", "rank": number, "world_size": 4, "host": "node",
        "command": words if number % 2 else " ".join(TEXTS), "problems": TEXTS, "launcher": "srun --export=HF_TOKEN=planted x",
        "exit_code": 3, "driver_version": "token=planted", "torch_version": "2.7 password=planted", "git_commit": TOKEN,
        "gpus": [{"power_limit_w": "password=planted"}], **more}))


def _kineto(path: Path) -> None:
    operator = event("cpu_op", "aten::mm", "2000000.0", args={
        "External id": 1, "Input Dims": [[1], [], "planted"], "Input type": ["float", "", "planted", TOKEN, "c10::Half"],
        "Concrete Inputs": ["planted", TOKEN, "2.", "[1, 2]", "True", "", ["planted"], {"password": "planted"}, 3]})
    categories = ("cpu_op", "user_annotation", "gpu_user_annotation", "python_function")
    names = [event(category, text, f"{2_000_100 + at}.0", args={"Input type": [text], "Input Dims": [text], "Call stack": text})
             for category in categories for at, text in enumerate(TEXTS)]
    groups = [{"pg_name": "0", "pg_desc": f"api_key=planted {TOKEN}", "ranks": [0, 1], "pg_size": 2}]
    head = {"schemaVersion": 1, "baseTimeNanoseconds": 1751410836000000000, "HF_TOKEN": "planted", "env": {"PASSWORD": "planted"},
            "command": " ".join(TEXTS), "traceName": TOKEN, "host_name": TOKEN,
            "deviceProperties": [{"id": 0, "name": f"GPU {TOKEN}"}],
            "distributedInfo": {"rank": 0, "world_size": 2, "token": "planted", "pg_config": groups}}
    kernels = [kernel(), kernel(name="ampere_gemm_64x4_nt --token planted", ts="2000900.0")]
    path.write_text(trace(operator, *names, *kernels, head=json.dumps(head)[1:-1] + ","))


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    (folder / "torch").mkdir()
    _kineto(folder / "torch/rank0.pt.trace.json")
    _sidecar(folder / "torch/rank0", 0)
    (folder / "torch/rank1.pt.trace.json").write_text('{"traceEvents": [{"name": "' + " ".join(TEXTS).replace('"', "'"))
    _sidecar(folder / "torch/rank1", 1)
    nsys_report.write(folder / "rank2.sqlite", nsys_report.base(
        TARGET_INFO_SYSTEM_ENV=[{"name": name, "value": ";".join(TEXTS)} for name in ("DeviceEnvironment", "Hostname")],
        TARGET_INFO_SESSION_START_TIME=[{"utcEpochNs": nsys_report.SESSION, "utcTime": TEXTS[0], "localTime": TEXTS[1]}],
        NVTX_EVENTS=[nsys_report.span(10 + at, 5000 - at, text=text) for at, text in enumerate(TEXTS)],
        META_DATA_EXPORT=[{"name": "EXPORT_APP", "value": text} for text in TEXTS],
        ProcessStreams=[{"globalPid": nsys_report.global_pid(7), "filenameId": 1, "contentId": 1}],
        PROCESSES=[{"globalPid": nsys_report.global_pid(7), "pid": 7, "name": f"/usr/bin/python3 {' '.join(TEXTS)}"}],
        DIAGNOSTIC_EVENT=[{"timestamp": at, "severity": 3, "text": text} for at, text in enumerate(TEXTS)],
        **environment(*TEXTS)))
    _sidecar(folder / "rank2", 2)
    ncu = [f"==PROF== Connected to process 7 (/usr/bin/python3 {' '.join(TEXTS)})", *(f"==WARNING== {text}" for text in TEXTS),
           *ncu_text.metrics(ncu_text.DURATION, ("session__note", "", "token=planted"))]
    (folder / "rank3.csv").write_text("\n".join(ncu) + "\n")
    _sidecar(folder / "rank3", 3, tool="ncu")
    (folder / "lost.run.json").write_text(json.dumps({"tool": "nsys", "rank": 5, "host": TOKEN, "problems": list(TEXTS)}))
    (folder / "steps.json").write_text(json.dumps({
        "run": f"base-{TOKEN}", "execution_id": f"job-{TOKEN}", "rank": 0, "world_size": 1, "tool": "plain", "command": ["x"],
        "workload": {"name": "x --token planted", "HF_TOKEN": "planted", "note": "password=planted"},
        "windows": [{"steps": [{"step": 0, "start_epoch_ns": 10**18, "end_epoch_ns": 10**18 + 5}]}]}))
    return folder


@pytest.fixture(scope="module")
def store(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    done = run("--debug", "--log-file", folder / "log.txt", "ingest", captures, "--store", folder / "s")
    assert done.returncode == 0, done.stderr
    assert not leaks(done.stdout + done.stderr + (folder / "log.txt").read_text())
    return folder / "s"


def leaks(text: str) -> list[str]:
    return [line[:300] for line in text.splitlines() if "planted" in line.lower()]


def _everything(store: Path) -> Iterator[str]:
    for path in store.rglob("*"):
        yield str(path.relative_to(store))
        if path.is_file():
            yield path.read_bytes().decode("utf-8", "replace")
        if path.suffix == ".parquet":
            yield str(pq.read_table(path).to_pydict())
    with duckdb.connect(str(store / CATALOG), read_only=True) as connection:
        for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            yield table + str(connection.table(table).fetchall())


def test_no_byte_of_the_store_has_one(store: Path) -> None:
    assert [found for text in _everything(store) for found in leaks(text)] == []


def test_what_was_read_is_there_without_them(store: Path) -> None:
    done = run("sql", "SELECT message FROM diagnostics WHERE code = 'capture_problem'", "--store", store, "--format", "csv")
    assert done.stdout.count("***") >= len(TEXTS)
    done = run("sql", "SELECT concrete_inputs AS c FROM ranges WHERE c IS NOT NULL", "--store", store, "--format", "json")
    (row,) = json.loads(done.stdout)["rows"]
    assert json.loads(row["c"]) == ["", "", "2.", "[1, 2]", "True", "", [""], "", 3]
    done = run("sql", "SELECT DISTINCT unnest(map_keys(settings)) AS name FROM profiles", "--store", store, "-f", "csv")
    assert {"command", "launcher", "workload.HF_TOKEN"} <= set(done.stdout.split("\n"))


@pytest.mark.parametrize("arguments", [
    ("summary",), ("report", "-o", "OUT.html"), ("export", "perfetto", "-o", "OUT.json"), ("scan", "CAPTURES"),
    ("doctor", "CAPTURES"), ("sql", "FROM profiles", "-f", "json"), ("sql", "FROM diagnostics", "--wide"),
    ("sql", "FROM files", "-o", "OUT.csv"), ("sql", "FROM processes"), ("sql", "FROM ranges", "-o", "OUT.parquet"),
    ("show", "findings"), ("remove", "--file", "rank2.sqlite", "--dry-run"), ("refresh", "--dry-run"), ("compare", "ranks"),
    ("plan-ncu",),
    ("roofline",),
    ("summary", "CAPTURES/torch/rank0.pt.trace.json")], ids=" ".join)
def test_no_output_has_one(arguments: tuple[str, ...], captures: Path, store: Path, tmp_path: Path) -> None:
    words = [word.replace("CAPTURES", str(captures)).replace("OUT", str(tmp_path / "out")) for word in arguments]
    takes_store = arguments[0] not in ("scan", "doctor")
    done = run("--debug", "--log-file", tmp_path / "log", *words, *(("--store", store) if takes_store else ()))
    written = [path for path in tmp_path.iterdir() if path.suffix != ".parquet"]
    assert "log" in {path.name for path in written}
    assert not leaks("\n".join([done.stdout, done.stderr, *(path.read_text() for path in written)]))


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("command", [
    ("ingest", "X"), ("summary", "--store", "X"), ("report", "X"), ("export-reports", "X"), ("remove", "--file", "X"),
    ("scan", "X"),
    ("show", "kernel_summary", "--views", "X"), ("show", "kernel_summary", "-o", "X/out.csv"), ("hta", "--store", "X"),
    ("open", "--store", "X"),
    ("mcp", "--store", "X"),
    ("roofline", "X"),
    ("X",), ("show", "X"), ("sql", "SELECT 'X' FROM nowhere"),
    ("reconcile", "X")], ids=" ".join)
def test_an_address_is_not_repeated(address: str, command: tuple[str, ...], store: Path, tmp_path: Path,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the message, nor in the traceback of --debug, nor in the log, which begins before the refusal."""
    monkeypatch.setenv("NSIGHTLENS_STORE", str(store))
    monkeypatch.chdir(tmp_path)
    done = run("--debug", "--log-file", "log", *(word.replace("X", address) for word in command))
    assert done.returncode in (1, 2), done.stderr
    log = tmp_path / "log"
    assert not leaks(done.stdout + done.stderr + (log.read_text() if log.exists() else ""))


def test_a_defect_is_told_without_them(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from nsightlens.cli import messages

    error = RuntimeError("; ".join(TEXTS))
    messages.begin()
    messages.defect(type(error), error, None)
    assert not leaks(capsys.readouterr().err)


def test_an_honest_message_stays(capsys: pytest.CaptureFixture[str]) -> None:
    from nsightlens.cli import messages

    messages.begin()
    messages.complain("\n".join(HARMLESS))
    assert capsys.readouterr().err == "\n".join(HARMLESS) + "\n"
