"""Types in a symbol -> text, in the spelling of GNU's demangler."""

from __future__ import annotations

from nsightlens.names.abi import BUILTINS, MAX_QUALIFIERS, QUALIFIERS, CannotRead
from nsightlens.names.symbol import DIGITS, Symbol, Type

_SIGNS = {"P": "*", "R": "&", "O": "&&"}


def text(symbol: Symbol) -> str:
    """Return the next type as one text."""
    return "".join(read(symbol))


def read(symbol: Symbol) -> Type:
    """Return the next type, and remember it where later parts may refer to it."""
    symbol.enter()
    found, remember = _read(symbol)
    symbol.built(found[0] + found[1])
    if remember:
        symbol.seen.append(found)
    symbol.depth -= 1
    return found


def decltype(symbol: Symbol) -> str:
    """Return the next type, a decltype."""
    symbol.at += 2
    inner = symbol.grammar.expression(symbol)
    symbol.need("E")
    return f"decltype({inner})"


def _read(symbol: Symbol) -> tuple[Type, bool]:
    head, two = symbol.peek(), symbol.peek(2)
    for code in (head, two):
        if code in BUILTINS:
            symbol.at += len(code)
            return (BUILTINS[code], ""), False
    if head == "D":
        return _special(symbol, two)
    if head == "S" and two != "St":
        return _substituted(symbol)
    return _compound(symbol, head), True


def _compound(symbol: Symbol, head: str) -> Type:
    if head in QUALIFIERS:
        return _qualified(symbol)
    if head == "F":
        return _function(symbol)
    if head == "A":
        return _array(symbol)
    if head == "T":
        return _parameter(symbol)
    if head in ("M", "U", "u", *_SIGNS):
        symbol.at += 1
    if head in _SIGNS:
        return _pointer(read(symbol), _SIGNS[head])
    if head == "M":
        owner = text(symbol)
        return _pointer(read(symbol), f" {owner}::*")
    if head == "U":
        vendor = symbol.source_name()
        before, after = read(symbol)
        return f"{before} {vendor}", after
    return symbol.grammar.name(symbol), ""


def _parameter(symbol: Symbol) -> Type:
    name = symbol.template_parameter()
    if symbol.peek() == "I":
        symbol.seen.append((name, ""))
        name += symbol.grammar.template_arguments(symbol)
    return name, ""


def _substituted(symbol: Symbol) -> tuple[Type, bool]:
    found = symbol.substitution()
    if symbol.peek() != "I":
        return found, False
    return ("".join(found) + symbol.grammar.template_arguments(symbol), ""), True


def _qualified(symbol: Symbol) -> Type:
    words = ""
    while symbol.peek() in QUALIFIERS and len(words) < MAX_QUALIFIERS:
        words = f" {QUALIFIERS[symbol.peek()]}{words}"
        symbol.at += 1
    before, after = read(symbol)
    return before + words, after


def _function(symbol: Symbol) -> Type:
    symbol.need("F")
    symbol.take("Y")
    before, after = read(symbol)
    types = symbol.listed(text)
    return f"{before} ", f"({'' if types == ['void'] else ', '.join(types)}){after}"


def _array(symbol: Symbol) -> Type:
    symbol.need("A")
    length = ""
    if symbol.peek().isdigit():
        length = symbol.match(DIGITS)
    elif symbol.peek() != "_":
        length = symbol.grammar.expression(symbol)
    symbol.need("_")
    before, after = read(symbol)
    return f"{before} ", f"[{length}]{after}"


def _special(symbol: Symbol, two: str) -> tuple[Type, bool]:
    if two in ("Dt", "DT"):
        return (decltype(symbol), ""), True
    symbol.at += 2
    if two in ("Dp", "Do"):
        return read(symbol), True
    if two == "DF":
        bits = symbol.match(DIGITS)
        if symbol.take("b"):
            return (f"std::bfloat{bits}_t", ""), False
        if not symbol.take("x"):
            symbol.need("_")
        return (f"_Float{bits}", ""), False
    if two == "Dv":
        length = symbol.match(DIGITS) if symbol.peek().isdigit() else symbol.grammar.expression(symbol)
        symbol.need("_")
        return (f"{text(symbol)} __vector({length})", ""), True
    raise CannotRead


def _pointer(target: Type, sign: str) -> Type:
    before, after = target
    if after.startswith(("(", "[")):
        return f"{before}({sign.strip()}", f"){after}"
    return before + sign, after
