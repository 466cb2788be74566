"""What HTA 0.5.0 makes of a trace, as named changes to our rows. The views asked on the changed rows give HTA's figures.

Rules read from its source, each a function here:
- rounded: where a file writes starts with decimals, a start is raised to the next whole us and an end lowered to one, so that
  an event loses up to 2 us and one shorter than that gets a length of 0 or -1; HTA_DISABLE_NS_ROUNDING keeps doubles.
- raw: everything with a `stream` argument is GPU work: cuda_sync records, and operators that carry that argument.
- without_last_step: where a job has several ProfilerSteps, host events from the last one's start on are dropped, and GPU
  events whose correlation no kept host event has.
- COMMUNICATION, kernel_type: kinds by name.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from nsightlens import schema
from nsightlens.store.store import Store
from tests.catalogs import catalog

COMMUNICATION = "^nccl.*Kernel"
QUEUED = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync",
          "hipLaunchKernel", "hipExtModuleLaunchKernel", "hipMemcpyAsync", "hipMemsetAsync", "hipMemcpyWithStream")
TIMED = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync")
STATISTICS = ("sum", "max", "min", "mean", "std")
UNIT = 2**30  # a us, in the integers that the views are given: fine enough for the doubles that HTA works with
BYTE = 2**38  # a thousand bytes, in the integers that memory_bandwidth is given
_MEMORY = re.compile("^Memcpy|^Memset|^dma")
_NO_COMPUTE = re.compile(r"(^nccl.*Kernel)|(.*(Memcpy)|(Memset))|(.*Sync)")
_GPU_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}


def kernel_type(name: str) -> str:
    """Return HTA's kind of a GPU event, by its name."""
    if re.match(COMMUNICATION, name):
        return "communication"
    return "memory" if _MEMORY.match(name) else "other" if _NO_COMPUTE.match(name) else "compute"


@dataclass(frozen=True)
class Raw:
    """What only the file tells: its base, whether starts have decimals, bandwidths as printed by correlation and start, GPU work
    that HTA adds, and the start of the first record (in us; NaN where that is no complete event)."""

    base_ns: int
    has_decimals: bool
    bandwidths: dict[tuple[int, float], float]
    added: list[dict[str, Any]]
    first_us: float


def raw(path: Path) -> Raw:
    """Return the few things of a trace that our tables do not hold."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    trace = json.loads(content)
    events = [event for event in trace["traceEvents"] if event.get("dur") is not None and event.get("cat")]
    added, bandwidths = [], {}
    for event in events:
        args = event.get("args") or {}
        if "memory bandwidth (GB/s)" in args:
            bandwidths[args["correlation"], event["ts"]] = args["memory bandwidth (GB/s)"]
        if "stream" in args and event["cat"].lower() not in _GPU_CATEGORIES and str(args["stream"]) != "-1":
            added.append({"name": event["name"], "ts": event["ts"], "dur": event["dur"], "stream": int(args["stream"]),
                          "correlation": args.get("correlation", -1), "category": event["cat"]})
    has_decimals = any(isinstance(event.get("ts"), float) for event in trace["traceEvents"])
    first = trace["traceEvents"][0]
    first_us = first["ts"] if first.get("dur") is not None and first.get("cat") else math.nan
    return Raw(trace.get("baseTimeNanoseconds") or 0, has_decimals, bandwidths, added, first_us)


@dataclass(frozen=True)
class Trace:
    """The events of a rank as HTA holds them, in us: GPU work, host events, and the start of the file's first record."""

    gpu: pd.DataFrame
    host: pd.DataFrame
    first_us: float


def loaded(store: Store, paths: Mapping[int, Path], *, rounding: bool = True, include_last: bool = False) -> dict[int, Trace]:
    """Return the traces of a job by rank, from our rows, changed as HTA's loading changes them."""
    traces = {rank: _read(store, path, rounding) for rank, path in paths.items()}
    first = min(frame["ts"].min() for trace in traces.values() for frame in (trace.gpu, trace.host) if len(frame))
    for rank, trace in traces.items():
        traces[rank] = Trace(trace.gpu.assign(ts=trace.gpu["ts"] - first), trace.host.assign(ts=trace.host["ts"] - first),
                             trace.first_us - first)
    steps = {name for trace in traces.values() for name in trace.host["name"].unique() if "ProfilerStep" in name}
    if len(steps) < 2:
        return traces
    return {rank: without_last_step(trace, include_last) for rank, trace in traces.items()}


def _read(store: Store, path: Path, rounding: bool) -> Trace:
    file = raw(path)
    where = "WHERE profile_id = (SELECT profile_id FROM files WHERE path = ? AND outcome = 'read')"
    origin = store.sql(f"SELECT origin_epoch_ns FROM profiles {where}", [str(path)]).to_pylist()[0]["origin_epoch_ns"]
    columns = "start_ns + ? AS ts, duration_ns AS dur, name, coalesce(correlation_id, -1) AS correlation"
    gpu = store.sql(
        f"SELECT {columns}, coalesce(stream, -1) AS stream, 'gpu' AS category, NULL::BIGINT AS bytes FROM kernels {where} "
        f"UNION ALL SELECT {columns}, coalesce(stream, -1), 'gpu', bytes FROM memory_ops {where}",
        [origin - file.base_ns, str(path)] * 2).to_pandas()
    host = store.sql(
        f"SELECT {columns}, 'call' AS category FROM api_calls {where} UNION ALL "
        f"SELECT start_ns + ?, duration_ns, name, -1, kind FROM ranges {where}",
        [origin - file.base_ns, str(path)] * 2).to_pandas()
    host = host[host["dur"].notna()]
    change = rounded if file.has_decimals and rounding else in_doubles
    printed = [file.bandwidths.get((key, ts / 1000), math.nan) for key, ts in zip(gpu["correlation"], gpu["ts"], strict=True)]
    gpu, host = change(gpu).assign(printed=printed), change(host)
    if file.added:
        added = pd.DataFrame(file.added)
        if change is rounded:
            added["dur"] = [math.floor(ts + dur) - math.ceil(ts) for ts, dur in zip(added["ts"], added["dur"], strict=True)]
            added["ts"] = [math.ceil(ts) for ts in added["ts"]]
        gpu = pd.concat([gpu, added], ignore_index=True)
        unlike = added["category"].ne("cuda_sync")  # an operator that HTA takes for GPU work is no host event to it
        taken = set(zip(added["ts"][unlike], added["name"][unlike], strict=True))
        host = host[[key not in taken for key in zip(host["ts"], host["name"], strict=True)]].copy()
    return Trace(gpu, host, math.ceil(file.first_us) if change is rounded and not math.isnan(file.first_us) else file.first_us)


def in_doubles(events: pd.DataFrame) -> pd.DataFrame:
    """Return the events in us, in doubles: what HTA computes with where it does not round."""
    return events.assign(ts=[ts / 1000 for ts in events["ts"]], dur=[dur / 1000 for dur in events["dur"]])


def rounded(events: pd.DataFrame) -> pd.DataFrame:
    """Return the events in us, starts raised to a whole us and ends lowered to one: from doubles, as HTA does it."""
    us = in_doubles(events)
    starts = [math.ceil(ts) for ts in us["ts"]]
    ends = [math.floor(ts + dur) for ts, dur in zip(us["ts"], us["dur"], strict=True)]
    return us.assign(ts=starts, dur=[end - start for start, end in zip(starts, ends, strict=True)])


def without_last_step(trace: Trace, include_last: bool) -> Trace:
    """Return what is left when host events from the last step on are dropped, and GPU events that no kept one launched.

    With include_last HTA drops no host event: it compares starts, which it has aligned to 0, with an end that it has not.
    """
    steps = trace.host[trace.host["name"].str.contains("ProfilerStep")]
    host = trace.host if include_last else trace.host[trace.host["ts"] < steps["ts"].max()]
    return Trace(trace.gpu[trace.gpu["correlation"] >= 0].merge(host[["correlation"]], on="correlation", how="inner"), host,
                 trace.first_us)


def as_tables(traces: Mapping[int, Trace], calls: Iterable[str] | None = None) -> duckdb.DuckDBPyConnection:
    """Return a catalog that holds those events, a us being UNIT ns: one profile, process and GPU per rank.

    calls: the names of the calls that launch; None: all. What HTA calls `other` is a graph execution here: busy, of no kind.
    A length below 0 is 0: `negative` counts them.
    """
    connection = catalog()
    for rank, trace in traces.items():
        where = {"run": "r", "tool": "kineto", "profile_id": f"p{rank}", "process_id": f"p{rank}", "window_index": 0}
        gpu, host = _placed(trace.gpu, where), _placed(trace.host, where)
        launching = host[host["category"].eq("call") & (host["name"].isin(list(calls)) if calls is not None else True)]
        launching = launching.drop_duplicates("correlation", keep="last").assign(launch_id=lambda f: f.index)
        gpu = gpu.assign(device_id=f"gpu{rank}", context=0, kernel_id=gpu.index, memory_op_id=gpu.index, kind="memcpy",
                         graph_execution_id=gpu.index, direction=[direction(name) for name in gpu["name"]],
                         bytes=_bytes(gpu))
        gpu = gpu.merge(launching[["correlation", "launch_id"]], on="correlation", how="left").astype({"launch_id": "Int64"})
        kinds = gpu["name"].map(kernel_type)
        annotations = host[host["category"].eq("gpu_annotation")].assign(kind="gpu_annotation", range_id=lambda f: f.index)
        for table, frame in (
            ("kernels", gpu[kinds.isin(["compute", "communication"])]), ("memory_ops", gpu[kinds.eq("memory")]),
            ("graph_executions", gpu[kinds.eq("other")].rename(columns={"correlation": "correlation_id"})),
            ("api_calls", launching.rename(columns={"correlation": "correlation_id"})), ("ranges", annotations),
            ("processes", pd.DataFrame([where | {"rank": rank}])),
        ):
            kept = frame[[column.name for column in schema.TABLES[table].columns if column.name in frame.columns]]
            connection.register("_frame", pa.Table.from_pandas(kept, preserve_index=False))
            connection.execute(f"INSERT INTO {table} BY NAME FROM _frame")
    return connection


def _placed(events: pd.DataFrame, where: Mapping[str, Any]) -> pd.DataFrame:
    starts, lengths = [_units(us) for us in events["ts"]], [max(_units(us), 0) for us in events["dur"]]
    return events.reset_index(drop=True).assign(**where, start_ns=starts, duration_ns=lengths)


def _bytes(gpu: pd.DataFrame) -> pd.Series:
    """Return what the printed bandwidth says was moved in the time that HTA sees: GB/s x us, in BYTE."""
    moved = pd.to_numeric(gpu["printed"]) * gpu["dur"].mask(gpu["dur"].eq(0), 1)
    return pd.Series([None if math.isnan(one) else round(one * BYTE) for one in moved], index=gpu.index, dtype="Int64")


def _units(us: float) -> int:
    return int(us) * UNIT + round((us - int(us)) * UNIT)


def direction(name: str) -> str:
    """Return the name under which HTA gathers copies and sets: the first letters of the label."""
    return "Memset" if name[:6] == "Memset" else name[:11] if name[:6] == "Memcpy" else "Memcpy Unknown"


def merged(events: pd.DataFrame) -> pd.DataFrame:
    """Return the union of the events as HTA forms it: one shorter than nothing, which nothing before it touches, stands alone
    and takes 1 us away."""
    events = events.sort_values("ts")
    ends = events["ts"] + events["dur"]
    group = (events["ts"] > ends.shift().cummax()).cumsum()
    return pd.DataFrame({"ts": events["ts"].groupby(group).min(), "end": ends.groupby(group).max()})


def taken_away(events: pd.DataFrame) -> float:
    """Return by how many us events of negative length shorten HTA's union."""
    whole = events.assign(dur=events["dur"].clip(lower=0))
    return float((merged(whole)["end"] - merged(whole)["ts"]).sum() - (merged(events)["end"] - merged(events)["ts"]).sum())


def with_negative(row: Mapping[str, Any], lengths: pd.Series) -> dict[str, float]:
    """Return sum, min, mean and standard deviation in us of a view's row, once `lengths` below 0 count as they are, not as 0."""
    below = lengths[lengths < 0]
    count = row["count"]
    squares = (row["std"] or 0.0) ** 2 * (count - 1) + row["sum"] ** 2 / count + float((below**2).sum())
    total = row["sum"] + float(below.sum())
    spread = max(squares - total**2 / count, 0.0) / (count - 1) if count > 1 else 0.0
    return {"sum": total, "mean": total / count, "std": math.sqrt(spread), "min": min(float(lengths.min()), row["min"])}


def stretches(gpu: pd.DataFrame) -> dict[str, list[float]]:
    """Return the lengths of the stretches in which exactly those kinds ran, of HTA's unions; HTA cuts each to whole us."""
    edges: list[tuple[float, int]] = []
    kinds = gpu["name"].map(kernel_type)
    for bit, kind in enumerate(("compute", "communication", "memory")):
        for ts, end in merged(gpu[kinds.eq(kind)]).itertuples(index=False):
            edges += [(ts, 1 << bit), (end, -(1 << bit))]
    edges.sort(key=lambda edge: edge[0])
    found: dict[str, list[float]] = {}
    running = 0
    for place, (at, change) in enumerate(edges):
        running += change
        if running > 0:
            after = edges[place + 1][0]
            parts = [kind for bit, kind in enumerate(("compute", "communication", "memory")) if running >> bit & 1]
            found.setdefault("+".join(parts), []).append(after - at)
    return found


def signed_gaps(trace: Trace) -> dict[tuple[int, str], float]:
    """Return idle us by stream and category as HTA sums them: each start less the end of the row before, also below 0.

    Only kernels, copies and sets count here. Work whose call is not in the file takes the file's first record for it.
    """
    gpu = recorded(trace).gpu
    calls = trace.host[trace.host["category"].eq("call")].drop_duplicates("correlation", keep="last")
    starts = calls.set_index("correlation")["ts"]
    found: dict[tuple[int, str], float] = {}
    for stream, rows in gpu.groupby("stream"):
        rows = rows.sort_values("ts")
        before = (rows["ts"] + rows["dur"]).shift(1)
        gaps = rows["ts"] - before
        late = rows["correlation"].map(starts).fillna(trace.first_us) > before
        category = pd.Series("other", index=rows.index).mask(~late & (gaps < 30), "kernel_wait").mask(late, "host_wait")
        for name, total in gaps.groupby(category).sum().items():
            found[int(str(stream)), str(name)] = float(total)
    return found


def recorded(trace: Trace) -> Trace:
    """Return the trace without the GPU work that only HTA counts."""
    return Trace(trace.gpu[trace.gpu["category"].eq("gpu")], trace.host, trace.first_us)


def is_plain(trace: Trace) -> bool:
    """Return whether no event has a length below 0, all have a call, and in each stream none begins before another ends."""
    gpu = recorded(trace).gpu.sort_values(["stream", "ts"])
    before = (gpu["ts"] + gpu["dur"]).groupby(gpu["stream"]).transform(lambda ends: ends.shift().cummax())
    linked = gpu["correlation"].isin(trace.host[trace.host["category"].eq("call")]["correlation"])
    return bool((gpu["dur"] >= 0).all() and linked.all() and not (gpu["ts"] < before).any())


def queue_bounds(trace: Trace) -> dict[int, tuple[float, float]]:
    """Return the least and the largest mean queue length of each stream: launches and starts of the same us have no order."""
    calls = trace.host[trace.host["category"].eq("call") & trace.host["name"].isin(QUEUED)]
    launches = calls.merge(trace.gpu[["stream", "correlation"]], on="correlation")[["stream", "ts"]].assign(change=1)
    starts = trace.gpu[trace.gpu["correlation"].isin(calls["correlation"])][["stream", "ts"]].assign(change=-1)
    found = {}
    for stream, changes in pd.concat([launches, starts]).groupby("stream"):
        means = [changes.sort_values(["ts", "change"], ascending=[True, up])["change"].cumsum().mean() for up in (True, False)]
        found[int(str(stream))] = (float(means[0]), float(means[1]))
    return found


def bandwidth_points(gpu: pd.DataFrame, starts_first: bool) -> dict[str, pd.Series]:
    """Return HTA's bandwidths above 0, in GB/s, by name: the printed ones, summed in doubles over what runs at once.

    What has no length lasts 1 us. Sums of doubles do not always return to 0: those residues are points too. Starts and ends of
    the same us have no order; HTA's is that of an unstable sort, so that both extremes are offered.
    """
    memory = gpu[gpu["name"].map(kernel_type).eq("memory")]
    memory = memory.assign(dur=memory["dur"].mask(memory["dur"].eq(0), 1), gathered=memory["name"].map(direction))
    found = {}
    for name, rows in memory.groupby("gathered"):
        starts = rows[["ts", "printed"]].assign(change=1)
        ends = starts.assign(ts=rows["ts"] + rows["dur"], printed=-rows["printed"], change=-1)
        edges = pd.concat([starts, ends]).sort_values(["ts", "change"], ascending=[True, not starts_first])
        sums = edges["printed"].cumsum()
        found[str(name)] = sums[sums > 0]
    return found


def has_ties(gpu: pd.DataFrame) -> set[str]:
    """Return the names with two starts or ends of copies on one us, with a length below 0, or with a residue among the sums."""
    memory = gpu[gpu["name"].map(kernel_type).eq("memory")]
    memory = memory.assign(dur=memory["dur"].mask(memory["dur"].eq(0), 1), gathered=memory["name"].map(direction))
    points = bandwidth_points(gpu, True)
    found = set()
    for name, rows in memory.groupby("gathered"):
        tied = pd.concat([rows["ts"], rows["ts"] + rows["dur"]]).duplicated().any() or (rows["dur"] < 0).any()
        if tied or points[str(name)].min() < 0.999 * rows["printed"].min():
            found.add(str(name))
    return found


def with_others(rows: Iterable[Mapping[str, Any]], how_many: int = 10, ratio: float = 0.8) -> dict[str, dict[str, float]]:
    """Return HTA's short table: where there are more names than how_many, those after the ratio-quantile of the running sums
    are `others`, and min, max, mean and deviation are then those of the names' sums."""
    table = pd.DataFrame(list(rows)).sort_values("sum", ascending=False, ignore_index=True, kind="stable")
    if len(table) <= how_many:
        return {str(row["name"]): {key: float(row[key]) for key in STATISTICS} for _, row in table.iterrows()}
    running = table["sum"].cumsum()
    names = table["name"].mask((running > running.quantile(ratio)) | (table.index >= how_many), "others")
    grouped = table["sum"].groupby(names).agg(list(STATISTICS)).fillna({"std": 0.0})
    return {str(name): {key: float(row[key]) for key in STATISTICS} for name, row in grouped.iterrows()}
