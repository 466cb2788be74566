"""What a machine lacks for profiling, and how to get it."""
