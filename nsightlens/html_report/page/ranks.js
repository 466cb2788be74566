// The tab Ranks: rank by step as a heat map, who holds up whom, and the collectives.

const MEASURES = [["step_breakdown", "step_ns", "step"], ["step_breakdown", "communication_ns", "communication"],
  ["rank_skew", "wait_ns", "waiting for others"], ["rank_skew", "others_wait_ns", "others wait for it"],
  ["step_breakdown", "kernel_ns", "kernels"], ["step_breakdown", "cpu_exec_ns", "operators on the host"],
    ["step_breakdown", "other_ns", "other"]];
const MOST_RANKS = 64;
const SQUARE_RANKS = 16;

async function ranksTab(place) {
  const measures = MEASURES.filter(([table]) => isThere(table));
  const asked = measures.find(([, column]) => column === state.measure) ?? measures[0];
  if (asked) {
    place.append(el("p", { class: "tools" }, select("Measure", measures.map(([, column, text]) => [column, text]), asked[1],
      (measure) => change({ measure }))));
    const rows = (await rowsOf(asked[0])).filter((row) => row.rank !== null && row[asked[1]] !== null);
    if (rows.length) place.append(...heatMap(rows, asked));
  }
  const stragglers = await gridOf("straggler", "Who the others wait for", { sort: "-others_wait_ns",
    first: ["rank", "verdict", "others_wait_ns", "times_last", "collectives", "wait_ns", "caused_delay_ns"] });
  const clocks = await gridOf("rank_clock", "Clock offset of each rank",
    { first: ["rank", "offset_ns", "uncertainty_ns"] });
  const groups = await gridOf("communicator_summary", "Process groups compared with their peers",
    { first: ["group_name", "members", "verdict", "collective", "message_bytes", "calls", "transfer_ns", "peers_ns",
      "excess_ns"] });
  const shares = await gridOf("distributed_overview", "Computation and communication of each step", { first: ["rank", "step",
    "computation_ns", "overlapping_ns", "communication_ns", "other_ns", "synchronizing_ns", "transfer_ns"] });
  place.append(...[stragglers, groups, shares, await collectiveTable(), await gridOf("collective_summary",
    "Collectives by operation", { first: ["rank", "operation", "calls", "latency_ns", "transfer_ns"], sort: "-latency_ns" }),
    clocks].filter(Boolean));
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

// A row for each rank and a column for each step; many ranks of one step are a square, in order.
function heatMap(rows, [table, column, text]) {
  const ranks = [...new Set(rows.map((row) => row.rank))].sort((a, b) => a - b);
  const steps = [...new Set(rows.map((row) => row.step))].sort((a, b) => a - b);
  const isSquare = steps.length === 1 && ranks.length > SQUARE_RANKS;
  const values = new Map(rows.map((row) => [`${row.rank}/${row.step}`, row]));
  const of = (rank) => steps.map((step) => values.get(`${rank}/${step}`)?.[column]).filter((value) => value !== undefined);
  const middle = median(rows.map((row) => row[column]));
  const away = (rank) => Math.max(...of(rank).map((value) => Math.abs(value - middle)));
  const shown = isSquare || ranks.length <= MOST_RANKS ? ranks
    : [...ranks].sort((a, b) => away(b) - away(a)).slice(0, MOST_RANKS);
  const [low, high] = extent(rows.map((row) => row[column]));
  const cellOf = (rank, step, box) => {
    const row = values.get(`${rank}/${step}`);
    if (!row) return null;
    return mark(svg("rect", { ...box, fill: shade((row[column] - low) / (high - low || 1)) }),
      `rank ${rank}${step === null ? "" : `, step ${step}`}: ${text} ${duration(row[column])}`,
      () => change({ tab: "timeline", rank, step: step ?? "", run: row.run, steps: "" }));
  };
  const title = `${text} by rank and step`;
  const drawn = isSquare ? squareOf(title, shown, (rank, box) => cellOf(rank, steps[0], box))
    : gridOfSteps(title, shown, steps, cellOf);
  const left_out = ranks.length - shown.length;
  const note = `${rows[0].tool}; pale ${duration(low)}, dark ${duration(high)}, median ${duration(middle)}` +
    (left_out ? `; the ${shown.length} ranks furthest from the median, ${left_out} others are left out` : "");
  return [el("h3", {}, `${text[0].toUpperCase()}${text.slice(1)}, by rank and step`), el("p", { class: "note" }, note),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": text }, drawn),
      tools(drawn, "ranks", commandOf(table))];
}

function gridOfSteps(title, ranks, steps, cellOf) {
  const [left, each] = [70, Math.max(8, Math.min(64, (chartWidth() - 90) / steps.length))];
  const cells = ranks.flatMap((rank, line) => steps.map((step, place) => cellOf(rank, step,
    { x: left + place * each, y: 20 + line * 18, width: each - 1, height: 17 })));
  const labels = [...ranks.map((rank, line) => words(`rank ${rank}`, left - 6, 33 + line * 18, { "text-anchor": "end" })),
    ...steps.filter((_, place) => place % Math.ceil(40 / each) === 0).map((step) => words(String(step ?? ""),
      left + steps.indexOf(step) * each, 14))];
  return figure(title, left + steps.length * each + 20, 30 + ranks.length * 18, labels, cells.filter(Boolean));
}

// Ranks line by line, as many on each as fit of 8, 16, 32.
function squareOf(title, ranks, cellOf) {
  const [left, wide, high] = [70, 36, 20];
  const across = [32, 16, 8].find((count) => count * count <= ranks.length * 2 && left + count * wide < chartWidth()) ?? 8;
  const cells = ranks.map((rank, place) => cellOf(rank, { x: left + place % across * wide,
    y: 4 + Math.floor(place / across) * high, width: wide - 1, height: high - 1 }));
  const labels = ranks.filter((_, place) => place % across === 0).map((rank, line) => words(`rank ${rank}`, left - 6,
    18 + line * high, { "text-anchor": "end" }));
  return figure(title, left + across * wide + 20, 10 + Math.ceil(ranks.length / across) * high, labels, cells.filter(Boolean));
}

// From pale to dark, even to the eye and without red and green.
function shade(part) {
  const [from, to] = [[222, 235, 247], [8, 48, 107]];
  return `rgb(${from.map((low, place) => Math.round(low + (to[place] - low) * part)).join(",")})`;
}
