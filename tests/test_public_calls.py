"""The gate: odd values for every parameter of every public call, and a store that threads share."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens import analyses, plots, public_calls
from nsightlens.errors import InternalError
from nsightlens.store.store import Store
from tests.captures import GEMM, kineto
from tests.cli.command_line import run
from tests.conftest import Shared

RUN = "base"


class _Unwilling:
    """An object that refuses whatever it is asked."""

    def __iter__(self) -> Iterator[object]:
        raise ZeroDivisionError("no")

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError("no")

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise ZeroDivisionError("no")


ODD: dict[str, Callable[[], object]] = {
    "None": lambda: None, "bytes": lambda: b"", "list": list, "list of None": lambda: [None], "list of lists": lambda: [[1], {}],
    "dict": dict, "object": object, "unwilling": _Unwilling, "nan": lambda: math.nan, "inf": lambda: math.inf,
    "10**30": lambda: 10**30, "-10**400": lambda: -10**400, "-1": lambda: -1, "0": lambda: 0, "1.5": lambda: 1.5,
    "True": lambda: True, "no text": str, "long text": lambda: "x" * 10**6, "half a character": lambda: "\ud800",
    "NUL": lambda: "\0",
    "path": lambda: Path("no/such"), "generator": lambda: (number for number in (0, 1)), "class": lambda: int,
    "numpy int": lambda: np.int64(-1), "numpy float": lambda: np.float32("nan"),
    "numpy time": lambda: np.datetime64("2020-01-01"),
    "numpy array": lambda: np.array([[1], [2]]), "numpy text": lambda: np.str_("x"),
    "arrow int": lambda: pa.scalar(2**63, pa.uint64()),
    "arrow NULL": lambda: pa.scalar(None), "arrow array": lambda: pa.array(["a", None]), "arrow table": lambda: pa.table({}),
    "decimal": lambda: Decimal("NaN"), "complex": lambda: 1j,
}


class Odd:
    """A value that is made when it is needed: a generator serves once."""

    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make

    def __call__(self) -> object:
        return self.make()


@dataclass
class World:
    """What calls are made with: a capture, an open store of two runs, and a closed one."""

    capture: Path
    store: Store
    closed: Store

    def odd(self) -> dict[str, Odd]:
        return {label: Odd(make) for label, make in {**ODD, "closed store": lambda: self.closed}.items()}


@pytest.fixture(scope="module")
def made(shared: Shared) -> tuple[Path, Store]:
    """A folder with captures of two runs and a store of them, and that store, closed."""
    def ingested(folder: Path) -> None:
        for name in (RUN, "other"):
            for rank in (0, 1):
                kineto(folder / name / f"rank{rank}.pt.trace.json", [(GEMM, 1000.0, 10.0)], rank=rank)
            nl.ingest(folder / name, folder / "store", jobs=1).close()

    folder = shared("gate", ingested)
    closed = nl.open(folder / "store")
    closed.close()
    return folder, closed


@pytest.fixture
def world(made: tuple[Path, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    folder, closed = made
    monkeypatch.chdir(tmp_path)
    with nl.open(folder / "store") as store:
        yield World(folder / RUN / "rank0.pt.trace.json", store, closed)


def calls(world: World) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Return the public calls by name, and for each the arguments of one that is right."""
    store, table = world.store, world.store.view("top_kernels")
    drawn = {f"plots.{name}": (draw, {"table": world.store.view(name)}) for name, draw in plots.PLOTS.items()}
    return {
        "ingest": (nl.ingest, {"paths": world.capture, "store": "made", "jobs": 1, "run": RUN}),
        "open": (nl.open, {"store": store.path}),
        "open captures": (nl.open, {"store": world.capture, "ingest": True, "run": RUN}),
        "read": (nl.read, {"path": world.capture}),
        "remove": (nl.remove, {"store": store, "run": RUN, "dry_run": True}),
        "summary": (nl.summary, {"store": store}),
        "findings": (nl.findings, {"store": store, "only_run": RUN}),
        "compare": (nl.compare, {"store": store, "base": RUN, "other": "other"}),
        "compare ranks": (nl.compare, {"store": store, "ranks": True}),
        "check": (nl.check, {"base": RUN, "candidate": "other", "store": store, "limit": 5.0, "slow_steps": 2.0,
                             "max_regression": {"memory_peak": 5.0}, "look": 1, "force": True}),
        "report": (nl.report, {"store": store}),
        "save": (nl.report(store).save, {"path": "report.html"}),
        "show": (nl.show, {"table": table}),
        "torch_profile": (nl.recording.torch_profile, {"run_dir": "recorded"}),
        "Store": (Store, {"path": store.path}),
        "view": (store.view, {"name": "top_kernels", "how_many": 3, "only_name": GEMM, "only_total_ns": 10_000}),
        "sql": (store.sql, {"query": "SELECT ?", "parameters": [1]}),
        "batches": (lambda name, **given: list(store.batches(name, **given)), {"name": "top_kernels", "only_run": RUN}),
        "totals": (store.totals, {"name": "top_kernels", "by": ["run"], "of": "total_ns", "how": "sum", "parameters": {}}),
        "values_of": (store.values_of, {"column": "run"}),
        "kept": (store.kept, {"view": "top_kernels"}),
        "plots.save": (plots.save, {"figure": plots.top_kernels(table), "path": "x.png"}),
        **drawn,
    }


def wrong(call: Callable[..., Any], arguments: Mapping[str, Any]) -> str | None:
    """Return what is wrong with how a call ends; None for an answer, shown too, or an error of ours that is no bug."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = call(**arguments)
            repr(answer)
            if hasattr(answer, "_repr_html_"):
                answer._repr_html_()
    except nl.NsightlensError as exc:
        if isinstance(exc, InternalError):
            return f"a bug: {exc}"
        return None if str(exc) else "says nothing"
    except Exception as exc:  # noqa: BLE001 - this is what is looked for
        return f"{type(exc).__name__}: {str(exc)[:200]}"
    if isinstance(answer, Store):
        answer.close()
    return None


def parameters_of(call: Callable[..., Any], right: Mapping[str, Any]) -> list[str]:
    named = [name for name, parameter in inspect.signature(call).parameters.items()
             if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)]
    return list(dict.fromkeys([*named, *right]))


def table(world: World) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Yield each odd value for each parameter of each public call: its name, the call, the arguments."""
    for name, (call, right) in calls(world).items():
        for parameter in parameters_of(call, right):
            for label, odd in world.odd().items():
                yield f"{name}({parameter}: {label})", call, {**right, parameter: odd}


def of_views(world: World) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    """Yield each odd value for each parameter of each view, and as a filter on three of its columns."""
    for view in world.store.views.values():
        filters = [f"only_{name}" for name, _ in view.columns if name in ("rank", "name", "total_ns")]
        for parameter in [*(param.name for param in view.params), *filters]:
            for label, odd in world.odd().items():
                yield f"{view.name}({parameter}: {label})", world.store.view, {"name": view.name, parameter: odd}


def wrongly_ended(attempts: Iterable[tuple[str, Callable[..., Any], dict[str, Any]]]) -> list[str]:
    ends = ((name, wrong(call, {key: value() if isinstance(value, Odd) else value for key, value in given.items()}))
            for name, call, given in attempts)
    return [f"{name}: {said}" for name, said in ends if said]


def test_odd_values_end_in_an_answer_or_an_error_of_ours(world: World) -> None:
    dear = ("ingest", "open captures", "report")
    attempts = [attempt for attempt in table(world) if not attempt[0].startswith(dear)]
    assert len(attempts) > 2000
    assert wrongly_ended(attempts[::4]) == []


@pytest.mark.long
def test_so_do_all_odd_values(world: World) -> None:
    for name, (call, right) in calls(world).items():
        if not name.startswith("plots.") and name != "torch_profile":  # nothing to draw, no torch
            call(**right)
    assert wrongly_ended(table(world)) == []


@pytest.mark.long
def test_odd_values_of_parameters_of_views(world: World) -> None:
    attempts = list(of_views(world))
    assert len(attempts) > 5000
    assert wrongly_ended(attempts[::3]) == []  # of each parameter a third of the values, of each value a third of the parameters


def test_odd_values_of_parameters_of_some_views(world: World) -> None:
    assert wrongly_ended(list(of_views(world))[::60]) == []


@pytest.mark.parametrize(("ask", "subject"), [
    (lambda store: nl.show(store.view("top_kernels"), rows=-1), "rows"),
    (lambda store: store.view("straggler", lag_threshold_ns=10**30), "lag_threshold_ns"),
    (lambda store: store.view("top_kernels", how_many=b"3"), "how_many"),
    (lambda store: store.view("run_difference", base=RUN, other="other", fdr=math.nan), "fdr"),
    (lambda store: store.view("busy_time", per=None), "per"),
    (lambda store: store.sql(None), "query"),
    (lambda store: nl.summary(store, rank=[]), "rank"),
    (lambda store: nl.read(""), "path"),
    (lambda store: nl.ingest(["\0"]), "paths"),
    (lambda store: nl.ingest(".", jobs=0), "jobs"),
    (lambda store: nl.open(no_such_argument=1), "parameter"),  # type: ignore[call-arg]
])
def test_a_wrong_argument_is_named(world: World, ask: Callable[[Store], object], subject: str) -> None:
    with pytest.raises(nl.UsageError) as raised:
        ask(world.store)
    assert raised.value.subject == subject and subject.rpartition("parameter")[2] in str(raised.value)


def test_scalars_and_arrays_of_libraries_are_what_they_hold(world: World) -> None:
    ranks = world.store.view("kernel_by_rank")["rank"]
    expected = world.store.view("kernel_by_rank", only_rank=[0, 1]).num_rows
    assert expected > world.store.view("kernel_by_rank", only_rank=np.int64(1)).num_rows > 0
    generated = (rank for rank in (0, 1))
    for many in (ranks, ranks.unique(), np.array([0, 1]), range(2), {0, 1}, generated, [pa.scalar(0), np.int8(1)]):
        assert world.store.view("kernel_by_rank", only_rank=many).num_rows == expected


def test_an_empty_list_selects_nothing_in_an_analysis_either(world: World) -> None:
    assert world.store.view("collective_match", only_rank=[]).num_rows == 0
    assert world.store.view("kernel_summary", only_name=[]).num_rows == 0


def test_a_bug_says_that_it_is_one(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    def broken(*given: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(public_calls, "_PACKAGE", str(Path(__file__).parent))  # `broken` is a function of ours, say
    monkeypatch.setattr("nsightlens.store.filter_values.values", broken)
    with pytest.raises(InternalError, match=r"store\.values_of: this is a bug in nsightlens .KeyError: 'lost', in") as raised:
        world.store.values_of("run")
    assert isinstance(raised.value.__cause__, KeyError)
    monkeypatch.undo()
    monkeypatch.setattr("nsightlens.store.filter_values.values", broken)  # one of a library
    with pytest.raises(nl.NsightlensError, match="KeyError") as outside:
        world.store.values_of("run")
    assert not isinstance(outside.value, InternalError)


@pytest.mark.parametrize("error", [pa.ArrowInvalid("no"), OSError(28, "No space left on device", "x"), OverflowError("no")])
def test_what_libraries_raise_is_no_bug(monkeypatch: pytest.MonkeyPatch, world: World, error: Exception) -> None:
    def broken(*given: object) -> None:
        raise error

    monkeypatch.setattr("nsightlens.store.filter_values.values", broken)
    with pytest.raises(nl.NsightlensError) as raised:
        world.store.values_of("run")
    assert raised.value.__cause__ is error and not isinstance(raised.value, InternalError)


def test_warnings_that_are_errors_and_interrupts_pass(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    for raised, expected in ((nl.BalanceWarning("v", "r"), nl.BalanceWarning), (ImportError("x"), ImportError),
                             (RuntimeError("Query interrupted"), KeyboardInterrupt)):
        def broken(*given: object, error: Exception = raised) -> None:
            raise error

        monkeypatch.setattr("nsightlens.store.filter_values.values", broken)
        with pytest.raises(expected):
            world.store.values_of("run")


def test_signatures_and_docstrings_stay(world: World) -> None:
    assert list(inspect.signature(nl.show).parameters) == ["table", "rows"]
    for call, _ in calls(world).values():
        assert call.__name__ == "<lambda>" or inspect.getdoc(call)


def test_every_public_call_passes_the_gate() -> None:
    functions = [getattr(nl, name) for name in nl.__all__ if inspect.isfunction(getattr(nl, name))]
    kinds = [kind for kind in Store.__mro__ if kind.__module__.startswith("nsightlens.store")]
    methods = [value for kind in kinds for name, value in vars(kind).items()
               if inspect.isfunction(value) and not name.startswith("_") and name not in ("confirm_open", "interrupt")]
    drawing = [*plots.PLOTS.values(), plots.save]
    assert len(functions) > 7 and len(methods) > 9
    assert [call.__qualname__ for call in (*functions, *methods, *drawing) if not hasattr(call, "__wrapped__")] == []


def test_what_changed_is_computed_again_after_reopening(world: World) -> None:
    counted: list[object] = []
    compute = counted.append
    analyses.cached_per_store(world.store._ask, compute)
    analyses.cached_per_store(world.store._ask, compute)
    world.store.reopen()
    analyses.cached_per_store(world.store._ask, compute)
    assert len(counted) == 2


@pytest.mark.parametrize("rounds", [6, pytest.param(60, marks=pytest.mark.long)])
def test_threads_share_a_store(world: World, rounds: int) -> None:
    """Each call is right, or says that the store is closed: two of ten threads reopen and close it."""
    store = world.store
    expected = store.view("kernel_by_rank").to_pylist()

    def work(number: int) -> list[str]:
        said = []
        for turn in range(rounds):
            try:
                match (number + turn) % 5:
                    case 0:
                        assert store.view("kernel_by_rank").to_pylist() == expected
                    case 1:
                        assert store.sql("SELECT ? AS n", [number]).to_pylist() == [{"n": number}]
                    case 2:
                        assert [batch.num_rows for batch in store.batches("kernel_by_rank")] == [len(expected)]
                    case 3:
                        store.reopen()
                    case 4 if number < 2:
                        store.close()
                    case _:
                        assert store.view("top_kernels", how_many=1, only_run=RUN).num_rows == 1
            except nl.StoreError as exc:
                if "was closed" not in str(exc):
                    said.append(repr(exc))
            except Exception as exc:  # noqa: BLE001 - no other error is right
                said.append(repr(exc))
        return said

    with ThreadPoolExecutor(10) as pool:
        assert [said for of_one in pool.map(work, range(10)) for said in of_one] == []


@pytest.mark.parametrize("pair", [
    "lag_threshold_ns=1" + "0" * 30, "lag_threshold_ns=" + "9" * 5000, "lag_threshold_ns=nan", "lag_threshold_ns=1e400",
    "lag_threshold_ns=", "lag_threshold_ns=\udc80", "clock=", "clock=null", "only_rank=1" + "0" * 30, "only_rank=1.5",
    "only_name=", "only_name=\udc80", "only_name=" + "x" * 10**5, "=", "only_=1", "\udc80=1", "lag_threshold_ns=-1",
])
def test_the_command_line_takes_odd_values_as_python_does(world: World, pair: str) -> None:
    done = run("show", "straggler", pair, "--store", world.store.path)
    assert done.returncode in (0, 1, 2) and "Traceback" not in done.stderr and "bug" not in done.stderr
