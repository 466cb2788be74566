// The tab Compare: where the step time went from one run to the other, and what changed.

async function compareTab(place) {
  const [base, other] = FACTS.compared;
  place.append(el("h2", {}, `${clean(base)} → ${clean(other)}`));
  place.append(...FACTS.compared_said.map((text) => el("p", {}, clean(text))));
  const rows = (await rowsOf("run_waterfall")).filter((row) => row.difference_ns !== null);
  if (rows.length) place.append(...waterfall(rows));
  place.append(...await twoTimelines([base, other]));
  for (const [name, title, first] of [["run_difference", "What changed",
    ["item", "verdict", "difference_ns", "low_ns", "high_ns", "change_pct", "base_ns", "other_ns"]],
    ["run_waterfall", "Where the step time went", ["item", "kind", "verdict", "base_ns", "other_ns", "difference_ns"]],
    ["comparability", "Differences in how they were recorded", ["property", "base_value", "other_value", "same"]]]) {
    if (isThere(name)) place.append(await gridOf(name, title, { first }) ?? "");
  }
}

// A step of a rank in both runs, one below the other, each from its start: the step that is asked for, else the middle one.
async function twoTimelines(runs) {
  const ranks = await ranksAsked();
  const [steps, others] = runs.map((run) => stepsOf(run, ranks));
  const partner = (step) => others.find((other) => other.rank === step.rank && other.step === step.step)
    ?? others.find((other) => other.rank === step.rank && other.role === "middle");
  const pairs = steps.filter(partner);
  if (!pairs.length) return [];
  const named = (step) => [`${step.rank}/${step.step}`, [step.rank === null ? null : `rank ${step.rank}`,
    step.step === null ? "whole capture" : `step ${step.step}`].filter(Boolean).join(", ")];
  const chosen = pairs.find((step) => named(step)[0] === state.pair) ?? pairs.find((step) => step.role === "middle") ?? pairs[0];
  const { processes, timeline, details } = await timelineOf([chosen, partner(chosen)], false);
  timeline.draw();
  return [el("h3", {}, "The same step in both"), el("p", { class: "tools" },
    select("Step", pairs.map(named), named(chosen)[0], (pair) => change({ pair }))),
  timeline.element, legendOf(processes), details,
  el("p", { class: "tools" }, el("code", {}, `nsightlens show step_timeline${chosen.step === null ? ""
    : ` which_step=${chosen.step}`}`))];
}

// The steps of a run on the timeline, of its best tool.
function stepsOf(run, ranks) {
  const fits = FACTS.steps.filter((step) => step.run === run && (!ranks || ranks.has(step.rank)));
  const tool = (state.tool ? [state.tool] : BEST.timeline).find((one) => fits.some((step) => step.tool === one));
  return fits.filter((step) => step.tool === tool);
}

function waterfall(rows) {
  const whole = rows[0];
  const items = [...rows].sort((a, b) => Math.abs(b.difference_ns) - Math.abs(a.difference_ns)).slice(0, 20);
  const [width, left, each] = [chartWidth(), 260, 24];
  const [least, most] = extent([0, ...items.map((row) => row.difference_ns)]);
  const x = linear(Math.min(0, least), Math.max(0, most), left, width - 90);
  const bottom = items.length * each + 4;
  const bars = items.map((row, line) => {
    const [from, to] = [x(0), x(row.difference_ns)];
    const fill = row.difference_ns > 0 ? FACTS.slices.collective : FACTS.slices.gemm;
    const name = clean([row.kind, row.item].filter(Boolean).join(": "));
    return [mark(svg("rect", { x: Math.min(from, to), width: Math.max(1, Math.abs(to - from)), y: line * each + 3,
      height: each - 6, fill }),
      `${name}: ${duration(row.base_ns)} to ${duration(row.other_ns)}, ${row.verdict}`),
    words(short(name, 40), left - 8, line * each + 16, { "text-anchor": "end" }),
    words(`${row.difference_ns > 0 ? "+" : ""}${duration(row.difference_ns)}`, Math.max(from, to) + 5, line * each + 16)];
  });
  const drawn = figure("Where the change of the step comes from", width, bottom + 20,
    xAxis(x, ticks(Math.min(0, least), Math.max(0, most)), 0, bottom, duration), bars);
  const change_ns = whole.change_ns === null ? "" : `, ${whole.change_ns > 0 ? "+" : ""}${duration(whole.change_ns)}`;
  const some = items.length < rows.length ? `, the largest ${items.length} of ${rows.length}` : "";
  const steps = `${duration(whole.base_total_ns)} → ${duration(whole.other_total_ns)}${change_ns}`;
  return [el("p", {}, `Mean step in the waterfall: ${steps} (${whole.tool}, ${whole.unit}).`),
    el("p", { class: "note" }, `exclusive time of each item${some}; all items sum to the change of the step`), drawn,
      tools(drawn, "waterfall", commandOf("run_waterfall"))];
}
