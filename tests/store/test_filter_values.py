"""What is filtered on and is not there is refused in Python, too, with what there is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.names.kernel_names import labels
from nsightlens.store.filter_values import _matching


@pytest.mark.parametrize(("view", "asked", "subject", "choices"), [
    ("kernel_by_rank", {"only_rank": 3}, "rank", [0, 1]),
    ("kernel_by_rank", {"only_rank": [0, 3]}, "rank", [0, 1]),
    ("kernel_by_rank", {"only_tool": "rocprof"}, "tool", ["kineto", "ncu", "nsys"]),
    ("step_timeline", {"only_step": 77}, "step", [0, 1, 2, 3, 4]),
    ("step_timeline", {"which_step": 77}, "step", [0, 1, 2, 3, 4]),
    ("straggler", {"only_run": "other"}, "run", ["simulated_resnet18_ddp"]),
])
def test_values_that_the_store_does_not_have(
    bundled_store: Path, view: str, asked: dict[str, object], subject: str, choices: list[object],
) -> None:
    with nl.open(bundled_store) as store, pytest.raises(nl.UsageError, match="the store has") as caught:
        store.view(view, **asked)
    assert (caught.value.subject, list(caught.value.choices)) == (subject, choices)


def test_a_name_that_a_view_does_not_have(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store, pytest.raises(nl.UsageError, match="only_op aten::conv: operator_k") as caught:
        store.view("operator_kernels", only_op="aten::conv")
    assert (caught.value.view, caught.value.subject) == ("operator_kernels", "op")
    assert "aten::cudnn_convolution" in caught.value.choices


def test_a_star_in_a_name_stands_for_any_text(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store:
        names = store.view("kernel_summary", only_tool="nsys")["name"].to_pylist()
        one = next(name for name in names if "gemm" not in name)
        for asked, wanted in (
            ("*gemm*", [name for name in names if "gemm" in name]),
            (["*gemm*", one], [name for name in names if "gemm" in name or name == one]),
            ("ampere_*_nn", [name for name in names if name.startswith("ampere_") and name.endswith("_nn")]),
            ("*", names), ("*GEMM*", [name for name in names if "gemm" in name]),
        ):
            assert store.view("kernel_summary", only_tool="nsys", only_name=asked)["name"].to_pylist() == wanted and wanted
        with pytest.raises(nl.UsageError, match=r"only_name \*nowhere\*: kernel_summary has "):
            store.view("kernel_summary", only_name="*nowhere*")
        with pytest.raises(nl.UsageError, match=r"\* stands for any text: 'only_name=\*gem\*'"):
            store.view("kernel_summary", only_name="gem")
        with pytest.raises(nl.UsageError, match=r"kernel_summary with tool nsys has [^*]+$"):  # no pattern that matches nothing
            store.view("kernel_summary", only_tool="nsys", only_name="nowhere")


def test_a_name_with_a_star_is_itself_where_it_is_there() -> None:
    there = ["f(float *)", "f(float const*, int *)", "f(int *)"]
    assert _matching("f(float *)", there) == ["f(float *)"] and _matching("f(float*)", there) == there[:2]
    assert _matching("f(*int *)", there) == there[1:] and _matching("f[x*", there) == [] and _matching("g", there) == ["g"]


@pytest.mark.parametrize(("view", "asked"), [
    ("kernel_by_rank", {"only_tool": "ncu", "only_rank": 1}),       # each is there, and nothing has both
    ("step_breakdown", {"only_tool": "ncu"}),                       # a tool that cannot record it
    ("diagnostic_summary", {"only_severity": "error"}),             # what a view works out, not a name
    ("step_breakdown", {"only_step": [3, 77], "only_tool": "ncu"}), # of several steps one suffices
    ("kernel_summary", {"only_run": []}),
])
def test_what_is_there_and_has_no_rows_is_an_empty_table(bundled_store: Path, view: str, asked: dict[str, object]) -> None:
    with nl.open(bundled_store) as store:
        assert store.view(view, **asked).num_rows == 0


def test_every_value_that_a_view_shows_can_be_filtered_on(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store:
        for name, view in store.views.items():
            columns = {"run", "rank", "step", "tool", "family"} & {column for column, _ in view.columns}
            if "base" not in {param.name for param in view.params}:  # else of two runs
                shown = store.view(name).select(sorted(columns)).to_pydict()
                for column, values in shown.items():
                    assert set(values) - {None} <= set(store.values_of(column)), f"{name}.{column}"


def test_a_name_as_tables_show_it_stands_for_the_kernel(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store:
        names = store.view("kernel_summary", only_tool="kineto")["name"].to_pylist()
        for longest in (60, 34, 26):
            shown = labels(names, longest)
            for name in names:
                found = store.view("kernel_summary", only_tool="kineto", only_name=shown[name])["name"].to_pylist()
                assert found == [name], shown[name]
        some = sorted(names)[:2]
        cut = [labels(names, 30)[name] for name in some]
        assert sorted(store.view("kernel_summary", only_tool="kineto", only_name=cut)["name"].to_pylist()) == some


def test_names_that_an_error_lists_can_be_pasted(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store, pytest.raises(nl.UsageError) as caught:
        store.view("kernel_summary", only_tool="nsys", only_family="elementwise", only_name="void nothing<like, it>")
    with nl.open(bundled_store) as store:
        there = store.view("kernel_summary", only_tool="nsys", only_family="elementwise")["name"].to_pylist()
        listed = re.findall(r"'[^']+'|[^ ,']+", str(caught.value).partition(" has ")[2])
        assert sorted(map(str, caught.value.choices)) == sorted(there), "only those that the other filters leave"
        assert len(listed) == len(there) > 1 and "with tool nsys, family elementwise has" in str(caught.value)
        pasted = [shlex.split(text)[0] for text in listed]
        found = [store.view("kernel_summary", only_tool="nsys", only_name=name)["name"].to_pylist() for name in pasted]
        assert sorted(found) == [[name] for name in sorted(there)]


def test_few_values_are_listed_closest_first(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store, pytest.raises(nl.UsageError, match="the store has nsys, ncu, kineto"):
        store.view("kernel_summary", only_tool="nsyz")


def test_a_kind_that_is_not_there_is_refused(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store, pytest.raises(nl.UsageError, match=r"only_kind memcopy: .* has memcpy, "):
        store.view("memory_op_summary", only_kind="memcopy")


@pytest.mark.parametrize(("view", "asked", "meant"), [
    ("operator_summary", "only_op", "only_name"), ("kernel_summary", "only_kernel", "only_name"),
    ("operator_kernels", "only_operator", "only_op")])
def test_the_column_of_names_is_offered_for_other_words(bundled_store: Path, view: str, asked: str, meant: str) -> None:
    message = f"there is no parameter {asked}; did you mean {meant}"
    with nl.open(bundled_store) as store, pytest.raises(nl.UsageError, match=message):
        store.view(view, **{asked: "x"})


def test_a_filter_on_steps_chooses_the_step_of_a_view_that_shows_one(bundled_store: Path) -> None:
    with nl.open(bundled_store) as store:
        second = store.view("step_timeline", which_step=2)
        assert second.num_rows and store.view("step_timeline", only_step=2).equals(second)
        assert store.view("step_timeline").equals(store.view("step_timeline", only_step=None))
        assert store.view("critical_path", only_step=2).equals(store.view("critical_path", which_step=2))
        for asked in ({"only_step": [1, 2]}, {"only_step": 1, "which_step": 2}):
            with pytest.raises(nl.UsageError, match="step_timeline takes a single step"):
                store.view("step_timeline", **asked)
