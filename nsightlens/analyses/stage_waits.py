"""How long each rank waits in sends and receives for the rank at the other end: in a pipeline, for the other stage. A row is a
rank and one of those that it exchanges with. Both ends of a message leave it together: what the longer of the two kernels lasts
beyond the other is waiting. So only durations are compared, and clocks do not matter.
@scope run
@topic ranks
@needs collectives, ranks
@requires _collective_kernels, _profile_executions, _process_groups, processes, profiles
@assumes The trace names the other rank (PyTorch 2.5 or later); kernels of several sends and receives in one have no row.
@assumes The k-th send of a rank to another in a communicator is the k-th receive there, where both have as many.
@first rank, peer_rank, stage, peer_stage, wait_ns, total_ns, messages
@column run          Run.
@column tool         kineto.
@column execution_id Start of the job: from a sidecar, else which recording of the run; NULL where there is one.
@column rank         Rank that waits.
@column peer_rank    Rank that it waits for.
@column stage        Its stage in the pipeline; NULL where the communicator is none.
@column peer_stage   Stage of the other.
@column messages     Sends and receives with a known other end.
@column total_ns     Sum of their durations.
@column wait_ns      Part of it that is waiting for the other rank.
@column transfer_ns  The rest.
@balance total_ns = wait_ns + transfer_ns
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from nsightlens.analyses import Ask
from nsightlens.analyses._executions import Execution, executions
from nsightlens.analyses._stages import ends
from nsightlens.columns.arrays import numbered, split

_SCHEMA = pa.schema([
    ("run", pa.string()), ("tool", pa.string()), ("execution_id", pa.string()),
    *((name, pa.int32()) for name in ("rank", "peer_rank", "stage", "peer_stage")),
    *((name, pa.int64()) for name in ("messages", "total_ns", "wait_ns", "transfer_ns")),
])


def analyse(ask: Ask) -> pa.Table:
    """Return a row for each rank and each that it exchanges messages with."""
    return pa.Table.from_pylist([row for execution in executions(ask) for row in _rows(ask, execution)], schema=_SCHEMA)


def _rows(ask: Ask, execution: Execution) -> Iterator[dict[str, Any]]:
    found = ends(ask, execution)
    own, other = found.stages(found.rank), found.stages(found.peer)
    total = execution.calls.end[found.place] - execution.calls.start[found.place]
    codes = [np.array([-1 if stage is None else stage for stage in stages], np.int64) for stages in (own, other)]
    for _, mine in split(np.arange(len(total)), numbered(found.rank, found.peer, *codes)):
        first, lasted, waited = int(mine[0]), int(total[mine].sum()), int(found.wait[mine].sum())
        yield {"run": execution.run, "tool": execution.tool, "execution_id": execution.execution_id,
               "rank": int(found.rank[first]), "peer_rank": int(found.peer[first]), "stage": own[first],
               "peer_stage": other[first], "messages": len(mine), "total_ns": lasted, "wait_ns": waited,
               "transfer_ns": lasted - waited}
