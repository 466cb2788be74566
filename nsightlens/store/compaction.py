"""Few files for many profiles: small profiles of a run share their parts.

The tables of some profiles lie in a *bundle*: one part per table, all of one file name. A profile comes as a bundle of its own;
small ones are merged, new ones with each other at once, earlier ones once a run has many. Merging takes bundles of like size, so
a row is written again as often as the logarithm of the profiles, however many ingests bring them.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nsightlens.columns.spool import ROW_GROUP, write_part
from nsightlens.schema import TABLES, TEMPLATE, templates_of
from nsightlens.store import damage
from nsightlens.store.bundle import Bundle, bundle, bundle_files
from nsightlens.store.catalog import Change

FULL_BYTES = 32 << 20
"""Size from which on a bundle is merged no more: what the loss of a profile writes again is bounded by it."""
FEW = 8
"""Bundles of one run that are left as they are."""
_ALIKE, _TINY_BYTES = 2, 1 << 20
_TEMPLATED = {name: templates_of(name) for name, table in TABLES.items() if table.varying}


def packed(bundles: Sequence[Bundle], few: int = FEW) -> Iterator[list[Bundle]]:
    """Yield the bundles of one run in groups that are to be merged, those of like size together; most groups are of one bundle.

    few: so many bundles are left as they are; 0: all that fit are merged, whatever their sizes.
    """
    small = sorted((one for one in bundles if is_small(one)), key=lambda one: (one.size, one.profiles))
    if len(small) <= few:
        small = []
    yield from ([one] for one in bundles if one not in small)
    group: list[Bundle] = []
    size = 0
    for one in small:
        if group and (size + one.size > FULL_BYTES or (few and one.size > max(_ALIKE * size, _TINY_BYTES))):
            yield group
            group, size = [], 0
        group.append(one)
        size += one.size
    if group:
        yield group


def is_small(one: Bundle) -> bool:
    """Return whether a bundle may be merged with others: it is not full, and no part of it is missing or damaged."""
    return one.size < FULL_BYTES and all(damage.is_whole(part) for part in one.files.values())


def merge(group: Sequence[Bundle], staging: Path) -> Bundle:
    """Write the parts of all bundles of a group, which are of one run, as one bundle below `staging`."""
    run = group[0].run
    files = _drafts(staging, {table for one in group for table in one.files})
    rows: dict[str, Mapping[str, int]] = {}
    firsts = {table: _first_templates(group, templates) for table, templates in _TEMPLATED.items()}
    first_of = {name: firsts[table] for table, templates in _TEMPLATED.items() for name in (table, templates)}
    for table, file in files.items():
        sources = [(one.files[table], first) for one, first in zip(group, first_of.get(table, [0] * len(group)), strict=True)
                   if table in one.files]
        write_part(file, pq.read_schema(sources[0][0]), _batches(sources))
    for one in group:
        for table, of_table in one.rows.items():
            rows[table] = {**rows.get(table, {}), **of_table}
    return bundle_files(run, files, rows)


def gathered(change: Change, staging: Path) -> list[Bundle]:
    """Return the bundles of the profiles that `change` brings; small ones are merged, into parts below `staging`."""
    each = (bundle(name, run, folder, rows) for name, run, _, folder, rows in change.added)
    return [merge(group, staging) if len(group) > 1 else group[0] for bundles in _by_run(each) for group in packed(bundles)]


def renewed(old: Iterable[Bundle], change: Change, staging: Path, few: int = FEW) -> tuple[list[Bundle], list[Bundle]]:
    """Return the bundles that `change` brings, and all bundles of the store then; parts that are new lie below `staging`.

    old: the bundles of the store now, whose parts stay as they are. few: as for `packed`.
    """
    gone = set(change.gone)
    remaining = [kept for one in old if (kept := without(one, gone, staging))]
    every = [merge(group, staging) if len(group) > 1 else group[0]
             for bundles in _by_run([*remaining, *change.bundles]) for group in packed(bundles, few)]
    return change.bundles, every


def places(one: Bundle) -> dict[str, str]:
    """Return new places for the parts of a bundle, by table, as paths below the store."""
    name = one.profiles[0] if len(one.profiles) == 1 else f"{len(one.profiles)}-profiles"
    file = f"{name}.{secrets.token_hex(4)}.parquet"
    return {table: f"parts/{table}/run={quote(one.run, safe='')}/{file}" for table in one.files}


def rewritten(old: Iterable[Bundle], change: Change, few: int = FEW) -> list[Path]:
    """Return the parts that `renewed` must read: those with rows of profiles that go; all where `few` is 0: any may be merged.

    Parts that are not there it leaves as they are.
    """
    gone = set(change.gone)
    return [part for one in old if not few or not gone.isdisjoint(one.profiles) for part in one.files.values()]


def _by_run(bundles: Iterable[Bundle]) -> list[list[Bundle]]:
    bundles_by_run: dict[str, list[Bundle]] = defaultdict(list)
    for one in bundles:
        bundles_by_run[one.run].append(one)
    return list(bundles_by_run.values())


def without(one: Bundle, gone: Set[str], staging: Path) -> Bundle | None:
    """Return a bundle without the rows of profiles that go, written again where it has any; None where none is left.

    A part that is missing or damaged stays named: the checks of the store report what it held.
    """
    if gone.isdisjoint(one.profiles):
        return one
    remaining = {table: {p: n for p, n in rows.items() if p not in gone} for table, rows in one.rows.items()}
    rows = {table: of_table for table, of_table in remaining.items() if of_table}
    whole = [table for table in rows if damage.is_whole(one.files[table])]
    files = {table: one.files[table] for table in rows} | _drafts(staging, whole)
    for table in whole:
        write_part(files[table], pq.read_schema(one.files[table]), _batches([(one.files[table], 0)], gone))
    return bundle_files(one.run, files, rows) if rows else None


def _drafts(staging: Path, tables: Iterable[str]) -> dict[str, Path]:
    """Return files for the parts of a bundle in the making, by table; their folder is there then."""
    folder = staging / f"bundle-{secrets.token_hex(4)}"
    folder.mkdir()
    return {table: folder / f"{table}.parquet" for table in sorted(tables)}


def _first_templates(group: Sequence[Bundle], templates: str) -> list[int]:
    """Return the number that each bundle's first template gets when their templates are numbered on."""
    counts = [_last_template(one.files[templates]) + 1 if templates in one.files else 0 for one in group]
    return [int(first) for first in np.cumsum([0, *counts[:-1]])]


def _last_template(part: Path) -> int:
    return int(pc.max(pq.read_table(part, columns=[TEMPLATE])[TEMPLATE]).as_py())


def _batches(sources: Iterable[tuple[Path, int]], gone: Set[str] = frozenset()) -> Iterator[pa.RecordBatch]:
    """Yield the rows of parts, with their templates numbered from the number beside each, without those of some profiles."""
    for part, first in sources:
        with pq.ParquetFile(part, pre_buffer=False) as file:
            for batch in file.iter_batches(ROW_GROUP, use_threads=file.num_row_groups > 1):  # for few rows, threads cost more
                rows = batch
                if gone:
                    rows = rows.filter(pc.invert(pc.is_in(rows["profile_id"], pa.array(sorted(gone)))))
                if first:
                    numbers = pc.add(rows[TEMPLATE], pa.scalar(first, pa.int32()))
                    rows = rows.set_column(rows.schema.get_field_index(TEMPLATE), TEMPLATE, numbers)
                yield rows
