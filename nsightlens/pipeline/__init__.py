"""Ingest: discover, read, assemble, store; its processes and workers."""
