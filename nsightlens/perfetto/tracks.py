"""The threads of a process in a trace: CPU threads and GPU streams, and more lines where spans overlap without nesting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from nsightlens.views.figures import thread_name

Track = tuple[str, int | None, int | None, int | None]
"""("thread", OS thread id, None, None) or ("stream", device, context, stream)."""


class Tracks:
    """The threads of one process, numbered as they come, from `first`.

    A viewer draws the spans of a thread as a stack, so they must nest or follow each other. What overlaps otherwise (kernels
    of a graph on one stream, clocks that disagree) stands on a further line of the same track: nothing is cut or moved.
    """

    def __init__(self, contexts: Mapping[tuple[int | None, int | None], Sequence[int]], first: int) -> None:
        self._contexts = contexts
        self._first = first
        self._tids: dict[tuple[Track, int], int] = {}
        self._open: dict[Track, list[list[int]]] = {}

    @staticmethod
    def thread(thread: int | None) -> Track:
        """Return the track of a CPU thread."""
        return "thread", thread, None, None

    def stream(self, device: int | None, context: int | None, stream: int | None) -> Track:
        """Return the track of a stream; what no context was recorded of lies with the first one."""
        known = self._contexts.get((device, stream), ())
        return "stream", device, known[0] if context is None and known else context, stream

    def tid(self, track: Track, line: int = 0) -> int:
        """Return the number of a line of a track."""
        return self._tids.setdefault((track, line), self._first + len(self._tids))

    def place(self, track: Track, start: int, end: int) -> tuple[int, bool]:
        """Return the number of the line on which the span fits, and whether that is not the first one.

        Spans must come by ascending start, the longer one first where starts are equal.
        """
        lines = self._open.setdefault(track, [])
        for number, ends in enumerate(lines):
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or end <= ends[-1]:
                ends.append(end)
                return self.tid(track, number), number > 0
        lines.append([end])
        return self.tid(track, len(lines) - 1), len(lines) > 1

    def names(self) -> Iterator[tuple[int, str, int]]:
        """Yield number, name and order of every line."""
        ordered = sorted(self._tids, key=lambda key: (key[0][0] == "stream", *(_sortable(part) for part in key[0][1:]), key[1]))
        for order, (track, line) in enumerate(ordered):
            name = _thread(track) if track[0] == "thread" else self._stream_name(track)
            yield self._tids[track, line], f"{name} ({line + 1})" if line else name, order

    def _stream_name(self, track: Track) -> str:
        _, device, context, stream = track
        parts = ["GPU" if device is None else f"GPU {device}", "no stream" if stream is None else f"stream {stream}"]
        if len(self._contexts.get((device, stream), ())) > 1:
            parts.insert(1, f"context {context}")
        return " · ".join(parts)


def _sortable(part: object) -> tuple[bool, int]:
    return (part is None, part if isinstance(part, int) else 0)


def _thread(track: Track) -> str:
    return "CPU thread unknown" if track[1] is None else f"CPU {thread_name(track[1])}"
