"""Recording from inside a script or a notebook: torch_profile, and ranges that every profiler sees (annotate, step_range).

    import nsightlens as nl
    with nl.recording.torch_profile("runs/base", skip_first=2, active=3, ingest=True) as recording:
        for batch in loader:
            train(batch)
            recording.step()
    recording.store.view("top_kernels")

    @nl.recording.annotate                                  one name in PyTorch's trace and in NVTX (nsys, ncu)
    def attention(q, k, v): ...
"""

from __future__ import annotations

from typing import Any

from nsightlens.recording.in_process import Recording, torch_profile
from nsightlens.recording.wrappers import profiler

__all__ = ["Recording", "annotate", "step_range", "torch_profile"]


def __getattr__(name: str) -> Any:
    """Return annotate or step_range, the very functions of the wrappers."""
    if name in ("annotate", "step_range"):
        return getattr(profiler(), name)
    raise AttributeError(f"module 'nsightlens.recording' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
