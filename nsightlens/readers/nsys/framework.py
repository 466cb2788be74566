"""What frameworks and training scripts say in NVTX texts: PyTorch's operators (emit_nvtx), modules and numbered steps.

PyTorch writes `NAME, seq = N, op_id = N, sizes = [[...], ...], input_op_ids = [...]`; each part but the name may be missing.
The name is kept; seq and sizes become columns; the ids, which make almost every text another one, are left out.

| text | kind |
|---|---|
| a name with seq (old: stashed seq) | operator |
| a qualified name (`aten::add`, `c10d::allreduce_`, `autograd::engine::...`) with op_id or sizes | operator |
| `record_param_comms`, `detach`, `detach_` with op_id or sizes: operators of PyTorch without a namespace | operator |
| a name of a namespace of PyTorch (`aten::`, `prim::`, `autograd::` and so on), alone, in the default domain | operator |
| `nn.Module: NAME` | module |
| `CLASS.forward`, also behind a dotted path, in a domain of its own, as nsys's functions trace names calls | module |
| `ProfilerStep#N`, `step N`, `iteration N`, `iter N`; `train`, `training`, `global` before and any of ` _-:#=` between | step |
| anything else; what `record_function` names (`forward, op_id = 7`) only loses its op_id | as NVTX says |

Only push/pop and start/end ranges count, and operators only in the default domain. In other domains texts stay as they are.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

SPANS = ("nvtx_push_pop", "nvtx_start_end")

_SUFFIX = r", (stashed seq|seq|op_id|sizes) ?= ?"
_GRAMMAR = (r"(?s)^(?P<name>.*?)(?:, (?:stashed )?seq ?= ?(?P<sequence>\d{1,18}))?(?P<op_id>, op_id = \d+)?"
            r"(?:, sizes = (?P<shapes>\[.*?\]))?(?:, input_op_ids = .*)?$")
_QUALIFIED = r"^[A-Za-z_]\w*(::[\w~<>]+)+(\.\w+)?$|^autograd::engine::|^(record_param_comms|detach_?)$"
_NAMESPACE = r"^(aten|prims?|nvprims|quantized|c10d|_?c10d_functional|autograd|torch::autograd)::"
_MODULE = "nn.Module: "
_FORWARD = r"^([A-Za-z_]\w*\.)*_*[A-Z]\w*\.forward$"
_STEP = r"(?i)^(?:ProfilerStep|(?:(?:train|training|global)[ _-]?)?(?:step|iteration|iter))[ _:#=-]*(?P<step>\d{1,18})$"

_KINDS = ("operator", "module", "step")


def recognised(kind: pa.DictionaryArray, text: pa.Array, domain: pa.DictionaryArray) -> dict[str, pa.Array]:
    """Return kind, name, sequence, shapes and step of each range, from its kind as NVTX has it, its text and its domain."""
    encoded = text.dictionary_encode()
    parts = _parts(encoded.dictionary)
    names = parts["name"].dictionary_encode()
    said = {key: values.take(names.indices) for key, values in _name_traits(names.dictionary).items()}
    plain = pc.invert(parts["suffixed"])
    operator = pc.or_(parts["sequence"].is_valid(), pc.or_(
        pc.and_(parts["suffixed"], said["qualified"]), pc.and_(plain, said["namespace"])))
    rows = encoded.indices
    is_span = pc.is_in(kind.cast(pa.string()), value_set=pa.array(SPANS))
    is_operator = pc.fill_null(pc.and_(pc.and_(is_span, domain.is_null()), operator.take(rows)), False)
    called = pc.and_(domain.is_valid(), said["forward"].take(rows))
    is_module = pc.fill_null(pc.and_(is_span, pc.or_(said["module"].take(rows), called)), False)
    step = pc.if_else(is_span, said["step"].take(rows), None)
    return {
        "kind": _kinds(kind, [is_operator, is_module, step.is_valid()]),
        "name": pc.if_else(domain.is_null(), parts["name"].take(rows), text).dictionary_encode(),
        "sequence": pc.if_else(is_operator, parts["sequence"].take(rows), None),
        "shapes": pc.if_else(is_operator, parts["shapes"].take(rows), None).dictionary_encode(),
        "step": step,
    }


def _parts(texts: pa.Array) -> dict[str, pa.Array]:
    """Return the parts of each text: name, sequence (int64) and shapes, else NULL; suffixed: it has any but a name."""
    suffixed = pc.fill_null(pc.match_substring_regex(texts, _SUFFIX), False)
    found = pc.extract_regex(texts.filter(suffixed), _GRAMMAR)
    some = {key: pc.struct_field(found, key) for key in ("name", "sequence", "op_id", "shapes")}
    any_ = pc.or_(pc.or_(pc.not_equal(some["sequence"], ""), pc.not_equal(some["op_id"], "")), pc.not_equal(some["shapes"], ""))
    nothing = pa.nulls(len(texts), pa.string())

    def spread(key: str) -> pa.Array:
        return pc.replace_with_mask(nothing, suffixed, pc.if_else(pc.equal(some[key], ""), None, some[key]))

    return {
        "name": pc.replace_with_mask(texts, suffixed, some["name"]),
        "sequence": spread("sequence").cast(pa.int64()),
        "shapes": spread("shapes"),
        "suffixed": pc.replace_with_mask(suffixed, suffixed, any_),
    }


def _name_traits(names: pa.Array) -> dict[str, pa.Array]:
    """Return what each name says: whether it is qualified, of PyTorch's namespaces, a module; the number of a step."""
    return {
        "qualified": pc.match_substring_regex(names, _QUALIFIED),
        "namespace": pc.match_substring_regex(names, _NAMESPACE),
        "module": pc.starts_with(names, _MODULE),
        "forward": pc.match_substring_regex(names, _FORWARD),
        "step": pc.struct_field(pc.extract_regex(names, _STEP), "step").cast(pa.int64()),
    }


def _kinds(kind: pa.DictionaryArray, is_of: list[pa.Array]) -> pa.DictionaryArray:
    """Return the kinds with those of _KINDS where `is_of` says so."""
    position = kind.indices
    for number, which in enumerate(is_of):
        position = pc.if_else(which, pa.scalar(len(kind.dictionary) + number, pa.int32()), position)
    return pa.DictionaryArray.from_arrays(position, pa.concat_arrays([kind.dictionary, pa.array(_KINDS)]))
