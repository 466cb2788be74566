"""What lies around the launches of real captures, against the links that they tell themselves."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import nsightlens as nl
from nsightlens.store.store import Store
from tests.places import ROOT

KINETO = ROOT.parent / "shared" / "data" / "kineto"
NSYS = KINETO.parent / "nsys"
pytestmark = [pytest.mark.captures, pytest.mark.skipif(not KINETO.is_dir(), reason="the real captures are not here")]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Store:
    paths = [*KINETO.glob("*.json*"), *KINETO.glob("*megatron*")]
    return nl.ingest([p for p in paths if "notkineto" not in p.name], store=tmp_path_factory.mktemp("real") / "store")


def _files(store: Store) -> dict[str, Path]:
    return {row["profile_id"]: Path(row["path"]) for row in store.sql(
        "SELECT profile_id, path FROM files WHERE profile_id IS NOT NULL AND outcome <> 'duplicate'").to_pylist()}


def test_operators_by_containment_are_those_of_real_external_ids(traces: Store) -> None:
    agree = traces.sql("""
        SELECT k.profile_id, count(*) AS activities, count(*) FILTER (o.external_id = k.external_id) AS same
        FROM (SELECT profile_id, external_id, op_range_id, launch_id FROM kernels
              UNION ALL SELECT profile_id, external_id, op_range_id, launch_id FROM memory_ops) AS k
        JOIN ranges AS o ON o.range_id = k.op_range_id WHERE k.external_id IS NOT NULL AND k.launch_id IS NOT NULL
        GROUP BY ALL""").to_pylist()
    assert all(row["same"] == row["activities"] for row in agree)
    assert len(agree) >= 16 and sum(row["activities"] for row in agree) > 40_000


def test_forward_operators_are_those_of_the_fwdbwd_arrows(traces: Store) -> None:
    arrows = 0
    for profile, path in _files(traces).items():
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rb") as file:
            trace = json.load(file, parse_float=Decimal)
        ends: dict[Any, dict[str, tuple[int, Decimal]]] = {}
        for event in trace if isinstance(trace, list) else trace["traceEvents"]:
            if event.get("cat") == "fwdbwd":
                ends.setdefault(event["id"], {})[event["ph"]] = (event["tid"], Decimal(event["ts"]))
        if not ends:
            continue
        origin = min(Decimal(event["ts"]) for event in trace["traceEvents"]
                     if (event.get("cat"), event["ph"]) == ("cpu_op", "X") and not event["name"].startswith("ProfilerStep"))
        ours = traces.sql(f"""
            SELECT b.thread AS b_thread, b.start_ns - o.first AS b_start, f.thread AS f_thread, f.start_ns - o.first AS f_start
            FROM ranges AS b JOIN ranges AS f ON f.range_id = b.forward_id
            JOIN (SELECT min(start_ns) AS first FROM ranges WHERE profile_id = '{profile}' AND kind = 'operator') AS o ON true
            WHERE b.profile_id = '{profile}'""").to_pylist()
        linked = {(r["b_thread"], r["b_start"]): (r["f_thread"], r["f_start"]) for r in ours}
        drawn = {(both["f"][0], int((both["f"][1] - origin) * 1000)): (both["s"][0], int((both["s"][1] - origin) * 1000))
                 for both in ends.values()}
        # One arrow per node, to the engine's operator or to the one that it calls; ours lead from both.
        assert drawn.items() <= linked.items() and set(drawn.values()) == set(linked.values()), path.name
        arrows += len(drawn)
    assert arrows > 2000


def test_every_launch_of_these_traces_has_what_they_hold(traces: Store) -> None:
    """All launched work has an operator, but what the trace itself gives to none, and a step where the trace recorded steps."""
    covered = {(path.name, row["attributed_to"]): row for row in traces.view("attribution_coverage").to_pylist()
               for path in [_files(traces)[row["profile_id"]]]}
    names = [name for name in {name for name, _ in covered} if any(word in name for word in (
        "megatron_kineto", "owlv2", "bert", "Qwen", "df_index", "nccl_data", "ns_resolution", "tb_plugin", "dc3b0e"))]
    paths = {path.name: path for path in _files(traces).values()}
    stepped = 0
    for name in names:
        steps, alone = _steps_and_works_of_no_operator(paths[name])
        launched = covered[name, "call"]["activities"]
        assert covered[name, "op"]["activities"] == launched - alone > 0, name
        assert covered[name, "step"]["activities"] == (launched if steps else 0), name
        stepped += bool(steps)
    assert stepped > 15


def _steps_and_works_of_no_operator(path: Path) -> tuple[int, int]:
    """Return how many steps a trace has, and how much GPU work it gives External id 0: that of a call outside all operators."""
    trace = json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
    events = [event for event in (trace if isinstance(trace, list) else trace["traceEvents"]) if event["ph"] == "X"]
    activities = [event["args"] for event in events
                  if event["cat"].lower().removeprefix("gpu_") in ("kernel", "memcpy", "memset")]
    return (sum(event["name"].startswith("ProfilerStep#") for event in events),
            sum(args.get("external id", args.get("External id")) == 0 for args in activities))


def test_operators_of_pytorch_in_real_nsys_reports(tmp_path: Path) -> None:
    store = nl.ingest([NSYS / "GindaChen__nsys-ai__mfu_2gpu_before.sqlite"], store=tmp_path / "store")
    activities: Counter[str] = Counter()
    for row in store.view("attribution_coverage").to_pylist():
        activities[row["attributed_to"]] += row["activities"]
    assert activities["op"] == activities["call"] == 5268
    kinds = Counter(row["kind"] for row in store.sql("SELECT kind FROM ranges").to_pylist())
    assert kinds["operator"] > 15_000
    assert store.sql("SELECT count(*) AS n FROM ranges WHERE name LIKE '%op_id%'").to_pylist() == [{"n": 0}]
    top = store.sql("SELECT op FROM kernels WHERE family = 'gemm' GROUP BY op ORDER BY count(*) DESC, op LIMIT 1").to_pylist()
    assert top == [{"op": "aten::addmm"}]
