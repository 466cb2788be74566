"""PyTorch's flight recorder: rows of its JSON dumps, and its pickles named, never opened. All files are made."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.discovery.files import find
from nsightlens.errors import ReadError
from nsightlens.readers import flight_recorder

BEGAN = 1_795_267_079_116_923_327
COLUMNS = ("communicator", "communicator_name", "group_size", "sequence", "collective", "message_bytes", "start_ns",
           "duration_ns", "duration_clock", "state", "rank")


def entry(number: int = 4, **more: Any) -> dict[str, Any]:
    return {"collective_seq_id": number, "duration_ms": 0.25, "input_dtypes": ["BFloat16"], "input_sizes": [[3, 4]],
            "is_p2p": False, "op_id": number, "output_dtypes": ["BFloat16"], "output_sizes": [[3, 4]], "p2p_seq_id": 0,
            "pg_id": 0, "process_group": ["0", "default_pg"], "profiling_name": "nccl:all_reduce", "record_id": number,
            "retired": True, "state": "completed", "time_created_ns": BEGAN + number, "time_discovered_completed_ns": 0,
            "time_discovered_started_ns": 0, "timeout_ms": 600000} | more


def dump(*entries: Any, **more: Any) -> dict[str, Any]:
    return {"comm_lib_version": "2.28.3", "entries": list(entries), "pg_config": {
        "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}, "pg_status": {"0": {"last_enqueued_collective": "4"}},
        "version": "2.10"} | more


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def codes(tables: dict[str, Any]) -> dict[str, int]:
    return {row["code"]: row["count"] for row in tables["diagnostics"].to_pylist()} if "diagnostics" in tables else {}


def test_rows_are_exact(tmp_path: Path) -> None:
    waiting = entry(5, state="started", profiling_name="nccl:_all_gather_base")
    del waiting["duration_ms"]
    tables = nl.read(write(tmp_path / "nccl_trace_rank_1.json", dump(entry(), waiting)))
    assert [tuple(row[c] for c in COLUMNS) for row in tables["collective_records"].to_pylist()] == [
        ("0", "default_pg", 2, 4, "all_reduce", 24, 0, 250_000, "gpu", "completed", 1),
        ("0", "default_pg", 2, 5, "_all_gather_base", 24, 1, None, None, "started", 1)]
    (profile,) = tables["profiles"].to_pylist()
    assert (profile["origin_epoch_ns"], profile["tool_version"], profile["settings"]) == (
        BEGAN + 4, "2.10", [("communication library", "2.28.3")])
    (process,) = tables["processes"].to_pylist()
    assert (process["rank"], process["rank_source"], process["world_size"]) == (1, "filename", 2)
    assert codes(tables) == {}


def test_a_coalesced_group_is_one_collective_and_p2p_none(tmp_path: Path) -> None:
    tables = nl.read(write(tmp_path / "rank_0.json", dump(
        entry(4, duration_ms=0), entry(4, profiling_name="nccl:coalesced"),
        entry(9, is_p2p=True, profiling_name="nccl:send 0->1"))))
    assert [(r["collective"], r["duration_ns"]) for r in tables["collective_records"].to_pylist()] == [("coalesced", 250_000)]
    assert codes(tables) == {"point_to_point": 1}


@pytest.mark.parametrize(("given", "column", "value"), [
    ({"input_dtypes": ["Mystery"]}, "message_bytes", None), ({"input_sizes": [[1 << 62, 8]]}, "message_bytes", None),
    ({"process_group": "1"}, "communicator", "1"), ({"process_group": None}, "communicator", None),
    ({"state": "odd"}, "state", None), ({"duration_ms": -1.0}, "duration_ns", None),
    ({"duration_ms": 1e300}, "duration_ns", None),
    ({"collective_seq_id": None, "seq_id": 7}, "sequence", 7), ({"collective_seq_id": None}, "sequence", None),
    ({"time_created_ns": None}, "start_ns", None),
])
def test_what_is_unknown_is_null(tmp_path: Path, given: dict[str, Any], column: str, value: object) -> None:
    table = nl.read(write(tmp_path / "a.json", dump(entry(**given))))["collective_records"]
    assert table[column].to_pylist() == [value]


def test_damaged_entries_are_left_out_and_the_version_is_said(tmp_path: Path) -> None:
    tables = nl.read(write(tmp_path / "a.json", dump(entry(), 5, {}, entry(collective_seq_id=-1), entry(5, duration_ms=None),
                                                     version="3.0", pg_config={"0": {"ranks": "[0, x]"}, "1": 5})))
    assert tables["collective_records"].num_rows == 2
    assert codes(tables) == {"entries_damaged": 3, "untested_version": 1, "no_durations": 1}
    assert tables["collective_records"]["group_size"].to_pylist() == [None, None]


def test_a_dump_without_collectives_says_what_to_set(tmp_path: Path) -> None:
    tables = nl.read(write(tmp_path / "a.json", {key: value for key, value in dump().items() if key != "entries"}))
    assert "collective_records" not in tables and codes(tables) == {"no_collectives": 1}


def test_cut_and_large_dumps_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = json.dumps(dump(*(entry(n) for n in range(50))))
    for name, content in (("cut.json", whole[:-40].encode()), ("cut.json.gz", gzip.compress(whole.encode())[:-30]),
                          ("type.json", json.dumps(dump(entry(), pg_config=[])).encode())):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ReadError, match="damaged"):
            nl.read(tmp_path / name)
    monkeypatch.setattr(flight_recorder, "MAX_BYTES", 1000)
    with pytest.raises(ReadError, match="more than"):
        nl.read(write(tmp_path / "large.json", whole))


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("unpickled"),))


def test_pickles_are_named_and_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for protocol in (2, 3, 4, 5):
        (tmp_path / f"nccl_trace_rank_{protocol}").write_bytes(pickle.dumps(dump(entry(), evil=_Evil()), protocol))
    (tmp_path / "weights.pkl").write_bytes(pickle.dumps([1, 2]))
    found = {f.path.name: f for f in find([tmp_path])}
    for protocol in (2, 3, 4, 5):
        refused = found[f"nccl_trace_rank_{protocol}"].refused
        assert refused is not None and "python -c" in refused.what_to_do and "your own" in refused.what_to_do
    assert found["weights.pkl"].refused is None and not Path("unpickled").exists()


def test_the_command_that_is_named_makes_json_of_a_pickle(tmp_path: Path) -> None:
    (tmp_path / "nccl_trace_rank_3").write_bytes(pickle.dumps(dump(entry()), 2))
    (found,) = find([tmp_path])
    assert found.refused is not None
    command = found.refused.what_to_do.partition("python ")[2]
    subprocess.run(f"{sys.executable} {command}", shell=True, cwd=tmp_path, check=True)
    tables = nl.read(tmp_path / "nccl_trace_rank_3.json")
    assert tables["collective_records"]["rank"].to_pylist() == [3]
