"""The claims on frequency, deduplication and training size (RQ4, RQ5, RQ8, RQ9)."""

from collections.abc import Callable
from functools import partial

import pandas as pd

from palimpsest.claims import (
    CONSTANT,
    DIFFERENCE,
    NO_THRESHOLD,
    NOT_NEGATIVE,
    STAND_INS,
    Claim,
    above,
    at_least,
    at_most,
    below,
    between,
)
from palimpsest.estimates import MARKED, VOIDS
from palimpsest.memorisation.claim_statistics import Statistic, estimator
from palimpsest.memorisation.margins import NEARLY_EQUAL, RARE
from palimpsest.memorisation.training_set_statistics import (
    band,
    band_widening,
    contradiction,
    excess_before_optimum,
    excess_deduplicated,
    excess_top_minus_bottom,
    least_band,
    least_band_widening,
    less_with_adapters,
    mean_of,
    optimum_delay,
    per_doubling,
    pooled_with_test_loss,
    slower_training,
    spread_above_matched,
    spread_ratio,
    start_delay,
    top_minus_bottom,
    with_test_loss,
)

# The variants of the data that a claim on deduplication uses.
DEDUP = ("dedup",)
BASE_AND_DEDUP = ("base", "dedup")
DEDUP_AND_MATCHED = ("dedup", "dedup-matched")
# How memorisation changes with a lower lowest test loss (figure 6). Better learning means a lower
# loss, so less memorisation is a positive association with the loss.
WITH_BETTER_LEARNING = (
    ("recollection", "recollection-based", "more", below(0)),
    ("counterfactual", "counterfactual", "less", above(0)),
    ("contextual", "contextual", "less", above(0)),
)


def evidence_of(measure: str) -> str:
    return CONSTANT if measure == "recollection" else STAND_INS


EXCESS_BELOW = (
    "share of strings below the threshold at optimal learning, minus that share of strings never "
    "trained on that are as probable; most frequent minus least frequent strings"
)
TWO_DIFFERENCES = (-2.0, 2.0)  # the range of a difference of two differences of shares
# Columns of the scores: of training strings as in the paper, of unseen strings, and both without
# the rule for the start. For repeated strings, the unseen strings are equally probable.
SCORES = {
    "the training strings": ("weighted", "weighted_unseen", "depth_distinct", "depth_unseen"),
    "repeated strings": (
        "weighted_repeated",
        "depth_repeated_unseen",
        "depth_repeated",
        "depth_repeated_unseen",
    ),
}


def paper_difference(column: str, measure: str) -> dict[str, Statistic]:
    difference = partial(top_minus_bottom, column=column, measure=measure)
    return {"as the paper counts, with false alarms": difference}


def words_of_score(measure: str) -> str:
    if measure == "recollection":
        return "the mean score"
    return "the mean score (minus that of strings never trained on, without the rule for the start)"


def score_of(
    statistic: Callable[..., pd.Series], measure: str, strings: str = "the training strings"
) -> dict:
    """Settings of `estimator` for a statistic of a score: its columns, and a number for comparison.

    By recollection the paper's score is tested, and the score of unseen strings is shown. By other
    measures the excess over unseen strings is tested, and the paper's score is shown.
    """
    paper, of_unseen, trained, unseen = SCORES[strings]

    def shown(name: str, column: str) -> dict[str, Statistic]:
        return {name: partial(statistic, column=column, measure=measure)}

    if measure == "recollection":
        beside = shown("the same of strings never trained on", of_unseen)
        return {"column": paper, "measure": measure, "beside": beside}
    beside = shown("as the paper counts, with false alarms", paper)
    return {"column": trained, "minus": unseen, "measure": measure, "beside": beside}


CLAIMS = [
    Claim(
        "RQ4",
        "By recollection, frequent strings are memorised more than infrequent ones.",
        "frequency",
        "fraction memorised at optimal learning, most frequent minus least frequent strings, "
        "recollection",
        above(0),
        estimator(
            top_minus_bottom,
            beside={
                "the same of unseen strings as probable": partial(
                    top_minus_bottom, column="below_unseen_matched", measure="recollection"
                )
            },
            column="fraction_distinct",
            measure="recollection",
        ),
        limits=DIFFERENCE,
        evidence=(CONSTANT,),
    ),
    Claim(
        "RQ4",
        "By recollection, frequent strings are memorised more than infrequent ones, beyond unseen "
        "strings as probable as they are.",
        "frequency",
        f"{EXCESS_BELOW}, by recollection",
        above(0),
        estimator(excess_top_minus_bottom, quantity="below", measure="recollection"),
        limits=TWO_DIFFERENCES,
        evidence=(CONSTANT, STAND_INS),
    ),
    *[
        Claim(
            "RQ4",
            f"Frequent and infrequent strings are almost equally susceptible to {measure} "
            "memorisation.",
            "frequency",
            f"{EXCESS_BELOW}, {measure}",
            between(-NEARLY_EQUAL, NEARLY_EQUAL),
            estimator(
                excess_top_minus_bottom,
                beside=paper_difference("fraction_distinct", measure),
                quantity="below",
                measure=measure,
            ),
            limits=TWO_DIFFERENCES,
            evidence=(STAND_INS,),
        )
        for measure in ("contextual", "counterfactual")
    ],
    Claim(
        "RQ4",
        "Frequent strings are, if anything, contextually memorised less.",
        "frequency",
        "mean score at optimal learning without the rule for the start, minus that of strings "
        "never trained on that are as probable; most frequent minus least frequent strings, "
        "contextual",
        at_most(0),
        estimator(
            excess_top_minus_bottom,
            beside=paper_difference("weighted_distinct", "contextual"),
            quantity="depth",
            measure="contextual",
        ),
        limits=TWO_DIFFERENCES,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ4",
        "Contextual memorisation contradicts recollection on the impact of frequency.",
        "frequency",
        "most frequent minus least frequent strings at optimal learning: this difference of the "
        "shares below the threshold by recollection, minus this difference of the contextual "
        "excess over strings never trained on; on the same strings",
        above(0),
        estimator(contradiction),
        limits=(-3, 3),
        evidence=(
            CONSTANT,
            STAND_INS,
        ),
    ),
    *[
        Claim(
            "RQ4",
            f"Deduplication delays {delayed}, counted in {unit}.",
            "deduplication",
            f"{unit} by which the middle of the 10 % to 90 % band of starts is later than the "
            f"base's, {measure}; {never}",
            above(0),
            estimator(
                start_delay,
                variants=BASE_AND_DEDUP,
                undefined=undefined,
                measure=measure,
                in_strings=in_strings,
            ),
            evidence=(evidence_of(measure),),
        )
        for unit, in_strings, undefined, never in (
            ("epochs", False, MARKED, "no start counts as one epoch after the last epoch"),
            ("trained strings", True, VOIDS, "no verdict if the end of training cuts a band"),
        )
        for measure, delayed in (
            ("recollection", "memorisation by recollection"),
            ("contextual", "contextual memorisation"),
        )
    ],
    *[
        Claim(
            "RQ4",
            f"Deduplication delays learning, counted in {unit}.",
            "deduplication",
            f"{unit} by which optimal learning is later than the base's",
            above(0),
            estimator(optimum_delay, variants=BASE_AND_DEDUP, in_strings=in_strings),
            evidence=(NO_THRESHOLD,),
        )
        for unit, in_strings in (("epochs", False), ("trained strings", True))
    ],
    Claim(
        "RQ4",
        "Deduplication cannot avoid memorisation completely at optimal learning.",
        "deduplication",
        "share of distinct training strings below the contextual threshold at optimal learning, "
        "minus that share of strings never trained on, deduplicated",
        above(0),
        estimator(excess_deduplicated, variants=DEDUP, quantity="below", measure="contextual"),
        limits=DIFFERENCE,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ4",
        "Deduplication does not narrow the band of starts by recollection.",
        "deduplication",
        "width of the 10 % to 90 % band of starts minus the base's (share of the training), "
        "recollection",
        at_least(-RARE),
        estimator(
            band_widening,
            undefined=VOIDS,
            at_least=least_band_widening,
            variants=BASE_AND_DEDUP,
            other="base",
            measure="recollection",
        ),
        limits=DIFFERENCE,
        evidence=(CONSTANT,),
    ),
    Claim(
        "RQ4",
        "Deduplication does not narrow the band of contextual starts.",
        "deduplication",
        "width of the 10 % to 90 % band of starts minus the base's (share of the training), "
        "contextual",
        at_least(-RARE),
        estimator(
            band_widening,
            undefined=VOIDS,
            at_least=least_band_widening,
            variants=BASE_AND_DEDUP,
            other="base",
            measure="contextual",
        ),
        limits=DIFFERENCE,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ5",
        "Optimal learning improves with the training size.",
        "training_size",
        "change of the lowest test loss for each doubling of the training size, nats per token",
        below(0),
        estimator(per_doubling, column="test_loss"),
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "RQ5",
        "Repetition increases with the training size.",
        "training_size",
        "change of the number of repeated strings for each doubling of the training size; never "
        "below 0 by construction, because a seed's smaller training sets are parts of its larger "
        "ones",
        above(0),
        estimator(per_doubling, column="n_repeated"),
        by_construction=True,
        evidence=(NO_THRESHOLD,),
    ),
    *[
        Claim(
            "RQ5",
            f"A larger training set {verb} {adjective} memorisation of {strings}.",
            "training_size",
            f"change of {words_of_score(measure)} of {strings} at optimal learning for each "
            f"doubling of the training size, {measure}",
            region,
            estimator(per_doubling, **score_of(per_doubling, measure, strings)),
            evidence=(evidence_of(measure),),
        )
        for strings in ("the training strings", "repeated strings")
        for measure, adjective, verb, region in (
            ("recollection", "recollection-based", "increases", above(0)),
            ("counterfactual", "counterfactual", "does not increase", at_most(0)),
            ("contextual", "contextual", "does not increase", at_most(0)),
        )
    ],
    Claim(
        "RQ5",
        "The optimal contextual loss of the same strings falls with the training size.",
        "training_size",
        "change of the mean optimal contextual loss for each doubling of the training size, of the "
        "strings that all training sets of a seed have, nats per token",
        below(0),
        estimator(per_doubling, column="threshold_shared", measure="contextual"),
        evidence=(STAND_INS,),
    ),
    *[
        Claim(
            "RQ5",
            f"Better learning goes with {less_or_more} {adjective} memorisation, over all models "
            "and training sizes.",
            "training_size",
            f"rank association (Somers' D) of lowest test loss with {words_of_score(measure)} at "
            f"optimal learning, all models and training sizes of a seed together, {measure}",
            region,
            estimator(pooled_with_test_loss, **score_of(pooled_with_test_loss, measure)),
            limits=DIFFERENCE,
            evidence=(evidence_of(measure),),
        )
        for measure, adjective, less_or_more, region in WITH_BETTER_LEARNING
    ],
    *[
        Claim(
            "RQ5",
            f"Models of other sizes that learn better show {less_or_more} {adjective} "
            "memorisation.",
            "model_size",
            f"rank association (Somers' D) of lowest test loss with {words_of_score(measure)} at "
            f"optimal learning, within families, {measure}",
            region,
            estimator(with_test_loss, **score_of(with_test_loss, measure)),
            limits=DIFFERENCE,
            evidence=(evidence_of(measure),),
        )
        for measure, adjective, less_or_more, region in WITH_BETTER_LEARNING
    ],
    Claim(
        "adapters",
        "With these adapters, training memorises less than the training of all weights.",
        "adapters",
        "loss on the distinct training strings, adapters minus all weights, both at the lowest "
        "test loss that both reached, nats per token",
        above(0),
        estimator(
            less_with_adapters,
            beside={
                "all weights": partial(mean_of, column="reference_train_loss_distinct"),
                "adapters": partial(mean_of, column="train_loss_distinct"),
                "test loss of both": partial(mean_of, column="equal_test_loss"),
            },
        ),
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "RQ8",
        "Under deduplication the training loss decreases more slowly.",
        "deduplication",
        "training loss minus the base's, each distinct string once, after equally many trained "
        "strings, nats per token",
        above(0),
        estimator(slower_training, variants=BASE_AND_DEDUP),
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "RQ8",
        "Deduplication does not lead to an equal learning of test strings.",
        "deduplication",
        "standard deviation of the loss over test strings at optimal learning, deduplicated "
        "relative to base",
        at_least(1 - 2 * NEARLY_EQUAL),
        estimator(spread_ratio, variants=BASE_AND_DEDUP),
        limits=NOT_NEGATIVE,
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "RQ8",
        "Training on matched data of high entropy, unlike deduplication, lets the test strings be "
        "learned equally.",
        "deduplication",
        "standard deviation of the loss over test strings at optimal learning, deduplicated "
        "minus dedup-matched, nats per token",
        above(0),
        estimator(spread_above_matched, variants=DEDUP_AND_MATCHED),
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "RQ9",
        "Under deduplication strings are memorised at different epochs by recollection.",
        "deduplication",
        "epochs in the 10 % to 90 % band of starts, deduplicated, recollection",
        above(1),
        estimator(
            band,
            undefined=VOIDS,
            at_least=least_band,
            variants=DEDUP,
            name="dedup",
            measure="recollection",
        ),
        limits=NOT_NEGATIVE,
        evidence=(CONSTANT,),
    ),
    Claim(
        "RQ9",
        "Under deduplication strings are contextually memorised at different epochs.",
        "deduplication",
        "epochs in the 10 % to 90 % band of starts, deduplicated, contextual",
        above(1),
        estimator(
            band,
            undefined=VOIDS,
            at_least=least_band,
            variants=DEDUP,
            name="dedup",
            measure="contextual",
        ),
        limits=NOT_NEGATIVE,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ9",
        "Deduplication does not make memorisation as simultaneous as matched data of high "
        "entropy does.",
        "deduplication",
        "width of the 10 % to 90 % band of starts minus that of dedup-matched (share of the "
        "training), contextual",
        above(0),
        estimator(
            band_widening,
            undefined=VOIDS,
            at_least=least_band_widening,
            variants=DEDUP_AND_MATCHED,
            other="dedup-matched",
            measure="contextual",
        ),
        limits=DIFFERENCE,
        evidence=(STAND_INS,),
    ),
    Claim(
        "RQ9",
        "Under deduplication contextual memorisation starts before optimal learning.",
        "deduplication",
        "share of distinct training strings below the contextual threshold at the last "
        "measurement before optimal learning, minus that share of strings never trained on, "
        "deduplicated",
        above(0),
        estimator(excess_before_optimum, variants=DEDUP, measure="contextual"),
        limits=DIFFERENCE,
        evidence=(STAND_INS,),
    ),
]
