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
from palimpsest.number_format import number, percent
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
    layers, associations = given(tables, kinds.GIVEN_LAYERS, kinds.GIVEN_ASSOCIATIONS)
    (encoders,) = given(tables, kinds.ENCODERS)
    before = {
        "diversity": shown(html.trends, trend_rows, information),
        "comparison": shown(html.shares, share_rows, information),
        "epochs": shown(html.epochs, epoch_rows, epochs),
        "encoders": shown(html.encoders, encoder_rows, encoders),
        "given": shown(html.layers, layer_rows, layers)
        + shown(html.associations, association_rows, associations),
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


def encoder_rows(encoders: pd.DataFrame) -> list[dict]:
    """Per study, intervention and share: accuracies; compression and gaps at the last block."""
    last = encoders[(encoders["position"] == kinds.CLS)]
    last = last[last["layer"] == last["n_layers"] - 1]
    rows = []
    for row, own in groups(last, ["language", "model", "intervention"]):
        for share, runs in own.groupby("share"):
            numbers = {name: mean_over_seeds(runs[name].dropna()) for name in kinds.ENCODER_NUMBERS}
            what = {**MEMORISATION, kinds.RANDOM_MARKERS: "random words (placebo)"}
            rows.append({**row, "intervention": what[row["intervention"]], "share": f"{share:g}",
                         **numbers})  # fmt: skip
    return rows


def layer_rows(layers: pd.DataFrame) -> list[dict]:
    """Per group, dose (or model) and layer: means over the models of the measures."""
    named = layers.assign(models=layers["dose"].map("{:g}".format).where(has_doses(layers)))
    named["models"] = named["models"].fillna(named["model"])
    rows = []
    for row, own in groups(named, ["language", "models", "layer_name"]):
        numbers = {
            name: mean_over_seeds(own.groupby("seed")[name].mean().dropna())
            for name in kinds.SCORES
        }
        about = {"n_samples": own["n_samples"].iloc[0], "copies": percent(own["copies"].max())}
        constant = percent(own["n_degenerate"].sum() / own["n_neurons"].sum())
        rows.append({**row, **about, "constant": constant, **numbers})
    return rows


def has_doses(layers: pd.DataFrame) -> pd.Series:
    """Whether all models of a row's group have a dose."""
    return layers["dose"].notna().groupby(layers["language"]).transform("all")


def association_rows(associations: pd.DataFrame) -> list[dict]:
    """Per group, measure or given score, and what it is compared with: tau, Pearson, slope."""
    against = associations[
        associations["other"].isin([kinds.ACCURACY, kinds.DOSE])
        | associations["score"].isin(kinds.SCORES) & ~associations["other"].isin(kinds.SCORES)
    ]
    rows = []
    for row in against.to_dict("records"):
        found = {
            name: with_interval(Interval(row[name], row[f"{name}_lower"], row[f"{name}_upper"]))
            for name in ("tau", "pearson", "slope")
        }
        words = {name: row[name].replace("_", " ") for name in ("score", "other")}
        rows.append({**row, **words, **found, "p_value": number(row["p_value"])})
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
