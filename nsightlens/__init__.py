"""nsightlens: one kernel table from Nsight Systems, Nsight Compute and the PyTorch profiler, for all ranks."""

__version__ = "0.1.0"
