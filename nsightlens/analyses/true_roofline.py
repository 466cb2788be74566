"""The true roofline: ncu's work and traffic over the undisturbed duration of the same kernel.

Work and bytes of one launch are what ncu counted; ncu's own duration is of a replay at a locked clock with flushed caches. The
time here is the median of the launches of the same kernel key, grid and block in nsys or Kineto, on the rank that ncu measured
(on all ranks where that is not known, or has none). Where the launches of a configuration take very different times (95th
percentile above 1.5 times the 5th) they may differ in work: then only those count that are known to be the ones that ncu counted
(pairs of grade launch), and without such pairs the point is not plotted. Roofs stand at the clock that was sampled during these
launches (GPU metrics of nsys, counter events of Kineto; the median over the launches, with its spread); where none was, at the
rated clock of the GPU, where a tool (or else a sidecar) states one above ncu's. The roof of DRAM and that of L2 have clocks of
their own and are as ncu measured them. A row per row of roofline; then, most GPU time first, a row per
kernel that nothing counted, configuration, operator and shapes, whose operations and least bytes follow from these shapes
(shape_work): at level dram only, under the datasheet's roofs, with an intensity that is an upper bound. They are of all ranks
unless each is asked for.
@scope run
@topic roofline
@needs counters, two_tools
@requires _datasheet, _datasheet_misfit, _gpu_peak, _timeline_tools, _true_roofline, devices, kernels, matches, profiles, ranges
@assumes Both executions ran the same program with the same inputs on the same kind of GPU.
@assumes A launch does the same operations and moves the same bytes undisturbed as under ncu, whose cold caches add DRAM traffic.
@assumes Where no clock was sampled it was at most the rated one, so that the compute roof drawn is an upper bound.
@param  kernel        Part of the kernel's name (any case); NULL for all.
@param  kernel_regex  Regular expression that the name matches; NULL for all.
@param  assume_gpu    Product name for the datasheet peaks, where the capture lacks it.
@param  force_gpu     Whether assume_gpu is taken for every kernel, unchecked.
@param  time          nsys or kineto; NULL: nsys where it recorded kernels of the run, else Kineto.
@param  grade         Worst grade whose time is taken: configuration, key (other grids and blocks) or short_name (other variants).
@param  ranks         'same': the rank that ncu measured; 'each': a row per rank, with another rank's counters where it has none.
@param  launches      'auto' (see above), 'all' launches of the configuration, or 'matched': only those that ncu counted.
@param  work          'any': from counters, from shapes where there are none; 'counters' or 'shapes': only these.
@first name, roof_pct, precision, duration_ns, achieved_flop_per_s, arithmetic_intensity, launches
@column configuration_id            Configuration of the counters; key of ncu_by_config.
@column run                         Run.
@column rank                        Rank of the launches whose time it is; NULL: all ranks together.
@column counters_rank               Rank that ncu measured; NULL where unknown.
@column gpu                         Product name of the GPU that ncu measured; NULL where unknown.
@column compute_capability          Its compute capability.
@column name                        Kernel name as ncu prints it.
@column short_name                  Base name of the kernel.
@column kernel_key                  Canonical name, the same in the three tools.
@column family                      Family of the kernel.
@column grid_x                      Grid size, x.
@column grid_y                      Grid size, y.
@column grid_z                      Grid size, z.
@column block_x                     Block size, x.
@column block_y                     Block size, y.
@column block_z                     Block size, z.
@column clock_control               ncu --clock-control, where known.
@column cache_control               ncu --cache-control, where known.
@column summarised                  True where only averages over ncu's launches are known.
@column simulated                   True where a capture behind it is simulated.
@column level                       dram, l2 or l1.
@column precision                   As in roofline.
@column is_main                     True for one precision of each configuration: the one that does most of the operations.
@column plottable                   Whether the kernel has a point: work, traffic and duration are known and above 0.
@column not_plottable_reason        Why not: what to collect, or what keeps the time from belonging to the counters.
@column warning                     Why the point may mislead.
@column time_tool                   Tool whose time it is: nsys or kineto.
@column time_grade                  How sure the launches are those of the counters: launch, configuration, key or short_name.
@column time_ranks                  same rank, another rank (than ncu measured) or all ranks.
@column time_launches               all launches of the configuration, or matched: only those that ncu counted.
@column launches                    Launches behind the time.
@column duration_ns                 Their median duration, rounded to 1 ns.
@column min_duration_ns             Shortest.
@column max_duration_ns             Longest.
@column p5_duration_ns              5th percentile, interpolated linearly between the two nearest launches, rounded to 1 ns.
@column p95_duration_ns             95th percentile, interpolated the same way.
@column work_source                 counters, or shapes: from those of the operator, where nothing counted.
@column work_flop                   Operations of one launch (integer operations for integer paths).
@column work_definition             How they were counted.
@column traffic_bytes               Bytes that the level moved in one launch.
@column traffic_source              Metrics behind them.
@column level_definition            Definition of the level's bytes; never compare two.
@column achieved_flop_per_s         work_flop / duration: what the kernel achieved.
@column achieved_bytes_per_s        traffic_bytes / duration: what the kernel achieved.
@column arithmetic_intensity        work_flop / traffic_bytes, operations per byte.
@column ncu_launches                Launches that ncu measured.
@column ncu_duration_ns             Their median duration under ncu.
@column ncu_achieved_flop_per_s     work_flop / ncu_duration: ncu's own point, of the same intensity.
@column peak_flop_per_s             Compute roof: ncu's peak per cycle times roof_clock_hz.
@column peak_bytes_per_s            Memory roof: the peak bandwidth of ncu's report; that of L1 scaled to roof_clock_hz.
@column ridge_point                 peak_flop_per_s / peak_bytes_per_s: the intensity at which the two roofs meet.
@column roof_pct                    Achieved performance in % of the roof at this intensity; can exceed 100 (boost clocks).
@column roof_clock_hz               SM clock that peak_flop_per_s holds for; roof_clock_source says whose.
@column roof_clock_source           Whose clock that is: sampled, rated, highest (with who states it), or ncu's, locked or not.
@column min_roof_clock_hz           Where it was sampled: the lowest of a launch; roof_clock_hz is their median.
@column max_roof_clock_hz           The highest.
@column sampled_launches            Launches whose clock was sampled; NULL where roof_clock_source is another.
@column ncu_clock_hz                SM clock while ncu measured.
@column datasheet_peak_flop_per_s   Dense compute peak of the datasheet; scaled by SMs for a slice of a GPU.
@column datasheet_peak_bytes_per_s  Peak bandwidth of the datasheet; NULL for L1, and for a slice of a GPU.
@column datasheet_ridge_point       The same of the two peaks of the datasheet.
@column datasheet_roof_pct          Achieved performance in % of the datasheet's roof at this intensity, scaled to roof_clock_hz.
@column datasheet_clock_hz          Clock that the datasheet's compute peak holds for.
@column datasheet_gpu               Row of gpu_peaks.
@column datasheet_source            Where the datasheet's numbers come from, and how they were scaled.
@names kernel name, kernel_key
"""

from __future__ import annotations

import pyarrow as pa

from nsightlens.analyses import Ask, _roofline_shapes
from nsightlens.errors import not_a_choice

TOOLS = ("nsys", "kineto")
GRADES = ("configuration", "key", "short_name")
RANKS = ("same", "each")
LAUNCHES = ("auto", "all", "matched")
WORK = ("any", "counters", "shapes")

_COUNTED = """
FROM _true_roofline(kernel := ?, kernel_regex := ?, assume_gpu := ?, force_gpu := ?, timed_by := ?, worst_place := ?,
    over_ranks := ?, taken := ?)
"""
_HAS_COUNTERS = "SELECT 1 FROM kernels WHERE tool = 'ncu' LIMIT 1"


def analyse(
    ask: Ask, *, kernel: str | None = None, kernel_regex: str | None = None, assume_gpu: str | None = None,
    force_gpu: bool = False, time: str | None = None, grade: str = "configuration", ranks: str = "same",
    launches: str = "auto", work: str = "any",
) -> pa.Table:
    """Return a row per configuration, level, precision and, with ranks 'each', rank. Raises UsageError for unknown choices."""
    for name, value, choices in (("time", time or "nsys", TOOLS), ("grade", grade, GRADES), ("ranks", ranks, RANKS),
                                 ("launches", launches, LAUNCHES), ("work", work, WORK)):
        if value not in choices:
            raise not_a_choice("true_roofline", name, value, choices)
    counted_rows = _COUNTED if ask(_HAS_COUNTERS, []).num_rows else f"{_COUNTED} LIMIT 0"  # else it would read all launches
    counted = ask(counted_rows, [kernel, kernel_regex, assume_gpu, force_gpu, time, GRADES.index(grade) + 1, ranks, launches])
    if work == "counters":
        return counted
    shaped = _roofline_shapes.rows(ask, counted, kernel=kernel, kernel_regex=kernel_regex, assume_gpu=assume_gpu,
                                   force_gpu=force_gpu, time=time,
                                   each=ranks == "each")
    return shaped if work == "shapes" else pa.concat_tables([counted, shaped])
