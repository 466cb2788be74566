"""Kernel name -> does it use tensor cores: true, false, or None where the name does not say; by one ordered table.

NVIDIA's libraries write the instruction into the name (s16816gemm, tensorop, simt, 64x64_..._tensor16x8x16) or have kernels
for one kind of core only (nvjet, wgmma, FlashAttention). AMD's matrix cores (MFMA, WMMA) count as tensor cores. What Triton,
Inductor templates and hand-written products compile to depends on types that their names do not contain: None.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from nsightlens.names.first_found import first_found

Rule = tuple[bool, str, str]
"""Whether the names of a pattern run on tensor cores, the pattern, and what they are."""

LONGEST = 4096
"""Characters of a name that are looked at."""

_PLAIN = frozenset({"elementwise", "reduction", "normalization", "optimizer", "memory", "collective"})
"""Families whose kernels multiply no matrices, unless their own name says so."""

_PRODUCT = re.compile(r"(?i:gemm|mat_?mul|(?<![a-z])(?:mma|mm|bmm|dot)(?![a-z]))")


def used(name: str, short: str, family: str) -> bool | None:
    """Return whether a kernel of that (demangled) name, base name and family runs on tensor cores; None where unknown."""
    return uses([name], [short], [family])[0]


def uses(names: Sequence[str], shorts: Sequence[str], families: Sequence[str]) -> list[bool | None]:
    """Return whether each kernel runs on tensor cores, as `used` does."""
    places = first_found(_compiled(), [[name[:LONGEST] for name in names]])
    return [TENSOR_CORES[place][0] if place >= 0 else False if family in _PLAIN and not _PRODUCT.search(short) else None
            for place, short, family in zip(places, shorts, families, strict=True)]


@cache
def _compiled() -> tuple[tuple[re.Pattern[str], int], ...]:
    """Return the patterns, sought in the names: compiled at the first of these."""
    return tuple((re.compile(pattern), 0) for _, pattern, _ in TENSOR_CORES)


def _rule(verdict: bool, pattern: str, comment: str) -> Rule:
    return verdict, pattern, comment


TENSOR_CORES: tuple[Rule, ...] = (
    # --- helpers that stand beside a product and do none, before the words they share with it
    _rule(False, r"flash_fwd_splitkv_combine|FlashAttnFwdCombine|flash_bwd_(?:dot_do_o|convert_d|clear_d)|"
          r"FlashAttnBwdP(?:re|ost)process|MergeStates?Kernel|bwd_preprocess",
          "FlashAttention, FlashInfer: combining splits, preparing the backward pass"),
    _rule(False, r"BatchDecodeWith|SingleDecodeWith|paged_attention_(?:v[12]|kernel)|^mmha_|masked_multihead_attention",
          "decoding attention on CUDA cores: FlashInfer, vLLM, TensorRT-LLM"),
    _rule(False, r"(?i:split_?k_?reduce|reduce_?split_?k|gemv|gemmk1_|gemmSN|trsm_(?:left|right)|dot_kernel|reduce_1Block)",
          "sums of split products, products with a vector, small and triangular ones: cuBLAS"),
    _rule(False, r"(?i:im2d?2?col|col2im|compute\w*offsets|generatewinograd|fft2d_|flip_filter|nchwtonhwc|nhwctonchw)",
          "helpers around convolutions"),
    # --- the instruction stands in the name
    _rule(True, r"(?i:wgmma|utc\w?mma|tcgen05|(?<![a-z])u?[hiqdb]?mma_sync|(?<![a-z])[hiq]mma(?![a-z])|gmma(?![a-z])|::UMMA)",
          "the instructions of Volta to Blackwell, by name"),
    _rule(True, r"(?<![A-Za-z])tensorop|OpClassTensorOp|MmaTensorOp|_tensor\d+x\d+x\d+",
          "CUTLASS and xmma: the class of the instruction"),
    _rule(True, r"(?<![a-z])[a-z](?:884|1688|16816|8816|16832|16864)(?!\d)",
          "cuBLAS, cuDNN, CUTLASS: the shape of the instruction, s16816"),
    _rule(True, r"(?i:mfma|xdlops?|(?<![a-z])xdl(?![a-z])|wmma)|^Cijk_\w*_MI(?!0x)\d+x\d+|^igemm_\w+_gtcx\d?_",
          "AMD: MFMA, WMMA; the matrix instruction of Tensile and of MIOpen's igemm"),
    _rule(False, r"(?i:simt|ffma|_xdlops0)|^Cijk_", "the class of the instruction is the plain one"),
    # --- kernels that exist for tensor cores only
    _rule(True, r"^nvjet_|sm(?:90|100|103|120)a?_xmma|warpgroupsize|"
          r"Sm(?:90|100|103|120)\w*(?:Warpspecialized|WarpSpecialized|Umma|Tma)",
          "Hopper and Blackwell: cuBLASLt's nvjet, xmma, CUTLASS 3"),
    _rule(True, r"^(?:bmm|gemm)_\w+_sm1\d\d[af]?$|(?i:fmhaSm\d+|fmha_v2)|deep_gemm::|"
          r"sdpa_sm\d+_flash|matMul_pointwise|sm\d+_matMul",
          "TensorRT-LLM, DeepGEMM, the graphs of cuDNN"),
    _rule(True, r"flash::Flash|(?<![a-z_])flash_(?:fwd|bwd)_(?:\w*_)?kernel|flash_bwd_dq_dk_dv|"
          r"FlashAttn(?:Fwd|Bwd)Sm\d|pytorch_flash",
          "FlashAttention 2 and 3: half precision only"),
    _rule(True, r"fmha_cutlass[FB]_(?:b?f16_\w*sm(?:7|8|9)\d|f32_\w*sm(?:8|9)\d)", "memory-efficient attention of PyTorch"),
    _rule(False, r"fmha_cutlass[FB]_\w*sm[567]\d", "the same, where the GPU has no tensor cores for the type"),
    _rule(True, r"(?:Batch|Single)(?:Prefill|POD)With|marlin::|[Mm]arlin(?:_moe)?|machete",
          "FlashInfer's prefill; Marlin, Machete"),
    # --- kernels that exist for CUDA cores only
    _rule(False, r"(?:kepler|maxwell|pascal|volta|turing|ampere|hopper)_(?:[sdczh]|[a-z]?c)gemm",
          "cuBLAS: single, double, complex"),
    _rule(False, r"(?:kepler|maxwell|pascal|volta|turing|ampere|hopper)_[shd]cudnn", "cuDNN: the same for convolutions"),
    _rule(False, r"(?i:winograd)|magma_[sdcz]gemm|[sdcz]gemm_(?:largek|\w*lds)|(?:im|ex)plicit_convolve_[sdh]gemm|"
          r"(?:wgrad_alg\d|dgrad)_engine|(?i:depthwise)|(?i:naive)|conv2d_grouped_direct",
          "MAGMA; Winograd, direct, depthwise convolutions"),
)
"""(verdict, pattern, what it covers): ordered, the first that is found decides; without one, the family does."""
