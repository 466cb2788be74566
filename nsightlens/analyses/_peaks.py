"""The peaks of GPUs by their datasheets: of a slice of a GPU its share, of what is not known to be that GPU none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nsightlens.analyses import Ask
from nsightlens.errors import UsageError

_DATASHEET = "SELECT datasheet FROM _datasheet(product := ?) WHERE datasheet IS NOT NULL"
_PEAKS = """
WITH gpus AS (
    SELECT k.device_id, k.gpu, CASE WHEN a.force THEN coalesce(a.assumed, k.gpu) ELSE coalesce(k.gpu, a.assumed) END AS product,
        a.force, a.assumed IS NOT NULL AS is_assumed, max(d.compute_capability) AS compute_capability, max(d.sm_count) AS sm_count
    FROM (SELECT DISTINCT device_id, gpu FROM timeline_kernels) AS k
    CROSS JOIN (SELECT CAST(? AS VARCHAR) AS assumed, CAST(? AS BOOLEAN) AS force) AS a
    LEFT JOIN devices AS d USING (device_id)
    GROUP BY ALL
), sheets AS (
    SELECT *, (SELECT datasheet FROM _datasheet(product := gpus.product)) AS sheet FROM gpus
), fitted AS (
    SELECT s.*, CASE WHEN s.gpu IS NULL AND NOT s.force THEN (SELECT misfit FROM _datasheet_misfit(
        sheet := s.sheet, product := s.product, measured_cc := s.compute_capability, measured_sms := s.sm_count)) END AS misfit
    FROM sheets AS s
)
SELECT f.device_id, f.gpu, f.sheet, f.misfit, p.peak_key, p.flop_per_s, p.dram_bytes_per_s, p.sm_count AS whole_sm_count,
    CASE WHEN NOT (f.force AND f.is_assumed) THEN f.sm_count END AS sm_count
FROM fitted AS f LEFT JOIN _gpu_peak AS p ON p.name = f.sheet AND f.misfit IS NULL
ORDER BY f.device_id, f.gpu NULLS LAST, p.peak_key"""



class Peak(NamedTuple):
    """Peaks of a device, per second; bytes None where they are unknown (a slice of a GPU)."""

    flop: dict[str, float | None]
    bytes: float | None


def peaks(ask: Ask, assume_gpu: str | None, force_gpu: bool) -> tuple[dict[str | None, Peak], dict[str | None, str]]:
    """Return the peaks of each device that has some, and for every device why it would have none.

    Raises UsageError for a GPU to assume that no datasheet is of.
    """
    if assume_gpu is not None and ask(_DATASHEET, [assume_gpu]).num_rows == 0:
        names = ask("SELECT name FROM gpu_peaks ORDER BY name", [])["name"].to_pylist()
        raise UsageError(f"no datasheet for {assume_gpu!r}; there are: {', '.join(names)}")
    rows = ask(_PEAKS, [assume_gpu, force_gpu]).to_pylist()
    return _peaks(rows), {row["device_id"]: no_peaks(row["gpu"], row["sheet"], row["misfit"]) for row in rows}


def no_peaks(gpu: str | None, sheet: str | None = None, misfit: str | None = None) -> str:
    """Return why a GPU of this name (None: unknown) has no roof. misfit: why it cannot be that of the assumed datasheet."""
    if misfit is not None:
        return f"{sheet} not used: {misfit}; force_gpu=true takes it all the same"
    if gpu:
        return f"no datasheet peaks of {gpu}: assume_gpu with force_gpu=true uses those of another GPU, by its name in gpu_peaks"
    return "the GPU is not named in the capture, so its peaks are unknown: assume_gpu gives its name in gpu_peaks"


def _peaks(rows: Sequence[dict[str, Any]]) -> dict[str | None, Peak]:
    """Return the peaks of each device: of a part of a GPU its share, of one with more SMs than the datasheet none."""
    found: dict[str | None, Peak] = {}
    for row in rows:
        whole, own = row["whole_sm_count"], row["sm_count"]
        if row["peak_key"] is None or (own and whole and own > whole):
            continue
        share = own / whole if own and whole else 1
        peak = found.setdefault(row["device_id"], Peak({}, row["dram_bytes_per_s"] if share == 1 else None))
        peak.flop[row["peak_key"]] = None if row["flop_per_s"] is None else row["flop_per_s"] * share
    return found
