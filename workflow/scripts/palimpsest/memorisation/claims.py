"""The claims of the paper, each with the statistic that tests the claim.

The interval of a statistic is over the seeds. If there is only one seed, but a model was retrained
without every training string, the interval is over the strings (bootstrap); it does not cover other
seeds.

A claim that training makes strings memorised is tested on what exceeds the same number of strings
that were never trained on, both at the epoch of optimal learning:

- Where the paper says how many strings are memorised ("almost all", "a sizable subset", "no
  strings"), its share is tested as the paper counts, with false alarms. Under the contextual
  measure, a second row corrects the share for false alarms. The difference of the two shares would
  not do: if half of the unseen strings are below the threshold, it could never be almost all.
- Where the paper compares groups of strings, training sizes or models under the contextual or the
  counterfactual measure, each side is the difference.
- What the paper says of recollection is tested with false alarms. The paper's point is that
  recollection calls strings memorised that are only probable.

The note of each such row has the other number: the paper's own, or that of unseen strings.

The paper supports its main conclusion (memorisation is unavoidable) with all its models of all
families, so this claim has a row of its own on the model in which it holds least. On no other claim
does the paper say that it is consistent over models. There, the table only counts the models and
the families in which the claim holds: the mean over the models decides the verdict, and a verdict
on every model would answer a question that the paper does not ask.

To add a claim, add one `Claim` to `WITH_STAND_INS`. Claims by retraining are in
`retraining_claims.py`.

Source: Learning Without Memorizing Considered Infeasible. The claims are in the order of the paper,
by question. Palimpsest's own are those beyond false alarms or beyond unseen strings, on ranks, and
on the Bayes threshold. If the paper uses a word ("strongly", "almost all"), `margins.py` chooses
the number for this word.
"""

from functools import partial

import numpy as np

from palimpsest.claims import (
    CONSTANT,
    DIFFERENCE,
    NOT_NEGATIVE,
    SHARE,
    STAND_INS,
    Claim,
    above,
    at_least,
    at_most,
    between,
)
from palimpsest.estimates import VOIDS
from palimpsest.memorisation.approximation_claims import CLAIMS as APPROXIMATION_CLAIMS
from palimpsest.memorisation.claim_statistics import (
    Statistic,
    at_optimum,
    estimator,
    high_entropy,
    in_lowest_model,
    low_and_high_entropy,
    low_entropy,
    low_minus_high,
)
from palimpsest.memorisation.margins import ALMOST_ALL, NEARLY_EQUAL, NEXT_TO_NONE, USUALLY
from palimpsest.memorisation.retraining_claims import with_retraining
from palimpsest.memorisation.target_claims import CLAIMS as TARGET_CLAIMS
from palimpsest.memorisation.training_set_claims import CLAIMS as TRAINING_SET_CLAIMS
from palimpsest.memorisation.training_set_statistics import (
    band_width,
    cost_of_stopping_before_unseen,
    cost_of_stopping_early,
    excess_at_optimum,
    largest_fall,
    least_band_width,
    least_excess_at_optimum,
    optimum_in_band,
    share_made_to_fall,
)

# Source of the questions: sections 2, 4, 5 and appendix G of the paper.
QUESTIONS = {
    "RQ1": "When does a model start to memorise a string?",
    "RQ2": "How much is a string memorised from then on?",
    "RQ3": "Can a language be learned optimally without memorising any of the training strings?",
    "RQ4": "Are frequent strings memorised more, and does removing repetitions help?",
    "RQ5": "More training data improves learning; does it also increase memorisation?",
    "RQ6": "Do strings that are reported as memorised hold private information?",
    "RQ7": "Are strings that are reported as memorised also memorised under the stricter measures?",
    "RQ8": "Does removing repetitions let all test strings be learned equally well?",
    "RQ9": "Does removing repetitions let all strings be memorised at once, or not at all?",
    "adapters": "Do adapters memorise less than the training of all weights, when both have "
    "learned equally well?",
    "approximation": "Can unseen strings of the same frequency stand in for a second training, "
    "without false alarms?",
    "bayes": (
        "Can the language's exact probabilities stand in for a second training, and does a loss "
        "below the Bayes-optimal loss betray memorisation?"
    ),
}


MADE_TO_FALL = (
    "share of distinct training strings that training brought below the contextual threshold at "
    "optimal learning: the share below, corrected for the share of strings never trained on"
)
AT_MOST_ALL = (-np.inf, 1.0)  # a corrected share is negative if unseen strings are below more often


PAPER_FRACTION = "fraction of strings memorised at optimal learning, as the paper counts"
PAPER_CONTEXTUAL = {"column": "fraction", "measure": "contextual"}
PAPER_RECOLLECTION = {"column": "fraction", "measure": "recollection"}


def shown(name: str, column: str, measure: str) -> dict[str, Statistic]:
    return {name: partial(at_optimum, column=column, measure=measure)}


SAME_OF_UNSEEN = "the same of strings never trained on"
UNSEEN_CONTEXTUAL = shown(SAME_OF_UNSEEN, "fraction_unseen", "contextual")
UNSEEN_RECOLLECTION = {
    **shown(SAME_OF_UNSEEN, "fraction_unseen", "recollection"),
    **shown("of a perfect learner", "fraction_perfect", "recollection"),
}
FIRST_UNSEEN = {
    "the same before any string never trained on is called memorised": partial(
        cost_of_stopping_before_unseen, measure="contextual"
    )
}
BOTH_BELOW = {
    **shown("below the threshold", "below_distinct", "contextual"),
    **shown("of strings never trained on", "below_unseen", "contextual"),
}
WITH_STAND_INS = [
    *TARGET_CLAIMS,
    Claim(
        "RQ3",
        "The fraction of strings memorised by recollection increases monotonically with epochs.",
        "tradeoff",
        "largest fall of the fraction from one epoch to the next, recollection; 0 by "
        "construction if the start is after the last miss",
        at_most(0),
        estimator(largest_fall, column="fraction", measure="recollection"),
        by_construction=True,
        limits=SHARE,
        evidence=(CONSTANT,),
    ),
    Claim(
        "RQ3",
        "The fraction of strings memorised contextually increases monotonically with epochs.",
        "tradeoff",
        "largest fall of the fraction from one epoch to the next, contextual; 0 by construction "
        "if the start is after the last miss",
        at_most(0),
        estimator(largest_fall, column="fraction", measure="contextual"),
        by_construction=True,
        limits=SHARE,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ3",
        "Memorisation is unavoidable when a language is learned optimally.",
        "tradeoff",
        "share of distinct training strings below the contextual threshold at optimal learning, "
        "minus that share of strings never trained on",
        above(0),
        estimator(excess_at_optimum, quantity="below", measure="contextual"),
        limits=DIFFERENCE,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ3",
        "Memorisation is unavoidable when a language is learned optimally, in every model.",
        "tradeoff",
        "share of distinct training strings below the contextual threshold at optimal learning, "
        "minus that share of strings never trained on; in the model in which this is lowest",
        above(0),
        in_lowest_model(excess_at_optimum, quantity="below", measure="contextual"),
        limits=DIFFERENCE,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ3",
        "Some degree of memorisation is needed for optimal learning.",
        "tradeoff",
        "mean contextual score of distinct training strings at optimal learning, minus that of "
        "strings never trained on; without the rule for the start",
        above(0),
        estimator(excess_at_optimum, quantity="depth", measure="contextual"),
        limits=DIFFERENCE,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ3",
        "Some strings are memorised before optimal learning whichever measure is applied.",
        "tradeoff",
        "share of distinct training strings below the threshold at optimal learning, minus that "
        "share of strings never trained on; the lowest of recollection, counterfactual and "
        "contextual memorisation, all on the strings that have stand-ins",
        above(0),
        estimator(least_excess_at_optimum),
        limits=DIFFERENCE,
        evidence=(
            CONSTANT,
            STAND_INS,
        ),
    ),
    Claim(
        "RQ3",
        "Almost all strings of the high-entropy language are contextually memorised at optimal "
        "learning.",
        "tradeoff",
        f"{PAPER_FRACTION}, contextual, language of high entropy",
        at_least(ALMOST_ALL),
        estimator(at_optimum, beside=UNSEEN_CONTEXTUAL, **PAPER_CONTEXTUAL),
        high_entropy,
        limits=SHARE,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ3",
        "Almost all strings of the high-entropy language are contextually memorised at optimal "
        "learning, beyond false alarms.",
        "tradeoff",
        f"{MADE_TO_FALL}, language of high entropy",
        at_least(ALMOST_ALL),
        estimator(share_made_to_fall, beside=BOTH_BELOW, measure="contextual"),
        high_entropy,
        limits=AT_MOST_ALL,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ3",
        "A sizable subset, not almost all, of the strings of the low-entropy language is "
        "contextually memorised at optimal learning.",
        "tradeoff",
        f"{PAPER_FRACTION}, contextual, language of low entropy",
        between(NEXT_TO_NONE, ALMOST_ALL),
        estimator(at_optimum, beside=UNSEEN_CONTEXTUAL, **PAPER_CONTEXTUAL),
        low_entropy,
        limits=SHARE,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ3",
        "A sizable subset, not almost all, of the strings of the low-entropy language is "
        "contextually memorised at optimal learning, beyond false alarms.",
        "tradeoff",
        f"{MADE_TO_FALL}, language of low entropy",
        between(NEXT_TO_NONE, ALMOST_ALL),
        estimator(share_made_to_fall, beside=BOTH_BELOW, measure="contextual"),
        low_entropy,
        limits=AT_MOST_ALL,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ3",
        "By recollection no strings of the high-entropy language are memorised at optimal "
        "learning.",
        "tradeoff",
        f"{PAPER_FRACTION}, recollection, language of high entropy",
        at_most(NEXT_TO_NONE),
        estimator(at_optimum, beside=UNSEEN_RECOLLECTION, **PAPER_RECOLLECTION),
        high_entropy,
        limits=SHARE,
        evidence=(CONSTANT,),
    ),
    Claim(
        "RQ3",
        "By recollection almost all strings of the low-entropy language are memorised at optimal "
        "learning.",
        "tradeoff",
        f"{PAPER_FRACTION}, recollection, language of low entropy",
        at_least(ALMOST_ALL),
        estimator(at_optimum, beside=UNSEEN_RECOLLECTION, **PAPER_RECOLLECTION),
        low_entropy,
        limits=SHARE,
        evidence=(CONSTANT,),
    ),
    Claim(
        "RQ3",
        "The band of starts by recollection is narrow for the high-entropy language and broad "
        "for the low-entropy one.",
        "tradeoff",
        "width of the 10 % to 90 % band of starts (share of the training), recollection, low minus "
        "high entropy; no verdict if the end of training cuts a band of high entropy",
        above(0),
        low_minus_high(
            band_width, undefined=VOIDS, at_least=least_band_width, measure="recollection"
        ),
        low_and_high_entropy,
        limits=DIFFERENCE,
        evidence=(CONSTANT,),
    ),
    Claim(
        "RQ3",
        "The band of contextual starts is narrow for the high-entropy language and broad for the "
        "low-entropy one.",
        "tradeoff",
        "width of the 10 % to 90 % band of starts (share of the training), contextual, low minus "
        "high entropy; no verdict if the end of training cuts a band of high entropy",
        above(0),
        low_minus_high(
            band_width, undefined=VOIDS, at_least=least_band_width, measure="contextual"
        ),
        low_and_high_entropy,
        limits=DIFFERENCE,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ3",
        "Optimal learning typically falls within the band of starts by recollection.",
        "tradeoff",
        "share of models whose epoch of optimal learning lies in the band of all starts, "
        "recollection",
        at_least(USUALLY),
        estimator(optimum_in_band, measure="recollection"),
        limits=SHARE,
        evidence=(CONSTANT,),
    ),
    Claim(
        "RQ3",
        "Optimal learning typically falls within the band of contextual starts.",
        "tradeoff",
        "share of models whose epoch of optimal learning lies in the band of all starts, "
        "contextual",
        at_least(USUALLY),
        estimator(optimum_in_band, measure="contextual"),
        limits=SHARE,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ3",
        "Stopping before any string is memorised is acceptable for the high-entropy language.",
        "tradeoff",
        "relative excess of the test loss over its minimum just before the first contextual "
        "start, language of high entropy",
        at_most(NEARLY_EQUAL),
        estimator(cost_of_stopping_early, beside=FIRST_UNSEEN, measure="contextual"),
        high_entropy,
        limits=NOT_NEGATIVE,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ3",
        "Stopping before any string is memorised is highly sub-optimal for the low-entropy "
        "language.",
        "tradeoff",
        "relative excess of the test loss over its minimum just before the first contextual "
        "start, language of low entropy",
        above(NEARLY_EQUAL),
        estimator(cost_of_stopping_early, beside=FIRST_UNSEEN, measure="contextual"),
        low_entropy,
        limits=NOT_NEGATIVE,
        evidence=(STAND_INS,),
    ),
    *TRAINING_SET_CLAIMS,
    *APPROXIMATION_CLAIMS,
]
CLAIMS = with_retraining(WITH_STAND_INS)
