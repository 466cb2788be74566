"""Labels for people: what stays of a kernel's name in a narrow column."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsightlens.names.distinct import shortened
from nsightlens.names.kernel_names import kernel_key, labels
from nsightlens.names.label import shorten, title
from nsightlens.terminal.printable import printable
from tests.names.corpus import captures, needed


def label(name: str) -> str:
    return shorten(kernel_key(name))


LABELS = {
    "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn": "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn",
    "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>(T1::Params)":
        "cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, F, A)":
        "vectorized_elementwise_kernel<CUDAFunctor_add<float>>",
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<c10::BFloat16, "
    "c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&, "
    "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float> > "
    "const&)::{lambda(int)#1}>(int, X)": "elementwise_kernel<BinaryFunctor<BFloat16, MulFunctor<float>>>",
    "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::"
    "{lambda()#1}::operator()() const::{lambda()#6}::operator()() const::{lambda(c10::BFloat16)#1}, std::array<char*, 2> >(int)":
        "vectorized_elementwise_kernel<silu_kernel(BFloat16)>",
    "void par_ranged1d_kernel<update_halo_kernel(int)::{lambda(int)#31}>(int)": "par_ranged1d_kernel<update_halo_kernel#31>",
    "enable_if<!T7, void>::type kernel<int, int, __half, __half, __half, float, 0, 1, 1, 0, 6, 0, cublasGemvParamsEx<int, "
    "cublasGemvTensorStridedBatched<const __half>, cublasGemvTensorStridedBatched<__half>, float>>(T13)":
        "cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<const __half>, cublasGemvTensorStridedBatched<__half>, float>",
    "void Kernel2<float, thrust::complex<double>, T1>(P)": "Kernel2<float, complex<double>, T1>",
    "void kernel<unsigned int>(int*)": "kernel<unsigned int>",
    "gemm_naive_kernel(float const*, float*, int)": "gemm_naive_kernel",
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 64, 2>, (bool)0, (bool)1>(P)":
        "flash_fwd_kernel<Flash_fwd_kernel_traits<64, 64, 2>>",
    "void f<4, at::native::silu_kernel>(int)": "f<silu_kernel>",
    "void f<4, &at::native::silu>(int)": "f<4, &silu>",
    "void f<4, at::silu(int)::{lambda()#1}::operator()() const::{lambda(float)#1}>(int)": "f<silu(float)>",
    f"void {'f<' * 60}float, float{'>' * 60}(T1)": f"{'f<' * 60}float{'>' * 60}",
    "void softmax_warp_forward<float, float, float, 10, true>(float*)": "softmax_warp_forward<float, 10, 1>",
}


@pytest.mark.parametrize(("name", "expected"), LABELS.items(), ids=list(LABELS.values()))
def test_what_tells_a_kernel_stays(name: str, expected: str) -> None:
    assert label(name) == expected


@pytest.mark.parametrize("name", ["", "f<", "f>", "a<b(c>d)", "x,y", "(((", "f<" * 5000, "f<a>" + "b" * 9000, "void"])
def test_odd_texts_come_back_whole(name: str) -> None:
    assert label(name) == kernel_key(name)


@pytest.mark.parametrize("type_name", [
    "int", "unsigned int", "long long", "float", "double", "bool", "char*", "const float*", "__half", "__nv_bfloat16",
    "c10::Half", "c10::BFloat16", "cutlass::half_t", "bfloat16_t", "int8_t", "uint32_t", "float2", "c10::complex<float>",
    "cuDoubleComplex", "T3"])
@pytest.mark.parametrize("base", ["kernel", "Kernel", "Kernel2", "device_kernel", "gpu_kernel_impl"])
def test_a_label_is_never_a_bare_type(base: str, type_name: str) -> None:
    assert label(f"void ns::{base}<{type_name}, {type_name}, 4>(T1)").startswith(f"{base}<")
    assert label(f"void ns::{base}<{type_name}, TheFunctor>(T1)") == "TheFunctor"


def test_labels_tell_kernels_apart() -> None:
    gemv = "void kernel<int, int, __half, 0, 1, 1, 0, {}, 0, cublasGemvParamsEx<int, float>>(T13)"
    names = [gemv.format(6), gemv.format(7), "void Kernel2<cutlass_80_a>(P)", "void Kernel2<cutlass_80_b>(P)", "volta_sgemm"]
    found = labels(names)
    assert found[names[0]] == "cublasGemvParamsEx<int, float>: 6"
    assert labels(names[:2], 24)[names[1]] == "cublasGemv…nt, float>: 7"
    assert [found[name] for name in names[2:]] == ["cutlass_80_a", "cutlass_80_b", "volta_sgemm"]
    long = [f"void k<{'A' * 50}{i}{'B' * 50}{j}{'C' * 50}>(P)" for i in range(2) for j in range(2)]
    assert len(set(labels(long).values())) == 4 and max(map(len, labels(long).values())) <= 60


def test_kernels_of_one_key_are_told_apart_by_their_namespaces() -> None:
    name = "void cutlass::device_kernel<dpsk::gemm::cuda::{0}::GemmKernel>(dpsk::gemm::cuda::{0}::GemmKernel::Params)"
    spaces = ["fp8_dptp128c_acc", "fp8_ptp128c", "m_grouped_fp8_ptp128c"]
    found = labels(map(name.format, spaces), 34)
    assert list(found.values()) == [f"GemmKernel: {space}" for space in spaces]


def test_a_word_too_long_gives_way_to_its_part() -> None:
    name = "sm90_xmma_gemm_bf16f32_bf16f32_f32_{}_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
    assert [text[-4:] for text in labels([name.format("nt"), name.format("tn")]).values()] == [": nt", ": tn"]


_PIECES = ["<", ">", "(", ")", ",", " ", "::", "lambda", "#1", "int", "gpu_kernel_impl", "Kernel", "4", "::lambda(int)#2",
           "a::", "b::", "…", ": ", " (1)", " (2)", "\x1b", "\n", "\N{REPLACEMENT CHARACTER}", "$", "f", "k" * 30, "_x" * 20, "é"]
_TEXTS = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(_PIECES), max_size=12).map("".join),
                   st.lists(st.sampled_from("ab"), min_size=60, max_size=70).map("".join))


@given(st.sets(_TEXTS, max_size=40), st.sampled_from([12, 20, 34, 60, 160]))
def test_no_two_labels_are_the_same(names: set[str], longest: int) -> None:
    for found in (labels(names, longest), shortened(names, longest)):
        assert set(found) == names and len(set(found.values())) == len(names)
        assert all(len(text) <= longest and printable(text) == text for text in found.values())
    assert all(found[name] == name for name in names if len(name) <= longest and printable(name) == name)


@given(st.sets(_TEXTS, max_size=12), st.randoms())
def test_labels_do_not_depend_on_the_order(names: set[str], chooser: random.Random) -> None:
    mixed = sorted(names)
    chooser.shuffle(mixed)
    assert labels(mixed, 34) == labels(sorted(names), 34)


def test_many_kernels_of_one_label_are_numbered() -> None:
    names = [f"k{'é' * 100}{i:06}{'é' * 100}" for i in range(20_000)]
    assert len(set(labels(names).values())) == len(names)


def test_any_text_has_a_label() -> None:
    chooser = random.Random(1)
    pieces = ["<", ">", "(", ")", ",", " ", "::", "lambda", "#1", "int", "gpu_kernel_impl", "Kernel", "4", "::lambda(int)#2"]
    for _ in range(2000):
        name = "".join(chooser.choice(pieces) for _ in range(chooser.randrange(12)))
        assert len(label(name)) <= len(kernel_key(name))


@pytest.mark.captures
def test_labels_of_real_kernels_are_short() -> None:
    needed()
    names = {name for of_capture in captures().values() for name in of_capture}
    templates = [name for name in names if "<" in kernel_key(name)]
    assert len(templates) > 500
    long = [name for name in templates if len(label(name)) > 300]
    assert len(long) < len(templates) / 50, long[:3]
    assert all(label(name) for name in names if name.strip())


@pytest.mark.captures
def test_labels_tell_the_kernels_of_each_capture_apart() -> None:
    needed()
    for capture, names in captures().items():
        for longest in (34, 60):
            found = labels(names, longest)
            assert len(set(found.values())) == len(names), capture
            assert max(map(len, found.values())) <= longest
            numbered = [text for text in found.values() if re.search(r" \(\d+\)$", text)]
            assert len(numbered) <= len(names) / 10, (capture, numbered)


@pytest.mark.parametrize(("name", "told"), [
    ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64>(T1::Params)", "cutlass_80_tensorop_s1688gemm_64x64"),
    ("void cutlass::device_kernel<FlashAttnBwd<tuple<C<64>>, float>>(P)", "FlashAttnBwd"),
    ("par_ranged2d_kernel<PdV_kernel(bool, int)::lambda(int)#1>", "par_ranged2d_kernel<PdV_kernel>"),
    ("void softmax_warp_forward<float, float, 1>(float*)", "softmax_warp_forward"),
    ("par_ranged2d_kernel<PdV_kernel(bool, int)::lambda(int)#2>", "par_ranged2d_kernel<PdV_kernel#2>"),
    ("elementwise_add<float>", "elementwise_add"), ("volta_sgemm_128x64_nn", "volta_sgemm_128x64_nn"), ("<odd", "<odd"),
])
def test_the_name_in_a_sentence(name: str, told: str) -> None:
    assert title(kernel_key(name)) == title(f"{kernel_key(name)} [one::detail]") == told
