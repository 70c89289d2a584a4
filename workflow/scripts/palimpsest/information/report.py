"""The part of the report on information measures of neurons."""

from collections.abc import Mapping
from types import ModuleType

import numpy as np
import pandas as pd
from markupsafe import Markup

from palimpsest.estimates import with_interval
from palimpsest.information import kinds
from palimpsest.information.claims import QUESTIONS
from palimpsest.information.claims.rows import MEMORISATION
from palimpsest.information.epochs import BEYOND, NEIGHBOURS, changes, starts
from palimpsest.information.interventions import FRESH, REPEATED
from palimpsest.information.sentences import groups_of_encoders
from palimpsest.information.trends import INFORMATION, MEASURES, PLACEBOS, SHARE, runs_of, slopes
from palimpsest.number_format import number, percent
from palimpsest.report.part import NOTHING, Chapter, Part
from palimpsest.report.templates import given, groups, mean_over_seeds, shown, template
from palimpsest.statistics import Interval, student

OF_SHARE = ("accuracy", "memorised", "memorised_unseen")
PERMUTED = PLACEBOS[INFORMATION][0]


def part(tables: Mapping[str, pd.DataFrame]) -> Part:
    """The section's part of the report.

    `tables` maps the section's reported kinds to stacked tables. Its words are about what there is
    alone; without any table, the chapters have headings only.
    """
    html = template(__file__, "report.html.j2").module
    information, epochs = given(tables, kinds.INFORMATION, kinds.EPOCHS)
    layers, associations = given(tables, kinds.GIVEN_LAYERS, kinds.GIVEN_ASSOCIATIONS)
    (encoders,) = given(tables, kinds.ENCODERS)
    of_encoders = groups_of_encoders(encoders)
    names = set() if layers.empty else set(layers["language"])
    what = {
        "induced": [] if information.empty else induced(information),
        "epochs": not epochs.empty,
        "encoders": not encoders.empty,
        "given": bool(names - of_encoders),
        "given_encoders": bool(names & of_encoders),
        "compared": not layers.empty and layers["model"].nunique() > 1,
    }
    before = {
        "diversity": shown(html.trends, trend_rows, information),
        "comparison": shown(html.shares, share_rows, information),
        "epochs": shown(html.epochs, epoch_rows, epochs),
        "encoders": shown(html.encoders, encoder_rows, encoders),
        "given": of_layers(html, layers) + of_associations(html, associations),
    }
    titles = {**html.chapters, "given": ("Given activations", html.about_given(what))}
    return Part(
        introduction=html.introduction(what),
        reading=html.reading(what),
        claims=html.claims(),
        chapters=tuple(
            Chapter(name, title, text, before[name]) for name, (title, text) in titles.items()
        ),
        questions=QUESTIONS,
        glossary={**html.glossary, **(html.glossary_of_markers if what["induced"] else {})},
    )


def induced(information: pd.DataFrame) -> list[str]:
    """The kinds of memorisation that were induced, in words."""
    return [
        MEMORISATION[name] for name in MEMORISATION if (information["intervention"] == name).any()
    ]


def of_layers(html: ModuleType, layers: pd.DataFrame) -> Markup:
    """The table of the layers of given activations, with the words that hold of them."""
    if layers.empty:
        return NOTHING
    doses = set(has_doses(layers))
    heading = "Dose or model" if len(doses) == 2 else "Dose" if doses == {True} else "Model"
    return html.layers(layer_rows(layers), heading, layers["seed"].nunique() > 1)


def of_associations(html: ModuleType, associations: pd.DataFrame) -> Markup:
    """The table of how scores order given models, with the words that hold of them."""
    if associations.empty:
        return NOTHING
    rows = association_rows(associations)
    has_dose = (associations["other"] == kinds.DOSE).any()
    return html.associations(rows, has_dose, associations["n_seeds"].max() > 1) if rows else NOTHING


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
            }
        )
    return rows


def share_rows(information: pd.DataFrame) -> list[dict]:
    """Accuracy, memorised strings and norms without an intervention and with the largest share.

    One row per language, model, intervention and one of the two shares.
    """
    rows = []
    for row, own in groups(information, ["language", "model", "intervention"]):
        shares = runs_of(own, OF_SHARE)
        ends = shares[SHARE].isin([shares[SHARE].min(), shares[SHARE].max()])
        for share, runs in shares[ends].groupby(SHARE):
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
