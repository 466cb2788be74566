"""Kernel key -> family, by one ordered table: the first row whose pattern is found decides."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from nsightlens.names.first_found import first_found

LONGEST = 4096
"""Characters of a key that are looked at: what a kernel is stands at its beginning."""

OTHER = "other"

Rule = tuple[str, str, str]
"""A family, the pattern of its names, and what they are."""


def classify(key: str, scope: str = "") -> str:
    """Return the family of a kernel key. `scope`: the namespaces around the kernel, where the tool prints them.

    A pattern is sought in the key; one that begins with @ in "@" and the namespaces.
    """
    return classified([key], [scope])[0]


def classified(keys: Sequence[str], scopes: Sequence[str]) -> list[str]:
    """Return the family of each kernel key, as `classify` does."""
    columns = [key[:LONGEST] for key in keys], ["@" + scope[:LONGEST] for scope in scopes]
    return [FAMILIES[place][0] if place >= 0 else OTHER for place in first_found(_compiled(), columns)]


@cache
def _compiled() -> tuple[tuple[re.Pattern[str], int], ...]:
    """Return patterns, and whether they are sought in scopes: compiled at the first name, since few commands meet any."""
    return tuple((re.compile(pattern), int(pattern.startswith("@"))) for _, pattern, _ in FAMILIES)


def _rule(family: str, pattern: str, comment: str) -> Rule:
    return family, pattern, comment


def _own(family: str, pattern: str, comment: str) -> Rule:
    """Return a rule for the kernel's own name: what stands before its arguments and parameters."""
    return _rule(family, rf"^[^<(]*(?:{pattern})", comment)


def _words(family: str, words: str, comment: str) -> Rule:
    """Return a rule for whole words of the kernel's own name: add_x, vec_add, VecAdd, but not padded."""
    titled = "|".join(word.capitalize() for word in words.split("|"))
    return _own(family, rf"(?<![A-Za-z])(?:{words})(?![a-z])|(?<![A-Z])(?:{titled})(?![a-z])", comment)


_NORMS = r"(?:batch|layer|rms|group|instance)_?norm|soft_?max"

FAMILIES: tuple[Rule, ...] = (
    # --- what is not compute comes first
    _rule("memory", r"^(?:\[?(?:CUDA|HIP) )?(?i:mem(?:cpy|set))|^__amd_rocclr_|^Copy(?:Host|Device|Peer)To|^FillBuffer",
          "copies and sets, as the tools and ROCm print them"),
    _rule("memory", r"^get_dispatch_layout", "DeepEP: counts tokens per expert on its own GPU, before it communicates"),
    _rule("collective", r"^(?:nccl|rccl|msccl|oneccl)", "NCCL, RCCL, MSCCL and MSCCL++, oneCCL"),
    _rule("collective", r"@(?:\w+::)*(?:(?:\w+_)?ep|pplx|mori|uccl|nvshmem\w*|mscclpp|quickreduce|moe_comm)(?:::|$)",
          "by namespace: expert parallelism (ep, DeepEP, pplx, MORI, UCCL, TensorRT-LLM), NVSHMEM, MSCCL++, QuickReduce"),
    _rule("collective", r"^nvshmem|_on_stream_kernel|userbuffers_|[Ll]amport|^(?:barrier|put_signal|wait_signal)_kernel",
          "NVSHMEM, Transformer Engine's user buffers, Lamport all-reduces, PyTorch's symmetric memory"),
    _rule("collective", r"^(?:dispatch|combine)<(?:[^<>]*,)? ?\d+[,>]|^(?:cached_)?notify(?:_dispatch|_combine)?[<(]|"
          r"^cached_notify|^moeA2A|^Ep(?:Dispatch|Combine)",
          "expert parallelism where the tool leaves namespaces out: DeepEP, TensorRT-LLM, MORI"),
    # --- Triton and Inductor name all that they fuse: decide before any of those words does
    _rule("attention", r"^triton_tem_\w*(?:attention|sdpa)", "Inductor templates: flex attention"),
    _rule("convolution", r"^triton_(?:tem_\w*conv|conv)", "Inductor templates: convolution"),
    _rule("gemm", r"^triton_(?:tem|mm|bmm|addmm|baddbmm|gemm|matmul)_", "Inductor templates: matrix products"),
    _rule("normalization", rf"^triton_(?:poi|red|per)_fused_\w*?(?:{_NORMS})", "Inductor: a norm or softmax in the fused name"),
    _rule("normalization", r"^triton_(?:red|per)_fused_(?=\w*(?:mean|var))\w*rsqrt",
          "Inductor: a reduction with mean or variance and rsqrt is a norm taken apart"),
    _rule("reduction", r"^triton_(?:red|per|spl|split_scan)_", "Inductor: reductions, persistent reductions, scans"),
    _rule("elementwise", r"^triton_(?:poi|for)_", "Inductor: pointwise and foreach kernels, whatever operators they stem from"),
    _rule("normalization", r"^triton_softmax", "XLA: softmax fusions"),
    # --- collectives of frameworks
    _own("collective", r"(?i:all_?reduce|all_?gather|reduce_?scatter|cross_device_reduce|multimem_)|"
         r"[Aa]ll_?[Tt]o_?[Aa]ll(?![a-z])",
         "one-shot, two-shot, multimem and fused collectives of PyTorch, vLLM, FlashInfer, TensorRT-LLM"),
    # --- attention, before the matrix products and softmaxes inside it
    _own("memory", r"reshape_and_cache|concat_and_cache|copy_blocks|copy_page_indices|AppendPagedKV|"
         r"kv_?cache_(?:copy|update|append|write)|(?:store|write|append|update|set)_kv_?cache",
         "writes into the key-value cache"),
    _rule("attention", r"(?i:flash_?(?:fwd|bwd|attn|attention|infer|mla|decod)|fmha|_sdpa_|paged_?attention|attention_?kernel)",
          "FlashAttention, FMHA (cuDNN, CUTLASS, TensorRT-LLM, CK), memory-efficient and paged attention"),
    _rule("attention", r"^(?:Batch|Single)(?:Decode|Prefill|POD)|^\w*MergeStates?Kernel|^mha_|^_?sage_(?:fwd|bwd)|^mmha|^xqa|"
          r"^_(?:fwd|bwd)_(?:grouped_)?kernel_(?:stage|dk|dq)|^chunk_(?:fwd|bwd|gated|delta)|gated_delta_rule",
          "FlashInfer, SageAttention, Triton, TensorRT-LLM and linear-attention kernels"),
    _own("attention", r"(?i:attention|(?<![a-z])(?:attn|mla|mha|mqa|gqa)(?![a-z]))", "own name says attention"),
    # --- optimizers
    _rule("optimizer", r"^multi_tensor_|^kOptimizer|^kPreconditionOptimizer|^amp_update_scale|^Apply(?:Adam|Momentum|Gradient)",
          "multi-tensor kernels of apex and ATen (foreach operators serve optimizers and clipping), bitsandbytes, TensorFlow"),
    _own("optimizer", r"(?i:(?<![a-z])(?:adamw?|fusedadam|adagrad|adadelta|rmsprop|lamb|lars|lion|sgd|muon)(?![a-z]))",
         "own name says which optimizer; embedding backward with its update included (FBGEMM)"),
    # --- normalization
    _rule("normalization", rf"(?i:{_NORMS})|^bn_|^ln_(?:fwd|bwd)|RowwiseMoments|GammaBeta|"
          r"^ComputeInternalGradients|^ComputeFusedParams",
          "batch, layer, RMS, group and instance norm, softmax: ATen, cuDNN, MIOpen, apex, CK, vLLM"),
    # --- convolution, before the matrix products it is made of
    _rule("convolution", r"(?i:implicit_?gemm|convolve|convolution|winograd|(?<![a-z])(?:wgrad|dgrad|fprop)(?![a-z]))|"
          r"[sh]\d*cudnn_|(?<![A-Za-z])(?:de)?[Cc]onv(?:[123]d|_(?!diff|flux|term|rhs|tend|adv|vel|heat|check|crit)|[A-Z]|$)|[a-z]Conv(?:[123]d|[A-Z_])",
          "cuDNN, xmma, CUTLASS, CK: forward, data and weight gradient, Winograd; no convection of a PDE (conv_diff)"),
    _rule("convolution", r"^igemm_(?:fwd|bwd|wrw)_|^miopenSp3|^gcnAsmConv|^MIOpenConv|^(?i:im2d?2?col|col2im|vol2col)|"
          r"^fft2d_|^flip_filter|^compute\w*Offsets(?:Kernel|3D)",
          "MIOpen; im2col; FFT, offset and filter helpers of cuDNN's convolutions"),
    # --- matrix products
    _rule("reduction", r"^(?:dot_kernel|reduce_1Block_kernel|asum_|nrm2_|iamax_)", "cuBLAS level 1: dot products and norms"),
    _rule("gemm", r"(?i:gemm|gemv|mat(?:rix)?_?mul|(?<![a-z])mul_?mat|mat(?:rix)?_?vec(?:tor)?_?mul|mega_moe|"
          r"split_?k_?reduce|reduce_?split_?k)|^Cijk_|^nvjet_|^bmm_|^cutlass_\d+_",
          "cuBLAS, cuBLASLt (nvjet), CUTLASS, xmma, Tensile and hipBLASLt, CK, TensorRT-LLM, DeepGEMM, ggml, matrixMul"),
    _own("gemm", r"[Mm]arlin|machete|fused_moe_kernel|(?<![A-Za-z])(?:mm|bmm|addmm)(?![a-z])|"
         r"(?<![a-z])[sdcz]?(?:trsm|trmm|syrk|herk)", "Marlin, Machete, products of MoE layers, other level 3 BLAS"),
    # --- memory movement
    _rule("memory", r"direct_copy_kernel|float\w*_copy_kernel|copy_device_to_device|^CatArrayBatchedCopy|^batched_transpose|"
          r"(?i:nchwtonhwc|nhwctonchw)", "ATen copies (casts included) and concatenation; layout changes of cuDNN and MIOpen"),
    _own("elementwise", r"(?i:rotary|(?<![a-z])rope(?![a-z]))", "rotary position embedding, which looks nothing up"),
    _rule("memory", r"^index(?:Select|Func|_|ing_)|scatter_gather|gather_kernel|masked_scatter|^(?:flip|roll)_",
          "ATen index, gather and scatter"),
    _rule("memory", r"(?i:^embedding|embeddingbag)|^split_embedding|^bounds_check_indices|^linearize_index|_bucketize_",
          "embedding lookups, those of FBGEMM with their helpers"),
    _own("memory", r"(?i:moe_?(?:align|permute|unpermute|sort|finalize|expand)|routing)|"
         r"finalizeKernel|expandInputRows|finalizeMoe", "MoE layers: routing of tokens to experts and back"),
    # --- reductions
    _rule("reduction", r"^reduce_kernel|^_kernel_agent<\w*(?:Reduce|Scan|Sort|Merge|Unique)|^Device(?:Segmented)?"
          r"(?:Reduce|Scan|RadixSort|Select|Compact|Histogram|RunLength|Unique|Merge|Partition|TopK)",
          "ATen reductions; CUB and Thrust reduce, scan, sort, select"),
    _rule("reduction", r"^(?:bitonicSort|radixSort|radixFind|searchsorted|kernelHistogram|tensor_kernel_scan)|"
          r"(?i:topk|top_k|sampling_?from)", "ATen sort, top-k, search and histogram; token samplers"),
    _rule("reduction", r"(?i:(?:max|avg|average|mean)_?pool|pooling|nll_?loss|cross_?entropy)|ClassNLLCriterion",
          "pooling windows; losses"),
    # --- elementwise
    _own("elementwise", r"(?i:element_?wise|pointwise)|PackedTensor_kernel|upsample_|grid_sampler|EigenMetaKernel",
         "ATen, cuDNN, Eigen kernels that work element by element; resampling"),
    _rule("elementwise", r"^_kernel_agent<ParallelForAgent|^transform_kernel|^SubTensorOp|^Op\w*Tensor|^loop_\w*fusion|"
          r"^fused_\w*_[0-9]{8,}$", "Thrust loops; MIOpen tensor operations; XLA and TorchScript fusions"),
    # --- what the words of any other kernel's own name say
    _own("normalization", r"[Nn]orm(?:alize)?(?![a-z])|(?i:welford)", "own name: norms"),
    _words("reduction", "reduce|reduction|sum|mean|scan|cumsum|cumprod|sort|argsort|argmax|argmin|amax|histogram|bincount|"
           "unique|nonzero|dot|pool", "own name: reductions, scans, sorts"),
    _words("memory", "copy|cpy|memcpy|memset|get_rows|set_rows|gather|scatter|transpose|permute|unpermute|cat|concat|stack|slice|"
           "pad|embedding|reformat|shuffle|expand", "own name: moves data"),
    _words("elementwise", "add|sub|subtract|mul|multiply|div|divide|pow|sqrt|exp|log|sin|cos|tanh|sigmoid|relu|gelu|silu|"
           "swiglu|activation|act|bias|dropout|axpy|saxpy|daxpy|scal|scale|fill|zero|cast|convert|cvt|quant|quantize|"
           "dequantize|dequant|mask|masked|tril|triu|where|clamp|bcast|range(?=_)|arange|random|uniform|normal|philox|lerp",
           "own name: element by element"),
)
"""(family, pattern, what it covers): ordered, the first that is found decides."""
