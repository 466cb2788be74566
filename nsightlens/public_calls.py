"""The gate before every public call: arguments are checked by their annotations, what libraries raise becomes an error of ours,
and an open store answers one call at a time.

An exception is a library's where its type is of another package, where it was raised outside this one, or where the data and the
machine raise it (_OF_DATA). Any other is a bug, and says so (InternalError).
"""

from __future__ import annotations

import builtins
import collections.abc
import functools
import math
import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from decimal import Decimal
from pathlib import Path, PurePath
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeVar, Union, cast, get_args, get_origin

from nsightlens.errors import InternalError, NsightlensError, UsageError

if TYPE_CHECKING:
    import inspect

_P = ParamSpec("_P")
_R = TypeVar("_R")
_PACKAGE = str(Path(__file__).parent) + os.sep
_IS_GENERATOR = 0x20
"""Of the flags of code: inspect.CO_GENERATOR."""
_LEAST, _MOST = -(2**63), 2**63 - 1
_REFUSED: Final = object()
_PLAIN = "text, a number of 64 bits, True, False, None, or a list of these"
_WORDS: Mapping[object, str] = {
    "Path": "a path", "_PathText": "a path", "str": "text", "int": "a whole number of 64 bits", "float": "a finite number",
    "bool": "True or False", "NoneType": "None", "Store": "an open store", "Table": "a pyarrow.Table",
    "DisplayTable": "a pyarrow.Table",
    "Mapping": "a dict"}
_OF_ARRAYS = ("numpy", "pandas", "pyarrow")
_OF_DATA = (OSError, UnicodeError, OverflowError, MemoryError)
_INTERRUPTED_QUERY = "Query interrupted"
"""What DuckDB makes of Ctrl-C: a RuntimeError."""


class Exclusive:
    """What answers one call at a time, in whichever thread: each holds its lock."""

    lock: AbstractContextManager[bool]

    def confirm_open(self) -> None:
        """Raise StoreError where it was closed."""


def gated(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let a public function pass the gate; one that is given a store, or is a method of one, needs it open."""
    return _gated(function, needs_open=True)


def gated_when_closed(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let a method pass the gate that a closed store has, too."""
    return _gated(function, needs_open=False)


def _gated(function: Callable[_P, _R], needs_open: bool) -> Callable[_P, _R]:
    face = _Face(function)

    @functools.wraps(function)
    def called(*given: _P.args, **named: _P.kwargs) -> _R:
        with _translating(face.call):
            bound = face.bind(given, named)
            with _turn(bound, needs_open):
                return function(*bound.args, **bound.kwargs)

    @functools.wraps(function)
    def stepping(*given: _P.args, **named: _P.kwargs) -> Iterator[Any]:
        with _translating(face.call):
            bound = face.bind(given, named)
            steps = cast(Iterator[Any], function(*bound.args, **bound.kwargs))
        while True:  # whoever reads the rows slowly keeps nobody waiting
            with _translating(face.call), _turn(bound, needs_open):
                step = next(steps, _REFUSED)
            if step is _REFUSED:
                return
            yield step

    return cast(Callable[_P, _R], stepping) if function.__code__.co_flags & _IS_GENERATOR else called


@contextmanager
def _turn(bound: inspect.BoundArguments, needs_open: bool) -> Iterator[None]:
    """Hold the lock of the store among the arguments. Raises StoreError where it is closed."""
    store = next((value for value in bound.arguments.values() if isinstance(value, Exclusive)), None)
    with getattr(store, "lock", nullcontext()):  # one that is being made has no lock yet
        if store is not None and needs_open:
            store.confirm_open()
        yield


@contextmanager
def _translating(call: str) -> Iterator[None]:
    """Raise what a block raises as an error of ours; warnings that are errors, and packages that are missing, as they are."""
    try:
        yield
    except (NsightlensError, Warning, ImportError):
        raise
    except Exception as exc:
        if isinstance(exc, RuntimeError) and str(exc) == _INTERRUPTED_QUERY:
            raise KeyboardInterrupt from None
        raise _error_of(call, exc) from exc


def _error_of(call: str, exc: Exception) -> NsightlensError:
    if isinstance(exc, OSError) and exc.strerror:
        return NsightlensError(f"{_cut(str(exc.filename or call))}: {exc.strerror}")
    library = type(exc).__module__.partition(".")[0].removeprefix("_")
    frame = _innermost(exc)
    if library in ("builtins", "nsightlens") and frame.startswith(_PACKAGE) and not isinstance(exc, _OF_DATA):
        return InternalError(f"{call}: this is a bug in nsightlens ({type(exc).__name__}: {_cut(str(exc))}, in {frame}). Please "
                             "report it, with the traceback")
    said = f"{type(exc).__name__}: {str(exc).partition(chr(10))[0]}"
    return NsightlensError(f"{call}: {'' if library == 'builtins' else library + ': '}{_cut(said)}")


def _innermost(exc: BaseException) -> str:
    """Return FILE:LINE of where an exception was raised."""
    trace = exc.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""


def _cut(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:150]}…{text[-150:]}"


class _Face:
    """What a public call is named, and the kinds of values that its parameters take."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        names, module = function.__qualname__.split("."), function.__module__.split(".")
        place = "nl.plots" if module[1:2] == ["plots"] else "nl.recording" if module[1:2] == ["recording"] else "nl"
        owner = {"Asking": "store"}.get(names[0], names[0].lower()) if len(names) == 2 else place
        self.call = f"nl.{names[0]}" if names[-1] == "__init__" else f"{owner}.{names[-1]}"

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The parameters, their annotations as types: when first called, as few are in a process."""
        import inspect  # a third of the time that importing the package takes

        known = inspect.unwrap(self._function).__globals__
        return inspect.signature(self._function, eval_str=True, globals=known, locals=_Names(known))

    def bind(self, given: Sequence[object], named: Mapping[str, object]) -> inspect.BoundArguments:
        """Return the arguments as the function takes them. Raises UsageError for what it does not take."""
        try:
            bound = self.signature.bind(*given, **named)
        except TypeError as exc:
            raise UsageError(f"{self.call}: {exc}{self._right_call(given)}", subject="parameter") from exc
        for name, value in bound.arguments.items():
            parameter = self.signature.parameters[name]
            if parameter.kind is parameter.VAR_KEYWORD:
                bound.arguments[name] = {key: self._taken(key, one, [_PLAIN], given) for key, one in value.items()}
            elif parameter.annotation is not parameter.empty:
                bound.arguments[name] = self._taken(name, value, _kinds(parameter.annotation), given)
        return bound

    def _taken(self, name: str, value: object, kinds: Sequence[object], given: Sequence[object]) -> object:
        """Return a value as the function takes it. Raises UsageError for one that is of none of the kinds."""
        try:
            plain = _plain(value)
            found = next((taken for kind in kinds if (taken := _taken(kind, plain)) is not _REFUSED), _REFUSED)
        except Exception as exc:  # whatever an object does that is asked what it is
            raise UsageError(f"{self.call}: {name} cannot be read ({type(exc).__name__}: {_cut(str(exc))})", subject=name,
                             value=value) from exc
        if found is _REFUSED:
            expected = " or ".join(dict.fromkeys(map(_words, kinds)))
            is_path = "Path" in "".join(getattr(kind, "__name__", "") for kind in kinds)
            flaw = _flaw(value, is_path=is_path) if isinstance(value, str) else ""
            right = self._right(name, value, kinds, given)
            raise UsageError(f"{self.call}: {name} is {expected}, not {_shown(value, flaw)}{right}", subject=name, value=value)
        return found

    def _right(self, name: str, value: object, kinds: Sequence[object], given: Sequence[object]) -> str:
        """Return what to write instead of a value that was refused; nothing where that cannot be told."""
        first = next(iter(self.signature.parameters.values()))
        if name == first.name or "Table" in str(first.annotation):
            return self._right_call([value, *given])
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return f": {name}={str(value)!r}" if is_number and {str, _PathText} & set(kinds) else ""

    def _right_call(self, given: Sequence[object]) -> str:
        """Return, for a call that needs a store or a table, the call that is meant."""
        first = next(iter(self.signature.parameters.values()), None)
        kinds = {getattr(kind, "__name__", "") for kind in _kinds(first.annotation)} if first else set()
        text = next((str(one) for one in given if isinstance(one, (str, PurePath)) and len(str(one)) < 80), None)
        if kinds == {"Store"}:
            return f": {self.call}(nl.open({(text or 'store')!r}))"
        if "Table" in kinds:
            view = self.call.rpartition(".")[2] if ".plots." in self.call else text or "kernel_summary"
            return f": {self.call}(tables[{view!r}])" if given and isinstance(given[0], Mapping) else (
                f": {self.call}(store.view({view!r}))")
        return f": {self.call}('runs/base')" if given and "Path" in str(first) else ""


class _Names(dict[str, Any]):
    """What the names in annotations mean; a class that only type checkers import is known by its name."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        super().__init__()
        self._known = known

    def __missing__(self, name: str) -> Any:
        for place in (self._known, vars(builtins), vars(collections.abc)):
            if name in place:
                return place[name]
        return _Named(name, (), {})


class _PathText(str):
    """Text that is given for a path."""


class _Named(type):
    """A class of which the name is known; so are those of a module."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _Named(name, (), {})


def _kinds(annotation: Any) -> list[Any]:
    """Return the kinds of values that an annotation names. Text that may be given for a path is one (_PathText)."""
    parts = [annotation]
    if get_origin(annotation) in (Union, UnionType):
        parts = [kind for part in get_args(annotation) for kind in _kinds(part)]
    is_path = any(getattr(kind, "__name__", "") == "Path" for kind in parts)
    return [_PathText if is_path and kind is str else kind for kind in parts]


def _plain(value: Any) -> object:
    """Return a scalar or an array of NumPy, pandas or pyarrow as Python has it; any other value as it is."""
    if type(value).__module__.partition(".")[0] in _OF_ARRAYS:
        for name in ("as_py", "tolist"):
            if hasattr(value, name):
                return cast(object, getattr(value, name)())
    return value


def _taken(kind: Any, value: Any) -> object:
    """Return a value as one of this kind, _REFUSED where it is none."""
    name, origin = getattr(kind, "__name__", ""), get_origin(kind)
    if kind is object or kind is Any:
        return value
    if kind is _PLAIN:
        return _one_or_many(value)
    if origin is Literal:
        return value if any(type(value) is type(one) and value == one for one in get_args(kind)) else _REFUSED
    if origin in (collections.abc.Sequence, collections.abc.Iterable):
        return _many(get_args(kind)[0], value)
    if origin is not None:
        return value if isinstance(value, origin) else _REFUSED
    if kind in (int, float):
        number = as_number(value, kind)
        return _REFUSED if number is None else number
    if name in ("str", "_PathText", "Path"):
        right = isinstance(value, PurePath if name == "Path" else str) and not _flaw(str(value), is_path=name != "str")
        return value if right else _REFUSED
    return value if any(each.__name__ == name for each in type(value).__mro__) else _REFUSED


def as_number(value: object, kind: type) -> int | float | None:
    """Return a value as a whole number of 64 bits (int) or a finite one (float); None where it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if kind is int:
        if isinstance(value, float) and not value.is_integer():
            return None
        return int(value) if _LEAST <= value <= _MOST else None
    return value if abs(value) < math.inf else None


def _flaw(text: str, *, is_path: bool) -> str:
    """Return why no table or, of a path, no file system can hold a text; nothing where it can."""
    try:
        os.fsencode(text) if is_path else text.encode()
    except UnicodeEncodeError:
        return "half a character"
    return "NUL in it" if "\0" in text else "empty" if is_path and not text else ""


def _many(kind: object, value: object) -> object:
    """Return the values of a list, or of what else can be gone through; only a list of anything may be empty."""
    if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
        return _REFUSED
    kinds = _kinds(kind)
    found = [next((taken for one in kinds if (taken := _taken(one, _plain(item))) is not _REFUSED), _REFUSED) for item in value]
    return _REFUSED if _is_refused(found) or not (found or kind is object) else found


def _one_or_many(value: object) -> object:
    """Return the value of a parameter of a view, or the list of them."""
    if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
        return _scalar(value)
    found = [_scalar(_plain(item)) for item in value]
    return _REFUSED if _is_refused(found) else found


def _is_refused(items: Iterable[object]) -> bool:
    return any(item is _REFUSED for item in items)  # `in` would ask the items whether they are equal


def _scalar(value: object) -> object:
    """Return what can be compared with the values of a column."""
    if isinstance(value, Decimal) and value.is_finite():
        value = int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, str):
        return _REFUSED if any("\ud800" <= letter <= "\udfff" for letter in value) else value
    if isinstance(value, int):
        return value if _LEAST <= value <= _MOST else _REFUSED
    return value if value is None or isinstance(value, float) else _REFUSED


def _words(kind: Any) -> str:
    """Return what values of a kind are called."""
    origin, name = get_origin(kind), str(getattr(kind, "__name__", ""))
    if kind is _PLAIN:
        return str(_PLAIN)
    if origin is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if origin in (collections.abc.Sequence, collections.abc.Iterable):
        return "a list of " + " or ".join(map(_words, _kinds(get_args(kind)[0])))
    return _WORDS.get(name, "anything" if kind in (object, Any) else f"a {name}")


def _shown(value: object, flaw: str) -> str:
    """Return a value for a message: its text or number, with its flaw or type, else its type."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, (str, bytes, int, float, list, tuple)):
        return f"{reprlib.repr(value)} ({flaw or type(value).__name__})"
    return f"a {type(value).__name__}"

