// The tab Timeline: one step at a time, of one rank or of several below each other, from each step's
// start or on one clock.

const MOST_PROCESSES = 64;

async function timelineTab(place) {
  const ranks = await ranksAsked();
  const steps = chosenSteps(ranks);
  const offered = [...new Set(steps.map((step) => step.step))].sort((a, b) => a - b);
  const middle = steps.find((step) => step.role === "middle") ?? steps[0];
  if (!middle) {
    place.append(el("p", { class: "note" }, "No step of the timeline matches the filters."));
    return;
  }
  const wanted = offered.includes(Number(state.step)) ? Number(state.step) : middle.step;
  const shown = steps.filter((step) => step.step === wanted).slice(0, MOST_PROCESSES);
  const clock = clockOf(shown);
  const isByClock = clock !== null && state.align === "clock";
  const { processes, timeline, details } = await timelineOf(shown, isByClock);
  const results = el("div");
  place.append(controls(offered, wanted, timeline, results, clock), results,
    ...(isByClock ? [el("p", { class: "note" }, clock)] : []), timeline.element, legendOf(processes), details,
    el("p", { class: "tools" }, el("code", {},
      `nsightlens show step_timeline${wanted === null ? "" : ` which_step=${wanted}`}`), " The whole capture: ",
      el("code", {}, "nsightlens export perfetto -o trace.json.gz"), button("PNG", () => timeline.canvas.toBlob(
        (blob) => save("timeline.png", "image/png", blob)), { "aria-label": "Download the timeline as PNG" })));
  timeline.draw();
  if (state.find) findSlices(state.find, timeline, results);
}

// The steps below each other: from their starts, or each as much later as it began on the common clock.
async function timelineOf(shown, isByClock) {
  const first = isByClock ? Math.min(...shown.map((step) => step.clock_ns)) : 0;
  const processes = await Promise.all(shown.map(async (step) => {
    const table = await loadStep(step);
    const late = isByClock ? step.clock_ns - first : 0;
    return { step: { ...step, late }, table: late ? table.with("start_ns", (start) => start + late) : table };
  }));
  const details = el("aside", { class: "details", "aria-live": "polite" },
    el("p", { class: "note" }, "GPU busy: pale with any work, strong in kernels that compute (no copies, no collectives)."));
  const open = new Set(processes.length < 3 ? processes.keys() : []);
  const timeline = new Timeline(processes, open, (chosen) => describe(details, chosen, timeline),
    (area) => describeArea(details, area));
  window.nsightlensTimeline = timeline;
  return { processes, timeline, details };
}

const legendOf = (processes) => legend(FACTS.slices, KINDS.filter((_, kind) => processes.some(
  ({ table }) => table.columns.get("kind").numbers.includes(kind))));

// Whose clock the steps have in common, and how far the others may be off; null where they have none.
function clockOf(shown) {
  const [first] = shown;
  if (shown.length < 2 || !first.clock || shown.some((step) => step.clock !== first.clock)) return null;
  const errors = shown.map((step) => step.clock_error_ns).filter((error) => error !== null);
  return `on the clock of ${clean(first.clock)}` + (errors.length ? `, ± ${duration(Math.max(...errors))}` : "");
}

function chosenSteps(ranks) {
  const asked = numbers(state.steps);
  const fits = FACTS.steps.filter((step) => (!state.run || step.run === state.run) && (!ranks || ranks.has(step.rank)) &&
    (!asked || asked.has(step.step)));
  const tools = state.tool ? [state.tool] : BEST.timeline;
  const best = new Map();
  for (const step of fits) {
    const rank = tools.indexOf(step.tool);
    if (rank >= 0 && !(best.get(step.run) < rank)) best.set(step.run, rank);
  }
  return fits.filter((step) => tools.indexOf(step.tool) === best.get(step.run));
}

function controls(offered, wanted, timeline, results, clock) {
  const named = offered.filter((step) => step !== null).map((step) => [step, `step ${step}`]);
  return el("p", { class: "tools" },
    named.length ? select("Step", named, wanted, (step) => change({ step })) : null,
    clock ? select("Align", [["step", "each step's start"], ["clock", "clock"]], state.align === "clock" ? "clock" : "step",
      (align) => change({ align })) : null,
    search("Find", state.find ?? "", (text) => { change({ find: text }); findSlices(text, timeline, results); }),
    button("−", () => timeline.zoom(1.5), { "aria-label": "Zoom out" }),
      button("+", () => timeline.zoom(0.6), { "aria-label": "Zoom in" }),
    button("Show all", () => timeline.show(0, timeline.lanes.length)),
    button("Sum", () => timeline.cover([GUTTER, RULER], [timeline.element.clientWidth, timeline.height]),
      { "aria-label": "Sum what is in view" }),
    el("span", { class: "note" }, "drag to move, with Shift to sum; Ctrl and wheel to zoom; a click on a rank opens it, " +
      "on a slice its figures"));
}

// Highlight slices whose name or operator has the text, and list the longest.
function findSlices(text, timeline, results) {
  results.replaceChildren();
  timeline.found = null;
  if (text) {
    const wanted = text.toLowerCase();
    const names = timeline.processes[0].table.columns.get("name").words;
    timeline.found = new Set(names.flatMap((name, place) => name.toLowerCase().includes(wanted) ? [place] : []));
    const hits = timeline.processes.flatMap(({ table }, process) => {
      const rows = [];
      for (let row = 0; row < table.rows; row++) if (isFound(table, row, timeline.found)) rows.push({ process, row, table });
      return rows;
    }).sort((a, b) => b.table.value("duration_ns", b.row) - a.table.value("duration_ns", a.row));
    results.append(el("p", { class: "note", role: "status" }, `${number(hits.length)} slices match; the longest:`),
      el("ol", { class: "hits" }, hits.slice(0, 8).map(({ process, row, table }) => el("li", {},
        button(`${short(clean(kernelName(table.value("name", row)) ?? table.value("op", row)), 90)}, ` +
          duration(table.value("duration_ns", row)), () => timeline.goTo(process, row), { class: "link" })))));
  }
  timeline.draw();
}

const isFound = (table, row, words) => ["name", "op"].map((name) => table.columns.get(name))
  .some((column) => !column.nulls?.[row] && words.has(column.numbers[row]));

function describe(place, chosen, timeline) {
  if (!chosen) {
    place.replaceChildren(el("p", { class: "note" }, "Nothing was recorded there."));
    return;
  }
  const { table, row, process } = chosen;
  const call = table.value("launched_by", row);
  const name = table.value("name", row);
  const facts = { name: kernelName(name) === name ? null : name, kind: KINDS[table.value("kind", row)],
    start: `${exact(table.value("start_ns", row) - (chosen.step.late ?? 0))} after the step's start`,
    duration: exact(table.value("duration_ns", row)), operator: table.value("op", row),
      shapes: table.value("shapes", row) };
  const pieces = table.value("pieces", row);
  place.replaceChildren(
    el("h3", {}, pieces > 1 ? `${number(pieces)} short slices, drawn as one` : clean(kernelName(name) ?? facts.kind)),
    el("dl", {}, Object.entries(facts).filter(([, text]) => text).map(([name, text]) => [el("dt", {}, name),
      el("dd", {}, clean(text))])),
    ...(call === null ? [] : [button("Go to the call that launched it", () => {
      if (!timeline.open.has(process)) timeline.toggle(process);
      timeline.goTo(process, call);
    })]));
}
