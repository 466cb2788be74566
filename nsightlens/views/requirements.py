"""What a view needs of a capture (`@needs`), how to see in a store whether it is there, and how to record it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Requirement:
    """rows: what has rows where it was recorded (a table, with a condition). missing: what to say. remedy: how to record it.

    by: the tools that can record it, each with how (empty: it does not depend on the tool). otherwise: what has rows where it was
    recorded in a form that the view does not read, and what to say then.
    """

    rows: str
    missing: str
    remedy: str
    by: Mapping[str, str] = field(default_factory=dict)
    otherwise: tuple[str, str] | None = None


_CUDA = {"nsys": "record with nsys --trace=cuda", "kineto": "record with ProfilerActivity.CUDA"}


REQUIREMENTS = {
    "timeline": Requirement("profiles WHERE tool IN ('nsys', 'kineto')", "no timeline was captured",
                            "record with nsys or the PyTorch profiler: ncu does not say when a kernel ran",
                            {"nsys": "record with nsys", "kineto": "record with the PyTorch profiler"}),
    "gpu_work": Requirement("(SELECT run, tool FROM kernels WHERE tool <> 'ncu' UNION ALL SELECT run, tool FROM memory_ops "
                            "UNION ALL SELECT run, tool FROM graph_executions)", "no GPU work is on the timeline",
                            "record with nsys --trace=cuda, or the PyTorch profiler with ProfilerActivity.CUDA",
                            _CUDA),
    "counters": Requirement("kernels WHERE tool = 'ncu'", "no counters were captured",
                            "record with ncu (the command plan-ncu chooses the launches)",
                            {"ncu": "record with ncu"}),
    "two_tools": Requirement("matches", "no launch was seen by two tools",
                             "capture the same workload with a second tool, and ingest both under one --run"),
    "modules": Requirement("ranges WHERE kind = 'module'", "no modules were recorded",
                           "record with the PyTorch profiler and with_stack=True, or open NVTX ranges named 'nn.Module: …'",
                           {"kineto": "record with with_stack=True", "nsys": "open NVTX ranges named 'nn.Module: …'"},
                           ("frames",
                            "the trace has Python stacks, but no modules: that version of PyTorch wrote none, or no nn.Module "
                            "ran")),
    "frames": Requirement("frames", "no Python stacks were recorded", "record with the PyTorch profiler and with_stack=True",
                          {"kineto": "record with with_stack=True"}),
    "shapes": Requirement("ranges WHERE shapes IS NOT NULL", "no input shapes were recorded",
                          "record with the PyTorch profiler and record_shapes=True",
                          {"kineto": "record with record_shapes=True", "nsys": "use emit_nvtx(record_shapes=True)"}),
    "allocations": Requirement("allocations", "no allocations were recorded",
                               "record with the PyTorch profiler and profile_memory=True, or nsys --cuda-memory-usage=true",
                               {"kineto": "record with profile_memory=True", "nsys": "record with --cuda-memory-usage=true"}),
    "annotations": Requirement("ranges WHERE kind IN ('annotation', 'gpu_annotation')", "no annotations were recorded",
                               "open torch.profiler.record_function ranges under the PyTorch profiler",
                               {"kineto": "open torch.profiler.record_function ranges"}),
    "operators": Requirement("ranges WHERE kind = 'operator'", "no operators were recorded",
                             "record with the PyTorch profiler, or with nsys --trace=nvtx under "
                             "torch.autograd.profiler.emit_nvtx()",
                             {"kineto": "record with ProfilerActivity.CPU",
                              "nsys": "record with --trace=cuda,nvtx under torch.autograd.profiler.emit_nvtx()"}),
    "nvtx": Requirement("ranges WHERE tool = 'nsys'", "no NVTX ranges were recorded",
                        "record with nsys --trace=cuda,nvtx, and open ranges in the program",
                        {"nsys": "record with --trace=cuda,nvtx"}),
    "ranges": Requirement("ranges", "no ranges were recorded", "record with nsys --trace=cuda,nvtx or the PyTorch profiler",
                          {"kineto": "record with ProfilerActivity.CPU", "nsys": "record with --trace=cuda,nvtx"}),
    "api_calls": Requirement("api_calls", "no CUDA API calls were recorded",
                             "record with nsys --trace=cuda or the PyTorch profiler",
                             _CUDA),
    "memory_ops": Requirement("memory_ops", "no copies or sets were recorded",
                              "record with nsys --trace=cuda or the PyTorch profiler",
                              _CUDA),
    "waits": Requirement("synchronizations", "no waits were recorded",
                         "record with nsys (2020 or later), or wrappers/torch_profiler.py;"
                         " your own torch.profiler needs experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True)",
                         {"nsys": "record with nsys 2020 or later",
                          "kineto": "its experimental_config needs _ExperimentalConfig(enable_cuda_sync_events=True)"}),
    "host_functions": Requirement("host_functions", "no stream ran a host function, or it was not recorded",
                                  "record with nsys 2026.4 or later: it sees cudaLaunchHostFunc and host nodes of CUDA graphs",
                                  {"nsys": "record with nsys 2026.4 or later"}),
    "os_calls": Requirement("os_calls", "no OS calls were recorded", "record with nsys --trace=cuda,osrt",
                            {"nsys": "record with --trace=cuda,osrt"}),
    "overheads": Requirement("overheads", "the profiler recorded nothing of its own overhead",
                             "nsys and the PyTorch profiler record it where they held up threads",
                             dict.fromkeys(("nsys", "kineto"), "it records it where it held up threads")),
    "page_faults": Requirement("page_faults", "no page faults of unified memory were recorded",
                               "record with nsys --cuda-um-cpu-page-faults=true --cuda-um-gpu-page-faults=true",
                               {"nsys": "record with --cuda-um-cpu-page-faults=true --cuda-um-gpu-page-faults=true"}),
    "migrations": Requirement("memory_ops WHERE kind = 'migration'", "unified memory did not migrate, or it was not recorded",
                              "record with nsys: it sees migrations of cudaMallocManaged memory",
                              {"nsys": "it sees migrations of cudaMallocManaged memory"}),
    "mpi": Requirement("mpi_calls", "no MPI calls were recorded", "record with nsys --trace=cuda,mpi",
                       {"nsys": "record with --trace=cuda,mpi"},
                       ("ranges WHERE kind LIKE 'nvtx%' AND regexp_matches(name, '^P?MPI_')",
                        "calls of MPI were recorded as NVTX ranges: the view nvtx_summary has them")),
    "device_samples": Requirement("device_samples", "no GPU metrics were sampled", "record with nsys --gpu-metrics-devices=all",
                                  {"nsys": "record with --gpu-metrics-devices=all"}),
    "cpu_samples": Requirement("cpu_samples", "no CPU was sampled", "record with nsys --sample=process-tree --backtrace=dwarf",
                               {"nsys": "record with --sample=process-tree --backtrace=dwarf"}),
    "step_times": Requirement("step_times", "the workload did not time its steps",
                              "have it write rankNNNN.steps.json (docs/formats.md), as the example workloads do (nsightlens "
                              "wrappers)",
                              otherwise=("ranges", "ranges were recorded: the view range_pace has the time from each to the next "
                                                   "of its name, step_breakdown the profiler's steps")),
    "collective_records": Requirement("collective_records", "neither NCCL's Inspector nor PyTorch's flight recorder left records",
                                      "run all ranks with NCCL_PROFILER_PLUGIN=libnccl-profiler-inspector.so "
                                      "NCCL_INSPECTOR_ENABLE=1 "
                                      "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500, or dump PyTorch's flight recorder "
                                      "as JSON "
                                      "(docs/formats.md)"),
    "pipelines": Requirement("_process_groups WHERE kind = 'pipeline'", "no process group is named as a pipeline",
                             "record every rank with the PyTorch profiler of torch 2.4 or later, and name the groups: "
                             "new_group(…, group_desc='PIPELINE_MODEL_PARALLEL_GROUP') or a device mesh with a dimension pp"),
    "ranks": Requirement("(SELECT run FROM processes GROUP BY run HAVING count(DISTINCT rank) > 1)", "only one rank is known",
                         "capture every rank (nsightlens wrappers), or say where the rank is in file names: ingest "
                         "--rank-pattern"),
    "collectives": Requirement("kernels WHERE family = 'collective' AND tool <> 'ncu'", "no communication kernels were captured",
                               "capture a job whose ranks communicate on the GPU; gloo and MPI on the host leave no kernels",
                               dict.fromkeys(("nsys", "kineto"), "capture ranks that communicate on the GPU")),
    "communication": Requirement("(SELECT run, tool FROM kernels WHERE family = 'collective' AND tool <> 'ncu' UNION ALL "
                                 "SELECT run, tool FROM memory_ops WHERE collective IS NOT NULL)",
                                 "no communication on the GPU was captured",
                                 "capture a job whose ranks communicate on the GPU; gloo and MPI on the host leave no kernels",
                                 dict.fromkeys(("nsys", "kineto"), "capture ranks that communicate on the GPU")),
}
"""All that a view may need, the commonest first."""
