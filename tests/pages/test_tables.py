from __future__ import annotations

import re

import pyarrow as pa
import pytest

from nsightlens.names.kernel_names import kernel_key
from nsightlens.pages.tables import Style, ids_last, render
from nsightlens.views.figures import rate
from nsightlens.views.html_table import html_table

NAMES = ("run", "tool", "rank", "total_ns", "instances", "median_ns", "name")
TEXT = (True, True, False, False, False, False, True)
ROWS = [("base", "nsys", rank, 10**12 + rank, 1000, 0.5, "kernel_" + "x" * 90 + str(rank)) for rank in range(3)]


@pytest.mark.parametrize("width", [50, 60, 80, 100, 120, 160, 400])
def test_every_line_fits_and_no_number_is_cut(width: int) -> None:
    lines = render(NAMES, ROWS, TEXT, Style(width)).splitlines()
    assert max(len(line) for line in lines) <= width
    body = "\n".join(lines)
    for number in ("1,000,000,000,000", "1,000,000,000,001"):
        assert number in body or "total_ns" not in body
    assert "kernel_" in body


def test_what_does_not_fit_is_told() -> None:
    text = render(NAMES, ROWS, TEXT, Style(60))
    assert text.splitlines()[-1] == "(1 column (median_ns) more: --wide, or --format csv)"
    assert text.startswith("run base · tool nsys\n")


def test_without_a_limit_everything_is_there() -> None:
    text = render(NAMES, ROWS, TEXT, Style(wide=True))
    assert all(str(row[-1]) in text for row in ROWS) and len(text.splitlines()) == 5


def test_messages_are_wrapped_and_never_shortened() -> None:
    message = " ".join(f"word{i}" for i in range(40))
    text = render(("code", "message"), [("c", message)], (True, True), Style(60))
    assert "…" not in text and all(f"word{i}" in text for i in range(40))


def test_many_rows_on_a_terminal_are_counted() -> None:
    rows = [(i,) for i in range(1000)]
    assert render(("i",), rows, (False,), Style(80)).splitlines()[-1] == "(800 rows more: --wide, or --format csv)"
    assert len(render(("i",), rows, (False,)).splitlines()) == 1002


def test_cells() -> None:
    rows = [(None, True, 1234567, 0.5, float("nan"), "a\x1b[31mb", 1_750_000_000_000_000_000)]
    names = ("none", "flag", "n", "f", "g", "text", "origin_epoch_ns")
    line = render(names, rows, (True, True, False, False, False, True, False)).splitlines()[-1]
    assert line.split() == ["–", "yes", "1,234,567", "0.5", "nan", r"a\x…1mb", "1750000000000000000"]
    assert render(("a",), [], (False,)).splitlines()[-1] == "(no rows)"


def header(text: str) -> list[str]:
    """Return the names of the columns of a table, those that stand on two lines put together."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("─"))
    above = list(re.finditer(r"\S+(?: \S+)*", lines[at - 2])) if at > 1 else []
    found = []
    for name in re.finditer(r"\S+(?: \S+)*", lines[at - 1]):
        begun = [one[0] for one in above if name[0].startswith("_") and (one.end() == name.end() or one.start() == name.start())]
        found.append("".join([*begun, name[0]]))
    return found


def busy(rank: int | None) -> str:
    """Return a table of two GPUs at 80 columns, as busy_time has it."""
    names = ("run", "tool", "rank", "profile_id", "window_index", "process_id", "device_id", "span_ns", "busy_ns", "idle_ns",
             "compute_ns", "busy_pct")
    text = (True, True, False, True, False, True, True, False, False, False, False, False)
    rows = [("a_run_with_a_long_name", "nsys", None if rank is None else number, "nsys-03b382491a7e", 0,
             f"nsys-03b382491a7e:{number}", f"node/f7c66fde-468f-5af4-48ce-fbf910ffb56{number}", 495_908_265, 489_253_451,
             6_654_814, 385_157_738, 98.7) for number in range(2)]
    return render(names, rows, text, Style(80))


def test_numbers_stay_where_ids_do_not_fit() -> None:
    names = header(busy(0))
    assert names[0] == "rank" and {"span_ns", "busy_ns", "idle_ns", "busy_pct"} <= set(names)
    assert not any(name.endswith("_id") for name in names)


def test_an_id_stays_where_nothing_else_tells_the_rows_apart() -> None:
    text = busy(None)
    names, left_out = header(text), text[text.index("(") :]
    assert ("process_id" in names or "device_id" in names) and "busy_ns" in names
    assert "rank" in left_out and "rank" not in names, "it is not known"


def configurations(width: int, names: tuple[str, str, str]) -> list[str]:
    """Return the header of a table of three kernels, of which two may share a name."""
    given = ("rank", "kernel", "grid", "block", "precision", "duration_us", "gflop_per_s", "roof_pct", "launches")
    rows = [(i % 2, name, f"{50176 + i // 2}x1x1", f"128x1x{1 + i // 2}", f"tensor_bf16_dst_fp{32 - 16 * (i % 2)}", 22.49,
             23308.9, 7.47, 5) for i, name in enumerate(names)]
    text = [name in ("kernel", "grid", "block", "precision") for name in given]
    return header(render(given, rows, text, Style(width)))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_settings_that_tell_no_rows_apart_go_before_the_last_figures(width: int) -> None:
    shown = configurations(width, ("a_kernel_of_a_long_name_1", "a_kernel_of_a_long_name_2", "a_kernel_of_a_long_name_3"))
    assert {"rank", "kernel", "duration_us", "roof_pct"} <= set(shown)


def test_settings_that_tell_rows_apart_stay() -> None:
    names = ("tells", "kernel", "precision", "duration_us", "gflop_per_s", "roof_pct")
    rows = [("a", f"kernel_{i // 2}", f"tensor_bf16_dst_fp{32 - 16 * (i % 2)}", 22.49, 23308.9, 7.47) for i in range(4)]
    assert header(render(names, rows, (True, True, True, False, False, False), Style(50)))[:2] == ["kernel", "precision"]


def test_a_long_header_takes_two_lines_before_a_column_goes() -> None:
    names, text = ("name", "sm_efficiency_pct", "estimated_occupancy_pct", "calls"), (True, False, False, False)
    rows = [(f"kernel_{i}", 76.5, 37.1, i) for i in range(2)]
    narrow = render(names, rows, text, Style(50))
    assert header(narrow) == list(names) and "more" not in narrow
    assert narrow.splitlines()[0].split() == ["sm_efficiency", "estimated"]
    assert render(names, rows, text, Style(80)).splitlines()[0].split() == list(names), "only where there is no room"


@pytest.mark.parametrize(("width", "kept"), [(60, ["a", "b", "c"]), (22, ["b", "a"]), (10, ["b"])])
def test_of_the_columns_that_are_asked_for_first_the_last_go_first(width: int, kept: list[str]) -> None:
    names = ("c", "b", "a")
    text = render(names, [("1" * 9, "2" * 9, "3" * 9)], (False,) * 3, Style(width, first=("b", "a", "c")))
    assert sorted(header(text)) == sorted(kept)


def test_ids_are_the_last_that_people_read() -> None:
    assert ids_last(["run", "profile_id", "window_index", "step", "ns"]) == ["run", "step", "ns", "profile_id", "window_index"]


def test_of_many_columns_some_are_named() -> None:
    names = [f"column_{i}" for i in range(40)]
    text = render(names, [tuple(range(40))] * 2, (False,) * 40, Style(80))
    assert "column_39" not in text and re.search(r"\((\d\d) columns \(.*…\) more:", " ".join(text.split()))


def test_parts_without_room_are_summed_up_so_that_parts_add_up() -> None:
    names = ("step", "step_ns", "one_ns", "two_ns", "three_ns", "four_ns")
    rows = [(1, 10_000, 4000, 3000, 2000, 1000), (2, 7000, 7000, 0, None, 0)]
    books = [("step_ns", names[2:])]
    style = Style(55, units=True, first=names, sums=books)
    narrow = render(names, rows, (False,) * 6, style).splitlines()
    assert narrow[0].split() == ["step", "step", "time", "one", "two", "rest"]
    assert narrow[2].split() == ["1", "10.00", "µs", "4.000", "µs", "3.000", "µs", "3.000", "µs"]
    assert narrow[3].split()[-1] == "–", "a part is unknown"
    assert "rest" not in render(names, rows, (False,) * 6, Style(120, units=True, first=names, sums=books)).splitlines()[0]


def test_a_rate_alone_in_the_table_needs_no_unit_in_its_header() -> None:
    names = ("name", "achieved_flop_per_s", "peak_flop_per_s", "peak_bytes_per_s")
    text = render(names, [("a", 1e9, 2e9, 3e9)], (True, False, False, False), Style(120, units=True))
    assert header(text) == ["name", "achieved", "peak_flop", "peak_bytes"]


def test_people_read_units_and_columns_that_are_asked_for_first_stay() -> None:
    names, text = ("name", "step", "step_ns", "start_ns", "sent_bytes", "verdict"), (True, False, False, False, False, True)
    rows = [("a", 1, 1_500_000, 12_345_678_901, 4 << 20, "straggler"), ("b", 2, None, 0, None, "on time")]
    lines = render(names, rows, text, Style(120, units=True)).splitlines()
    assert lines[0].split() == ["name", "step", "step", "time", "start_ns", "sent_bytes", "verdict"]
    assert lines[2].split() == ["a", "1", "1.500", "ms", "12,345,678,901", "4.000", "MiB", "straggler"]
    assert lines[3].split() == ["b", "2", "–", "0", "–", "on", "time"]
    narrow = render(names, rows, text, Style(22, units=True, first=("verdict", "step_ns"))).splitlines()
    assert narrow[0].split() == ["step", "time", "verdict"]
    assert "(4 columns (name, step, start_ns, sent_bytes) more:" in " ".join(line.strip() for line in narrow)
    assert "1,500,000" in render(names, rows, text, Style(120))


def test_columns_that_say_nothing_go_first() -> None:
    rows = [("r", None, f"kernel {i}", 10**15) for i in range(2)]
    lines = render(("run", "execution_id", "name", "total_ns"), rows, (True, True, True, False), Style(36)).splitlines()
    assert lines[0] == "run r" and "execution_id" not in lines[1] and "execution_id" in " ".join(lines[-2:])


def test_a_figure_that_no_row_has_makes_room() -> None:
    rows = [(f"kernel {i}", None, 10**15 + i) for i in range(2)]
    assert render(("name", "stream", "total_ns"), rows, (True, False, False), Style(80)).splitlines()[0].split()[1] == "stream"
    lines = render(("name", "stream", "total_ns"), rows, (True, False, False), Style(36)).splitlines()
    assert lines[0].split() == ["name", "total_ns"] and lines[-1] == "(empty: stream)"
    one = render(("name", "stream", "total_ns"), rows[:1], (True, False, False), Style(36)).splitlines()
    assert one[0].split() == ["name", "total_ns"], "of one row, too"


def test_points_that_differ_in_their_level_alone_show_it() -> None:
    rows = [("k" * 20, "64x1x1", level, 10**12 + n) for n, level in enumerate(("dram", "l2"))]
    rows.append(("j" * 20, "128x1x1", "l2", 1))
    names = ("kernel", "grid", "level", "total_ns")
    lines = render(names, rows, (True, True, True, False), Style(40, first=["kernel", "total_ns", "grid"])).splitlines()
    assert lines[0].split() == ["kernel", "level"]


def test_what_rows_have_in_common_is_broken_between_columns() -> None:
    rows = [("a name of words", "content:distributedInfo", f"{i}" * 30) for i in range(2)]
    lines = render(("kind", "rank_source", "path"), rows, (True, True, True), Style(44)).splitlines()
    assert lines[:2] == ["kind a name of words ·", "rank_source content:distributedInfo"]
    some = [("no words are broken here, where one is too long for a line", f"{i}" * 40) for i in range(2)]
    lines = render(("kind", "path"), some, (True, True), Style(44)).splitlines()
    assert lines[:2] == ["kind no words are broken here, where one is", "too long for a line"]


@pytest.mark.parametrize(("per_second", "text"), [
    (24_356_667_878.9, "24.36 GB/s"), (999.0, "999 B/s"), (999_996_000.0, "1.000 GB/s"), (0, "0 B/s"), (None, "–")])
def test_a_rate_has_a_unit(per_second: float | None, text: str) -> None:
    assert rate(per_second, "B") == text


@pytest.mark.parametrize("width", [60, 70, 80])
def test_a_verdict_is_decisive_and_not_cut(width: int) -> None:
    rows = [(rank, 10**9, 10**9, 10**9, 10**9, "cannot tell, ± 77.1 µs" if rank else "late") for rank in range(4)]
    names = ("rank", "times_last_in_all", "caused_delay_of_all", "others_wait_in_all", "wait_for_them", "verdict")
    text = render(names, rows, (False,) * 5 + (True,), Style(width, first=("rank", "verdict")))
    assert text.count("cannot tell, ± 77.1 µs") == 3 and max(map(len, text.splitlines())) <= width


def test_a_command_takes_more_lines_and_can_be_copied() -> None:
    command = "nsightlens show --store runs/megatron-lm-8 idle_causes"
    text = render(("rule", "more", *"abcdefgh"), [("host", command, *[10**9] * 8)], (True, True, *[False] * 8), Style(150))
    assert "…" not in text and all(word in text.split() for word in command.split())


def test_runs_that_tell_rows_apart_stay_and_figures_that_are_the_same_go() -> None:
    names = ("run", "tool", "step", "step_ns", "kernel_ns", "memcpy_ns", "other_ns")
    rows = [(run, "kineto", step, 10**6 * step, 10**5 * step, 0, 10**4 * step) for run in ("base", "other") for step in (1, 2)]
    text = render(names, rows, (True, True, False, False, False, False, False), Style(44, units=True, first=names[2:]))
    assert header(text) == ["run", "step", "step time", "kernel"] and "memcpy" not in "".join(text.splitlines()[:2])


PARALLEL = ("void clover::par_ranged2d_kernel<{}(bool, int, clover::Buffer2D<double> &)::[lambda(int, int) (instance 1)]>"
            "(clover::Range2d, T1)")


def test_names_of_kernels_that_have_to_be_cut_are_labels() -> None:
    name = ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
            "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)")
    names, text = ("name", "family", "total_ns"), (True, True, False)
    shown = render(names, [(name, "elementwise", 5), ("gemm", "gemm", 6)], text, Style(80))
    assert "vectorized_elementwise_kernel<CUDAFunctor_add" in shown and "void at::" not in shown
    assert name in render(names, [(name, "elementwise", 5)], text, Style(wide=True))


@pytest.mark.parametrize("width", [60, 100, 250])
def test_a_kernel_has_one_name_in_every_table(width: int) -> None:
    """Of a view whose documentation says so, of a query with families, and of items with a launch configuration."""
    name = PARALLEL.format("PdV_kernel")
    item = f"{kernel_key(name)}  grid 115200x1x1 block 256x1x1"
    tables = [render(("name", "total_ns"), [(name, 5)], (True, False), Style(width, kernels=("name",))),
              render(("name", "family"), [(name, "other")], (True, True), Style(width)),
              render(("item", "total_ns"), [(item, 5)], (True, False), Style(width))]
    assert ["par_ranged2d_kernel<PdV_kernel>" in text for text in tables] == [True] * 3


def test_launches_of_one_kernel_are_told_apart_by_their_configuration() -> None:
    items = [f"{kernel_key(PARALLEL.format('PdV_kernel'))}  grid {grid}x1x1 block 256x1x1" for grid in (8, 16)]
    text = render(("item", "total_ns"), [(item, 5) for item in items], (True, False), Style(60))
    assert "par_ranged2d_kernel<PdV_kernel>: 8x1x1" in text and "par_ranged2d_kernel<PdV_kernel>: 16x1x1" in text


def test_only_the_kernels_of_a_table_of_several_kinds_are_labels() -> None:
    rows = [("kernel", "void f<int>(int)"), ("memcpy", "Memcpy HtoD (Pageable -> Device)")]
    text = render(("kind", "name"), rows, (True, True), Style(80, kernels=("name",)))
    assert "f<int>" in text and "void" not in text and "Memcpy HtoD (Pageable -> Device)" in text


@pytest.mark.parametrize(("column", "ns", "text"), [
    ("first_ns", 1_706_850_122_838_249_000, "2024-02-02 05:02:02.838 UTC"),
    ("origin_epoch_ns", 1_706_850_122_000_000_999, "2024-02-02 05:02:02.000 UTC"),
    ("first_ns", 533_338_240, "533,338,240"),
    ("start_ns", 0, "0"),
])
def test_a_point_in_time_since_the_epoch_is_a_date_and_one_since_the_beginning_is_not(column: str, ns: int, text: str) -> None:
    shown = render(("rank", column), [(0, ns), (1, None)], (False, False), Style(80, units=True)).splitlines()
    assert shown[-2].split(maxsplit=1) == ["0", text] and shown[-1].split() == ["1", "–"]
    assert str(ns) in render(("rank", column), [(0, ns)], (False, False), Style(80)).replace(",", "")
    assert f">{text}<" in html_table(pa.table({column: [ns]}))


def test_a_figure_that_repeats_another_one_goes_first_and_ids_in_common_are_not_shown() -> None:
    rows = [("p0", n * 1000, n * 1000, n, f"kernel_{'x' * 30}{n}") for n in range(1, 4)]
    names = ("profile_id", "total_ns", "clipped_ns", "launches", "name")
    lines = render(names, rows, (True, False, False, False, True), Style(50)).splitlines()
    assert lines[0].split() == ["total_ns", "launches", "name"] and "profile_id p0" not in "".join(lines)
    assert "(2 columns (profile_id, clipped_ns) more: --wide, or" in " ".join(line.strip() for line in lines[-2:])


def test_parts_of_which_none_is_known_have_no_rest() -> None:
    names = ("name", "gain_ns", "loss_ns", "other_ns", "third_ns", "total_ns")
    rows = [(f"kernel{n}" + "y" * 20, None, None, n, 100 - n, 100) for n in range(3)]
    text = render(names, rows, (True, *[False] * 5), Style(58, units=True, sums=[("total_ns", names[1:5])]))
    assert text.splitlines()[0].split() == ["name", "other", "third", "total"]
