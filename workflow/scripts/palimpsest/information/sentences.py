"""What the report's first page says of activations that a user gave: how they order models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from palimpsest.estimates import with_interval
from palimpsest.information import kinds
from palimpsest.information.encoders.study import group_name
from palimpsest.information.trends import ENTROPY, INFORMATION, PLACEBOS
from palimpsest.number_format import number, plural
from palimpsest.report.part import Sentence
from palimpsest.report.templates import given, groups, mean_over_seeds
from palimpsest.statistics import Interval

PERMUTED = PLACEBOS[INFORMATION][0]
LEAST_P = 0.001  # smaller p-values are not told apart
NEEDED = (
    "Nothing is ranked: that needs three models or more of a seed, whose accuracies or doses "
    "differ (information/activations)."
)
# What the paper says of the tau of mutual information; that of entropy has the other sign
READING = {
    kinds.ACCURACY: "a shortcut makes the tau of mutual information negative, and learning by "
    "heart positive",
    kinds.DOSE: "doses of a shortcut make the tau of mutual information positive, and those of "
    "learning by heart negative",
}


def sentences(tables: Mapping[str, pd.DataFrame]) -> Iterator[Sentence]:
    """A sentence for each group of given activations; those of encoders have claims."""
    layers, associations, encoders = given(
        tables, kinds.GIVEN_LAYERS, kinds.GIVEN_ASSOCIATIONS, kinds.ENCODERS
    )
    if layers.empty:
        return
    of_encoders, ranked = groups_of_encoders(encoders), rankings(associations)
    for key, own in groups(layers, ["language"]):
        group = key["language"]
        if group not in of_encoders:
            yield ordered(group, ranked[group]) if group in ranked else measured(own)


def rankings(associations: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """By group, the rows by their score that compare with accuracy, or else with the dose.

    Groups in which mutual information is compared with neither are left out.
    """
    if associations.empty:
        return {}
    found = {}
    for other in (kinds.DOSE, kinds.ACCURACY):
        for key, rows in groups(associations[associations["other"] == other], ["language"]):
            by_score = rows.set_index("score")
            if INFORMATION in by_score.index:
                found[key["language"]] = by_score
    return found


def groups_of_encoders(encoders: pd.DataFrame) -> set[str]:
    """The names of the groups of activations that are of encoders, from the table `encoders`."""
    if encoders.empty:
        return set()
    studies = encoders[["language", "intervention", "position"]].drop_duplicates()
    return {group_name(*row) for row in studies.itertuples(index=False, name=None)}


def ordered(group: str, rows: pd.DataFrame) -> Sentence:
    """How the measures order the models of a group: Kendall's tau of each score in the index.

    `rows` compare the scores with accuracy, or with the dose.
    """
    row = rows.loc[INFORMATION]
    entropy = f", and that of entropy {tau_of(rows.loc[ENTROPY])}" if ENTROPY in rows.index else ""
    placebo = tau_of(rows.loc[PERMUTED]) if PERMUTED in rows.index else "undefined"
    seeds = (
        f"intervals over {row['n_seeds']} seeds"
        if row["n_seeds"] > 1
        else "one seed: no interval, and models of more seeds would give one"
    )
    return Sentence(
        f"In the group {group}, Kendall’s tau of mutual information with the {row['other']} of the "
        f"models is {tau_of(row)}{entropy}.",
        f"1 is the same order, −1 the opposite. Placebo: that of mutual information of permuted "
        f"samples is {placebo}. {plural(row['n_models'], 'model')}; {seeds}. According to the "
        f"paper, {READING[row['other']]}.",
    )


def tau_of(row: pd.Series) -> str:
    """Kendall's tau with its interval, or with its p-value if one seed, or all alike, give none."""
    tau = number(row["tau"])
    if row["tau_lower"] < row["tau_upper"]:
        return with_interval(Interval(row["tau"], row["tau_lower"], row["tau_upper"]))
    is_small = row["p_value"] < LEAST_P
    shown = f"< {LEAST_P}" if is_small else f"= {number(row['p_value'])}"
    p_value = "" if pd.isna(row["p_value"]) else f" (p {shown})"
    return f"{tau} in every seed{p_value}" if row["n_seeds"] > 1 else f"{tau}{p_value}"


def measured(layers: pd.DataFrame) -> Sentence:
    """The means of the measures over the layers of all models of a group that is not ranked."""
    mean = {name: layers.groupby("seed")[name].mean() for name in (INFORMATION, ENTROPY, PERMUTED)}
    told = {name: mean_over_seeds(values.dropna()) for name, values in mean.items()}
    n_models, n_layers = layers["model"].nunique(), layers["layer_name"].nunique()
    return Sentence(
        f"In the group {layers['language'].iloc[0]}, pairs of neurons have a mean mutual "
        f"information of {told[INFORMATION]} nats, and neurons a mean entropy of {told[ENTROPY]} "
        f"nats ({plural(n_models, 'model')}, {plural(n_layers, 'layer')}).",
        f"Placebo: mutual information of permuted samples, {told[PERMUTED]}. {NEEDED}",
    )
