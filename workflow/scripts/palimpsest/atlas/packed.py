"""Numbers and texts of many strings, packed into few letters for a page.

Numbers are whole multiples of a step above the lowest. All first bytes stand before all second
bytes, which compresses better. The whole is compressed, and written as base64.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping

import numpy as np

MOST = 2**16 - 2  # the highest code of a number; one more is NaN


class Packer:
    """Columns by name, packed one after another."""

    def __init__(self):
        self.columns: dict[str, dict] = {}
        self.bytes = bytearray()

    def numbers(self, name: str, values: np.ndarray, step: float = 1.0) -> None:
        """Pack numbers of any shape, rounded to multiples of `step`; NaN is kept.

        The step grows if the values are more than 65,534 steps apart.
        """
        flat = np.asarray(values, dtype=float).ravel()
        known = flat[~np.isnan(flat)]
        low = float(known.min()) if len(known) else 0.0
        span = float(known.max()) - low if len(known) else 0.0
        step = max(step, span / MOST)
        highest = round(span / step)
        codes = np.where(np.isnan(flat), highest + 1, np.round((flat - low) / step)).astype(int)
        width = 1 if codes.max(initial=0) < 256 else 2
        planes = [(codes >> 8 * place) & 255 for place in range(width)]
        place = {"at": len(self.bytes), "n": len(flat), "width": width}
        self.columns[name] = {**place, "low": low, "step": step, "none": highest + 1}
        self.bytes += np.concatenate(planes).astype(np.uint8).tobytes()

    def texts(self, name: str, values: Iterable[str]) -> None:
        written = json.dumps(list(values), ensure_ascii=False, separators=(",", ":")).encode()
        self.columns[name] = {"at": len(self.bytes), "n": len(written)}
        self.bytes += written

    def base64(self) -> str:
        return base64.b64encode(zlib.compress(bytes(self.bytes), 9)).decode()


def as_json(value: Mapping | list) -> str:
    """JSON that can stand in a `script` element: no `<` ends it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
