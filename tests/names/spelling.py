"""A small C++ name grammar, what makes two kernels the same, and how each tool spells a kernel: written apart from nsightlens."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True)
class Scope:
    """Namespaces; `unnamed`: an unnamed one inside them."""

    names: tuple[str, ...]
    unnamed: bool = False


@dataclass(frozen=True)
class Plain:
    """A built-in type."""

    text: str


@dataclass(frozen=True)
class Named:
    """A class, a template with arguments, or (by `member`) a class within one."""

    scope: Scope
    name: str
    arguments: tuple[Argument, ...] | None = None
    member: str | None = None


@dataclass(frozen=True)
class Pointer:
    target: Type
    sign: str = "*"
    target_const: bool = False


@dataclass(frozen=True)
class Number:
    kind: str
    value: int


@dataclass(frozen=True)
class Enumerator:
    scope: Scope
    name: str
    value: int


@dataclass(frozen=True)
class Function:
    """A function: a template where it has arguments."""

    scope: Scope
    name: str
    arguments: tuple[Argument, ...] | None
    parameters: tuple[Type, ...]
    returns: Type = Plain("void")


@dataclass(frozen=True)
class Lambda:
    """A lambda within a function, or within the body of another lambda."""

    within: Function | Lambda
    parameters: tuple[Type, ...]
    number: int


@dataclass(frozen=True)
class Address:
    """A function as a template argument."""

    function: Function


Type = Plain | Named | Pointer
Argument = Type | Number | Enumerator | Lambda | Address
Node = Argument | Function


def identity(node: Node) -> object:
    """Return what two kernels must share to count as one: the promise of nsightlens.names.key."""
    match node:
        case Named(_, name, arguments, member):
            return "class", name, _each(arguments), member
        case Pointer(target, sign, const):
            return sign, const, identity(target)
        case Number(_, value):
            return "number", value
        case Enumerator(_, name, value):
            return "enumerator", name, value
        case Function(_, name, arguments, parameters):
            return "function", name, _each(arguments), None if arguments is not None else _each(parameters)
        case Lambda(within, parameters, number):
            return "lambda", identity(within), _each(parameters), number
        case Address(function):
            return "address", function.name, _each(function.arguments)
        case Plain(text):
            return text


def _each(nodes: Sequence[Node] | None) -> object:
    return None if nodes is None else tuple(identity(node) for node in nodes)


class Nsys:
    """NVIDIA's demangler, as nsys prints it."""

    close = ">"

    def scope(self, scope: Scope) -> str:
        return "".join(f"{name}::" for name in scope.names) + ("<unnamed>::" if scope.unnamed else "")

    def listed(self, arguments: tuple[Argument, ...]) -> str:
        text = "<" + ", ".join(map(self.argument, arguments))
        return text + (" >" if text.endswith(">") and self.close == " >" else ">")

    def argument(self, node: Argument) -> str:
        match node:
            case Number(kind, value):
                return self.number(kind, value)
            case Enumerator(scope, name, value):
                return f"({self.scope(scope)}{name}){value}"
            case Lambda():
                return self.lambda_(node)
            case Address(function):
                return self.address(function)
            case _:
                return self.type(node)

    def number(self, kind: str, value: int) -> str:
        return f"({kind}){value}"

    def address(self, function: Function) -> str:
        return f"&{self.named(function)}"

    def type(self, node: Type) -> str:
        match node:
            case Plain(text):
                return text
            case Pointer(target, sign, const):
                return f"{'const ' if const else ''}{self.type(target)} {sign}"
            case Named(scope, name, arguments, member):
                text = self.scope(scope) + name + ("" if arguments is None else self.listed(arguments))
                return text + (f"::{member}" if member else "")

    def named(self, function: Function) -> str:
        arguments = "" if function.arguments is None else self.listed(function.arguments)
        return self.scope(function.scope) + function.name + arguments

    def parameters(self, function: Function) -> str:
        if function.arguments is None:
            return f"({', '.join(map(self.type, function.parameters))})"
        return f"({', '.join(f'T{n}' for n, _ in enumerate(function.parameters, 1))})"

    def local(self, function: Function) -> str:
        returns = f"{self.type(function.returns)} " if function.arguments is not None else ""
        return returns + self.named(function) + self.parameters(function)

    def lambda_(self, node: Lambda) -> str:
        match node.within:
            case Function():
                before = self.local(node.within)
            case Lambda():
                before = f"{self.lambda_(node.within)}::{self.call} const"
        return f"{before}::{self.closure(', '.join(map(self.type, node.parameters)), node.number)}"

    call = "operator ()()"

    def closure(self, parameters: str, number: int) -> str:
        return f"[lambda({parameters}) (instance {number})]"

    def kernel(self, function: Function) -> str:
        returns = "void " if function.arguments is not None else ""
        return returns + self.named(function) + self.parameters(function)


SUFFIXES = {"int": "", "unsigned int": "u", "long": "l", "unsigned long": "ul"}


class Kineto(Nsys):
    """GNU's demangler, as Kineto prints it on CUDA."""

    close = " >"
    call = "operator()()"

    def scope(self, scope: Scope) -> str:
        return "".join(f"{name}::" for name in scope.names) + ("(anonymous namespace)::" if scope.unnamed else "")

    def number(self, kind: str, value: int) -> str:
        return ("false", "true")[value] if kind == "bool" else f"{value}{SUFFIXES[kind]}"

    def address(self, function: Function) -> str:
        if function.arguments is None:
            return f"&({self.named(function)}{self.parameters(function)})"
        return f"&({self.type(function.returns)} {self.named(function)}{self.parameters(function)})"

    def type(self, node: Type) -> str:
        if isinstance(node, Pointer):
            return f"{self.type(node.target)}{' const' if node.target_const else ''}{node.sign}"
        return super().type(node)

    def parameters(self, function: Function) -> str:
        return f"({', '.join(map(self.type, function.parameters))})"

    def local(self, function: Function) -> str:
        return self.named(function) + self.parameters(function)

    def closure(self, parameters: str, number: int) -> str:
        return f"{{lambda({parameters})#{number}}}"


class Llvm(Kineto):
    """LLVM's demangler, as newer tools and ROCm use it."""

    close = ">"

    def local(self, function: Function) -> str:
        returns = f"{self.type(function.returns)} " if function.arguments is not None else ""
        return returns + super().local(function)

    def closure(self, parameters: str, number: int) -> str:
        return f"'lambda{'' if number == 1 else number - 2}'({parameters})"


def ncu(function: Function) -> str:
    """Return what ncu makes of NVIDIA's spelling unless told otherwise (--rename-kernels): formats page, section 5."""
    text = re.sub(r"\((?:int|bool|long|unsigned \w+)\)(?=-?[0-9])", "", Nsys().kernel(function))
    return re.sub(r"(?:\b[A-Za-z_]\w*::)+[<\[]?", "", text)


SPELLINGS: dict[str, Callable[[Function], str]] = {
    "nsys": Nsys().kernel, "ncu": ncu, "kineto": Kineto().kernel, "llvm": Llvm().kernel,
}

_names = st.sampled_from(["at", "native", "Foo", "Bar_2", "x", "kernel", "lambda_like", "unnamed_x", "constant", "int4", "T1"])
_scopes = st.builds(Scope, st.lists(st.sampled_from(["at", "native", "c10", "_x1", "std"]), max_size=3).map(tuple), st.booleans())
_builtins = st.sampled_from(["int", "unsigned int", "float", "long long", "char", "unsigned long"]).map(Plain)
_numbers = st.one_of(
    st.builds(Number, st.just("bool"), st.integers(0, 1)),
    st.builds(Number, st.sampled_from(["int", "long"]), st.integers(-9, 4096)),
    st.builds(Number, st.sampled_from(["unsigned int", "unsigned long"]), st.integers(0, 4096)),
)
_leaves: st.SearchStrategy[Argument] = st.one_of(
    _builtins, _numbers, st.builds(Named, _scopes, _names), st.builds(Enumerator, _scopes, _names, st.integers(0, 9)),
)


def _types(arguments: st.SearchStrategy[Argument]) -> st.SearchStrategy[Type]:
    classes = st.builds(Named, _scopes, _names, st.none() | st.lists(arguments, min_size=1, max_size=3).map(tuple),
                        st.none())
    members = st.builds(Named, _scopes, _names, st.lists(arguments, min_size=1, max_size=2).map(tuple), _names)
    plain = st.one_of(_builtins, classes, members)
    return st.one_of(plain, st.builds(Pointer, plain, st.sampled_from("*&"), st.booleans()))


def _functions(arguments: st.SearchStrategy[Argument], templates_only: bool = False) -> st.SearchStrategy[Function]:
    listed = st.lists(arguments, min_size=1, max_size=3).map(tuple)
    return st.builds(Function, _scopes, _names, listed if templates_only else st.none() | listed,
                     st.lists(_types(arguments), max_size=3).map(tuple), _types(arguments))


def _larger(arguments: st.SearchStrategy[Argument]) -> st.SearchStrategy[Argument]:
    parameters = st.lists(_types(arguments), max_size=2).map(tuple)
    outer = st.builds(Lambda, _functions(arguments), parameters, st.integers(1, 12))
    inner = st.builds(Lambda, outer, parameters, st.integers(1, 12))
    return st.one_of(_types(arguments), outer, inner, st.builds(Address, _functions(arguments)))


arguments: st.SearchStrategy[Argument] = st.recursive(_leaves, _larger, max_leaves=12)
kernels: st.SearchStrategy[Function] = _functions(arguments)
templates: st.SearchStrategy[Function] = _functions(arguments, templates_only=True)
