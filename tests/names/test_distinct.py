"""distinct: the words behind labels that several names would share, and the numbers where no word helps."""

from __future__ import annotations

import pytest

from nsightlens.names.distinct import distinct


@pytest.mark.parametrize(("one", "other", "words"), [
    ("tile left_1 x", "tile left_2 x", ("left_1", "left_2")),
    ("a tile left_12", "a tile left_22", ("left_12", "left_22")),
    ("far behind the beginning: left_1", "far behind the beginning: left_2", ("left_1", "left_2")),
    ("x" * 23 + "1", "x" * 23 + "2", ("x" * 23 + "1", "x" * 23 + "2")),
    ("x" * 24 + "1", "x" * 24 + "2", ("1", "2")),
    ("1" + "x" * 23, "2" + "x" * 23, ("1" + "x" * 23, "2" + "x" * 23)),
    ("1" + "x" * 24, "2" + "x" * 24, ("1", "2")),
    ("long_" * 6 + "nt_y", "long_" * 6 + "tn_y", ("nt", "tn")),
])
def test_a_label_is_followed_by_the_word_that_differs(one: str, other: str, words: tuple[str, str]) -> None:
    assert list(distinct({"a": ("f", one), "b": ("f", other)}, 60).values()) == [f"f: {word}" for word in words]


def test_a_third_of_a_label_is_left_to_what_names_share() -> None:
    assert distinct({"a": ("kernel", "l" * 8), "b": ("kernel", "r" * 8)}, 12) == {"a": "…l: llllllll", "b": "…l: rrrrrrrr"}
    assert distinct({"a": ("kernel", "l" * 9), "b": ("kernel", "r" * 9)}, 12) == {"a": "kernel (1)", "b": "kernel (2)"}


def test_equal_names_are_numbered_from_1_and_none_gets_a_label_that_is_taken() -> None:
    same = dict.fromkeys("abc", ("f",))
    assert distinct(same, 12) == {"a": "f (1)", "b": "f (2)", "c": "f (3)"}
    labels = distinct(same | {"d": ("f (2)",)}, 12, taken=["f (1)", "g"])
    assert labels == {"a": "f (3)", "b": "f (4)", "c": "f (5)", "d": "f (2)"}
    assert distinct({"a": ("f",)}, 12, taken=["f"]) == {"a": "f (1)"}
