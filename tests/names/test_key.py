"""kernel_key: one key per kernel over the tools and their spellings, one kernel per key within a capture."""

from __future__ import annotations

import csv

import pytest

from nsightlens.names.kernel_names import facts, family, kernel_key, short_name
from nsightlens.names.key import ParsedName, parse
from tests.names import corpus

SPELLINGS = [line.split("\t") for line in (corpus.HERE / "spellings.tsv").read_text().splitlines()[2:]]

# Other spellings of one kernel.
ALIKE = [
    ("void f<int=4, bool=1>(float*)", "f<4, 1>"),  # CUDA 10 and older
    ("void f<a::g(int)::'lambda1'(float), 'unnamed'>(int)", "f<g(int)::lambda(float)#3, unnamed#1>"),  # LLVM
    ("void f<main::{lambda(auto:1)#1}>(int)", "f<lambda(auto)#1>"),
    ("void f<std::nullptr_t>(int)", "f<nullptr_t>"),
    ("void f<decltype(nullptr)>(int)", "f<nullptr_t>"),
    ("saxpy(float*) [clone .kd]", "saxpy(float*)"),
    ("saxpy(float*) (.kd)", "saxpy(float*)"),
    ("saxpy.kd", "saxpy"),
    ("_Z5saxpyPf.kd", "saxpy(float*)"),
    ("ns::[local to axpy_cu]::saxpy(float *)", "saxpy(float*)"),
    ("void at::native::sum_functor<float>::operator ()<int>(T1)", "sum_functor<float>::operator()<int>"),
    ("foo(void)", "foo()"),
    ("void f<a, (4)>(int)", "f<a, 4>"),
    ("void f<g()::{lambda()#1}::operator()(h()::{lambda()#2}) const::{lambda()#3}>(int)", "f<g()::lambda()#1::lambda()#3>"),
    ("void f<g()::{lambda()#1}::operator()() const::A::operator()() const::{lambda()#1}>(int)",
     "f<g()::lambda()#1::operator()()::lambda()#1>"),
]

# Different kernels of one capture: their keys must differ.
APART = [
    ("void f<float>(T1 *)", "void f<double>(T1 *)"),
    ("void f<const float>(T1 *)", "void f<float>(T1 *)"),
    ("void f<const float *>(T1)", "void f<float *const>(T1)"),
    ("axpy(float *, int)", "axpy(double *, int)"),
    ("void f<g(int)::[lambda(int) (instance 1)]>(T1)", "void f<g(int)::[lambda(int) (instance 2)]>(T1)"),
    ("void f<g(int)::[lambda(int) (instance 1)]>(T1)", "void f<g(int)::[lambda(float) (instance 1)]>(T1)"),
    ("void f<g(int)::[lambda() (instance 1)]>(T1)", "void f<g(double)::[lambda() (instance 1)]>(T1)"),
    ("void f<(ns::A)0>(int)", "void f<(ns::B)0>(int)"),
    ("void f<unsigned int>(T1)", "void f<unsigned long>(T1)"),
    ("void f<A<int>, B>(T1)", "void f<A<int, B>>(T1)"),
    ("void f<std::plus<void>>(T1)", "void f<std::plus<int>>(T1)"),
    ("triton_poi_fused_add_0", "triton_poi_fused_add_1"),
    ("void f<(int)12>(int)", "void f<(int)1, (int)2>(int)"),
    ("void f<&a::g<int>>(int)", "void f<&a::g<long>>(int)"),
]


@pytest.mark.parametrize(("nsys", "ncu", "kineto", "key"), SPELLINGS, ids=[row[3][:40] for row in SPELLINGS])
def test_the_tools_meet(nsys: str, ncu: str, kineto: str, key: str) -> None:
    assert [kernel_key(nsys, "nsys"), kernel_key(ncu, "ncu"), kernel_key(kineto, "kineto")] == [key] * 3
    assert kernel_key(nsys) == kernel_key(ncu) == kernel_key(kineto) == key


@pytest.mark.parametrize(("name", "key"), ALIKE)
def test_other_spellings(name: str, key: str) -> None:
    assert kernel_key(name) == key


def test_a_mark_without_a_name_is_dropped_too() -> None:
    assert kernel_key(" [clone .kd]") == ""


def test_the_namespaces_of_the_return_type_are_not_those_of_the_kernel() -> None:
    assert parse("at::Tensor ns::detail::f<int>(T1)").scope == "ns::detail"


def test_each_name_of_a_profile_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def counted(name: str, repair: bool) -> ParsedName:
        read.append(name)
        return parse(name, repair)

    monkeypatch.setattr("nsightlens.names.kernel_names.parse", counted)
    names = [f"void of::this_test<only, {number}>(T1)" for number in range(100)]
    for number, name in [*enumerate(names), *enumerate(names)]:
        told = kernel_key(name, "nsys"), short_name(name), family(name)
        assert told == (f"this_test<only, {number}>", "this_test", "other")
    assert read == names


@pytest.mark.parametrize(("one", "other"), APART)
def test_different_kernels_stay_apart(one: str, other: str) -> None:
    assert kernel_key(one, "nsys") != kernel_key(other, "nsys")


@pytest.mark.parametrize("name", ["nvjet_tst_192x8_64x8_4x1_v_bz_TNT", "ampere_sgemm_128x64_nn", "fusion.12", "", "a b", "_Z"])
def test_a_plain_name_is_its_own_key(name: str) -> None:
    assert kernel_key(name) == short_name(name) == name


def test_a_name_is_read_400_brackets_deep() -> None:
    def nested(depth: int) -> str:
        return f"ns::f{'<f' * depth}{'>' * depth}"

    assert kernel_key(nested(400)) == nested(400).removeprefix("ns::")
    assert kernel_key(nested(401)) == nested(401)


def test_only_ncu_names_are_repaired() -> None:
    assert kernel_key("void f<unnamed>::g<2>>(int)", "ncu") == "f<g<2>>"
    assert kernel_key("void f<a, unnamed>::g(int)", "nsys") == "f<a, unnamed>::g(int)"


@pytest.mark.captures
def test_keys_are_injective_within_a_capture() -> None:
    corpus.needed()
    captures = corpus.captures()
    assert len({name for names in captures.values() for name in names}) > 1100
    for capture, names in captures.items():
        keys = facts(list(names), corpus.tool_of(capture)).kernel_key
        seen: dict[str, str] = {}
        for key, name in zip(keys, names, strict=True):
            first = seen.setdefault(key, name)
            assert first == name, f"{capture}: one key for {first} and {name}"


@pytest.mark.parametrize(("recorded", "keys"), [
    (["a::f<int>(T1)", "g()"], ["f<int>", "g()"]),
    (["a::f<b::X>(T1)", "c::d::f<b::X>(T1)", "f<X>(T1)"], ["f<X> [a b]", "f<X> [c::d b]", "f<X> []"]),
    (["f<int>(float*)", "f<int>(double*)", "g()"], ["f<int>(float*)", "f<int>(double*)", "g()"]),
])
def test_names_of_one_profile_that_share_a_key_are_told_apart(recorded: list[str], keys: list[str]) -> None:
    assert facts(recorded, "kineto").kernel_key == keys
    assert facts(recorded[::-1], "kineto").kernel_key == keys[::-1]


@pytest.mark.captures
def test_names_merged_across_captures_are_the_reviewed_ones() -> None:
    corpus.needed()
    by_key: dict[tuple[str, str], set[str]] = {}
    for capture, names in corpus.captures().items():
        for key, name in zip(facts(list(names), corpus.tool_of(capture)).kernel_key, names, strict=True):
            by_key.setdefault((corpus.tool_of(capture), key), set()).add(name)
    lines = (corpus.HERE / "merged_names.tsv").read_text().splitlines()[2:]
    reviewed = dict(line.split("\t") for line in lines)
    assert all(reviewed.values())
    assert {key for (_, key), names in by_key.items() if len(names) > 1} == set(reviewed)


@pytest.mark.captures
def test_the_real_pairs_of_nsys_and_ncu_meet() -> None:
    corpus.needed()
    with (corpus.DATA / "ncu/PAIRS_nsys_ncu_names.tsv").open(newline="") as lines:
        pairs = list(csv.reader(lines, delimiter="\t"))[1:]
    assert len(pairs) == 20
    assert [pair for pair in pairs if kernel_key(pair[0], "nsys") != kernel_key(pair[1], "ncu")] == []
    names = corpus.captures()["nsys/CodeGandee__llm-perf-opt__PAIR_nsys_cuda_gpu_kern_sum.csv"]
    assert len(names) == len({kernel_key(name, "nsys") for name in names}) == 113


@pytest.mark.captures
def test_every_kernel_that_two_tools_recorded_meets() -> None:
    """The kernels of the ncu files are known one by one: 16 of 29 also stand in nsys captures, 14 in Kineto's."""
    corpus.needed()
    keys: dict[str, set[str]] = {"nsys": set(), "ncu": set(), "kineto": set()}
    for capture, names in corpus.captures().items():
        keys[corpus.tool_of(capture)] |= {kernel_key(name, corpus.tool_of(capture)) for name in names}
    assert len(keys["ncu"]) >= 29
    assert len(keys["nsys"] & keys["ncu"]) >= 16
    assert len(keys["kineto"] & keys["ncu"]) >= 14
    assert len(keys["nsys"] & keys["kineto"]) >= 42


@pytest.mark.captures
def test_short_names_are_those_of_nsys() -> None:
    corpus.needed()
    rows = [row for path in sorted((corpus.DATA / "nsys").glob("*.sqlite")) for row in corpus.nsys_rows(path)]
    told = [(short_name(name), short) for name, short, _, _ in rows if short is not None]
    assert len(told) > 150
    assert [pair for pair in told if pair[0] != pair[1]] == []
