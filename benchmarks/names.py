"""Kernel names for the made inputs: as many distinct ones as asked, of the lengths and spellings that PyTorch jobs have."""

from __future__ import annotations

_TYPES = ("float", "double", "c10::Half", "c10::BFloat16")
_SHORT = ("float", "double", "half", "bf16")
_FUNCTORS = ("CUDAFunctor_add", "AddFunctor", "MulFunctor", "BinaryFunctor", "FillFunctor", "direct_copy_kernel_cuda",
             "sigmoid_kernel", "GeluCUDAKernelImpl", "silu_kernel", "pow_tensor_scalar_kernel_impl", "threshold_kernel_impl")


def kernel_names(count: int) -> list[tuple[str, str]]:
    """Return `count` distinct (demangled name, short name)."""
    makers = (_elementwise, _gemm, _reduce, _fused, _attention, _native_gemm, _collective)
    return [makers[i % len(makers)](i) for i in range(count)]


def _elementwise(i: int) -> tuple[str, str]:
    functor = f"at::native::{_FUNCTORS[i % len(_FUNCTORS)]}<{_TYPES[i % 4]}>"
    template = f"<(int){2 ** (i % 4)}, {functor}, std::array<char *, (unsigned long){i}>>"
    return f"void at::native::vectorized_elementwise_kernel{template}(int, T2, T3)", "vectorized_elementwise_kernel"


def _gemm(i: int) -> tuple[str, str]:
    shape = f"{64 * (1 + i % 4)}x{64 * (1 + i % 3)}_{32 * (1 + i % 2)}x{i}"
    inner = f"cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_{shape}_nn_align8"
    return f"void cutlass::Kernel2<{inner}>(T1::Params)", "Kernel2"


def _reduce(i: int) -> tuple[str, str]:
    kind = _TYPES[i % 4]
    function = (f"at::native::sum_functor<{kind}, float, {kind}>::operator ()(at::TensorIterator &)::"
                f"[lambda(float, float) (instance {i})]")
    operation = (f"at::native::ReduceOp<{kind}, at::native::func_wrapper_t<{kind}, {function}>, unsigned int, {kind}, (int)4, "
                 "(int)4>")
    return f"void at::native::reduce_kernel<(int)512, (int)1, {operation}>(T3)", "reduce_kernel"


def _fused(i: int) -> tuple[str, str]:
    name = f"triton_poi_fused_add_mul_native_layer_norm_{i}"
    return name, name


def _attention(i: int) -> tuple[str, str]:
    traits = (f"Flash_kernel_traits<(int){32 * (1 + i % 4)}, (int)128, (int)64, (int)4, (bool)0, (bool)0, cutlass::bfloat16_t, "
              f"Flash_fwd_kernel_traits_base<(int){i}>>")
    name = f"void pytorch_flash::flash_fwd_kernel<{traits}, (bool)0, (bool)1, (bool)0>(pytorch_flash::Flash_fwd_params)"
    return name, "flash_fwd_kernel"


def _native_gemm(i: int) -> tuple[str, str]:
    name = f"ampere_bf16_s16816gemm_bf16_{64 * (1 + i % 4)}x{64 * (1 + i % 2)}_ldg8_f2f_stages_64x{i}_tn"
    return name, name


def _collective(i: int) -> tuple[str, str]:
    what = f"ncclDevKernel_AllReduce_Sum_{_SHORT[i % 4]}_RING_LL_{i}"
    return f"{what}(ncclDevKernelArgsStorage<(unsigned long)4096>)", what
