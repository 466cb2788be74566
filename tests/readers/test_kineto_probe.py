"""The cheap look: what may be a trace, whose it is, and what neighbouring files are."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from nsightlens.errors import ReadError
from nsightlens.readers import kineto
from nsightlens.readers.reader import HEAD_BYTES
from tests.places import ROOT
from tests.readers.kineto_text import BASE, event, kernel, trace

SHARED = ROOT / "../shared/data/kineto"
HERE = pytest.mark.skipif(not SHARED.exists(), reason="the shared captures are not here")
OPERATOR = event("cpu_op", "aten::mm", "7000000.5", pid=851)


def head_of(path: Path) -> bytes:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if packed else path.open("rb") as file:
        return file.read(HEAD_BYTES)


@HERE
def test_every_real_trace_is_recognised() -> None:
    paths = [p for p in SHARED.rglob("*.json*") if p.parent.name != "derived" and not p.name.startswith("notkineto")]
    assert len(paths) > 40
    for path in paths:
        assert kineto.sniff(path, head_of(path)), path.name
        probe = kineto.probe(path)
        assert probe.kind.startswith("kineto json"), path.name
        # G5 of 2024 has its base behind the events, which a look at gzip does not reach
        assert path.suffix == ".gz" or (probe.first_epoch_ns is not None and probe.kind[-2] == "G"), path.name
        assert len(probe.identity) == 1


@HERE
def test_the_cheap_look_agrees_with_the_full_read() -> None:
    for name in ("astra-sim__astra-sim__megatron-tp8/megatron_kineto_3.json",
                 "AMD-AGI__TraceLens__b200__eager_trace_rank0.json.gz",
                 "facebookresearch__HolisticTraceAnalysis__trace_diff_control_rank3.json.gz"):
        probe = kineto.probe(SHARED / name)
        tables = {t: batch.to_pylist()[0] for t, batch in kineto.read([SHARED / name]) if t in ("processes", "profiles")}
        hint, process = probe.processes[0], tables["processes"]
        assert (hint.pid, hint.host, hint.rank, hint.rank_source, hint.world_size) == tuple(
            process[column] for column in ("pid", "host", "rank", "rank_source", "world_size"))
        assert (probe.kind.removeprefix("kineto json "), probe.first_epoch_ns) == (
            tables["profiles"]["format"].removeprefix("kineto "), tables["profiles"]["origin_epoch_ns"])


@HERE
def test_two_windows_of_one_process_are_of_one_process() -> None:
    first, second = (kineto.probe(p) for p in sorted(SHARED.glob("Quentin-Anthony*")))
    assert first.window_of == second.window_of
    assert first.window_of and first.window_of.endswith("dc3b0e7228dd:851")
    assert first.identity.isdisjoint(second.identity)
    assert first.first_epoch_ns and second.first_epoch_ns and first.first_epoch_ns <= second.first_epoch_ns


def test_a_trace_and_its_gz_share_their_identity(tmp_path: Path) -> None:
    text = trace(OPERATOR, kernel()).encode()
    (tmp_path / "a.json").write_bytes(text)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(text))
    (tmp_path / "b.json").write_bytes(text.replace(b"851", b"852"))
    plain, packed, other = (kineto.probe(tmp_path / name) for name in ("a.json", "a.json.gz", "b.json"))
    assert plain == packed
    assert plain.identity.isdisjoint(other.identity)


@pytest.mark.parametrize(("name", "window"), [
    ("node7_851.1752215573993.pt.trace.json", "node7:851"), ("a_b_851.1752215573993169006.pt.trace.json.gz", "a_b:851"),
    ("node7_852.1752215573993.pt.trace.json", None), ("rank_0.1752215573993.pt.trace.json", None), ("node7_851.json", None),
])
def test_the_worker_name_tells_the_process_if_the_content_agrees(tmp_path: Path, name: str, window: str | None) -> None:
    (tmp_path / name).write_text(trace(OPERATOR))
    probe = kineto.probe(tmp_path / name)
    assert (probe.window_of, probe.processes[0].pid) == (window, 851)


@pytest.mark.parametrize("packed", [False, True])
def test_keys_behind_many_events(tmp_path: Path, packed: bool) -> None:
    """Of a plain file the end is read too; of gzip the whole file would have to be."""
    tail = f'"distributedInfo": {{"rank": 3, "world_size": 4}}, "host_name": "n1", "baseTimeNanoseconds": {BASE}'
    text = trace(*[OPERATOR] * 25_000, head="", tail=tail).encode()
    assert len(text) > 2 << 20
    path = tmp_path / "a.json"
    path.write_bytes(gzip.compress(text) if packed else text)
    probe = kineto.probe(path)
    hint = probe.processes[0]
    assert (hint.rank, hint.world_size, hint.host, probe.window_of, probe.first_epoch_ns) == (
        (None, None, None, None, None) if packed else (3, 4, "n1", "n1:851", BASE + 7 * 10**9))


def test_a_long_header(tmp_path: Path) -> None:
    groups = json.dumps([{"pg_name": str(n), "ranks": list(range(512))} for n in range(1500)])
    path = tmp_path / "a.json"
    path.write_text(trace(OPERATOR, head=f'"distributedInfo": {{"rank": 9, "world_size": 512, "pg_config": {groups}}},'))
    assert path.stat().st_size > 3 << 20
    assert kineto.probe(path).processes[0].rank == 9
    assert kineto.sniff(path, path.read_bytes()[:HEAD_BYTES])


@pytest.mark.parametrize(("content", "verdict"), [
    (trace(kernel()).encode(), True), (b"\xef\xbb\xbf\n " + trace(kernel()).encode(), True),
    (f"[{kernel()}]".encode(), True), (b'{"schemaVersion": 1, "deviceProperties": []}', True),
    (b'{"a": "' + b"x" * HEAD_BYTES, True), (b'{"schema": "1.0-chakra", "nodes": []}', True),
    (b'{"rocprofiler-sdk-tool": []}', True), (b'{"run": "base", "rank": 3}', False), (b"[1, 2, 3]", False),
    (b'[{"a": 1}]', False), (b"", False), (b"==PROF== Connected to process 1\n", False), (b'"ID","Process ID"\n', False),
    (b"SQLite format 3\x00", False), (b"\x00\x05\x16\x07", True), (b"[rank0] hello\n", False), (b"{", False),
    (b"\xff\xfe{\x00", False),
])
def test_sniff(tmp_path: Path, content: bytes, verdict: bool) -> None:
    assert kineto.sniff(tmp_path / "x.json", content[:HEAD_BYTES]) is verdict


def test_sniff_of_a_directory(tmp_path: Path) -> None:
    assert kineto.sniff(tmp_path, b"") is False


@pytest.mark.parametrize("damage", [0.02, 0.3, 0.6, 0.95])
def test_a_cut_file_can_still_be_probed(tmp_path: Path, damage: float) -> None:
    text = trace(*[OPERATOR] * 50, kernel())
    path = tmp_path / "a.json"
    for content in (text[: int(len(text) * damage)].encode(), gzip.compress(text.encode())[: int(400 * damage)]):
        path.write_bytes(content)
        try:
            assert kineto.probe(path).kind.startswith("kineto json")
        except ReadError as exc:
            assert exc.code in ("truncated", "unknown_format", "empty_file")
