// Figures as texts with units that people read; the exact ones are in each table's CSV.

const MISSING = "–";
const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
const SIZES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
const RATES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

function digits(value) {
  const size = Math.abs(value);
  const places = size < 10 ? 3 : size < 100 ? 2 : size < 1000 ? 1 : 0;
  return value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
}

function scaled(value, units, smallest) {
  const unit = units.find(([factor]) => Math.abs(value) >= factor * 0.99995);
  return unit ? `${digits(value / unit[0])} ${unit[1]}` : `${Number(value.toPrecision(4))} ${smallest}`;
}

const duration = (ns) => ns === null ? MISSING : scaled(ns, TIMES, "ns");
const exact = (ns) => Math.abs(ns) < 1000 ? `${number(ns)} ns` : `${duration(ns)} (${number(ns)} ns)`;
const size = (bytes) => bytes === null ? MISSING : scaled(bytes, SIZES, "B");
const rate = (value, unit) => value === null ? MISSING : scaled(value, RATES, "").trimEnd() + unit;
const share = (pct) => pct === null ? MISSING : `${pct.toFixed(1)} %`;
const number = (value) => value === null ? MISSING : value.toLocaleString("en-US", { maximumFractionDigits: 3 });

// Characters without a sign of their own hide or reorder others: they are shown by their code, as terminal/printable.py does.
const CODES = { "\n": "\\n", "\t": "\\t", "\r": "\\r" };
const clean = (text) => String(text).replace(/(?! )[\p{C}\p{Z}]/gu, (c) => {
  const code = c.codePointAt(0), [letter, width] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return CODES[c] ?? `\\${letter}${code.toString(16).padStart(width, "0")}`;
});

// PyTorch's numbers of kinds of devices that the tables keep as numbers.
const DEVICE_TYPES = { 6: "hip", 12: "xpu", 13: "mps", 19: "mtia" };

// The text of a cell, by the unit in the column's name.
function cell(column, value) {
  if (value === null || value === undefined) return MISSING;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (column === "device_type") return DEVICE_TYPES[value] ?? clean(value);
  if (typeof value === "string") return column === "call_site" || column === "call_stack" ? frames(clean(value)) : clean(value);
  if (column.endsWith("bytes_per_s")) return rate(value, "B/s");
  if (column.endsWith("flop_per_s")) return rate(value, "FLOP/s");
  if (column.endsWith("_ns") || column === "bytes_ns") return duration(value);
  if (column === "bytes" || column.endsWith("_bytes")) return size(value);
  if (column.endsWith("_pct")) return share(value);
  if (column === "step" || column === "rank") return String(value);
  return number(value);
}

// A stack of Python frames, innermost first, whose files keep the last folder of their path.
const frames = (stack) => stack.split(";").map((frame) => frame.replace(/^.*[/\\](?=[^/\\]+[/\\][^/\\]+\(\d+\): )/, ""))
  .join(" ← ");

const heading = (column) => column.replace(/_ns$/, "").replace(/_pct$/, " %").replaceAll("_", " ");
const short = (text, most) => text.length <= most ? text : `${text.slice(0, most / 2 - 1)}…${text.slice(1 - most / 2)}`;
