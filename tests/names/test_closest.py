"""Which names are most like a text."""

from __future__ import annotations

from nsightlens.names.closest import closest_first, closest_words


def test_a_word_of_a_name_or_a_part_of_one_is_compared() -> None:
    names = ["void copy_kernel<int>()", "ampere_sgemm_128x64", "Reduce"]
    assert closest_first("SGEM", names)[0] == "ampere_sgemm_128x64"
    assert closest_first("copykernel", names)[0] == "void copy_kernel<int>()"
    assert closest_first("nothing like it", ["b", "a"]) == ["a", "b"]


def test_what_a_name_stands_for_is_compared_in_its_place() -> None:
    assert closest_words("conv", {"x": "my::conv_kernel", "y": ""}) == {"x": (1.0, "conv"), "y": (0.0, "")}
