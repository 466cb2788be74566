"""Numbers: units, locales, precision, and cells that are none."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.numbers import FormatEvidence, parse, percentage
from nsightlens.readers.ncu.units import base_unit
from tests.readers.ncu_text import (
    COMMAND,
    DURATION,
    METRIC,
    SOL,
    SUMMARY,
    codes,
    details,
    ids,
    line,
    metrics,
    raw,
    read,
    rule,
    save,
    told,
)


@pytest.mark.parametrize(
    ("unit", "base", "exponent"),
    [
        ("ns", "ns", 0),
        ("nsecond", "ns", 0),
        ("us", "ns", 3),
        ("usecond", "ns", 3),
        ("ms", "ns", 6),
        ("msecond", "ns", 6),
        ("s", "ns", 9),
        ("second", "ns", 9),
        ("byte", "byte", 0),
        ("Kbyte", "byte", 3),
        ("Mbyte", "byte", 6),
        ("Gbyte", "byte", 9),
        ("Tbyte", "byte", 12),
        ("byte/second", "byte/s", 0),
        ("Kbyte/second", "byte/s", 3),
        ("Gbyte/second", "byte/s", 9),
        ("byte/s", "byte/s", 0),
        ("Tbyte/s", "byte/s", 12),
        ("byte/nsecond", "byte/s", 9),
        ("cycle/nsecond", "hz", 9),
        ("cycle/usecond", "hz", 6),
        ("cycle/second", "hz", 0),
        ("Ghz", "hz", 9),
        ("Mhz", "hz", 6),
        ("hz", "hz", 0),
        ("Khz", "hz", 3),
        ("inst/cycle", "inst/cycle", 0),
        ("%", "%", 0),
        ("", "", 0),
        ("Kinst", "inst", 3),
        ("Msector", "sector", 6),
        ("register/thread", "register/thread", 0),
        ("Kbyte/block", "byte/block", 3),
        ("byte/block", "byte/block", 0),
        ("SM", "SM", 0),
        ("TPC", "TPC", 0),
        ("GPC", "GPC", 0),
        ("pass", "pass", 0),
        ("Kbranches", "branches", 3),
    ],
)
def test_units(unit: str, base: str, exponent: int) -> None:
    assert base_unit(unit) == (base, exponent, True)


@pytest.mark.parametrize("unit", ["furlong", "Kfurlong", "byte/furlong", "K", "/", "byte/", "xhz"])
def test_unknown_units_are_kept_and_told(tmp_path: Path, unit: str) -> None:
    assert base_unit(unit) == (unit, 0, False)
    for text in (metrics(("a__b.sum", unit, "7.17")), raw([("a__b.sum", unit)], ("7.17",))):
        tables = read(save(tmp_path, text))
        assert tables["kernels"][0]["metrics"] == {"a__b.sum": 7.17}
        assert codes(tables) == {"unknown_unit": 1}
        assert unit in told(tables, "unknown_unit")


@pytest.mark.parametrize("wide", [False, True])
def test_numbers_with_exponents(tmp_path: Path, wide: bool) -> None:
    cells = {"a__0.sum": "1.5e3", "a__1.sum": "0E0", "a__2.sum": "25E-1", "a__3.sum": "0.5"}
    text = raw([(n, "us") for n in cells], list(cells.values())) if wide else metrics(*[(n, "us", v) for n, v in cells.items()])
    twice = [save(tmp_path, text, name) for name in ("a.csv", "b.csv")]
    wanted = {"a__0.sum": 1.5e6, "a__1.sum": 0.0, "a__2.sum": 2500.0, "a__3.sum": 500.0}
    assert read(twice[0])["kernels"][0]["metrics"] == wanted
    assert read(*twice)["kernels"][0]["metrics"] == wanted


def test_one_metric_in_several_units(tmp_path: Path) -> None:
    text = [
        *metrics(("gpu__time_duration.sum", "us", "7.17")),
        *metrics(("gpu__time_duration.sum", "ns", "960"), of=ids(1), header=False),
    ]
    assert [k["metrics"]["gpu__time_duration.sum"] for k in read(save(tmp_path, text))["kernels"]] == [7170.0, 960.0]


@given(
    st.decimals(min_value=0, max_value=10**7, places=2), st.sampled_from([("us", 3), ("Mbyte", 6), ("Ghz", 9), ("Tbyte/s", 12)])
)
@settings(max_examples=200)
def test_scaling_rounds_once(value: Decimal, unit: tuple[str, int]) -> None:
    parsed = parse(pa.array([str(value)]), ".", Notes(), np.ones(1, np.int64))
    (found,) = parsed.doubles(np.zeros(1, np.int64), np.array([base_unit(unit[0]).exponent]))
    assert found == float(value.scaleb(unit[1]))


def grouped(value: Decimal, group: str, decimal: str) -> str:
    return f"{value:,f}".replace(",", "G").replace(".", decimal).replace("G", group)


STYLES = {
    "en_US": (",", "."),
    "C": ("", "."),
    "de_DE": (".", ","),
    "fr_FR": ("\u202f", ","),
    "de_CH": ("\u2019", "."),
    "pl_PL": ("\u00a0", ","),
}


@given(
    st.lists(
        st.decimals(min_value=-(10**9), max_value=10**9, places=2) | st.integers(0, 10**12).map(Decimal), min_size=1, max_size=30
    ),
    st.sampled_from(sorted(STYLES)),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=60)
def test_numbers_survive_every_locale(
    tmp_path_factory: pytest.TempPathFactory, values: list[Decimal], style: str, wide: bool, bom: bool
) -> None:
    printed = [grouped(v, *STYLES[style]) for v in [*values, Decimal("65.77")]]
    names = [f"a__m{i}.sum" for i in range(len(printed))]
    if wide:
        text = raw([(name, "") for name in names], printed)
    else:
        text = metrics(*[(name, "", value) for name, value in zip(names, printed, strict=True)])
    path = save(tmp_path_factory.mktemp("locale"), "\n".join(text).encode("utf-8-sig" if bom else "utf-8"))
    tables = read(path)
    assert tables["kernels"][0]["metrics"] == {name: float(v) for name, v in zip(names, [*values, Decimal("65.77")], strict=True)}
    assert codes(tables) == {}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    ("printed", "values"),
    [
        (["27.595.520", "117.344"], [27595520, 117344]),
        (["65,77", "117.344"], [65.77, 117344]),
        (["0,5", "1.000"], [0.5, 1000]),
        (["65.77", "117,344"], [65.77, 117344]),
        (["1,234,567", "117,344"], [1234567, 117344]),
        (["1,234.56", "1,000"], [1234.56, 1000]),
        (["1.234,56", "1.000"], [1234.56, 1000]),
        (["1318955", "0.08"], [1318955, 0.08]),
        (["0.123", "1.234"], [0.123, 1.234]),
        (["1234.567", "1.234"], [1234.567, 1.234]),
        (["-65,77", "-1.234"], [-65.77, -1234]),
    ],
)
def test_the_whole_file_decides_on_the_locale(tmp_path: Path, printed: list[str], values: list[float], wide: bool) -> None:
    columns = [("a__0.sum", ""), ("a__1.sum", "")]
    text = raw(columns, printed) if wide else metrics(*[(n, u, p) for (n, u), p in zip(columns, printed, strict=True)])
    tables = read(save(tmp_path, text))
    assert tables["kernels"][0]["metrics"] == {"a__0.sum": values[0], "a__1.sum": values[1]}
    assert codes(tables) == {}


@pytest.mark.parametrize(("printed", "point", "comma"), [("13,485", 13485.0, 13.485), ("117.344", 117.344, 117344.0)])
@pytest.mark.parametrize("wide", [False, True])
def test_ambiguous_files_say_so_and_can_be_overridden(
    tmp_path: Path, printed: str, point: float, comma: float, wide: bool
) -> None:
    path = save(tmp_path, raw([("a__b.sum", "")], (printed,)) if wide else metrics(("a__b.sum", "", printed)))
    tables = read(path)
    assert tables["kernels"][0]["metrics"] == {"a__b.sum": point}
    assert codes(tables) == {"number_locale_guessed": 1}
    assert printed in told(tables, "number_locale_guessed")
    for decimal, value in ((".", point), (",", comma)):
        tables = read(path, decimal=decimal)
        assert (tables["kernels"][0]["metrics"], codes(tables)) == ({"a__b.sum": value}, {})


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    ("printed", "unit", "value"),
    [
        ("117.344", "ns", 117344), ("117.344", "byte", 117344), ("117.344", "sector", 117344), ("117,344", "inst", 117344),
        ("117.344", "us", 117344), ("117,344", "us", 117344), ("117.344", "Kbyte", 117344), ("117,344", "Mbyte", 117344000),
        ("117.344", "%", 117.344), ("117.344", "", 117.344), ("117,344", "", 117344), ("117.344", "byte/s", 117.344),
        ("117.344", "never seen", 117.344),
    ],
)
def test_units_say_what_an_only_sign_most_likely_is(tmp_path: Path, printed: str, unit: str, value: float, wide: bool) -> None:
    """A count has no decimals, and a value that ncu scaled is below 1000."""
    tables = read(save(tmp_path, raw([("a__b.sum", unit)], (printed,)) if wide else metrics(("a__b.sum", unit, printed))))
    assert tables["kernels"][0]["metrics"] == {"a__b.sum": value}
    assert codes(tables)["number_locale_guessed"] == 1


def test_units_are_asked_only_where_no_number_tells(tmp_path: Path) -> None:
    tables = read(save(tmp_path, metrics(("a__b.sum", "ns", "117.344"), ("a__c.avg", "%", "65.77"))))
    assert tables["kernels"][0]["metrics"] == {"a__b.sum": 117.344, "a__c.avg": 65.77}


def test_units_weigh_in_summaries_too(tmp_path: Path) -> None:
    row = ("7", "app", "127.0.0.1", "k", "(32, 1, 1)", "(4, 1, 1)", "0", "8.0", "2", COMMAND, "a__b.sum", "ns", *["117.344"] * 3)
    text = [line((*SUMMARY, *METRIC[:3], "Minimum", "Maximum", "Average")), line(row)]
    found = read(save(tmp_path, text))["metric_summaries"][0]
    assert (found["minimum"], found["average"]) == (117344, 117344)


@pytest.mark.parametrize("wide", [False, True])
def test_numbers_of_another_locale_stay_texts(tmp_path: Path, wide: bool) -> None:
    cells = {"a__0.sum": "1.50", "a__1.sum": "2.25", "a__2.sum": "65,77"}
    path = save(
        tmp_path,
        raw([(n, "") for n in cells], list(cells.values())) if wide else metrics(*[(n, "", v) for n, v in cells.items()]),
    )
    tables = read(path)
    assert tables["kernels"][0]["metrics"] == {"a__0.sum": 1.5, "a__1.sum": 2.25}
    assert [(t["metric"], t["value"]) for t in tables["metric_texts"]] == [("a__2.sum", "65,77")]
    assert codes(tables) == {"number_locale_conflict": 1}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("n/a", "metric_not_available"),
        ("", "metric_not_available"),
        ("<no metrics to collect>", "metric_not_available"),
        ("nan", "metric_not_finite"),
        ("inf", "metric_not_finite"),
        ("-inf", "metric_not_finite"),
        ("-nan(ind)", "metric_not_finite"),
        ("9" * 400, "metric_not_finite"),
    ],
)
def test_cells_without_a_number_are_absent(tmp_path: Path, cell: str, code: str, wide: bool) -> None:
    path = save(
        tmp_path,
        raw([("a__0.sum", ""), ("a__1.sum", "")], ("0.00", cell))
        if wide
        else metrics(("a__0.sum", "", "0.00"), ("a__1.sum", "", cell)),
    )
    tables = read(path)
    assert tables["kernels"][0]["metrics"] == {"a__0.sum": 0.0}
    assert tables["metric_texts"] == []
    assert codes(tables) == {code: 1}


@pytest.mark.parametrize("wide", [False, True])
def test_flagged_and_multi_instance_cells(tmp_path: Path, wide: bool) -> None:
    cells = [
        "(!) nan",
        "(!) 1,234.50",
        "158 (0: 1.5; 1: 156.5)",
        "2,116 (1; 2; 2113)",
        "nan (1; 2)",
        "NVIDIA B200 (MIG 1g)",
        "1.5e3",
        "1e999",
    ]
    names = [f"a__{i}.sum" for i in range(len(cells))]
    path = save(
        tmp_path,
        raw([(n, "") for n in names], cells) if wide else metrics(*[(n, "", c) for n, c in zip(names, cells, strict=True)]),
    )
    tables = read(path)
    assert tables["kernels"][0]["metrics"] == {"a__1.sum": 1234.5, "a__2.sum": 158.0, "a__3.sum": 2116.0, "a__6.sum": 1500.0}
    assert [t["value"] for t in tables["metric_texts"]] == ["NVIDIA B200 (MIG 1g)", "1e999"]
    assert codes(tables) == {"metric_flagged": 2, "metric_not_finite": 2, "instances_dropped": 2}


def test_texts_under_labels_have_the_raw_name(tmp_path: Path) -> None:
    text = details(
        ("Launch Statistics", "Function Cache Configuration", "", "CachePreferNone"),
        ("New Section", "New Label", "", "some text"),
    )
    assert [(t["metric"], t["value"]) for t in read(save(tmp_path, text))["metric_texts"]] == [
        ("launch__func_cache_config", "CachePreferNone"),
        ("New Section / New Label", "some text"),
    ]


def test_speedups_are_no_evidence_of_the_locale(tmp_path: Path) -> None:
    text = [
        *details((SOL, "Elapsed Cycles", "cycle", "27.595.520"), (SOL, "Duration", "us", "6,75")),
        rule("S", "R", "OPT", "x", ("local", "38.16")),
    ]
    tables = read(save(tmp_path, text))
    assert sorted(tables["kernels"][0]["metrics"].values()) == [6750.0, 27595520.0]
    assert tables["advice"][0]["estimated_speedup_pct"] == 38.16
    assert [percentage(t) for t in ("38,16", "", None, "x", "inf")] == [38.16, None, None, None, None]


def test_rounded_prints_are_no_exact_integers(tmp_path: Path) -> None:
    launch = "Launch Statistics"
    text = details(
        (launch, "Static Shared Memory Per Block", "Kbyte/block", "1.02"),
        (launch, "Dynamic Shared Memory Per Block", "Kbyte/block", "16.896"),
        (launch, "Registers Per Thread", "register/thread", "64"),
        (SOL, "Duration", "us", "6.75"),
    )
    tables = read(save(tmp_path, text))
    (kernel,) = tables["kernels"]
    assert (kernel["static_shared_bytes"], kernel["dynamic_shared_bytes"], kernel["shared_bytes"]) == (None, 16896, None)
    assert (kernel["registers_per_thread"], kernel["duration_ns"]) == (64, 6750)
    assert kernel["metrics"]["launch__shared_mem_per_block_static"] == 1020.0
    assert codes(tables) == {"rounded_in_print": 2}


@pytest.mark.parametrize(("rollup", "value"), [("avg", 1000), ("max", 1000), ("min", 1000)])
def test_any_rollup_of_the_duration_is_the_duration(tmp_path: Path, rollup: str, value: int) -> None:
    assert read(save(tmp_path, metrics((f"gpu__time_duration.{rollup}", "ns", "1000"))))["kernels"][0]["duration_ns"] == value
    both = metrics((f"gpu__time_duration.{rollup}", "ns", "7"), DURATION)
    assert read(save(tmp_path, both))["kernels"][0]["duration_ns"] == 1000
    assert read(save(tmp_path, metrics(("gpu__time_active.sum", "ns", "7"))))["kernels"][0]["duration_ns"] is None


@pytest.mark.parametrize("value", ["-5", "1" * 30])
def test_impossible_durations_are_null(tmp_path: Path, value: str) -> None:
    assert read(save(tmp_path, metrics(("gpu__time_duration.sum", "ns", value))))["kernels"][0]["duration_ns"] is None


@pytest.mark.parametrize("unit", ["bogounit", "", "byte", "hz"])
def test_a_duration_in_no_unit_of_time_is_null(tmp_path: Path, unit: str) -> None:
    name = "gpu__time_duration.sum"
    long = [*metrics((name, unit, "1.5"), ("a__b.sum", "", "3")), *metrics(DURATION, of=ids(1), header=False)]
    wide = raw([(name, unit), ("a__b.sum", "")], ("1.5", "3"), ("n/a", "3"))
    for text, durations in ((long, [None, 1000]), (wide, [None, None])):
        found = read(save(tmp_path, text))
        assert [kernel["duration_ns"] for kernel in found["kernels"]] == durations
        assert found["kernels"][0]["metrics"] == {name: 1.5, "a__b.sum": 3.0}
        assert ("unknown_unit" in codes(found)) == (unit == "bogounit")


def test_a_duration_in_no_unit_of_time_on_one_of_two_pages_is_null(tmp_path: Path) -> None:
    good = save(tmp_path, [*metrics(DURATION), *metrics(DURATION, of=ids(1), header=False)], "a.csv")
    odd = save(tmp_path, raw([("gpu__time_duration.sum", "bogounit")], ("1000",), launches=[ids(1)]), "b.csv")
    assert [kernel["duration_ns"] for kernel in read(good, odd)["kernels"]] == [1000, None]


@pytest.mark.parametrize(("ns", "kept"), [((1 << 43) * 1000 - 1, True), ((1 << 43) * 1000, False), (1 << 62, False)])
def test_durations_end_where_no_kernel_runs_so_long(tmp_path: Path, ns: int, kept: bool) -> None:
    (kernel,) = read(save(tmp_path, metrics(("gpu__time_duration.sum", "ns", str(ns)))))["kernels"]
    assert kernel["duration_ns"] == (ns if kept else None)


@pytest.mark.parametrize("size", ["(1, 2)", "1", "", "(a, b, c)", "(99999999999, 1, 1)", "(-1, 1, 1)"])
def test_odd_launch_sizes_are_null(tmp_path: Path, size: str) -> None:
    (kernel,) = read(save(tmp_path, metrics(DURATION, of=ids(grid=size))))["kernels"]
    assert (kernel["grid_x"], kernel["grid_y"], kernel["grid_z"]) == (None, None, None)


def test_evidence_counts_what_fits_one_format_only() -> None:
    evidence = FormatEvidence()
    evidence.see(pa.array(["1.5", "1,234.5", "1,234,567", "1,5", "1.234", "1,234", "7", "CC", "12.0 (1; 2)"]))
    assert (evidence.point, evidence.comma, evidence.either) == (3, 1, 2)


def test_duplicate_columns_of_a_raw_page(tmp_path: Path) -> None:
    text = raw([("a__b.sum", "Kbyte"), ("a__b.sum", "byte"), ("a__c.sum", ""), ("a__c.sum", "")], ("1.02", "1024", "1", "2"))
    tables = read(save(tmp_path, text))
    assert tables["kernels"][0]["metrics"] == {"a__b.sum": 1024.0, "a__c.sum": 1.0}
    assert codes(tables) == {"metric_conflict": 1}


def test_a_summary_in_units(tmp_path: Path) -> None:
    header = line(
        (
            "Process ID",
            "Kernel Name",
            "Invocations",
            "Section Name",
            "Metric Name",
            "Metric Unit",
            "Minimum",
            "Maximum",
            "Average",
        )
    )
    text = [header, line(("7", "k", "3", "", "gpu__time_duration.sum", "us", "1,50", "n/a", "1.234,00"))]
    (row,) = read(save(tmp_path, text))["metric_summaries"]
    assert (row["minimum"], row["maximum"], row["average"]) == (1500.0, None, 1234000.0)


def test_a_number_that_no_double_holds_is_said_in_few_words(tmp_path: Path) -> None:
    tables = read(save(tmp_path, metrics(("a__0.sum", "", "9" * 400), ("a__1.sum", "", "1"))))
    assert tables["kernels"][0]["metrics"] == {"a__1.sum": 1.0}
    (said,) = tables["diagnostics"]
    assert said["code"] == "metric_not_finite"
    assert f"{'9' * 40}… (400 characters)" in said["message"]
