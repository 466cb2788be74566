// The tab Modules: an icicle of the modules' time on the GPU (or host), each above what it contains.

const MODULE_SUMS = ["calls", "operators", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns",
  "backward_total_ns", "backward_self_ns"];

async function modulesTab(place) {
  const rows = summed(await rowsOf("module_summary", BEST.operators), ["run", "module", "parent"], MODULE_SUMS);
  for (const row of rows) {
    row.forward_total_ns = row.device_total_ns === null ? null : row.device_total_ns - row.backward_total_ns;
  }
  const both = rows.some((row) => row.backward_total_ns) && rows.some((row) => row.forward_total_ns);
  const offered = [["device_total_ns", both ? "GPU, forward and backward" : "GPU"], ...(both
    ? [["forward_total_ns", "GPU, forward"], ["backward_total_ns", "GPU, backward"]] : []), ["host_total_ns", "host"]]
    .filter(([column]) => rows.some((row) => row[column]));
  const [measure, time] = offered.find(([column]) => column === state.module_time) ?? offered[0]
    ?? ["host_total_ns", "host"];
  place.append(el("p", { class: "tools" }, select("Time", offered, measure, (value) => change({ module_time: value }))));
  const drawn = icicle(rows, measure, time);
  if (drawn) place.append(drawn, tools(drawn, "modules", commandOf("module_summary")));
  const keep = state.module ? (row) => row.module === state.module || row.parent === state.module : () => true;
  const columns = ["module", "parent", ...MODULE_SUMS];
  place.append(state.module ? el("p", { class: "tools" }, el("b", {}, clean(state.module)),
    button("All modules", () => change({ module: "" }))) : "",
    new Grid({ name: "module_summary", title: `Modules (${rows[0]?.tool ?? ""})`, rows: rows.filter(keep), columns,
      command: commandOf("module_summary"),
      docs: FACTS.tables.module_summary.docs, sort: `-${measure}`, onRow: (row) => change({ module: row.module }) }).element);
}

function icicle(rows, measure, time) {
  const children = new Map();
  for (const row of rows) {
    if (!children.has(row.parent)) children.set(row.parent, []);
    children.get(row.parent).push(row);
  }
  const names = new Set(rows.map((row) => row.module));
  const roots = rows.filter((row) => row.parent === null || !names.has(row.parent)).filter((row) => row[measure] > 0);
  const total = roots.reduce((sum, row) => sum + row[measure], 0);
  if (!total) return null;
  const [width, high] = [chartWidth(), 22];
  const boxes = [];
  let deepest = 0;
  const lay = (row, from, depth, seen) => {
    const wide = row[measure] / total * width;
    if (wide < 1 || seen.has(row.module)) return;
    deepest = Math.max(deepest, depth);
    boxes.push(moduleBox(row, from, depth * high, wide, high, measure, depth));
    let at = from;
    for (const child of (children.get(row.module) ?? []).filter((each) => each[measure] > 0).sort((a,
      b) => b[measure] - a[measure])) {
      lay(child, at, depth + 1, new Set([...seen, row.module]));
      at += child[measure] / total * width;
    }
  };
  let at = 0;
  for (const root of roots) {
    lay(root, at, 0, new Set());
    at += root[measure] / total * width;
  }
  return figure(`Modules, each above what it contains: ${time}`, width, (deepest + 1) * high + 2, boxes);
}

function moduleBox(row, x, y, width, height, measure, depth) {
  const name = row.module.replace(/^nn\.Module: /, "");
  const most = Math.floor((width - 8) / 6.4);
  const label = most > 2 ? words(name.length > most ? `${clean(name).slice(0, most - 1)}…` : clean(name), x + 4, y + 15,
    { fill: "#111" }) : null;
  const box = svg("rect", { x, y, width: Math.max(1, width - 1), height: height - 1, fill: FACTS.slices.module,
    "fill-opacity": 1 - (depth % 3) * 0.22,
    stroke: colour("back") });
  return mark(svg("g", {}, box, label), `${clean(name)}: ${duration(row[measure])}`, () => change({ module: row.module }));
}
