// The tabs, the filters, and what happens when either changes.

const CAPTURE = "the whole capture";
// Name, text, what draws it, whether it has data, and of what time its figures are.
const TABS = [
  ["overview", "Overview", overviewTab, () => true],
  ["operators", "Operators", operatorsTab, () => isThere("operator_summary"), CAPTURE],
  ["kernels", "Kernels", kernelsTab, () => isThere("kernel_summary"), CAPTURE],
  ["timeline", "Timeline", timelineTab, () => FACTS.steps.length > 0],
  ["ranks", "Ranks", ranksTab, () => isThere("straggler") || isThere("rank_skew"),
    "each step from its own start to its end, and all collectives of the capture"],
  ["memory", "Memory", memoryTab, () => isThere("memory_curve") || isThere("memory_peak"), CAPTURE],
  ["modules", "Modules", modulesTab, () => isThere("module_summary"), CAPTURE],
  ["roofline", "Roofline", rooflineTab, () => isThere("true_roofline") || isThere("roofline"), CAPTURE],
  ["host", "Host", hostTab, () => HOST.some(([name]) => isThere(name)), CAPTURE],
  ["compare", "Compare", compareTab, () => FACTS.compared.length > 0],
  ["data", "Data", dataTab, () => true],
];
const shownTabs = TABS.filter(([, , , hasData]) => hasData());
let drawing = 0;

// A report that compares opens with what it was made for.
const tabAsked = () => shownTabs.find(([name]) => name === state.tab)
  ?? shownTabs.find(([name]) => name === "compare") ?? shownTabs[0];

function drawTabs() {
  const nav = document.getElementById("tabs");
  const [asked] = tabAsked();
  if (!nav.children.length) nav.append(...shownTabs.map(([name, text]) => button(text, () => change({ tab: name }),
    { role: "tab", id: `tab-${name}`, "aria-controls": name })));
  for (const [name] of shownTabs) filled(document.getElementById(`tab-${name}`),
    { "aria-selected": String(name === asked), tabindex: name === asked ? 0 : -1 }, []);
}

document.getElementById("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const next = (shownTabs.indexOf(tabAsked()) + step + shownTabs.length) % shownTabs.length;
  change({ tab: shownTabs[next][0] });
  document.getElementById(`tab-${shownTabs[next][0]}`).focus();
});

async function drawPage() {
  const mine = ++drawing;
  const [name, , show, , window_] = tabAsked();
  for (const section of document.querySelectorAll("section.tab")) section.hidden = section.id !== name;
  const place = document.getElementById(name);
  if (name === "overview") {
    await show(place);
    return done(name);
  }
  const fresh = el("div");
  place.setAttribute("aria-busy", "true");
  await show(fresh);
  if (mine === drawing) {
    if (!fresh.querySelector("table, svg, canvas, p")) fresh.append(el("p", { class: "note" }, "Nothing matches the filters."));
    const judged = Object.values(FACTS.windows).filter(Boolean);
    if (window_ && judged.length) fresh.prepend(el("p", { class: "note" }, `Of ${window_}.`,
      judged.length === 1 ? ` The tree on the Overview is of ${judged[0]}.` : " The tree on the Overview is of its own window."));
    place.replaceChildren(fresh);
    place.removeAttribute("aria-busy");
    window.nsightlensTimeline?.draw();
    done(name);
  }
}

// A control is known by its kind and its words: after a change by the keyboard, the focus is there again.
const wordsOf = (control) => `${control.tagName} ${control.getAttribute("aria-label") ?? (control.closest("label") ?? control)
  .textContent.replace(/^[▸▾] /, "")}`;

function focusAgain(wanted) {
  if (!wanted || document.activeElement !== document.body) return;
  const controls = ":is(button, select, input, canvas)";
  [...document.querySelectorAll(`#filters ${controls}, section.tab:not([hidden]) ${controls}`)]
    .find((control) => wordsOf(control) === wanted)?.focus();
}

function done(name) {
  document.body.dataset.ready = name;
}

async function drawFilters() {
  const overview = await allRows("profile_overview");
  const ranks = [...new Set((await Promise.all(["time_tree", "step_breakdown",
    "kernel_by_rank"].map(allRows))).flat().map((row) => row.rank))]
    .filter((rank) => rank !== null).sort((a, b) => a - b);
  const stragglers = (await allRows("straggler")).some((row) => row.verdict === "straggler");
  const named = (values) => [...new Set(values)].filter(Boolean).map((value) => [value, clean(value)]);
  const [runs, tools] = [named(FACTS.runs), named(overview.map((row) => row.tool))];
  document.getElementById("filters").replaceChildren(...[
    runs.length > 1 ? select("Run", [["", "all"], ...runs], state.run ?? "", (run) => change({ run })) : null,
    ranks.length > 1 ? select("Rank", [["", "all"], ...(stragglers ? [["stragglers", "stragglers"]] : []),
      ...ranks.map((rank) => [rank, rank])],
      state.rank ?? "", (rank) => change({ rank })) : null,
    tools.length > 1 ? select("Tool", [["", "best for each table"], ...tools], state.tool ?? "", (tool) => change({ tool }))
      : null,
    FACTS.steps.some((step) => step.step !== null) ? el("label", {}, "Steps ",
      el("input", { type: "text", size: 8, placeholder: "all, or 3-5", value: state.steps ?? "",
      onchange: (event) => change({ steps: event.target.value }) })) : null,
    Object.keys(state).some((key) => key !== "tab") ? button("Clear",
      () => change(Object.fromEntries(Object.keys(state).filter((key) => key !== "tab").map((key) => [key, ""])))) : null,
  ].filter(Boolean));
}

async function show(changes = null) {
  const isTyping = changes && Object.keys(changes).length === 1 && "find" in changes;
  if (isTyping) return;
  const focused = document.activeElement && document.activeElement !== document.body ? wordsOf(document.activeElement) : null;
  await named;
  drawTabs();
  await drawFilters();
  await drawPage();
  focusAgain(focused);
  if (changes && (changes.op || changes.kernel)) document.getElementById("detail")?.scrollIntoView({ block: "nearest" });
}

readState();
const named = loadNames();
const main = document.querySelector("main");
for (const [name, text] of shownTabs.slice(1)) main.append(el("section",
  { id: name, class: "tab", role: "tabpanel", "aria-labelledby": `tab-${name}`, hidden: true }, text));
const leftOut = FACTS.left_out.length ? `Left out of this file: ${FACTS.left_out.join("; ")}.` : "";
document.getElementById("left-out").textContent = clean(leftOut);
listeners.push(show);
window.addEventListener("hashchange", () => { readState(); show(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show());
show();
