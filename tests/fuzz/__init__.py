"""The fuzzing campaign: mutated captures, read by nsightlens and by an oracle that shares nothing with it."""
