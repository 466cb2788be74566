"""nsightlens plot: what is drawn, and what is said where it cannot be."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import nsightlens as nl
from nsightlens.cli.plot import command, least_disturbed
from nsightlens.cli.show import command as show
from nsightlens.errors import NsightlensError, UsageError
from tests.captures import kineto


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plot")
    for rank in range(2):
        kineto(folder / "base" / f"rank{rank}.json", rank=rank)
    nl.ingest([folder / "base"], store=folder / "store", jobs=1).close()
    return folder / "store"


def plot(store: Path, *arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [*map(str, arguments), "--store", str(store)], catch_exceptions=False)


@pytest.mark.parametrize("name", ["step_breakdown", "temporal_breakdown", "kernel_type_breakdown", "top_kernels",
                                  "queue_length_series", "step_timeline"])
def test_every_plot_of_a_timeline_is_drawn(store: Path, tmp_path: Path, name: str) -> None:
    done = plot(store, name, "-o", tmp_path / "x.png")
    assert done.exit_code == 0 and "x.png" in done.stderr and done.stdout == ""
    assert (tmp_path / "x.png").stat().st_size > 3000


def test_filters_and_parameters_go_to_the_view(store: Path, tmp_path: Path) -> None:
    plot(store, "temporal_breakdown", "--rank", "1", "-o", tmp_path / "x.svg")
    assert "rank 1" in (tmp_path / "x.svg").read_text() and "rank 0" not in (tmp_path / "x.svg").read_text()
    assert plot(store, "top_kernels", "how_many=1", "-o", tmp_path / "y.svg").exit_code == 0


def test_size_title_and_top(store: Path, tmp_path: Path) -> None:
    plot(store, "top_kernels", "--top", "1", "--size", "6", "3", "--title", "two ranks", "-o", tmp_path / "x.svg")
    drawn = (tmp_path / "x.svg").read_text()
    assert 'width="432pt" height="216pt"' in drawn and "two ranks" in drawn
    with pytest.raises(UsageError, match="how_many"):
        plot(store, "step_breakdown", "--top", "1", "-o", tmp_path / "x.svg")


def test_the_tool_that_disturbs_least_is_drawn_unless_asked() -> None:
    table = pa.table({"run": ["a", "a", "b", "a"], "tool": ["kineto", "nsys", "kineto", "ncu"], "n": [1, 2, 3, 4]})
    assert least_disturbed(table)["n"].to_pylist() == [2, 3]
    assert least_disturbed(table.select(["run"])).num_rows == 4


def test_without_a_name_the_plots_are_listed(store: Path) -> None:
    lines = plot(store).stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(nl.plots.PLOTS)
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize(("arguments", "error", "message"), [
    (["step_brekdown", "-o", "x.png"], UsageError, "did you mean step_breakdown"),
    (["step_breakdown"], UsageError, "--output step_breakdown.png"),
    (["step_breakdown", "-o", "x.bmp"], UsageError, ".png, .svg or .pdf"),
    (["top_kernels", "--rank", "1", "-o", "x.png"], UsageError, "top_kernels has no column rank; kernel_"),
    (["memory_curve", "-o", "x.png"], NsightlensError, "profile_memory=True"),
    (["step_timeline", "--step", "1,2", "-o", "x.png"], UsageError, "--step 1: the store has none"),
    (["step_timeline", "--step", "77", "-o", "x.png"], UsageError, "--step 77: the store has none"),
])
def test_what_cannot_be_drawn_says_why(store: Path, arguments: list[str], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        plot(store, *arguments)
    assert message in str(caught.value)


def test_show_draws_a_view_that_has_a_plot(store: Path, tmp_path: Path) -> None:
    plot(store, "step_breakdown", "--rank", "1", "-o", tmp_path / "a.svg")
    done = CliRunner().invoke(show, ["step_breakdown", "--rank", "1", "-o", str(tmp_path / "b.svg"), "--store", str(store)])
    paths = [(tmp_path / name).read_text().count("<path") for name in ("a.svg", "b.svg")]
    assert done.exit_code == 0 and paths[0] == paths[1] > 0
    with pytest.raises(UsageError, match="no plot findings"):
        CliRunner().invoke(show, ["findings", "-o", str(tmp_path / "c.png"), "--store", str(store)], catch_exceptions=False)
    assert not (tmp_path / "c.png").exists()
