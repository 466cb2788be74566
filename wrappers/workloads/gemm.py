#!/usr/bin/env python3
"""Runs one matrix product C = A B again and again: its work, 2 M N K operations, is known exactly, and calibrates the roofline.

    python gemm.py --m 8192 --n 8192 --k 8192                              prints operations, bytes, time and rate as JSON
    ncu_wrapper.sh --set roofline python gemm.py --repeats 3 --warmup 1    what the counters make of the same product

`bytes` is what must cross DRAM at least: A and B read once, C written once. On CUDA, each product is timed by events on its
stream; on a CPU by the clock. Written for CUDA too, but run by its authors on CPUs only so far.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))   # the wrappers, where this file is run by itself

import torch
from nsl_annotate import annotate
from nsl_launch import find_launch
from steps import StepLog, place
from torch_profiler import take_steps

_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp64": torch.float64}


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options; A is M x K, B is K x N."""
    parser = argparse.ArgumentParser(description="Run one matrix product of known work.", allow_abbrev=False)
    for name in ("m", "n", "k"):
        parser.add_argument(f"--{name}", type=int, default=4096)
    parser.add_argument("--dtype", choices=tuple(_TYPES), default="bf16")
    parser.add_argument("--repeats", type=int, default=20, help="measured products [20]")
    parser.add_argument("--warmup", type=int, default=5, help="products before them [5]")
    parser.add_argument("--device", choices=("cuda", "cpu"), default=None, help="[cuda where there is one]")
    parser.add_argument("--run-dir", default=None, help="[NSIGHTLENS_RUN_DIR]")
    options = parser.parse_args(words)
    if min(options.m, options.n, options.k, options.repeats) < 1 or options.warmup < 0:
        parser.error("sizes and --repeats count from 1, --warmup from 0")
    return options


def work(m: int, n: int, k: int, element_bytes: int) -> tuple[int, int]:
    """Return (operations, least bytes) of one product."""
    return 2 * m * n * k, element_bytes * (m * k + k * n + m * n)


def measure(options: argparse.Namespace, device: torch.device) -> tuple[StepLog, list[int]]:
    """Return (step times, time of each measured product in ns)."""
    dtype = _TYPES[options.dtype]
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("highest")
    a = torch.randn(options.m, options.k, device=device).to(dtype)
    b = torch.randn(options.k, options.n, device=device).to(dtype)
    c = torch.empty(options.m, options.n, device=device, dtype=dtype)
    cuda = device.type == "cuda"
    log = StepLog(torch.cuda.synchronize if cuda else lambda: None, take_steps())
    marks = []
    for name, count in (("warmup", options.warmup), ("measure", options.repeats)):
        if not count:
            continue
        with log.window(name):
            for _ in range(count):
                with log.step(), annotate("gemm"):
                    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2)) if cuda else (None, None)
                    before = time.perf_counter_ns()
                    if begin and end:
                        begin.record()
                    torch.mm(a, b, out=c)
                    if begin and end:
                        end.record()
                    if name == "measure":
                        marks.append((begin, end, time.perf_counter_ns() - before))
    return log, [round(begin.elapsed_time(end) * 1e6) if begin and end else host for begin, end, host in marks]


def main(words: Sequence[str] | None = None) -> None:
    """Run, write the step times, print the result as JSON on rank 0."""
    options, launch = parse(words), find_launch()
    cuda = options.device == "cuda" or (options.device is None and torch.cuda.is_available())
    device = torch.device("cuda", launch.local_rank % torch.cuda.device_count()) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    where = place(launch, options.run_dir)
    log, times_ns = measure(options, device)
    operations, least_bytes = work(options.m, options.n, options.k, _TYPES[options.dtype].itemsize)
    middle_ns = sorted(times_ns)[len(times_ns) // 2]
    result = {
        "name": "gemm", "m": options.m, "n": options.n, "k": options.k, "dtype": options.dtype, "device": device.type,
        "gpu": torch.cuda.get_device_name(device) if cuda else None, "operations": operations, "bytes": least_bytes,
        "median_ns": middle_ns, "operations_per_s": operations * 1e9 / middle_ns, "times_ns": times_ns,
    }
    if where:
        log.write(where, result)
    if launch.rank == 0:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
