"""The claims on information measures of neurons.

The paper's claim: heuristic memorisation makes activations less diverse (lower entropy, higher
mutual information), and example-level memorisation makes them more diverse. Its appendices C.1,
C.2, C.4 and D.2 say where in a model this shows, whether it depends on the model's depth, and how
the measures correlate with norms and with accuracy. The claims on random markers and on memorised
strings are Palimpsest's own. A string is memorised if its loss is below the Bayes-optimal loss,
that of the language of the training strings, or by the contextual measure.

The claims on the epoch at which contextual memorisation starts are on models that are fine-tuned on
strings without markers. They are about all layers, and their placebo are fresh strings.
"""

from palimpsest.claims import Claim, Region, above, at_least, at_most, below
from palimpsest.information.claims import claim_statistics as statistics
from palimpsest.information.claims.claim_statistics import EXPECTED, STRONG, VERBS
from palimpsest.information.kinds import MARKERS, SHUFFLES
from palimpsest.information.trends import (
    ACCURACY,
    CONTEXTUAL,
    ENTROPY,
    INFORMATION,
    MEASURES,
    MEMORISED,
)

QUESTIONS = {
    "information_induced": "Was memorisation induced as intended?",
    "information_heuristic": "Are activations less diverse where a shortcut is memorised?",
    "information_example": "Are activations more diverse where strings are learned by heart?",
    "information_random_markers": "Does memorisation change more than random markers do?",
    "information_depth": "Do the trends hold for models of every depth?",
    "information_norms": "Do the measures say more than norms of weights?",
    "information_accuracy": "Do the measures tell which model is accurate?",
    "information_memorised": "Do the measures know how many strings are memorised?",
    "information_epochs": "Does anything inside change when contextual memorisation starts?",
}
NAMES = {ENTROPY: "Entropy", INFORMATION: "Mutual information"}
HIGHER = {ENTROPY: "higher", INFORMATION: "lower"}
HEURISTIC, EXAMPLE = "heuristic memorisation", "example-level memorisation"
MEMORISATION = {MARKERS: HEURISTIC, SHUFFLES: EXAMPLE}
QUESTION_OF = {MARKERS: "information_heuristic", SHUFFLES: "information_example"}
MEMORISED_AS = {MEMORISED: "", CONTEXTUAL: " by the contextual measure"}


def signed(sign: int) -> Region:
    return above(0) if sign > 0 else below(0)


def strongly(sign: int) -> Region:
    return at_least(STRONG) if sign > 0 else at_most(-STRONG)


CLAIMS = [
    Claim(
        "information_induced",
        "A model that is trained with markers that are the answer goes by the marker.",
        statistics.shortcut_reliance,
        above(0),
    ),
    *(
        Claim(
            "information_induced",
            f"More {memorisation} makes models less accurate on clean strings.",
            statistics.changed.of(intervention=intervention, column=ACCURACY),
            below(0),
        )
        for intervention, memorisation in MEMORISATION.items()
    ),
    Claim(
        "information_induced",
        "Where more answers are permuted, more training strings are memorised.",
        statistics.changed.of(intervention=SHUFFLES, column=MEMORISED),
        above(0),
    ),
    *(
        Claim(
            QUESTION_OF[intervention],
            f"{NAMES[measure]} {VERBS[sign]} with {MEMORISATION[intervention]}.",
            statistics.changed.of(intervention=intervention, column=measure),
            signed(sign),
        )
        for (intervention, measure), sign in EXPECTED.items()
    ),
    *(
        Claim(
            QUESTION_OF[MARKERS],
            f"{NAMES[measure]} {VERBS[EXPECTED[MARKERS, measure]]} with {HEURISTIC} more in the "
            "last layer than in the first.",
            statistics.changed_late.of(intervention=MARKERS, column=measure),
            above(0),
        )
        for measure in MEASURES
    ),
    *(
        Claim(
            "information_random_markers",
            f"{NAMES[measure]} changes more with {MEMORISATION[intervention]} than with random "
            "markers.",
            statistics.beyond_random_markers.of(intervention=intervention, column=measure),
            above(0),
        )
        for intervention, measure in EXPECTED
    ),
    *(
        Claim(
            "information_depth",
            f"{NAMES[measure]} {VERBS[sign]} with {MEMORISATION[intervention]} in models of every "
            "depth.",
            statistics.at_every_depth.of(intervention=intervention, column=measure),
            above(0),
        )
        for (intervention, measure), sign in EXPECTED.items()
    ),
    *(
        Claim(
            "information_depth",
            f"{NAMES[measure]} depends on a model's depth more than on "
            f"{MEMORISATION[intervention]}.",
            statistics.apart.of(intervention=intervention, column=measure),
            above(0),
        )
        for intervention, measure in EXPECTED
    ),
    *(
        Claim(
            "information_norms",
            f"{NAMES[measure]} hardly goes with norms of weights over models with more or less "
            f"{HEURISTIC}.",
            statistics.strongest_with_norms.of(intervention=MARKERS, column=measure),
            below(STRONG),
        )
        for measure in MEASURES
    ),
    *(
        Claim(
            "information_norms",
            f"{NAMES[measure]} goes with norms of weights over models with more or less {EXAMPLE}.",
            statistics.correlated_as_norms_change.of(intervention=SHUFFLES, column=measure),
            at_least(STRONG),
        )
        for measure in MEASURES
    ),
    *(
        Claim(
            "information_norms",
            f"{NAMES[measure]} orders models with more or less {HEURISTIC} better than norms do.",
            statistics.ordered_better.of(intervention=MARKERS, column=measure),
            above(0),
        )
        for measure in MEASURES
    ),
    *(
        Claim(
            "information_accuracy",
            f"{NAMES[measure]} goes with accuracy over models with more or less "
            f"{MEMORISATION[intervention]}.",
            statistics.correlated_with_accuracy.of(intervention=intervention, column=measure),
            strongly(-sign),
        )
        for (intervention, measure), sign in EXPECTED.items()
    ),
    *(
        Claim(
            "information_accuracy",
            f"{NAMES[measure]} orders models with more or less {MEMORISATION[intervention]} as "
            "their accuracy does.",
            statistics.ordered.of(intervention=intervention, column=measure),
            above(0),
        )
        for intervention, measure in EXPECTED
    ),
    *(
        Claim(
            "information_memorised",
            f"{NAMES[measure]} is {HIGHER[measure]} where more strings are memorised{how}, over "
            f"models with more or less {MEMORISATION[intervention]}.",
            statistics.knows.of(intervention=intervention, column=measure, memorised=memorised),
            signed(EXPECTED[SHUFFLES, measure]),
        )
        for memorised, how in MEMORISED_AS.items()
        for intervention, measure in EXPECTED
    ),
    *(
        Claim(
            "information_epochs",
            f"{NAMES[measure]} {VERBS[EXPECTED[SHUFFLES, measure]]} in the epoch at which "
            "contextual memorisation starts, more than on fresh strings and in the epochs around.",
            statistics.at_start.of(column=measure),
            signed(EXPECTED[SHUFFLES, measure]),
        )
        for measure in MEASURES
    ),
    *(
        Claim(
            "information_epochs",
            f"{NAMES[measure]} is {HIGHER[measure]} after fine-tuning on repeated strings than "
            "after fine-tuning on fresh ones.",
            statistics.at_the_end.of(column=measure),
            signed(EXPECTED[SHUFFLES, measure]),
        )
        for measure in MEASURES
    ),
]
