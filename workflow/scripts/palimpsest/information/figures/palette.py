"""What the figures of information measures share: colours, the shown site, words.

A figure has one meaning of colour: the intervention or the measure. Interventions go from light to
full colour with the share.
"""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.libraries import pd
from palimpsest.information.interventions import percent_marked, percent_shuffled
from palimpsest.information.kinds import MARKERS, POSITIONS, SHUFFLES
from palimpsest.information.trends import ENTROPY, INFORMATION
from palimpsest.models.sites import PLACES

INTERVENTIONS = {
    MARKERS: style.Look("heuristic memorisation: share alpha of markers are the answer", "#8031A7"),
    SHUFFLES: style.Look("example-level memorisation: share beta of answers permuted", "#B8860B"),
}
MEASURES = {
    ENTROPY: style.Look("entropy of neurons", "#661100"),
    INFORMATION: style.Look("mutual information of pairs", "#CFA100", "D"),
}
PLACEBO = "0.55"
IN_WORDS = {
    "mlp": "neurons of feed-forward layers",
    "attention": "outputs of attention",
    "residual": "the residual stream",
    "last": "at the symbol before the answer",
    "mean": "mean over the string",
}


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of one place and one position: those of the claims, if the table has them."""
    place = next(name for name in PLACES if (table["place"] == name).any())
    position = next(name for name in POSITIONS if (table["position"] == name).any())
    return table[(table["place"] == place) & (table["position"] == position)]


def site_note(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    words = f"{IN_WORDS[first['place']]}, {IN_WORDS[first['position']]}"
    return f"Shown: {words}."


def with_share(table: pd.DataFrame) -> pd.DataFrame:
    found = {}
    for variant in table["variant"].unique():
        marked = percent_marked(variant)
        percent = percent_shuffled(variant) if marked is None else marked
        found[variant] = (SHUFFLES if marked is None else MARKERS, percent / 100)
    about = pd.DataFrame(found, index=["intervention", "share"]).T
    return table.join(about.astype({"share": float}), on="variant")


def interventions_in(table: pd.DataFrame) -> list[str]:
    present = set(table["intervention"])
    return [name for name in INTERVENTIONS if name in present]


def tint(intervention: str, share: float) -> tuple[float, float, float]:
    return style.tinted(INTERVENTIONS[intervention].colour, 0.25 + 0.75 * share)


def models_in(table: pd.DataFrame) -> list[str]:
    depths = table.groupby("model", sort=False)["n_layers"].first()
    return list(depths.sort_values(kind="stable").index)


def share_handles(interventions: list[str]) -> list:
    return [
        elements.bar_handle(INTERVENTIONS[name].label, INTERVENTIONS[name].colour)
        for name in interventions
    ]
