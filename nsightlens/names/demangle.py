"""Itanium C++ symbol (`_Z...`) -> readable name, in pure Python and without trust in the input.

Covers what CUDA and HIP compilers emit for kernels: nested, local and lambda names, packs, literals, the usual expressions.
What it does not know it leaves alone: the symbol itself is the answer then, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from nsightlens.names import expressions, typenames
from nsightlens.names.abi import MAX_QUALIFIERS, OPERATORS, QUALIFIERS, STANDARD, CannotRead
from nsightlens.names.typenames import Type

MAX_TEXT = 1 << 16
"""Longest text of one part: substitutions may double with every few characters of a hostile symbol."""
MAX_WORK = 1 << 24
"""Characters built for one symbol in all."""
MAX_DEPTH = 100
"""Deepest nesting of types and arguments; real kernel names stay below 40."""

_DIGITS = re.compile(r"[0-9]+")
_SEQUENCE = re.compile(r"([0-9A-Z]*)_")
_SUFFIX = re.compile(r"[.$]\w[\w.$]*")

def demangle(mangled: str) -> str:
    """Return the readable form of a mangled symbol, or `mangled` itself where it is none or cannot be read."""
    if not mangled.startswith(("_Z", "___Z")):
        return mangled
    symbol = Symbol(mangled[mangled.index("_Z") + 2:])
    try:
        text = symbol.encoding()
    except (CannotRead, RecursionError):
        return mangled
    rest = symbol.text[symbol.at:]
    return text if not rest or _SUFFIX.fullmatch(rest) else mangled


class Symbol:
    """One pass over a symbol: `at` is the position, `seen` the substitutions, `arguments` what T_, T0_ ... stand for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.seen: list[Type] = []
        self.arguments: list[str] = []
        self.depth = 0
        self.work = 0
        self.in_lambda = False
        self.closed_by_arguments = False
        self.has_return_type = False
        self.qualifiers = ""

    def take(self, token: str) -> bool:
        """Step over `token` and say so, where it comes next."""
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def need(self, token: str) -> None:
        """Step over `token`, which must come next."""
        if not self.take(token):
            raise CannotRead

    def peek(self, length: int = 1) -> str:
        """Return the next characters, fewer at the end."""
        return self.text[self.at:self.at + length]

    def match(self, pattern: re.Pattern[str]) -> str:
        """Step over what `pattern` matches; return its last group, or all of it."""
        found = pattern.match(self.text, self.at)
        if found is None:
            raise CannotRead
        self.at = found.end()
        return found.group(found.lastindex or 0)

    def built(self, text: str) -> str:
        """Return `text`, counted against the limits."""
        self.work += len(text) + 1
        if len(text) > MAX_TEXT or self.work > MAX_WORK:
            raise CannotRead
        return text

    def sequence(self) -> int:
        """Return the number of a substitution or parameter: `_` is 0, `0_` is 1, base 36."""
        digits = self.match(_SEQUENCE)
        if len(digits) > 6:
            raise CannotRead
        return int(digits, 36) + 1 if digits else 0

    def listed(self, read: Callable[[], str], end: str = "E") -> list[str]:
        """Return what `read` returns until `end`."""
        items = []
        while not self.take(end):
            items.append(read())
        return items

    def enter(self) -> None:
        """Count one more level of nesting."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise CannotRead

    def type_text(self) -> str:
        """Return the next type."""
        return typenames.text(self)

    def expression(self) -> str:
        """Return the next expression."""
        return expressions.read(self)

    def encoding(self) -> str:
        """Return a function with its parameters, or a plain entity where there are none."""
        self.enter()
        outer, self.arguments = self.arguments, []
        self.has_return_type, self.qualifiers = True, ""
        name = self.name(tagged=True)
        templated, qualifiers = self.closed_by_arguments and self.has_return_type, self.qualifiers
        if self.at < len(self.text) and self.peek() not in "E.$":
            before, after = typenames.read(self) if templated else ("", "")
            name = f"{before}{' ' if before else ''}{name}({self.parameters()}){after}{qualifiers}"
        self.arguments = outer
        self.depth -= 1
        return self.built(name)

    def parameters(self) -> str:
        """Return the parameter types up to the end of the encoding, joined."""
        types = []
        while self.at < len(self.text) and self.peek() not in "E.$":
            types.append(self.type_text())
        return self.built("" if types == ["void"] else ", ".join(t for t in types if t))

    def name(self, tagged: bool = False) -> str:
        """Return the next name; `tagged`: its arguments are what T_ means from now on."""
        self.closed_by_arguments = False
        if self.take("N"):
            return self.nested(tagged)
        if self.take("Z"):
            return self.local(tagged)
        if self.peek() == "S" and self.peek(2) != "St":
            name = "".join(self.substitution())
        else:
            name = "std::" if self.take("St") else ""
            name = self.built(name + self.unqualified(name))
            if self.peek() == "I":
                self.seen.append((name, ""))
        if self.peek() == "I":
            name = self.built(name + self.template_arguments(tagged))
            self.closed_by_arguments = True
        return name

    def nested(self, tagged: bool) -> str:
        """Return a name between N and E."""
        qualifiers = self.method_qualifiers()
        name = ""
        while not self.take("E"):
            again = not name and self.peek() == "S" and self.peek(2) != "St"
            name = self.built("".join(self.substitution()) if again else self.component(name, tagged))
            if self.peek() != "E" and not again:
                self.seen.append((name, ""))
        self.qualifiers = qualifiers
        return name

    def method_qualifiers(self) -> str:
        """Return the const and & of a method, each with a space before it."""
        words = ""
        while self.peek() in QUALIFIERS and len(words) < MAX_QUALIFIERS:
            words = f" {QUALIFIERS[self.peek()]}{words}"
            self.at += 1
        return words + (" &" if self.take("R") else " &&" if self.take("O") else "")

    def component(self, name: str, tagged: bool) -> str:
        """Return `name` with the next part of a nested name attached."""
        if self.peek() == "I":
            if not name:
                raise CannotRead
            self.closed_by_arguments = True
            return name + self.template_arguments(tagged)
        self.closed_by_arguments = False
        if not name and self.take("St"):
            name = "std"
        elif not name and self.peek() == "T":
            return self.template_parameter()
        elif not name and self.peek(2) in ("Dt", "DT"):
            return typenames.decltype(self)
        return (name + "::" if name else "") + self.unqualified(name)

    def local(self, tagged: bool) -> str:
        """Return an entity within a function."""
        function = self.encoding()
        self.need("E")
        if self.take("s"):
            self.discriminator()
            return function + "::string literal"
        if self.take("d"):
            self.sequence()
        entity = self.name(tagged)
        self.discriminator()
        return f"{function}::{entity}"

    def discriminator(self) -> None:
        """Step over the number that tells local entities of one name apart."""
        if self.take("__"):
            self.match(_DIGITS)
            self.need("_")
        elif self.peek() == "_" and self.peek(2)[1:].isdigit():
            self.at += 2

    def unqualified(self, scope: str) -> str:
        """Return the next single name; `scope`: what stands before it."""
        while self.take("L"):
            pass
        head, two = self.peek(), self.peek(2)
        if head.isdigit():
            name = self.source_name()
        elif two == "Ul":
            name = self.closure()
        elif two == "Ut":
            self.at += 2
            name = f"{{unnamed type#{self.ordinal()}}}"
        elif (head == "C" and two[1:].isdigit()) or two in ("D0", "D1", "D2", "D4", "D5"):
            self.at += 2
            self.has_return_type = False
            name = ("~" if head == "D" else "") + re.split("::|<", scope.split("<")[0])[-1]
        else:
            name = self.operator_name()
        while self.take("B"):
            name += f"[abi:{self.source_name()}]"
        return name

    def source_name(self) -> str:
        """Return an identifier with its length before it."""
        length = int(self.match(_DIGITS)[:9])
        name = self.text[self.at:self.at + length]
        if len(name) != length or not length:
            raise CannotRead
        self.at += length
        return "(anonymous namespace)" if name.startswith("_GLOBAL__N") else name

    def closure(self) -> str:
        """Return a lambda."""
        self.at += 2
        outer, self.in_lambda = self.in_lambda, True
        types = self.listed(self.type_text)
        self.in_lambda = outer
        parameters = "" if types == ["void"] else ", ".join(types)
        return self.built(f"{{lambda({parameters})#{self.ordinal()}}}")

    def ordinal(self) -> int:
        """Return the number of a lambda or unnamed type, from 1: `_` is 1, `0_` is 2."""
        if self.take("_"):
            return 1
        number = int(self.match(_DIGITS)[:9]) + 2
        self.need("_")
        return number

    def operator_name(self) -> str:
        """Return the name of an operator function."""
        code = self.peek(2)
        self.at += 2
        if code == "cv":
            self.has_return_type = False
            return "operator " + self.type_text()
        if code not in OPERATORS:
            raise CannotRead
        symbol = OPERATORS[code][0]
        return f"operator {symbol}" if symbol[0].isalpha() else f"operator{symbol}"

    def substitution(self) -> Type:
        """Return what an S..., written earlier, stands for."""
        self.need("S")
        standard = STANDARD.get(self.peek())
        if standard:
            self.at += 1
            return standard, ""
        index = self.sequence()
        if index >= len(self.seen):
            raise CannotRead
        return self.seen[index]

    def template_parameter(self) -> str:
        """Return what a T..., an argument of the function, stands for."""
        self.need("T")
        index = int(self.match(_DIGITS)[:9]) + 1 if self.peek().isdigit() else 0
        self.need("_")
        if self.in_lambda:
            return "auto"
        if index >= len(self.arguments):
            raise CannotRead
        return self.arguments[index]

    def template_arguments(self, tagged: bool) -> str:
        """Return a list of template arguments in its brackets."""
        self.need("I")
        if tagged:
            self.arguments = []
        kept: list[str] = []
        while not self.take("E"):
            argument = self.template_argument()
            kept.append(argument)
            if tagged:
                self.arguments.append(argument)
        self.closed_by_arguments = True
        return self.built(f"<{', '.join(a for a in kept if a)}>")

    def template_argument(self) -> str:
        """Return one template argument, or the members of a pack, joined."""
        self.enter()
        if self.take("X"):
            text = self.expression()
            self.need("E")
        elif self.peek() == "L":
            text = expressions.literal(self)
        elif self.take("J"):
            text = ", ".join(a for a in self.listed(self.template_argument) if a)
        else:
            text = self.type_text()
        self.depth -= 1
        return self.built(text)
