// The tab Host: calls of CUDA and of the system, copies, waits, and NVTX ranges.

const HOST = [["memory_op_summary", "Copies and sets", ["kind", "direction", "source_memory", "destination_memory",
  "operations", "total_ns", "total_bytes"]],
  ["cuda_api_summary", "API calls", ["name", "calls", "total_ns", "time_pct", "median_ns", "max_ns"]],
  ["synchronization_summary", "Waits for the GPU", ["name", "kind", "waits", "total_ns", "time_pct"]],
  ["nvtx_gpu_projection", "Ranges projected onto the GPU", ["name", "kind"]],
  ["nvtx_summary", "Ranges on the host", ["name", "kind"]],
  ["os_call_summary", "OS runtime calls", ["name"]]];

async function hostTab(place) {
  for (const [name, title, first] of HOST) {
    if (!isThere(name)) continue;
    const rows = await load(name);
    const sort = rows.has("total_ns") ? "-total_ns" : rows.has("total_gpu_ns") ? "-total_gpu_ns" : "";
    place.append(await gridOf(name, title, { first, sort }) ?? "");
  }
}
