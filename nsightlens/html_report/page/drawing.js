// Draws the lanes that are in view; slices that share a pixel are drawn once, so that the cost is the width's, not the step's.

const GUTTER = 118;
const RULER = 20;
const KINDS = Object.keys(FACTS.slices);
const DARK = new Set(["gemm", "normalization", "collective", "other", "graph, kernels unknown"]);

function drawTimeline(context, view, lanes) {
  const { width, height, top, from, to } = view;
  const scale = (width - GUTTER) / (to - from);
  context.fillStyle = colour("back");
  context.fillRect(0, 0, width, height);
  context.save();
  context.beginPath();
  context.rect(0, RULER, width, height - RULER);
  context.clip();
  for (const item of lanes.items) {
    const y = item.y - top + RULER;
    if (y + item.height < RULER || y > height) continue;
    if (item.kind === "title") drawTitle(context, item, y, width);
    else if (item.kind === "busy") drawBusy(context, item, y, view);
    else drawLane(context, item, y, view, scale);
  }
  drawArrow(context, view, lanes, scale);
  drawArea(context, view, scale);
  context.restore();
  drawRuler(context, view, scale);
}

function drawTitle(context, item, y, width) {
  context.fillStyle = colour("pale");
  context.fillRect(0, y, width, item.height - 2);
  context.fillStyle = colour("ink");
  context.font = "600 12px sans-serif";
  context.fillText(`${item.isOpen ? "▾" : "▸"} ${item.text}`, 6, y + 15);
}

// How busy the GPU is over time: pale where it has work, strong where kernels compute: share of each stretch, from the foot.
function drawBusy(context, { busy, computing }, y, { width, from, to }) {
  const count = Math.max(1, Math.floor((width - GUTTER) / 2));
  const [wide, high] = [(width - GUTTER) / count, BUSY - 5];
  context.fillStyle = colour("accent");
  for (const [spans, strength] of [[busy, 0.35], [computing, 1]]) {
    context.globalAlpha = strength;
    Lanes.shares(spans, from, to, count).forEach((share, place) => {
      if (share) context.fillRect(GUTTER + place * wide, y + 2 + high * (1 - share), wide, high * share);
    });
  }
  context.globalAlpha = 1;
  context.fillStyle = colour("faint");
  context.font = "11px sans-serif";
  context.fillText("GPU busy", 6, y + 16);
}

function drawLane(context, lane, y, view, scale) {
  const { width, from, to } = view;
  const x = (ns) => GUTTER + (ns - from) * scale;
  let [edge, kind] = [-1, -1];
  for (let row = firstAt(lane, from); row < lane.to && lane.start[row] < to; row++) {
    const right = Math.min(width, x(lane.start[row] + lane.length[row]));
    const left = Math.max(GUTTER, x(lane.start[row]));
    if (right < GUTTER || (right <= edge && kind === lane.kinds[row])) continue;
    kind = lane.kinds[row];
    const wide = Math.max(1, right - left);
    edge = left + wide;
    context.globalAlpha = !view.found || isFound(lane.table, row, view.found) ? 1 : 0.18;
    context.fillStyle = FACTS.slices[KINDS[kind]];
    context.fillRect(left, y + 1, wide > 3 ? wide - 0.5 : wide, LANE - 3);
    if (KINDS[kind] === "graph, kernels unknown" && wide > 3) {
      context.strokeStyle = colour("faint");
      context.strokeRect(left + 0.5, y + 1.5, wide - 1.5, LANE - 4);
    }
    if (wide > 34) drawName(context, lane, row, left, y, wide);
  }
  context.globalAlpha = 1;
  const chosen = view.chosen;
  if (chosen && chosen.process === lane.process && chosen.row >= lane.from && chosen.row < lane.to) {
    context.strokeStyle = colour("ink");
    context.lineWidth = 2;
    const left = Math.max(GUTTER, x(lane.start[chosen.row]));
    context.strokeRect(left, y + 1, Math.max(2, x(lane.start[chosen.row] + lane.length[chosen.row]) - left), LANE - 3);
  }
  context.fillStyle = colour("back");
  context.fillRect(0, y, GUTTER - 2, LANE);
  context.fillStyle = colour("faint");
  context.font = "11px sans-serif";
  context.fillText(short(clean(lane.label), 20), 6, y + 12);
}

function drawName(context, lane, row, left, y, wide) {
  const kind = KINDS[lane.kinds[row]];
  context.fillStyle = DARK.has(kind) ? "#fff" : "#111";
  context.font = "10px sans-serif";
  const pieces = lane.table.value("pieces", row);
  const name = lane.table.value("name", row) ?? (pieces > 1 ? `${number(pieces)} slices` : kind);
  const most = Math.floor((wide - 6) / 5.6);
  const text = clean(kernelName(name));
  context.fillText(text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text, left + 3, y + 12);
}

function drawArea(context, { area, from, top }, scale) {
  if (!area) return;
  const box = [GUTTER + (area.from - from) * scale, area.top - top + RULER, (area.to - area.from) * scale,
    area.bottom - area.top];
  context.fillStyle = context.strokeStyle = colour("accent");
  context.globalAlpha = 0.15;
  context.fillRect(...box);
  context.globalAlpha = 1;
  context.lineWidth = 1;
  context.strokeRect(...box);
}

// From the call that launched the chosen work to it.
function drawArrow(context, view, lanes, scale) {
  if (!view.chosen) return;
  const { process, row } = view.chosen;
  const mine = lanes.items.filter((item) => item.kind === "lane" && item.process === process);
  const work = mine.find((lane) => row >= lane.from && row < lane.to);
  const call = work ? work.table.value("launched_by", row) : null;
  const launcher = call === null ? null : mine.find((lane) => call >= lane.from && call < lane.to);
  if (!launcher) return;
  const place = (lane, at, ns) => [GUTTER + (ns - view.from) * scale, lane.y - view.top + RULER + LANE / 2];
  context.strokeStyle = colour("accent");
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(...place(launcher, call, launcher.start[call] + launcher.length[call]));
  context.lineTo(...place(work, row, work.start[row]));
  context.stroke();
}

function drawRuler(context, view, scale) {
  context.fillStyle = colour("back");
  context.fillRect(0, 0, view.width, RULER);
  context.font = "11px sans-serif";
  context.fillStyle = colour("faint");
  for (const at of ticks(view.from, view.to, marksAcross(view.width - GUTTER, 8))) {
    const x = GUTTER + (at - view.from) * scale;
    if (x < GUTTER) continue;
    context.fillRect(x, 0, 1, RULER);
    const text = duration(at);
    if (x + 3 + context.measureText(text).width <= view.width) context.fillText(text, x + 3, 13);
  }
}
