"""The roofline chart: where its points and roofs stand, and what it says; in data coordinates, never pixels."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation

from nsightlens import plots
from nsightlens.errors import NsightlensError, UsageError
from nsightlens.plots.frame import Picture
from nsightlens.plots.roofline import series_labels
from nsightlens.plots.roofline_roofs import precision_name, quantity
from nsightlens.views.palette import COLOURS


def row(number: int = 0, **more: Any) -> dict[str, Any]:
    """A row of the view: 1 TFLOP/s at 2 operations per byte under 10 TFLOP/s and 1 TB/s."""
    return {
        "configuration_id": f"c{number}", "run": "base", "rank": 0, "gpu": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0",
        "name": f"kernel{number}<float>(int)", "short_name": f"kernel{number}", "grid_x": 8, "grid_y": 2, "grid_z": 1,
        "block_x": 128, "block_y": 1, "block_z": 1, "clock_control": None, "simulated": False, "level": "dram",
        "precision": "fp32", "plottable": True, "not_plottable_reason": None, "level_definition": "dram__bytes",
        "achieved_flop_per_s": 1e12, "arithmetic_intensity": 2.0, "peak_flop_per_s": 10e12,
        "peak_bytes_per_s": 1e12, "roof_clock_hz": 1.1e9, "datasheet_peak_flop_per_s": 19.5e12,
        "datasheet_peak_bytes_per_s": 2039e9, "datasheet_clock_hz": 1.41e9, "datasheet_gpu": "A100 SXM4 80GB",
    } | more


def draw(*rows: dict[str, Any], **options: Any) -> Picture:
    return plots.roofline(pa.Table.from_pylist(list(rows)), **options)


def points(axes: Axes) -> dict[str, tuple[float, float]]:
    return {str(line.get_gid()): path(line)[0] for line in axes.lines if line.get_label() == "_point"}


def path(line: Line2D) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in np.asarray(line.get_xydata())]


def roofs(axes: Axes) -> dict[str, Line2D]:
    labelled = {str(line.get_label()): line for line in axes.lines}
    return {label.removeprefix("_roof "): line for label, line in labelled.items() if label.startswith("_roof ")}


def texts(figure: Figure) -> str:
    shown = [text.get_text() for axes in figure.axes for text in axes.texts]
    shown += [axes.get_title(loc="left") for axes in figure.axes]
    for legend in (*figure.legends, *(axes.get_legend() for axes in figure.axes)):
        if legend is not None:
            shown += [legend.get_title().get_text(), *(text.get_text() for text in legend.get_texts())]
    shown.append(getattr(figure, "notes", ""))
    return "\n".join(shown)


def test_points_stand_at_intensity_and_performance_on_logarithmic_axes() -> None:
    figure = draw(row(0), row(1, arithmetic_intensity=100.0, achieved_flop_per_s=9e12))
    (axes,) = figure.axes
    assert points(axes) == {"point 1 dram": (2.0, 1e12), "point 2 dram": (100.0, 9e12)}
    assert axes.get_xscale() == axes.get_yscale() == "log"
    left, right = axes.get_xlim()
    bottom, top = axes.get_ylim()
    assert all(left < x < right and bottom < y < top for x, y in points(axes).values())


def test_roofs_meet_at_the_ridge() -> None:
    (axes,) = draw(row()).axes
    dram, fp32 = (path(roofs(axes)[name]) for name in ("DRAM", "FP32"))
    assert all(y == pytest.approx(1e12 * x) for x, y in dram)
    assert dram[-1] == pytest.approx((10.0, 10e12)) == fp32[0]
    assert fp32[0][1] == fp32[-1][1] and fp32[-1][0] == axes.get_xlim()[1]
    ridges = [path(line)[0] for line in axes.lines if line.get_label() == "_ridge"]
    assert ridges == [pytest.approx((10.0, 10e12))]
    assert "10" in [text.get_text() for text in axes.texts]


def test_the_numbers_of_the_ridges_are_clear_of_the_roofs_labels() -> None:
    """Two flats so near each other that the label of the lower one covers the ridge of the upper."""
    slow, fast = ({"peak_bytes_per_s": 1.76e12, "peak_flop_per_s": flop, "roof_clock_hz": hz}
                  for flop, hz in ((87.5e12, 2.01e9), (105e12, 2.41e9)))
    tensor = {"precision": "tensor_bf16_dst_fp32", "peak_flop_per_s": None, "datasheet_peak_flop_per_s": 210e12}
    figure = draw(row(0, **slow, arithmetic_intensity=0.25, achieved_flop_per_s=1.4e10), row(1, **fast),
                  row(2, **fast | tensor, arithmetic_intensity=380.0, achieved_flop_per_s=54e12))
    (axes,) = figure.axes
    labels = {text.get_text(): text.get_window_extent() for text in axes.texts}
    ridges = [labels["59.7"], labels["119"]]
    flats = [box for text, box in labels.items() if "FLOP/s @" in text]
    assert len(flats) == 2 and not any(ridge.overlaps(flat) for ridge in ridges for flat in flats)


def test_figure_names_gpu_clock_precision_level_and_roofs() -> None:
    shown = texts(draw(row()))
    for text in ("NVIDIA A100-SXM4-80GB", "compute capability 8.0", "FP32 10.0 TFLOP/s @ 1.10 GHz", "DRAM 1.00 TB/s",
                 "kernel0<float>, 8×2×1, FP32", "DRAM, dram__bytes"):
        assert text in shown
    assert "simulated" not in shown


def test_datasheet_roofs_are_dashed_and_say_so() -> None:
    figure = draw(row(), roofs="datasheet")
    assert {line.is_dashed() for line in roofs(figure.axes[0]).values()} == {True}
    shown = texts(figure)
    assert "FP32 19.5 TFLOP/s @ 1.41 GHz (datasheet)" in shown and "DRAM 2.04 TB/s (datasheet)" in shown


def test_each_roof_falls_back_to_the_other_source() -> None:
    tensor = row(1, precision="tensor_bf16_dst_fp32", peak_flop_per_s=None, datasheet_peak_flop_per_s=312e12)
    figure = draw(row(), tensor)
    dashed = {name: line.is_dashed() for name, line in roofs(figure.axes[0]).items()}
    assert dashed == {"DRAM": False, "FP32": False, "BF16 tensor": True}
    assert "BF16 tensor 312 TFLOP/s @ 1.41 GHz (datasheet)" in texts(figure)


def test_a_roof_that_no_source_knows_is_told() -> None:
    figure = draw(row(0, peak_flop_per_s=None, datasheet_peak_flop_per_s=None), row(1, precision="fp64"))
    assert set(roofs(figure.axes[0])) == {"DRAM", "FP64"}
    assert "Hollow: no roof is known for FP32 (neither ncu's report nor the datasheet of A100 SXM4 80GB has it)" in texts(figure)


ROOFS = ("peak_flop_per_s", "peak_bytes_per_s", "datasheet_peak_flop_per_s", "datasheet_peak_bytes_per_s")


def test_a_point_without_its_roof_is_hollow_and_says_why() -> None:
    """No tensor point stands under the roof of FP32 as if that were its own."""
    unnamed: dict[str, Any] = {"gpu": None, "datasheet_gpu": None}
    tensor = row(1, **unnamed, precision="tensor_bf16_dst_fp32", peak_flop_per_s=None, datasheet_peak_flop_per_s=None)
    figure = draw(row(0, **unnamed), tensor)
    drawn = markers(figure.axes[0])
    assert drawn["point 1 dram"].get_markerfacecolor() != "none" == drawn["point 2 dram"].get_markerfacecolor()
    assert "Hollow: no roof is known for BF16 tensor (the report does not name its GPU: --gpu NAME)" in texts(figure)
    assert "Hollow" not in texts(draw(row(0), row(1)))
    of_l2 = draw(row(0), row(0, level="l2", arithmetic_intensity=9.0, peak_bytes_per_s=None, datasheet_peak_bytes_per_s=None))
    assert [line.get_markerfacecolor() == "none" for line in markers(of_l2.axes[0]).values()] == [False, True]


def test_hollow_means_one_thing() -> None:
    """Neither points at one place, nor ncu's own points, nor ridges are hollow."""
    figure = draw(true_row(0), true_row(1), true_row(2, precision="fp64"))
    lines = [line for line in figure.axes[0].lines if line.get_linestyle() == "None"]
    assert len(lines) > 6 and not {"none", "white"} & {str(line.get_markerfacecolor()) for line in lines}


def test_without_any_roof_there_is_no_picture() -> None:
    with pytest.raises(NsightlensError, match="no roof is known for any of these kernels: the report does not name its GPU"):
        draw(row(gpu=None, datasheet_gpu=None) | dict.fromkeys(ROOFS))
    figure = draw(row(0), row(1, gpu="Some GPU", datasheet_gpu=None) | dict.fromkeys(ROOFS))
    assert len(figure.axes) == 1 and "1 points left out: no roof is known for their GPU" in texts(figure)


def test_a_caution_stands_in_the_picture() -> None:
    assert "Caution: this is not its performance." in texts(draw(row(warning="this is not its performance")))


@pytest.mark.parametrize("seed", range(6))
def test_no_text_of_a_roof_covers_a_point(seed: int) -> None:
    chooser = np.random.default_rng(seed)
    rows = []
    for number in range(int(chooser.integers(1, 20))):
        tensor = {"precision": "tensor_fp16", "peak_flop_per_s": 40e12} if number % 3 else {}
        intensity = 10.0 ** chooser.uniform(-1, 3)
        under = min(tensor.get("peak_flop_per_s", 10e12), 1e12 * intensity)
        rows.append(row(number, **tensor, arithmetic_intensity=intensity, achieved_flop_per_s=under * chooser.uniform(0.3, 1)))
    (axes,) = draw(*rows).axes
    boxes = [text.get_window_extent() for text in axes.texts if text.get_gid() in ("flat", "ridge") and text.get_visible()]
    names = [text for text in axes.texts if isinstance(text, Annotation) and text.get_gid() == "slope"]
    pixels = axes.transData.transform(list(points(axes).values()))
    assert names and not any(box.contains(x, y) for box in boxes for x, y in pixels)
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])
    for text in names:
        turn = text.get_rotation()
        text.set_rotation(0)
        box = text.get_window_extent()
        x, y = axes.transData.transform(text.xy) + np.array(text.get_position()) * axes.figure.dpi / 72
        low, high = (0, box.height) if text.get_verticalalignment() == "bottom" else (-box.height, 0)
        around = (pixels - (x, y)) @ np.array([[np.cos(a := np.radians(turn)), -np.sin(a)], [np.sin(a), np.cos(a)]])
        assert not any(0 < along < box.width and low < across < high for along, across in around)


def test_roofs_at_several_clocks_are_a_band() -> None:
    figure = draw(row(0), row(1, peak_flop_per_s=20e12, roof_clock_hz=2.2e9))
    assert "FP32 10.0–20.0 TFLOP/s @ 1.10–2.20 GHz" in texts(figure)
    assert len(figure.axes[0].collections) == 1
    assert not draw(row(0), row(1)).axes[0].collections


def test_levels_are_told_apart_and_joined() -> None:
    levels = [row(0, level=level, arithmetic_intensity=x, level_definition=f"bytes of {level}", peak_bytes_per_s=bw)
              for level, x, bw in (("l1", 0.5, 15e12), ("dram", 4.0, 1e12), ("l2", 2.0, 5e12))]
    figure = draw(*levels)
    (axes,) = figure.axes
    assert points(axes) == {"point 1 dram": (4.0, 1e12), "point 1 l2": (2.0, 1e12), "point 1 l1": (0.5, 1e12)}
    assert len({line.get_marker() for line in axes.lines if line.get_label() == "_point"}) == 3
    assert set(roofs(axes)) == {"DRAM", "L2", "L1", "FP32"}
    assert path(roofs(axes)["FP32"])[0][0] == pytest.approx(10e12 / 15e12), "from the fastest memory on"
    assert [line for line in axes.lines if line.get_label() == "_levels"]
    assert all(f"bytes at {level}" in texts(figure) for level in ("DRAM", "L2", "L1"))
    assert "L2, bytes of l2" in texts(figure)


def test_definitions_of_a_level_are_never_mixed() -> None:
    figure = draw(row(0), row(1), row(2, level_definition="something else"))
    assert len(points(figure.axes[0])) == 2
    assert "1 points left out" in texts(figure)


def test_twenty_kernels_differ_in_colour_and_marker_and_have_numbers() -> None:
    figure = draw(*(row(i, arithmetic_intensity=2.0 + i, achieved_flop_per_s=1e11 * (i + 1)) for i in range(20)))
    (axes,) = figure.axes
    looks = {(line.get_color(), line.get_marker()) for line in axes.lines if line.get_label() == "_point"}
    assert len(looks) == 20
    assert [text.get_text() for text in axes.texts if text.get_gid() == "number"] == [str(i + 1) for i in range(20)]
    assert "20  kernel19<float>, 8×2×1, FP32" in texts(figure)


def test_colours_are_safe_for_colour_blind_readers() -> None:
    """Okabe and Ito's palette, without black and yellow."""
    assert set(COLOURS) == {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"}


def test_each_gpu_has_its_panel() -> None:
    figure = draw(row(0), row(1, gpu="NVIDIA H100 PCIe", compute_capability="9.0", peak_flop_per_s=50e12))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "Roofline: NVIDIA A100-SXM4-80GB, compute capability 8.0", "Roofline: NVIDIA H100 PCIe, compute capability 9.0"]
    assert [path(roofs(axes)["FP32"])[0][1] for axes in figure.axes] == [10e12, 50e12]
    assert [len(points(axes)) for axes in figure.axes] == [1, 1]


@pytest.mark.parametrize(("gpu", "simulated", "datasheet", "title"), [
    ("A100 (simulated)", True, None, "Roofline: A100 (simulated), compute capability 8.0"),
    ("A100", True, None, "Roofline: A100, compute capability 8.0, simulated capture"),
    (None, False, "RTX 5090", "Roofline: RTX 5090 (as given), compute capability 8.0"),
    (None, False, None, "Roofline: GPU not named in the report, compute capability 8.0"),
])
def test_title_tells_where_the_numbers_are_from(gpu: str | None, simulated: bool, datasheet: str | None, title: str) -> None:
    figure = draw(row(gpu=gpu, simulated=simulated, datasheet_gpu=datasheet))
    assert figure.axes[0].get_title(loc="left") == title


def test_rows_that_are_not_placed_are_counted_not_drawn() -> None:
    absent = row(1, plottable=False, not_plottable_reason="collect more", achieved_flop_per_s=None, arithmetic_intensity=None)
    figure = draw(row(0), absent)
    assert len(points(figure.axes[0])) == 1
    assert "1 of 2 kernels could not be plotted" in texts(figure)


def test_nothing_to_place_says_why() -> None:
    with pytest.raises(NsightlensError, match="collect more"):
        draw(row(plottable=False, not_plottable_reason="collect more"))
    with pytest.raises(NsightlensError, match="there are no rows; where ncu counted nothing, true_roofline"):
        plots.roofline(pa.Table.from_pylist([row()]).slice(0, 0))


def test_labels_tell_series_apart() -> None:
    rows = [row(0, short_name="k", name="k<relu>(x)"), row(1, short_name="k", name="k<gelu>(x)"),
            row(2, short_name="k", name="k<gelu>(x)", block_x=64), row(3, short_name="k", grid_x=9), row(0, precision="fp64")]
    labels = series_labels(rows)
    assert len(labels) == len(set(labels.values())) == 5
    assert labels["c3", "fp32"] == "kernel3<float>, 9×2×1, FP32"
    assert any("relu" in label for label in labels.values())
    assert "run other" in series_labels([row(0), row(1, run="other")])["c1", "fp32"]
    assert "rank 1" in series_labels([row(0), row(1, rank=1)])["c1", "fp32"]


@pytest.mark.parametrize("name", ["$\\frac{1}{$ <script>&amp;</script>", "核a\x1b[31m\nb", "x" * 5000, ""])
def test_hostile_names_are_shown_as_they_are(name: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = draw(row(0, short_name=name, name=name, gpu=name or None, run=name), row(1, short_name=name, run="b"))
    written = plots.save(figure, tmp_path / "x.svg").read_text(encoding="utf-8")
    assert "\x1b" not in written and "<script>" not in written
    assert max(len(line) for line in texts(figure).splitlines()) < 200


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_files_are_what_their_ending_says_and_repeatable(ending: str, magic: bytes, tmp_path: Path) -> None:
    first = plots.save(draw(row()), tmp_path / f"a.{ending}").read_bytes()
    assert first.startswith(magic)
    assert plots.save(draw(row()), tmp_path / f"b.{ending}").read_bytes() == first


def test_texts_stay_texts_in_vector_files(tmp_path: Path) -> None:
    assert "DRAM 1.00 TB/s" in plots.save(draw(row()), tmp_path / "a.svg").read_text(encoding="utf-8")


def test_wrong_ending_and_missing_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape(".png, .svg or .pdf")):
        plots.save(draw(row()), tmp_path / "a.bmp")
    with pytest.raises(NsightlensError, match="cannot be written"):
        plots.save(draw(row()), tmp_path / "none" / "a.png")


@pytest.mark.parametrize(("precision", "shown"), [
    ("fp64", "FP64"), ("tensor_bf16_dst_fp32", "BF16 tensor"), ("tensor_fp16_dst_fp16", "FP16 tensor (FP16 sum)"),
    ("tensor_int8", "INT8 tensor"), ("tensor_fp16_bf16_tf32_dst_fp32", "FP16/BF16/TF32 tensor"),
    ("tensor_tf32_dst_fp32_sparsity_on", "TF32 tensor, sparse"),
])
def test_precisions_are_named(precision: str, shown: str) -> None:
    assert precision_name(precision) == shown


@pytest.mark.parametrize(("least", "greatest", "shown"), [
    (1.756e12, 1.756e12, "1.76 TB/s"), (2.01e9, 2.41e9, "2.01–2.41 GB/s"), (312e12, 312e12, "312 TB/s"),
    (9e11, 1.1e12, "0.900–1.10 TB/s"), (5.0, 5.0, "5.00 B/s"),
])
def test_quantities_have_three_digits(least: float, greatest: float, shown: str) -> None:
    assert quantity(least, greatest, "B/s") == shown


def markers(axes: Axes) -> dict[str, Line2D]:
    return {str(line.get_gid()): line for line in axes.lines if line.get_label() == "_point"}


def test_a_point_on_another_is_larger_and_lies_behind_it() -> None:
    figure = draw(row(0), row(1), row(2), row(3, arithmetic_intensity=50.0))
    (axes,) = figure.axes
    assert "A larger mark lies behind others" in texts(figure)
    assert "behind" not in texts(draw(row(0), row(1, arithmetic_intensity=50.0)))
    drawn = markers(axes)
    first, second, third, alone = (drawn[f"point {number} dram"] for number in range(1, 5))
    assert first.get_markersize() < second.get_markersize() < third.get_markersize()
    assert first.get_zorder() > second.get_zorder() > third.get_zorder()
    assert alone.get_markersize() == first.get_markersize()
    assert points(axes)["point 2 dram"] == (2.0, 1e12), "nothing is moved"


def test_numbers_cover_neither_texts_nor_one_another() -> None:
    figure = draw(*(row(number, arithmetic_intensity=3 * 1.3**number, achieved_flop_per_s=9e12) for number in range(9)))
    (axes,) = figure.axes
    boxes = [text.get_window_extent() for text in axes.texts if text.get_gid() == "number"]
    others = [text.get_window_extent() for text in axes.texts if text.get_gid() != "number"]
    assert len(boxes) == 9
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in [*boxes[:i], *others])


def true_row(number: int = 0, **more: Any) -> dict[str, Any]:
    """A row of true_roofline: 2 TFLOP/s where ncu's own duration gives 1 TFLOP/s; launches of 900 to 1250 ns around 1 us."""
    return row(number) | {
        "achieved_flop_per_s": 2e12, "work_flop": 2e6, "ncu_achieved_flop_per_s": 1e12, "time_tool": "nsys",
        "time_grade": "launch", "launches": 9, "duration_ns": 1000, "p5_duration_ns": 900, "p95_duration_ns": 1250,
        "roof_clock_source": "locked clock of ncu"} | more


def labelled(axes: Axes, label: str) -> list[Line2D]:
    return [line for line in axes.lines if line.get_label() == label]


def test_the_true_point_has_a_bar_and_an_arrow_from_that_of_ncu() -> None:
    figure = draw(true_row())
    (axes,) = figure.axes
    assert points(axes) == {"point 1 dram": (2.0, 2e12)}
    (own,) = labelled(axes, "_ncu")
    assert path(own) == [(2.0, 1e12)] and (own.get_alpha() or 1) < 1
    assert own.get_markersize() < markers(axes)["point 1 dram"].get_markersize()
    (bar,) = axes.containers
    assert isinstance(bar, ErrorbarContainer)
    (segment,) = bar.lines[2][0].get_segments()
    assert [tuple(end) for end in segment] == [pytest.approx((2.0, 1.6e12)), pytest.approx((2.0, 2e12 / 0.9))]
    (arrow,) = [text for text in axes.texts if text.get_gid() == "from ncu"]
    assert isinstance(arrow, Annotation) and (arrow.xy, arrow.xyann) == ((2.0, 2e12), (2.0, 1e12))


def test_a_true_roofline_says_what_its_marks_and_roofs_are() -> None:
    shown = texts(draw(true_row(), true_row(1, time_grade="configuration")))
    for words in ("over the median duration of the launches in nsys (bars: 5th to 95th percentile)",
                  "Small pale marks with an arrow: the same over the duration under ncu", "by grade: launch, configuration",
                  "Roofs of ncu's report at 1.10 GHz, the locked clock of ncu (the clock during the launches is unknown)",
                  "DRAM, dram__bytes"):
        assert words in shown.replace("\n", " ")
    assert "median" not in texts(draw(row()))


def test_one_launch_has_no_bar_and_ncu_without_a_duration_no_point() -> None:
    (axes,) = draw(true_row(launches=1)).axes
    assert not axes.containers and labelled(axes, "_ncu")
    (axes,) = draw(true_row(ncu_achieved_flop_per_s=None)).axes
    assert axes.containers and not labelled(axes, "_ncu") and not [t for t in axes.texts if t.get_gid() == "from ncu"]


def test_all_that_stands_beside_the_points_is_in_the_picture() -> None:
    (axes,) = draw(true_row(ncu_achieved_flop_per_s=1e8, p5_duration_ns=1)).axes
    bottom, top = axes.get_ylim()
    assert bottom < 1e8 and top > 2e15


COLUMN = (3.5, 2.8)


@pytest.mark.parametrize("kernels", [1, 3, 6, 40])
def test_in_a_column_of_a_paper_nothing_is_cut(kernels: int) -> None:
    """Names as long as those of real kernels; where there is no room for a legend, .notes explain the numbers of the points."""
    names = [f"ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn_{number}(int)" for number in range(kernels)]
    rows = [row(number, name=name, short_name=name, arithmetic_intensity=2.0 + number) for number, name in enumerate(names)]
    figure = draw(*rows, size=COLUMN, title="")
    figure.draw_without_rendering()
    assert tuple(figure.get_size_inches()) == COLUMN and figure.axes[0].get_title(loc="left") == ""
    drawn = figure.get_tightbbox()
    assert drawn.x0 > -0.02 < drawn.y0 and drawn.x1 < COLUMN[0] + 0.02 and drawn.y1 < COLUMN[1] + 0.02
    assert figure.axes[0].get_window_extent().height > figure.bbox.height / 3
    explained = kernels if figure.legends else figure.notes.count("ampere_bf16")
    assert explained == kernels and bool(figure.legends) == (kernels < 7)
