"""Use of tensor cores: what the names of libraries tell, and that nothing is said where they do not."""

from __future__ import annotations

import re

import pytest

from nsightlens.names.demangle import demangle
from nsightlens.names.kernel_names import family, tensor_cores
from nsightlens.names.tensor_cores import TENSOR_CORES

USE = (
    "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn",
    "turing_fp16_s1688gemm_fp16_256x128_ldg8_f2f_tn",
    "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn",
    "void cutlass::Kernel<cutlass_80_tensorop_d884gemm_64x32_16x4_nn_align1>(int)",
    "volta_fp16_s884cudnn_fp16_128x128_ldg8_relu_f2f_exp_small_nhwc2nchw_tn_v1",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x128x32_stage5_warpsize2x2x1_g1_tensor16x8x8_execute",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "nvjet_hsh_192x192_64x4_2x1_v_bz_coopB_TNN",
    "nvjet_sm100_tst_128x8_64x12_2x1_v_bz_TNT",
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::collective::CollectiveMma<"
    "cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<7> > > >(int)",
    "void cutlass::device_kernel<cutlass::fmha::kernel::Sm100FmhaFwdKernelTmaWarpspecialized<cute::tuple<int, int> > >(int)",
    "void deep_gemm::sm100_fp8_fp4_gemm_1d1d_impl<(cute::UMMA::Major)0, (cute::UMMA::Major)0>(int)",
    "my_kernel_wgmma_m64n256k16",
    "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_transOut_schedP2x1x2x3_sm100f",
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t> >(int)",
    "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, 128, 8> >(int)",
    "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<CollectiveMainloopFwdSm90<2> > > >(int)",
    "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t>::Params)",
    "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext",
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0",
    "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<1, 128> >(int)",
    "void marlin_moe_wna16::Marlin<__nv_bfloat16, 1125899906909960l, 256>(int)",
    "void ck::kernel_gemm_xdl_cshuffle_v1<ck::GridwiseGemm<int> >(int)",
    "Cijk_Alik_Bljk_BBS_BH_MT32x64x64_MI16x16x16x1_SN_1LDSB0",
    "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8_ws1x1_wr2x2",
)
PLAIN = (
    "volta_sgemm_128x64_nn", "ampere_gcgemm_64x64_nt", "cudnn_infer_ampere_scudnn_128x64_relu_xregs_large_nn_v1",
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(int)",
    "void cublasLt::splitKreduce_kernel<32, 16, int, __nv_bfloat16, __nv_bfloat16, float>(int)",
    "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2, false, false, cublasGemvParams<float> >(int)",
    "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(int)",
    "void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>(int)",
    "void im2col_kernel<float>(int)",
    "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<64, 64, 256, 4> >(int)",
    "void flashinfer::BatchDecodeWithPagedKVCacheKernel<0, 2, 1, 8>(int)",
    "void vllm::paged_attention_v2_kernel<__nv_bfloat16, __nv_bfloat16, 128, 16, 128>(float*)",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm75(int)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int)",
    "void at::native::vectorized_elementwise_kernel<4, fbgemm_gpu::_float_to_hfp8_gpu(at::Tensor const&)>(int)",
    "SubTensorOpWithCastTensor1d",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(int)",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "Memset (Device)", "triton_poi_fused_add_0",
)
UNKNOWN = (
    "triton_mm_kernel", "triton_tem_fused_flex_attention_0", "fused_moe_kernel", "attn_fwd", "gemm_tiled_kernel", "my_kernel",
    "kernel_unified_attention_2d", "void my::fused_gemm_allreduce(int)",
    "enabled1688ports",
)


@pytest.mark.parametrize(("expected", "names"), [(True, USE), (False, PLAIN), (None, UNKNOWN)])
def test_reviewed_names(expected: bool | None, names: tuple[str, ...]) -> None:
    assert {name: tensor_cores(name, family(name)) for name in names} == dict.fromkeys(names, expected)


def test_every_rule_decides_some_reviewed_name() -> None:
    used = {next((n for n, (_, pattern, _) in enumerate(TENSOR_CORES) if re.search(pattern, demangle(name))), None)
            for name in USE + PLAIN}
    assert [TENSOR_CORES[n][2] for n in range(len(TENSOR_CORES)) if n not in used] == []
    assert all(comment for _, _, comment in TENSOR_CORES)
