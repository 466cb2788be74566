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

// What stands for a kernel in narrow places, by its name; and its name by its key, as the tree has it.
const LABELS = new Map();
const KERNELS = new Map();
const kernelName = (name) => LABELS.get(name) ?? name;
// The name of each recording, by its profile_id: what differs in the names of the files.
const RECORDINGS = new Map();

async function loadNames() {
  if (document.getElementById("data-names")) {
    const table = await load("names");
    for (let row = 0; row < table.rows; row++) {
      const { name, label, key } = table.row(row);
      LABELS.set(name, label);
      if (!KERNELS.has(key)) KERNELS.set(key, name);
    }
  }
  const groups = grouped(await allRows("profile_overview"), (row) => JSON.stringify([row.run, row.tool]));
  for (const rows of groups.values()) {
    const files = apart(rows.map((row) => row.file ?? ""));
    rows.forEach((row, place) => RECORDINGS.set(row.profile_id, files[place] || `recording ${place + 1}`));
  }
}

function grouped(rows, keyOf) {
  const found = new Map();
  for (const row of rows) {
    const key = keyOf(row);
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(row);
  }
  return found;
}

// Texts without the words that all of them begin and end with.
function apart(texts) {
  if (texts.length < 2) return texts;
  const words = texts.map((text) => text.match(/[\p{L}\p{N}]+|[^\p{L}\p{N}]+/gu) ?? []);
  const alike = (place) => words.every((each) => each.at(place) !== undefined && each.at(place) === words[0].at(place));
  let [head, tail] = [0, 0];
  while (alike(head)) head++;
  const room = Math.min(...words.map((each) => each.length)) - head;
  while (tail < room && alike(-1 - tail)) tail++;
  return words.map((each) => each.slice(head, each.length - tail).join(""));
}

// Whose a row is among others: its rank, and its recording or process where others have the same rank; null where it is alone.
function whose(row, rows) {
  const recording = (each) => each.profile_id ?? each.process_id?.split(":")[0];
  const alike = rows.filter((other) => other.run === row.run && other.tool === row.tool && other.rank === row.rank);
  const isOne = alike.every((other) => recording(other) === recording(row));
  const which = !isOne ? clean(RECORDINGS.get(recording(row)) ?? "")
    : alike.some((other) => other.process_id !== row.process_id) ? `process ${row.process_id.split(":").pop()}` : null;
  return [row.rank === null ? null : `rank ${row.rank}`, which].filter(Boolean).join(", ") || null;
}

// Which filters are set that a table has no column for, as a note.
function ignored(name) {
  const all = [["rank", "rank", "ranks"], ["steps", "step", "steps"]]
    .filter(([filter, column]) => state[filter] && !(column in FACTS.tables[name].docs)).map(([, , text]) => text);
  return all.length ? `of all ${all.join(" and ")}: that filter does not apply here` : "";
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

// The numbers of the rows of a table under the filters; without a chosen tool, those of each run's best one (order: []: all).
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
  return table.has("tool") && (order.length || state.tool) ? ofTool(table, kept, order) : kept;
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
