"""Several pages of one report: one row per launch, the more precise print, and contradictions."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsightlens.errors import ReadError
from nsightlens.readers import ncu
from nsightlens.readers.ncu.page import distinct, resolve
from tests.readers.ncu_text import (
    COMMAND,
    DURATION,
    SOL,
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

MEMORY = "Memory Workload Analysis"


def test_pages_unite_and_the_more_precise_print_wins(tmp_path: Path) -> None:
    first = save(tmp_path, details((SOL, "Duration", "us", "6.75"), (SOL, "Elapsed Cycles", "cycle", "13,485")), "details.csv")
    second = save(tmp_path, raw([("gpu__time_duration.sum", "ns"), ("a__b.sum", "")], ("6752", "1")), "raw.csv")
    for pages in ([first, second], [second, first]):
        assert ncu.mergeable(pages)
        tables = read(*pages)
        (kernel,) = tables["kernels"]
        assert kernel["metrics"] == {"gpu__time_duration.sum": 6752.0, "gpc__cycles_elapsed.max": 13485.0, "a__b.sum": 1.0}
        assert kernel["duration_ns"] == 6752
        assert codes(tables) == {"pages_merged": 1}
        assert tables["profiles"][0]["format"] == "ncu details csv + ncu raw csv"


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        (("us", "6.75"), ("ns", "6752"), True),
        (("us", "6.75"), ("ns", "6756"), False),
        (("Mbyte", "2.33"), ("byte", "2326000"), True),
        (("Mbyte", "2.33"), ("byte", "2324000"), False),
        (("%", "19.66"), ("%", "19.66"), True),
        (("%", "19.66"), ("%", "19.68"), False),
        (("", "5"), ("", "6"), False),
        (("us", "6.75"), ("us", "n/a"), True),
        (("", "1234.5"), ("", "1,234.5"), True),
    ],
)
@pytest.mark.parametrize("wide", [False, True])
def test_conflicts_are_judged_within_the_printed_digits(
    tmp_path: Path, one: tuple[str, str], other: tuple[str, str], agree: bool, wide: bool
) -> None:
    name = "a__b.sum" if one[0] != "us" else "gpu__time_duration.sum"
    first = save(tmp_path, metrics((name, *one), ("a__sure.sum", "", "0.5")), "a.csv")
    columns = [(name, other[0]), ("a__sure.sum", "")]
    text = raw(columns, (other[1], "0.5")) if wide else metrics((name, *other), ("a__sure.sum", "", "0.5"))
    second = save(tmp_path, text, "b.csv")
    assert ncu.mergeable([first, second]) == ncu.mergeable([second, first]) == agree
    assert codes(read(first, second)).get("metric_conflict") == (None if agree else 1)
    if not agree:
        assert read(first, second)["kernels"][0]["metrics"][name] == read(first)["kernels"][0]["metrics"][name]


def test_conflicts_of_texts_and_of_labels_count_too(tmp_path: Path) -> None:
    launch = "Launch Statistics"
    one = save(tmp_path, details((launch, "Function Cache Configuration", "", "A"), ("New", "Label", "", "1")), "a.csv")
    text = save(tmp_path, details((launch, "Function Cache Configuration", "", "B"), ("New", "Label", "", "1")), "b.csv")
    label = save(tmp_path, details((launch, "Function Cache Configuration", "", "A"), ("New", "Label", "", "2")), "c.csv")
    assert not ncu.mergeable([one, text])
    assert not ncu.mergeable([one, label])
    assert [t["value"] for t in read(one, text)["metric_texts"]] == ["A"]
    assert codes(read(one, text))["metric_conflict"] == 1


@pytest.mark.parametrize("changed", [{"pid": 8}, {"ncu_id": 1}, {"name": "other"}, {"grid": "(5, 1, 1)"}, {"block": "(1, 1, 1)"}])
def test_identity_is_process_id_name_and_size(tmp_path: Path, changed: dict[str, object]) -> None:
    one = save(tmp_path, metrics(DURATION), "a.csv")
    other = save(tmp_path, metrics(("gpu__time_duration.sum", "ns", "2000"), of=ids(**changed)), "b.csv")  # type: ignore[arg-type]
    assert len(read(one, other)["kernels"]) == 2
    assert not ncu.probe(one).identity & ncu.probe(other).identity
    assert ncu.mergeable([one, other])
    assert "pages_merged" not in codes(read(one, other))


def on_host(name: str) -> tuple[str, ...]:
    return tuple(name if cell == "127.0.0.1" else cell for cell in ids())


def test_launches_of_two_hosts_are_two(tmp_path: Path) -> None:
    paths = [save(tmp_path, metrics(("gpu__time_duration.sum", "ns", "7"), of=on_host(host)), f"{host}.csv") for host in "AB"]
    wide = [save(tmp_path, raw([("a__b.sum", "")], ("1",), launches=[on_host(host)]), f"{host}-raw.csv") for host in "AB"]
    both = save(tmp_path, raw([("a__b.sum", "")], ("1",), ("2",), launches=[on_host("A"), on_host("B")]), "both.csv")
    identities = [ncu.probe(path).identity for path in paths]
    assert not identities[0] & identities[1]
    assert identities == [ncu.probe(path).identity for path in wide]
    assert ncu.probe(both).identity == identities[0] | identities[1]
    for files in (paths, [*paths, *wide], [both], [*wide, both]):
        found = read(*files)
        assert sorted(row["host"] for row in found["processes"]) == ["A", "B"]
        assert sorted(row["process_index"] for row in found["kernels"]) == [0, 1]


@pytest.mark.parametrize("local", ["127.0.0.1", "localhost", ""])
def test_a_host_without_a_name_is_no_other_host(tmp_path: Path, local: str) -> None:
    one = save(tmp_path, metrics(DURATION), "a.csv")
    other = save(tmp_path, raw([("a__b.sum", "")], ("1",), launches=[on_host(local)]), "b.csv")
    assert ncu.probe(one).identity == ncu.probe(other).identity
    assert len(read(one, other)["kernels"]) == 1


def test_columns_that_one_page_lacks_come_from_the_other(tmp_path: Path) -> None:
    short = [
        line(
            (
                "ID",
                "Process ID",
                "Kernel Name",
                "Grid Size",
                "Block Size",
                "Section Name",
                "Metric Name",
                "Metric Unit",
                "Metric Value",
            )
        )
    ]
    short += [line(("0", "7", "k(int)", "(4, 1, 1)", "(32, 2, 1)", COMMAND, "a__b.sum", "", "1"))]
    tables = read(save(tmp_path, short, "a.csv"), save(tmp_path, metrics(DURATION), "b.csv"))
    (kernel,) = tables["kernels"]
    assert (kernel["stream"], kernel["device"], len(kernel["metrics"])) == (7, 0, 2)
    assert tables["devices"][0]["compute_capability"] == "9.0"


def test_rules_of_several_pages_stand_once(tmp_path: Path) -> None:
    stall = rule("S", "CPIStall", "OPT", "a", ("local", "38.16"))
    one = save(tmp_path, [*details((SOL, "Duration", "ns", "1000")), stall, stall], "a.csv")
    other = save(tmp_path, [*details((SOL, "Duration", "ns", "1000")), stall, rule("S", "Other", "INF", "b")], "b.csv")
    assert sorted(a["rule"] for a in read(one, other)["advice"]) == ["CPIStall", "CPIStall", "Other"]


def test_unmapped_rows_of_several_pages_stand_once(tmp_path: Path) -> None:
    rows = [("New", "Label", "Kbyte", "1"), ("New", "Label", "Kbyte", "1"), ("New", "Other", "", "5")]
    pages = [save(tmp_path, details(*rows), f"{i}.csv") for i in range(2)]
    found = [(r["section"], r["label"], r["unit"], r["value"]) for r in read(*pages)["unmapped_metrics"]]
    assert found == [("New", "Label", "byte", 1000.0), ("New", "Label", "byte", 1000.0), ("New", "Other", None, 5.0)]


def test_a_label_that_contradicts_the_raw_metric_is_unmapped(tmp_path: Path) -> None:
    rows = [
        (SOL, "Duration", "us", "9.99"),
        (COMMAND, "gpu__time_duration.sum", "us", "6.75"),
        (SOL, "Elapsed Cycles", "cycle", "5"),
    ]
    tables = read(save(tmp_path, details(*rows)))
    assert tables["kernels"][0]["metrics"] == {"gpu__time_duration.sum": 6750.0, "gpc__cycles_elapsed.max": 5.0}
    assert [(r["section"], r["label"], r["unit"], r["value"]) for r in tables["unmapped_metrics"]] == [
        (SOL, "Duration", "ns", 9990.0)
    ]
    assert codes(tables) == {"label_contradicted": 1, "rounded_in_print": 1}


def test_a_unit_that_contradicts_leaves_the_label_unmapped(tmp_path: Path) -> None:
    tables = read(
        save(tmp_path, details((SOL, "Memory Throughput", "Gbyte/s", "345.14"), (MEMORY, "Memory Throughput", "%", "12")))
    )
    assert tables["kernels"][0]["metrics"] == {}
    assert [(r["label"], r["unit"], r["value"]) for r in tables["unmapped_metrics"]] == [
        ("Memory Throughput", "byte/s", 345.14e9),
        ("Memory Throughput", "%", 12.0),
    ]
    assert codes(tables) == {"label_unmapped": 2}


def test_one_unreadable_page_does_not_stop_the_others(tmp_path: Path) -> None:
    good, bad = save(tmp_path, metrics(DURATION), "a.csv"), save(tmp_path, "==ERROR== boom\n", "b.csv")
    tables = read(bad, good)
    assert tables["kernels"][0]["duration_ns"] == 1000
    assert codes(tables) == {"page_unreadable": 1}
    assert "boom" in told(tables, "page_unreadable")
    assert not ncu.mergeable([good, bad])
    with pytest.raises(ReadError, match="boom"):
        read(bad, bad)


def summary(average: str, metric: str = "a__b.sum", unit: str = "Kbyte") -> list[str]:
    header = ("Process ID", "Kernel Name", "Device", "CC", "Invocations", "Section Name", "Metric Name", "Metric Unit")
    return [
        line((*header, "Minimum", "Maximum", "Average")),
        line(("7", "k", "0", "8.0", "3", COMMAND, metric, unit, "0", "9.50", average)),
    ]


def test_summaries_of_one_report_unite(tmp_path: Path) -> None:
    first = save(tmp_path, summary("1.02"), "a.csv")
    again = save(tmp_path, summary("1.02") + summary("5", "a__c.sum")[1:], "b.csv")
    other = save(tmp_path, summary("1.06"), "c.csv")
    assert ncu.mergeable([first, again])
    assert not ncu.mergeable([first, other])
    assert [r["metric"] for r in read(first, again)["metric_summaries"]] == ["a__b.sum", "a__c.sum"]
    assert codes(read(first, other)) == {"metric_conflict": 1, "summary_only": 1}
    assert ncu.probe(first).identity == {"summary 7 None k  "}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30), st.sampled_from([0.01, 0.1, 1.0, 10.0])), max_size=40))
@settings(max_examples=300)
def test_resolve_against_a_plain_loop(rows: list[tuple[int, int, float]]) -> None:
    key = np.array([row[0] for row in rows], np.int64)
    value, step = (np.array([row[i] for row in rows], np.float64) for i in (1, 2))
    wanted_kept, wanted_lost = [], []
    for group in sorted({row[0] for row in rows}):
        members = [i for i, row in enumerate(rows) if row[0] == group]
        first = members[0]
        fits = [
            i for i in members if abs(value[i] - value[first]) <= (step[i] + step[first]) * (0.5 + 1e-9) + 1e-12 * value[first]
        ]
        wanted_kept.append(min(fits, key=lambda i: (step[i], i)))
        wanted_lost += [i for i in members if i not in fits]
    kept, lost = resolve(key, value, step)
    assert kept.tolist() == wanted_kept
    assert sorted(lost.tolist()) == sorted(wanted_lost)


@pytest.mark.parametrize("size", [10, 2**23])
def test_distinct(size: int) -> None:
    codes_in = np.array([random.Random(1).randrange(size) for _ in range(1000)])
    present, position = distinct(codes_in, size)
    assert present.tolist() == sorted(set(codes_in.tolist()))
    assert present[position].tolist() == codes_in.tolist()
    assert distinct(codes_in[:0], 1)[0].tolist() == []


def test_a_small_page_that_changes_is_read_again(tmp_path: Path) -> None:
    """Pages are remembered by content: one path and size do not make them the same."""
    first = save(tmp_path, raw([("a__b.sum", "")], ("11",)), "first.csv")
    for value, agrees in (("11", True), ("12", False), ("11", True)):
        second = save(tmp_path, raw([("a__b.sum", "")], (value,)), "second.csv")
        assert ncu.mergeable([first, second]) is agrees
