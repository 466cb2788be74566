// The judged tree: a row for each branch and leaf, bars that sum to the window, and a column for each rank; many as a matrix.

const OUTSIDE = new Set(["start-up", "wind-down", "queued before the first GPU work"]);
const BAR_RANKS = 8; // with a column of bars each; more are cells of a matrix
const MATRIX_RANKS = 64;
const WORTH = 0.01; // of the window: smaller leaves are shown where their branch is open
const LEAVES = 3; // of a branch that is not open
const KERNELS_IN = new Set(["computing", "communication"]);

// The trees of a run by the tool of its verdict, or by the one that is asked for, of the ranks that the filter leaves.
async function treesOf(run) {
  const ranks = await ranksAsked();
  const rows = (await allRows("time_tree")).filter((row) => row.run === run && (!ranks || ranks.has(row.rank)));
  const verdict = (await allRows("verdict")).find((row) => row.run === run);
  const tool = rows.some((row) => row.tool === state.tool) ? state.tool : verdict?.tool;
  const trees = [];
  for (const row of rows.filter((each) => each.tool === tool)) {
    if (row.row_index === 0) trees.push({ row, whole: row.total_ns, paths: [], parts: new Map() });
    const tree = trees[trees.length - 1];
    const path = [...(row.parent_index ? tree.paths[row.parent_index] : []), ...(row.row_index ? [row.node] : [])];
    tree.paths[row.row_index] = path;
    if (!row.row_index) continue;
    const [key, before] = [JSON.stringify(path), tree.parts.get(JSON.stringify(path))?.total_ns ?? 0]; // processes share the GPU
    tree.parts.set(key, { ...row, total_ns: before + row.total_ns });
  }
  const several = (row) => trees.some((tree) => tree.row !== row && tree.row.rank === row.rank
    && tree.row.process_id === row.process_id);
  for (const tree of trees) {
    const gpu = several(tree.row) ? `GPU ${tree.row.device_id.split("gpu").pop()}` : null;
    tree.label = [whose(tree.row, trees.map((each) => each.row)), gpu].filter(Boolean).join(", ");
  }
  return trees;
}

// All trees as one: path -> its time and count over all of them, largest first, "others" last.
function united(trees) {
  const found = new Map();
  for (const { parts } of trees) {
    for (const [key, row] of parts) {
      const part = found.get(key) ?? found.set(key, { key, path: JSON.parse(key), ns: 0, count: null }).get(key);
      part.ns += row.total_ns;
      if (row.count !== null) part.count = (part.count ?? 0) + row.count;
    }
  }
  const isLast = (part) => part.path.at(-1) === "others";
  return [...found.values()].filter((part) => part.ns).sort((a, b) => isLast(a) - isLast(b) || b.ns - a.ns);
}

const isOpen = (path) => Boolean(state.part) && path.every((name, depth) => JSON.parse(state.part)[depth] === name);

// The rows that are shown, with where each begins: the branches, below each its leaves, then what lies outside of the window.
function treeLines(parts, whole) {
  const lines = [];
  const below = (path) => parts.filter((part) => part.path.length === path.length + 1
    && path.every((name, depth) => part.path[depth] === name));
  const add = (part, from) => {
    const [inner, open] = [below(part.path), isOpen(part.path)];
    lines.push({ ...part, from, open, inner: inner.length });
    let at = from;
    for (const [place, leaf] of inner.entries()) {
      const isWorth = part.path.length === 1 && place < LEAVES && leaf.ns >= WORTH * whole && leaf.path.at(-1) !== "others";
      if (open || isWorth) add(leaf, at);
      at += leaf.ns;
    }
  };
  let at = 0;
  const [outside, inside] = [true, false].map((is) => below([]).filter((part) => OUTSIDE.has(part.path[0]) === is));
  for (const part of inside) {
    add(part, at);
    at += part.ns;
  }
  for (const part of outside) if (part.ns >= WORTH * whole) add(part, 0);
  return { lines, small: outside.filter((part) => part.ns < WORTH * whole) };
}

const nodeName = (path) => {
  const node = path.at(-1);
  const kernel = KERNELS_IN.has(path[0]) ? KERNELS.get(node) : null;
  return kernel ? LABELS.get(kernel) : short(clean(FACTS.nodes[node] ?? node), 70);
};

// What a click on a row opens: its name, and the change of the page; null where there is nothing behind it.
function behind(path) {
  const [branch, cause, name] = path;
  const kernel = path.length === 2 && KERNELS_IN.has(branch) ? KERNELS.get(cause) : null;
  if (kernel) return ["kernel", { tab: "kernels", kernel }];
  if (branch === "communication" && isThere("straggler")) return ["collectives", { tab: "ranks" }];
  if (KERNELS_IN.has(branch)) return ["kernels", { tab: "kernels" }];
  if (branch === "copies") return isThere("memory_op_summary") ? ["copies", { tab: "host" }] : null;
  if (branch === "not recorded") return ["diagnostics", { tab: "data" }];
  if (FACTS.steps.length) return ["timeline", { tab: "timeline", find: name && name !== "others" ? name : "" }];
  return null;
}

async function timeTree(run) {
  const trees = await treesOf(run);
  if (!trees.length) return null;
  const whole = trees.reduce((sum, tree) => sum + tree.whole, 0);
  const parts = united(trees);
  const { lines, small } = treeLines(parts, whole);
  const shown = trees.length > 1 ? furthest(trees) : [];
  const title = "Where the time went";
  const outside = small.length ? `outside of it: ${small.map((part) => `${part.path[0]} ${duration(part.ns)}`).join(", ")}` : "";
  const left = shown.length && shown.length < trees.length
    ? `the ${shown.length} of ${trees.length} that differ most from the others have a column` : "";
  const note = [trees[0].row.tool, windowOf(trees), outside, left, ofRecorded(parts, whole), ignored("time_tree")]
    .filter(Boolean).join("; ");
  const heads = ["part", "time", "share", "count"].map((text, place) => el("th",
    { scope: "col", class: place ? "n" : null }, text));
  const body = [windowLine(parts, shown, whole), ...lines.map((line) => treeLine(line, shown, whole))];
  return el("section", { class: "grid tree" }, el("h3", {}, title), el("p", { class: "note" }, note),
    el("p", { class: "tools" }, el("code", {}, commandOf("time_tree")), button("CSV", () => save("time_tree.csv", "text/csv",
      treeCsv(parts, trees, whole)), { "aria-label": `Download ${title} as CSV` })),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
      el("table", { class: shown.length > BAR_RANKS ? "matrix" : shown.length ? "ranks" : null },
        el("caption", { class: "hidden" }, title),
        el("thead", {}, el("tr", {}, heads, el("th", { scope: "col", class: "bar" }, shown.length ? "all" : "of the window"),
          shown.map((tree, place) => el("th", { scope: "col", class: "bar", title: tree.label }, headOf(tree, shown, place))),
          el("th", { scope: "col" }, "behind it"))),
        el("tbody", {}, body))));
}

// Where much is not recorded, the verdict's shares are of the rest: the tree says both.
function ofRecorded(parts, whole) {
  const branches = parts.filter((part) => part.path.length === 1 && part.path[0] in FACTS.branches);
  const missing = branches.find((part) => part.path[0] === "not recorded")?.ns ?? 0;
  if (missing < 0.2 * whole) return "";
  return `of the recorded time: ${branches.filter((part) => part.path[0] !== "not recorded").map((part) =>
    `${nodeName(part.path)} ${share(100 * part.ns / (whole - missing))}`).join(", ")}`;
}

// The head of a column: in a matrix the number of every fourth rank, which is as much as there is room for.
function headOf(tree, shown, place) {
  if (shown.length <= BAR_RANKS) return tree.label;
  return place % 4 ? "" : String(tree.row.rank ?? place);
}

function windowOf(trees) {
  const steps = trees.reduce((sum, tree) => sum + (tree.row.count ?? 0), 0);
  const what = steps && trees.every((tree) => tree.row.count) ? `${number(steps)} steady steps` : "first to last GPU work";
  const whole = trees.reduce((sum, tree) => sum + tree.whole, 0);
  return `${what}, ${duration(whole)}${trees.length > 1 ? `, summed over ${trees.length} GPUs or ranks` : ""}`;
}

// The trees that have a column: where there are too many, those whose shares are furthest from the mean.
function furthest(trees) {
  if (trees.length <= MATRIX_RANKS) return trees;
  const keys = Object.keys(FACTS.branches).map((branch) => JSON.stringify([branch]));
  const shares = trees.map((tree) => keys.map((key) => (tree.parts.get(key)?.total_ns ?? 0) / (tree.whole || 1)));
  const means = keys.map((_, place) => shares.reduce((sum, each) => sum + each[place], 0) / trees.length);
  const away = new Map(trees.map((tree, place) => [tree,
    shares[place].reduce((sum, part, k) => sum + Math.abs(part - means[k]), 0)]));
  const kept = new Set([...trees].sort((a, b) => away.get(b) - away.get(a)).slice(0, MATRIX_RANKS));
  return trees.filter((tree) => kept.has(tree));
}

// Parts of a window side by side: [start, length, colour] in shares of it.
function strip(pieces, text, isThin = false) {
  const [y, height] = isThin ? [4, 8] : [1, 14];
  return svg("svg", { class: "strip", viewBox: "0 0 1000 16", preserveAspectRatio: "none", role: "img", "aria-label": text },
    svg("title", {}, text), pieces.filter(([, length]) => length > 0).map(([from, length, fill, opacity = 1]) => svg("rect",
      { x: 1000 * from, width: Math.max(2, 1000 * length), y, height, fill, "fill-opacity": opacity })));
}

const colourOf = (path) => FACTS.branches[path[0]] ?? colour("faint");

function windowLine(parts, shown, whole) {
  const branches = parts.filter((part) => part.path.length === 1 && part.path[0] in FACTS.branches);
  const stack = (nsOf, all) => {
    let at = 0;
    return branches.map((part) => {
      const from = at;
      at += nsOf(part);
      return [from / all, nsOf(part) / all, colourOf(part.path)];
    });
  };
  const longest = Math.max(...shown.map((tree) => tree.whole));
  const columns = shown.map((tree) => {
    const text = `${tree.label}: the window, ${duration(tree.whole)}`;
    return el("td", { class: "bar", title: text }, shown.length > BAR_RANKS ? null
      : [strip(stack((part) => tree.parts.get(part.key)?.total_ns ?? 0, longest), text), figureOf(tree.whole)]);
  });
  return el("tr", { class: "window" }, el("th", { scope: "row" }, "window"), el("td", { class: "n" }, duration(whole)),
    el("td", { class: "n" }, whole ? "100.0 %" : MISSING), el("td"),
    el("td", { class: "bar" }, strip(stack((part) => part.ns, whole || 1), "the window, by branch")), columns, el("td"));
}

const figureOf = (ns) => el("span", { class: "note" }, duration(ns));

function treeLine(line, shown, whole) {
  const { path, ns, key } = line;
  const isOutside = OUTSIDE.has(path[0]);
  const [name, target] = [nodeName(path), behind(path)];
  const opens = (more) => target ? { onclick: () => change({ ...target[1], ...more }) } : {};
  const cellOf = (title, more) => ({ class: target ? "bar to" : "bar", title, ...opens(more) });
  const piece = (from, length) => [[from, length, colourOf(path), path.length > 1 ? 0.65 : 1]];
  const longest = Math.max(...shown.map((tree) => tree.whole));
  const columns = shown.map((tree) => {
    const own = tree.parts.get(key)?.total_ns ?? 0;
    const text = `${tree.label}: ${name} ${duration(own)}`;
    return el("td", cellOf(text, { rank: tree.row.rank ?? "" }), shown.length > BAR_RANKS
      ? strip([[0, 1, colourOf(path), tree.whole ? own / tree.whole : 0]], text)
      : [strip(piece(0, own / longest), text, path.length > 1), figureOf(own)]);
  });
  const drawn = isOutside ? piece(0, Math.min(1, ns / whole)) : piece(line.from / whole, ns / whole);
  const text = `${name} ${duration(ns)}`;
  return el("tr", { class: `depth${path.length}` },
    el("th", { scope: "row", title: clean(path.at(-1)) }, line.inner ? foldOf(line, name) : name),
    el("td", { class: "n" }, duration(ns)), el("td", { class: "n" }, isOutside || !whole ? MISSING : share(100 * ns / whole)),
    el("td", { class: "n" }, line.count === null ? "" : number(line.count)),
    el("td", cellOf(text, {}), strip(drawn, text, path.length > 1)), columns,
    el("td", {}, target ? button(target[0], opens({}).onclick, { class: "link", "aria-label": `${target[0]} of ${name}` }) : ""));
}

// Opens a part, so that all of its leaves are shown, or closes it.
function foldOf({ path, key, open }, name) {
  const closed = path.length > 1 ? JSON.stringify(path.slice(0, -1)) : "";
  return button(`${open ? "▾" : "▸"} ${name}`, () => change({ part: open ? closed : key }),
    { class: "link", "aria-expanded": String(open) });
}

function treeCsv(parts, trees, whole) {
  const columns = ["part", "total_ns", "share_pct", "count", ...trees.map((tree) => tree.label)];
  const rows = parts.map((part) => ({ part: part.path.join(" › "), total_ns: part.ns, count: part.count,
    share_pct: OUTSIDE.has(part.path[0]) || !whole ? null : 100 * part.ns / whole,
    ...Object.fromEntries(trees.map((tree) => [tree.label, tree.parts.get(part.key)?.total_ns ?? 0])) }));
  return csv(columns, rows);
}
