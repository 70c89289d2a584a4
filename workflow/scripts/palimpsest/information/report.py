"""The part of the report on information measures of neurons."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from palimpsest.estimates import with_interval
from palimpsest.information import kinds
from palimpsest.information.claims import QUESTIONS
from palimpsest.information.claims.claim_statistics import EXPECTED
from palimpsest.information.claims.rows import MEMORISATION
from palimpsest.information.epochs import BEYOND, NEIGHBOURS, changes, starts
from palimpsest.information.interventions import FRESH, REPEATED
from palimpsest.information.trends import INFORMATION, MEASURES, PLACEBOS, SHARE, runs_of, slopes
from palimpsest.report.part import Part, with_words
from palimpsest.report.templates import given, groups, mean_over_seeds, shown, template
from palimpsest.statistics import Interval, student

OF_SHARE = (
    "accuracy",
    "accuracy_agrees",
    "accuracy_disagrees",
    "memorised",
    "memorised_unseen",
    "two_norm",
    "frobenius",
)
PERMUTED = PLACEBOS[INFORMATION][0]


def part(tables: Mapping[str, pd.DataFrame]) -> Part:
    """The section's part of the report.

    `tables` maps the section's reported kinds to stacked tables. Without any, the part only has its
    chapters' headings.
    """
    html = template(__file__, "report.html.j2").module
    information, epochs = given(tables, kinds.INFORMATION, kinds.EPOCHS)
    before = {
        "diversity": shown(html.trends, trend_rows, information),
        "comparison": shown(html.shares, share_rows, information),
        "epochs": shown(html.epochs, epoch_rows, epochs),
    }
    return with_words(html, QUESTIONS, before)


def trend_rows(information: pd.DataFrame) -> list[dict]:
    """Per language, model, intervention and site: the change of each measure from share 0 to 1."""
    rows = []
    for row, own in groups(information, ["language", "model", "intervention", *kinds.OF_SITE]):
        found = {name: student(slopes(own, name).dropna()) for name in (*MEASURES, PERMUTED)}
        rows.append(
            {
                **row,
                "intervention": MEMORISATION[row["intervention"]],
                **{name: with_interval(interval) for name, interval in found.items()},
                **{
                    f"{name}_reading": reading(found[name], EXPECTED[row["intervention"], name])
                    for name in MEASURES
                },
            }
        )
    return rows


def reading(change: Interval, expected: int) -> str:
    if not change.lower < change.upper:
        return "cannot tell"
    if change.lower > 0 or change.upper < 0:
        return "as expected" if np.sign(change.mean) == expected else "opposite"
    return "cannot tell"


def share_rows(information: pd.DataFrame) -> list[dict]:
    """Per language, model, intervention and share: accuracy, memorised strings and norms."""
    rows = []
    for row, own in groups(information, ["language", "model", "intervention"]):
        for share, runs in runs_of(own, OF_SHARE).groupby(SHARE):
            rows.append(
                {
                    **row,
                    "intervention": MEMORISATION[row["intervention"]],
                    "share": f"{share:g}",
                    **{name: mean_over_seeds(runs[name].dropna()) for name in OF_SHARE},
                }
            )
    return rows


def epoch_rows(epochs: pd.DataFrame) -> list[dict]:
    """Per language, model, place and position: what changes when memorisation starts.

    First the mean over all layers, then every layer.
    """
    rows = []
    for about, own in groups(epochs, ["language", "model", "place", "position"]):
        about["starts"] = ", ".join(
            "never" if np.isnan(start) else f"{start:g}" for start in starts(own)
        )
        rows.append({**about, "layer": "all", **at_start(own)})
        rows += [
            {**about, "layer": layer, **at_start(of_layer)}
            for layer, of_layer in own.groupby("layer")
        ]
    return rows


def at_start(epochs: pd.DataFrame) -> dict[str, str]:
    names = {REPEATED: "repeated", FRESH: "fresh", NEIGHBOURS: "around", BEYOND: "beyond"}
    found = {}
    for measure in MEASURES:
        for name, values in changes(epochs, measure).items():
            found[f"{measure}_{names[name]}"] = mean_over_seeds(values.mean(axis=1).dropna())
    return found
