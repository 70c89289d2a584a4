"""The claims on information measures of neurons, each with the statistic that tests the claim.

The paper's claim: heuristic memorisation makes activations less diverse (lower entropy, higher
mutual information), and example-level memorisation makes them more diverse. Its appendices C.1,
C.2, C.4 and D.2 say where in a model this shows, whether it depends on the model's depth, and how
the measures correlate with norms and with accuracy. The claims on random markers and on memorised
strings are Palimpsest's own. A string is memorised if its loss is below the Bayes-optimal loss,
that of the language of the training strings, or by the contextual measure.

The claims on the epoch at which contextual memorisation starts are on models that are fine-tuned on
strings without markers. They are about all layers, and their placebo are fresh strings.
"""

from functools import partial

from palimpsest.claims import (
    DIFFERENCE,
    LANGUAGE,
    NO_THRESHOLD,
    SHARE,
    STAND_INS,
    Claim,
    Region,
    above,
    at_least,
    at_most,
    below,
)
from palimpsest.information.claim_statistics import (
    EXPECTED,
    STRONG,
    TAU_DIFFERENCE,
    apart,
    at_every_depth,
    at_start,
    at_the_end,
    beyond_innocent,
    changed,
    changed_late,
    correlated,
    correlated_as_norms_change,
    knows,
    led_astray,
    ordered,
    ordered_better,
    strongest_with_norms,
)
from palimpsest.information.kinds import EPOCHS, MARKERS, SHUFFLES
from palimpsest.information.kinds import INFORMATION as TABLE
from palimpsest.information.trends import (
    ACCURACY,
    CONTEXTUAL,
    ENTROPY,
    GREEK,
    INFORMATION,
    MEASURES,
    MEMORISED,
)

QUESTIONS = {
    "information_induced": "Was memorisation induced as intended?",
    "information_heuristic": "Are activations less diverse where a shortcut is memorised?",
    "information_example": "Are activations more diverse where strings are learned by heart?",
    "information_innocent": "Does memorisation change the measures more than an innocent change?",
    "information_depth": "Do the trends hold for models of every depth?",
    "information_norms": "Do the measures say more than norms of weights?",
    "information_accuracy": "Do the measures tell which model is accurate?",
    "information_memorised": "Do the measures know how many strings are memorised?",
    "information_epochs": "Does anything inside change when contextual memorisation starts?",
}
NAMES = {ENTROPY: "Entropy", INFORMATION: "Mutual information"}
HEURISTIC, EXAMPLE = "heuristic memorisation", "example-level memorisation"
MEMORISATION = {MARKERS: HEURISTIC, SHUFFLES: EXAMPLE}
BOTH = tuple(EXPECTED)
QUESTION_OF = {MARKERS: "information_heuristic", SHUFFLES: "information_example"}
VERBS = {-1: "falls", 1: "rises"}
BOTH_NORMS = "the 2-norm and with the Frobenius norm, mean of both"
# What "memorised" means, in a claim and in its statistic, and what the claim rests on
MEMORISED_AS = {
    MEMORISED: ("", "whose loss is below the Bayes-optimal loss", LANGUAGE),
    CONTEXTUAL: (
        " by the contextual measure",
        "with stand-ins whose loss at the end is below their contextual threshold",
        STAND_INS,
    ),
}


def signed(sign: int) -> Region:
    return above(0) if sign > 0 else below(0)


def strongly(sign: int) -> Region:
    return at_least(STRONG) if sign > 0 else at_most(-STRONG)


CLAIMS = [
    Claim(
        "information_induced",
        "A model that is trained with markers that are the answer goes by the marker.",
        TABLE.name,
        "share of right answers where the marker agrees minus where it disagrees, at the highest "
        "alpha",
        above(0),
        led_astray,
        limits=DIFFERENCE,
        evidence=(NO_THRESHOLD,),
    ),
    *(
        Claim(
            "information_induced",
            f"More {memorisation} makes models less accurate on clean strings.",
            TABLE.name,
            f"change of the share of right answers from {GREEK[intervention]} 0 to 1 (least "
            "squares)",
            below(0),
            partial(changed, intervention=intervention, column=ACCURACY),
            evidence=(NO_THRESHOLD,),
        )
        for intervention, memorisation in MEMORISATION.items()
    ),
    Claim(
        "information_induced",
        "Where more answers are permuted, more training strings are memorised.",
        TABLE.name,
        "change of the share of training strings whose loss is below the Bayes-optimal loss, from "
        "beta 0 to 1 (least squares)",
        above(0),
        partial(changed, intervention=SHUFFLES, column=MEMORISED),
        evidence=(LANGUAGE,),
    ),
    *(
        Claim(
            QUESTION_OF[intervention],
            f"{NAMES[measure]} {VERBS[sign]} with {MEMORISATION[intervention]}.",
            TABLE.name,
            f"change of the mean from {GREEK[intervention]} 0 to 1 (nats, least squares)",
            signed(sign),
            partial(changed, intervention=intervention, column=measure),
            evidence=(NO_THRESHOLD,),
        )
        for (intervention, measure), sign in EXPECTED.items()
    ),
    *(
        Claim(
            QUESTION_OF[MARKERS],
            f"{NAMES[measure]} {VERBS[sign]} with {HEURISTIC} more in the last layer than in the "
            "first.",
            TABLE.name,
            "the smaller of two changes in the expected direction from alpha 0 to 1 (nats, least "
            "squares): in the last layer, and in the last minus the first layer",
            above(0),
            partial(changed_late, intervention=MARKERS, column=measure),
            evidence=(NO_THRESHOLD,),
        )
        for (intervention, measure), sign in EXPECTED.items()
        if intervention == MARKERS
    ),
    *(
        Claim(
            "information_innocent",
            f"{NAMES[measure]} changes more with {MEMORISATION[intervention]} than with random "
            "markers.",
            TABLE.name,
            f"size of the change from {GREEK[intervention]} 0 to 1 minus size of the change from "
            "no markers to random ones (nats)",
            above(0),
            partial(beyond_innocent, intervention=intervention, column=measure),
            evidence=(NO_THRESHOLD,),
        )
        for intervention, measure in BOTH
    ),
    *(
        Claim(
            "information_depth",
            f"{NAMES[measure]} {VERBS[sign]} with {MEMORISATION[intervention]} in models of every "
            "depth.",
            TABLE.name,
            f"change of the mean from {GREEK[intervention]} 0 to 1 in the expected direction, at "
            "the depth with the weakest change (nats)",
            above(0),
            partial(at_every_depth, intervention=intervention, column=measure),
            evidence=(NO_THRESHOLD,),
        )
        for (intervention, measure), sign in EXPECTED.items()
    ),
    *(
        Claim(
            "information_depth",
            f"{NAMES[measure]} depends on a model's depth more than on "
            f"{MEMORISATION[intervention]}.",
            TABLE.name,
            "size of the difference of deepest and shallowest models minus size of the change from "
            f"{GREEK[intervention]} 0 to 1 (nats)",
            above(0),
            partial(apart, intervention=intervention, column=measure),
            evidence=(NO_THRESHOLD,),
        )
        for intervention, measure in BOTH
    ),
    *(
        Claim(
            "information_norms",
            f"{NAMES[measure]} hardly goes with norms of weights over models with more or less "
            f"{HEURISTIC}.",
            TABLE.name,
            "size of the strongest Pearson correlation of the mean with a norm (2-norm or "
            "Frobenius norm), of all models",
            below(STRONG),
            partial(strongest_with_norms, intervention=MARKERS, column=measure),
            limits=SHARE,
            evidence=(NO_THRESHOLD,),
        )
        for measure in MEASURES
    ),
    *(
        Claim(
            "information_norms",
            f"{NAMES[measure]} goes with norms of weights over models with more or less {EXAMPLE}.",
            TABLE.name,
            f"Pearson correlation of the mean with {BOTH_NORMS}; above 0 if the measure "
            f"{VERBS[EXPECTED[SHUFFLES, measure]]} where norms change as they do with beta",
            at_least(STRONG),
            partial(correlated_as_norms_change, intervention=SHUFFLES, column=measure),
            limits=DIFFERENCE,
            evidence=(NO_THRESHOLD,),
        )
        for measure in MEASURES
    ),
    *(
        Claim(
            "information_norms",
            f"{NAMES[measure]} orders models with more or less {HEURISTIC} better than norms do.",
            TABLE.name,
            "Kendall's tau with accuracy, of the order by the measure minus the mean of the orders "
            "by both norms",
            above(0),
            partial(ordered_better, intervention=MARKERS, column=measure),
            limits=TAU_DIFFERENCE,
            evidence=(NO_THRESHOLD,),
        )
        for measure in MEASURES
    ),
    *(
        Claim(
            "information_accuracy",
            f"{NAMES[measure]} goes with accuracy over models with more or less "
            f"{MEMORISATION[intervention]}.",
            TABLE.name,
            "Pearson correlation of the mean with the share of right answers",
            strongly(-sign),
            partial(
                correlated,
                intervention=intervention,
                column=measure,
                others=(ACCURACY,),
                bound=-sign * STRONG,
            ),
            limits=DIFFERENCE,
            evidence=(NO_THRESHOLD,),
        )
        for (intervention, measure), sign in EXPECTED.items()
    ),
    *(
        Claim(
            "information_accuracy",
            f"{NAMES[measure]} orders models with more or less {MEMORISATION[intervention]} as "
            "their accuracy does.",
            TABLE.name,
            "Kendall's tau with the share of right answers, "
            f"{'high' if sign < 0 else 'low'} values first",
            above(0),
            partial(ordered, intervention=intervention, column=measure),
            limits=DIFFERENCE,
            evidence=(NO_THRESHOLD,),
        )
        for (intervention, measure), sign in EXPECTED.items()
    ),
    *(
        Claim(
            "information_memorised",
            f"{NAMES[measure]} is {'higher' if measure == ENTROPY else 'lower'} where more strings "
            f"are memorised{how}, over models with more or less {MEMORISATION[intervention]}.",
            TABLE.name,
            f"Kendall's tau of the mean and the share of training strings {which}",
            signed(EXPECTED[SHUFFLES, measure]),
            partial(knows, intervention=intervention, column=measure, memorised=memorised),
            limits=DIFFERENCE,
            evidence=(rests_on,),
        )
        for memorised, (how, which, rests_on) in MEMORISED_AS.items()
        for intervention, measure in BOTH
    ),
    *(
        Claim(
            "information_epochs",
            f"{NAMES[measure]} {VERBS[EXPECTED[SHUFFLES, measure]]} in the epoch at which "
            "contextual memorisation starts, more than on fresh strings and in the epochs around.",
            EPOCHS.name,
            "change of the mean over all layers in the first epoch after which clearly more "
            "training strings than others are memorised, minus the same on fresh strings, minus "
            "this difference in the epochs before and after (nats)",
            signed(EXPECTED[SHUFFLES, measure]),
            partial(at_start, column=measure),
            evidence=(STAND_INS,),
        )
        for measure in MEASURES
    ),
    *(
        Claim(
            "information_epochs",
            f"{NAMES[measure]} is {'higher' if measure == ENTROPY else 'lower'} after fine-tuning "
            "on repeated strings than after fine-tuning on fresh ones.",
            EPOCHS.name,
            "mean over all layers after the last epoch, repeated minus fresh strings (nats)",
            signed(EXPECTED[SHUFFLES, measure]),
            partial(at_the_end, column=measure),
            evidence=(NO_THRESHOLD,),
        )
        for measure in MEASURES
    ),
]
