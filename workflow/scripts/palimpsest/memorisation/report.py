"""The part of the report on memorisation: measures, studies and cheap thresholds."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from palimpsest.estimates import with_interval
from palimpsest.memorisation.all_measures import ALL_DESCRIPTIONS
from palimpsest.memorisation.claims import QUESTIONS
from palimpsest.memorisation.studies import STUDIES
from palimpsest.number_format import in_words, number
from palimpsest.report.part import NOTHING, Chapter, Part, with_words
from palimpsest.report.templates import template
from palimpsest.statistics import NO_INTERVAL, Interval

AGREEMENT = ("threshold_error", "start_error", "score_error", "same_verdict")
GROUPS = ("all", "repeated", "single")
ERRORS = ("mean_error", "mean_absolute_error", "same_verdict")
QUANTITIES = {
    "threshold": "threshold\n(nats per token)",
    "start": "start\n(epochs)",
    "score_at_optimum": "score at optimal\nlearning (0 to 1)",
    "score_at_end": "score at the end\n(0 to 1)",
}
in_two_lines = partial(with_interval, separator="\n")


def part(tables: Mapping[str, pd.DataFrame]) -> Part:
    """The section's part of the report.

    `tables` maps the kinds `tradeoff`, `agreement`, `approximation` and `learning` to stacked
    tables. If one is empty or absent, the text about it is left out.
    """
    html = template(__file__, "report.html.j2").module
    approximation = approximation_rows(tables.get("approximation"))
    tradeoff = tables.get("tradeoff")
    thresholds = (
        agreement_rows(tables.get("agreement")),
        false_alarm_rows(tradeoff),
        still_learning_rows(tables.get("learning")),
    )
    after = {"exact": html.approximation(approximation)} if approximation else {}
    chapters = (
        Chapter(
            "measures",
            f"{in_words(len(ALL_DESCRIPTIONS)).capitalize()} ways to say “memorised”",
            before=html.measures(ALL_DESCRIPTIONS),
        ),
        *(
            Chapter(study.name, study.title, study.text, after=after.get(study.name, NOTHING))
            for study in STUDIES.values()
        ),
        Chapter(
            "agreement",
            "How good the cheap thresholds are",
            before=html.thresholds(*thresholds) if any(thresholds) else NOTHING,
        ),
    )
    return with_words(html, QUESTIONS, chapters)


def agreement_rows(agreement: pd.DataFrame | None) -> list[dict]:
    """Per language and measure: the difference between the cheaper and the exact threshold.

    For each seed, a value is averaged over targets and models. The row shows the mean over the
    seeds, the smallest seed and the largest seed.
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
    """Per language and measure: shares of training strings and of the two placebos.

    The placebos are the strings never trained on, and a model that knows the language and nothing
    else. All shares are at optimal learning. For each seed, values are averaged over models; the
    row shows mean, smallest and largest seed.
    """
    if tradeoff is None or tradeoff.empty:
        return []
    optimum = tradeoff[tradeoff["epoch"] == tradeoff["optimal_epoch"]]
    columns = [
        "coverage",
        "below_distinct",
        "below_unseen",
        "fraction_distinct",
        "fraction_unseen",
        "fraction_perfect",
    ]
    rows = []
    for (language, measure), group in optimum.groupby(["language", "measure"], sort=False):
        seeds = group.groupby("seed")[columns].mean()
        row = {column: mean_and_reach(seeds[column]) for column in columns}
        rows.append({"language": language, "measure": measure, **row, "n_seeds": len(seeds)})
    return rows


def still_learning_rows(learning: pd.DataFrame | None) -> list[dict]:
    """Per language, model, size and variant: number of runs whose test loss may still fall."""
    if learning is None or learning.empty:
        return []
    keys = ["language", "model", "size", "variant"]
    # Runs by two recipes have equal keys, and each has every epoch once.
    run = learning.groupby([*keys, "seed", "epoch"]).cumcount()
    runs = learning.assign(run=run).drop_duplicates([*keys, "seed", "run"])
    found = runs.groupby(keys, sort=False)["still_learning"].agg(late="sum", runs="size")
    return found[found["late"] > 0].reset_index().to_dict("records")


def approximation_rows(approximation: pd.DataFrame | None) -> list[dict]:
    """Per language, measure and quantity: the approximation compared with leave-one-out.

    Values and the ends of their intervals are averaged over models and seeds.
    """
    if approximation is None or approximation.empty:
        return []
    keys = ["language", "measure", "evidence", "quantity"]
    rows = []
    for key, found in approximation.groupby(keys, sort=False):
        columns = ["n_strings", "value", "lower", "upper"]
        means = found.groupby(["group", "statistic"])[columns].mean()
        cells = {row.Index: row for row in means.rename(columns={"value": "mean"}).itertuples()}
        language, measure, evidence, quantity = key
        rows.append(
            {
                "language": language,
                "measure": measure,
                "evidence": evidence,
                "quantity": QUANTITIES[quantity],
                "n_strings": number(cells["all", "correlation"].n_strings),
                "both_start": number(cells["all", "mean_error"].n_strings)
                if quantity == "start"
                else None,
                **{
                    name: in_two_lines(cells.get((name, "correlation"), NO_INTERVAL))
                    for name in GROUPS
                },
                **{name: in_two_lines(cells.get(("all", name), NO_INTERVAL)) for name in ERRORS},
            }
        )
    return rows


def mean_and_reach(values: pd.Series) -> str:
    values = values.dropna()
    ends = (values.min(), values.max()) if len(values) > 1 else (np.nan, np.nan)
    return with_interval(Interval(values.mean(), *ends))
