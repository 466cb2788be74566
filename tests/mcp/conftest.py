"""Without the package mcp, which `pip install 'nsightlens[mcp]'` brings, only answers are tested."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("mcp") else ["test_server.py", "test_questions.py"]
