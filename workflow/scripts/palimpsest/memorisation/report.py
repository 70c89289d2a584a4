"""The part of the report on memorisation: measures, studies and cheap thresholds."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from palimpsest.estimates import clipped, with_interval
from palimpsest.memorisation import kinds
from palimpsest.memorisation.all_measures import ALL_DESCRIPTIONS
from palimpsest.memorisation.claims import QUESTIONS
from palimpsest.memorisation.studies import STUDIES
from palimpsest.number_format import in_words, number
from palimpsest.report.part import NOTHING, Chapter, Part, with_words
from palimpsest.report.templates import (
    given,
    groups,
    rows_of,
    shown,
    template,
)
from palimpsest.statistics import NO_INTERVAL, Interval, student

AGREEMENT = ("threshold_error", "start_error", "score_error", "same_verdict")
ERRORS = ("mean_error", "mean_absolute_error", "same_verdict")
in_two_lines = partial(with_interval, separator="\n")


def part(tables: Mapping[str, pd.DataFrame], start_rule: str = "after_last_miss") -> Part:
    """The section's part of the report, which says by which rule memorisation starts.

    `tables` maps the kinds `tradeoff`, `agreement`, `approximation`, `learning` and `exposure` to
    stacked tables. If one is empty or absent, the text about it is left out; that on `agreement`
    also if there is `approximation`, which says the same of more strings.
    """
    html = template(__file__, "report.html.j2").make_module({"start_rule": start_rule})
    tradeoff, agreement, approximation, learning, exposure = given(
        tables,
        STUDIES["tradeoff"].kind,
        kinds.AGREEMENT,
        kinds.APPROXIMATION,
        kinds.LEARNING,
        STUDIES["exposure"].kind,
    )
    thresholds = (
        rows_of(agreement_rows, agreement if approximation.empty else agreement.head(0)),
        rows_of(false_alarm_rows, tradeoff),
        rows_of(still_learning_rows, learning),
    )
    after = {
        "exact": shown(html.approximation, approximation_rows, approximation),
        "exposure": NOTHING
        if exposure.empty
        else html.exposure(exposure_rows(exposure), example_of_fields(exposure)),
    }
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
    return with_words(html, QUESTIONS, chapters=chapters)


def agreement_rows(agreement: pd.DataFrame) -> list[dict]:
    """Per language and measure: the difference between the cheaper and the exact threshold.

    For each seed, a value is averaged over targets and models. The row shows the mean over the
    seeds, the smallest seed and the largest seed.
    """
    agreement = agreement.assign(threshold_distance=agreement["threshold_error"].abs())
    columns = ["threshold_distance", *AGREEMENT]
    rows = []
    for row, group in groups(agreement, ["language", "measure", "evidence"]):
        seeds = group.groupby("seed")[columns].mean()
        row |= {column: mean_and_reach(seeds[column]) for column in columns}
        both_start = int(group["start_error"].notna().sum())
        rows.append({**row, "n": len(group), "n_seeds": len(seeds), "both_start": both_start})
    return rows


def false_alarm_rows(tradeoff: pd.DataFrame) -> list[dict]:
    """Per language and measure: shares of training strings and of the two placebos.

    The placebos are the strings never trained on, and a model that knows the language and nothing
    else. All shares are at optimal learning. For each seed, values are averaged over models; the
    row shows mean, smallest and largest seed.
    """
    optimum = tradeoff[tradeoff["epoch"] == tradeoff["optimal_epoch"]]
    columns = [
        "coverage",
        "below_distinct",
        "below_unseen",
        "share_memorised_distinct",
        "share_memorised_unseen",
        "share_memorised_perfect",
    ]
    rows = []
    for row, group in groups(optimum, ["language", "measure"]):
        seeds = group.groupby("seed")[columns].mean()
        row |= {column: mean_and_reach(seeds[column]) for column in columns}
        rows.append({**row, "n_seeds": len(seeds)})
    return rows


def still_learning_rows(learning: pd.DataFrame) -> list[dict]:
    """Per language and model: number of runs, and of those whose test loss may still fall."""
    keys = ["language", "model", "size", "variant"]
    # Runs by two recipes have equal keys, and each has every epoch once.
    run = learning.groupby([*keys, "seed", "epoch"]).cumcount()
    runs = learning.assign(run=run).drop_duplicates([*keys, "seed", "run"])
    found = runs.groupby(["language", "model"], sort=False)["still_learning"]
    return found.agg(late="sum", runs="size").reset_index().to_dict("records")


def approximation_rows(approximation: pd.DataFrame) -> list[dict]:
    """Per language and measure: the approximation's start compared with leave-one-out.

    All strings together; values and the ends of their intervals are averaged over models and seeds.
    """
    starts = approximation[approximation["quantity"] == "start"]
    rows = []
    for row, found in groups(starts, ["language", "measure", "evidence"]):
        columns = ["n_strings", "value", "lower", "upper"]
        means = found.groupby(["group", "statistic"])[columns].mean()
        cells = {one.Index: one for one in means.rename(columns={"value": "mean"}).itertuples()}
        rows.append(
            {
                **row,
                "n_strings": number(cells["all", "correlation"].n_strings),
                "both_start": number(cells["all", "mean_error"].n_strings),
                **{
                    name: in_two_lines(cells.get(("all", name), NO_INTERVAL))
                    for name in ("correlation", *ERRORS)
                },
            }
        )
    return rows


def exposure_rows(exposure: pd.DataFrame) -> list[dict]:
    """Per language, model, size, and field that is open or determined: verdicts and exposures.

    The verdict is memorised for open fields, and known for determined ones; an open field about
    none of whose values a loss can tell has no shares. Shares are means over the seeds; their
    difference has Student's interval over the seeds.
    """
    rows = []
    for row, found in groups(exposure, ["language", "model", "size", "field", "determined"]):
        verdict = "known" if row["determined"] else "memorised"
        has_verdict = (found["verdict"] == verdict).where(found["verdict"] != "cannot tell")
        shares = has_verdict.astype(float).groupby([found["seed"], found["group"]]).mean()
        shares = shares.unstack().reindex(columns=["train", "unseen"])
        apart = shares["train"] - shares["unseen"]
        bits = found.groupby("group")["bits"].median()
        rows.append(
            {
                **row,
                "verdict": verdict,
                "n": {group: len(of_group) for group, of_group in found.groupby("group")},
                "trained": number(shares["train"].mean()),
                "unseen": number(shares["unseen"].mean()),
                "difference": with_interval(clipped(student(apart), (-1, 1))),
                "bits_trained": number(bits.get("train")),
                "bits_unseen": number(bits.get("unseen")),
            }
        )
    return rows


def example_of_fields(exposure: pd.DataFrame) -> dict:
    """The first training string of the first model, with the verdicts on its fields."""
    trained = exposure[exposure["group"] == "train"].sort_values(["string_id", "begin"])
    first = trained.iloc[0]
    keys = ["language", "model", "size", "seed", "string_id"]
    fields = trained[(trained[keys] == first[keys]).all(axis=1)]
    return {"model": first["model"], "seed": first["seed"], "fields": fields.to_dict("records")}


def mean_and_reach(values: pd.Series) -> str:
    values = values.dropna()
    ends = (values.min(), values.max()) if len(values) > 1 else (np.nan, np.nan)
    return with_interval(Interval(values.mean(), *ends))
