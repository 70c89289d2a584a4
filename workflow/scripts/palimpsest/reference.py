"""The reference pages of the documentation, made from the schemas that the code checks with."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

from palimpsest.claims import Claim
from palimpsest.configuration.messages import allowed
from palimpsest.lazy_import import named
from palimpsest.report.claims import mathematical
from palimpsest.section import Section
from palimpsest.tables.kinds import Kind

WRITTEN = "<!-- Written by `make docs`; do not edit. -->\n"


def configuration_page(schema: dict, default: str | Path, paper: str | Path) -> str:
    values = [yaml.safe_load(Path(path).read_text()) for path in (default, paper)]
    lines = [
        WRITTEN,
        "# The configuration",
        "",
        "`config/config.yaml` is the default experiment. Lay another file over it with `snakemake "
        "--configfile config/paper.yaml`, or single values with `--config`: the later one wins. "
        "The paper's column is empty where it keeps the default.",
        "",
        "| key | meaning | allowed | default | paper |",
        "|---|---|---|---|---|",
    ]
    for key, node in _leaves(schema):
        shown = [_value(_look_up(value, key)) for value in values]
        lines.append(
            f"| `{key}` | {node['description']} | {allowed(node)} | {shown[0]} | {shown[1]} |"
        )
    return "\n".join(lines) + "\n"


def tables_page(kinds: Iterable[Kind]) -> str:
    lines = [
        WRITTEN,
        "# The tables",
        "",
        "All tables are Parquet files that join on the columns they share: `model`, `language`, "
        "`size`, `seed`, `variant`, `string_id`, `epoch`. They are written whole or not at all.",
    ]
    for kind in kinds:
        lines += ["", f"## {kind.name}", "", kind.rows, "", f"`{kind.path}`", ""]
        lines += ["| column | type | meaning |", "|---|---|---|"]
        for column in kind.columns:
            optional = " (may be null)" if column.nullable else ""
            lines.append(f"| `{column.name}` | {column.arrow_type}{optional} | {column.meaning} |")
    return "\n".join(lines) + "\n"


def claims_page(sections: Iterable[Section]) -> str:
    """The claims of all sections, by question; `CLAIMS` and `QUESTIONS` are in one module."""
    lines = [
        WRITTEN,
        "# The claims",
        "",
        "The table [`claims`](tables.md#claims) and the report have a verdict on each of these "
        "sentences, for every language on which it is tested. A claim agrees if the whole interval "
        "of its statistic lies where the claim holds ([measures.md](measures.md#a-claim)). What a "
        "statistic rests on is the column `evidence`.",
    ]
    for section in sections:
        place = section.location("claims")
        if place is None:
            continue
        lines += ["", f"## {section.title}"]
        claims, questions = named(place), named(f"{place.partition(':')[0]}:QUESTIONS")
        for key, words in questions.items():
            if chosen := [claim for claim in claims if claim.question == key]:
                lines += ["", f"### {words}", "", f"The rows with the question `{key}`.", ""]
                lines += ["| claim | statistic | holds | rests on | table | computed by |"]
                lines += ["|---|---|---|---|---|---|", *map(_row, chosen)]
    return "\n".join(lines) + "\n"


def _row(claim: Claim) -> str:
    statistic = claim.statistic
    holds = mathematical(claim.region.text) + ", by construction" * claim.by_construction
    tables = ", ".join(f"[`{kind}`](tables.md#{kind})" for kind in statistic.reads.split())
    file = statistic.function.__module__.replace(".", "/") + ".py"
    name = file.partition("/")[2]
    cells = (
        claim.claim,
        statistic.words,
        holds,
        ", ".join(statistic.evidence),
        tables,
        f"`{statistic.function.__name__}` in [{name}](../workflow/scripts/{file})",
    )
    return f"| {' | '.join(cells)} |"


def _leaves(node: dict, path: str = "") -> Iterator[tuple[str, dict]]:
    """Every documented key of a schema that holds a value."""
    for name, child in node.get("properties", {}).items():
        key = f"{path}/{name}" if path else name
        if "properties" in child:
            yield from _leaves(child, key)
            others = child.get("additionalProperties")
            if isinstance(others, dict) and "description" in others:
                yield f"{key}/NAME", others
        else:
            yield key, child


def _look_up(values: dict, key: str):
    for step in key.split("/"):
        values = values.get(step) if isinstance(values, dict) else None
    return values


def _value(value) -> str:
    if value is None:
        return ""
    if isinstance(value, list | dict) and len(value) > 4:
        return f"{len(value)} listed"
    text = yaml.safe_dump(value, default_flow_style=True, width=1000).replace("...", "").strip()
    return f"`{text}`"
