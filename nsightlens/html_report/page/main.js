// The tabs, the filters, and what happens when either changes.

const TABS = [
  ["overview", "Overview", overviewTab, () => true],
  ["operators", "Operators", operatorsTab, () => isThere("operator_summary")],
  ["kernels", "Kernels", kernelsTab, () => isThere("kernel_summary")],
  ["timeline", "Timeline", timelineTab, () => FACTS.steps.length > 0],
  ["ranks", "Ranks", ranksTab, () => isThere("straggler") || isThere("rank_skew")],
  ["memory", "Memory", memoryTab, () => isThere("memory_curve") || isThere("memory_peak")],
  ["modules", "Modules", modulesTab, () => isThere("module_summary")],
  ["roofline", "Roofline", rooflineTab, () => isThere("true_roofline") || isThere("roofline")],
  ["host", "Host", hostTab, () => HOST.some(([name]) => isThere(name))],
  ["compare", "Compare", compareTab, () => FACTS.compared.length > 0],
  ["data", "Data", dataTab, () => true],
];
const shownTabs = TABS.filter(([, , , hasData]) => hasData());
let drawing = 0;

const tabAsked = () => shownTabs.find(([name]) => name === state.tab) ?? shownTabs[0];

function drawTabs() {
  const nav = document.getElementById("tabs");
  const [asked] = tabAsked();
  nav.replaceChildren(...shownTabs.map(([name, text]) => button(text, () => change({ tab: name }),
    { role: "tab", id: `tab-${name}`,
    "aria-selected": String(name === asked), "aria-controls": name, tabindex: name === asked ? 0 : -1 })));
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
  const [name, , show] = tabAsked();
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
    place.replaceChildren(fresh);
    place.removeAttribute("aria-busy");
    window.nsightlensTimeline?.draw();
    done(name);
  }
}

function done(name) {
  document.body.dataset.ready = name;
}

async function drawFilters() {
  const overview = await allRows("profile_overview");
  const ranks = [...new Set((await Promise.all(["busy_time", "step_breakdown",
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
  const focused = document.activeElement?.id;
  drawTabs();
  await drawFilters();
  await drawPage();
  if (focused?.startsWith("tab-")) document.getElementById(focused)?.focus();
  if (changes && (changes.op || changes.kernel)) document.getElementById("detail")?.scrollIntoView({ block: "nearest" });
}

readState();
const main = document.querySelector("main");
for (const [name, text] of shownTabs.slice(1)) main.append(el("section",
  { id: name, class: "tab", role: "tabpanel", "aria-labelledby": `tab-${name}`, hidden: true }, text));
const leftOut = FACTS.left_out.length ? `Left out of this file: ${FACTS.left_out.join("; ")}.` : "";
document.getElementById("left-out").textContent = clean(leftOut);
listeners.push(show);
window.addEventListener("hashchange", () => { readState(); show(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show());
show();
