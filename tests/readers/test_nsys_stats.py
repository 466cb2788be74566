"""Tables that `nsys stats --report cuda_gpu_trace` prints: in all units and locales, damaged, and against their reports."""

from __future__ import annotations

import gzip
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.errors import NsightlensError, ReadError
from nsightlens.readers import nsys
from nsightlens.readers.nsys.stats_cells import Locale, header, locale_of
from tests.places import sqlite_captures
from tests.readers import nsys_csv
from tests.readers.nsys_csv import codes, of, read
from tests.readers.nsys_report import report

HEADER = ("Start (ns)", "Duration (ns)", "CorrId", "GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Reg/Trd", "StcSMem (MB)",
          "DymSMem (MB)", "Bytes (MB)", "Throughput (MB/s)", "SrcMemKd", "DstMemKd", "Device", "Ctx", "GreenCtx", "Strm", "Name")
KERNEL = ("1000", "250", "7", "64", "2", "1", "128", "1", "1", "32", "0.001", "0.016", "", "", "", "", "NVIDIA A100 (0)", "1",
          "", "7", "void k<float, 2>(float *)")
COPY = ("2000", "1500", "8", "", "", "", "", "", "", "", "", "", "4.194", "2796.000", "Pageable", "Device", "NVIDIA A100 (0)",
        "1", "", "7", "[CUDA memcpy Host-to-Device]")
SET = ("4000", "20", "9", "", "", "", "", "", "", "", "", "", "0.000", "0.000", "Device", "", "NVIDIA A100 (1)", "1", "", "8",
       "[CUDA memset]")
UNITS = {"ns": 1, "nsec": 1, "us": 10**3, "usec": 10**3, "μs": 10**3, "ms": 10**6, "msec": 10**6, "s": 10**9, "sec": 10**9}


def printed(rows: list[tuple[str, ...]], head: tuple[str, ...] = HEADER, delimiter: str = ",") -> str:
    return nsys_csv.printed(rows, head, delimiter)


def test_a_table_as_nsys_prints_it(tmp_path: Path) -> None:
    found = of(tmp_path, "Processing [r.sqlite] with [cuda_gpu_trace.py]... \n\n" + printed([KERNEL, COPY, SET]))
    place = {"process_index": 0, "context": 1}
    assert found["kernels"] == [place | {
        "start_ns": 1000, "duration_ns": 250, "correlation_id": 7, "stream": 7, "device": 0, "grid_x": 64, "grid_y": 2,
        "grid_z": 1, "block_x": 128, "block_y": 1, "block_z": 1, "registers_per_thread": 32, "name": "void k<float, 2>(float *)"}]
    assert found["memory_ops"] == [
        place | {"start_ns": 2000, "duration_ns": 1500, "correlation_id": 8, "stream": 7, "device": 0, "kind": "memcpy",
                 "direction": "HtoD", "bytes": 4_194_000, "source_memory": "pageable", "destination_memory": "device",
                 "name": "[CUDA memcpy Host-to-Device]"},
        place | {"start_ns": 4000, "duration_ns": 20, "correlation_id": 9, "stream": 8, "device": 1, "kind": "memset",
                 "destination_memory": "device", "name": "[CUDA memset]"}]
    assert {row["device"]: row["name"] for row in found["devices"]} == {0: "NVIDIA A100", 1: "NVIDIA A100"}
    assert found["processes"] == [{"process_index": 0}]
    (profile,) = found["profiles"]
    assert (profile["format"], profile["events"], profile["truncated"]) == ("nsys cuda_gpu_trace csv", 3, False)
    assert codes(found) == {"reduced_input": 1, "sizes_rounded": 1}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("delimiter", "decimal", "thousands"), [
    (",", ".", ""), (",", ".", ","), (";", ",", ""), (";", ",", "."), ("\t", ".", ""), (";", ".", ",")])
def test_units_and_locales(tmp_path: Path, unit: str, delimiter: str, decimal: str, thousands: str) -> None:
    """The times are the same to the ns, whatever their unit and signs are."""
    times = [(533_338_240, 1_367_644), (534_720_380, 9_018_333), (1_999_999_999, 2_000_000_001), (2_000_000_001, 12)]

    def number(ns: int) -> str:
        digits = len(str(UNITS[unit])) - 1
        text = f"{ns // UNITS[unit]:,}".replace(",", thousands)
        return text + (f"{decimal}{ns % UNITS[unit]:0{digits}}" if digits else "")

    rows = [(number(start), number(duration), *KERNEL[2:]) for start, duration in times]
    head = (f"Start ({unit})", f"Duration ({unit})", *HEADER[2:])
    found = of(tmp_path, printed([(*row[:10], "", "", *row[12:]) for row in rows], head, delimiter))
    assert [(row["start_ns"], row["duration_ns"]) for row in found["kernels"]] == times
    assert set(codes(found)) == {"reduced_input"}


@pytest.mark.parametrize(("unit", "text", "value"), [("B", "16384", 16384), ("KiB", "16.00", None), ("MB", "0.016384", 16384)])
def test_shared_memory_is_known_where_it_is_printed_to_the_byte(tmp_path: Path, unit: str, text: str, value: int | None) -> None:
    head = tuple(f"{name.split()[0]} ({unit})" if "SMem" in name else name for name in HEADER)
    (row,) = of(tmp_path, printed([(*KERNEL[:10], "0", text, *KERNEL[12:])], head))["kernels"]
    assert row.get("dynamic_shared_bytes") == value
    assert row.get("shared_bytes") == (value if unit == "B" else None)


def test_times_that_are_printed_coarsely_say_so(tmp_path: Path) -> None:
    head = ("Start (s)", "Duration (us)", *HEADER[2:])
    found = of(tmp_path, printed([("0.533338", "1367.644", *KERNEL[2:])], head))
    assert [(row["start_ns"], row["duration_ns"]) for row in found["kernels"]] == [(533_338_000, 1_367_644)]
    assert any("1,000 ns" in row["message"] for row in found["diagnostics"] if row["code"] == "times_rounded")


def test_a_sign_that_could_be_either(tmp_path: Path) -> None:
    """Where nothing decides, the usual sign of the delimiter is taken, and that is said."""
    head = ("Start (us)", "Duration (us)", *HEADER[2:])
    plain = (*KERNEL[2:10], "", "", *KERNEL[12:])
    found = of(tmp_path, printed([("12,345", "1,250", *plain)], head, ";"))
    assert (found["kernels"][0]["start_ns"], codes(found).get("decimal_assumed")) == (12_345, 1)
    found = of(tmp_path, printed([("12,345", "1,250", *plain), ("13,345.5", "1,250", *plain)], head))
    assert [row["start_ns"] for row in found["kernels"]] == [12_345_000, 13_345_500]
    assert "decimal_assumed" not in codes(found)


def test_numbers() -> None:
    assert Locale(".").number("1,234,567.5", 1000) == (1_234_567_500, 100)
    assert Locale(",").number("1.234,5", 10) == (12_345, 1)
    assert Locale(".").number("1 234 567", 1) == (1_234_567, 1)
    assert [Locale(".").number(text, 1) for text in ("", "-", "1,23", "1e5", "nan", "0x1", "1" * 50)] == [None] * 7
    head = header(",".join(HEADER))
    assert head is not None and locale_of([("1", "2", *KERNEL[2:])], head) == Locale(".")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_encodings_and_gzip(tmp_path: Path, encoding: str) -> None:
    plain = of(tmp_path, printed([KERNEL, COPY]), encoding)
    (tmp_path / "trace.csv.gz").write_bytes(gzip.compress((tmp_path / "trace.csv").read_bytes()))
    packed = read(tmp_path / "trace.csv.gz")
    assert plain == packed and len(plain["kernels"]) == 1
    (tmp_path / "trace.csv.gz").write_bytes(gzip.compress((tmp_path / "trace.csv").read_bytes())[:-12])
    cut = [row for name, batch in nsys.read([tmp_path / "trace.csv.gz"]) if name == "diagnostics" for row in batch.to_pylist()]
    assert "truncated" in {row["code"] for row in cut}


def test_damaged_rows_are_counted_and_named(tmp_path: Path) -> None:
    bad = [("x", *KERNEL[1:]), KERNEL[:5], (*KERNEL[:-1], ""), ("1000", "-5", *KERNEL[2:]),
           ("1000", "9", "7", "9" * 12, *KERNEL[4:])]
    found = of(tmp_path, printed([KERNEL, *bad, COPY]) + "\nOther,Report\n1,2\n")
    assert len(found["kernels"]) == 3 and len(found["memory_ops"]) == 1
    assert [row.get("duration_ns") for row in found["kernels"]] == [250, None, 9] and "grid_x" not in found["kernels"][2]
    assert {name: codes(found)[name] for name in ("rows_damaged", "bad_values", "more_tables")} == {
        "rows_damaged": 3, "bad_values": 3, "more_tables": 1}
    assert found["profiles"][0]["events_lost"] == 3


@pytest.mark.parametrize("text", [printed([]), printed([KERNEL[:4]])])
def test_a_table_without_a_launch_is_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ReadError) as refused:
        list(nsys.read([tmp_path / "t.csv"]))
    assert str(refused.value.path) == str(tmp_path / "t.csv") and "nsys stats --report cuda_gpu_trace" in refused.value.what_to_do


def test_cut_and_changed_bytes_give_rows_or_a_named_refusal(tmp_path: Path) -> None:
    """Never a traceback: what can be read is read, and what is lost is counted."""
    whole = printed([(str(1000 + 300 * n), *(KERNEL if n % 3 else COPY)[1:]) for n in range(40)]).encode()
    packed = gzip.compress(whole)
    rng = random.Random(5)
    for number in range(300):
        data = bytearray(packed if number % 5 == 0 else whole)
        for _ in range(rng.randint(0, 6)):
            data[rng.randrange(len(data))] = rng.choice((0, 10, 34, 44, 59, 0xFF, rng.randrange(256)))
        data = data[:rng.randint(1, len(data))] if rng.random() < 0.6 else data
        path = tmp_path / "t.csv"
        path.write_bytes(data)
        try:
            nsys.probe(path)
            found = read(path)
        except NsightlensError as exc:
            assert str(path) in str(exc)
            continue
        assert found["profiles"][0]["events"] == len(found.get("kernels", ())) + len(found.get("memory_ops", ())) > 0
        assert "reduced_input" in codes(found)


def test_beside_its_report_it_is_not_counted_twice(tmp_path: Path) -> None:
    """By its first kernel, and, where times are rounded, by the name that nsys gives it."""
    run = tmp_path / "run"
    run.mkdir()
    rows = report(run)["kernels"]
    (sqlite_file,) = run.glob("*.sqlite")
    first = rows[0]
    exact = (str(first["start_ns"]), str(first["duration_ns"]), str(first["correlation_id"]), *KERNEL[3:])
    (run / "other.csv").write_text(printed([exact]))
    coarse = ("0.1", "0.2", *exact[2:])
    (run / f"{sqlite_file.stem}_cuda_gpu_trace.csv").write_text(printed([coarse], ("Start (s)", "Duration (s)", *HEADER[2:])))
    with nl.ingest(run, store=tmp_path / "store", jobs=1) as store:
        assert store.sql("SELECT count(*) FROM profiles").to_pylist()[0] == {"count_star()": 1}
        outcomes = store.sql("SELECT outcome FROM files WHERE path LIKE '%.csv'").to_pylist()
        assert [row["outcome"] for row in outcomes] == ["duplicate", "duplicate"]


def test_alone_it_is_a_profile_that_says_what_it_lacks(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "rank3_cuda_gpu_trace.csv").write_text(printed([KERNEL, COPY, SET]))
    with nl.ingest(run, store=tmp_path / "store", jobs=1) as store:
        (row,) = store.view("kernel_summary").to_pylist()
        assert (row["tool"], row["total_ns"]) == ("nsys", 250)
        assert store.sql("SELECT DISTINCT rank, gpu FROM kernels").to_pylist() == [{"rank": 3, "gpu": "NVIDIA A100"}]
        assert "reduced_input" in {each["code"] for each in store.view("diagnostic_summary").to_pylist()}
        assert store.view("idle_causes").to_pylist()[0]["cause"] == "unlinked"


QUERY = """
SELECT k.start, k."end" - k.start, k.correlationId, k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY, k.blockZ, k.registersPerThread,
    k.staticSharedMemory, k.dynamicSharedMemory, NULL, NULL, NULL, NULL, k.deviceId, k.contextId, NULL, k.streamId, s.value
FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS s ON s.id = k.demangledName ORDER BY k.start, k.rowid"""
SAME = ("start_ns", "duration_ns", "correlation_id", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z",
        "registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes", "shared_bytes", "device", "context", "stream",
        "name")


def _with_kernels(path: Path) -> list[Any]:
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
        database.text_factory = lambda data: data.decode("utf-8", "replace")
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        return database.execute(QUERY).fetchall() if "CUPTI_ACTIVITY_KIND_KERNEL" in tables else []


REPORTS = [path for path in sqlite_captures() if "healthy" not in path.name]


@pytest.mark.captures
@pytest.mark.parametrize("path", REPORTS, ids=[path.stem for path in REPORTS])
def test_the_table_of_a_real_report_gives_its_kernels(path: Path, tmp_path: Path) -> None:
    """Printed here with plain SQL after nsys's columns, in ns and, with a comma, in us; shared memory in bytes."""
    rows = _with_kernels(path)
    if not rows:
        pytest.skip("no kernels")
    expected = sorted((tuple(row.get(name) for name in SAME) for name, batch in nsys.read([path]) if name == "kernels"
                       for row in batch.to_pylist()), key=str)
    for unit, delimiter in (("ns", ","), ("us", ";")):
        head = (f"Start ({unit})", f"Duration ({unit})", *(name.replace("MB", "B") for name in HEADER[2:]))
        lines = [tuple("" if cell is None else str(cell) for cell in (
            *(f"{time // 1000},{time % 1000:03}" if unit == "us" else time for time in row[:2]), *row[2:16], f"GPU ({row[16]})",
            *row[17:])) for row in rows]
        (tmp_path / "t.csv").write_text(printed(lines, head, delimiter))
        found = read(tmp_path / "t.csv")
        assert sorted((tuple(row.get(name) for name in SAME) for row in found["kernels"]), key=str) == expected
        assert nsys.probe(tmp_path / "t.csv").identity <= nsys.probe(path).identity
