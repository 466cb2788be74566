"""Kernel names: short name, kernel_key, family, tensor cores, label. Import the modules; the package itself loads nothing."""
