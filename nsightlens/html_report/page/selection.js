// Sums over an area of the timeline: what lies in a stretch of time on the lanes that it covers.

const LONGEST = 8; // names that are listed

function sumsOf(lanes, from, to) {
  const [kinds, names, busy] = [new Map(), new Map(), new Map()];
  const add = (sums, key, ns, count) => {
    const sum = sums.get(key) ?? sums.set(key, { key, ns: 0, count: 0 }).get(key);
    sum.ns += ns;
    sum.count += count;
  };
  for (const lane of lanes) {
    for (let row = firstAt(lane, from); row < lane.to && lane.start[row] < to; row++) {
      const [start, end] = [Math.max(from, lane.start[row]), Math.min(to, lane.start[row] + lane.length[row])];
      if (end < start || (end === start && lane.length[row])) continue;
      const [kind, pieces] = [KINDS[lane.kinds[row]], lane.table.value("pieces", row)];
      add(kinds, kind, end - start, pieces);
      add(names, kernelName(lane.table.value("name", row)) ?? `${kind}, drawn as one`, end - start, pieces);
      if (lane.isHost) continue;
      if (!busy.has(lane.step)) busy.set(lane.step, []);
      busy.get(lane.step).push([start, end]);
    }
  }
  const sorted = (sums) => [...sums.values()].sort((a, b) => b.ns - a.ns);
  return { kinds: sorted(kinds), names: sorted(names), busy: [...busy].map(([step, spans]) => [step, unionOf(spans)]) };
}

// How long at least one of some spans lasts.
function unionOf(spans) {
  let [sum, last] = [0, -Infinity];
  for (const [start, end] of spans.sort((a, b) => a[0] - b[0])) {
    sum += Math.max(0, end - Math.max(start, last));
    last = Math.max(last, end);
  }
  return sum;
}

function describeArea(place, { from, to, lanes }) {
  const { kinds, names, busy } = sumsOf(lanes, from, to);
  const rows = (title, sums) => [el("tr", {}, el("th", { scope: "col" }, title), ["slices", "total"].map((text) => el("th",
    { scope: "col", class: "n" }, text))), sums.map(({ key, ns, count }) => el("tr", {}, el("td", {}, short(clean(key), 80)),
    el("td", { class: "n" }, number(count)), el("td", { class: "n" }, duration(ns))))];
  place.replaceChildren(el("h3", {}, `${exact(Math.round(to - from))}, ${number(lanes.length)} lanes`),
    el("dl", {}, busy.map(([step, ns]) => [el("dt", {}, titleOf(step).split(", ")[0]),
      el("dd", {}, `at least one of its streams here is busy for ${duration(ns)}, ${share(100 * ns / (to - from))}`)])),
    el("p", { class: "note" }, "Slices count as far as they lie in the area; what lies within another on a thread counts, too."),
    el("table", {}, el("tbody", {}, rows("kind", kinds), rows("longest", names.slice(0, LONGEST)))));
}
