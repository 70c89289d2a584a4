"""The reference pages of the documentation, made from the schemas that the code checks with."""

import csv
import itertools
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path

import yaml

from palimpsest.claims import Claim
from palimpsest.configuration.messages import allowed
from palimpsest.figures.figure import Figure
from palimpsest.lazy_import import named
from palimpsest.report.claims import mathematical
from palimpsest.section import Section
from palimpsest.tables.kinds import Kind

WRITTEN = "<!-- Written by `make docs`; do not edit. -->\n"
NAME = "/NAME"  # in a key: a name that the user gives
FIDELITY_COLUMNS = ["paper", "item", "target", "size", "found", "differs"]
# What came out of an item of a paper begins with one of these; nothing came out if it was not run.
VERDICTS = ["agrees", "in part", "disagrees", "cannot tell", "no verdict", ""]


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
    for (_, meaning, may_be), rows in itertools.groupby(_described_once(schema), _of_row):
        key, *others = [key for key, _ in rows]
        keys = ", ".join(f"`{name}`" for name in (key, *(_last(other) for other in others)))
        shown = [_value(_look_up(value, key)) for value in values]
        lines.append(f"| {keys} | {meaning} | {may_be} | {shown[0]} | {shown[1]} |")
    return "\n".join(lines) + "\n"


def _described_once(schema: dict) -> list[tuple[str, dict]]:
    """The documented keys, without those of named blocks that another block describes as well."""
    leaves = list(_leaves(schema))
    known = {(_last(key), node["description"]) for key, node in leaves if NAME not in key}
    return [
        (key, node)
        for key, node in leaves
        if NAME not in key or (_last(key), node["description"]) not in known
    ]


def _of_row(leaf: tuple[str, dict]) -> tuple[str, str, str]:
    """What rows of the page differ in: keys of a named block with one meaning share a row."""
    key, node = leaf
    block = key.removesuffix(_last(key)) if NAME in key else key
    return block, node["description"], allowed(node)


def _last(key: str) -> str:
    return key.rpartition("/")[2]


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
        "statistic rests on is the column `evidence`. [fidelity.md](fidelity.md) goes through the "
        "papers figure by figure.",
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


def figures_page(figures: Mapping[str, Iterable[Figure]]) -> str:
    """The figures under the title of their part: what draws them, and from which tables."""
    lines = [
        WRITTEN,
        "# The figures",
        "",
        "`results/figures/NAME-LANGUAGE.svg` and `.png`; in a notebook, "
        "`palimpsest.results.draw(NAME, LANGUAGE)`. The function of a figure has its name, takes a "
        "data frame for each table, and returns a figure of matplotlib. The report has the "
        "captions.",
    ]
    for title, of_part in figures.items():
        lines += ["", f"## {title}", "", "| function | title | tables |", "|---|---|---|"]
        for figure in of_part:
            file = figure.module.replace(".", "/") + ".py"
            tables = ", ".join(
                f"[`{kind.name}`](tables.md#{kind.name})"
                if isinstance(kind, Kind)
                else f"`{kind.name}`"
                for kind in figure.tables
            )
            function = f"[`{figure.name}`](../workflow/scripts/{file})"
            lines.append(f"| {function} | {figure.title} | {tables} |")
    return "\n".join(lines) + "\n"


def read_fidelity(path: str | Path) -> list[dict[str, str]]:
    """The rows of a file such as `docs/fidelity.tsv`, tab-separated without quotes.

    Raises
    ------
    ValueError
        If the columns are not `FIDELITY_COLUMNS`, or a row has more or fewer cells.
    """
    with open(path, encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    if header != FIDELITY_COLUMNS:
        raise ValueError(f"{path}: the columns are {header}; they must be {FIDELITY_COLUMNS}")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise ValueError(f"{path}:{number}: {len(row)} cells, where {len(header)} are needed")
    return [dict(zip(header, row, strict=True)) for row in rows]


def fidelity_page(rows: Iterable[dict[str, str]], tables: Container[str]) -> str:
    """What of each paper is made here; a name in `tables` leads to the page of the tables."""
    lines = [
        WRITTEN,
        "# The papers, item by item",
        "",
        "Every figure, table, research question and main claim of the five papers, in their order: "
        "what makes it here, at which size it was run, what came out, and what differs from the "
        "paper or why it is not here. The page is written from [fidelity.tsv](fidelity.tsv).",
        "",
        "- **made by**: a figure (`results/figures/NAME-LANGUAGE.svg`), a target of Snakemake, a "
        "table (with a link) or a file. Empty: nothing here makes it.",
        "- **what came out** begins with the verdict: agrees, in part (some of its claims), "
        "disagrees, cannot tell, or no verdict. Empty: it was not run. Brackets are 95 % intervals "
        "over the seeds, unless said otherwise. [claims.md](claims.md) has the statistics and the "
        "bounds; nothing is corrected for the number of verdicts.",
        "",
        "Nobody here has run `config/paper.yaml`, the papers' own sizes. What was run is the "
        "default, [config/config.yaml](../config/config.yaml), on small models with random weights "
        "(*twins*), unless the size says otherwise.",
    ]
    papers: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        papers.setdefault(row["paper"], []).append(row)
    for paper, items in papers.items():
        lines += ["", f"## {paper[0].upper()}{paper[1:]}", "", _count(items), ""]
        lines += ["| of the paper | made by | size | what came out | what differs |"]
        lines += ["|---|---|---|---|---|"]
        for row in items:
            made_by = ", ".join(_target(name, tables) for name in row["target"].split())
            cells = (row["item"], made_by, row["size"], row["found"], row["differs"])
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def verdict_of(found: str) -> str:
    """The one of `VERDICTS` with which the text begins.

    Raises
    ------
    ValueError
        If it begins otherwise.
    """
    verdict = found.partition(":")[0]
    if verdict not in VERDICTS:
        raise ValueError(f"{found!r} must begin with one of {', '.join(VERDICTS[:-1])}")
    return verdict


def _count(items: list[dict[str, str]]) -> str:
    verdicts = [verdict_of(row["found"]) for row in items if row["target"]]
    counts = ((verdict or "not run", verdicts.count(verdict)) for verdict in VERDICTS)
    words = ", ".join(f"{verdict} {n}" for verdict, n in counts if n)
    return f"{len(items)} items, {len(verdicts)} of them made here: {words}."


def _target(name: str, tables: Container[str]) -> str:
    if "/" in name:
        return f"[{name.rpartition('/')[2]}](../{name})"
    return f"[`{name}`](tables.md#{name})" if name in tables else f"`{name}`"


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
                yield f"{key}{NAME}", others
        else:
            yield key, child
            for block in _named_blocks(child):
                yield from _leaves(block, f"{key}{NAME}")


def _named_blocks(node: dict) -> Iterator[dict]:
    """The schemas of the blocks that a user names, if keys of a block are names.

    An entry may be a block or a file alone. A block whose keys are not described is left out.
    """
    others = node.get("additionalProperties")
    if not isinstance(others, dict):
        return
    for block in [others] if "properties" in others else others.get("oneOf", ()):
        described = ["description" in child for child in block.get("properties", {}).values()]
        if described and all(described):
            yield block


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
