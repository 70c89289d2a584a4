"""The claims on training-data density.

The claims on leakage, on the bandwidth and on the search for neighbours are those of *LMD3:
Language Model Data Density Dependence*, sections 6.1 and 6.2 and appendices A.5, A.6 and A.10. The
claims on the language's exact probabilities and on memorisation are Palimpsest's own.

Of a statistic with one value per seed, the interval is over the seeds. The claims on regressions
are different: one regression is over all seeds, and its interval is that of a permutation test,
which exchanges strings. Regressions of texts have the interval of Student's t over the queries.

Claims that compare densities of several runs are on n-grams alone. Every run has hidden states of
its own model, which is also the model that is judged, so a difference may be one of the embedding.
"""

from palimpsest.claims import Claim, above, at_least, below, between
from palimpsest.density.claims import claim_statistics as statistics
from palimpsest.density.claims import in_distribution
from palimpsest.density.claims import regression_statistics as regressions
from palimpsest.density.earlier import MEASURES, earlier
from palimpsest.density.kinds import (
    ACCURACY,
    HIDDEN,
    NGRAMS,
    ON_BOTH,
    ON_DENSITY,
    ON_DISTANCE,
    ON_RANDOM,
    PERPLEXITY,
    RESPONSE,
    UNSEEN,
)
from palimpsest.density.regressions import DENSITY, DISTANCE, EXACT, LINEAR

QUESTIONS = {
    "leakage": "Does a model do better on what leaked into its training data?",
    "leakage_density": "Does density show what leaked?",
    "density_performance": "Does density tell how well a model does?",
    "density_truth": "Do estimates see density, or only copies?",
    "density_texts": "Are texts easier where the corpus is dense?",
    "density_memorised": "Are densely supported strings memorised earlier?",
}
NAMES = {HIDDEN: "of hidden states", NGRAMS: "of n-grams"}
# "Highly separable" (LMD3, figure 3): nine of ten pairs are in the right order
SEPARABLE = 0.9
# A recall that LMD3 takes as sufficient (appendix A.10.1)
RECALL = 0.9
# The largest difference of two recalls that counts as none
TOLERATED = 0.05
# Words, region and columns: one predictor at equal values of the other
UNIQUE = (
    (
        "At equal distance to the nearest training strings, by the embedding",
        "the loss is lower where the density is higher",
        below(0),
        "log_density",
        "mean_distance",
    ),
    (
        "At equal density, by the embedding",
        "the loss is higher where the nearest training strings are farther away",
        above(0),
        "mean_distance",
        "log_density",
    ),
)
# The paper's claims on regressions: sentence, region, and which term of which regression on raw
# density
REGRESSED = (
    (
        "Perplexity falls as the density {} rises.",
        below(0),
        {"outcome": PERPLEXITY, "regression": ON_DENSITY, "term": DENSITY},
    ),
    (
        "Accuracy rises with the density {}.",
        above(0),
        {"outcome": ACCURACY, "regression": ON_DENSITY, "term": DENSITY},
    ),
    (
        "Accuracy rises with the density {}, at equal distance to the nearest training strings.",
        above(0),
        {"outcome": ACCURACY, "regression": ON_BOTH, "term": DENSITY},
    ),
    (
        "Accuracy falls with the distance to the nearest training strings, at equal density {}.",
        below(0),
        {"outcome": ACCURACY, "regression": ON_BOTH, "term": DISTANCE},
    ),
)
# The paper's claims on texts (section 6.2, appendix A.9)
OF_TEXTS = (
    (
        "The perplexity of a text falls as the density of the nearest texts in the corpus rises.",
        below(0),
        ON_DENSITY,
        DENSITY,
        PERPLEXITY,
    ),
    (
        "The perplexity of a text rises with the density of a random sample of the corpus.",
        above(0),
        ON_RANDOM,
        DENSITY,
        PERPLEXITY,
    ),
    (
        "The perplexity of a text rises with the distance to the nearest texts in the corpus.",
        above(0),
        ON_DISTANCE,
        DISTANCE,
        PERPLEXITY,
    ),
    (
        "The perplexity of a response falls as the density of the texts near its query rises.",
        below(0),
        ON_DENSITY,
        DENSITY,
        RESPONSE,
    ),
    (
        "The perplexity of a response rises with the distance of its query to the nearest texts.",
        above(0),
        ON_DISTANCE,
        DISTANCE,
        RESPONSE,
    ),
)
# The same on the leak condition: sentence, region and term
ON_LEAKS = (
    (
        "an exact copy lowers perplexity",
        below(0),
        {"outcome": PERPLEXITY, "term": EXACT},
    ),
    (
        "perplexity falls with the number of paraphrases",
        below(0),
        {"outcome": PERPLEXITY, "term": LINEAR},
    ),
    (
        "an exact copy raises accuracy",
        above(0),
        {"outcome": ACCURACY, "term": EXACT},
    ),
    (
        "accuracy rises with the number of paraphrases",
        above(0),
        {"outcome": ACCURACY, "term": LINEAR},
    ),
)

CLAIMS = [
    Claim(
        "leakage",
        "An exact copy in the training data lowers the loss on a test string.",
        statistics.copy_effect.of(column="loss"),
        below(0),
    ),
    Claim(
        "leakage",
        "Paraphrases alone lower the loss on a test string.",
        statistics.paraphrase_effect.of(column="loss"),
        below(0),
    ),
    Claim(
        "leakage",
        "An exact copy magnifies what paraphrases do to the loss.",
        statistics.magnified.of(column="loss"),
        below(0),
    ),
    Claim(
        "leakage",
        "An exact copy magnifies what paraphrases do to accuracy.",
        statistics.magnified.of(column="answer_right"),
        above(0),
    ),
    Claim(
        "leakage",
        "An exact copy in the training data makes the answer to a test string more accurate.",
        statistics.copy_effect.of(column="answer_right"),
        above(0),
    ),
    Claim(
        "leakage",
        "Paraphrases alone make the answer to a test string more accurate.",
        statistics.paraphrase_effect.of(column="answer_right"),
        above(0),
    ),
    *(
        Claim(
            "leakage_density",
            f"One exact copy makes a test string highly separable by the density {name}, by the "
            "gaussian kernel with a narrow bandwidth.",
            statistics.separated.of(embedding=embedding),
            at_least(SEPARABLE),
        )
        for embedding, name in NAMES.items()
    ),
    *(
        Claim(
            "leakage_density",
            f"Paraphrases alone raise the density {name} at a test string.",
            statistics.raised_by_paraphrases.of(embedding=embedding),
            above(0),
        )
        for embedding, name in NAMES.items()
    ),
    *(
        Claim(
            "leakage_density",
            f"A narrow bandwidth of the density {name} separates leaked strings better than a wide "
            "one.",
            statistics.narrow_minus_wide.of(embedding=embedding),
            above(0),
        )
        for embedding, name in NAMES.items()
    ),
    *(
        Claim(
            "leakage_density",
            f"The search for neighbours by the embedding {name} finds what was leaked.",
            statistics.recall.of(embedding=embedding),
            at_least(RECALL),
        )
        for embedding, name in NAMES.items()
    ),
    Claim(
        "leakage_density",
        "An embedding that needs no model finds what was leaked as well as the model's own.",
        statistics.recall_difference,
        between(-TOLERATED, TOLERATED),
    ),
    Claim(
        "leakage_density",
        "Without the strings of one production, density falls at test strings of this production.",
        statistics.left_out.of(column="log_density"),
        below(0),
    ),
    Claim(
        "density_performance",
        "Without the strings of one production, the loss rises on test strings of this production.",
        statistics.left_out.of(column="loss"),
        above(0),
    ),
    *(
        Claim(
            "density_performance",
            f"{words} {NAMES[NGRAMS]}, {result}.",
            statistics.unique.of(embedding=NGRAMS, predictor=predictor, given=given),
            region,
        )
        for words, result, region, predictor, given in UNIQUE
    ),
    *(
        Claim(
            "leakage",
            f"In regressions, {sentence}.",
            regressions.regressed_on_leaks.of(**term),
            region,
        )
        for sentence, region, term in ON_LEAKS
    ),
    *(
        Claim(
            "density_performance",
            f"In regressions: {sentence.format(NAMES[NGRAMS])}",
            regressions.regressed_on_density.of(embedding=NGRAMS, **term),
            region,
        )
        for sentence, region, term in REGRESSED
    ),
    *(
        Claim(
            "density_texts",
            sentence,
            regressions.of_text.of(regression=regression, term=term, outcome=outcome),
            region,
            on_request=True,
        )
        for sentence, region, regression, term, outcome in OF_TEXTS
    ),
    Claim(
        "density_texts",
        "Perplexity falls more clearly with the density of the nearest texts for queries from the "
        "corpus than for others.",
        in_distribution.more_clearly,
        below(0),
        on_request=True,
    ),
    Claim(
        "density_texts",
        "In the density of a text by algorithm 1, the random part hides the local part.",
        regressions.share_of_local_part,
        below(0.5),
        on_request=True,
    ),
    *(
        Claim(
            "density_performance",
            f"Without any leak, the loss is lower where the density {name} is higher.",
            statistics.natural.of(embedding=embedding),
            below(0),
        )
        for embedding, name in NAMES.items()
    ),
    *(
        Claim(
            "density_truth",
            f"The density {name} orders strings that were never trained on as the language's "
            "probabilities do.",
            statistics.orders.of(embedding=embedding, strings=UNSEEN),
            above(0),
        )
        for embedding, name in NAMES.items()
    ),
    *(
        Claim(
            "density_memorised",
            f"Strings with dense support are memorised earlier, by {name}.",
            earlier.of(measure=measure),
            below(0),
        )
        for measure, name in MEASURES.items()
    ),
]
