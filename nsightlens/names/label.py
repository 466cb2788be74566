"""kernel_key -> a short label: what distinguishes a kernel from similar ones, without parameters and boilerplate."""

from __future__ import annotations

import re
from functools import lru_cache

_MOST = 4000  # characters read: behind them nothing is shown anyway
_DEEPEST = 64
_TITLES = 4096
"""Names whose titles are kept: each stands in the trees of several devices."""
_NUMBER = re.compile(r"-?\d+")
_ARGUMENTS, _WRAPPED = re.compile(r"[<(]"), re.compile(r"\w+<([A-Za-z_]\w*)(?:#\d+)?>")
_ORDINAL = re.compile(r"#\d+")
# What ATen hands its elementwise kernels besides the functor.
_PLUMBING = re.compile(r"(?:[aA]rray<char\*|TrivialOffsetCalculator|OffsetCalculator|(?:Load|Store)With|TensorListMetadata)")
_SAYS_NOTHING = frozenset({"kernel", "Kernel", "Kernel2", "device_kernel"})
_TYPE = re.compile(  # a type of numbers, or a placeholder: says nothing either
    r"(?:const |unsigned |signed )*(?:void|bool|char|short|int|long(?: long)?|float|double|size_t|T\d*|__half2?|half(?:_t)?|Half|"
    r"__nv_bfloat162?|b?float\d+(?:_t)?|BFloat16|Float\d+\w*|tfloat32_t|float_\w+_t|__nv_fp\d\w*|u?int\d+_t|(?:cu)?\w*[cC]omplex(?:<.*>)?)"
    r"(?: ?(?:const|\*|&))*")


class _Odd(Exception):
    """The text is no name with balanced brackets."""


def shorten(key: str) -> str:
    """Return the name of a kernel for a narrow column; two kernels may share it. `key`: its kernel_key.

    Parameter lists go, repeated types are written once, wrappers around a functor go, and a base name that says nothing
    (`Kernel2<cutlass_80_...>`) gives way to its argument. A text that is no such name is returned as it is.
    """
    try:
        text, end = _Reader(key[:_MOST]).name(0, 0)
    except _Odd:
        return key
    return text if end == len(key) else key


@lru_cache(maxsize=_TITLES)
def title(key: str) -> str:
    """Return the name of a kernel for a sentence: without its arguments, but for the one functor that a wrapper calls."""
    text = shorten(key.partition(" [")[0])
    wrapped = _WRAPPED.fullmatch(text)
    return text if wrapped and not _TYPE.fullmatch(wrapped[1]) else _ARGUMENTS.split(text, maxsplit=1)[0] or text


class _Reader:
    """Reads nested names from left to right, each once."""

    def __init__(self, text: str) -> None:
        self._text = text

    def name(self, at: int, depth: int) -> tuple[str, int]:
        """Return (label, end) of the name that begins at `at` and ends before a comma or a closing bracket."""
        if depth > _DEEPEST:
            raise _Odd
        text, found, last = self._text, "", ""
        while at < len(text) and text[at] == " ":
            at += 1
        while at < len(text) and text[at] not in ",>)":
            if text[at] in "<(":
                parts, end = self._list(at, depth)
                if text[at] == "<":
                    found = _template(found, parts)
                elif found.endswith("lambda"):
                    last = ", ".join(dict.fromkeys(parts))
                at = end
            else:
                end = next((i for i in range(at, len(text)) if text[i] in "<(,>)"), len(text))
                found += text[at:end]
                at = end
        return _without_lambdas(found, last), at

    def _list(self, at: int, depth: int) -> tuple[list[str], int]:
        """Return the labels between the bracket at `at` and its partner, and the place behind that."""
        closing, parts = {"<": ">", "(": ")"}[self._text[at]], []
        while True:
            part, at = self.name(at + 1, depth + 1)
            parts.append(part.strip())
            sign = self._text[at : at + 1]
            if sign == closing:
                return parts, at + 1
            if sign != ",":
                raise _Odd


def _template(base: str, parts: list[str]) -> str:
    """Return a template with its telling arguments, equal neighbours once."""
    kept = [part for part in parts if not _PLUMBING.match(part)]
    if any("<" in part or "(" in part or "_kernel" in part for part in kept):
        kept = [part for part in kept if not _NUMBER.fullmatch(part)]
    kept = [part for i, part in enumerate(kept) if part and (i == 0 or part != kept[i - 1] or _NUMBER.fullmatch(part))]
    telling = next((part for part in kept if not _TYPE.fullmatch(part) and not _NUMBER.fullmatch(part)), None)
    if telling and (base in _SAYS_NOTHING or base.startswith(("gpu_kernel_impl", "gpu_index_kernel"))):
        return telling
    return f"{base}<{', '.join(kept)}>" if kept else base


def _without_lambdas(name: str, last: str) -> str:
    """Return the function around lambdas: with the types that the innermost takes, or the number of the only one."""
    if "::lambda" not in name:
        return name
    around, *chain = name.split("::lambda")
    around = _ORDINAL.sub("", around)
    if len(chain) > 1 and last:
        return f"{around}({last})"
    return around if chain[0] in ("", "#1") else f"{around}{chain[0]}"
