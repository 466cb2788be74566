// What charts share: a frame, axes with round numbers, legends.

function ticks(low, high, most = 6) {
  const rough = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(at);
  return found;
}

// How many marks fit below an axis of a width, so that their words do not touch.
const marksAcross = (width, most = 6) => Math.max(2, Math.min(most, Math.floor(width / 90)));

// Round amounts of bytes: multiples of a power of two.
function byteTicks(low, high) {
  const step = 2 ** Math.ceil(Math.log2((high - low) / 6 || 1));
  return ticks(low / step, high / step, 6).map((at) => at * step);
}

const decades = (low, high) => Array.from({ length: Math.floor(Math.log10(high)) - Math.ceil(Math.log10(low)) + 1 },
  (_, i) => 10 ** (Math.ceil(Math.log10(low)) + i));

const linear = (low, high, from, to) => (value) => from + (value - low) / (high - low || 1) * (to - from);
const logarithmic = (low, high, from, to) => (value) => from + Math.log(value / low) / Math.log(high / low || 2) * (to - from);

const words = (text, x, y, attributes = {}) => svg("text", { x, y, "font-size": 11, "font-family": "sans-serif",
  fill: colour("ink"),
  ...attributes }, text);

function figure(title, width, height, ...children) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "group", "aria-label": title, class: "chart" },
    ...children);
}

function xAxis(x, marks, top, bottom, text) {
  return marks.map((at) => [svg("line", { x1: x(at), x2: x(at), y1: top, y2: bottom, stroke: colour("line") }),
    words(text(at), x(at), bottom + 14, { "text-anchor": "middle" })]);
}

function yAxis(y, marks, left, right, text) {
  return marks.map((at) => [svg("line", { x1: left, x2: right, y1: y(at), y2: y(at), stroke: colour("line") }),
    words(text(at), left - 6, y(at) + 4, { "text-anchor": "end" })]);
}

function legend(colours, names) {
  return el("ul", { class: "legend" }, names.map((name) => {
    const mark = svg("svg", { width: 12, height: 12, "aria-hidden": "true" },
      svg("rect", { width: 12, height: 12, fill: colours[name], stroke: colour("line") }));
    return el("li", {}, mark, ` ${name.replaceAll("_", " ")}`);
  }));
}

const onKey = (act) => (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); } };

// A mark that can be clicked, and reached by the keyboard.
function mark(shape, text, act) {
  shape.append(svg("title", {}, text));
  if (act) filled(shape, { tabindex: 0, role: "button", "aria-label": text, class: "mark", onclick: act,
    onkeydown: onKey(act) }, []);
  return shape;
}

const chartWidth = () => Math.max(420, Math.min(1500, document.querySelector("main").clientWidth - 40));
