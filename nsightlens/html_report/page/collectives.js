// Collectives of the tab Ranks: a row per call, with who was last and by how much, give or take the clocks' uncertainty.

async function collectiveTable() {
  const rows = await rowsOf("collective_match");
  const calls = new Map();
  for (const row of rows) {
    const key = JSON.stringify([row.run, row.tool, row.group_name, row.collective, row.call_index, row.step]);
    const call = calls.get(key) ?? calls.set(key, { step: row.step, collective: row.collective, call: row.call_index,
      last_rank: row.last_rank, lag_ns: row.lag_ns, plus_or_minus_ns: row.lag_threshold_ns, longest_wait_ns: 0,
        message_bytes: row.message_bytes,
      group: row.group_name }).get(key);
    call.longest_wait_ns = Math.max(call.longest_wait_ns, row.wait_ns ?? 0);
  }
  if (!calls.size) return null;
  const docs = { lag_ns: FACTS.tables.collective_match.docs.lag_ns, last_rank: FACTS.tables.collective_match.docs.last_rank,
    plus_or_minus_ns: FACTS.tables.collective_match.docs.lag_threshold_ns };
  return new Grid({ name: "collective_match", title: "Collectives: who came last, and how late", rows: [...calls.values()],
    docs,
    columns: ["collective", "step", "call", "last_rank", "lag_ns", "plus_or_minus_ns", "longest_wait_ns", "message_bytes",
      "group"],
    command: commandOf("collective_match"), sort: "-lag_ns", onRow: FACTS.steps.length && (FACTS.steps[0].step !== null) ?
      (row) => change({ tab: "timeline", step: row.step ?? "", find: row.collective ?? "" }) : null }).element;
}
