"""The claims of the atlas, all of them Palimpsest's own.

The exact values are those of retraining without every single string, with equal initial weights and
the other strings in their places. Retraining once more, with other initial weights and another
order, is the ceiling. Of every claim on a correlation, the placebo is the same correlation where
there is nothing to find.
"""

from functools import partial

from palimpsest.atlas.claims import claim_statistics as statistics
from palimpsest.atlas.kinds import (
    AMOUNT,
    APART,
    BELOW_OPTIMAL,
    BITS,
    CROSS,
    HALVES,
    START,
    UNSEEN,
)
from palimpsest.claims import Claim, above, at_least, between

QUESTIONS = {
    "atlas_amount": "Which cheap measure says how much a string is memorised?",
    "atlas_when": "Which cheap measure says when memorisation starts?",
    "atlas_bound": "Can cheap measures bound exact memorisation, with a guaranteed error?",
    "atlas_foretold": "Can the losses and starts of strings be foretold before training?",
    "atlas_whose": "Can anyone say which other string lowered the loss of a string?",
}
# Correlations that count as high, and as none worth acting on
HIGH, USEFUL = 0.8, 0.5
FAR = 0.3  # between two correlations

# Where no cell was asked for, there is nothing to say.
claim = partial(Claim, on_request=True)
CLAIMS = [
    claim(
        "atlas_amount",
        "Exact retraining agrees with itself on how much each string is memorised.",
        statistics.agreement.of(measure="retraining", question=AMOUNT),
        at_least(HIGH),
    ),
    claim(
        "atlas_amount",
        "The strings with the lowest loss are those that are memorised most.",
        statistics.beyond_placebo.of(measure="recollection", question=AMOUNT),
        above(0),
    ),
    *(
        claim(
            "atlas_amount",
            f"{name} says how much each string is memorised.",
            statistics.beyond_placebo.of(measure=measure, question=AMOUNT),
            at_least(USEFUL),
        )
        for name, measure in (
            ("TracIn, scaled as AdamW scales its steps,", "tracin by adamw"),
            ("The mean loss over the epochs", "mean_loss"),
            ("Contextual memorisation with stand-ins", "contextual"),
            ("The exact rarity of strings", "rarity"),
            ("(n, p)-extraction", "extraction"),
            ("The loss beside that of models of other seeds", "reference"),
        )
    ),
    claim(
        "atlas_amount",
        "The mean loss over the epochs says more of how much a string is memorised than a high "
        "loss at the end.",
        statistics.difference.of(measure="mean_loss", other="high_loss", question=AMOUNT),
        above(0),
    ),
    claim(
        "atlas_amount",
        "Difference-in-differences against unseen stand-ins says more of how much a string is "
        "memorised than a low loss at the end.",
        statistics.difference.of(
            measure="difference_in_differences", other="recollection", question=AMOUNT
        ),
        above(0),
    ),
    claim(
        "atlas_amount",
        "The exact rarity of a string says more of how much it is memorised than the density of "
        "its n-grams.",
        statistics.difference.of(measure="rarity", other="ngram_density", question=AMOUNT),
        above(0),
    ),
    *(
        claim(
            "atlas_when",
            f"{name} starts in the same order as exact contextual memorisation.",
            statistics.beyond_placebo.of(measure=measure, question=START),
            at_least(USEFUL),
        )
        for name, measure in (
            ("Recollection", "recollection"),
            ("Contextual memorisation with stand-ins", "contextual"),
        )
    ),
    claim(
        "atlas_bound",
        "Intervals of 90 % have the exact value of 88 to 92 % of other strings of the same runs.",
        statistics.coverage.of(held_out="string"),
        between(0.88, 0.92),
    ),
    *(
        claim(
            "atlas_bound",
            f"Intervals of 90 % have the exact value of 85 % or more of the strings of {name}.",
            statistics.coverage.of(held_out=held_out),
            at_least(0.85),
        )
        for held_out, name in (
            ("seed", "runs of other seeds"),
            ("language", "a language that is not in the calibration"),
            ("family", "a family of models that is not in the calibration"),
        )
    ),
    *(
        claim(
            "atlas_foretold",
            f"Each string's {outcome} can be foretold before training, in runs of new seeds.",
            statistics.foretold.of(outcome=outcome, new="seed"),
            at_least(USEFUL),
        )
        for outcome in (BITS, BELOW_OPTIMAL)
    ),
    claim(
        "atlas_foretold",
        "Copies, order, length and the other strings foretell the bits at the end better than "
        "exact probability alone.",
        statistics.beyond_rarity.of(outcome=BITS, new="seed"),
        above(0),
    ),
    *(
        claim(
            "atlas_foretold",
            f"Intervals of 90 % have the bits at the end of 85 % or more of the strings of {name}.",
            statistics.inside_foretold.of(outcome=BITS, new=new),
            at_least(0.85),
        )
        for new, name in (
            ("seed", "later runs of new seeds"),
            ("model", "later runs of a new model"),
            ("language", "later runs on a new language"),
        )
    ),
    claim(
        "atlas_whose",
        "Exact retraining agrees with itself on which other string lowered the loss of a string.",
        statistics.agreement.of(measure="retraining", question=CROSS),
        at_least(USEFUL),
    ),
    claim(
        "atlas_whose",
        "Near strings lowered the loss of a string more than others did.",
        statistics.beyond_placebo.of(measure="near_strings", question=CROSS),
        above(0),
    ),
    claim(
        "atlas_whose",
        "The effects of single removals add up to those of random halves, the string itself apart.",
        statistics.beyond_placebo.of(measure="single removals", question=APART),
        at_least(USEFUL),
    ),
    claim(
        "atlas_whose",
        "EK-FAC predicts the losses of strings that no training saw, on random halves.",
        statistics.beyond_placebo.of(measure="ek-fac", question=UNSEEN),
        at_least(USEFUL),
    ),
    claim(
        "atlas_whose",
        "TRAK predicts losses on random halves better than knowing only which halves have the "
        "string itself.",
        statistics.difference.of(measure="trak", other="itself", question=HALVES),
        above(0),
    ),
    claim(
        "atlas_whose",
        "The linear datamodelling score of TRAK is far higher on training strings than on unseen "
        "ones.",
        statistics.score_beyond_unseen.of(measure="trak"),
        at_least(FAR),
    ),
]
