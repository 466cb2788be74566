"""Rows of a large profile's views that no answer holds: of other parameters than the default ones, or of a view seldom asked.

They are computed from the parts, one large profile at a time (small ones together) in bounded memory, and kept in the user's
cache: a file per view, parameters and batch of profiles, named by a digest of all that its rows follow from.
"""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa

from nsightlens import analyses
from nsightlens.store import answers, door, user_cache
from nsightlens.views import registry
from nsightlens.views.connection import connect
from nsightlens.views.header import View
from nsightlens.views.signature import digest

_MOST_FILES, _MOST_BYTES = 4096, 1 << 30
_OF_FEW_ROWS = ("profiles", "processes", "devices")
_NARROWING = ("run", "tool", "profile_id")
_PARTS = """
SELECT p.profile_id, p.table_name, p.run, p.path, p.row_count, s.signature, count(*) OVER (PARTITION BY p.path) > 1 AS shared
FROM catalog._parts AS p JOIN catalog._signatures AS s USING (profile_id) JOIN catalog.profiles AS o USING (profile_id) WHERE {}
ORDER BY p.profile_id, p.table_name
"""


@dataclass(slots=True)
class _Profile:
    run: str
    signature: str
    parts: dict[str, Path] = field(default_factory=dict)
    events: int = 0
    shared: bool = False


def rows(connection: duckdb.DuckDBPyConnection, root: Path, view: View, parameters: Mapping[str, object]) -> pa.Table | None:
    """Return the rows of a view of scope profile from the parts of the store at `root`, in the order of its answers.

    parameters: the view's own and filters. None where it is to be computed in the catalog: the store is small, all that the view
    reads is answered, or the parts are not beside the catalog. Raises UsageError, duckdb.Error.
    """
    arguments, selected = registry.asked(view, parameters)
    is_small = answers.events(connection) < answers.WORTH_IT
    if is_small or (arguments and not view.sql):  # an analysis may look for its parameters in all profiles
        return None
    if _stands_on_answers(connection, view):
        return None
    profiles = _profiles(connection, root, {name: selected[name] for name in _NARROWING if name in selected})
    whole = all(part.is_file() for one in profiles.values() for part in one.parts.values())
    if sum(one.events for one in profiles.values()) < answers.WORTH_IT or not whole:
        return None
    batches = answers.batches(list(profiles), {name: one.events for name, one in profiles.items()})
    found = pa.concat_tables([_of_batch({name: profiles[name] for name in batch}, view, arguments) for batch in batches],
                             promote_options="permissive")
    found = analyses.select(found, selected)
    order = ", ".join(f'"{name}"' for name in answers.BY if name in found.column_names)
    with contextlib.closing(connect()) as own:
        own.register("found", found)
        return own.sql(f"SELECT * EXCLUDE ({answers.PLACE}) FROM found ORDER BY {order}").to_arrow_table()


def _stands_on_answers(connection: duckdb.DuckDBPyConnection, view: View) -> bool:
    """Return whether a view reads answers alone, and those whatever its parameters are."""
    views = registry.load()
    kept = {name for name in answers.complete(connection) if name in views and not views[name].is_macro}
    return kept.union(_OF_FEW_ROWS).issuperset(view.requires)


def _profiles(connection: duckdb.DuckDBPyConnection, root: Path, wanted: Mapping[str, Sequence[object]]) -> dict[str, _Profile]:
    """Return the profiles that have such values in these columns, by name, with their parts."""
    where = " AND ".join(f"o.{name} IN (SELECT unnest(?))" for name in wanted) or "true"
    found: dict[str, _Profile] = {}
    door.parts(connection, root)  # none leads out of the store
    parts = connection.execute(_PARTS.format(where), list(wanted.values())).fetchall()
    for name, table, run, path, count, signature, shared in parts:
        one = found.setdefault(name, _Profile(run, signature))
        one.parts[table] = root / path
        one.events += count if table in answers.EVENTS else 0
        one.shared |= shared
    return found


def _of_batch(profiles: Mapping[str, _Profile], view: View, arguments: Mapping[str, object]) -> pa.Table:
    """Return the rows of some profiles, with _place: from the cache, or computed and put there."""
    import pyarrow.parquet as pq

    kept = _kept(profiles, view, arguments)
    if kept is not None:
        with contextlib.suppress(OSError, pa.ArrowException):  # not there, or damaged
            return pq.read_table(kept, partitioning=None)
    sources: dict[str, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for one in profiles.values():
        for table, part in one.parts.items():
            if part not in sources[table][one.run]:
                sources[table][one.run].append(part.absolute())
    shared = any(one.shared for one in profiles.values())
    found = answers.rows_at(view, arguments, sources, list(profiles) if shared else None)
    if kept is not None:
        with contextlib.suppress(OSError, pa.ArrowException):
            user_cache.keep(kept, lambda path: pq.write_table(found, path), _MOST_FILES, _MOST_BYTES)
    return found


def _kept(profiles: Mapping[str, _Profile], view: View, arguments: Mapping[str, object]) -> Path | None:
    folder = user_cache.folder()
    which = [part for name, one in profiles.items() for part in (name, one.run, one.signature)]
    code = digest([answers.signature_of(view), duckdb.__version__, json.dumps(arguments, sort_keys=True, default=str), *which])
    return folder / "rows" / f"{view.name}-{code}.parquet" if folder else None
