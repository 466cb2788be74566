// A step's slices as lanes: where each lane lies, and which of its slices a stretch of time touches.

const LANE = 18;
const TITLE = 24;

class Lanes {
  // processes: {step, table}. open: numbers of the processes whose threads are shown.
  constructor(processes, open) {
    this.items = [];
    let y = 0;
    processes.forEach(({ step, table }, process) => {
      const lanes = lanesOf(step, table);
      this.items.push({ kind: "title", y, height: TITLE, process, step, text: titleOf(step), isOpen: open.has(process) });
      y += TITLE;
      for (const lane of lanes) {
        if (lane.isHost && !open.has(process)) continue;
        this.items.push({ kind: "lane", y, height: LANE, process, step, table, ...lane });
        y += LANE;
      }
    });
    this.height = y;
    this.length = Math.max(...processes.map(({ step }) => step.late + step.step_ns));
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
