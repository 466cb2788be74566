// The tab Roofline: kernels under their roofs; the larger a mark, the more time it stands for.

async function rooflineTab(place) {
  const isTrue = isThere("true_roofline") && state.roofline !== "ncu";
  const name = isTrue ? "true_roofline" : "roofline";
  const all = (await rowsOf(name)).map((row) => ({ ...row, ...roofOf(row) }));
  const times = [["true_roofline", "over undisturbed times"], ["ncu", "over ncu's times"]];
  const offered = (column) => [...new Set(all.map((row) => row[column]))].sort().map((value) => [value, value]);
  const level = offered("level").some(([value]) => value === state.level) ? state.level
    : offered("level").find(([value]) => value === "dram")?.[0] ?? offered("level")[0]?.[0];
  const hasMain = all.some((row) => row.level === level && row.is_main);
  place.append(el("p", { class: "tools" },
    isThere("true_roofline") && isThere("roofline") ? select("Time", times, isTrue ? "true_roofline" : "ncu",
      (roofline) => change({ roofline })) : null,
    select("Level", offered("level"), level, (value) => change({ level: value })),
    select("Precision", [["", hasMain ? "main of each kernel" : "all"], ...offered("precision")], state.precision ?? "",
      (precision) => change({ precision }))));
  const fits = (row) => row.level === level && (state.precision ? row.precision === state.precision : row.is_main || !hasMain);
  const rows = all.filter(fits);
  if (rows.length) place.append(...rooflineChart(rows, isTrue, name));
  else place.append(el("p", { class: "note" }, "No kernel has such a point."));
  const grid = await gridOf(name, "Kernels", { keep: fits, sort: "-duration_ns",
    first: ["name", "precision", "roof_pct", "datasheet_roof_pct", "duration_ns", "launches", "arithmetic_intensity",
      "achieved_flop_per_s"] });
  place.append(grid ?? "");
}

function rooflineChart(rows, isTrue, name) {
  const [width, height, left, bottom] = [chartWidth(), 460, 110, 420];
  const xs = rows.flatMap((row) => [row.arithmetic_intensity, row.flat && row.slope ? row.flat / row.slope : null])
    .filter((value) => value > 0);
  const ys = rows.flatMap((row) => [row.achieved_flop_per_s, row.flat, row.ncu_achieved_flop_per_s]).filter((value) => value > 0);
  const [lowX, highX] = extent(xs);
  const [lowY, highY] = extent(ys);
  const x = logarithmic(lowX / 3, highX * 4, left, width - 30);
  const y = logarithmic(lowY / 3, highY * 2, bottom, 10);
  const roofs = new Map(rows.filter((row) => row.flat || row.slope).map((row) =>
    [[row.precision, row.flat?.toPrecision(3), row.slope?.toPrecision(3), row.isSheet].join("/"), row]));
  const lines = [...roofs.values()].map((row) => roofLine(row, x, y, lowX / 3, highX * 4));
  const longest = Math.max(...rows.map((row) => row.duration_ns * (row.launches || 1)));
  const marks = rows.map((row) => rooflineMark(row, x, y, longest, isTrue));
  const drawn = figure("Roofline", width, height, yAxis(y, decades(lowY / 3, highY * 2), left, width - 30,
    (value) => rate(value, "FLOP/s")),
    xAxis(x, decades(lowX / 3, highX * 4), 10, bottom, (value) => String(Number(value.toPrecision(2)))), lines, marks,
    words("operations per byte", (left + width) / 2, height - 8, { "text-anchor": "middle" }));
  const ncus = isTrue ? "; a thin line leads from ncu's own point" : "";
  const note = `Bubble size: total time. Hover or focus for figures${ncus}.`;
  const families = [...new Set(rows.map((row) => row.family ?? "other"))];
  return [el("p", { class: "note" }, note), ...roofNotes(rows), legend(FACTS.slices, families), drawn,
    tools(drawn, "roofline", commandOf(name))];
}

// The roof of a row: ncu's peaks, and where ncu has none, the datasheet's.
function roofOf(row) {
  const flat = row.peak_flop_per_s || row.datasheet_peak_flop_per_s;
  const slope = row.peak_bytes_per_s || row.datasheet_peak_bytes_per_s;
  const isSheet = Boolean(flat && !row.peak_flop_per_s || slope && !row.peak_bytes_per_s);
  return { flat, slope, isSheet, share: row.roof_pct ?? row.datasheet_roof_pct };
}

// Whose the dashed roofs are, and why a kernel has none.
function roofNotes(rows) {
  const named = (found, of) => [...new Set(found.map(of))].filter(Boolean).map(clean).join(", ");
  const sheet = rows.filter((row) => row.isSheet);
  const none = rows.filter((row) => !row.flat || !row.slope);
  const unknown = none.filter((row) => row.gpu && !row.datasheet_gpu);
  const unlisted = none.filter((row) => row.datasheet_gpu);
  const said = [
    sheet.length && `dashed: the roofs of the datasheet of ${named(sheet, (row) => row.datasheet_gpu)}, as ncu measured none`,
    none.some((row) => !row.gpu && !row.datasheet_gpu)
      && "no roof where the capture does not name its GPU: nsightlens roofline --gpu NAME",
    unknown.length && `no roof: no datasheet for ${named(unknown, (row) => row.gpu)}`,
    unlisted.length && `no roof for ${named(unlisted, (row) => row.flat ? row.level : row.precision)}: ` +
      `the datasheet of ${named(unlisted, (row) => row.datasheet_gpu)} has none`];
  return said.filter(Boolean).map((text) => el("p", { class: "note" }, text));
}

function roofLine(row, x, y, low, high) {
  const ridge = row.flat && row.slope ? row.flat / row.slope : row.flat ? low : high;
  const points = [[low, row.slope ? low * row.slope : null], [ridge, row.flat || ridge * row.slope], [high, row.flat]]
    .filter(([, value]) => value);
  const text = [row.flat ? `${row.precision}, ${rate(row.flat, "FLOP/s")}` : null,
    row.slope ? `${row.level}, ${rate(row.slope, "B/s")}` : null, row.isSheet ? "datasheet" : null].filter(Boolean).join("; ");
  return svg("g", { class: "roof" }, svg("polyline", { points: points.map(([at, value]) => `${x(at)},${y(value)}`).join(" "),
    fill: "none", stroke: colour("faint"), "stroke-width": 1.3, "stroke-dasharray": row.isSheet ? "6 3" : null }),
    words(text, x(high) - 4, y(points[points.length - 1][1]) - 5, { "text-anchor": "end", fill: colour("faint") }));
}

function rooflineMark(row, x, y, longest, isTrue) {
  const [cx, cy] = [x(row.arithmetic_intensity), y(row.achieved_flop_per_s)];
  const r = Math.max(3, 16 * Math.sqrt(row.duration_ns * (row.launches || 1) / longest));
  const arrow = isTrue && row.ncu_achieved_flop_per_s ? svg("line", { x1: cx, x2: cx, y1: y(row.ncu_achieved_flop_per_s),
    y2: cy, stroke: colour("ink"), "stroke-width": 1 }) : null;
  const dot = svg("circle", { cx, cy, r, fill: FACTS.slices[row.family] ?? FACTS.slices.other, "fill-opacity": 0.75,
    stroke: colour("ink"), "stroke-width": 0.7 });
  const text = `${short(clean(kernelName(row.name)), 80)}: ${rate(row.achieved_flop_per_s, "FLOP/s")}, ` +
    `${number(row.arithmetic_intensity)} operations per byte, ${share(row.share)} of its roof, ` +
    `${duration(row.duration_ns)} × ${number(row.launches)}`;
  return mark(svg("g", {}, arrow, dot), text, () => change({ tab: "kernels", kernel: row.name }));
}
