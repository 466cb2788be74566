"""ncu's own reports: what stands in them, what is never taken, and what becomes of damaged ones."""

from __future__ import annotations

import gzip
import importlib
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens.errors import ReadError
from nsightlens.readers import budget, ncu
from nsightlens.readers.budget import Budget
from tests.fuzz import ncu_rep as fuzz
from tests.fuzz.campaign import verdict
from tests.fuzz.mutation import mutation
from tests.readers.ncu_reports import FIXTURE, METRICS, launch, save, writer
from tests.readers.ncu_text import codes, read, told


def test_a_launch_is_read_as_it_was_written(tmp_path: Path) -> None:
    tables = read(save(tmp_path, [launch(), launch("other(int)", stream=9, context=2)]))
    first, second = tables["kernels"]
    assert first["metrics"] == {name: value for name, value in METRICS.items() if isinstance(value, int | float)}
    wanted = {"name": "void ns::k<(int)4>(int)", "mangled_name": "_ZN2ns1kILi4EEEvi", "grid_x": 4, "grid_y": 2, "grid_z": 1,
              "block_x": 64, "block_y": 1, "block_z": 1, "context": 1, "stream": 7, "device": 3, "ncu_id": 0, "nvtx_range": None}
    assert wanted.items() <= first.items()
    assert (second["ncu_id"], second["context"], second["stream"], second["name"]) == (1, 2, 9, "other(int)")
    assert [row["value"] for row in tables["metric_texts"]] == ["CachePreferNone"] * 2
    (process,), (profile,) = tables["processes"], tables["profiles"]
    assert (process["pid"], process["name"], process["host"]) == (7, "app", None)
    assert (profile["tool_version"], profile["format"], profile["truncated"]) == ("2025.2.0.0", "ncu report", False)
    assert codes(tables) == {"metric_not_available": 2}


def test_durations_are_exact_in_the_metrics_and_whole_in_their_column(tmp_path: Path) -> None:
    (kernel,) = read(save(tmp_path, [launch(metrics={"gpu__time_duration.sum": 25_792.0, "a__b.avg": 0.1 + 0.2})]))["kernels"]
    assert (kernel["duration_ns"], kernel["metrics"]["a__b.avg"]) == (25_792, 0.1 + 0.2)


def test_a_function_of_c_is_named_by_its_symbol(tmp_path: Path) -> None:
    tables = read(save(tmp_path, [launch("", mangled="add", function="add"), launch("", mangled="", function="bare")]))
    assert [kernel["name"] for kernel in tables["kernels"]] == ["add", "bare"]


def test_names_may_stand_behind_the_launches_that_use_them(tmp_path: Path) -> None:
    first = read(save(tmp_path, [launch()]))
    assert read(save(tmp_path, [launch()], names_last=True))["kernels"] == first["kernels"]


def test_a_grid_in_threads_becomes_one_in_blocks(tmp_path: Path) -> None:
    tables = read(save(tmp_path, [launch(grid=(256, 2, 1))], version=None))
    (kernel,) = tables["kernels"]
    assert (kernel["grid_x"], kernel["grid_y"], kernel["grid_z"]) == (4, 2, 1)
    assert "launch_inconsistent" not in codes(tables)
    odd = read(save(tmp_path, [launch(grid=(5, 2, 1))]))
    assert told(odd, "launch_inconsistent").endswith("(grid (5, 2, 1), launch__grid_size 8)")


def test_rules_become_advice_with_links_resolved(tmp_path: Path) -> None:
    text = ' Look at @section:LaunchStats:Launch Statistics@ and the @url:guide:https://docs.example/x#y@. '
    rules = (writer.Rule("Occupancy", "Theoretical", "OPT", text, ("local", 12.345678901234567)),
             writer.Rule("SpeedOfLight", "Bottleneck", "WRN", "small"))
    rows = read(save(tmp_path, [launch(rules=rules)]))["advice"]
    assert [(row["section"], row["rule"], row["type"], row["speedup_type"], row["estimated_speedup_pct"]) for row in rows] == [
        ("Occupancy", "Theoretical", "OPT", "local", 12.345678901234567), ("SpeedOfLight", "Bottleneck", "WRN", None, None)]
    assert rows[0]["message"] == "Look at Launch Statistics and the guide (https://docs.example/x#y)."


def test_ranges_have_the_form_of_the_csv_pages(tmp_path: Path) -> None:
    ranges = (("<default domain>", "step 3"), ("my: domain", 'say "x": y'))
    (kernel,) = read(save(tmp_path, [launch(ranges=ranges, thread=11)]))["kernels"]
    assert kernel["nvtx_range"] == ('11  "<default domain>:step 3:none:none:none:none:none:none"  '
                                    "\"my  domain:say 'x': y:none:none:none:none:none:none\"")
    (state,) = importlib.import_module("nsightlens.readers.ncu.nvtx").states([kernel["nvtx_range"]])
    assert (state.step, state.ranges) == (3, (("my  domain", "say 'x': y"),))


@pytest.mark.parametrize(
    ("command", "settings", "guessed"),
    [
        ("ncu --clock-control none --cache-control=all --replay-mode application app", ("none", "all", "application"), 0),
        ("ncu --clock-control none app --clock-control base", ("none", "all", "kernel"), 1),
        ("ncu --set full app --token=hidden", ("base", "all", "kernel"), 1),
        (None, (None, None, None), 0),
    ],
)
def test_settings_come_from_the_command_line(
    tmp_path: Path, command: str | None, settings: tuple[str | None, ...], guessed: int,
) -> None:
    tables = read(save(tmp_path, [launch()], command=command))
    (kernel,) = tables["kernels"]
    assert (kernel["clock_control"], kernel["cache_control"], kernel["replay_mode"]) == settings
    assert codes(tables).get("settings_by_default", 0) == guessed


def _with_session(path: Path, *fields: bytes) -> Path:
    """Return a report with one more part of the session at its end."""
    path.write_bytes(path.read_bytes() + writer.sized(writer.part(3, b"".join(fields))))
    return path


def test_settings_come_from_a_report_saved_from_the_window(tmp_path: Path) -> None:
    settings = writer.part(8, "None") + writer.part(11, "Kernel")
    tables = read(_with_session(save(tmp_path, [launch()]), writer.part(10, settings)))
    (kernel,) = tables["kernels"]
    assert (kernel["clock_control"], kernel["cache_control"], kernel["replay_mode"]) == ("none", None, "kernel")


def test_the_only_profiled_device_is_that_of_launches_that_name_none(tmp_path: Path) -> None:
    one = launch(metrics={"a__b.sum": 1})
    assert [kernel["device"] for kernel in read(save(tmp_path, [one]))["kernels"]] == [0]
    two = _with_session(save(tmp_path, [one]), writer.part(6, writer.whole(1, 5)))
    assert [kernel["device"] for kernel in read(two)["kernels"]] == [None]


def test_the_configuration_follows_from_counters(tmp_path: Path) -> None:
    counters = {"launch__cluster_dim_x": 2, "launch__cluster_dim_y": 1, "launch__cluster_dim_z": 1,
                "launch__registers_per_thread": 56.0, "launch__shared_mem_per_block_static": 44,
                "launch__shared_mem_per_block_dynamic": 1024, "profiler__replayer_passes": 9,
                "device__attribute_display_name": "NVIDIA H200", "device__attribute_multiprocessor_count": 132,
                "device__attribute_compute_capability_major": 9, "device__attribute_compute_capability_minor": 0}
    tables = read(save(tmp_path, [launch(metrics=counters)]))
    wanted = {"cluster_x": 2, "cluster_y": 1, "registers_per_thread": 56, "shared_bytes": 1068, "passes": 9}
    assert wanted.items() <= tables["kernels"][0].items()
    assert {"name": "NVIDIA H200", "sm_count": 132, "compute_capability": "9.0"}.items() <= tables["devices"][0].items()


def test_results_of_ranges_are_counted(tmp_path: Path) -> None:
    path = save(tmp_path, [launch()])
    path.write_bytes(path.read_bytes() + writer.sized(writer.whole(7, 2)))
    assert codes(read(path))["range_results"] == 2
    path.write_bytes(writer.report([]) + writer.sized(writer.whole(7, 2)))
    with pytest.raises(ReadError, match="results of ranges"):
        read(path)


def test_sections_are_named_by_their_titles(tmp_path: Path) -> None:
    (kernel,) = read(save(tmp_path, [launch(sections=(("Occ", "Occupancy"), ("Sol", "Speed Of Light")))]))["kernels"]
    assert kernel["section_set"] == "Occupancy, Speed Of Light"


def test_nothing_personal_is_taken(tmp_path: Path) -> None:
    path = save(tmp_path, [launch()], command="ncu -o /home/somebody/out app --token=secret", gpu="A100")
    nl.ingest([path], store=tmp_path / "store").close()
    stored = b"".join(part.read_bytes() for part in (tmp_path / "store").rglob("*") if part.is_file())
    read_again = str(nl.read(path))
    for word in ("secret", "somebody", "10.0.0.1", "TOKEN"):
        assert word in path.read_bytes().decode("latin-1")
        assert word not in read_again.replace(str(tmp_path), "") and word.encode() not in stored


def test_other_versions_are_read_and_told(tmp_path: Path) -> None:
    tables = read(save(tmp_path, [launch()], version="2027.1.0.0 (build 2)", file_version=9))
    assert len(tables["kernels"]) == 1 and tables["profiles"][0]["tool_version"] == "2027.1.0.0"
    assert codes(tables)["untested_version"] == 2


def test_several_processes_keep_their_launches(tmp_path: Path) -> None:
    tables = read(save(tmp_path, [launch(pid=7), launch(pid=8), launch(pid=7)]))
    assert [(kernel["process_index"], kernel["ncu_id"]) for kernel in tables["kernels"]] == [(0, 0), (1, 1), (0, 2)]
    assert [process["pid"] for process in tables["processes"]] == [7, 8]


def test_values_that_are_none_or_not_finite_are_told(tmp_path: Path) -> None:
    tables = read(save(tmp_path, [launch(metrics={"a__b": float("nan"), "c__d": float("inf"), "e__f": "", "g__h": 1.0})]))
    assert tables["kernels"][0]["metrics"] == {"g__h": 1.0}
    assert codes(tables) == {"metric_not_finite": 2, "metric_not_available": 1}


def _packed(path: Path, codec: str) -> bytes:
    with pa.BufferOutputStream() as sink:
        with pa.CompressedOutputStream(sink, codec) as packed:
            packed.write(path.read_bytes())
        return bytes(sink.getvalue())


@pytest.mark.parametrize(("codec", "name"), [("zstd", "a.ncu-repz"), ("gzip", "a.ncu-rep.gz")])
def test_a_packed_report_is_read_like_a_plain_one(tmp_path: Path, codec: str, name: str) -> None:
    packed = tmp_path / name
    packed.write_bytes(_packed(FIXTURE, codec))
    plain, unpacked = read(FIXTURE), read(packed)
    assert plain == unpacked and len(plain["kernels"]) == 14
    assert nl.read(packed)["kernels"].num_rows == 14


def test_of_a_cut_packed_report_the_beginning_is_read(tmp_path: Path) -> None:
    packed = tmp_path / "a.ncu-rep.gz"
    data = gzip.compress(FIXTURE.read_bytes())
    packed.write_bytes(data[: len(data) // 2])
    whole, cut = read(FIXTURE)["kernels"], read(packed)
    assert 0 < len(cut["kernels"]) < 14 and cut["kernels"] == whole[: len(cut["kernels"])]
    assert cut["profiles"][0]["truncated"]
    packed.write_bytes(data[:30])
    with pytest.raises(ReadError):
        read(packed)


def test_a_packed_report_is_not_unpacked_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "BUDGET", Budget(unpacked=1 << 16))
    long = writer.sized(writer.whole(5, 1 << 30)) + bytes(1 << 24)
    path = tmp_path / "a.ncu-repz"
    plain = tmp_path / "plain"
    plain.write_bytes(writer.report([launch()]) + long)
    path.write_bytes(_packed(plain, "zstd"))
    tables = read(path)
    assert len(tables["kernels"]) == 1 and "report_damaged" in codes(tables)


def test_a_cut_report_gives_the_launches_before_the_cut(tmp_path: Path) -> None:
    data, whole = FIXTURE.read_bytes(), read(FIXTURE)
    path, dice, seen = tmp_path / "cut.ncu-rep", random.Random(13), set()
    for size in sorted(dice.randrange(1, len(data)) for _ in range(200)):
        path.write_bytes(data[:size])
        try:
            tables = read(path)
        except ReadError as error:
            assert error.code == "truncated" and error.what_to_do
            continue
        found = tables["kernels"]
        seen.add(len(found))
        assert [_counters(kernel) for kernel in found] == [_counters(kernel) for kernel in whole["kernels"][: len(found)]]
        at_boundary = tables["profiles"][0]["truncated"] is False
        assert at_boundary or 0 < tables["profiles"][0]["first_bad_byte"] <= size
    assert seen == set(range(1, 14))


def _counters(kernel: dict[str, Any]) -> tuple[object, ...]:
    return kernel["ncu_id"], kernel["name"], kernel["metrics"], kernel["grid_x"]


@pytest.mark.parametrize(
    "content",
    [b"NVR\0", b"NVR\0\x02", b"NVR\0\xff\xff\xff\xff", writer.report([]), writer.report([launch()])[:300]],
)
def test_a_report_without_a_launch_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(content)
    for ask in (ncu.probe, read):
        with pytest.raises(ReadError) as error:
            ask(path)
        assert error.value.code in ("truncated", "no_kernels") and error.value.what_to_do


def test_blocks_cannot_claim_more_launches_than_they_hold(tmp_path: Path) -> None:
    many = writer.sized(writer.whole(2, 2**62) + writer.whole(5, 8)) + writer.sized(b"????")
    first, data = writer.report([launch()]), writer.report([launch("last(int)")])
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(first + many * 2 + data[4 + 4 + 2 :])
    tables = read(path)
    assert [(kernel["ncu_id"], kernel["name"]) for kernel in tables["kernels"]] == [(0, launch().name), (5, "last(int)")]


def test_two_reports_in_one_file_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(writer.report([launch()]) + writer.report([launch(metrics={"other__metric.sum": 1})]))
    tables = read(path)
    assert len(tables["kernels"]) == 1 and "another report begins" in told(tables, "report_damaged")


def test_a_damaged_launch_does_not_cost_the_others(tmp_path: Path) -> None:
    data = bytearray(writer.report([launch(), launch("void torn()"), launch()]))
    at = data.index(b"void torn()") - 2
    data[at] = data[at] & ~7 | 3
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(bytes(data))
    tables = read(path)
    assert [kernel["ncu_id"] for kernel in tables["kernels"]] == [0, 2]
    assert codes(tables)["launch_damaged"] == 1 and tables["profiles"][0]["events_lost"] == 1


def test_lengths_that_no_file_has_cost_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.ncu-rep"
    for claim in (writer.sized(writer.whole(2, 2**62) + writer.whole(5, 2**63 - 1)), b"\xff\xff\xff\x7f", bytes(1 << 20)):
        path.write_bytes(writer.report([launch()]) + claim)
        tables = read(path)
        assert len(tables["kernels"]) == 1 and tables["profiles"][0]["truncated"]


def test_mutated_reports_end_in_rows_or_a_refusal(tmp_path: Path) -> None:
    """A small part of the campaign (make fuzz)."""
    seen = [verdict(fuzz, mutation(fuzz, seed), tmp_path) for seed in range(100_000, 100_400)]
    assert {kind for kind, _ in seen} == {"ok", "refused"}, [one for one in seen if one[0] not in ("ok", "refused")][:3]
