"""The arguments of operators in their order, as PyTorch's native_functions.yaml and flash-attn declare them."""

from __future__ import annotations

import json
from typing import Any

from nsightlens.op_cost import OperatorWork, work
from tests.op_cost.test_contractions import written

_DIRECT = "input weight bias stride padding dilation"
_TRANSPOSED = "input weight bias stride padding output_padding groups dilation"
_ANY = f"{_DIRECT} transposed output_padding groups"
_MIOPEN = "input weight bias padding stride dilation groups benchmark deterministic"
_SIZED = "input weight kernel_size bias stride padding"
CONVOLUTIONS = {
    **{f"aten::conv{n}d": f"{_DIRECT} groups" for n in (1, 2, 3)},
    **{f"aten::conv_transpose{n}d": _TRANSPOSED for n in (1, 2, 3)},
    "aten::convolution": _ANY, "aten::convolution_overrideable": _ANY,
    "aten::_convolution": f"{_ANY} benchmark deterministic cudnn_enabled allow_tf32",
    "aten::cudnn_convolution": "input weight padding stride dilation groups benchmark deterministic allow_tf32",
    "aten::cudnn_convolution_transpose":
        "input weight padding output_padding stride dilation groups benchmark deterministic allow_tf32",
    "aten::cudnn_convolution_relu": f"{_DIRECT} groups",
    "aten::miopen_convolution": _MIOPEN, "aten::miopen_depthwise_convolution": _MIOPEN,
    "aten::miopen_convolution_transpose":
        "input weight bias padding output_padding stride dilation groups benchmark deterministic",
    "aten::_slow_conv2d_forward": _SIZED, "aten::thnn_conv2d": _SIZED, "aten::slow_conv3d_forward": _SIZED,
    "aten::slow_conv_dilated2d": f"{_SIZED} dilation", "aten::_conv_depthwise2d": f"{_SIZED} dilation",
    "aten::conv_depthwise3d": f"{_SIZED} dilation",
}
BACKWARD_CONVOLUTIONS = {
    "aten::convolution_backward":
        "gradient input weight bias_sizes stride padding dilation transposed output_padding groups output_mask",
    "aten::convolution_backward_overrideable":
        "gradient input weight stride padding dilation transposed output_padding groups output_mask",
    "aten::cudnn_convolution_backward":
        "input gradient weight padding stride dilation groups benchmark deterministic allow_tf32 output_mask",
    "aten::miopen_convolution_backward":
        "input gradient weight padding stride dilation groups benchmark deterministic output_mask",
    "aten::cudnn_convolution_transpose_backward":
        "input gradient weight padding output_padding stride dilation groups benchmark deterministic allow_tf32 output_mask",
    "aten::_slow_conv2d_backward": "gradient input weight kernel_size stride padding output_mask",
    "aten::thnn_conv2d_backward": "gradient input weight kernel_size stride padding finput output_mask",
}
_LENGTHS = "cum_seq_q cum_seq_k max_q max_k"
HEADS_FIRST = {
    "aten::scaled_dot_product_attention": "query key value attn_mask dropout_p is_causal scale enable_gqa",
    "aten::_scaled_dot_product_flash_attention": "query key value dropout_p is_causal return_debug_mask scale",
    "aten::_scaled_dot_product_efficient_attention":
        "query key value attn_bias compute_log_sumexp dropout_p is_causal scale",
    "aten::_scaled_dot_product_cudnn_attention":
        "query key value attn_bias compute_log_sumexp dropout_p is_causal return_debug_mask scale",
    "aten::_scaled_dot_product_flash_attention_backward":
        f"gradient query key value out logsumexp {_LENGTHS} dropout_p is_causal philox_seed philox_offset scale",
    "aten::_scaled_dot_product_efficient_attention_backward":
        "gradient query key value attn_bias out logsumexp philox_seed philox_offset dropout_p grad_input_mask is_causal scale",
    "aten::_scaled_dot_product_cudnn_attention_backward":
        f"gradient query key value out logsumexp philox_seed philox_offset attn_bias {_LENGTHS} dropout_p is_causal scale",
}
_FLASH = f"query key value {_LENGTHS} dropout_p is_causal return_debug_mask scale left right"
HEADS_LAST = {
    "aten::_flash_attention_forward": f"{_FLASH} seqused_k alibi_slopes",
    "aten::_efficient_attention_forward":
        f"query key value bias {_LENGTHS} dropout_p custom_mask_type compute_log_sumexp scale seqlen_k window_size",
    "aten::_flash_attention_backward":
        f"gradient query key value out logsumexp {_LENGTHS} dropout_p is_causal rng_state unused scale left right",
    "aten::_efficient_attention_backward":
        f"gradient query key value bias out {_LENGTHS} logsumexp dropout_p philox_seed philox_offset custom_mask_type "
        "bias_requires_grad scale num_splits_key window_size shared_storage_dqdkdv",
    "flash_attn::_flash_attn_forward":
        "query key value dropout_p softmax_scale is_causal left right softcap alibi_slopes return_softmax",
    "flash_attn::_flash_attn_backward":
        "gradient query key value out softmax_lse dq dk dv dropout_p softmax_scale is_causal left right softcap alibi_slopes "
        "deterministic rng_state",
}
_SCALED = "q_descale k_descale v_descale"
OF_OTHER_RELEASES = [
    ("aten::_flash_attention_forward", _FLASH),
    ("aten::_flash_attention_forward", f"{_FLASH} seqused_k alibi_slopes block_table num_splits"),
    ("aten::_flash_attention_forward",
     f"query key value {_LENGTHS} dropout_p is_causal return_debug_mask {_SCALED} scale left right seqused_k alibi_slopes"),
    ("aten::_scaled_dot_product_flash_attention", f"query key value {_SCALED} dropout_p is_causal return_debug_mask scale"),
    ("aten::_scaled_dot_product_efficient_attention", "query key value compute_log_sumexp is_causal"),
    ("aten::_scaled_dot_product_efficient_attention", "query key value compute_log_sumexp is_causal scale"),
    ("aten::_scaled_dot_product_cudnn_attention", "query key value dropout_p is_causal return_debug_mask scale"),
]


def called(name: str, signature: str, arguments: dict[str, Any]) -> OperatorWork:
    """Return the work of a call with those of the arguments that its signature has; the others were not recorded."""
    shapes, types, values = written(tuple(arguments.get(one, "") for one in signature.split()))
    return work(name, json.dumps(shapes), json.dumps(types), json.dumps(values))
