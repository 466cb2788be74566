"""Cuts, flips and hostile texts: what is read is true, what is lost is said, and nothing but ReadError is raised."""

from __future__ import annotations

import gzip
import json
import random
import select
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nsightlens.errors import ReadError
from nsightlens.readers import kineto
from nsightlens.readers.kineto import fast_structs, reading, worker_processes
from nsightlens.readers.kineto.repair import Repairer, Unrepairable
from nsightlens.readers.kineto.salvage import Salvage
from tests.places import ROOT
from tests.readers.kineto_text import Tables, codes, event, kernel, read, trace

SHARED = ROOT / "../shared/data/kineto"
REAL = [
    "Quentin-Anthony__torch-profiling-tutorial__dc3b0e7228dd_851.1752215573993169006.pt.trace.json",
    "derived/one_line.json", "derived/torch2.13_real_export_quote.json", "derived/windows_backslash_names.json",
    "derived/trunc_mid_event.json", "derived/nan_inf_args.json", "derived/trunc_stream.json.gz", "derived/trailing_comma.json",
    "AMD-AGI__TraceLens__mi300__torch_compile_triton.json.gz", "AMD-AGI__TraceLens__h100__bert-small.json.gz",
    "facebookresearch__HolisticTraceAnalysis__old_capitalised_inference_rank_1.json.gz",
]
ROWS = ("kernels", "memory_ops", "api_calls", "ranges", "allocations")
quick = settings(max_examples=60)

NESTED = event("cpu_op", "nested", "7.5",
               args='{"list": [{"name": 1, "ts": 2}, {"ph": "X", "name": 2}, {"ts": 5}], "x": {"args": {}}}')
TRICKY = event("cpu_op", 'a"}, {"ph": "X", "cat": "kernel"}, ], ] \\ "traceEvents": [', "8.5",
               args={"Call stack": '}\n], {"name": 1}'})
LAST = event(None, "Record Window End", "99.0", None, pid="", tid="", ph="i")
SAMPLE = trace(
    event("cpu_op", "aten::mm", "1000000.125", "9.5", {"External id": 4, "Input Dims": [[2, 3], []]}), NESTED,
    event("cuda_runtime", "cudaLaunchKernel", "1000001.125", "1.5", {"correlation": 9, "External id": 4}), kernel(), TRICKY,
    event("ac2g", "ac2g", "1.0", None, ph="s"), event("user_annotation", "ProfilerStep#3", "1000000.0", "99.125"),
    *(kernel(f"{n}.250", f"{n}.001", f"kernel {n}", correlation=n) for n in range(1000010, 1000020)), LAST,
    tail='"distributedInfo": {"rank": 1}, "deviceProperties": [{"id": 0, "name": "H100"}], "traceName": "/tmp/x"')


def comparable(found: Tables) -> Tables:
    return {table: found[table] for table in (*ROWS, "processes", "devices", "profiles", "diagnostics")}


def real(name: str) -> Path:
    if not (SHARED / name).exists():
        pytest.skip("the shared captures are not here")
    return SHARED / name


@pytest.mark.parametrize("piece_bytes", [1, 64, 333, 1024, 1 << 14, 1 << 17])
def test_pieces_of_any_size_give_the_same(tmp_path: Path, piece_bytes: int) -> None:
    for content in (SAMPLE.encode(), gzip.compress(SAMPLE.encode()), json.dumps(json.loads(SAMPLE)).encode()):
        whole = read(tmp_path / "t.json", content)
        assert len(whole["kernels"]) == 11 and len(whole["ranges"]) == 4
        assert not codes(whole)
        assert comparable(read(tmp_path / "t.json", content, piece_bytes=piece_bytes)) == comparable(whole)


@pytest.mark.parametrize("name", REAL)
def test_pieces_of_real_traces(tmp_path: Path, name: str) -> None:
    content = real(name).read_bytes()
    whole = read(tmp_path / "t.json", content)
    for piece_bytes in (2000, 70_000):
        assert comparable(read(tmp_path / "t.json", content, piece_bytes=piece_bytes)) == comparable(whole)


def test_the_end_of_a_well_formed_trace_needs_no_repair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the array ends is found whatever msgspec calls the place of what trails: else all events are read one by one."""
    whole = read(tmp_path / "t.json", SAMPLE.encode())

    def refused(_: object) -> None:
        raise AssertionError("a well-formed trace was repaired")

    monkeypatch.setattr(Salvage, "run", refused)
    for content in (SAMPLE, json.dumps(json.loads(SAMPLE)), json.dumps(json.loads(SAMPLE), indent=1)):
        assert comparable(read(tmp_path / "t.json", content.encode())) == comparable(whole)


class Refusing:
    """A decoder that refuses every text."""

    def decode(self, text: bytes) -> Any:
        raise msgspec.ValidationError


@pytest.mark.parametrize("name", REAL)
def test_typed_events_give_what_others_give(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = real(name).read_bytes()
    found = read(tmp_path / "t.json", content, piece_bytes=30_000)
    monkeypatch.setattr(fast_structs, "DECODER", Refusing())
    assert read(tmp_path / "t.json", content, piece_bytes=30_000) == found


ODD = [-7, 1.5, "3", True, None, [1, 2, 3], {}, 1 << 31, 1 << 63, "inf"]
PLAIN = [event("cpu_op", "aten::mm", "9.125", "1.5", {"External id": 4, "Input Dims": [[2], []], "Sequence number": 3}),
         event("cuda_runtime", "cudaLaunchKernel", "9.5", "1.25", {"correlation": 9, "External id": 4}),
         event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "11.5", "0.25", {"stream": 7, "correlation": 8, "bytes": 64}),
         event("gpu_user_annotation", "step", "11.0", "1.0", {}, pid=0, tid=7), event("overhead", "o", "1.0", "1.0"),
         event("cuda_sync", "Stream Wait Event", "9.5", "1.0", {"stream": 7, "correlation": 8, "wait_on_stream": 9,
                                                                "wait_on_cuda_event_record_corr_id": 6}, pid=0, tid=7),
         event("cuda_event", "cudaEvent", "9.5", "1.0", {"event_id": 7, "stream": 7, "correlation": 5}, pid=0, tid=7),
         event("cpu_instant_event", "[memory]", "9.25", None, {"Bytes": 512, "Addr": 1 << 63, "Device Type": 1}, ph="i"),
         event("ac2g", "ac2g", "9.5", None, ph="s"), event("python_function", "nn.Module: A", "9.0", "4.0"), kernel()]


@pytest.mark.parametrize("which", range(len(PLAIN)))
def test_odd_values_are_read_alike(tmp_path: Path, which: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stands for a value: typed or not, an event gives the same row."""
    plain = json.loads(PLAIN[which])
    odd = [{**plain, key: value} for key in plain for value in ODD]
    odd += [{**plain, "args": {**plain.get("args", {}), key: value}} for key in plain.get("args", {}) for value in ODD]
    odd += [{key: value for key, value in plain.items() if key != left_out} for left_out in plain]
    for number, text in enumerate(map(json.dumps, odd)):
        content = trace(*PLAIN, text, *PLAIN)
        with monkeypatch.context() as patch:
            found = read(tmp_path / "t.json", content)
            patch.setattr(fast_structs, "DECODER", Refusing())
            assert read(tmp_path / "t.json", content) == found, (number, text)


def helpers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list to which each helper process is added as it starts."""
    started: list[Any] = []
    start = subprocess.Popen

    def noted(*args: Any, **options: Any) -> Any:
        started.append(start(*args, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    return started


@pytest.mark.parametrize("name", REAL[:1] + REAL[3:4] + REAL[6:7] + REAL[9:10])
def test_helpers_give_the_same(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = real(name).read_bytes()
    alone = read(tmp_path / "t.json", content, piece_bytes=30_000)
    monkeypatch.setattr(reading, "PARALLEL_BYTES", 0)
    started = helpers(monkeypatch)
    assert comparable(read(tmp_path / "t.json", content, piece_bytes=30_000, jobs=3)) == comparable(alone)
    assert len(started) == 2 and all(process.poll() is not None for process in started)


@pytest.mark.parametrize("start", ["import sys; sys.exit(3)", "import sys; sys.stdin.buffer.read(5); print('junk')"])
def test_work_of_dead_helpers_is_done_here(tmp_path: Path, start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = read(tmp_path / "t.json", SAMPLE, piece_bytes=500)
    monkeypatch.setattr(reading, "PARALLEL_BYTES", 0)
    monkeypatch.setattr(worker_processes, "_START", start)
    assert comparable(read(tmp_path / "t.json", SAMPLE, piece_bytes=500, jobs=3)) == comparable(alone)


def test_helpers_do_their_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PARALLEL_BYTES", 0)
    monkeypatch.delattr(select, "poll")  # then this process waits for its helpers, and does nothing meanwhile
    here = []
    monkeypatch.setattr(worker_processes.PieceContext, "digest", lambda *args: here.append(args))
    assert len(read(tmp_path / "t.json", SAMPLE, piece_bytes=500, jobs=3)["kernels"]) == 11
    assert not here


def test_a_reader_that_is_dropped_leaves_no_helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PARALLEL_BYTES", 0)
    started = helpers(monkeypatch)
    path = tmp_path / "t.json"
    path.write_text(SAMPLE)
    batches: Any = kineto.read([path], jobs=3, piece_bytes=500)
    next(batches)
    batches.close()
    assert len(started) == 2 and all(process.poll() is not None for process in started)


def keys(found: Tables) -> Counter[Any]:
    """Return each row by what cannot shift with the origin."""
    names = ("name", "duration_ns", "correlation_id", "bytes", "stream")
    return Counter((table, *(row.get(name) for name in names)) for table in ROWS for row in found[table])


def attempt(path: Path, content: bytes) -> Tables | None:
    try:
        return read(path, content)
    except ReadError as exc:
        assert exc.reason and exc.what_to_do and exc.code
        return None


@quick
@given(st.integers(0, len(SAMPLE.encode())))
def test_a_cut_loses_only_item_kind_was_cut(tmp_path: Path, cut: int) -> None:
    content = SAMPLE.encode()[:cut]
    truth, found = read(tmp_path / "w.json", SAMPLE), attempt(tmp_path / "t.json", content)
    if found is None:
        assert b'"traceEvents": [' not in content
        return
    for table in ROWS:
        assert found[table] == truth[table][: len(found[table])]
    profile, is_cut = found["profiles"][0], cut < len(SAMPLE.encode())
    assert profile["truncated"] == is_cut == ("truncated" in codes(found))
    in_tricky = SAMPLE.index(TRICKY) < cut < SAMPLE.index(TRICKY) + len(TRICKY)  # a cut name that looks like several events
    assert in_tricky or codes(found) <= {"truncated", "events_not_stored", "no_epoch", "no_events"}
    if is_cut:
        assert cut - 1200 < profile["first_bad_byte"] <= cut
        missing = any(len(found[table]) < len(truth[table]) for table in ROWS)
        assert in_tricky or not missing or profile["events_lost"] is None


@quick
@given(st.integers(1, 2000))
def test_a_cut_of_gzip_keeps_what_decompresses(tmp_path: Path, cut: int) -> None:
    packed = gzip.compress(SAMPLE.encode(), mtime=0)
    truth, found = read(tmp_path / "w.json", SAMPLE), attempt(tmp_path / "t.json.gz", packed[:cut])
    if found is None:
        return
    for table in ROWS:
        assert found[table] == truth[table][: len(found[table])]
    assert found["profiles"][0]["truncated"] == (cut < len(packed))


@quick
@given(st.lists(st.tuples(st.integers(0, len(SAMPLE.encode()) - 1), st.integers(0, 255)), min_size=1, max_size=3))
@example([(SAMPLE.index('"kernel 1000013"'), 0x20)])
@example([(SAMPLE.index('}', SAMPLE.index('"kernel 1000013"')), 0x20)])
@example([(SAMPLE.index('{', SAMPLE.index('"kernel 1000013"')), 0x20)])
@example([(SAMPLE.index("Record Window End") - 60, 0x7D)])
def test_flipped_bytes_lose_few_events_and_invent_none(tmp_path: Path, flips: list[tuple[int, int]]) -> None:
    content = bytearray(SAMPLE.encode())
    for at, value in flips:
        content[at] = value
    truth, found = read(tmp_path / "w.json", SAMPLE), attempt(tmp_path / "t.json", bytes(content))
    header = SAMPLE.index("[") + 1
    if found is None:
        assert any(at < header for at, _ in flips)
        return
    changed = keys(found) - keys(truth)
    missing = keys(truth) - keys(found)
    assert changed.total() <= len(flips)
    profile = found["profiles"][0]
    if profile["events_lost"] is not None and not profile["truncated"]:
        assert missing.total() <= 2 * len(flips)
    if not codes(found):
        assert missing.total() <= len(flips)


@quick
@given(st.binary(max_size=60), st.integers(0, len(SAMPLE)))
def test_inserted_bytes(tmp_path: Path, junk: bytes, at: int) -> None:
    content = SAMPLE.encode()
    found = attempt(tmp_path / "t.json", content[:at] + junk + content[at:])
    if found is not None and b'"ph"' not in junk:
        assert (keys(found) - keys(read(tmp_path / "w.json", SAMPLE))).total() <= 1


def test_random_damage_of_a_real_trace(tmp_path: Path) -> None:
    content = real(REAL[0]).read_bytes()
    truth = keys(read(tmp_path / "w.json", content))
    chance = random.Random(7)
    for _ in range(12):
        damaged = bytearray(content)
        places = [chance.randrange(8000, len(content) - 200) for _ in range(20)]
        for at in places:
            damaged[at] = chance.randrange(256)
        found = read(tmp_path / "t.json", bytes(damaged), piece_bytes=50_000)
        assert (keys(found) - truth).total() <= 20
        assert (truth - keys(found)).total() <= 45


def test_lost_events_are_counted_with_the_first_offset(tmp_path: Path) -> None:
    broken = kernel(name="broken").replace('"device": 0,', '"device": 0, oops: [,')
    text = trace(kernel(name="a"), broken, kernel(name="b"), broken.replace("3.250", "4"), LAST)
    found = read(tmp_path / "t.json", text)
    assert [k["name"] for k in found["kernels"]] == ["a", "b"]
    profile, said = found["profiles"][0], next(d for d in found["diagnostics"] if d["code"] == "events_lost")
    assert (profile["events_lost"], profile["first_bad_byte"], profile["truncated"]) == (2, text.index(broken), False)
    assert (said["count"], said["byte_offset"], said["severity"]) == (2, text.index(broken), "warning")
    assert profile["events"] == 2


@pytest.mark.parametrize(("name", "written"), [
    ('a"b', 'a"b'), ('"quoted"', '"quoted"'), ('a", "b', 'a", "b'), ('{"a": 1}', '{"a": 1}'), ("C:\\Users\\x", "C:\\Users\\x"),
    ("torch\\nn\\modules", "torch\\nn\\modules"), ("tab\there", "tab\there"), ("end\\", "end\\"), ("naive 层", "naive 层"),
    ("half \ufffd", "half \\ud800"), ("pair \U0001f600 \"", 'pair \\ud83d\\ude00 "'),
])
def test_names_as_they_were_written(tmp_path: Path, name: str, written: str) -> None:
    events = [event("user_annotation", "NAME", "1.5", "2.5").replace("NAME", written), kernel()]
    for text in (trace(*events), trace(*events).replace("\n", "")):
        found = read(tmp_path / "t.json", text)
        assert [r["name"] for r in found["ranges"]] == [name]
        assert len(found["kernels"]) == 1 and found["profiles"][0]["events_lost"] == 0


json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12)


@given(st.dictionaries(st.text(), json_values, max_size=5), st.sampled_from([None, 1]), st.booleans())
def test_mending_leaves_valid_json_as_it_is(value: Any, indent: int | None, ascii_only: bool) -> None:
    repairer = Repairer(json.dumps(value, indent=indent, ensure_ascii=ascii_only))
    assert json.loads(repairer.value()) == value
    assert not repairer.repaired


@given(st.text(alphabet='{}[]",:\\ abu019.-eE\n', max_size=80))
def test_mending_ends_in_json_or_refusal(text: str) -> None:
    try:
        repaired = Repairer(text).value()
    except Unrepairable:
        return
    json.loads(repaired)


@pytest.mark.parametrize("args", [
    "[" * 200_000, '{"a": ' * 200_000, '{"a": ' + "[" * 5000 + "]" * 5000 + "}", '"' * 100_000, '{"x": "' + '\\' * 100_000,
    '{"x": ' + "9" * 200_000 + "}", '{"Input Dims": ' + "[" * 5000 + "]" * 5000 + "}", "}" * 100_000, "}]," * 30_000,
    '{"x": "' + '", "y' * 30_000, "{" + '"a":1,' * 50_000 + "}", '{"correlation": ' + "9" * 5000 + "}",
])
def test_hostile_arguments_cost_one_event(tmp_path: Path, args: str) -> None:
    text = trace(kernel(name="a"), event("kernel", "bad", "1.5", args=args), kernel(name="b"), LAST)
    found = read(tmp_path / "t.json", text)
    names = [k["name"] for k in found["kernels"]]
    assert names in (["a", "b"], ["a", "bad", "b"])
    assert ("events_lost" in codes(found)) == (len(names) == 2)


@pytest.mark.parametrize("unit", [
    '{"ph":1,', '{"ph":1},', '{"ph": "X", "args": {', '"ph": [', "},{", '{"name": "', "}]}, ]", "\\", "{}", '{"a":{}}'])
def test_hostile_events_come_to_an_end(tmp_path: Path, unit: str) -> None:
    found = read(tmp_path / "t.json", trace(kernel(name="a"), unit * (300_000 // len(unit)), kernel(name="b"), LAST))
    assert found["kernels"][0]["name"] == "a" and len(found["kernels"]) <= 2


def test_many_categories_do_not_fill_the_memory(tmp_path: Path) -> None:
    events = [event(f"category {n}", "x", "1.5") for n in range(3000)]
    found = read(tmp_path / "t.json", trace(*events, kernel()), piece_bytes=20_000)
    said = next(d for d in found["diagnostics"] if d["code"] == "events_not_stored")
    assert said["count"] == 3000 and len(said["message"]) < 5000 and "others" in said["message"]


def test_an_event_larger_than_any_piece(tmp_path: Path) -> None:
    big = event("cpu_op", "big", "1.5", args={"Call stack": "x" * 300_000, "Concrete Inputs": ["y" * 100]})
    for content in (trace(kernel(), big, kernel()).encode(), gzip.compress(trace(kernel(), big, kernel()).encode())):
        found = read(tmp_path / "t.json", content, piece_bytes=1000)
        assert (len(found["kernels"]), len(found["ranges"]), codes(found)) == (2, 1, {"odd_stacks"})


def test_metadata_larger_than_any_piece(tmp_path: Path) -> None:
    filler = json.dumps([{"name": f"n{i}", "ts": i} for i in range(3000)])
    tail = f'"b": {filler}, "distributedInfo": {{"rank": 6}}'
    text = trace(kernel(), head=f'"a": {filler}, "deviceProperties": [],', tail=tail)
    found = read(tmp_path / "t.json", text, piece_bytes=1000)
    assert (len(found["kernels"]), found["processes"][0]["rank"], codes(found)) == (1, 6, {"no_epoch"})


@pytest.mark.parametrize("end", ["", "]", "],", '],\n "traceName": "/tmp', '], "a": {"b": [1, 2', "]\n"])
def test_a_cut_behind_the_last_event_loses_none(tmp_path: Path, end: str) -> None:
    text = trace(kernel(), LAST)
    text = text[: text.rindex("]")] + end
    found = read(tmp_path / "t.json", text)
    assert (found["profiles"][0]["events_lost"], found["profiles"][0]["truncated"]) == (0, True)
    assert found["profiles"][0]["first_bad_byte"] == len(text)


def test_a_cut_before_the_events(tmp_path: Path) -> None:
    with pytest.raises(ReadError) as refused:
        read(tmp_path / "t.json", SAMPLE[: SAMPLE.index('"traceEvents"') + 5])
    assert refused.value.code == "truncated"


def test_damaged_deflate_data(tmp_path: Path) -> None:
    text = trace(*(kernel(f"{n}.5", name=f"k{random.Random(n).random()}") for n in range(20_000)))
    packed = bytearray(gzip.compress(text.encode()))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    found = read(tmp_path / "t.json.gz", bytes(packed))
    assert 5_000 < len(found["kernels"]) < 15_000
    assert "truncated" in codes(found) and codes(found) & {"gzip_damaged", "checksum_mismatch"}
    truth = read(tmp_path / "w.json", text)
    assert [k["name"] for k in found["kernels"][:5000]] == [k["name"] for k in truth["kernels"][:5000]]


def test_an_unreadable_path(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        for look in (kineto.probe, lambda one: list(kineto.read([one]))):
            with pytest.raises(ReadError, match="cannot be read"):
                look(path)


@pytest.mark.parametrize("first", ["2000001.500", "1751410836000001.500"])
@pytest.mark.parametrize("odd", ["true", "false", "{}", "[]", '{"ph": 1}', '"x"', "null"])
@pytest.mark.parametrize("piece", [None, 1000])
def test_what_is_no_duration_costs_its_event_and_no_other(tmp_path: Path, first: str, odd: str, piece: int | None) -> None:
    events = [kernel(ts=f"{first[:-3]}{at:03}", name=f"k{at}", dur=odd if at == 20 else "3.250") for at in range(40)]
    found = read(tmp_path / "t.json", trace(*events), piece_bytes=piece)
    assert [row["name"] for row in found["kernels"] if row["duration_ns"] == 3250] == [f"k{at}" for at in range(40) if at != 20]
    assert [row["duration_ns"] for row in found["kernels"] if row["name"] == "k20"] in ([], [None])
    assert codes(found) & {"missing_time", "events_lost"}


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("place", ["head", "name", "argument", "not read", "not stored", "tail"])
@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80"])
def test_bytes_that_are_no_utf8_are_said_wherever_they_stand(tmp_path: Path, place: str, bad: bytes, zipped: bool) -> None:
    """How many and where; every time and number, and every other name, is as in the trace without them."""
    def written(text: str) -> bytes:
        at = {name: text if name == place else "" for name in ("head", "name", "argument", "not read", "not stored", "tail")}
        found = trace(event("cpu_op", f"é{at['name']}", "7.5", args={"Input type": [at["argument"]], "Other": at["not read"]}),
                      kernel("9.125", "3.001"), event("python_function", at["not stored"], "11.5"), kernel("13.25", name="ü"),
                      head=f'"schemaVersion": 1, "host_name": "{at["head"]}", "baseTimeNanoseconds": 0,',
                      tail=f'"traceName": "{at["tail"]}"')
        return found.replace("\\u00e9", "é").replace("\\u00fc", "ü").encode()

    marked = written("@@")
    told, true = (read(tmp_path / "t", gzip.compress(data) if zipped else data, piece_bytes=300)
                  for data in (marked.replace(b"@@", bad), written("")))
    said = [row for row in told["diagnostics"] if row["code"] == "text_replaced"]
    assert [(row["count"], row["byte_offset"]) for row in said] == [(len(bad), marked.index(b"@@"))]
    assert "text_replaced" not in codes(true)
    assert told["kernels"] == true["kernels"] and len(true["kernels"]) == 2
    names = [row["name"] for row in told["ranges"]]
    assert names[0] == (b"\xc3\xa9" + bad if place == "name" else b"\xc3\xa9").decode("utf-8", "replace")
    times = [[(row["start_ns"], row["duration_ns"]) for row in found["ranges"]] for found in (told, true)]
    assert times[0] == times[1]
