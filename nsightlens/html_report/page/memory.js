// The tab Memory: allocated memory over time; a stretch chosen with two clicks filters the events below.

async function memoryTab(place) {
  const [devices, events] = [byDevice(await rowsOf("memory_curve")), byDevice(await rowsOf("memory_events"))];
  const isHost = (key) => JSON.parse(key)[4] === "cpu";
  const keys = [...devices.keys()].sort((a, b) => isHost(a) - isHost(b));
  const firsts = [...devices.values()].map((rows) => rows[0]);
  const deviceName = (key) => deviceOf(devices.get(key)[0], firsts);
  const chosenKey = keys[Number(state.device) || 0];
  if (chosenKey) {
    place.append(el("p", { class: "tools" }, keys.length > 1 ? select("Memory of",
      keys.map((key, i) => [i, deviceName(key)]),
      Number(state.device) || 0, (device) => change({ device, from: "", to: "" }))
        : el("b", {}, deviceName(chosenKey))));
    place.append(...memoryCurve(devices.get(chosenKey), events.get(chosenKey) ?? []));
  }
  const peaks = await gridOf("memory_peak", "Peaks", { first: ["rank", "device_type", "device", "peak_allocated_bytes",
    "peak_pct", "peak_op"] });
  const operators = await gridOf("memory_by_operator", "Memory by operator",
    { first: ["name", "self_increase_bytes", "self_allocated_bytes", "calls"],
    sort: "-self_allocated_bytes" });
  place.append(...[peaks, operators].filter(Boolean));
}

// Rows by run, process, window and device.
function byDevice(rows) {
  const found = new Map();
  for (const row of rows) {
    const key = JSON.stringify([row.run, row.rank, row.process_id, row.window_index, row.device_type, row.device]);
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(row);
  }
  return found;
}

const deviceOf = (row, firsts) => [whose(row, firsts),
  `${DEVICE_TYPES[row.device_type] ?? row.device_type} ${row.device ?? ""}`.trim()].filter(Boolean).join(", ");

function memoryCurve(rows, events) {
  const column = rows.some((row) => row.allocated_bytes !== null) ? "allocated_bytes" : "net_bytes";
  const points = rows.filter((row) => row[column] !== null).map((row) => [row.at_ns, row[column]]);
  const [low, high] = [points[0][0], points[points.length - 1][0]];
  const [width, height, left, bottom] = [chartWidth(), 260, 80, 230];
  const [least, most] = extent(points.map((point) => point[1]));
  const x = linear(low, high, left, width - 20);
  const y = linear(Math.min(0, least), most, bottom, 10);
  const line = thinned(points, 3000).map(([at, bytes], i, all) => i ? `H${x(at).toFixed(1)}V${y(bytes).toFixed(1)}`
    : `M${x(at)},${y(bytes)}`).join("");
  const from = Number(state.from) || low;
  const to = Number(state.to) || high;
  const brush = svg("rect", { x: x(from), width: Math.max(1, x(to) - x(from)), y: 10, height: bottom - 10,
    fill: colour("accent"), "fill-opacity": state.from ? 0.15 : 0 });
  const drawn = figure("Memory over time", width, height, yAxis(y, byteTicks(Math.min(0, least), most), left, width - 20, size),
    xAxis(x, ticks(0, high - low, marksAcross(width - left - 20)).map((ns) => ns + low), 10, bottom,
      (ns) => duration(ns - low)), brush,
      svg("path", { d: line, fill: "none", stroke: FACTS.slices.gemm, "stroke-width": 1.4 }));
  drawn.addEventListener("pointerdown", (event) => brushFrom(event, drawn, brush, { x, low, high, left, width }));
  return [el("h3", {}, column === "net_bytes" ? "Memory over time, since the capture began" : "Allocated memory over time"),
    el("p", { class: "note" }, "drag over a range to see its allocations; time since the first allocation"), drawn,
      tools(drawn, "memory", commandOf("memory_curve")),
    state.from ? button("Whole time", () => change({ from: "", to: "" })) : null,
      allocations(events, low, from, to)].filter(Boolean);
}

// What was allocated or released in a stretch of time; times since the curve began.
function allocations(events, low, from, to) {
  const isInside = (at) => at !== null && at >= from && at <= to;
  const since = (at) => at === null ? null : at - low;
  const rows = events.filter((row) => isInside(row.allocated_at_ns) || isInside(row.released_at_ns))
    .map((row) => ({ ...row, allocated_at_ns: since(row.allocated_at_ns), released_at_ns: since(row.released_at_ns) }));
  if (!rows.length) return null;
  const columns = ["name", "bytes", "allocated_at_ns", "released_at_ns", "held_ns"];
  return new Grid({ name: "memory_events", title: "Allocations in this range", rows,
    columns: columns.filter((name) => rows.some((row) => row[name] !== null)), command: commandOf("memory_events"),
    docs: FACTS.tables.memory_events.docs, sort: "-bytes" }).element;
}

function brushFrom(event, drawn, brush, { x, low, high, left, width }) {
  const box = drawn.getBoundingClientRect();
  const at = (client) => {
    const place = (client - box.left) * width / box.width;
    return Math.max(low, Math.min(high, low + (place - left) / (width - 20 - left) * (high - low)));
  };
  const first = at(event.clientX);
  let last = first;
  const move = (next) => {
    last = at(next.clientX);
    brush.setAttribute("x", x(Math.min(first, last)));
    brush.setAttribute("width", Math.max(1, x(Math.max(first, last)) - x(Math.min(first, last))));
  };
  drawn.addEventListener("pointermove", move);
  window.addEventListener("pointerup", () => {
    drawn.removeEventListener("pointermove", move);
    if (Math.abs(last - first) > (high - low) / 200) change({ from: Math.round(Math.min(first, last)),
      to: Math.round(Math.max(first, last)) });
  }, { once: true });
}
