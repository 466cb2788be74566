"""Columns -> text for a page: integers as differences in planes of bytes, deflated, base64. `js/columns.js` unpacks it.

Before base64 and deflate (zlib) it is: the length of the header (4 bytes, little-endian), the header as JSON, then per column
a byte per row that says whether it is NULL (only where some are), and its planes: the lowest byte of every row, then the next.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_EXACT = 1 << 53  # JavaScript's numbers are exact below


def pack(table: pa.Table, words: dict[str, int] | None = None) -> str:
    """Return the table as text. `words`: a list of texts shared by several tables, text -> its number, that grows as needed."""
    header: list[dict[str, Any]] = []
    body: list[bytes] = []
    for name in table.column_names:
        kind, column, own = _plain(table[name].combine_chunks(), words)
        nulls = pc.is_null(column)
        entry: dict[str, Any] = {"name": name, "kind": kind}
        if own is not None:
            entry["words"] = own
        if column.null_count:
            entry["nulls"] = True
            body.append(nulls.cast(pa.uint8()).to_numpy(zero_copy_only=False).tobytes())
        planes = _floats(column) if kind == "float" else _integers(column)
        entry["width"] = len(planes) // max(1, table.num_rows)
        body.append(planes)
        header.append(entry)
    head = json.dumps({"rows": table.num_rows, "columns": header}, ensure_ascii=False).encode("utf-8", "surrogatepass")
    raw = len(head).to_bytes(4, "little") + head + b"".join(body)
    return base64.b64encode(zlib.compress(raw, 9)).decode("ascii")


def _plain(column: pa.Array, words: dict[str, int] | None) -> tuple[str, pa.Array, list[str] | None]:
    """Return how the column is stored (int, float, bool, text or word), it as numbers, and the texts that they stand for."""
    type_ = column.type
    if pa.types.is_boolean(type_):
        return "bool", column.cast(pa.int64()), None
    if pa.types.is_integer(type_) and not _is_beyond(column):
        return "int", column.cast(pa.int64()), None
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "float", column.cast(pa.float64()), None
    texts = column if pa.types.is_string(type_) or pa.types.is_dictionary(type_) else pa.array(map(_text, column), pa.string())
    found = texts if pa.types.is_dictionary(type_) else texts.dictionary_encode()
    own = [str(word) for word in found.dictionary.to_pylist()]
    codes = found.indices.cast(pa.int64())
    if words is None:
        return "text", codes, own
    numbers = pa.array([words.setdefault(word, len(words)) for word in own], pa.int64())
    return "word", numbers.take(codes), None


def _is_beyond(column: pa.Array) -> bool:
    least, most = pc.min_max(column).as_py().values()
    return most is not None and (most >= _EXACT or least <= -_EXACT)


def _text(value: pa.Scalar) -> str | None:
    plain = value.as_py()
    return None if plain is None else str(plain)


def _integers(column: pa.Array) -> bytes:
    """Return the differences from row to row, 0 1 -1 2 -2 as 0 2 1 4 3, in as many planes of bytes as the largest needs."""
    values = pc.fill_null(pc.fill_null_forward(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    steps = np.diff(values, prepend=np.int64(0))
    folded = ((steps << 1) ^ (steps >> 63)).astype("<u8")
    width = (int(folded.max(initial=0)).bit_length() + 7) // 8
    return bytes(folded.view(np.uint8).reshape(-1, 8)[:, :width].T.tobytes())


def _floats(column: pa.Array) -> bytes:
    values = pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False).astype("<f8")
    return bytes(values.view(np.uint8).reshape(-1, 8).T.tobytes())
