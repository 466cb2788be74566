"""The ends of matched sends and receives: rank, peer, ns waited for the peer, and the pipeline stage of each rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nsightlens.analyses import Ask
from nsightlens.analyses._executions import Execution
from nsightlens.columns.arrays import Int, Places, distinct, wide

_STAGES = """
SELECT DISTINCT g.run, g.tool, g.group_name, p.rank, g.group_rank
FROM _process_groups AS g JOIN processes AS p ON g.profile_id = p.profile_id AND g.process_id = p.process_id
WHERE g.kind = 'pipeline' AND p.rank IS NOT NULL AND g.group_rank IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends of matched messages: columns of one length. place: in `Execution.calls`; rank: its own; peer: the other's; wait:
    ns for which it waited for that; stage: the stage of each rank in a pipeline, by (name of its group, rank)."""

    place: Places
    rank: Int
    peer: Int
    wait: Int
    group: npt.NDArray[np.object_]
    stage: dict[tuple[str, int], int]

    def stages(self, ranks: Int) -> list[int | None]:
        """Return the stage of a rank in the communicator of each end, None where that is no pipeline."""
        return [self.stage.get((group, rank)) for group, rank in zip(self.group.tolist(), ranks.tolist(), strict=True)]


def ends(ask: Ask, execution: Execution) -> Ends:
    """Return the ends of the messages of an execution."""
    found = execution.messages
    stage = {(row["group_name"], row["rank"]): row["group_rank"] for row in ask(_STAGES, []).to_pylist()
             if (row["run"], row["tool"]) == (execution.run, execution.tool)} if len(found.place) else {}
    codes, names = distinct(execution.kinds["group_name"])
    group = np.array([*names, None], object)[codes[execution.calls.kind[found.place]]]
    return Ends(found.place, wide(execution.calls.rank(found.place)), found.peer, found.wait, group, stage)
