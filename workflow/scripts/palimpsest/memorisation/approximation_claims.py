"""The claims on two replacements of a second training: equal frequency, and the language.

Most of these claims are Palimpsest's own. The paper uses the same-frequency approximation, and
shows it for a few strings (Learning Without Memorizing Considered Infeasible, appendix G).
"""

from palimpsest.claims import (
    LANGUAGE,
    NOT_NEGATIVE,
    RETRAINING,
    SHARE,
    STAND_INS,
    Claim,
    at_least,
    at_most,
)
from palimpsest.memorisation.claim_statistics import (
    agreement_mean,
    agrees_as_replicate,
    at_optimum,
    estimator,
    of_every_string,
    stand_in_error,
)
from palimpsest.memorisation.margins import ALMOST_ALL, NEARLY_EQUAL, RARE, SAME_ORDER

CLAIMS = [
    Claim(
        "approximation",
        "Strings of similar frequency yield similar losses.",
        "disagreement",
        "mean relative distance between the stand-ins' loss and the loss without the target",
        at_most(NEARLY_EQUAL),
        estimator(stand_in_error),
        limits=NOT_NEGATIVE,
        evidence=(
            STAND_INS,
            RETRAINING,
        ),
    ),
    *[
        Claim(
            "approximation",
            f"The same-frequency approximation gives the same verdicts as exact {measure} "
            "memorisation.",
            "agreement",
            "share of epochs of the targets with the same verdict",
            at_least(ALMOST_ALL),
            estimator(agreement_mean, column="same_verdict", measure=measure),
            limits=SHARE,
            evidence=(
                STAND_INS,
                RETRAINING,
            ),
        )
        for measure in ("counterfactual", "contextual")
    ],
    Claim(
        "approximation",
        "The same-frequency threshold is the threshold of exact contextual memorisation.",
        "agreement",
        "mean distance of the threshold from the exact one, nats per token",
        at_most(RARE),
        estimator(agreement_mean, column="threshold_error", measure="contextual", absolute=True),
        limits=NOT_NEGATIVE,
        evidence=(
            STAND_INS,
            RETRAINING,
        ),
    ),
    of_every_string(
        "approximation",
        "Strings of similar frequency yield similar losses, over the training strings left out.",
        "mean relative distance between the stand-ins' loss and the loss without the string, all "
        "training strings and epochs",
        at_most(NEARLY_EQUAL),
        measure="counterfactual",
        quantity="threshold",
        statistic="mean_relative_error",
        evidence=(
            STAND_INS,
            RETRAINING,
        ),
    ),
    agrees_as_replicate(
        "approximation",
        "The same-frequency approximation ranks the training strings by optimal contextual loss "
        "as retraining does.",
        "rank correlation (Spearman) of the optimal contextual loss, the training strings left out",
        1 - SAME_ORDER,
        measure="contextual",
        quantity="threshold",
        statistic="correlation",
        evidence=(
            STAND_INS,
            RETRAINING,
        ),
    ),
    *[
        agrees_as_replicate(
            "approximation",
            f"The same-frequency approximation ranks the training strings by {ranked} of "
            f"{measure} memorisation as retraining does.",
            f"rank correlation (Spearman) of the {text}, {measure}, the training strings left out",
            1 - SAME_ORDER,
            measure=measure,
            quantity=quantity,
            statistic="correlation",
            evidence=(
                STAND_INS,
                RETRAINING,
            ),
        )
        for quantity, ranked, text in (
            ("start", "the start", "start; strings that never start rank last"),
            ("score_at_optimum", "the score", "score at optimal learning"),
        )
        for measure in ("counterfactual", "contextual")
    ],
    *[
        agrees_as_replicate(
            "approximation",
            f"The same-frequency approximation gives the same verdicts as exact {measure} "
            "memorisation over the training strings left out.",
            "share of the training strings with the same verdict at optimal learning",
            1 - ALMOST_ALL,
            measure=measure,
            quantity="score_at_optimum",
            statistic="same_verdict",
            evidence=(
                STAND_INS,
                RETRAINING,
            ),
        )
        for measure in ("counterfactual", "contextual")
    ],
    of_every_string(
        "approximation",
        "The same-frequency threshold is the threshold of exact contextual memorisation, over the "
        "training strings left out.",
        "mean distance of the threshold from the exact one, the training strings left out, nats "
        "per token",
        at_most(RARE),
        measure="contextual",
        quantity="threshold",
        statistic="mean_absolute_error",
        evidence=(
            STAND_INS,
            RETRAINING,
        ),
    ),
    Claim(
        "approximation",
        "Contextual memorisation by the same-frequency approximation is no false alarm: strings "
        "never trained on rarely count as memorised.",
        "tradeoff",
        "share of the strings never trained on called memorised at optimal learning, contextual; "
        "the other such strings stand in for each string",
        at_most(RARE),
        estimator(at_optimum, column="fraction_unseen", measure="contextual"),
        limits=SHARE,
        evidence=(STAND_INS,),
    ),
    Claim(
        "bayes",
        "A loss below the Bayes-optimal loss betrays memorisation: strings never trained on "
        "rarely fall below it.",
        "tradeoff",
        "share of the strings never trained on whose loss is below the Bayes-optimal loss at "
        "optimal learning, whether or not it stays below",
        at_most(RARE),
        estimator(at_optimum, column="below_unseen", measure="bayes"),
        limits=SHARE,
        evidence=(LANGUAGE,),
    ),
    Claim(
        "bayes",
        "Memorisation by the Bayes threshold is no false alarm: strings never trained on rarely "
        "count as memorised.",
        "tradeoff",
        "share of the strings never trained on called memorised at optimal learning, bayes",
        at_most(RARE),
        estimator(at_optimum, column="fraction_unseen", measure="bayes"),
        limits=SHARE,
        evidence=(LANGUAGE,),
    ),
    Claim(
        "bayes",
        "The language's exact probabilities give the same verdicts as exact contextual "
        "memorisation.",
        "agreement",
        "share of epochs of the targets with the same verdict",
        at_least(ALMOST_ALL),
        estimator(agreement_mean, column="same_verdict", measure="bayes"),
        limits=SHARE,
        evidence=(
            LANGUAGE,
            RETRAINING,
        ),
    ),
    Claim(
        "bayes",
        "The Bayes-optimal loss is the threshold of exact contextual memorisation.",
        "agreement",
        "mean distance of the threshold from the exact one, nats per token",
        at_most(RARE),
        estimator(agreement_mean, column="threshold_error", measure="bayes", absolute=True),
        limits=NOT_NEGATIVE,
        evidence=(
            LANGUAGE,
            RETRAINING,
        ),
    ),
    agrees_as_replicate(
        "bayes",
        "The Bayes-optimal loss ranks the training strings as the optimal contextual loss does.",
        "rank correlation (Spearman) of the two losses, the training strings left out",
        1 - SAME_ORDER,
        measure="bayes",
        quantity="threshold",
        statistic="correlation",
        evidence=(
            LANGUAGE,
            RETRAINING,
        ),
    ),
    agrees_as_replicate(
        "bayes",
        "The language's exact probabilities give the same verdicts as exact contextual "
        "memorisation over the training strings left out.",
        "share of the training strings with the same verdict at optimal learning",
        1 - ALMOST_ALL,
        measure="bayes",
        quantity="score_at_optimum",
        statistic="same_verdict",
        evidence=(
            LANGUAGE,
            RETRAINING,
        ),
    ),
    of_every_string(
        "bayes",
        "The Bayes-optimal loss is the threshold of exact contextual memorisation, over the "
        "training strings left out.",
        "mean distance of the threshold from the exact one, the training strings left out, nats "
        "per token",
        at_most(RARE),
        measure="bayes",
        quantity="threshold",
        statistic="mean_absolute_error",
        evidence=(
            LANGUAGE,
            RETRAINING,
        ),
    ),
]
