"""Cards: pages `README.md` with a head in YAML, as hubs of models and datasets show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import yaml


def card(head: Mapping, parts: Iterable[str]) -> str:
    """A page: the head, without what is None or empty, and then its parts, one after another."""
    filled = {name: value for name, value in head.items() if value not in (None, [], {})}
    written = yaml.safe_dump(filled, sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{written}---\n\n" + "\n\n".join(parts) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
