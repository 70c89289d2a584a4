"""The claims of the atlas, all of them Palimpsest's own.

The exact values are those of retraining without every single string, with equal initial weights and
the other strings in their places. Retraining once more, with other initial weights and another
order, is the ceiling. Of every claim on a correlation, the placebo is the same correlation where
there is nothing to find.
"""

from palimpsest.atlas.claims import claim_statistics as statistics
from palimpsest.atlas.kinds import AMOUNT, CROSS, HALVES, START
from palimpsest.claims import Claim, above, at_least, between

QUESTIONS = {
    "atlas_amount": "Which cheap measure says how much a string is memorised?",
    "atlas_when": "Which cheap measure says when memorisation starts?",
    "atlas_bound": "Can cheap measures bound exact memorisation, with a guaranteed error?",
    "atlas_whose": "Can anyone say which other string lowered the loss of a string?",
}
# Correlations that count as high, and as none worth acting on
HIGH, USEFUL = 0.8, 0.5

CLAIMS = [
    Claim(
        "atlas_amount",
        "Exact retraining agrees with itself on how much each string is memorised",
        statistics.agreement.of(measure="retraining", question=AMOUNT),
        at_least(HIGH),
        on_request=True,
    ),
    *(
        Claim(
            "atlas_amount",
            f"{name} says how much each string is memorised",
            statistics.beyond_placebo.of(measure=measure, question=AMOUNT),
            at_least(USEFUL),
            on_request=True,
        )
        for name, measure in (
            ("The loss", "recollection"),
            ("Contextual memorisation with stand-ins", "contextual"),
            ("The exact rarity of strings", "rarity"),
        )
    ),
    Claim(
        "atlas_amount",
        "Stand-ins of equal frequency say more of how much a string is memorised than its loss",
        statistics.difference.of(measure="contextual", other="recollection", question=AMOUNT),
        above(0),
        on_request=True,
    ),
    *(
        Claim(
            "atlas_when",
            f"{name} starts in the same order as exact contextual memorisation",
            statistics.beyond_placebo.of(measure=measure, question=START),
            at_least(USEFUL),
            on_request=True,
        )
        for name, measure in (
            ("Recollection", "recollection"),
            ("Contextual memorisation with stand-ins", "contextual"),
        )
    ),
    Claim(
        "atlas_bound",
        "Intervals of 90 % have the exact value of 88 to 92 % of the strings of other seeds",
        statistics.coverage.of(held_out="seed"),
        between(0.88, 0.92),
        on_request=True,
    ),
    *(
        Claim(
            "atlas_bound",
            f"Intervals of 90 % have the exact value of 85 % or more of the strings of {name}",
            statistics.coverage.of(held_out=held_out),
            at_least(0.85),
            on_request=True,
        )
        for held_out, name in (
            ("language", "a language that is not in the calibration"),
            ("family", "a family of models that is not in the calibration"),
        )
    ),
    Claim(
        "atlas_whose",
        "Exact retraining agrees with itself on which other string lowered the loss of a string",
        statistics.agreement.of(measure="retraining", question=CROSS),
        at_least(USEFUL),
        on_request=True,
    ),
    Claim(
        "atlas_whose",
        "Near strings are those that lowered the loss of a string",
        statistics.beyond_placebo.of(measure="near_strings", question=CROSS),
        above(0),
        on_request=True,
    ),
    Claim(
        "atlas_whose",
        "The effects of single removals add up to those of random halves",
        statistics.beyond_placebo.of(measure="single removals", question=HALVES),
        at_least(USEFUL),
        on_request=True,
    ),
    Claim(
        "atlas_whose",
        "A measure predicts losses on random halves better than single removals",
        statistics.score_beyond_singles.of(measure="copies_of_near_strings"),
        above(0),
        on_request=True,
    ),
]
