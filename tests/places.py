"""Where things lie: the checkout, and the real captures beside it (absent in a user's clone)."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
