"""demangle: the readable form of what compilers emit for kernels, and the symbol itself for anything else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsightlens.names.demangle import demangle
from nsightlens.names.kernel_names import kernel_key
from tests.names import corpus

_LAMBDA = ("at::native::rsqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#2}::"
           "operator()() const::{lambda(float)#1}")

# As GNU's c++filt prints them, but for `>>`, `(unsigned long)4` and the `void` of local templates.
SYMBOLS = [
    ("_Z5saxpyPdS_S_di", "saxpy(double*, double*, double*, double, int)"),
    ("_ZN12_GLOBAL__N_13fooIfEEvT_", "void (anonymous namespace)::foo<float>(float)"),
    ("_ZN2at6native53_GLOBAL__N__21739cd4_20_layer_norm_kernel_cu_9c5ada8a4normIfEEvPKT_",
     "void at::native::(anonymous namespace)::norm<float>(float const*)"),
    ("_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE",
     "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"),
    ("_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_17rsqrt_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE0_clEvENKUlvE0_"
     "clEvEUlfE_St5arrayIPcLm2EEEEviT0_T1_",
     f"void at::native::vectorized_elementwise_kernel<4, {_LAMBDA}, std::array<char*, (unsigned long)2>>"
     f"(int, {_LAMBDA}, std::array<char*, (unsigned long)2>)"),
    ("_Z1fIXadL_Z3gooIfEiT_EEEvv", "void f<&(int goo<float>(float))>()"),
    ("_Z1fIZ4mainEUlT_E_EvS0_", "void f<main::{lambda(auto)#1}>(auto)"),
    ("_Z1kIJifEEvDpT_", "void k<int, float>(int, float)"),
    ("_Z1kIJEEvDpT_", "void k<>()"),
    ("_Z1fIPFviEEvT_", "void f<void (*)(int)>(void (*)(int))"),
    ("_Z1fIMN1A1BEFviEEvT_", "void f<void (A::B::*)(int)>(void (A::B::*)(int))"),
    ("_Z1fILi4ELb1ELc97ELin3EEvv", "void f<4, true, (char)97, -3>()"),
    ("_Z1fILN1A4KindE2EEvv", "void f<(A::Kind)2>()"),
    ("_Z1fIXgtLi8ELi0EEEvv", "void f<((8)>(0))>()"),
    ("_Z1gIfENSt9enable_ifIXntLb0EEvE4typeET_", "std::enable_if<!(false), void>::type g<float>(float)"),
    ("_Z1gIfENSt9enable_ifIXsrSt7is_sameIifE5valueEvE4typeEv",
     "std::enable_if<std::is_same<int, float>::value, void>::type g<float>()"),
    ("_ZL6kernelPf", "kernel(float*)"),
    ("_Z4copyB2v1B4abcd5ArrayIxLi1E1CE", "copy[abi:v1][abi:abcd](Array<long long, 1, C>)"),
    ("_Z1hIDF16_DhDF16bDnEvv", "void h<_Float16, half, std::bfloat16_t, decltype(nullptr)>()"),
    ("_Z1fRA4_Kf", "f(float const (&)[4])"),
    ("_ZN2nsUt_1fEv", "ns::{unnamed type#1}::f()"),
    ("_ZN1AIfEC1Ev", "A<float>::A()"),
    ("_ZN2ns1AC1Ev", "ns::A::A()"),
    ("_ZN2ns1AIN2ms1BIiEEED1Ev", "ns::A<ms::B<int>>::~A()"),
    ("_ZN2ns1AIfE1BC1Ev", "ns::A<float>::B::B()"),
    ("_ZN1AIiE1fES_S0_", "A<int>::f(A, A<int>)"),
    ("_ZN2ns1fEP1AS0_S1_", "ns::f(A*, A, A*)"),
    ("_Z1f1ANS_1BES0_", "f(A, A::B, A::B)"),
    ("_Z1fILi4EEv1AIXplT_Li1EEE", "void f<4>(A<(4)+(1)>)"),
    ("_Z1fRA42949672960_f", "f(float (&)[42949672960])"),
    ("_Z1fPA_f", "f(float (*)[])"),
    ("_Z1fILi4EEvRAT__f", "void f<4>(float (&)[4])"),
    ("_Z1fDF16_1AS_", "f(_Float16, A, A)"),
    ("_Z1fDF16b1AS_", "f(std::bfloat16_t, A, A)"),
    ("_ZZ1gvEs", "g()::string literal"),
    ("_Z1fIZ1gvEUlvE2_Evv", "void f<g()::{lambda()#4}>()"),
    ("_Z1fIZ1gvEUlvE123456789_Evv", "void f<g()::{lambda()#123456791}>()"),
    ("_Z1fu6__bf16", "f(__bf16)"),
    ("_Z1fIXquLb1ELi2ELi3EEEvv", "void f<(true)?(2) : (3)>()"),
    ("_ZNK1AclEv", "A::operator()() const"),
    ("_Z1fPU3AS1f", "f(float AS1*)"),
    ("_Z1fI1AILi1EES1_S0_IiEEvv", "void f<A<1>, A<1>, A<int>>()"),
    ("_Z1kIifEvT0_T_", "void k<int, float>(float, int)"),
    ("_Z1kPf.kd", "k(float*)"),
    ("___Z1kPf", "k(float*)"),
    ("_Z1fITnPFfiEXadL_Z1giEEEvv", "void f<&(g(int))>()"),
    ("_Z1fI1ATnPFT_RKS1_EXadL_Z4siluS3_EETnbLb1EEvPS0_", "void f<A, &(silu(A const&)), true>(A*)"),
]
OPERATIONS = {
    "ps": "+(2)", "ng": "-(2)", "ad": "&(2)", "de": "*(2)", "co": "~(2)", "nt": "!(2)", "pp": "(2)++", "pp_": "++(2)",
    "mm": "(2)--", "mm_": "--(2)", "pl": "(2)+(3)", "mi": "(2)-(3)", "ml": "(2)*(3)", "dv": "(2)/(3)", "rm": "(2)%(3)",
    "an": "(2)&(3)", "or": "(2)|(3)", "eo": "(2)^(3)", "aS": "(2)=(3)", "pL": "(2)+=(3)", "mI": "(2)-=(3)", "mL": "(2)*=(3)",
    "dV": "(2)/=(3)", "rM": "(2)%=(3)", "aN": "(2)&=(3)", "oR": "(2)|=(3)", "eO": "(2)^=(3)", "ls": "(2)<<(3)",
    "rs": "((2)>>(3))", "lS": "(2)<<=(3)", "rS": "((2)>>=(3))", "eq": "(2)==(3)", "ne": "(2)!=(3)", "lt": "(2)<(3)",
    "gt": "((2)>(3))", "le": "(2)<=(3)", "ge": "((2)>=(3))", "ss": "((2)<=>(3))", "aa": "(2)&&(3)", "oo": "(2)||(3)",
    "cm": "(2),(3)", "pm": "((2)->*(3))", "pt": "((2)->(3))", "ix": "(2)[3]",
}
"""As GNU's c++filt prints them, but for the brackets around all that hold a `>`."""
LEFT_ALONE = ["saxpy", "", "_Z", "_Z1", "_Z99f", "_ZN", "_Z1fI", "_ZTV1A", "_Z1f!", "_Z1fS5_", "_Z1fvE", "_Z1fT_", "_Z\u0663foo",
              "_Z1fIiEvT0000000000_", "_Z1fIiEvT1_", "_Z1fIXdlEEvv", "_Z1fIXdaEEvv", "_Z1fIXdlLi0EEEvv", "_Z1fIXdaLi0EEEvv"]


@pytest.mark.parametrize(("symbol", "name"), SYMBOLS)
def test_symbols(symbol: str, name: str) -> None:
    assert demangle(symbol) == name


def test_operations_take_one_operand_or_two() -> None:
    values = {code: "Li2E" + "Li3E" * ("3" in text) for code, text in OPERATIONS.items()}
    found = {code: demangle(f"_Z1fIX{code}{values[code]}EEvv") for code in OPERATIONS}
    assert found == {code: f"void f<{text}>()" for code, text in OPERATIONS.items()}


@pytest.mark.parametrize("symbol", LEFT_ALONE)
def test_what_is_no_symbol_is_left_alone(symbol: str) -> None:
    assert demangle(symbol) == symbol


@pytest.mark.captures
def test_a_symbol_has_the_key_of_its_name_in_the_captures() -> None:
    corpus.needed()
    rows = [row for path in sorted((corpus.DATA / "nsys").glob("*.sqlite")) for row in corpus.nsys_rows(path)]
    both = [(name, mangled) for name, _, mangled, _ in rows if mangled is not None and mangled.startswith("_Z")]
    assert len({mangled for _, mangled in both}) >= 138
    assert [pair for pair in both if kernel_key(pair[0], "nsys") != kernel_key(pair[1], "nsys")] == []


@pytest.mark.captures
def test_all_symbols_of_the_captures_are_read() -> None:
    corpus.needed()
    symbols = {name for names in corpus.captures().values() for name in names if name.startswith("_Z")}
    assert len(symbols) >= 8
    assert [symbol for symbol in symbols if demangle(symbol) == symbol] == []


@settings(max_examples=500)
@given(st.sampled_from([symbol for symbol, _ in SYMBOLS]), st.data())
def test_damaged_symbols_are_text_still(symbol: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(2, len(symbol)))
    damage = data.draw(st.text("NEISTZLXJPRKUlvifdDGABCM0123456789_", max_size=3))
    assert isinstance(demangle(symbol[:at] + damage + symbol[at + data.draw(st.integers(0, 9)):]), str)


ENDLESS = ["P", "J", "N", "Z", "K", "F", "A_", "9", "1AI", "M1A", "nt", "S_", "UlvE", "XadL", "D", "Dp", "U1a", "B1a"]


@pytest.mark.parametrize("part", ENDLESS)
def test_endless_nesting_is_left_alone(part: str) -> None:
    for start in ("_Z", "_Z1f", "_Z1fI", "_Z1fIX", "_ZN"):
        symbol = start + part * (100_000 // len(part))
        assert demangle(symbol) == symbol


def test_each_text_counts_as_its_length_and_one(monkeypatch: pytest.MonkeyPatch) -> None:
    work = len("f") + len("int") + 2  # the name and its one parameter
    work += len("int") + 1 + len("f(int)") + 1  # the parameters, and all
    monkeypatch.setattr("nsightlens.names.symbol.MAX_WORK", work)
    assert demangle("_Z1fi") == "f(int)"
    monkeypatch.setattr("nsightlens.names.symbol.MAX_WORK", work - 1)
    assert demangle("_Z1fi") == "_Z1fi"


def test_a_type_is_read_100_levels_deep() -> None:
    levels = 98  # of pointers, in the function and around the int
    assert demangle(f"_Z1f{'P' * levels}i") == f"f(int{'*' * levels})"
    assert demangle(f"_Z1fP{'P' * levels}i") == f"_Z1fP{'P' * levels}i"


@pytest.mark.parametrize("part", ["i", "Pi", "Li2E", "L_Z1gvE", "XplLi1ELi2EE", "JiiE", "Z1gvEUlvE_", "FvvE", "Tnii"])
def test_what_stands_side_by_side_is_not_nested(part: str) -> None:
    many = part * 200
    assert demangle(f"_Z1fI{many}Evv").startswith("void f<")
    deep = f"_Z1fI{many}{'P' * 100}iEvv"
    assert demangle(deep) == deep


def test_substitutions_that_double_do_not_fill_the_memory() -> None:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def doubled(times: int) -> str:
        return "_Z1f1A1BIS_S_E" + "".join(f"1BIS{digits[n]}_S{digits[n]}_E" for n in range(1, 2 * times, 2))

    assert demangle(doubled(2)) == "f(A, B<A, A>, B<B<A, A>, B<A, A>>, B<B<B<A, A>, B<A, A>>, B<B<A, A>, B<A, A>>>)"
    assert demangle(doubled(17)) == doubled(17)
