"""Kernel name -> canonical key, short name and namespaces, in one pass that drops what the tools spell differently.

What the tools disagree on, and what the key does about it:
- namespaces and enclosing classes, which ncu drops, and `<unnamed>`, `(anonymous namespace)`: dropped
- `(int)4`, `int=4`, `4ul`, `true`: 4, 4, 4, 1. An enumerator keeps its type: `(Kind)0`
- `const float *`, `float const*`: `const float*`
- `[lambda(int) (instance 3)]`, `{lambda(int)#3}`, `'lambda1'(int)`: `lambda(int)#3`; the `operator()()` of a lambda: dropped
- return types: dropped. `&(float ns::f<float>(float const&))`, `&ns::f<float>`: `&f<float>`
- parameters of a function template, where nsys prints T1 and Kineto the type: dropped. Those of any other function are the
  same everywhere and distinguish overloads: kept
- ncu deletes `name::` with a `<` or `[` after it, `const::[lambda` and `at::<unnamed>::foo` included: put together again

What the key alone cannot distinguish: kernels that differ only in namespaces (ncu does not show them), and overloads of one
function template that differ only in their parameters. `kernel_names.facts` keeps those of one profile apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

MAX_DEPTH = 400
"""Deepest nesting of brackets that is read; a deeper name is its own key."""

_COPY = re.compile(r" \[clone [^]]*\]| \(\.[\w.]*\)")
_PLAIN = re.compile(r"[\w$]+")
_INTEGER = r"(?:(?:un)?signed\s)?(?:bool|char|short|int|__int128|long(?:\slong)?)(?:\sint)?"
_SPECIAL = "unnamed|lambda|operator|auto|local|decltype|nullptr_t"
_TOKEN = re.compile(
    rf"""
    (?P<space>\s+)
  | (?P<sign>[,>*&)])
  | (?P<word>(?!(?:{_SPECIAL})\b)[A-Za-z_][\w$]*+(?=[\s,<>()*&]))
  | (?P<namespace>(?:(?!(?:const|volatile)::)[A-Za-z_][\w$]*::)+)
  | (?P<anonymous>(?:<unnamed>|\(anonymous\ namespace\)|\{{anonymous\}}|\[?\blocal\ to\ [^]\s]*\])(?:::)?)
  | (?P<half>\bunnamed>::)
  | (?P<cast>\({_INTEGER}\)(?=\s?-?[0-9])|\b{_INTEGER}=(?=-?[0-9]))
  | (?P<lambda>[\[{{]?\blambda\(|'lambda(?P<nth>[0-9]{{0,6}})'\()
  | (?P<unnamed>(?:\{{unnamed\ type\#|\[?\bunnamed\ type\ \(instance\ |'unnamed)(?P<which>[0-9]{{0,6}})(?:\)\]|[}}']))
  | (?P<operator>\boperator\s?(?:\(\)|\[\]|<=>|<<=?|>>=?|->\*?|[-+*/%^&|=!<>]=|&&|\|\||\+\+|--|[-+*/%^&|~!=<>,]))
  | (?P<tag>(?<=[\w\]])\[[\w:,.$]+\])
  | (?P<null>decltype\(nullptr\)|\bnullptr_t\b)
  | (?P<number>[0-9]+[uUlL]*\b)
  | (?P<auto>\bauto:[0-9]+)
  | (?P<other_word>[\w$~]+(?:[.@][\w$~]+)*)
  | (?P<scope>::)
  | (?P<other_sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_LAMBDA_END = re.compile(r"\s?(?:\(instance ([0-9]+)\)\]|#([0-9]+)\})")
_QUALIFIERS = frozenset({"const", "volatile"})
_NUMBERS = {"true": "1", "false": "0"}


class ParsedName(NamedTuple):
    """A kernel name taken apart.

    scope: the namespaces around the kernel, joined by `::`, where the tool prints them.
    dropped: all namespaces that the key leaves out, in order, each once.
    """

    key: str
    short: str
    scope: str
    dropped: tuple[str, ...] = ()


def parse(name: str, repair: bool = True) -> ParsedName:
    """Return the parts of a readable kernel name. `repair`: the name may be one that ncu has damaged."""
    name = _without_copy_mark(name)
    if _PLAIN.fullmatch(name):
        return ParsedName(name, name, "")
    return _Pass(name, repair).run()


@dataclass(slots=True)
class _Frame:
    """An open bracket: its role, where it began in the output, and the state of its current comma-separated part.

    role: template, params (of a plain function), call (of a lambda), lambda, address (of a function), group, or hidden
        (params to be left out, but the name ends before their end).
    slot: output index kept free for a leading const. name: where the last space-separated word began.
    pointer: a * or & has been seen, so that const now belongs to the pointer. address: the part began with &.
    """

    role: str
    start: int
    slot: int
    name: int = 0
    pointer: bool = False
    address: bool = False
    nth: str | None = None


class _Pass:
    """State of the pass: output pieces, open brackets, and what kind of piece came last.

    last: "" (a part begins), word, number, sign, operator, call, lambda, template, or the role of a closed `(`.
    gap: whitespace came since. joined: `::` came last.
    """

    def __init__(self, name: str, repair: bool) -> None:
        self.text = name
        self.repair = repair
        self.out: list[str] = [""]
        self.frames = [_Frame("name", 0, 0)]
        self.last = ""
        self.gap = False
        self.joined = False
        self.short = ""
        self.scopes: list[str] = []
        self.dropped: dict[str, None] = {}
        self.closing: dict[int, int] | None = None

    def run(self) -> ParsedName:
        at, end = 0, len(self.text)
        while at < end:
            if len(self.frames) - 1 > MAX_DEPTH:
                return ParsedName(self.text, _first_word(self.text), "")
            token = _TOKEN.match(self.text, at)
            assert token is not None, "the last alternative matches any character"
            at = token.end()
            text = token.group()
            if text == ")":
                at = self.close_round(at)
            elif text == "(":
                at = self.open_round(at)
            else:
                _STEPS[token.lastgroup or ""](self, token)
        if len(self.frames) == 1 and self.last in ("params", "hidden", "template"):
            self.drop_return_type()
            return ParsedName("".join(self.out), self.short, "::".join(self.scopes), tuple(self.dropped))
        key = "".join(self.out)
        return ParsedName(key, key if len(self.frames) == 1 else _first_word(self.text), "", tuple(self.dropped))

    # --- words ------------------------------------------------------------------------------------------------------

    def add(self, kind: str, text: str) -> None:
        """Append a piece; unless `::` joins it to the one before, a new word begins."""
        if not self.joined:
            self.begin_word()
        if len(self.frames) == 1:
            self.short = text
        self.out.append(text)
        self.last, self.gap, self.joined = kind, False, False

    def begin_word(self) -> None:
        if self.last not in ("", "sign") and (self.gap or self.last in ("word", "number")):
            self.out.append(" ")
        self.frames[-1].name = len(self.out)
        if len(self.frames) == 1:
            self.scopes = []

    def see_space(self, token: re.Match[str]) -> None:
        self.gap = True

    def see_word(self, token: re.Match[str]) -> None:
        text = token.group()
        if text in _QUALIFIERS:
            self.qualify(text)
        elif text not in ("__restrict__", "__restrict"):
            self.add("word", _NUMBERS.get(text, text))

    see_other_word = see_word

    def see_number(self, token: re.Match[str]) -> None:
        self.add("number", token.group().rstrip("uUlL"))

    def see_null(self, token: re.Match[str]) -> None:
        self.add("word", "nullptr_t")

    def see_auto(self, token: re.Match[str]) -> None:
        self.add("word", "auto")

    def see_operator(self, token: re.Match[str]) -> None:
        text = "operator" + token.group()[len("operator"):].strip()
        called = self.joined and text == "operator()" and self.last == "lambda"
        self.add("call" if called else "operator", text)

    def see_unnamed(self, token: re.Match[str]) -> None:
        which = token.group("which")
        by_llvm = token.group().startswith("'")
        self.add("lambda", f"unnamed#{_ordinal(which) if by_llvm else which}")

    def see_cast(self, token: re.Match[str]) -> None:
        """Leave a cast to an integer type out."""

    def see_tag(self, token: re.Match[str]) -> None:
        """Write ABI tags as [a,b] behind the name, however the tool splits them."""
        inner = token.group()[1:-1].replace("abi:", "")
        before = self.out[-1]
        self.out[-1] = f"{before[:-1]},{inner}]" if before.endswith("]") else f"{before}[{inner}]"

    def qualify(self, word: str) -> None:
        """Write const before the type it belongs to, or behind its pointer; that of a method is left out."""
        frame = self.frames[-1]
        if frame.pointer:
            self.out.append(" " + word)
        elif self.last not in ("params", "hidden") and word not in self.out[frame.slot]:
            self.out[frame.slot] += word + " "
        self.joined = False

    # --- scopes -----------------------------------------------------------------------------------------------------

    def see_namespace(self, token: re.Match[str]) -> None:
        """Leave plain names before `::` out: namespaces and classes."""
        if not self.joined:
            self.begin_word()
        if len(self.frames) == 1:
            self.scopes.append(token.group()[:-2])
        self.dropped[token.group()[:-2]] = None
        self.last, self.gap, self.joined = "sign", False, True

    def see_scope(self, token: re.Match[str]) -> None:
        self.scope()

    def scope(self) -> None:
        """Take a `::` that stands alone: a name with ABI tags before it goes; a template, function or lambda stays."""
        if self.last == "word" and not self.gap:
            self.out.pop()
            self.last, self.joined = "sign", True
        elif self.last in ("template", "params", "hidden", "lambda"):
            if self.last == "hidden":
                self.drop_return_type()
            self.out.append("::")
            self.joined, self.gap = True, False

    def see_anonymous(self, token: re.Match[str]) -> None:
        """Leave an unnamed namespace out; behind a name ncu's `<unnamed>::` is the `<` of its arguments."""
        if self.repair and token.group() == "<unnamed>::" and self.may_open_template():
            self.open("template", "<")

    def see_half(self, token: re.Match[str]) -> None:
        if not self.repair:
            self.add("word", "unnamed")
            self.sign(">")
            self.scope()

    def drop_return_type(self) -> None:
        frame = self.frames[-1]
        first = frame.slot + 1
        if first < frame.name:
            if self.out[first] != "void":
                self.out[frame.slot] = ""
            self.out[first:frame.name] = [""] * (frame.name - first)
        frame.pointer = False

    # --- brackets ---------------------------------------------------------------------------------------------------

    def see_sign(self, token: re.Match[str]) -> None:
        self.sign(token.group())

    see_other_sign = see_sign

    def sign(self, text: str) -> None:
        """Take one character that belongs to no other token, round brackets apart."""
        if text == "<" and self.may_open_template():
            self.open("template", "<")
        elif text == ">" and self.frames[-1].role == "template":
            self.close_template()
        elif text == "," and len(self.frames) > 1:
            self.out.append(", ")
            self.part()
        else:
            if text in "*&":
                self.frames[-1].pointer = True
                self.frames[-1].address |= text == "&" and self.last == ""
            self.out.append(text)
            self.last, self.gap, self.joined = "sign", False, False

    def may_open_template(self) -> bool:
        return not self.gap and not self.joined and self.last in ("word", "operator", "call")

    def open_round(self, at: int) -> int:
        """Take `(`, together with all up to its `)` where that is left out; return where to read on."""
        role = self.role_of_round()
        if role == "hidden":
            if self.closing is None:
                self.closing = _closing_brackets(self.text)
            if at - 1 in self.closing:
                self.last, self.gap, self.joined = "hidden", False, False
                return self.closing[at - 1] + 1
        self.open(role, "(")
        return at

    def role_of_round(self) -> str:
        address = self.frames[-1].address
        if address and self.last == "sign":
            return "address"
        if self.gap or self.last not in ("word", "operator", "call", "template"):
            return "group"
        if address or self.last == "template":
            return "hidden"
        return "call" if self.last == "call" else "params"

    def see_lambda(self, token: re.Match[str]) -> None:
        if self.last in ("params", "hidden", "lambda") and not self.joined and self.repair:
            self.scope()
        self.add("word", "lambda")
        self.open("lambda", "(", token.group("nth"))

    def open(self, role: str, sign: str, nth: str | None = None) -> None:
        self.frames.append(_Frame(role, len(self.out), 0, nth=nth))
        self.out.append(sign)
        self.part()

    def part(self) -> None:
        """Begin the next comma-separated part of the innermost bracket."""
        frame = self.frames[-1]
        frame.slot = len(self.out)
        frame.pointer, frame.address = False, frame.role == "address"
        self.out.append("")
        self.last, self.gap, self.joined = "", False, False

    def close_template(self) -> None:
        self.frames.pop()
        self.out.append(">")
        self.last, self.gap, self.joined = "template", False, False

    def close_round(self, at: int) -> int:
        """Take `)` and what ends a lambda behind it; return where to read on. Signs that only looked like `<` stay signs."""
        inner = len(self.frames) - 1
        while inner and self.frames[inner].role == "template":
            inner -= 1
        self.gap = self.joined = False
        if not inner:
            self.out.append(")")
            self.last = "sign"
            return at
        frame = self.frames[inner]
        if frame.role == "address" and frame is self.frames[-1]:
            self.drop_return_type()
        del self.frames[inner:]
        if frame.role == "lambda":
            return self.close_lambda(frame, at)
        self.last = "params" if frame.role == "call" else frame.role
        if frame.role == "address":
            self.out[frame.start] = ""
        elif frame.role == "call":
            del self.out[frame.start - 2:]
        else:
            self.close_list(frame)
        return at

    def close_list(self, frame: _Frame) -> None:
        inside = self.out[frame.start + 1:frame.start + 4]
        if frame.role == "params" and inside == ["", "void"]:
            self.out.pop()
        elif frame.role == "group" and len(inside) == 2 and inside[1].isdigit():
            self.out[frame.start:] = inside[1:]
            self.last = "number"
            return
        self.out.append(")")

    def close_lambda(self, frame: _Frame, at: int) -> int:
        end = _LAMBDA_END.match(self.text, at)
        if frame.nth is not None:
            number = _ordinal(frame.nth)
        elif end:
            number, at = int((end[1] or end[2])[:9]), end.end()
        else:
            self.last = "params"
            self.close_list(frame)
            return at
        self.close_list(frame)
        self.out[-1] += f"#{number}"
        self.last = "lambda"
        return at


_STEPS: dict[str, Callable[[_Pass, re.Match[str]], None]] = {
    group: getattr(_Pass, f"see_{group}") for group in _TOKEN.groupindex if hasattr(_Pass, f"see_{group}")}
"""What is done with each kind of token."""


def _without_copy_mark(name: str) -> str:
    """Return the name without the mark of a compiler's copy of a function, or AMD's of a kernel descriptor."""
    at = max(name.rfind(" [clone "), name.rfind(" (."))
    if at >= 0 and _COPY.fullmatch(name, at):
        return name[:at]
    return name.removesuffix(".kd")


def _closing_brackets(text: str) -> dict[int, int]:
    """Return the position of the `)` for each `(` that has one."""
    pairs, opened = {}, []
    for found in re.finditer("[()]", text):
        if found.group() == "(":
            opened.append(found.start())
        elif opened:
            pairs[opened.pop()] = found.start()
    return pairs


def _ordinal(digits: str) -> int:
    """Return the number that LLVM counts as "", 0, 1, ...: 1, 2, 3."""
    return int(digits) + 2 if digits else 1


def _first_word(text: str) -> str:
    found = _PLAIN.search(text)
    return found.group() if found else text
