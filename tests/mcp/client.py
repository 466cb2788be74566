"""The official client, over the standard streams of a server in a process of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import mcp


class Asking:
    """A client that asks, and what it got: calls and bytes."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.sizes: list[int] = []

    async def __call__(self, name: str, /, **arguments: object) -> dict[str, Any]:
        """Return the answer of a tool. Fails where it is an error."""
        text, is_error = await self.text(name, **arguments)
        assert not is_error, f"{name} {arguments}: {text}"
        answer: dict[str, Any] = json.loads(text)
        return answer

    async def error(self, name: str, /, **arguments: object) -> dict[str, Any]:
        """Return what a tool says where it has no answer. Fails where it has one."""
        text, is_error = await self.text(name, **arguments)
        assert is_error, f"{name} {arguments}: {text[:300]}"
        said: dict[str, Any] = json.loads(text)
        return said

    async def text(self, name: str, /, **arguments: object) -> tuple[str, bool]:
        """Return the text of a tool's answer, and whether it is an error."""
        result = await self.client.call_tool(name, arguments)
        (content,) = result.content
        self.sizes.append(len(content.text.encode()))
        return content.text, bool(result.is_error)


@asynccontextmanager
async def served(*arguments: str | Path) -> AsyncIterator[Asking]:
    """A client of `nsightlens mcp ARGUMENTS`."""
    server = mcp.StdioServerParameters(command=sys.executable, args=["-m", "nsightlens", "mcp", *map(str, arguments)],
                                       env=dict(os.environ))
    async with mcp.Client(mcp.stdio_client(server)) as client:
        yield Asking(client)


def asking(work: Callable[[Asking], Coroutine[Any, Any, None]], *arguments: str | Path) -> None:
    """Run `work` with a client of `nsightlens mcp ARGUMENTS`."""
    async def asked() -> None:
        async with served(*arguments) as ask:
            await work(ask)

    anyio.run(partial(asked))
