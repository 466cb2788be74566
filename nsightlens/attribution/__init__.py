"""Kernel -> launch -> operator, range path, module, phase, step."""
