"""What a kernel's name gives: base name, canonical name, family, tensor cores; the hash of its launch configuration; and which
API calls launch kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsightlens.columns.arrays import MISSING, Hash, Places, hash_rows, integers, lookup
from nsightlens.discovery.suspects import struck_all
from nsightlens.names import kernel_names as names
from nsightlens.names.demangle import demangle

_Value = TypeVar("_Value")

LAUNCH, BEGIN, END = 1, 2, 3
"""Codes of calls: a kernel launch that succeeded, the begin and the end of a stream capture; 0 for all others."""
_CALLS = (
    (LAUNCH, re.compile(r"(?:cu|cuda|hip)(?:Ext)?(?:Module)?Launch(?:Cooperative)?(?:Kernel\w*)?")),
    (BEGIN, re.compile(r"(?:cu|cuda|hip)StreamBeginCapture\w*")), (END, re.compile(r"(?:cu|cuda|hip)StreamEndCapture\w*")),
)
_TEXTS = ("name", "short_name", "kernel_key", "family")
_CONFIGURATION = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")


def call_codes(calls: pa.RecordBatch) -> Places:
    """Return the code of each API call, by its name and return value."""
    texts = calls.column("name").dictionary.to_pylist()
    code_of = [next((code for code, name in _CALLS if text and name.fullmatch(text)), 0) for text in texts]
    names, failed = integers(calls.column("name").indices), integers(calls.column("return_value"))
    found = np.array([*code_of, 0])[np.where(names == MISSING, len(texts), names)]
    return np.where((found == LAUNCH) & (failed != 0) & (failed != MISSING), 0, found).astype(np.int32)


class NameCodes:
    """Numbers the distinct kernel names of a profile, from 0."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str | None, str | None], int] = {}

    def encode(self, batch: pa.RecordBatch) -> Places:
        """Return the number of each row's (name, mangled name)."""
        name, mangled = batch.column("name"), batch.column("mangled_name")
        codes = self._encode_names(name)
        if name.null_count:
            nameless = np.flatnonzero(name.is_null().to_numpy(zero_copy_only=False))
            codes[nameless] = [self._code(None, m) for m in mangled.take(pa.array(nameless)).to_pylist()]
        return codes

    def _encode_names(self, name: pa.DictionaryArray) -> Places:
        codes = np.array([self._code(n, None) for n in [*name.dictionary.to_pylist(), None]], dtype=np.int32)
        found: Places = codes[pc.fill_null(name.indices, len(codes) - 1).to_numpy(zero_copy_only=False)]
        return found

    def _code(self, name: str | None, mangled: str | None) -> int:
        return self._codes.setdefault((name, mangled), len(self._codes))

    def names(self) -> tuple[tuple[str | None, str | None], ...]:
        """Return the (name, mangled name) of each number."""
        return tuple(self._codes)


@dataclass(frozen=True, slots=True)
class KernelNames:
    """What follows from each distinct name alone, by its number; all None where a kernel has no name."""

    name: Sequence[str | None]
    short_name: Sequence[str | None]
    kernel_key: Sequence[str | None]
    family: Sequence[str | None]
    tensor_cores: Sequence[bool | None]

    def columns(self, codes: Places) -> dict[str, pa.Array]:
        """Return these columns for names of these numbers; their dictionaries hold no others."""
        used, place = np.unique(codes, return_inverse=True)
        here = {name: [getattr(self, name)[code] for code in used.tolist()] for name in (*_TEXTS, "tensor_cores")}
        texts = {name: lookup(place, here[name]) for name in _TEXTS}
        return texts | {"tensor_cores": pa.array(here["tensor_cores"], pa.bool_()).take(pa.array(place))}


def kernel_names(recorded: Sequence[tuple[str | None, str | None]], tool: str) -> KernelNames:
    """Return what follows from names as `tool` recorded them: (name, mangled name), the second read where there is no first."""
    whole = [name if name is not None else (demangle(m) if m else None) for name, m in recorded]
    known = struck_all(whole)  # a shortened name no longer shows what in it is a secret
    distinct = list(dict.fromkeys(name for name in known if name is not None))
    facts = names.facts(distinct, tool)
    if known == distinct:
        return KernelNames(known, *facts)
    number = {name: number for number, name in enumerate(distinct)}
    place = [None if name is None else number[name] for name in known]
    return KernelNames(known, _taken(facts.short_name, place), _taken(facts.kernel_key, place), _taken(facts.family, place),
                       _taken(facts.tensor_cores, place))


def _taken(column: Sequence[_Value], places: Sequence[int | None]) -> list[_Value | None]:
    return [None if place is None else column[place] for place in places]


def configuration(batch: pa.RecordBatch) -> Hash:
    """Return a 64-bit hash of each row's launch configuration (grid and block)."""
    return hash_rows([integers(batch.column(column)) for column in _CONFIGURATION], batch.num_rows)
