"""The claims on information measures of neurons.

The paper's claim: heuristic memorisation makes activations less diverse (lower entropy, higher
mutual information), and example-level memorisation makes them more diverse. Its figure 9 compares
networks of different depth, and its table 6 orders models by the measures and by norms. The first
claims are Palimpsest's own: was memorisation induced? A string is memorised if its loss is below
the Bayes-optimal loss, that of the language of the training strings.

The same statistics judge encoders that are fine-tuned to classify texts. That later layers change
more (figure 8), and that mutual information orders models as compression does (figure 10), are
claims on these alone: they are fine-tuned from one initialisation.

Not here is what these models cannot show. The correlations of table 4 with five models are far from
0 by chance, and say what the orders say.
"""

from palimpsest.claims import Claim, Region, above, below
from palimpsest.information.claims import claim_statistics as statistics
from palimpsest.information.claims.claim_statistics import EXPECTED, VERBS
from palimpsest.information.kinds import ENCODERS, MARKERS, SHUFFLES
from palimpsest.information.trends import ACCURACY, ENTROPY, INFORMATION, MEASURES, MEMORISED

QUESTIONS = {
    "information_induced": "Was memorisation induced as intended?",
    "information_heuristic": "Are activations less diverse where a shortcut is memorised?",
    "information_example": "Are activations more diverse where strings are learned by heart?",
    "information_depth": "Does entropy change in models of every depth?",
    "information_accuracy": "Do the measures tell which model is accurate?",
    "information_norms": "Do the measures say more than norms of weights?",
    "information_encoders": "Is it the same in encoders that classify texts?",
}
NAMES = {ENTROPY: "Entropy", INFORMATION: "Mutual information"}
HEURISTIC, EXAMPLE = "heuristic memorisation", "example-level memorisation"
MEMORISATION = {MARKERS: HEURISTIC, SHUFFLES: EXAMPLE}
QUESTION_OF = {MARKERS: "information_heuristic", SHUFFLES: "information_example"}


def signed(sign: int) -> Region:
    return above(0) if sign > 0 else below(0)


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
            "information_depth",
            f"Entropy {VERBS[EXPECTED[intervention, ENTROPY]]} with {memorisation} in models of "
            "every depth.",
            statistics.at_every_depth.of(intervention=intervention, column=ENTROPY),
            above(0),
        )
        for intervention, memorisation in MEMORISATION.items()
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
    Claim(
        "information_norms",
        f"Small norms order models with more or less {EXAMPLE} as their accuracy does.",
        statistics.ordered_by_norms.of(intervention=SHUFFLES),
        above(0),
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
    Claim(
        "information_encoders",
        "An encoder that is fine-tuned with words that are the label goes by the word.",
        statistics.of_network(statistics.shortcut_reliance, ENCODERS.name),
        above(0),
        on_request=True,
    ),
    *(
        Claim(
            "information_encoders",
            f"{NAMES[measure]} of encoders {VERBS[sign]} with {MEMORISATION[intervention]}.",
            statistics.of_network(
                statistics.changed.of(intervention=intervention, column=measure), ENCODERS.name
            ),
            signed(sign),
            on_request=True,
        )
        for (intervention, measure), sign in EXPECTED.items()
    ),
    Claim(
        "information_encoders",
        "Entropy falls more in the last block of encoders than in the first, with heuristic "
        "memorisation.",
        statistics.of_network(
            statistics.changed_late.of(intervention=MARKERS, column=ENTROPY), ENCODERS.name
        ),
        below(0),
        on_request=True,
    ),
    Claim(
        "information_encoders",
        "Mutual information orders encoders with more or less heuristic memorisation as the "
        "compression of the shortcut does.",
        statistics.of_network(
            statistics.ordered_by_compression.of(intervention=MARKERS, column=INFORMATION),
            ENCODERS.name,
        ),
        above(0),
        on_request=True,
    ),
]
