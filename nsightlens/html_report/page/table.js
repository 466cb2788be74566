// A table that sorts, searches, shows more on demand, and can be taken along as CSV.

const PAGE = 50;
const KERNEL_TABLES = new Set(["kernel_summary", "kernel_by_rank", "kernel_by_config", "kernel_view", "operator_kernels",
  "headroom", "speed_of_light", "true_roofline", "roofline"]);
const UNBROKEN = /\S{30}/;

class Grid {
  // rows: objects. columns: names, in order. command: what prints the rows. docs: column -> what it means.
  // onRow: called with the row that was chosen. sort: column, "-" in front where the largest come first. shown: rows at first.
  constructor({ name, title, rows, columns, command, docs = {}, onRow = null, sort = "", hint = "", shown = PAGE }) {
    Object.assign(this, { name, rows, columns, docs, onRow, sort, shown, query: "" });
    this.namesKernels = new Set(KERNEL_TABLES.has(name) ? ["name", "item"] : []);
    this.body = el("tbody");
    this.head = el("tr");
    this.count = el("span", { class: "note" });
    this.more = button("", () => { this.shown *= 4; this.draw(); }, { class: "more" });
    const notes = [hint, ignored(name)].filter(Boolean).join("; ");
    this.element = el("section", { class: "grid" }, el("h3", {}, title), notes ? el("p", { class: "note" }, notes) : null,
      el("p", { class: "tools" }, search("Search", "", (text) => { this.query = text.toLowerCase(); this.draw(); }), this.count,
        el("code", {}, command),
        button("CSV", () => save(`${name}.csv`, "text/csv", csv(this.columns, this.found())),
          { "aria-label": `Download ${title} as CSV` })),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title },
        el("table", {}, el("caption", { class: "hidden" }, title), el("thead", {}, this.head), this.body)), this.more);
    this.draw();
  }

  found() {
    const matches = this.rows.filter((row) => !this.query ||
      this.columns.some((name) => typeof row[name] === "string" && row[name].toLowerCase().includes(this.query)));
    const name = this.sort.replace("-", "");
    if (!name) return matches;
    const sign = this.sort.startsWith("-") ? -1 : 1;
    return matches.sort((a, b) => {
      if (a[name] === null || b[name] === null) return (a[name] === null) - (b[name] === null);
      return sign * (a[name] > b[name] ? 1 : a[name] < b[name] ? -1 : 0);
    });
  }

  draw() {
    const found = this.found();
    this.head.replaceChildren(...this.columns.map((name) => this.header(name)));
    const numeric = new Set(this.columns.filter((name) => this.isNumeric(name)));
    this.body.replaceChildren(...found.slice(0, this.shown).map((row) => this.line(row, numeric)));
    this.count.textContent = `${number(found.length)} of ${number(this.rows.length)} rows`;
    this.more.textContent = `Show more (${number(found.length - this.shown)} rows left)`;
    this.more.hidden = found.length <= this.shown;
  }

  isNumeric(name) { return this.rows.some((row) => typeof row[name] === "number"); }

  header(name) {
    const order = this.sort === name ? "ascending" : this.sort === `-${name}` ? "descending" : "none";
    const next = order === "descending" || (order === "none" && !this.isNumeric(name)) ? name : `-${name}`;
    const mark = order === "ascending" ? " ▲" : order === "descending" ? " ▼" : "";
    return el("th", { scope: "col", "aria-sort": order, class: this.isNumeric(name) ? "n" : null, title: this.docs[name] },
      button(this.heading(name) + mark, () => { this.sort = next; this.draw(); this.focus(name); }, { "data-column": name }));
  }

  // A count and a time of one name have two headings: steps, steps time.
  heading(name) {
    const alike = this.columns.some((other) => other !== name && heading(other) === heading(name));
    return heading(name) + (alike && name.endsWith("_ns") ? " time" : "");
  }

  focus(name) { this.head.querySelector(`[data-column="${name}"]`).focus(); }

  line(row, numeric) {
    const cells = this.columns.map((name, place) => {
      const text = cell(name, this.namesKernels.has(name) ? kernelName(row[name]) : row[name]);
      const long = typeof row[name] === "string" && (text.length > 40 || this.namesKernels.has(name));
      const said = long ? el("span", { class: "clamp" }, text) : text;
      const inside = this.onRow && place === 0 ? button(said, () => this.onRow(row), { class: "link" }) : said;
      const kind = long ? (UNBROKEN.test(text) ? "long unbroken" : "long") : null;
      return el("td", { class: numeric.has(name) ? "n" : kind, title: long ? clean(row[name]) : null }, inside);
    });
    return el("tr", {}, cells);
  }
}

const HIDDEN = new Set(["run", "tool", "process_id", "window_index", "profile_id"]);

// Rows of one rank, or of none, by several recordings or processes say which one.
function told(rows) {
  const groups = grouped(rows, (row) => JSON.stringify([row.run, row.tool, row.rank]));
  const names = new Map([...groups.values()].flatMap((group) => {
    const firsts = [...new Map(group.map((row) => [row.process_id ?? row.profile_id, row])).entries()];
    const others = firsts.map(([, row]) => ({ ...row, rank: null }));
    return firsts.length > 1 ? firsts.map(([key], place) => [key, whose(others[place], others)]) : [];
  }));
  if (!names.size) return rows;
  return rows.map((row) => ({ recording: names.get(row.process_id ?? row.profile_id) ?? null, ...row }));
}

// A grid over a table of the page under the filters; `first` columns lead, `skip`, columns of one value and ids are left out.
async function gridOf(name, title, { first = [], skip = [], sort = "", onRow = null, keep = () => true, order = BEST.timeline,
  hint = "", shown = PAGE } = {}) {
  const found = (await rowsOf(name, order)).filter(keep);
  if (!found.length) return null;
  const rows = told(found);
  const several = (column) => new Set(rows.map((row) => row[column])).size > 1;
  const known = (column) => rows.some((row) => row[column] !== null && !(column === "clipped_ns"
    && row.clipped_ns === row.total_ns));
  const all = Object.keys(rows[0]).filter((column) => known(column) && !skip.includes(column)
    && (HIDDEN.has(column) ? column === "run" && several(column) : true));
  const columns = [...first.filter((column) => all.includes(column)), ...all.filter((column) => !first.includes(column))];
  const tool = rows[0].tool;
  return new Grid({ name, title: tool && !several("tool") ? `${title} (${tool})` : title, rows, columns,
    command: commandOf(name),
    docs: FACTS.tables[name].docs, sort, onRow, hint, shown }).element;
}
