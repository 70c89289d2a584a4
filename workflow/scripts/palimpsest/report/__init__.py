"""The report: one HTML file that needs nothing beside it, written from tables and figures only.

Every number in it is counted or averaged from a table that it links to; the words around them
explain and do not conclude.
"""

import os
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from urllib.parse import quote

import jinja2
import matplotlib
import numpy as np
import pandas as pd

import palimpsest
from palimpsest import tables
from palimpsest.errors import UserError, nearest
from palimpsest.figures import FIGURES, FigureKind
from palimpsest.report.unlearning import KINDS as UNLEARNING_KINDS
from palimpsest.report.unlearning import section
from palimpsest.report.wording import number
from palimpsest.report.words import (
    GLOSSARY,
    MEASURES,
    QUESTIONS,
    STUDIES,
    UNLEARNING_GLOSSARY,
)

VERDICTS = ("agrees", "disagrees", "cannot tell")
RESEARCH = [question for question in QUESTIONS if question.startswith("RQ")]
AGREEMENT = ("threshold_error", "start_error", "score_error", "same_verdict")
GROUPS = ("all", "repeated", "single")
ERRORS = ("mean_error", "mean_absolute_error", "same_verdict")
QUANTITIES = {
    "threshold": "threshold\n(nats per token)",
    "start": "start\n(epochs)",
    "score_at_optimum": "score at optimal\nlearning (0 to 1)",
    "score_at_end": "score at the end\n(0 to 1)",
}


@dataclass(frozen=True)
class FigureEntry:
    """A figure of the report: which it is, where its files are, what rebuilds it.

    `name` is a key of `figures.FIGURES`; `tables` are the files it was drawn from.
    """

    name: str
    language: str
    svg: str | Path
    tables: tuple[str | Path, ...]
    command: str

    @classmethod
    def of(cls, svg: str | Path, sources: Iterable[str] = ()) -> "FigureEntry":
        """The entry of a figure that the workflow made, `{name}-{language}.svg`.

        Its tables are those of its language; of kinds that have more than one for a language, as
        many as are among `sources`.
        """
        name, language = Path(svg).stem.split("-", 1)
        entry = cls(name, language, svg, (), f"snakemake --cores 1 --force {svg}")
        found = [path for kind in entry.kind.tables for path in of_kind(sources, kind, language)]
        return replace(entry, tables=tuple(found))

    @property
    def kind(self) -> FigureKind:
        """Title, caption and what else holds of the figure in every language."""
        if self.name not in FIGURES:
            known = ", ".join(FIGURES)
            hint = nearest(self.name, FIGURES)
            raise UserError(f"unknown figure {self.name!r}; known: {known}{hint}")
        return FIGURES[self.name]

    @property
    def anchor(self) -> str:
        """An id for links to the figure."""
        return f"figure-{slug(self.name)}-{slug(self.language)}"


def of_kind(sources: Iterable[str], kind: str, language: str | None = None) -> list[str]:
    """The tables of a kind among the paths `sources`, of one language or of all.

    Where a language has only one table of the kind, that is the answer, among `sources` or not.
    """
    pattern = tables.KINDS[kind].path
    fields = set(re.findall(r"{(\w+)}", pattern))
    if language is not None and fields == {"language"}:
        return [pattern.format(language=language)]
    parts = [
        re.escape(language) if field == "language" and language is not None else "[^/]+"
        for field in re.findall(r"{(\w+)}", pattern)
    ]
    between = [re.escape(text) for text in re.split(r"{\w+}", pattern)]
    shape = "".join(text + part for text, part in zip(between, [*parts, ""], strict=True))
    return [path for path in sources if re.fullmatch(shape, str(path))]


def render(
    figures: list[FigureEntry],
    claims: pd.DataFrame,
    study: dict,
    agreement: pd.DataFrame | None,
    out_path: str | Path,
    tradeoff: pd.DataFrame | None = None,
    approximation: pd.DataFrame | None = None,
    unlearning: Iterable[str] = (),
) -> None:
    """Write the report.

    Parameters
    ----------
    figures : the figures in any order; they stand by study, then in the order given
    claims : table `claims`
    study : what was run, as from `manifests.totals`; any key more is shown as it is, and a value
        is text, a number, a list of them, or a dict of them.
    agreement : tables `agreement`, stacked; None if no target string was retrained
    out_path : the HTML file; links to the tables are relative to its folder
    tradeoff : tables `tradeoff`, stacked, for the false alarms; None if they were not made
    approximation : tables `approximation`, stacked; None if no training set was retrained
    unlearning : paths of the tables of unlearning, of all kinds, models and languages; none if
        nothing was unlearned

    Raises
    ------
    UserError
        If a figure's file is missing or the report cannot be written.
    """
    folder = Path(out_path).parent
    numbered = [
        shown_figure(entry, number, folder)
        for number, entry in enumerate(in_order(figures), start=1)
    ]
    unlearned = section(
        *(tables.read_all(of_kind(unlearning, kind), kind) for kind in UNLEARNING_KINDS)
    )
    page = environment().get_template("template.html.j2")
    text = page.render(
        headline=headline(claims),
        by_question=by_question(claims),
        measures=MEASURES,
        studies=[
            {"id": key, **words, "figures": drawn}
            for key, words in STUDIES.items()
            for drawn in [[f for f in numbered if f["study"] == key]]
            if drawn or (key == "unlearning" and unlearned)
        ],
        unlearned=unlearned,
        agreement=agreement_rows(agreement),
        false_alarms=false_alarm_rows(tradeoff),
        approximation=approximation_rows(approximation),
        glossary=dict(sorted({**GLOSSARY, **UNLEARNING_GLOSSARY}.items()))
        if unlearned
        else GLOSSARY,
        study=study_rows(study),
    )
    with tables.replacing(out_path) as temporary:
        Path(temporary).write_text(text, encoding="utf-8")


def environment() -> jinja2.Environment:
    """Templates beside this module; whatever is filled in is escaped."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(number=number, slug=slug)
    return made


# Figures


def in_order(figures: list[FigureEntry]) -> list[FigureEntry]:
    """The figures by study, within a study by language, as they were given."""
    studies = list(STUDIES)
    languages = list(dict.fromkeys(entry.language for entry in figures))
    names = list(FIGURES)
    return sorted(
        figures,
        key=lambda entry: (
            studies.index(entry.kind.study),
            languages.index(entry.language),
            names.index(entry.name),
        ),
    )


def shown_figure(entry: FigureEntry, number: int, folder: Path) -> dict:
    """What the template needs to know of a figure."""
    return {
        "number": number,
        "anchor": entry.anchor,
        "study": entry.kind.study,
        "title": entry.kind.title,
        "caption": entry.kind.caption,
        "numbers": entry.kind.numbers,
        "paper": entry.kind.paper,
        "language": entry.language,
        "svg": inlined(entry),
        "tables": [{"name": str(path), "link": link(path, folder)} for path in entry.tables],
        "command": entry.command,
    }


def link(path: str | Path, folder: Path) -> str:
    """A relative URL from the report's folder to a file."""
    return quote(Path(os.path.relpath(path, folder)).as_posix())


def inlined(entry: FigureEntry) -> str:
    """The SVG as part of the page: its ids are the figure's own, its style keeps to itself."""
    try:
        svg = Path(entry.svg).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{entry.svg}: cannot be read: {error}; make it with: {entry.command}"
        ) from None
    found = re.search(r"<svg.*</svg>", svg, flags=re.DOTALL)
    if found is None:
        raise UserError(f"{entry.svg}: not an SVG file; delete it and rerun: {entry.command}")
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", found.group(), flags=re.DOTALL)
    # The parser of HTML knows the namespaces; as addresses they would only look like links.
    svg = re.sub(r'\s(xmlns(:\w+)?|version)="[^"]*"', "", svg)
    own = f"{entry.anchor}-"
    svg = re.sub(r'(\bid="|url\(#|href="#)', lambda match: match.group() + own, svg)
    svg = svg.replace("*{", f"#{own}svg *{{")
    described = f"{entry.kind.title}, language {entry.language}. {entry.kind.caption}"
    opening = f'<svg id="{own}svg" role="img" aria-label="{escape(described)}"'
    return svg.replace("<svg", opening, 1)


# Claims


def headline(claims: pd.DataFrame) -> dict:
    """How many tests there are, of how many claims, with which verdicts.

    What the definitions alone decide is no test, and is counted by itself.
    """
    n_by_construction = int(claims["by_construction"].sum())
    claims = tested(claims)
    return {
        "n_by_construction": n_by_construction,
        "n_tests": len(claims),
        "n_claims": claims["claim"].nunique(),
        "n_not_run": int((claims["n_seeds"] == 0).sum()),
        "n_one_seed": int(((claims["n_seeds"] == 1) & claims["lower"].isna()).sum()),
        "counts": counts(claims),
    }


def tested(claims: pd.DataFrame) -> pd.DataFrame:
    """The rows that could have come out otherwise."""
    return claims[~claims["by_construction"].astype(bool)]


def counts(claims: pd.DataFrame) -> dict[str, int]:
    """The number of tests by verdict."""
    verdicts = tested(claims)["verdict"]
    return {verdict: int((verdicts == verdict).sum()) for verdict in VERDICTS}


def by_question(claims: pd.DataFrame) -> list[dict]:
    """The claims of every question, in the order of the questions; some questions have none."""
    order = list(dict.fromkeys([*QUESTIONS, *claims["question"]]))
    return [
        {
            "question": question if question in RESEARCH else question.capitalize(),
            "words": QUESTIONS.get(question, ""),
            **asked(rows),
        }
        for question in order
        for rows in [claims[claims["question"] == question]]
    ]


def asked(rows: pd.DataFrame) -> dict:
    """The tests of one question: how many came out how, and each claim with its languages.

    Shown for what the definitions decide is that they do, not a verdict.
    """
    shown = rows["verdict"].mask(rows["by_construction"].astype(bool), "by construction")
    rows = rows.assign(shown=shown)
    claims = rows.groupby(["claim", "statistic", "agrees_if"], sort=False)
    return {
        "counts": counts(rows),
        "claims": [
            {
                "claim": claim,
                "statistic": statistic,
                "agrees_if": mathematical(region),
                "tests": tests.to_dict("records"),
            }
            for (claim, statistic, region), tests in claims
        ],
    }


# Agreement


def agreement_rows(agreement: pd.DataFrame | None) -> list[dict]:
    """Per language and measure, how far the cheaper threshold is from the exact one.

    A value is averaged over targets and models for every seed; shown are the mean over the seeds
    and the smallest and largest of them.
    """
    if agreement is None or agreement.empty:
        return []
    agreement = agreement.assign(threshold_distance=agreement["threshold_error"].abs())
    columns = ["threshold_distance", *AGREEMENT]
    rows = []
    for keys, group in agreement.groupby(["language", "measure", "evidence"], sort=False):
        seeds = group.groupby("seed")[columns].mean()
        row = dict(zip(("language", "measure", "evidence"), keys, strict=True))
        row |= {column: mean_and_reach(seeds[column]) for column in columns}
        both_start = int(group["start_error"].notna().sum())
        rows.append({**row, "n": len(group), "n_seeds": len(seeds), "both_start": both_start})
    return rows


def false_alarm_rows(tradeoff: pd.DataFrame | None) -> list[dict]:
    """Per language and measure, the share called memorised of strings never trained on.

    Beside it stands the share of the distinct training strings, both at optimal learning. Values
    are averaged over models for every seed, and shown as the agreement is.
    """
    if tradeoff is None or tradeoff.empty:
        return []
    optimum = tradeoff[tradeoff["epoch"] == tradeoff["optimal_epoch"]]
    columns = ["below_unseen", "fraction_unseen", "fraction_distinct"]
    rows = []
    for (language, measure), group in optimum.groupby(["language", "measure"], sort=False):
        seeds = group.groupby("seed")[columns].mean()
        row = {column: mean_and_reach(seeds[column]) for column in columns}
        rows.append({"language": language, "measure": measure, **row, "n_seeds": len(seeds)})
    return rows


def approximation_rows(approximation: pd.DataFrame | None) -> list[dict]:
    """Per language, measure and quantity, how near the approximation is to retraining every string.

    Values and the ends of their intervals are averaged over models and seeds.
    """
    if approximation is None or approximation.empty:
        return []
    keys = ["language", "measure", "evidence", "quantity"]
    rows = []
    for key, found in approximation.groupby(keys, sort=False):
        cells = found.groupby(["group", "statistic"])[["n_strings", "value", "lower", "upper"]]
        cells = cells.mean().to_dict("index")
        language, measure, evidence, quantity = key
        rows.append(
            {
                "language": language,
                "measure": measure,
                "evidence": evidence,
                "quantity": QUANTITIES[quantity],
                "n_strings": number(cells["all", "correlation"]["n_strings"]),
                "both_start": number(cells["all", "mean_error"]["n_strings"])
                if quantity == "start"
                else None,
                **{name: with_interval(cells.get((name, "correlation"))) for name in GROUPS},
                **{name: with_interval(cells.get(("all", name))) for name in ERRORS},
            }
        )
    return rows


def with_interval(cell: dict | None) -> str:
    """Value, and below it [lower, upper], for a reader; the value alone where there is none."""
    if cell is None or pd.isna(cell["value"]):
        return "–"
    if pd.isna(cell["lower"]):
        return number(cell["value"])
    return f"{number(cell['value'])}\n[{number(cell['lower'])}, {number(cell['upper'])}]"


def mean_and_reach(values: pd.Series) -> str:
    """Mean [smallest, largest], for a reader."""
    values = values.dropna()
    if values.empty:
        return "–"
    if len(values) == 1:
        return number(values.iloc[0])
    return f"{number(values.mean())} [{number(values.min())}, {number(values.max())}]"


# Words


def mathematical(region: str) -> str:
    """A region of a statistic with proper signs."""
    return region.replace(">=", "≥").replace("<=", "≤").replace("-", "−")


def slug(text: str) -> str:
    """A text as an id: letters and digits stay, whatever else becomes a hyphen."""
    return re.sub(r"[^A-Za-z0-9]+", "-", str(text)).strip("-") or "x"


STUDY_LABELS = {
    "models": "Models",
    "languages": "Languages",
    "sizes": "Training strings",
    "seeds": "Seeds",
    "epochs": "Epochs",
    "n_runs": "Runs, one training each",
    "wall_time_seconds": "Time of all runs together",
    "hardware": "Hardware",
    "packages": "Software of the runs",
    "revisions": "Revision of the code of the runs",
    "report": "Software of this report",
}


def study_rows(study: dict) -> list[tuple[str, str]]:
    """The study for a reader: label and value, known keys first."""
    own = {
        "palimpsest": palimpsest.__version__,
        "python": platform.python_version(),
        "matplotlib": matplotlib.__version__,
        "pandas": pd.__version__,
    }
    given = {**study, "report": own}
    known = [key for key in STUDY_LABELS if key in given]
    other = [key for key in given if key not in STUDY_LABELS]
    return [
        (STUDY_LABELS.get(key, key.replace("_", " ").capitalize()), told(key, given[key]))
        for key in [*known, *other]
    ]


def told(key: str, value) -> str:
    """A value of the study for a reader."""
    if key == "wall_time_seconds":
        return duration(value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {told('', part)}" for name, part in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(told("", part) for part in value)
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def duration(seconds: float | None) -> str:
    """Seconds for a reader: the two largest units."""
    if seconds is None or pd.isna(seconds):
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
