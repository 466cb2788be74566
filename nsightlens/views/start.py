"""The names of the views to begin with."""

from __future__ import annotations

START = (
    "verdict", "time_tree", "findings", "step_breakdown", "busy_time", "idle_causes", "top_kernels", "operator_summary",
    "module_summary", "exposed_communication", "straggler", "communicator_summary", "memory_op_summary", "memory_peak",
    "cuda_api_summary", "mpi_call_summary", "nvtx_summary", "speed_of_light", "tree_difference", "tool_agreement",
    "profile_overview", "diagnostic_summary",
    "roofline",
    "headroom",
)
"""The views to learn first."""
