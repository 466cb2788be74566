"""The gate: odd values for every parameter of every public call, and a store that threads share."""

from __future__ import annotations

import inspect
import math
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nsightlens as nl
from nsightlens import gate, plots
from nsightlens.errors import InternalError
from nsightlens.store.store import Store
from tests.captures import GEMM, kineto
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
    "10**30": lambda: 10**30, "-10**400": lambda: -10**400, "-1": lambda: -1, "0": lambda: 0, "1.5": lambda: 1.5, "True": lambda: True,
    "no text": str, "long text": lambda: "x" * 10**6, "half a character": lambda: "\ud800", "NUL": lambda: "\0",
    "path": lambda: Path("no/such"), "generator": lambda: (number for number in (0, 1)), "class": lambda: int,
    "numpy int": lambda: np.int64(-1), "numpy float": lambda: np.float32("nan"), "numpy time": lambda: np.datetime64("2020-01-01"),
    "numpy array": lambda: np.array([[1], [2]]), "numpy text": lambda: np.str_("x"), "arrow int": lambda: pa.scalar(2**63, pa.uint64()),
    "arrow NULL": lambda: pa.scalar(None), "arrow array": lambda: pa.array(["a", None]), "arrow table": lambda: pa.table({}),
    "decimal": lambda: Decimal("NaN"), "complex": lambda: 1j,
}


@dataclass
class World:
    """What calls are made with: a capture, an open store of two runs, and a closed one."""

    capture: Path
    store: Store
    closed: Store

    def odd(self) -> dict[str, Callable[[], object]]:
        return {**ODD, "closed store": lambda: self.closed}


@pytest.fixture
def world(shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    def made(folder: Path) -> None:
        for run in (RUN, "other"):
            for rank in (0, 1):
                kineto(folder / run / f"rank{rank}.pt.trace.json", [(GEMM, 1000.0, 10.0)], rank=rank)
            nl.ingest(folder / run, folder / "store", jobs=1).close()

    folder = shared("gate", made)
    monkeypatch.chdir(tmp_path)
    closed = nl.open(folder / "store")
    closed.close()
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
        "report": (nl.report, {"store": store}),
        "save": (nl.report(store).save, {"path": "report.html"}),
        "show": (nl.show, {"table": table}),
        "torch_profile": (nl.recording.torch_profile, {"run_dir": "recorded"}),
        "Store": (Store, {"path": store.path}),
        "view": (store.view, {"name": "top_kernels", "how_many": 3, "only_name": GEMM, "only_rank": 0, "only_total_ns": 1}),
        "sql": (store.sql, {"query": "SELECT ?", "parameters": [1]}),
        "batches": (lambda name, **given: list(store.batches(name, **given)), {"name": "top_kernels", "only_run": RUN}),
        "totals": (store.totals, {"name": "top_kernels", "by": ["run"], "of": "total_ns", "how": "sum", "parameters": {}}),
        "values_of": (store.values_of, {"column": "run"}),
        "kept": (store.kept, {"view": "top_kernels"}),
        "plots.save": (plots.save, {"figure": plots.top_kernels(table), "path": "x.png"}),
        **drawn,
    }


def wrong(call: Callable[..., Any], arguments: Mapping[str, Any]) -> str | None:
    """Return what is wrong with how a call ends; None for an answer, also when it is shown, or an error of ours that is no bug."""
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
        return None if 0 < len(str(exc)) else "says nothing"
    except Exception as exc:
        return f"{type(exc).__name__}: {str(exc)[:200]}"
    if isinstance(answer, Store):
        answer.close()
    return None


def parameters_of(call: Callable[..., Any], right: Mapping[str, Any]) -> list[str]:
    named = [name for name, parameter in inspect.signature(call).parameters.items()
             if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)]
    return list(dict.fromkeys([*named, *right]))


def test_odd_values_end_in_an_answer_or_an_error_of_ours(world: World) -> None:
    bad, made = [], 0
    for name, (call, right) in calls(world).items():
        assert wrong(call, right) is None or name.startswith("plots."), name
        for parameter in parameters_of(call, right):
            for label, odd in world.odd().items():
                made += 1
                if said := wrong(call, {**right, parameter: odd()}):
                    bad.append(f"{name}({parameter}: {label}): {said}")
    assert not bad, f"{len(bad)} of {made} calls:\n" + "\n".join(bad)
    assert made > 1000
