-- Each kernel key, grid and block as nsys, Kineto and ncu record it, side by side, with the kind of any difference.
-- Do not add columns: they come from different executions. ncu measures a sample on purpose, so that its count
-- is no disagreement. A class is NULL where there is nothing to compare or nothing can be said. Classes, first that applies:
-- count_class (nsys against Kineto): same; hidden in a graph (the tool with fewer recorded graphs whole, and the other's
-- launches by graphs make up for it); warm-up or window (equal in the steps that both recorded; the surplus lies before
-- these, or elsewhere too); within steps (they differ in the steps that both recorded: dropped, or another choice of the
-- library). naming_class: the tools that know the short name but not the key, anywhere in the run. kineto_class: waiting (a
-- collective lasts as long as it waits); same (within 2 %); within spread (the median lies within nsys's 5th to 95th
-- percentile); resolution (whole microseconds, less than 1 µs apart); profiler overhead (Kineto is longer). ncu_class
-- (against nsys, else Kineto): waiting; same; within spread; several sizes (the 95th percentile of the timeline is above 1.5
-- times the 5th: the launches differ in work, and which of them ncu measured is not known); faster alone (ncu runs nothing
-- beside the kernel); where the clocks are known: clock (no longer than the ratio of the boost clock to the clock under ncu,
-- 5 % allowed), or what is left beyond it, with clock where that is above 1.02: cache flush or replay by --cache-control,
-- replay or cache flush where unknown. The clock of the timeline is the one sampled during these launches, where nsys (GPU
-- metrics) or Kineto (counter events) sampled it, else the rated one: clock_source says which.
-- @scope run
-- @requires _agreement
-- @assumes The tools saw the same program on the same kind of GPU.
-- @assumes The undisturbed run was at its boost clock, where a ratio of clocks explains a difference and no clock was sampled.
-- @first short_name, nsys_median_ns, kineto_median_ns, ncu_median_ns, kineto_ratio, ncu_ratio
-- @column run                            Run.
-- @column rank                           Rank; NULL where not every tool knows its ranks: then all ranks are one.
-- @column kernel_key                     Canonical name.
-- @column short_name                     Base name.
-- @column family                         Kernel family.
-- @column grid_x                         Grid size, x.
-- @column grid_y                         Grid size, y.
-- @column grid_z                         Grid size, z.
-- @column block_x                        Block size, x.
-- @column block_y                        Block size, y.
-- @column block_z                        Block size, z.
-- @column nsys_launches                  Launches under nsys; NULL where it has none.
-- @column kineto_launches                Launches under Kineto.
-- @column ncu_launches                   Launches measured by ncu, under the clock and cache settings with the most.
-- @column nsys_median_ns                 Median duration under nsys.
-- @column nsys_p5_ns                     5th percentile.
-- @column nsys_p95_ns                    95th percentile.
-- @column kineto_median_ns               Median duration under Kineto.
-- @column kineto_p5_ns                   5th percentile.
-- @column kineto_p95_ns                  95th percentile.
-- @column ncu_median_ns                  Median duration under ncu.
-- @column ncu_p5_ns                      5th percentile.
-- @column ncu_p95_ns                     95th percentile.
-- @column nsys_registers                 Registers per thread, where all launches agree.
-- @column kineto_registers               The same of Kineto.
-- @column ncu_registers                  The same of ncu.
-- @column nsys_shared_bytes              Shared memory per block, where all launches agree.
-- @column kineto_shared_bytes            The same of Kineto.
-- @column ncu_shared_bytes               The same of ncu.
-- @column kineto_estimated_occupancy_pct Occupancy that Kineto estimates.
-- @column ncu_theoretical_occupancy_pct  Occupancy that the launch allows, by ncu.
-- @column ncu_achieved_occupancy_pct     Occupancy that ncu measured.
-- @column kineto_ratio                   Median under Kineto over median under nsys.
-- @column ncu_ratio                      Median under ncu over median under nsys, else Kineto.
-- @column clock_ratio                    Clock of the timeline's launches over that during ncu's; clock_source says whose it is.
-- @column clock_source                   Sampled during these launches (SM or GPC clock), rated (who states it), or datasheet.
-- @column sampled_launches               Launches whose clock was sampled; NULL: none.
-- @column sampled_clock_hz               Median of their mean clocks.
-- @column min_sampled_clock_hz           Lowest.
-- @column max_sampled_clock_hz           Highest.
-- @column clock_control                  ncu --clock-control, where known.
-- @column cache_control                  ncu --cache-control, where known.
-- @column count_class                    Why the launches of nsys and Kineto differ in number.
-- @column naming_class                   Tools that know such a kernel under another key.
-- @column kineto_class                   Why Kineto's durations differ from nsys's.
-- @column ncu_class                      Why ncu's durations differ from the timeline's.
-- @names kernel kernel_key
CREATE VIEW tool_agreement AS
WITH rated AS (
    SELECT
        *, coalesce(t.launches, 0) - coalesce(n.launches, 0) AS surplus,
        t.quantiles[2] / nullif(n.quantiles[2], 0) AS kineto_ratio,
        CASE WHEN n IS NULL THEN t.quantiles ELSE n.quantiles END AS timeline,
        c.quantiles[2] / nullif(CASE WHEN n IS NULL THEN t.quantiles[2] ELSE n.quantiles[2] END, 0) AS ncu_ratio,
        count(n) OVER (PARTITION BY run, rank) > 0 AND count(t) OVER (PARTITION BY run, rank) > 0 AS comparable
    FROM _agreement
)
SELECT
    run, rank, kernel_key, short_name, family, configuration.grid_x, configuration.grid_y, configuration.grid_z,
    configuration.block_x, configuration.block_y, configuration.block_z,
    n.launches AS nsys_launches, t.launches AS kineto_launches, c.launches AS ncu_launches,
    n.quantiles[2] AS nsys_median_ns, round(n.quantiles[1], 1) AS nsys_p5_ns, round(n.quantiles[3], 1) AS nsys_p95_ns,
    t.quantiles[2] AS kineto_median_ns, round(t.quantiles[1], 1) AS kineto_p5_ns, round(t.quantiles[3], 1) AS kineto_p95_ns,
    c.quantiles[2] AS ncu_median_ns, round(c.quantiles[1], 1) AS ncu_p5_ns, round(c.quantiles[3], 1) AS ncu_p95_ns,
    n.registers AS nsys_registers, t.registers AS kineto_registers, c.registers AS ncu_registers,
    n.shared_bytes AS nsys_shared_bytes, t.shared_bytes AS kineto_shared_bytes, c.shared_bytes AS ncu_shared_bytes,
    t.estimated_occupancy_pct AS kineto_estimated_occupancy_pct,
    c.limit_occupancy_pct AS ncu_theoretical_occupancy_pct, c.achieved_occupancy_pct AS ncu_achieved_occupancy_pct,
    round(kineto_ratio, 4) AS kineto_ratio, round(ncu_ratio, 4) AS ncu_ratio, round(clock_ratio, 4) AS clock_ratio,
    clock_source, sampled.launches AS sampled_launches, sampled.median_hz AS sampled_clock_hz, sampled.min_hz AS min_sampled_clock_hz,
    sampled.max_hz AS max_sampled_clock_hz,
    c.clock_control AS clock_control, c.cache_control AS cache_control,
    CASE
        WHEN NOT comparable OR (n IS NULL AND t IS NULL) THEN NULL
        WHEN surplus = 0 THEN 'same'
        WHEN (surplus > 0 AND n_hides AND t.in_graph >= surplus) OR (surplus < 0 AND t_hides AND n.in_graph >= -surplus)
            THEN 'hidden in a graph'
        WHEN coalesce(n.common_launches, t.common_launches) IS NULL THEN NULL
        WHEN coalesce(n.common_launches, 0) <> coalesce(t.common_launches, 0) THEN 'within steps'
        WHEN coalesce(t.early_launches, 0) - coalesce(n.early_launches, 0) = surplus THEN 'warm-up'
        ELSE 'window'
    END AS count_class,
    naming_class,
    CASE
        WHEN kineto_ratio IS NULL THEN NULL
        WHEN family = 'collective' THEN 'waiting'
        WHEN abs(kineto_ratio - 1) <= 0.02 THEN 'same'
        WHEN t.quantiles[2] BETWEEN n.quantiles[1] AND n.quantiles[3] THEN 'within spread'
        WHEN t.whole_us AND abs(t.quantiles[2] - n.quantiles[2]) < 1000 THEN 'resolution'
        WHEN kineto_ratio > 1 THEN 'profiler overhead'
    END AS kineto_class,
    CASE
        WHEN ncu_ratio IS NULL THEN NULL
        WHEN family = 'collective' THEN 'waiting'
        WHEN abs(ncu_ratio - 1) <= 0.02 THEN 'same'
        WHEN c.quantiles[2] BETWEEN timeline[1] AND timeline[3] THEN 'within spread'
        WHEN timeline[3] > 1.5 * timeline[1] THEN 'several sizes'
        WHEN ncu_ratio < 1 THEN 'faster alone'
        WHEN clock_ratio > 1.02 AND ncu_ratio <= 1.05 * clock_ratio THEN 'clock'
        WHEN clock_ratio IS NOT NULL THEN CASE WHEN clock_ratio > 1.02 THEN 'clock and ' ELSE '' END
            || CASE c.cache_control WHEN 'all' THEN 'cache flush' WHEN 'none' THEN 'replay' ELSE 'replay or cache flush' END
    END AS ncu_class
FROM rated
ORDER BY run, rank, kernel_key, configuration.grid_x, configuration.grid_y, configuration.grid_z, configuration.block_x,
    configuration.block_y, configuration.block_z;
