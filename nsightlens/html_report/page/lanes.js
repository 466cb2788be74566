// A step's slices as lanes: where each lane lies, and which of its slices a stretch of time touches.

const LANE = 18;
const TITLE = 24;
const BUSY = 26;
const NO_COMPUTING = new Set(["collective", "memory"]);

class Lanes {
  // processes: {step, table}. open: numbers of the processes whose threads are shown.
  constructor(processes, open) {
    this.items = [];
    let y = 0;
    processes.forEach(({ step, table }, process) => {
      const lanes = lanesOf(step, table);
      this.items.push({ kind: "title", y, height: TITLE, process, step, text: titleOf(step), isOpen: open.has(process) });
      y += TITLE;
      const spans = spansOf(lanes.filter((lane) => !lane.isHost));
      if (spans.busy.length) {
        this.items.push({ kind: "busy", y, height: BUSY, ...spans });
        y += BUSY;
      }
      for (const lane of lanes) {
        if (lane.isHost && !open.has(process)) continue;
        this.items.push({ kind: "lane", y, height: LANE, process, step, table, ...lane });
        y += LANE;
      }
    });
    this.height = y;
    this.length = Math.max(...processes.map(({ step }) => step.late + step.step_ns));
  }

  // Which share of each of `count` equal parts of a stretch of time lies in disjoint spans.
  static shares(spans, from, to, count) {
    const [shares, part] = [new Float64Array(count), (to - from) / count];
    for (const [start, end] of spans) {
      if (end <= from) continue;
      if (start >= to) break;
      for (let place = Math.max(0, Math.floor((start - from) / part)); place < count && from + place * part < end; place++) {
        const [low, high] = [from + place * part, from + (place + 1) * part];
        shares[place] += Math.max(0, Math.min(end, high) - Math.max(start, low)) / part;
      }
    }
    return shares;
  }

  at(y) { return this.items.find((item) => y >= item.y && y < item.y + item.height); }
}

function titleOf(step) {
  const who = whose(step, FACTS.steps) ?? "";
  const which = step.step === null ? "whole capture" : `step ${step.step}${step.role ? ` (${step.role})` : ""}`;
  const run = FACTS.runs.length > 1 ? `${clean(step.run)}, ` : "";
  const late = step.late ? `, ${duration(step.late)} after the first` : "";
  return `${run}${who ? `${who}, ` : ""}${step.tool}, ${which}, ${duration(step.step_ns)}${late}`;
}

function lanesOf(step, table) {
  const lane = table.columns.get("lane").numbers;
  const start = table.columns.get("start_ns").numbers;
  const length = table.columns.get("duration_ns").numbers;
  const found = [];
  let from = 0;
  let isHost = false;
  step.lanes.forEach((label, place) => {
    let to = from;
    let longest = 0;
    while (to < table.rows && lane[to] === place) longest = Math.max(longest, length[to++]);
    isHost ||= label.startsWith("thread");
    found.push({ label, isHost, from, to, longest, start, length, kinds: table.columns.get("kind").numbers });
    from = to;
  });
  return found;
}

// When at least one of some lanes has work, and when one has a kernel that computes: disjoint spans in order.
function spansOf(lanes) {
  const united = (fits) => {
    const spans = lanes.flatMap((lane) => Array.from({ length: lane.to - lane.from }, (_, place) => lane.from + place)
      .filter((row) => lane.length[row] && fits(KINDS[lane.kinds[row]]))
      .map((row) => [lane.start[row], lane.start[row] + lane.length[row]])).sort((a, b) => a[0] - b[0]);
    const found = [];
    for (const [start, end] of spans) {
      const last = found.at(-1);
      if (last && start <= last[1]) last[1] = Math.max(last[1], end);
      else found.push([start, end]);
    }
    return found;
  };
  return { busy: united(() => true), computing: united((kind) => !NO_COMPUTING.has(kind)) };
}

// The first slice of a lane that may reach into what begins at `ns`.
function firstAt(lane, ns) {
  let [low, high] = [lane.from, lane.to];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.start[middle] < ns - lane.longest) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The slice of a lane at `ns`, or the nearest within `slack` ns; -1 where there is none.
function sliceAt(lane, ns, slack) {
  let [found, nearest] = [-1, slack];
  for (let row = firstAt(lane, ns - slack); row < lane.to && lane.start[row] <= ns + slack; row++) {
    const away = Math.max(0, lane.start[row] - ns, ns - lane.start[row] - lane.length[row]);
    if (away <= nearest) [found, nearest] = [row, away];
  }
  return found;
}
