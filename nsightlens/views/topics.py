"""The topics that views are listed under, each a question that they answer."""

from __future__ import annotations

TOPICS = {
    "steps": "Where does a step go, and what is worth a look?",
    "gpu": "How busy is each GPU, and why does it idle?",
    "kernels": "Which kernels and API calls cost the most?",
    "operators": "Which operator, module or Python function is it?",
    "ranks": "Which rank holds up the others, and what does communication cost?",
    "memory": "Who holds memory, and who moves it?",
    "roofline": "How far are kernels from what the hardware can do?",
    "nvtx": "What do ranges and annotations cost?",
    "runs": "What changed between runs, and do the tools agree?",
    "capture": "What was captured, lost or guessed?",
}
"""The folders of sql/, in the order in which people ask."""
