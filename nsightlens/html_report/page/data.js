// The tables of the page, unpacked when they are first used, and the rows that the filters leave.

const BEST = {
  timeline: ["nsys", "kineto", "ncu", "steps"],
  operators: ["kineto", "nsys", "ncu", "steps"],
};
const loading = new Map();

const isThere = (name) => name in FACTS.tables;
const commandOf = (name) => FACTS.tables[name].command;

function load(name, words) {
  if (!loading.has(name)) loading.set(name, unpacked(document.getElementById(`data-${name}`).textContent, words));
  return loading.get(name);
}

async function loadStep(step) {
  const words = (await load("words")).columns.get("word").words;
  return load(step.table, words);
}

// Numbers written as 3, 0,2 or 5-7; null where nothing is asked for.
function numbers(text) {
  if (!text) return null;
  const found = new Set();
  for (const part of text.split(",")) {
    const [first, last] = part.split("-").map((end) => parseInt(end, 10));
    for (let value = first; value <= (last ?? first) && found.size < 10000; value++) found.add(value);
  }
  return found;
}

async function ranksAsked() {
  if (state.rank !== "stragglers") return numbers(state.rank);
  const found = new Set();
  for (const row of await allRows("straggler")) if (row.verdict === "straggler") found.add(row.rank);
  return found;
}

async function allRows(name) {
  if (!isThere(name)) return [];
  const table = await load(name);
  return Array.from({ length: table.rows }, (_, row) => table.row(row));
}

// The numbers of the rows of a table under the filters; without a chosen tool, those of each run's best one.
async function chosen(table, order = BEST.timeline) {
  const ranks = table.has("rank") ? await ranksAsked() : null;
  const steps = table.has("step") ? numbers(state.steps) : null;
  const kept = [];
  for (let row = 0; row < table.rows; row++) {
    if (state.run && table.has("run") && table.value("run", row) !== state.run) continue;
    if (ranks && !ranks.has(table.value("rank", row))) continue;
    if (steps && !steps.has(table.value("step", row))) continue;
    kept.push(row);
  }
  return table.has("tool") ? ofTool(table, kept, order) : kept;
}

function ofTool(table, rows, order) {
  if (state.tool) return rows.filter((row) => table.value("tool", row) === state.tool);
  const best = new Map();
  for (const row of rows) {
    const run = table.value("run", row);
    const place = order.indexOf(table.value("tool", row));
    if (!best.has(run) || place < best.get(run)) best.set(run, place);
  }
  return rows.filter((row) => order.indexOf(table.value("tool", row)) === best.get(table.value("run", row)));
}

async function rowsOf(name, order) {
  if (!isThere(name)) return [];
  const table = await load(name);
  return (await chosen(table, order)).map((row) => table.row(row));
}

// Rows of equal `keys` as one: the columns of `sums` are added where they are known, all others are those of the first.
function summed(rows, keys, sums) {
  const found = new Map();
  for (const row of rows) {
    const key = JSON.stringify(keys.map((name) => row[name]));
    const into = found.get(key);
    if (!into) found.set(key, { ...row });
    else for (const name of sums) if (row[name] !== null) into[name] = (into[name] ?? 0) + row[name];
  }
  return [...found.values()];
}
