// The tab Overview: the static first part, the judged tree of each run, and below it what other tools count.

const STEP_BARS = 60;
const OTHERS = [["gpu_summary", "GPUs", ["rank", "device", "gpu", "utilization_pct", "sm_efficiency_pct", "occupancy_pct",
  "tensor_core_pct", "memory_bytes", "compute_capability"]],
  ["execution_summary", "Where the time went, by kind", ["rank", "category", "time_pct", "avg_ns", "total_ns"]],
  ["recommendations", "Other tools' checks", ["rank", "rule", "subject", "value_pct", "limit_pct",
    "advice"]]];

async function overviewTab(place) {
  for (const article of place.querySelectorAll("article")) {
    const run = FACTS.runs[article.dataset.run];
    article.hidden = Boolean(state.run) && run !== state.run;
    article.querySelector(".unfiltered").textContent = state.rank || state.steps || state.tool
      ? "Verdict and findings are of all ranks and steps: no filter applies to them." : "";
    const tree = await timeTree(run) ?? await gridOf("speed_of_light", "Kernels, and what limits them", { sort: "-total_ns",
      first: ["name", "limited_by", "total_ns", "launches", "unit", "unit_pct", "sm_pct", "memory_pct", "dram_pct",
        "occupancy_pct", "grid", "block"],
      skip: ["l2_pct", "l1_pct", "tensor_pct", "dram_bytes_per_s", "max_occupancy_pct", "duration_ns", "stall", "stall_pct"],
      keep: (row) => row.run === run,
      onRow: (row) => change({ tab: "kernels", kernel: row.name }) });
    article.querySelector(".charts").replaceChildren(...[tree].filter(Boolean));
    const steps = (await rowsOf("step_breakdown")).filter((row) => row.run === run && row.step !== null);
    const isOpen = article.querySelector("details")?.open ?? false;
    const isStepped = new Set(steps.map((row) => row.step)).size > 1;
    article.querySelector(".tables").replaceChildren(...[isStepped ? stepStack(steps, run) : null,
      await others(run, isOpen)].filter(Boolean));
  }
}

// What other tools show on their first pages, over their own window: folded away, as it is not the tree's.
async function others(run, isOpen) {
  const used = (await rowsOf("gpu_summary")).filter((row) => row.run === run);
  const grids = (await Promise.all(OTHERS.map(([name, title, first]) => gridOf(name, title,
    { first, keep: (row) => row.run === run })))).filter(Boolean);
  if (!grids.length) return null;
  const stepped = (await rowsOf("step_breakdown")).some((row) => row.run === run && row.step !== null);
  const [low, high] = extent(used.map((row) => row.span_ns));
  const span = used.length ? ` (${[...new Set([duration(low), duration(high)])].join(" to ")})` : "";
  return el("details", { open: isOpen }, el("summary", {}, "As the TensorBoard plugin and nsys count it"),
    el("p", { class: "note" }, `Their window is not the tree's: ${stepped ? "first step's start to last step's end"
      : "the whole capture, from the first call to the last"}${span}.`), grids);
}

function stepStack(rows, run) {
  const shown = rows.length > STEP_BARS ? [...rows].sort((a, b) => b.step_ns - a.step_ns).slice(0, STEP_BARS) : rows;
  const kinds = Object.keys(FACTS.categories);
  const bars = shown.map((row) => ({
    label: [whose(row, rows), `step ${row.step}`].filter(Boolean).join(", "),
    parts: Object.fromEntries(kinds.map((kind) => [kind, row[`${kind}_ns`] ?? 0])),
    act: () => change({ tab: "timeline", step: row.step, rank: row.rank ?? "", run, steps: "" }),
  }));
  const title = "Where each step went";
  const drawn = stackedBars(title, bars, FACTS.categories, duration);
  const some = shown.length < rows.length ? `the longest ${shown.length} of ${rows.length} steps; ` : "";
  const note = `${rows[0].tool}; ${some}each from its own start to its end, by the TensorBoard plugin's kinds; ` +
    "a click opens the timeline";
  const used = kinds.filter((kind) => shown.some((row) => row[`${kind}_ns`]));
  return el("section", {}, el("h3", {}, title), el("p", { class: "note" }, note), legend(FACTS.categories, used),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title }, drawn),
      tools(drawn, "steps", commandOf("step_breakdown")));
}
