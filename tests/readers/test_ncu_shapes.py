"""The shapes and the surroundings of ncu's tables: id columns, noise, repeated headers, ragged rows, encodings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.readers.ncu_text import (
    COMMAND,
    DURATION,
    IDS,
    METRIC,
    METRIC_ALL,
    OLD_IDS,
    RULE,
    SOL,
    SUMMARY,
    codes,
    details,
    details_all,
    ids,
    line,
    metrics,
    raw,
    read,
    rule,
    save,
    told,
)

MEMORY = "Memory Workload Analysis"


def test_metrics_page(tmp_path: Path) -> None:
    tables = read(save(tmp_path, metrics(DURATION, ("dram__bytes.sum", "byte", "64"))))
    (kernel,) = tables["kernels"]
    assert kernel["metrics"] == {"gpu__time_duration.sum": 1000.0, "dram__bytes.sum": 64.0}
    assert (kernel["name"], kernel["ncu_id"], kernel["duration_ns"]) == ("k(int)", 0, 1000)
    assert (kernel["grid_x"], kernel["grid_y"], kernel["block_x"], kernel["block_y"]) == (4, 1, 32, 2)
    assert tables["profiles"][0]["format"] == "ncu metrics csv"
    assert (tables["processes"][0]["pid"], tables["processes"][0]["name"], tables["processes"][0]["host"]) == (7, "app", None)
    assert codes(tables) == {}


def test_details_page_maps_labels_by_section(tmp_path: Path) -> None:
    text = details(
        (SOL, "Memory Throughput", "%", "12.5"),
        (MEMORY, "Memory Throughput", "Gbyte/s", "345.14"),
        (SOL, "Duration", "us", "6.75"),
    )
    (kernel,) = read(save(tmp_path, text))["kernels"]
    assert kernel["metrics"] == {
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 12.5,
        "dram__bytes.sum.per_second": 345.14e9,
        "gpu__time_duration.sum": 6750.0,
    }
    assert kernel["section_set"] == f"{SOL}, {MEMORY}"


def test_details_all_page_tells_body_items_apart(tmp_path: Path) -> None:
    chart = "GPU Speed Of Light Roofline Chart"
    text = details_all(
        (chart, "Single Precision Roofline", "SM Frequency", "Ghz", "2.15"),
        (chart, "Single Precision Achieved Value", "SM Frequency", "Ghz", "2.16"),
        (SOL, "", "SM Frequency", "Ghz", "1.99"),
        (chart, "Made Up Value", "SM Frequency", "Ghz", "1.11"),
    )
    tables = read(save(tmp_path, text))
    assert tables["kernels"][0]["metrics"] == {
        "sm__cycles_elapsed.avg.per_second": 2.15e9,
        "smsp__cycles_elapsed.avg.per_second": 2.16e9,
        "gpc__cycles_elapsed.avg.per_second": 1.99e9,
    }
    (loose,) = tables["unmapped_metrics"]
    assert (loose["section"], loose["body_item"], loose["label"], loose["unit"], loose["value"]) == (
        chart,
        "Made Up Value",
        "SM Frequency",
        "hz",
        1.11e9,
    )
    assert tables["profiles"][0]["format"] == "ncu details-all csv"


def test_raw_page(tmp_path: Path) -> None:
    columns = [("gpu__time_duration.sum", "ns"), ("dram__bytes.sum", "byte"), ("launch__execution_model", "")]
    tables = read(save(tmp_path, raw(columns, ("1000", "64", "SIMT"), ("2000", "n/a", ""))))
    assert [k["metrics"] for k in tables["kernels"]] == [
        {"gpu__time_duration.sum": 1000.0, "dram__bytes.sum": 64.0},
        {"gpu__time_duration.sum": 2000.0},
    ]
    assert [k["ncu_id"] for k in tables["kernels"]] == [0, 1]
    assert [(t["kernel_row"], t["metric"], t["value"]) for t in tables["metric_texts"]] == [
        (0, "launch__execution_model", "SIMT")
    ]
    assert codes(tables) == {"metric_not_available": 2}


def test_raw_page_without_a_units_row(tmp_path: Path) -> None:
    text = raw([("gpu__time_duration.sum", "ns")], ("1000",))
    tables = read(save(tmp_path, [text[0], text[2]]))
    assert tables["kernels"][0]["metrics"] == {"gpu__time_duration.sum": 1000.0}


def test_summary_page_of_one_gpu_without_kernel_names(tmp_path: Path) -> None:
    header = [c for c in SUMMARY if c not in ("Kernel Name", "Block Size", "Grid Size")]
    text = [line((*header, *METRIC[:3], "Minimum", "Maximum", "Average"))]
    text += [line(("7", "app", "127.0.0.1", "0", "8.0", "1,000", SOL, "Duration", "us", "1.50", "2.50", "2.00"))]
    (row,) = read(save(tmp_path, text))["metric_summaries"]
    assert (row["invocations"], row["metric"], row["name"]) == (1000, "gpu__time_duration.sum", None)
    assert (row["minimum"], row["maximum"], row["average"]) == (1500.0, 2500.0, 2000.0)


def test_old_id_columns_have_no_launch_size_and_a_time_that_is_no_duration(tmp_path: Path) -> None:
    row = ("0", "7", "app", "127.0.0.1", "k", "2024-Nov-13 18:14:36", "1", "7")
    text = [line((*OLD_IDS, *METRIC)), line((*row, "GPU Speed Of Light", "Duration", "usecond", "3.20"))]
    tables = read(save(tmp_path, text))
    (kernel,) = tables["kernels"]
    assert (kernel["duration_ns"], kernel["grid_x"], kernel["block_x"], kernel["device"], kernel["start_ns"]) == (
        3200,
        None,
        None,
        None,
        None,
    )
    assert tables["devices"] == []


def test_launch_size_and_device_also_come_from_metrics(tmp_path: Path) -> None:
    row = ("0", "7", "app", "127.0.0.1", "k", "2024-Nov-13 18:14:36", "1", "7")
    columns = [
        ("launch__grid_dim_x", ""),
        ("launch__grid_dim_y", ""),
        ("launch__grid_dim_z", ""),
        ("launch__block_dim_x", "block"),
        ("launch__device_id", ""),
        ("launch__cluster_dim_x", ""),
        ("launch__cluster_dim_y", ""),
    ]
    text = [line((*OLD_IDS, *(c for c, _ in columns))), line(("",) * 8 + tuple(u for _, u in columns))]
    text.append(line((*row, "10", "2", "1", "128", "3", "2", "0")))
    tables = read(save(tmp_path, text))
    (kernel,) = tables["kernels"]
    assert (kernel["grid_x"], kernel["grid_y"], kernel["grid_z"], kernel["block_x"], kernel["block_y"]) == (10, 2, 1, 128, None)
    assert (kernel["device"], kernel["cluster_x"], kernel["cluster_y"]) == (3, 2, None)
    assert tables["devices"][0]["device"] == 3


def test_nvtx_columns_are_no_metrics(tmp_path: Path) -> None:
    push, start = "thread Domain:Push/Pop_Range:PL_Type:PL_Value", "Id:Domain:Start/Stop_Range:PL_Type:PL_Value"
    header = (*IDS[:4], push, start, *IDS[4:])
    cells = ids()
    row = (*cells[:4], "1 <default domain>:forward:none", "", *cells[4:])
    both = (*cells[:4], "1 a", "2 b", *ids(1)[4:])
    wide = [line((*header, "dram__bytes.sum")), line(("",) * 13 + ("byte",)), line((*row, "64")), line(("1", *both[1:], "32"))]
    long = [line((*header, *METRIC)), line((*row, COMMAND, "dram__bytes.sum", "byte", "64"))]
    assert [k["nvtx_range"] for k in read(save(tmp_path, wide))["kernels"]] == ["1 <default domain>:forward:none", "1 a | 2 b"]
    (kernel,) = read(save(tmp_path, long))["kernels"]
    assert (kernel["nvtx_range"], kernel["metrics"]) == ("1 <default domain>:forward:none", {"dram__bytes.sum": 64.0})


def test_compute_capability_is_text(tmp_path: Path) -> None:
    text = metrics(DURATION, of=ids(cc="10.0"))
    assert read(save(tmp_path, text))["devices"][0]["compute_capability"] == "10.0"


def test_ids_restart_per_process_and_have_gaps(tmp_path: Path) -> None:
    text = (
        metrics(DURATION, of=ids(2))
        + metrics(DURATION, of=ids(5), header=False)
        + metrics(DURATION, of=ids(2, pid=8), header=False)
    )
    tables = read(save(tmp_path, text))
    assert [(k["process_index"], k["ncu_id"]) for k in tables["kernels"]] == [(0, 2), (0, 5), (1, 2)]
    assert [p["pid"] for p in tables["processes"]] == [7, 8]


def test_rows_of_a_launch_need_not_stand_together(tmp_path: Path) -> None:
    text = (
        metrics(DURATION) + metrics(DURATION, of=ids(1), header=False) + metrics(("dram__bytes.sum", "byte", "5"), header=False)
    )
    tables = read(save(tmp_path, text))
    assert [len(k["metrics"]) for k in tables["kernels"]] == [2, 1]


def test_launches_may_alternate(tmp_path: Path) -> None:
    rows = [(f"a__{i}.sum", "", f"{i}.5") for i in range(600)]
    text = metrics(header=True)
    for i, row in enumerate(rows):
        text += metrics(row, of=ids(i % 3 // 2), header=False) + ["noise"] * (i % 50 == 0)
    tables = read(save(tmp_path, text))
    assert [len(k["metrics"]) for k in tables["kernels"]] == [400, 200]
    assert tables["kernels"][1]["metrics"]["a__5.sum"] == 5.5


NOISE = [
    "==PROF== Connected to process 7 (/bin/app)",
    "Epoch 1, loss 0.25",
    '"quoted" words, and a comma',
    "",
    'an open " quote',
    "a,b,c,d",
]


@pytest.mark.parametrize("at", range(6))
def test_noise_before_between_and_after_rows(tmp_path: Path, at: int) -> None:
    text = [
        *details((SOL, "Duration", "ns", "1000"), (SOL, "Elapsed Cycles", "cycle", "5")),
        rule("SpeedOfLight", "R", "OPT", 'do, "it"'),
    ]
    text += details((SOL, "Duration", "ns", "2000"), of=ids(1), header=False)
    tables = read(save(tmp_path, text[:at] + NOISE + text[at:]))
    assert [k["duration_ns"] for k in tables["kernels"]] == [1000, 2000]
    assert tables["kernels"][0]["metrics"]["gpc__cycles_elapsed.max"] == 5.0
    assert [a["message"] for a in tables["advice"]] == ['do, "it"']
    assert codes(tables) == {"log_lines": 5}


def test_noise_in_a_raw_page(tmp_path: Path) -> None:
    text = raw([("gpu__time_duration.sum", "ns"), ("a__b.sum", "")], ("1", "2"), ("3", "4"))
    for at in range(len(text) + 1):
        tables = read(save(tmp_path, text[:at] + NOISE + text[at:]))
        assert [k["metrics"]["a__b.sum"] for k in tables["kernels"]] == [2.0, 4.0]


def test_a_row_glued_to_output_without_a_line_end_is_found(tmp_path: Path) -> None:
    text = metrics(DURATION, ("dram__bytes.sum", "byte", "64"))
    text[1] = "step 3 " + text[1]
    text[0] = "starting ..." + text[0]
    tables = read(save(tmp_path, text))
    assert tables["kernels"][0]["metrics"] == {"gpu__time_duration.sum": 1000.0, "dram__bytes.sum": 64.0}
    assert codes(tables) == {"log_lines": 1}


def test_a_torn_row_is_counted(tmp_path: Path) -> None:
    text = metrics(DURATION, ("dram__bytes.sum", "byte", "64"), ("a__b.sum", "", "1"))
    text[2:3] = [text[2][:60], "app output", text[2][60:]]
    tables = read(save(tmp_path, text))
    assert [k["metrics"] for k in tables["kernels"]] == [{"gpu__time_duration.sum": 1000.0, "a__b.sum": 1.0}]
    assert codes(tables)["rows_lost"] == 1
    assert tables["profiles"][0]["events_lost"] == 1


def test_a_row_whose_beginning_is_damaged_is_no_output_of_the_application(tmp_path: Path) -> None:
    text = metrics(DURATION, ("dram__bytes.sum", "byte", "64"))
    text[2] = text[2].replace('","', '",\x02', 1)
    assert codes(read(save(tmp_path, text)))["rows_lost"] == 1


def test_a_cell_may_hold_line_ends(tmp_path: Path) -> None:
    text = [*details((SOL, "Duration", "ns", "1000")), rule("S", "R", "OPT", 'first\nsecond, "x"\n\nthird')]
    text += details((SOL, "Elapsed Cycles", "cycle", "5"), header=False)
    tables = read(save(tmp_path, text))
    assert [a["message"] for a in tables["advice"]] == ['first\nsecond, "x"\n\nthird']
    assert len(tables["kernels"][0]["metrics"]) == 2
    assert codes(tables) == {}


def test_repeated_headers_of_one_shape_and_of_several(tmp_path: Path) -> None:
    text = [*metrics(DURATION), "", *metrics(DURATION, of=ids(0, pid=8)), *details((SOL, "Elapsed Cycles", "cycle", "5"))]
    text += raw([("a__b.sum", "inst")], ("9",), launches=[ids(0, pid=8)])
    tables = read(save(tmp_path, text))
    assert [k["metrics"] for k in tables["kernels"]] == [
        {"gpu__time_duration.sum": 1000.0, "gpc__cycles_elapsed.max": 5.0},
        {"gpu__time_duration.sum": 1000.0, "a__b.sum": 9.0},
    ]
    assert codes(tables) == {"repeated_header": 1}
    assert tables["profiles"][0]["format"] == "ncu details csv + ncu metrics csv + ncu raw csv"


def test_full_and_short_rows_under_one_header(tmp_path: Path) -> None:
    full = line((*ids(), SOL, "Elapsed Cycles", "cycle", "5", "", "", "", "", ""))
    bare = line((*ids(), SOL, "SM Active Cycles", "cycle", "6"))
    tables = read(save(tmp_path, [*details((SOL, "Duration", "ns", "1000")), full, bare]))
    assert sorted(tables["kernels"][0]["metrics"].values()) == [5.0, 6.0, 1000.0]
    assert codes(tables) == {}


def test_three_rule_columns_of_old_versions(tmp_path: Path) -> None:
    text = [line((*OLD_IDS, *METRIC, *RULE[:3]))]
    row = ("0", "7", "app", "127.0.0.1", "k", "2020-Apr-07 17:01:05", "1", "7")
    text += [line((*row, "GPU Speed Of Light", "Duration", "nsecond", "1000")) + ","]
    text += [line((*row, "SpeedOfLight", "", "", "", "SOLBottleneck", "WRN", "Low"))]
    tables = read(save(tmp_path, text))
    (advice,) = tables["advice"]
    assert (advice["rule"], advice["type"], advice["message"], advice["speedup_type"]) == ("SOLBottleneck", "WRN", "Low", None)
    assert tables["kernels"][0]["duration_ns"] == 1000


def test_several_rules_of_one_name_are_several_rows(tmp_path: Path) -> None:
    text = [
        *details((SOL, "Duration", "ns", "1")),
        rule("S", "CPIStall", "OPT", "a", ("local", "38.16")),
        rule("S", "CPIStall", "OPT", "b", ("global", "1")),
    ]
    rows = read(save(tmp_path, text))["advice"]
    assert [(r["message"], r["speedup_type"], r["estimated_speedup_pct"]) for r in rows] == [
        ("a", "local", 38.16),
        ("b", "global", 1.0),
    ]


def test_resaved_tables_without_quotes(tmp_path: Path) -> None:
    text = [
        ",".join((*IDS, *METRIC)),
        '0,7,app,127.0.0.1,k,1,7,"(32, 1, 1)","(4, 1, 1)",0,9.0,' + f"{COMMAND},dram__bytes.sum,byte,64",
    ]
    tables = read(save(tmp_path, text))
    assert (tables["kernels"][0]["metrics"], tables["kernels"][0]["grid_x"]) == ({"dram__bytes.sum": 64.0}, 4)


def test_columns_in_another_order(tmp_path: Path) -> None:
    header = (*METRIC, *reversed(IDS))
    text = [line(header), line((COMMAND, *DURATION, *reversed(ids())))]
    (kernel,) = read(save(tmp_path, text))["kernels"]
    assert (kernel["name"], kernel["duration_ns"], kernel["stream"]) == ("k(int)", 1000, 7)


def test_long_names_with_every_sign(tmp_path: Path) -> None:
    name = 'void f<(int)4, "x", [lambda() (instance 3)]>(a, b)' + "T" * 5000
    for text in (
        metrics(DURATION, of=ids(name=name)),
        raw([("gpu__time_duration.sum", "ns")], ("1000",), launches=[ids(name=name)]),
    ):
        (kernel,) = read(save(tmp_path, text))["kernels"]
        assert (kernel["name"], kernel["duration_ns"]) == (name, 1000)


def test_a_name_that_imitates_cell_borders(tmp_path: Path) -> None:
    name = 'a","b'
    for text in (
        metrics(DURATION, of=ids(name=name)),
        raw([("gpu__time_duration.sum", "ns")], ("1000",), ("1",), launches=[ids(name=name), ids(1)]),
    ):
        tables = read(save(tmp_path, text))
        assert {k["name"]: k["duration_ns"] for k in tables["kernels"]}[name] == 1000


def test_a_section_without_metrics_is_no_row(tmp_path: Path) -> None:
    text = [*details((SOL, "Duration", "ns", "1000")), line((*ids(), "Empty Section", "", "", "")) + ","]
    text += details((SOL, "<no metrics to collect>", "", ""), header=False)
    tables = read(save(tmp_path, text))
    assert tables["kernels"][0]["metrics"] == {"gpu__time_duration.sum": 1000.0}
    assert tables["metric_texts"] == tables["unmapped_metrics"] == []


def test_messages_of_the_application_are_not_quoted(tmp_path: Path) -> None:
    tables = read(save(tmp_path, ["API_TOKEN=secret", *metrics(DURATION)]))
    assert "secret" not in told(tables, "log_lines")


def test_body_item_column_position_is_read_from_the_header(tmp_path: Path) -> None:
    header = (*IDS, "Body Item Label", "Section Name", *METRIC_ALL[2:], *RULE)
    text = [line(header), line((*ids(), "", SOL, "Duration", "ns", "1000")) + ","]
    assert read(save(tmp_path, text))["kernels"][0]["duration_ns"] == 1000


def test_many_launches_come_in_several_batches(tmp_path: Path) -> None:
    columns = [(f"a__{i:03}.sum", "") for i in range(200)]
    rows = [[f"{launch}.5"] * 200 for launch in range(700)]
    tables = read(save(tmp_path, raw(columns, *rows)))
    assert [k["ncu_id"] for k in tables["kernels"]] == list(range(700))
    assert all(set(k["metrics"].values()) == {k["ncu_id"] + 0.5} and len(k["metrics"]) == 200 for k in tables["kernels"])


def test_a_wide_table_without_its_row_of_units_says_so(tmp_path: Path) -> None:
    header, units, row = raw([("gpu__time_duration.sum", "us"), ("a__b.sum", "")], ("5.50", "7"))
    tables = read(save(tmp_path, [header, row]))
    (kernel,) = tables["kernels"]
    assert kernel["duration_ns"] is None and kernel["metrics"] == {"gpu__time_duration.sum": 5.5, "a__b.sum": 7}
    assert codes(tables)["no_units"] == 1 and "(gpu__time_duration.sum, ...)" in told(tables, "no_units")
    assert "no_units" not in codes(read(save(tmp_path, [header, units, row])))
