"""ncu CSVs of any length: the wide raw page (475 columns, units row) and the details page (sections, labels, rules)."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.names import kernel_names

_IDS = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device",
        "CC")
_LONG = ("Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Type", "Rule Description",
         "Estimated Speedup Type", "Estimated Speedup")
WIDE_COLUMNS = 475
_KERNELS = 300
_SEED = 20

_Value = Callable[[random.Random], str]


def _whole(low: int, high: int) -> _Value:
    return lambda dice: str(dice.randint(low, high))


def _decimal(high: float) -> _Value:
    return lambda dice: f"{dice.random() * high:.2f}"


def _constant(text: str) -> _Value:
    return lambda dice: text


def write_wide(target: Path, launches: int) -> dict[str, int]:
    """Write the raw page of a report of so many launches; return what a reader must find."""
    columns = _wide_columns()
    dice = random.Random(_SEED)
    duration = [name for name, _, _ in columns].index("gpu__time_duration.sum")
    total = 0
    with target.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        out.writerow([*_IDS, *(name for name, _, _ in columns)])
        out.writerow([*("" for _ in _IDS), *(unit for _, unit, _ in columns)])
        for ids in _launches(launches):
            values = [value(dice) for _, _, value in columns]
            total += int(values[duration])
            out.writerow([*ids, *values])
    return {"bytes": target.stat().st_size, "kernels": launches, "kernel_ns": total, "rows": launches}


def write_details(target: Path, launches: int) -> dict[str, int]:
    """Write the details page of a report of so many launches; return what a reader must find."""
    dice = random.Random(_SEED)
    details = _details()
    total = rows = 0
    with target.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        out.writerow([*_IDS, *_LONG])
        for ids in _launches(launches):
            start = ",".join('"' + cell.replace('"', '""') + '"' for cell in ids)
            duration_ns = dice.randint(100, 2_000_000) * 10
            total += duration_ns
            for section, label, unit, value in details:
                text = f"{duration_ns / 1000:,.2f}" if label == "Duration" else value(dice)
                # ncu ends a metric's row with one bare comma and leaves the rule's cells out.
                file.write(f'{start},"{section}","{label}","{unit}","{text}",\n')
            for section, rule, kind, text in _RULES:
                file.write(f'{start},"{section}","","","","{rule}","{kind}","{text}","local","{dice.random() * 90:.2f}"\n')
            rows += len(details) + len(_RULES)
    return {"bytes": target.stat().st_size, "kernels": launches, "kernel_ns": total, "rows": rows}


def _launches(count: int) -> Iterator[list[str]]:
    """Yield the id cells of each launch."""
    names = kernel_names(_KERNELS)
    for i in range(count):
        kernel = i % _KERNELS
        yield [str(i), "7001", "python3.11", "127.0.0.1", names[kernel][0], "1", "7", f"({128 << kernel % 3}, 1, 1)",
               f"({1 + kernel * 37 % 4096}, {1 + kernel % 3}, 1)", "0", "8.0"]


def _wide_columns() -> list[tuple[str, str, _Value]]:
    """Return (metric, unit, value) of the raw page, sorted by metric as ncu does, exactly as many as fill WIDE_COLUMNS."""
    columns = [*_CONSTANTS, *_LAUNCH, *_TOTALS]
    for unit_name, counters in _PERCENT.items():
        for counter in counters.split():
            columns += [(f"{unit_name}__{counter}.{over}.pct_of_peak_sustained_{when}", "%", _decimal(100))
                        for over in ("avg", "max", "min", "sum") for when in ("active", "elapsed")]
    wanted = WIDE_COLUMNS - len(_IDS)
    columns += [(f"device__attribute_reserved_{i}", "", _constant(str(i))) for i in range(wanted - len(columns))]
    assert len(columns) == wanted
    return sorted(columns, key=lambda column: column[0])


_CONSTANTS: list[tuple[str, str, _Value]] = [
    (f"device__attribute_{name}", "", _constant(value)) for name, value in (
        ("architecture", "384"), ("async_engine_count", "3"), ("chip", "384"), ("clock_rate", "1410000"),
        ("compute_capability_major", "8"), ("compute_capability_minor", "0"), ("confidential_computing_mode", "No-CC"),
        ("display_name", "NVIDIA A100-SXM4-80GB"), ("fb_bus_width", "5120"), ("global_memory_bus_width", "5120"),
        ("l2_cache_size", "41943040"), ("max_registers_per_multiprocessor", "65536"), ("max_shared_memory_per_block", "49152"),
        ("max_shared_memory_per_multiprocessor", "167936"), ("max_threads_per_multiprocessor", "2048"),
        ("max_warps_per_multiprocessor", "64"), ("memory_clock_rate", "1593000"), ("multiprocessor_count", "108"),
        ("total_memory", "85899345920"), ("warp_size", "32"))]

_LAUNCH: list[tuple[str, str, _Value]] = [
    ("launch__block_size", "", _constant("256")), ("launch__grid_size", "", _whole(1, 100_000)),
    ("launch__registers_per_thread", "register/thread", _whole(16, 255)),
    ("launch__shared_mem_per_block_static", "byte/block", _whole(0, 4096)),
    ("launch__shared_mem_per_block_dynamic", "byte/block", _whole(0, 65536)),
    ("launch__func_cache_config", "", _constant("CachePreferNone")), ("launch__kernel_name", "", _constant("")),
    ("launch__waves_per_multiprocessor", "", _decimal(40)), ("launch__thread_count", "thread", _whole(1000, 10_000_000)),
    ("launch__occupancy_limit_registers", "block", _whole(1, 32)), ("launch__occupancy_limit_shared_mem", "block", _whole(1, 32)),
    ("profiler__replayer_passes", "pass", _constant("11")),
]

_TOTALS: list[tuple[str, str, _Value]] = [
    ("gpu__time_duration.sum", "ns", _whole(1000, 20_000_000)),
    ("gpc__cycles_elapsed.max", "cycle", _whole(1000, 20_000_000)),
    ("sm__cycles_elapsed.avg.per_second", "hz", _decimal(1.4e9)),
    ("smsp__cycles_elapsed.avg.per_second", "hz", _decimal(1.4e9)),
    ("dram__cycles_elapsed.avg.per_second", "hz", _decimal(1.6e9)),
    ("dram__bytes.sum", "byte", _whole(0, 10**10)), ("dram__bytes.sum.per_second", "byte/s", _decimal(2e12)),
    ("dram__bytes_read.sum", "byte", _whole(0, 10**10)), ("dram__bytes_write.sum", "byte", _whole(0, 10**10)),
    ("dram__bytes.sum.peak_sustained", "byte/cycle", _constant("1280")),
    ("lts__t_bytes.sum", "byte", _whole(0, 10**10)), ("l1tex__t_bytes.sum", "byte", _whole(0, 10**10)),
    ("smsp__inst_executed.sum", "inst", _whole(0, 10**9)), ("sm__ops_path_tensor_src_fp64.sum", "", _constant("n/a")),
    ("smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed", "inst/cycle", _decimal(4000)),
    ("smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed", "inst/cycle", _decimal(4000)),
    ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed", "inst/cycle", _decimal(4000)),
    ("sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained", "inst/cycle", _constant("6912")),
]

_PERCENT = {
    "sm": """throughput inst_executed_pipe_adu inst_executed_pipe_alu inst_executed_pipe_cbu inst_executed_pipe_fma
        inst_executed_pipe_fp64 inst_executed_pipe_lsu inst_executed_pipe_tensor inst_executed_pipe_tex inst_executed_pipe_uniform
        inst_executed_pipe_xu inst_issued instruction_throughput pipe_alu_cycles_active pipe_fma_cycles_active
        pipe_fp64_cycles_active pipe_shared_cycles_active pipe_tensor_cycles_active warps_active memory_throughput""",
    "smsp": "issue_active inst_executed inst_issued warps_active warps_eligible cycles_active",
    "l1tex": """throughput data_bank_reads data_pipe_lsu_wavefronts f_wavefronts lsu_writeback_active
        m_xbar2l1tex_read_sectors t_sectors""",
    "lts": "throughput d_sectors lts2xbar_cycles_active t_sectors t_tag_requests xbar2lts_cycles_active",
    "dram": "throughput cycles_active read_throughput write_throughput",
    "gpc": "cycles_active throughput", "fbpa": "throughput cycles_active", "idc": "requests request_cycles_active",
}

# Section, then its rows: label | unit | value, which is the highest decimal (with a point), the highest integer, or = and a text.
_DETAILS_PAGE = """
GPU Speed Of Light Throughput
DRAM Frequency | Ghz | 2.0
SM Frequency | Ghz | 2.0
Elapsed Cycles | cycle | 10000000
Memory Throughput | % | 100.0
DRAM Throughput | % | 100.0
Duration | us | =
L1/TEX Cache Throughput | % | 100.0
L2 Cache Throughput | % | 100.0
SM Active Cycles | cycle | 10000000.0
Compute (SM) Throughput | % | 100.0
Compute Workload Analysis
Executed Ipc Active | inst/cycle | 4.0
Executed Ipc Elapsed | inst/cycle | 4.0
Issue Slots Busy | % | 100.0
Issued Ipc Active | inst/cycle | 4.0
SM Busy | % | 100.0
Memory Workload Analysis
Memory Throughput | Gbyte/s | 2000.0
Mem Busy | % | 100.0
Max Bandwidth | % | 100.0
L1/TEX Hit Rate | % | 100.0
L2 Hit Rate | % | 100.0
Mem Pipes Busy | % | 100.0
Scheduler Statistics
One or More Eligible | % | 100.0
Issued Warp Per Scheduler | | 1.0
No Eligible | % | 100.0
Active Warps Per Scheduler | warp | 16.0
Eligible Warps Per Scheduler | warp | 4.0
Warp State Statistics
Warp Cycles Per Issued Instruction | cycle | 900.0
Warp Cycles Per Executed Instruction | cycle | 900.0
Avg. Active Threads Per Warp | | 32.0
Avg. Not Predicated Off Threads Per Warp | | 32.0
Instruction Statistics
Avg. Executed Instructions Per Scheduler | inst | 1000000.0
Executed Instructions | inst | 100000000
Avg. Issued Instructions Per Scheduler | inst | 1000000.0
Issued Instructions | inst | 100000000
Launch Statistics
Block Size | | =256
Function Cache Configuration | | =CachePreferNone
Grid Size | | 1000000
Registers Per Thread | register/thread | 255
Shared Memory Configuration Size | Kbyte | 100.0
Driver Shared Memory Per Block | Kbyte/block | 1.0
Dynamic Shared Memory Per Block | Kbyte/block | 64.0
Static Shared Memory Per Block | byte/block | =0
Threads | thread | 10000000
Waves Per SM | | 40.0
Occupancy
Block Limit SM | block | =32
Block Limit Registers | block | 32
Block Limit Shared Mem | block | 32
Block Limit Warps | block | 32
Theoretical Active Warps per SM | warp | 64
Theoretical Occupancy | % | 100.0
Achieved Occupancy | % | 100.0
Achieved Active Warps Per SM | warp | 64.0
GPU and Memory Workload Distribution
Average L1 Active Cycles | cycle | 100000000.0
Average L2 Active Cycles | cycle | 100000000.0
Average SM Active Cycles | cycle | 100000000.0
Total SM Elapsed Cycles | cycle | 100000000
"""


def _details() -> list[tuple[str, str, str, _Value]]:
    """Return (section, label, unit, value) of the metric rows of a launch."""
    rows: list[tuple[str, str, str, _Value]] = []
    section = ""
    for line in _DETAILS_PAGE.strip().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 1:
            section = line
        else:
            rows.append((section, cells[0], cells[1], _value(cells[2])))
    return rows


def _value(spec: str) -> _Value:
    if spec.startswith("="):
        return lambda dice: spec[1:]
    if "." in spec:
        return lambda dice: f"{dice.random() * float(spec):,.2f}"
    return lambda dice: f"{dice.randint(0, int(spec)):,}"


_RULES = [
    ("SpeedOfLight", "SOLBottleneck", "OPT", "Memory is used more than compute: see the memory analysis. " + "x" * 150),
    ("SpeedOfLight_RooflineChart", "SOLFPRoofline", "INF", "Ratio of single to double precision peak: " + "x" * 120),
    ("SchedulerStats", "IssueSlotUtilization", "OPT", "Schedulers issue less than one instruction a cycle: " + "x" * 300),
    ("Occupancy", "AchievedOccupancy", "OPT", "Achieved occupancy is below the theoretical one: " + "x" * 160),
]
