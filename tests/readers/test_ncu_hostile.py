"""Damaged and hostile files: nothing but ReadError may come out, and what is whole is read."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsightlens.errors import ReadError
from nsightlens.readers import budget, ncu
from nsightlens.readers.budget import Budget
from nsightlens.readers.ncu.notes import Notes
from nsightlens.readers.ncu.text import blocks
from nsightlens.readers.reader import HEAD_BYTES
from tests.places import ROOT
from tests.readers.ncu_text import (
    DURATION,
    IDS,
    METRIC,
    RULE,
    SOL,
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
)
from tests.readers.test_ncu_merge import summary

DATA = ROOT / "../shared/data/ncu"
SEEDS = [
    "\n".join(
        [
            *details((SOL, "Duration", "us", "6.75"), (SOL, "Elapsed Cycles", "cycle", "13,485")),
            rule("S", "R", "OPT", 'a "b"\nc', ("local", "1")),
        ]
    ),
    "\n".join(
        [
            *details_all((SOL, "", "Duration", "us", "6,75")),
            *metrics(DURATION, ("launch__x.sum", "", "CachePreferNone"), of=ids(1)),
        ]
    ),
    "\n".join(["==PROF== x", *raw([("gpu__time_duration.sum", "us"), ("a__b.sum", "%")], ("1.5", "n/a"), ("2.25", "SIMT"))]),
    "\n".join([*summary("1.02"), "noise", *summary("5", "a__c.sum")]),
]


def survives(path: Path) -> None:
    """Whatever the file: probe, read and mergeable end in rows or in ReadError."""
    head = path.read_bytes()[:65536]
    ncu.sniff(path, head)
    ncu.recognise_foreign_csv(head.decode("utf-8", "replace"))
    ncu.mergeable([path, path])
    for ask in (ncu.probe, read):
        try:
            ask(path)
        except ReadError as error:
            assert error.reason
            assert error.what_to_do


@settings(max_examples=150)
@given(
    st.sampled_from(SEEDS),
    st.integers(0, 10**6),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=6),
    st.booleans(),
)
def test_cuts_and_flipped_bytes(tmp_path: Path, seed: str, cut: int, flips: list[tuple[int, int]], double: bool) -> None:
    data = bytearray((seed + "\n" + seed if double else seed).encode())
    for at, byte in flips:
        data[at % len(data)] = byte
    survives(save(tmp_path, bytes(data[: cut % (len(data) + 1)] if cut % 3 else data)))


@settings(max_examples=120)
@given(
    st.lists(
        st.sampled_from(
            [*(one for seed in SEEDS for one in seed.split("\n")), '"', '","', '"0","7","', ",", "\n", "\0", "é", "==ERROR== x"]
        ),
        max_size=12,
    )
)
def test_lines_in_any_order(tmp_path: Path, lines: list[str]) -> None:
    survives(save(tmp_path, lines))


@settings(max_examples=60)
@given(st.binary(max_size=200), st.sampled_from(SEEDS), st.integers(0, 10**6))
def test_rubbish_in_the_middle(tmp_path: Path, rubbish: bytes, seed: str, at: int) -> None:
    data = seed.encode()
    survives(save(tmp_path, data[: at % len(data)] + rubbish + data[at % len(data) :]))


@settings(max_examples=100)
@given(
    st.text(alphabet="0123456789.,-+eE() ;n/a%!'\u202f\u0663", max_size=12), st.sampled_from(["", "us", "Kbyte"]), st.booleans()
)
def test_any_value_cell(tmp_path: Path, value: str, unit: str, wide: bool) -> None:
    """A cell becomes a number, a text, or is counted as absent: never nothing."""
    text = (
        raw([("a__b.sum", unit), ("a__c.sum", "")], (value, "0.5"))
        if wide
        else metrics(("a__b.sum", unit, value), ("a__c.sum", "", "0.5"))
    )
    tables = read(save(tmp_path, text))
    (kernel,) = tables["kernels"]
    absent = sum(codes(tables).get(code, 0) for code in ("metric_not_available", "metric_not_finite"))
    assert ("a__b.sum" in kernel["metrics"]) + len(tables["metric_texts"]) + absent == 1
    assert "a__c.sum" in kernel["metrics"] or "," in value


@pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data/ncu")
@pytest.mark.parametrize("seed", range(25))
def test_damaged_real_files(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    files = sorted(p for p in DATA.glob("*.csv") if p.stat().st_size < 40_000)
    data = bytearray(rng.choice(files).read_bytes())
    for _ in range(rng.randrange(12)):
        data[rng.randrange(len(data))] = rng.choice(b'"\n,\0\xff0a')
    del data[rng.randrange(len(data) // 2, len(data)) :]
    survives(save(tmp_path, bytes(data)))


def test_a_field_longer_than_every_buffer(tmp_path: Path) -> None:
    name = "k<" + "T, " * 4_000_000 + ">"
    tables = read(save(tmp_path, metrics(DURATION, of=ids(name=name))))
    assert (tables["kernels"][0]["name"], tables["kernels"][0]["duration_ns"]) == (name, 1000)
    text = [*details((SOL, "Duration", "ns", "1000")), rule("S", "R", "OPT", "x" * 12_000_000)]
    assert len(read(save(tmp_path, text))["advice"][0]["message"]) == 12_000_000


def test_a_torn_value_in_the_middle_of_a_long_run(tmp_path: Path) -> None:
    """One damaged row costs that row only, wherever it stands and however its quotes are."""
    rows = [(f"a__m{i}.sum", "", "1.5") for i in range(200)]
    good = metrics(*rows)
    for damage in (
        good[100][:-1],
        good[100][:-4],
        good[100] + '"',
        good[100].replace('"1.5"', '1.5"'),
        good[100][:-5] + '"',
        '"',
    ):
        text = [*good[:100], damage, *good[101:]]
        tables = read(save(tmp_path, text))
        assert len(tables["kernels"]) == 1
        found = tables["kernels"][0]["metrics"]
        assert set(found) >= {name for i, (name, _, _) in enumerate(rows) if i not in (98, 99, 100)}
        assert len(found) >= 198


def test_a_torn_rule_in_a_long_run(tmp_path: Path) -> None:
    rules = [rule("S", f"R{i}", "OPT", "text") for i in range(50)]
    for damage in (rules[20][:-1], rules[20][:-30], rules[20].replace("OPT", 'O"T'), '"' + rules[20]):
        text = [*details((SOL, "Duration", "ns", "1000")), *rules[:20], damage, *rules[21:]]
        tables = read(save(tmp_path, text))
        assert tables["kernels"][0]["duration_ns"] == 1000
        assert {a["rule"] for a in tables["advice"]} >= {f"R{i}" for i in range(50) if i != 20} - {"R19", "R21"}


def test_a_torn_row_in_a_raw_page(tmp_path: Path) -> None:
    good = raw([("a__b.sum", ""), ("a__c.sum", "")], *[(f"{i}.5", "x") for i in range(50)])
    for damage in (good[20][:-1], good[20][:40], good[20] + ',"', good[20].replace('"x"', 'x"'), '"'):
        tables = read(save(tmp_path, [*good[:20], damage, *good[21:]]))
        assert {k["ncu_id"] for k in tables["kernels"]} >= set(range(50)) - {18}


def test_many_log_lines_keep_the_table(tmp_path: Path) -> None:
    text = ["noise"] * 30_000 + metrics(DURATION)
    tables = read(save(tmp_path, text))
    assert (tables["kernels"][0]["duration_ns"], codes(tables)) == (1000, {"log_lines": 30_000})


@pytest.mark.parametrize(
    "header",
    [
        (*IDS, *METRIC, *METRIC),
        ("ID", "Metric Name", "Metric Value"),
        ("ID", "Metric Value", "Metric Name", "Kernel Name"),
        ("Kernel Name", "ID"),
        (*IDS, "Invocations", *METRIC[:3], "Minimum", "Maximum", "Average"),
        (*IDS, *RULE, *METRIC),
        (*IDS, "", "a__b.sum", ""),
    ],
)
def test_strange_headers(tmp_path: Path, header: tuple[str, ...]) -> None:
    survives(save(tmp_path, [line(header), line(["0"] * len(header)), line([""] * len(header)), line(["7"] * (len(header) - 1))]))


def test_numbers_beyond_64_bits_in_id_columns(tmp_path: Path) -> None:
    text = metrics(DURATION, of=("0", "7", "app", "h", "k", "9" * 30, "-1", "(1, 1, 1)", "(1, 1, 1)", "99999999999", "x.y"))
    (kernel,) = read(save(tmp_path, text))["kernels"]
    assert (kernel["context"], kernel["stream"], kernel["device"]) == (None, None, None)
    with pytest.raises(ReadError):
        read(save(tmp_path, metrics(DURATION, of=ids(pid=10**30))))


def zipped(folder: Path, *parts: bytes) -> Path:
    """A gzip file of one member per part."""
    path = folder / "f.csv.gz"
    path.write_bytes(b"".join(map(gzip.compress, parts)))
    return path


def test_newlines_without_end_are_not_unpacked_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """4 GiB of newlines in 4 MB took 8.5 GB of memory."""
    monkeypatch.setattr(budget, "BUDGET", Budget(unpacked=1 << 22))
    report = "\n".join([*raw([("gpu__time_duration.sum", "us")], ("1.5",)), ""]).encode()
    path = zipped(tmp_path, report, b"\n" * (1 << 25))
    sizes = [len(block.data) for block in blocks(path, Notes())]
    assert sum(sizes) < 9 << 20 and max(sizes) < 2 << 20
    tables = read(path)
    assert [row["duration_ns"] for row in tables["kernels"]] == [1500]
    assert codes(tables)["over_budget"] == 1
    with pytest.raises(ReadError):
        ncu.probe(zipped(tmp_path, b"\n" * (1 << 25)))


def test_a_line_without_end_is_not_gathered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "BUDGET", Budget(longest=1 << 20))
    report = "\n".join([*raw([("gpu__time_duration.sum", "us")], ("1.5",)), ""]).encode()
    tables = read(zipped(tmp_path, report, b"x" * (4 << 20)))
    assert len(tables["kernels"]) == 1
    assert codes(tables)["over_budget"] == 1


@pytest.mark.parametrize("output", ["step\n", " \n"])
def test_output_of_an_application_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    monkeypatch.setattr("nsightlens.readers.ncu.lines._MOST_IDLE_LINES", 100)
    table = "\n".join([*raw([("gpu__time_duration.sum", "us")], ("1.5",), ("2.5",)), ""])
    header, last = table.rsplit("\n", 2)[0] + "\n", table.rsplit("\n", 2)[1] + "\n"
    path = tmp_path / "f.csv"
    path.write_text(output * 90 + header + output * 90 + last + output * 90)
    assert len(read(path)["kernels"]) == 2 and "over_budget" not in codes(read(path))
    path.write_text(header + output * 101 + last)
    assert len(read(path)["kernels"]) == 1 and codes(read(path))["over_budget"] == 1


def test_utf_16_is_read_in_stretches(tmp_path: Path) -> None:
    rows = "\n".join(raw([("gpu__time_duration.sum", "us")], *[("1.5",)] * 20_000))
    path = zipped(tmp_path, rows.encode("utf-16"))
    assert len(list(blocks(path, Notes()))) > 3
    assert len(read(path)["kernels"]) == 20_000


def test_a_table_whose_every_row_is_torn(tmp_path: Path) -> None:
    """The campaign found an IndexError."""
    text = "\n".join([*details((SOL, "Duration", "us", "6.75"), (SOL, "Elapsed Cycles", "cycle", "13")), ""])
    at = text.index("Grid Size")
    with pytest.raises(ReadError):
        read(save(tmp_path, f'{text[:at]}","9.0","{SOL}","Elapsed Cycles","cycle","13",\n{text[at:]}'))


def test_a_page_of_5000_columns(tmp_path: Path) -> None:
    """Its header is longer than the head of the file."""
    columns = [(f"sm__metric_{number:04d}.sum", "%") for number in range(5000)]
    path = save(tmp_path, "\n".join([*raw(columns, *[[f"{row}.5"] * 5000 for row in range(3)]), ""]))
    with path.open("rb") as file:
        assert ncu.sniff(path, file.read(HEAD_BYTES))
    assert ncu.probe(path).kind == "ncu raw csv"
    kernels = read(path)["kernels"]
    assert [len(kernel["metrics"]) for kernel in kernels] == [5000] * 3
