"""Expressions and literals in the template arguments of a symbol -> text, in the spelling of GNU's demangler."""

from __future__ import annotations

import re

from nsightlens.names import typenames
from nsightlens.names.abi import OPERATORS, CannotRead
from nsightlens.names.symbol import Rule, Symbol

_PARAMETER = re.compile(r"[0-9]*(?:p[0-9]*)?[rVK]*[0-9]*_")


def read(symbol: Symbol) -> str:
    """Return the next expression."""
    symbol.enter()
    text = symbol.built(_read(symbol))
    symbol.depth -= 1
    return text


def literal(symbol: Symbol) -> str:
    """Return the next literal: a number with its type, an enumerator, or a function."""
    symbol.need("L")
    if symbol.take("_Z") or symbol.take("Z"):
        text = symbol.grammar.encoding(symbol)
        symbol.need("E")
        return text
    kind = typenames.text(symbol)
    end = symbol.text.find("E", symbol.at)
    if end < 0:
        raise CannotRead
    value = symbol.text[symbol.at:end]
    symbol.at = end + 1
    if value.startswith("n"):
        value = "-" + value[1:]
    if kind == "bool":
        return {"0": "false", "1": "true"}.get(value, value)
    return value if kind == "int" and value else f"({kind}){value}" if value else kind


def _read(symbol: Symbol) -> str:
    head, two = symbol.peek(), symbol.peek(2)
    if head == "L":
        return literal(symbol)
    if head == "T":
        return symbol.template_parameter()
    if two in _KINDS:
        symbol.at += 2
        return _KINDS[two](symbol)
    if two in OPERATORS:
        symbol.at += 2
        return _operation(symbol, *OPERATORS[two])
    return symbol.grammar.name(symbol)


def _operation(symbol: Symbol, sign: str, operands: int) -> str:
    if not operands:
        raise CannotRead
    values = [f"({read(symbol)})" for _ in range(operands)]
    if operands == 1:
        return sign + values[0]
    if operands == 3:
        return f"{values[0]}?{values[1]} : {values[2]}"
    text = sign.join(values)
    return f"({text})" if ">" in sign else text


def _member(symbol: Symbol) -> str:
    owner = typenames.text(symbol)
    name = symbol.grammar.unqualified(symbol)
    return f"{owner}::{name}" + (symbol.grammar.template_arguments(symbol) if symbol.peek() == "I" else "")


def _conversion(symbol: Symbol) -> str:
    kind = typenames.text(symbol)
    values = symbol.listed(read) if symbol.take("_") else [read(symbol)]
    return f"({kind})({', '.join(values)})"


def _call(symbol: Symbol) -> str:
    name, *values = symbol.listed(read) or [""]
    return f"{name}({', '.join(values)})"


def _step(symbol: Symbol, sign: str) -> str:
    """Return an increment or decrement: before its operand where `_` follows the code, else behind it."""
    before = symbol.take("_")
    operand = f"({read(symbol)})"
    return sign + operand if before else operand + sign


def _braced(symbol: Symbol, kind: str) -> str:
    return f"{kind}{{{', '.join(symbol.listed(read))}}}"


def _function_parameter(symbol: Symbol) -> str:
    symbol.match(_PARAMETER)
    return "{parm}"


_KINDS: dict[str, Rule] = {
    "sr": _member,
    "cv": _conversion,
    "cl": _call,
    "fp": _function_parameter,
    "fL": _function_parameter,
    "il": lambda s: _braced(s, ""),
    "tl": lambda s: _braced(s, typenames.text(s)),
    "st": lambda s: f"sizeof ({typenames.text(s)})",
    "sz": lambda s: f"sizeof ({read(s)})",
    "at": lambda s: f"alignof ({typenames.text(s)})",
    "sZ": lambda s: f"sizeof...({s.template_parameter()})",
    "sp": read,
    "on": lambda s: s.grammar.operator_name(s),
    "dt": lambda s: f"{read(s)}.{s.grammar.unqualified(s)}",
    "nx": lambda s: f"noexcept({read(s)})",
    "ix": lambda s: f"({read(s)})[{read(s)}]",
    "pp": lambda s: _step(s, "++"),
    "mm": lambda s: _step(s, "--"),
}
"""Code -> what reads the expression behind it; all other codes are operators or names."""
