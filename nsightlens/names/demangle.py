"""Itanium C++ symbol (`_Z...`) -> readable name, in pure Python and without trust in the input.

Covers what CUDA and HIP compilers emit for kernels: nested, local and lambda names, packs, literals, the usual expressions.
What it does not know it leaves alone: the symbol itself is the answer then, never an exception.
"""

from __future__ import annotations

import re

from nsightlens.names import expressions, typenames
from nsightlens.names.abi import MAX_QUALIFIERS, OPERATORS, QUALIFIERS, CannotRead
from nsightlens.names.symbol import DIGITS, Grammar, Symbol

_SUFFIX = re.compile(r"[.$]\w[\w.$]*")


def demangle(mangled: str) -> str:
    """Return the readable form of a mangled symbol, or `mangled` itself where it is none or cannot be read."""
    if not mangled.startswith(("_Z", "___Z")):
        return mangled
    symbol = Symbol(mangled[mangled.index("_Z") + 2:], _GRAMMAR)
    try:
        text = _encoding(symbol)
    except (CannotRead, RecursionError):
        return mangled
    rest = symbol.text[symbol.at:]
    return text if not rest or _SUFFIX.fullmatch(rest) else mangled


def _encoding(symbol: Symbol) -> str:
    """Return a function with its parameters, or a plain entity where there are none."""
    symbol.enter()
    outer, symbol.arguments = symbol.arguments, []
    symbol.has_return_type, symbol.qualifiers = True, ""
    name = _name(symbol, tagged=True)
    templated, qualifiers = symbol.closed_by_arguments and symbol.has_return_type, symbol.qualifiers
    if symbol.at < len(symbol.text) and symbol.peek() not in "E.$":
        before, after = typenames.read(symbol) if templated else ("", "")
        name = f"{before}{' ' if before else ''}{name}({_parameters(symbol)}){after}{qualifiers}"
    symbol.arguments = outer
    symbol.depth -= 1
    return symbol.built(name)


def _parameters(symbol: Symbol) -> str:
    """Return the parameter types up to the end of the encoding, joined."""
    types = []
    while symbol.at < len(symbol.text) and symbol.peek() not in "E.$":
        types.append(typenames.text(symbol))
    return symbol.built("" if types == ["void"] else ", ".join(t for t in types if t))


def _name(symbol: Symbol, tagged: bool = False) -> str:
    """Return the next name; `tagged`: its arguments are what T_ means from now on."""
    symbol.closed_by_arguments = False
    if symbol.take("N"):
        return _nested(symbol, tagged)
    if symbol.take("Z"):
        return _local(symbol, tagged)
    if symbol.peek() == "S" and symbol.peek(2) != "St":
        name = "".join(symbol.substitution())
    else:
        name = "std::" if symbol.take("St") else ""
        name = symbol.built(name + _unqualified(symbol, name))
        if symbol.peek() == "I":
            symbol.seen.append((name, ""))
    if symbol.peek() == "I":
        name = symbol.built(name + _template_arguments(symbol, tagged))
        symbol.closed_by_arguments = True
    return name


def _nested(symbol: Symbol, tagged: bool) -> str:
    """Return a name between N and E."""
    qualifiers = _method_qualifiers(symbol)
    name = ""
    while not symbol.take("E"):
        again = not name and symbol.peek() == "S" and symbol.peek(2) != "St"
        name = symbol.built("".join(symbol.substitution()) if again else _component(symbol, name, tagged))
        if symbol.peek() != "E" and not again:
            symbol.seen.append((name, ""))
    symbol.qualifiers = qualifiers
    return name


def _method_qualifiers(symbol: Symbol) -> str:
    """Return the const and & of a method, each with a space before it."""
    words = ""
    while symbol.peek() in QUALIFIERS and len(words) < MAX_QUALIFIERS:
        words = f" {QUALIFIERS[symbol.peek()]}{words}"
        symbol.at += 1
    return words + (" &" if symbol.take("R") else " &&" if symbol.take("O") else "")


def _component(symbol: Symbol, name: str, tagged: bool) -> str:
    """Return `name` with the next part of a nested name attached."""
    if symbol.peek() == "I":
        if not name:
            raise CannotRead
        symbol.closed_by_arguments = True
        return name + _template_arguments(symbol, tagged)
    symbol.closed_by_arguments = False
    if not name and symbol.take("St"):
        name = "std"
    elif not name and symbol.peek() == "T":
        return symbol.template_parameter()
    elif not name and symbol.peek(2) in ("Dt", "DT"):
        return typenames.decltype(symbol)
    return (name + "::" if name else "") + _unqualified(symbol, name)


def _local(symbol: Symbol, tagged: bool) -> str:
    """Return an entity within a function."""
    function = _encoding(symbol)
    symbol.need("E")
    if symbol.take("s"):
        _discriminator(symbol)
        return function + "::string literal"
    if symbol.take("d"):
        symbol.sequence()
    entity = _name(symbol, tagged)
    _discriminator(symbol)
    return f"{function}::{entity}"


def _discriminator(symbol: Symbol) -> None:
    """Step over the number that distinguishes local entities of one name."""
    if symbol.take("__"):
        symbol.match(DIGITS)
        symbol.need("_")
    elif symbol.peek() == "_" and symbol.peek(2)[1:].isdigit():
        symbol.at += 2


def _unqualified(symbol: Symbol, scope: str = "") -> str:
    """Return the next single name; `scope`: what stands before it."""
    while symbol.take("L"):
        pass
    head, two = symbol.peek(), symbol.peek(2)
    if head.isdigit():
        name = symbol.source_name()
    elif two == "Ul":
        name = _closure(symbol)
    elif two == "Ut":
        symbol.at += 2
        name = f"{{unnamed type#{symbol.ordinal()}}}"
    elif (head == "C" and two[1:].isdigit()) or two in ("D0", "D1", "D2", "D4", "D5"):
        symbol.at += 2
        symbol.has_return_type = False
        name = ("~" if head == "D" else "") + _innermost(scope)
    else:
        name = _operator_name(symbol)
    while symbol.take("B"):
        name += f"[abi:{symbol.source_name()}]"
    return name


def _innermost(scope: str) -> str:
    """Return the last name of a scope, without its template arguments."""
    end, depth = len(scope), 0
    for at in range(len(scope) - 1, -1, -1):
        depth += (scope[at] == ">") - (scope[at] == "<")
        if not depth and scope[at] == "<":
            end = at
        elif not depth and scope[at] == ":":
            return scope[at + 1:end]
    return scope[:end]


def _closure(symbol: Symbol) -> str:
    """Return a lambda."""
    symbol.at += 2
    outer, symbol.in_lambda = symbol.in_lambda, True
    types = symbol.listed(typenames.text)
    symbol.in_lambda = outer
    parameters = "" if types == ["void"] else ", ".join(types)
    return symbol.built(f"{{lambda({parameters})#{symbol.ordinal()}}}")


def _operator_name(symbol: Symbol) -> str:
    """Return the name of an operator function."""
    code = symbol.peek(2)
    symbol.at += 2
    if code == "cv":
        symbol.has_return_type = False
        return "operator " + typenames.text(symbol)
    if code not in OPERATORS:
        raise CannotRead
    sign = OPERATORS[code][0]
    return f"operator {sign}" if sign[0].isalpha() else f"operator{sign}"


def _template_arguments(symbol: Symbol, tagged: bool = False) -> str:
    """Return a list of template arguments in its brackets."""
    symbol.need("I")
    if tagged:
        symbol.arguments = []
    kept: list[str] = []
    while not symbol.take("E"):
        argument = _template_argument(symbol)
        kept.append(argument)
        if tagged:
            symbol.arguments.append(argument)
    symbol.closed_by_arguments = True
    return symbol.built(f"<{', '.join(a for a in kept if a)}>")


def _template_argument(symbol: Symbol) -> str:
    """Return one template argument, or the members of a pack, joined."""
    symbol.enter()
    if symbol.take("Tn"):  # newer clang writes the type of the parameter before its value
        typenames.text(symbol)
    if symbol.take("X"):
        text = expressions.read(symbol)
        symbol.need("E")
    elif symbol.peek() == "L":
        text = expressions.literal(symbol)
    elif symbol.take("J"):
        text = ", ".join(a for a in symbol.listed(_template_argument) if a)
    else:
        text = typenames.text(symbol)
    symbol.depth -= 1
    return symbol.built(text)


_GRAMMAR = Grammar(_encoding, _name, _unqualified, _operator_name, _template_arguments, expressions.read)
