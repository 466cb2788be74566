"""Every real ncu file, compared with a walk by the csv module."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from nsightlens.errors import ReadError
from nsightlens.readers import ncu
from nsightlens.terminal.text import written
from tests.places import ROOT
from tests.readers.ncu_text import codes, read

DATA = ROOT / "../shared/data/ncu"
LABELS = DATA.parents[1] / "formats/ncu-labels.tsv"
CSVS = sorted(DATA.glob("*.csv")) if DATA.is_dir() else []
EXPONENTS = {
    "us": 3,
    "ms": 6,
    "usecond": 3,
    "msecond": 6,
    "second": 9,
    "Kbyte": 3,
    "Mbyte": 6,
    "Gbyte": 9,
    "Gbyte/s": 9,
    "Mbyte/s": 6,
    "Tbyte/s": 12,
    "Ghz": 9,
    "Mhz": 6,
    "Kbyte/block": 3,
}
KNOWN = {
    "",
    "%",
    "ns",
    "nsecond",
    "byte",
    "byte/s",
    "hz",
    "cycle",
    "inst",
    "inst/cycle",
    "block",
    "warp",
    "cluster",
    "sector",
    "pass",
    "byte/block",
    "byte/cycle",
    "register/thread",
    "SM",
    "thread",
    "sample",
    *EXPONENTS,
}

pytestmark = [pytest.mark.captures, pytest.mark.skipif(not CSVS, reason="no ../shared/data/ncu")]


def walk(path: Path) -> tuple[list[str], list[str], list[list[str]]]:
    """Header, units (wide files only) and rows, found by nothing but the csv module."""
    csv.field_size_limit(2**30)
    with path.open(encoding="utf-8-sig", newline="") as text:
        rows = list(csv.reader(text))
    start = next((i for i, row in enumerate(rows) if "Kernel Name" in row and "Process ID" in row), None)
    if start is None:
        return [], [], []
    header, body = rows[start], rows[start + 1 :]
    wide = "Metric Name" not in header
    return header, body[0] if wide else [], body[1:] if wide else body


def is_launch_file(path: Path) -> bool:
    return "ID" in walk(path)[0]


def number(text: str) -> Decimal | None:
    plain = text.replace(",", "")  # no real file here has a decimal comma
    return Decimal(plain) if re.fullmatch(r"-?\d+(\.\d+)?", plain) else None


def scaled(text: str, unit: str) -> float | None:
    assert unit in KNOWN, unit
    value = number(text)
    return None if value is None else float(value.scaleb(EXPONENTS.get(unit, 0)))


def label_names() -> dict[tuple[str, str, str], set[str]]:
    found = defaultdict(set)
    with LABELS.open(encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text, delimiter="\t"):
            found[row["section_name"], row["body_item"], row["label"]].add(row["metric"])
    return found


def part(body: str, label: str) -> set[str]:
    """Return the metric of a line of a throughput's breakdown, which ncu prints as the unit and the words of its name."""
    if not body.endswith("Throughput Breakdown"):
        return set()
    unit, _, words = label.partition(": ")
    unit = "fbpa" if label == "DRAM: Dram Sectors" else {"L1": "l1tex", "L2": "lts"}.get(unit, unit.lower())
    return {f"{unit}__{'_'.join(words.lower().split())}.avg.pct_of_peak_sustained_elapsed"}


def expected_metrics(
    path: Path,
) -> tuple[dict[tuple[str, str], dict[str, set[float]]], list[tuple[Any, ...]], list[tuple[str, str]], int]:
    """Per launch (process, ID) and raw metric the values printed; rows without a raw name; texts; rule rows."""
    header, units, rows = walk(path)
    values: dict[tuple[str, str], dict[str, set[float]]] = defaultdict(lambda: defaultdict(set))
    unmapped, texts, rules = [], [], 0
    names = label_names()
    for row in rows:
        cells = dict(zip(header, row, strict=False))
        key = (cells["Process ID"], cells["ID"])
        if units:
            first = header.index("CC") + 1
            triples = [(header[i], units[i], row[i]) for i in range(first, len(header))]
        elif cells["Metric Name"]:
            section, label = cells["Section Name"], cells["Metric Name"]
            body = cells.get("Body Item Label", "")
            raw = {label} if section == "Command line profiler metrics" else names[section, body, label] | part(body, label)
            if len(raw) != 1:
                unmapped.append((section, label, scaled(cells["Metric Value"], cells["Metric Unit"])))
                continue
            triples = [(raw.copy().pop(), cells["Metric Unit"], cells["Metric Value"])]
        else:
            rules += 1
            continue
        for name, unit, printed in triples:
            value = scaled(printed, unit)
            if value is not None:
                values[key][name].add(value)
            elif printed not in ("", "n/a"):
                texts.append((name, printed))
    return values, unmapped, texts, rules


@pytest.mark.parametrize("path", [p for p in CSVS if is_launch_file(p)], ids=lambda p: p.name[:70])
def test_file_holds_what_a_csv_walk_finds(path: Path) -> None:
    values, unmapped, texts, rules = expected_metrics(path)
    header, _, rows = walk(path)
    tables = read(path)
    pids = [process["pid"] for process in tables["processes"]]
    found = {(str(pids[k["process_index"]]), str(k["ncu_id"])): k for k in tables["kernels"]}
    assert len(tables["kernels"]) == len(found) == len(values)
    for key, metrics in values.items():
        assert found[key]["metrics"].keys() == metrics.keys()
        assert all(found[key]["metrics"][name] in printed for name, printed in metrics.items())
    assert sorted((r["section"], r["label"], r["value"]) for r in tables["unmapped_metrics"]) == sorted(unmapped)
    assert sorted((r["metric"], r["value"]) for r in tables["metric_texts"]) == sorted(texts)
    assert len(tables["advice"]) == rules
    for row in rows:
        cells = dict(zip(header, row, strict=False))
        kernel = found[cells["Process ID"], cells["ID"]]
        assert kernel["name"] == cells["Kernel Name"]
        assert f"({kernel['grid_x']}, {kernel['grid_y']}, {kernel['grid_z']})" == cells["Grid Size"]
        assert f"({kernel['block_x']}, {kernel['block_y']}, {kernel['block_z']})" == cells["Block Size"]
        assert (str(kernel["context"]), str(kernel["stream"]), str(kernel["device"])) == (
            cells["Context"],
            cells["Stream"],
            cells["Device"],
        )
        duration = values[cells["Process ID"], cells["ID"]].get("gpu__time_duration.sum", {None})
        assert kernel["duration_ns"] in {None if ns is None else round(ns) for ns in duration}
        assert kernel["start_ns"] is None
    bad = {"metric_conflict", "label_contradicted", "rows_lost", "truncated", "unknown_unit", "number_locale_guessed"}
    assert not bad & codes(tables).keys()


@pytest.mark.parametrize("path", [p for p in CSVS if is_launch_file(p)], ids=lambda p: p.name[:70])
def test_rules_are_kept_whole(path: Path) -> None:
    header, _, rows = walk(path)
    wanted = []
    for row in rows:
        cells = dict(zip(header, row, strict=False))
        if cells.get("Rule Name"):
            speedup = cells["Estimated Speedup"]
            wanted.append(
                (
                    cells["Section Name"],
                    cells["Rule Name"],
                    cells["Rule Type"],
                    cells["Rule Description"],
                    cells["Estimated Speedup Type"] or None,
                    float(speedup) if speedup else None,
                )
            )
    columns = ("section", "rule", "type", "message", "speedup_type", "estimated_speedup_pct")
    assert [tuple(row[c] for c in columns) for row in read(path)["advice"]] == wanted


@pytest.mark.parametrize("path", [p for p in CSVS if "Invocations" in walk(p)[0]], ids=lambda p: p.name[:70])
def test_summaries_are_kept_apart(path: Path) -> None:
    header, _, rows = walk(path)
    tables = read(path)
    wanted = [
        (
            cells["Kernel Name"],
            int(cells["Invocations"]),
            cells["Metric Name"],
            *(scaled(cells[c], cells["Metric Unit"]) for c in ("Minimum", "Maximum", "Average")),
        )
        for cells in (dict(zip(header, row, strict=True)) for row in rows)
    ]
    columns = ("name", "invocations", "metric", "minimum", "maximum", "average")
    assert [tuple(row[c] for c in columns) for row in tables["metric_summaries"]] == wanted
    assert tables["kernels"] == []
    assert tables["devices"][0]["compute_capability"] == "8.0"
    assert codes(tables)["summary_only"] == len(wanted)
    assert ncu.probe(path).kind == "ncu summary csv"


@pytest.mark.parametrize("path", [p for p in CSVS if is_launch_file(p)], ids=lambda p: p.name[:70])
def test_probe_names_each_launch(path: Path) -> None:
    header, _, rows = walk(path)
    columns = ("Process ID", "ID", "Kernel Name", "Block Size", "Grid Size")
    wanted = {" ".join(row[header.index(c)] for c in columns) for row in rows}
    probe = ncu.probe(path)
    assert probe.identity == wanted
    assert {str(hint.pid) for hint in probe.processes} == {name.split()[0] for name in wanted}
    assert probe.kind == read(path)["profiles"][0]["format"]


@pytest.mark.parametrize("path", CSVS, ids=lambda p: p.name[:70])
def test_only_ncu_content_is_sniffed(path: Path) -> None:
    head = path.read_bytes()[:65536]
    is_ours = bool(walk(path)[0]) or b"==PROF==" in head
    assert ncu.sniff(path, head) == is_ours
    if (not is_ours and not path.name.endswith(("timing.csv", "peaks.csv"))) or "hierarchical_timing" in path.name:
        kind, _, todo = ncu.recognise_foreign_csv(head.decode()) or ("", "", "")
        assert kind.startswith(("nvprof", "nsys stats", "hand-made"))
        assert "ncu" in written(todo) or "nsys export" in written(todo)


def test_logs_without_a_table_say_why() -> None:
    logs = [p for p in CSVS if ncu.sniff(p, p.read_bytes()) and not walk(p)[0]]
    assert len(logs) == 2
    for path in logs:
        with pytest.raises(ReadError) as error:
            ncu.probe(path)
        assert error.value.code == "application_failed"
        with pytest.raises(ReadError):
            read(path)
        assert not ncu.mergeable([path])


def launch_pages(number: str) -> list[Path]:
    return sorted(DATA.glob(f"CodeGandee*v2_kernel_{number}_ncu.*.csv"))


@pytest.mark.parametrize("number", sorted({p.name.split("_kernel_")[1][:4] for p in CSVS if "v2_kernel_" in p.name}))
def test_four_pages_of_a_launch_are_one_row(number: str) -> None:
    pages = launch_pages(number)
    assert len(pages) == 4
    assert ncu.mergeable(pages)
    tables = read(*pages)
    assert len(tables["kernels"]) == 1
    single = [read(page) for page in pages]
    united = {name for one in single for name in one["kernels"][0]["metrics"]}
    assert tables["kernels"][0]["metrics"].keys() == united
    for one in single:
        assert all(tables["kernels"][0]["metrics"][name] == value for name, value in one["kernels"][0]["metrics"].items())
    rules = {(r["rule"], r["message"]) for one in single for r in one["advice"]}
    assert sorted((r["rule"], r["message"]) for r in tables["advice"]) == sorted(rules)
    assert codes(tables)["pages_merged"] == 1
    assert "metric_conflict" not in codes(tables)


def test_pages_of_different_launches_stay_apart() -> None:
    tables = read(*launch_pages("0001"), *launch_pages("0002"))
    assert len(tables["kernels"]) == 2
    assert len(tables["processes"]) == 2


def test_the_chart_of_kernel_1_holds_nvidias_values() -> None:
    metrics = read(*launch_pages("0001"))["kernels"][0]["metrics"]
    clock = metrics["sm__cycles_elapsed.avg.per_second"]
    assert metrics["derived__sm__sass_thread_inst_executed_op_ffma_pred_on_x2"] * clock == pytest.approx(93.57e12, rel=1e-4)
    assert metrics["dram__bytes.sum.peak_sustained"] * metrics["dram__cycles_elapsed.avg.per_second"] == pytest.approx(
        1756e9, rel=1e-3
    )
    per_cycle = metrics["derived__smsp__sass_thread_inst_executed_op_ffma_pred_on_x2"] + sum(
        metrics[f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed"] for op in ("fadd", "fmul")
    )
    achieved = per_cycle * metrics["smsp__cycles_elapsed.avg.per_second"]
    assert achieved == pytest.approx(344.2e9, rel=1e-3)
    assert metrics["dram__bytes.sum.per_second"] == 345.14e9
    assert achieved / metrics["dram__bytes.sum.per_second"] == pytest.approx(0.997, abs=1e-3)
    assert metrics["dram__bytes_read.sum"] / metrics["gpu__time_duration.sum"] == pytest.approx(345.2, abs=0.1)
    assert metrics["gpc__cycles_elapsed.avg.per_second"] == 1.99e9


def test_tensor_rates_follow_from_the_tensor_path() -> None:
    kernel = read(*launch_pages("0003"))["kernels"][0]
    work = sum(v for name, v in kernel["metrics"].items() if name.startswith("sm__ops_path_tensor") and name.endswith(".sum"))
    assert work == 1_275_068_416
    assert work / kernel["duration_ns"] / 1e3 == pytest.approx(54.4, abs=0.05)
    none = read(*launch_pages("0001"))["kernels"][0]["metrics"]
    assert none["sm__ops_path_tensor_src_bf16_dst_fp32.sum"] == 0
    assert "sm__ops_path_tensor_src_bf16_dst_bf16.sum" not in none


def test_the_t4_ran_at_its_base_clock() -> None:
    kernel = read(next(p for p in CSVS if "nsightful" in p.name))["kernels"][0]
    assert kernel["metrics"]["gpc__cycles_elapsed.avg.per_second"] == 584998877.44
    assert (kernel["registers_per_thread"], kernel["shared_bytes"], kernel["duration_ns"]) == (32, 0, 21058944)


def test_the_b200_tells_what_it_is() -> None:
    for path in [p for p in CSVS if is_launch_file(p) and "meinie" in p.name]:
        tables = read(path)
        (device,) = tables["devices"]
        assert (device["name"], device["compute_capability"], device["sm_count"]) == ("NVIDIA B200", "10.0", 148)
        assert device["memory_bandwidth_bytes_per_s"] == pytest.approx(7672e9, rel=1e-3)
        assert (device["core_clock_hz"], device["memory_clock_hz"]) == (1.965e9, 3.996e9)
        assert (device["memory_bytes"], device["l2_bytes"], device["threads_per_sm"]) == (191503138816, 132644864, 2048)
        assert all(k["passes"] == k["metrics"]["profiler__replayer_passes"] for k in tables["kernels"])
        assert all(k["shared_bytes"] == k["dynamic_shared_bytes"] + k["static_shared_bytes"] for k in tables["kernels"])
        assert all(k["cluster_x"] is None for k in tables["kernels"])
