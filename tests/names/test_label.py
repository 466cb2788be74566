"""Labels for people: what stays of a kernel's name in a narrow column."""

from __future__ import annotations

import random

import pytest

from nsightlens.names import kernel_key, label
from tests.names.corpus import captures, needed

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
    "gemm_naive_kernel(float const*, float*, int)": "gemm_naive_kernel",
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 64, 2>, (bool)0, (bool)1>(P)":
        "flash_fwd_kernel<Flash_fwd_kernel_traits<64, 64, 2>>",
    "void softmax_warp_forward<float, float, float, 10, true>(float*)": "softmax_warp_forward<float, 10, 1>",
}


@pytest.mark.parametrize(("name", "expected"), LABELS.items(), ids=list(LABELS.values()))
def test_what_tells_a_kernel_stays(name: str, expected: str) -> None:
    assert label(name) == expected


@pytest.mark.parametrize("name", ["", "f<", "f>", "a<b(c>d)", "x,y", "(((", "f<" * 5000, "f<a>" + "b" * 9000, "void"])
def test_odd_texts_come_back_whole(name: str) -> None:
    assert label(name) == kernel_key(name)


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
