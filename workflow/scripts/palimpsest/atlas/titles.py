"""The names of measures for readers of figures and of the report."""

from palimpsest.atlas.contenders import CONTENDERS

TITLES = {
    **{contender.name: contender.title for contender in CONTENDERS},
    "gradient norm": "Norm of the gradient",
    "tracin": "TracIn",
    "tracin by adamw": "TracIn, scaled by AdamW",
    "gradient cosine": "Cosine of gradients",
    "ek-fac": "EK-FAC",
    "trak": "TRAK",
    "itself": "The string itself alone",
    "near_strings": "Edit distance",
    "copies_of_near_strings": "Copies over edit distance",
    "single removals": "Sum of single removals",
    "retraining": "Retraining once more",
}


def title_of(measure: str) -> str:
    return TITLES.get(measure, measure)
