// The tab Data: what was captured, how much of it could be attributed and matched, and what is not known.

const SNIPPETS = ["SELECT tool, rank, family, sum(duration_ns) FROM kernels GROUP BY ALL ORDER BY ALL",
  "SELECT short_name, count(*), median(duration_ns) FROM timeline_kernels GROUP BY ALL ORDER BY 2 DESC LIMIT 20",
  "SELECT op, op_shapes, module, phase, sum(duration_ns) FROM kernels GROUP BY ALL ORDER BY 5 DESC LIMIT 20"];

async function dataTab(place) {
  if (FACTS.left_out.length) {
    place.append(el("h3", {}, "Left out of this file"), el("ul", {},
      FACTS.left_out.map((text) => el("li", {}, clean(text)))));
  }
  for (const [name, title] of [["profile_overview", "Captures"], ["attribution_coverage", "How much was attributed"],
    ["match_report", "Launches matched between the tools"], ["diagnostic_summary", "Diagnostics"]]) {
    if (!isThere(name)) continue;
    const rows = await rowsOf(name, []);
    const columns = (await load(name)).names.filter((column) => column !== "process_id"
      && rows.some((row) => row[column] !== null));
    place.append(new Grid({ name, title, rows, columns, command: commandOf(name), docs: FACTS.tables[name].docs }).element);
  }
  place.append(el("h3", {}, "Query the store yourself"), SNIPPETS.reduce((list, text) => {
    list.append(el("li", {}, el("code", {}, `nsightlens sql "${text}"`)));
    return list;
  }, el("ul", {})));
}
