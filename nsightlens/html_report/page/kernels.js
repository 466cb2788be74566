// The tab Kernels: by name, launch configuration or operator; a kernel opens the durations of its launches.

const KERNEL_GROUPS = [["kernel_summary", "name"], ["kernel_by_rank", "name and rank"],
  ["kernel_by_config", "launch configuration"], ["kernel_view", "name and tensor cores"],
  ["operator_kernels", "operator"], ["headroom", "headroom"]];

async function kernelsTab(place) {
  const groups = KERNEL_GROUPS.filter(([name]) => isThere(name));
  const asked = groups.some(([name]) => name === state.kernels) ? state.kernels : state.rank ? "kernel_by_rank"
    : "kernel_summary";
  place.append(el("p", { class: "tools" }, select("Group by", groups, asked, (kernels) => change({ kernels }))));
  const label = asked === "headroom" ? "item" : "name";
  const first = { kernel_summary: ["name", "family", "instances", "total_ns", "time_pct", "median_ns"],
    operator_kernels: ["name", "op", "calls", "total_ns", "avg_ns", "estimated_occupancy_pct"],
    kernel_view: ["name", "tensor_cores", "calls", "total_ns", "time_pct", "blocks_per_sm", "estimated_occupancy_pct"],
    headroom: ["item", "max_gain_ns", "headroom_ns", "gpu_ns", "bound_by"] };
  const grid = await gridOf(asked, "Kernels", { first: first[asked] ?? ["name", "rank", "family", "instances", "total_ns",
    "time_pct", "median_ns"],
    sort: asked === "headroom" ? "-max_gain_ns" : "-total_ns", onRow: (row) => change({ kernel: row[label] }) });
  place.append(grid ?? el("p", { class: "note" }, "No kernel matches the filters."));
  if (state.kernel) place.append(await kernelDetail(state.kernel));
}

async function kernelDetail(name) {
  const found = el("div", { class: "detail", id: "detail" }, el("p", { class: "tools" }, el("b", {}, clean(name)),
    FACTS.steps.length ? button("Show in timeline", () => change({ tab: "timeline", find: name })) : null,
    button("Close", () => change({ kernel: "" }))));
  const launches = await launchesOf(name);
  if (!launches.length) return found;
  const fill = FACTS.slices[launches[0].family] ?? FACTS.slices.other;
  const counts = histogram(`Durations of ${launches.length} launches`, launches.map((row) => row.duration_ns), duration, fill);
  const drawn = dots("Duration of each launch over time", launches.map((row) => [row.start_ns, row.duration_ns]), duration,
    duration, fill);
  found.append(el("div", { class: "side" }, el("section", {}, el("h3", {},
    `How long ${number(launches.length)} launches took`), counts,
    tools(counts, "durations", commandOf("timeline_kernels"))), el("section", {}, el("h3", {}, "When, and how long"), drawn,
    tools(drawn, "launches", commandOf("timeline_kernels")))));
  return found;
}

async function launchesOf(name) {
  if (!isThere("timeline_kernels")) return [];
  const table = await load("timeline_kernels");
  const rows = await chosen(table);
  return rows.filter((row) => table.value("name", row) === name).map((row) => table.row(row));
}
