"""The part of the report on unlearning: numbers, and sentences computed from them.

The sentences that open the chapter are in `opening_sentences`, the numbers per method in
`outcomes`.
"""

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from palimpsest.estimates import with_interval
from palimpsest.figures import style
from palimpsest.number_format import number, percent, score
from palimpsest.report.part import Part, chapters_of, with_words
from palimpsest.report.templates import template
from palimpsest.statistics import Interval
from palimpsest.tables import Kind, read_all
from palimpsest.unlearning import opening_sentences
from palimpsest.unlearning.attacks.lower_bounds import CONFIDENCE
from palimpsest.unlearning.claims import QUESTIONS
from palimpsest.unlearning.evaluate import residual_memorisation
from palimpsest.unlearning.evaluate.outcomes import Outcome, outcomes
from palimpsest.unlearning.evaluate.placebos import FORGET, PLACEBO
from palimpsest.unlearning.evaluate.verdicts import KEEPS
from palimpsest.unlearning.kinds import GAP_SUMMARY, MEMORISATION, SCORES, TESTS
from palimpsest.unlearning.opening_sentences import as_shown, in_percent
from palimpsest.unlearning.run.setups import ENDS, FULL, NONE, RETRAIN, REUSE_N_N

KINDS = (SCORES, TESTS, GAP_SUMMARY, MEMORISATION)
OF_MODEL = ["language", "model"]
ENDS_IN_WORDS = {RETRAIN: "the goal", NONE: "the start"}
MEASURES = {
    name: look.label if look.label.startswith("recollection") else f"{look.label} memorisation"
    for name, look in style.MEASURES.items()
}


def part(tables: Mapping[str, pd.DataFrame]) -> Part:
    """The section's part of the report.

    `tables` maps the names of `KINDS` to stacked tables. If there are no scores, nothing was
    unlearned, and the part is only an introduction.
    """
    html = template(__file__, "report.html.j2").module
    found = findings(*(of_kind(tables, kind) for kind in KINDS))
    if found is None:
        return Part(chapters=chapters_of(html), questions=QUESTIONS)
    before = {"unlearning": html.opening(found) + html.scores(found)}
    after = {"unlearning": html.memorised(found) + html.limits(found)}
    return with_words(html, QUESTIONS, before, after)


def of_kind(tables: Mapping[str, pd.DataFrame], kind: Kind) -> pd.DataFrame:
    return tables[kind.name] if kind.name in tables else read_all([], kind)


def findings(
    scores: pd.DataFrame,
    tests: pd.DataFrame,
    gaps: pd.DataFrame,
    memorised: pd.DataFrame,
) -> dict | None:
    """All numbers and sentences of the chapter; None if nothing was unlearned.

    The parameters are the stacked tables of `KINDS`; all but the first may be empty. Of the scores,
    only the first set-up is used; the figures show the others. The tests use all distinct models,
    so their number of models can be another one.
    """
    if scores.empty:
        return None
    setups = set(scores["setup"])
    scores = scores[scores["setup"] == scores["setup"].iloc[0]]
    n_scored = int(scores["n_models"].min())
    n_models = n_scored if tests.empty else int(tests["n_models"].min())
    groups = [
        group(*key, *(of_model(table, *key) for table in (scores, tests, gaps, memorised)))
        for key in scores[OF_MODEL].drop_duplicates().itertuples(index=False, name=None)
    ]
    fewest = min(each["n_problems"] for each in groups)
    return {
        "setup": scores["setup"].iloc[0],
        "setups_compared": {FULL, REUSE_N_N} <= setups,
        "n_repetitions": int(scores["repetition"].nunique()),
        "n_scored": n_scored,
        "n_models": n_models,
        "largest": number(math.log(max(n_scored - 1, 1))),
        "largest_bound": number(largest_bound(n_models)),
        "smallest_p": number(opening_sentences.smallest_p(n_models)),
        "smallest_corrected_p": number(min(1.0, 2 * opening_sentences.smallest_p(n_models))),
        "keeps": percent(KEEPS),
        "groups": groups,
        "n_problems": fewest,
        "few": fewest < opening_sentences.MOST_LISTED,
    }


def of_model(table: pd.DataFrame, language: str, model: str) -> pd.DataFrame:
    return table[(table["language"] == language) & (table["model"] == model)]


def largest_bound(n_models: int) -> float:
    """Approximate lower bound of epsilon if an attack on `n_models` of each kind never errs."""
    rate = 1 - ((1 - CONFIDENCE) / 2) ** (1 / n_models)  # Clopper and Pearson, for no error
    return max(0.0, math.log((1 - rate) / rate))


def group(
    language: str,
    model: str,
    scores: pd.DataFrame,
    tests: pd.DataFrame,
    gaps: pd.DataFrame,
    memorised: pd.DataFrame,
) -> dict:
    found = outcomes(tests, gaps, scores)
    nearest = opening_sentences.nearest_of(one for one in found if not one.is_end)
    name = None if nearest is None else nearest.name
    return {
        "language": language,
        "model": model,
        "n_problems": max(one.n_problems for one in found),
        "opening": opening_sentences.sentences(found, memorised),
        "methods": [method_row(one) for one in in_order(found)],
        "nearest": name,
        "memorised": memorised_rows(residual_memorisation.measure_rows(memorised, name)),
        "nothing": [
            MEASURES[measure] for measure in residual_memorisation.nothing_to_remove(memorised)
        ],
    }


def in_order(found: Sequence[Outcome]) -> list[Outcome]:
    ends = {one.name: one for one in found if one.name in ENDS}
    methods = [one for one in found if one.name not in ENDS]
    first, last = ([ends[end]] if end in ends else [] for end in (RETRAIN, NONE))
    return [*first, *methods, *last]


def method_row(one: Outcome) -> dict:
    return {
        "name": one.name,
        "end": one.is_end,
        "closed": in_percent(one.closed),
        "placebo": in_percent(one.placebo),
        "retained": in_percent(one.retained),
        "told": told(one),
        "relative_quality": with_interval(one.values["relative_quality"], score),
        "kept": {which: in_percent(one.values[which]) for which in ("retain", "test")},
        "steps": f"{number(round(100 * one.values['steps_share'].mean, 1))}\u00a0%",
        "words": ENDS_IN_WORDS[one.name] if one.is_end else in_words(one),
    }


def told(one: Outcome) -> str:
    if not one.verdict.n_problems:
        return "–"
    if not opening_sentences.can_tell(one.n_models):
        return "cannot tell"
    counts = f"{one.verdict.n_told} of {one.verdict.n_problems}"
    return f"{counts} ({number(one.p_values.min())})"


def in_words(one: Outcome) -> str:
    words = [forgetting_in_words(one)]
    if as_shown(one.verdict.damage).lower > 0:
        words.append("damages unseen strings")
    if as_shown(one.verdict.damage_to_retained).lower > 0:
        words.append("damages retained strings")
    if one.verdict.lost:
        words.append(f"loses {' and '.join(one.verdict.lost)} strings")
    if one.slow:
        words.append("too slow to count")
    return "; ".join(words)


def forgetting_in_words(one: Outcome) -> str:
    share, lower, upper = as_shown(one.closed)
    if pd.isna(share):
        return "cannot tell: no clear gap"
    if pd.isna(lower):
        return "cannot tell: no interval"
    if upper < 0:
        return "knows the strings better than before"
    if lower <= 0:
        return "no forgetting shown"
    beyond = as_shown(one.verdict.beyond)
    if pd.isna(beyond.lower):
        return "cannot tell from general damage: no placebos"
    if beyond.lower <= 0:
        return "not told from general damage"
    if lower > 1:
        return "overshoots"
    return "forgets in part" if upper < 1 else "forgets; the interval reaches retraining"


# Memorisation


def memorised_rows(found: Sequence[dict]) -> list[dict]:
    """A row for each measure: shares of forget strings, and those of placebos in parentheses."""
    of_role = {(row["measure"], row["string_role"]): memorised_row(row) for row in found}
    return [
        {
            name: f"{cell} ({of_role[measure, PLACEBO][name]})"
            if name != "measure" and (measure, PLACEBO) in of_role
            else cell
            for name, cell in row.items()
        }
        for (measure, role), row in of_role.items()
        if role == FORGET
    ]


def memorised_row(row: dict) -> dict:
    after = Interval(row["after"], row["lowest"], row["highest"])
    return {
        "measure": MEASURES[row["measure"]],
        "answerable": answerable(row["n_answerable"], row["n_strings"]),
        "after": in_percent(after),
        **{name: shown(row[name]) for name in ("before", "nearest", "retrained")},
    }


def answerable(n: int, n_strings: int) -> str:
    """The strings that a measure can answer for, of how many, if not of all."""
    return str(n) if n == n_strings else f"{n} of {n_strings}"


def shown(share: float) -> str:
    return "–" if pd.isna(share) else percent(share)
