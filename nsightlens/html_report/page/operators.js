// The tab Operators: by name, or by name and shapes, summed over the processes that the filters leave.

const TENSOR_CORES = ["tensor_core_eligible", "tensor_core_self_pct", "tensor_core_total_pct"];
const DETAILS = 10; // rows of each table of one operator, so that the next is in sight
const OPERATOR_SUMS = ["calls", "device_self_ns", "device_total_ns", "host_self_ns", "host_total_ns"];
const OPERATOR_COLUMNS = ["calls", "device_self_ns", "device_self_pct", "device_total_ns", "host_self_ns", "host_self_pct",
  "host_total_ns"];

// Rows with their shares of the time of all that are shown, in each run: device_self_pct, host_self_pct.
function withShares(rows) {
  for (const group of grouped(rows, (row) => row.run).values()) {
    for (const kind of ["device", "host"]) {
      const whole = group.reduce((sum, row) => sum + row[`${kind}_self_ns`], 0);
      for (const row of group) {
        const own = row[`${kind}_self_ns`];
        row[`${kind}_self_pct`] = own === null || !whole ? null : 100 * own / whole;
      }
    }
  }
  return rows;
}

async function operatorsTab(place) {
  const group = state.group === "shapes" && isThere("operator_shapes") ? "shapes" : "name";
  const name = group === "shapes" ? "operator_shapes" : "operator_summary";
  const rows = await rowsOf(name, BEST.operators);
  const keys = group === "shapes" ? ["run", "name", "shapes"] : ["run", "name"];
  const found = withShares(summed(rows, keys, OPERATOR_SUMS));
  const processes = new Set(rows.map((row) => row.process_id)).size;
  place.append(el("p", { class: "tools" }, select("Group by", [["name", "operator"], ["shapes", "operator and shapes"]], group,
    (value) => change({ group: value }))));
  const known = (column) => found.some((row) => row[column] !== null);
  const columns = [...(FACTS.runs.length > 1 ? keys : keys.slice(1)), ...OPERATOR_COLUMNS,
    ...(processes === 1 ? TENSOR_CORES : TENSOR_CORES.slice(0, 1)).filter(known)];
  const grid = new Grid({ name, title: `Operators (${rows[0]?.tool ?? ""})`, rows: found, columns, command: commandOf(name),
    docs: FACTS.tables[name].docs,
    sort: found.some((row) => row.device_self_ns) ? "-device_self_ns" : "-host_self_ns",
      onRow: (row) => change({ op: row.name }),
    hint: processes > 1 ? `Sum of ${processes} processes; choose a rank to see tensor-core use` : "" });
  place.append(grid.element);
  if (state.op) place.append(await operatorDetail(state.op, rows[0]?.tool));
}

// tool: what recorded the operators, whose timeline names them.
async function operatorDetail(op, tool) {
  const kernels = await gridOf("operator_kernels", `Kernels of ${clean(op)}`, { keep: (row) => row.op === op, sort: "-total_ns",
    first: ["name", "calls", "total_ns", "avg_ns"], skip: ["op"], order: BEST.operators, shown: DETAILS });
  const shapes = await gridOf("operator_shapes", `Shapes of ${clean(op)}`,
    { keep: (row) => row.name === op, sort: "-device_self_ns",
    first: ["shapes", "calls", "device_self_ns"], skip: ["name"], order: BEST.operators, shown: DETAILS });
  const stacks = await gridOf("operator_call_sites", `Stacks of ${clean(op)}`,
    { keep: (row) => row.op === op, sort: "-device_total_ns",
    first: ["call_site", "calls", "device_self_ns", "device_total_ns", "host_self_ns", "host_total_ns", "call_stack"],
    skip: ["op"], order: BEST.operators, shown: DETAILS });
  return el("div", { class: "detail", id: "detail" }, el("p", { class: "tools" }, el("b", {}, clean(op)),
    FACTS.steps.some((step) => step.tool === tool) ? button("Show in timeline",
      () => change({ tab: "timeline", find: op, tool })) : null,
    button("Close", () => change({ op: "" }))), kernels ?? el("p", { class: "note" }, "It launched no kernel."), shapes, stacks);
}
