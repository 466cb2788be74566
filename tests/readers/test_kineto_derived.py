"""The broken files of ../shared/data/kineto/derived: each gives what EXPECTED.tsv there says."""

from __future__ import annotations

import csv
from collections import defaultdict
from typing import Any

import pytest

from nsightlens.errors import ReadError
from nsightlens.readers import kineto
from tests.places import ROOT

DERIVED = ROOT / "../shared/data/kineto/derived"
# What is said of a sound trace, too.
HARMLESS = {"events_not_stored", "no_epoch"}


def expectations() -> list[dict[str, str]]:
    if not DERIVED.exists():
        return []
    with (DERIVED / "EXPECTED.tsv").open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def read(name: str) -> dict[str, list[dict[str, Any]]]:
    if not DERIVED.exists():
        pytest.skip("the shared captures are not here")
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for table, batch in kineto.read([DERIVED / name]):
        found[table] += batch.to_pylist()
    return found


def known(number: int | None, unknown: str) -> str:
    return unknown if number is None else str(number)


REFUSED = [one for one in expectations() if one["outcome"] == "refused"]
READ = [one for one in expectations() if one["outcome"] != "refused"]


@pytest.mark.parametrize("expected", REFUSED, ids=[one["file"] for one in REFUSED])
def test_refused(expected: dict[str, str]) -> None:
    for look in (kineto.probe, lambda path: list(kineto.read([path]))):
        with pytest.raises(ReadError) as refused:
            look(DERIVED / expected["file"])
        assert refused.value.code == expected["diagnostic"]
        assert len(refused.value.what_to_do) > 10


@pytest.mark.parametrize("expected", READ, ids=[one["file"] for one in READ])
def test_as_expected(expected: dict[str, str]) -> None:
    found = read(expected["file"])
    profile = found["profiles"][0]
    assert {
        "complete_events": str(profile["events"]), "kernels": str(len(found["kernels"])),
        "lost_events": known(profile["events_lost"], "unknown"),
        "first_bad_byte": known(profile["first_bad_byte"], ""),
        "outcome": "whole" if profile["events_lost"] == 0 else "partial",
    }.items() <= {**expected, "first_bad_byte": expected["first_bad_byte"].split(" ")[0]}.items()
    assert {d["code"] for d in found["diagnostics"]} - HARMLESS == ({expected["diagnostic"]} if expected["diagnostic"] else set())
    assert profile["truncated"] == (expected["diagnostic"] == "truncated")


@pytest.mark.parametrize(("name", "kind", "count", "at"), [
    ("NA_bandwidth_unquoted.json", "bare inf, nan or N/A", 1, 326157),
    ("nan_inf_args.json", "bare inf, nan or N/A", 2, 326313),
    ("control_char_in_name.json", "control characters", 1, 4049),
    ("trailing_comma.json", "commas", 1, 407859),
    ("windows_backslash_names.json", "backslashes", 216, None),
    ("torch2.13_real_export_quote.json", "quotes", 1, None),
    ("torch2.13_real_export_meta.json", "metadata before the events", 1, None),
])
def test_the_malformed_place_is_told(name: str, kind: str, count: int, at: int | None) -> None:
    said = next(d for d in read(name)["diagnostics"] if d["code"] == "malformed_json")
    content = (DERIVED / name).read_bytes()
    assert kind in said["message"]
    assert said["count"] == count
    assert 0 < said["byte_offset"] < len(content)
    assert at is None or abs(said["byte_offset"] - at) < 25


def test_bad_text_is_replaced_and_nothing_else() -> None:
    bad, good = (read(name)["ranges"] for name in ("invalid_utf8_in_name.json", "utf8_bom.json"))
    different = [(b["name"], g["name"]) for b, g in zip(bad, good, strict=True) if b != g]
    assert different == [("\ufffd\ufffdaten::_native_multi_head_attention", "aten::_native_multi_head_attention")]


def test_a_quote_in_a_name_stays_in_it() -> None:
    assert "a\"b" in [r["name"] for r in read("torch2.13_real_export_quote.json")["ranges"]]


def test_a_control_character_stays_in_its_name() -> None:
    assert "aten\x01::_native_multi_head_attention" in [r["name"] for r in read("control_char_in_name.json")["ranges"]]


def test_an_unknown_number_is_null_and_its_event_stays() -> None:
    kernels = read("nan_inf_args.json")["kernels"]
    assert [k["blocks_per_sm"] for k in kernels].count(None) == 1
    assert [k["warps_per_sm"] for k in kernels].count(None) == 1


@pytest.mark.parametrize("name", ["corrupt_236_year_duration.json", "negative_duration.json"])
def test_an_impossible_duration_is_null_and_its_event_stays(name: str) -> None:
    bad, good = read(name), read("one_line.json")
    durations = [(b["duration_ns"], g["duration_ns"]) for t in ("kernels", "api_calls", "ranges")
                 for b, g in zip(bad[t], good[t], strict=True)]
    assert [b for b, g in durations if b != g] == [None]


@pytest.mark.parametrize("name", [
    "gzip_named_json.json", "plain_json_named_gz.json.gz", "two_gzip_members.json.gz", "utf8_bom.json",
    "comms_id_over_int64.json", "trailing_comma.json", "trunc_missing_final_brackets.json", "bare_list.json",
])
def test_the_wrapping_does_not_change_the_rows(name: str) -> None:
    here, there = read(name), read("one_line.json")
    for table in ("kernels", "api_calls", "ranges", "allocations"):
        assert [h for h, t in zip(here[table], there[table], strict=True) if not t.items() <= h.items()] == []
