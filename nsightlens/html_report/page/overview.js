// The tab Overview: the static first part, and per run where each step went.

const STEP_BARS = 60;
const OVERVIEW = [["gpu_summary", "GPUs", ["rank", "device", "gpu", "utilization_pct", "sm_efficiency_pct", "occupancy_pct",
  "tensor_core_pct", "memory_bytes", "compute_capability"]],
  ["execution_summary", "Where the time went, by kind", ["rank", "category", "time_pct", "avg_ns", "total_ns"]],
  ["recommendations", "Rules of the TensorBoard plugin and of nsys", ["rank", "rule", "subject", "value_pct", "limit_pct",
    "advice"]]];

async function overviewTab(place) {
  for (const article of place.querySelectorAll("article")) {
    const run = FACTS.runs[article.dataset.run];
    article.hidden = Boolean(state.run) && run !== state.run;
    const charts = article.querySelector(".charts");
    charts.replaceChildren();
    const rows = (await rowsOf("step_breakdown")).filter((row) => row.run === run);
    if (rows.length) charts.append(stepStack(rows, run));
    const covered = rows.some((row) => row.step !== null) ? "first step's start to last step's end" : "over the whole capture";
    const grids = await Promise.all(OVERVIEW.map(([name, title, first]) => gridOf(name, title,
      { first, keep: (row) => row.run === run, hint: name === "gpu_summary" ? covered : "" })));
    const roofs = rows.length ? null : await gridOf("roofline", "Kernels below their roofs", { sort: "-duration_ns",
      first: ["name", "launches", "duration_ns", "roof_pct", "level", "precision"],
      keep: (row) => row.run === run && row.is_main });
    article.querySelector(".tables").replaceChildren(...[roofs, ...grids].filter(Boolean));
  }
}

function stepStack(rows, run) {
  const shown = rows.length > STEP_BARS ? [...rows].sort((a, b) => b.step_ns - a.step_ns).slice(0, STEP_BARS) : rows;
  const kinds = Object.keys(FACTS.categories);
  const bars = shown.map((row) => ({
    label: [row.rank === null ? null : `rank ${row.rank}`, row.step === null ? null
      : `step ${row.step}`].filter(Boolean).join(", ") || "capture",
    parts: Object.fromEntries(kinds.map((kind) => [kind, row[`${kind}_ns`] ?? 0])),
    act: () => change({ tab: "timeline", step: row.step ?? "", rank: row.rank ?? "", run, steps: "" }),
  }));
  const title = rows[0].step === null ? "Where the time went" : "Where each step went";
  const drawn = stackedBars(title, bars, FACTS.categories, duration);
  const some = shown.length < rows.length ? `the longest ${shown.length} of ${rows.length} steps; ` : "";
  const note = `${rows[0].tool}; ${some}a click opens the timeline`;
  const used = kinds.filter((kind) => shown.some((row) => row[`${kind}_ns`]));
  return el("section", {}, el("h3", {}, title), el("p", { class: "note" }, note), legend(FACTS.categories, used),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title }, drawn),
      tools(drawn, "steps", commandOf("step_breakdown")));
}
