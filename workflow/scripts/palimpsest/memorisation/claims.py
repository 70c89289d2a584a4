"""The claims of the paper, each with the statistic that tests the claim.

The interval of a statistic is over the seeds. If there is only one seed, but a model was retrained
without every training string, the interval is over the strings (bootstrap); it does not cover other
seeds. A claim that strings are memorised is a claim about training. So if a measure can be applied
to strings that were never trained on, only the memorisation beyond that in these strings counts. To
add a claim, add one `Claim` to `CLAIMS`.

Source: Learning Without Memorizing Considered Infeasible. The claims are in the order of the paper,
by question. Those on false alarms, on ranks and on the Bayes threshold are Palimpsest's own. If the
paper uses a word ("strongly", "almost all"), `margins.py` chooses the number for this word.
"""

from palimpsest.claims import Claim, above, at_least, at_most, below, between
from palimpsest.memorisation.approximation_claims import CLAIMS as APPROXIMATION_CLAIMS
from palimpsest.memorisation.claim_statistics import (
    at_optimum,
    band,
    band_widening,
    band_width,
    contextual_above_counterfactual,
    contradiction,
    cost_of_stopping_early,
    counterfactual_overestimates,
    excess_at_optimum,
    excess_before_optimum,
    excess_deduplicated,
    frequent_earlier,
    frequent_threshold,
    high_entropy,
    largest_fall,
    least_excess_at_optimum,
    loss_above_without,
    low_and_high_entropy,
    low_entropy,
    low_minus_high,
    middle_threshold_from_test_loss,
    optimum_delay,
    optimum_in_band,
    order_disagreement,
    over_seeds,
    score_increases,
    score_range,
    scores_differ,
    slower_training,
    spread_above_matched,
    spread_ratio,
    start_delay,
    start_disagreement,
    starts_later,
    top_minus_bottom,
    with_size,
    with_test_loss,
)
from palimpsest.memorisation.margins import (
    ALMOST_ALL,
    NEARLY_EQUAL,
    NEXT_TO_NONE,
    RARE,
    STRONG,
    USUALLY,
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
    "approximation": "Can test strings of the same frequency stand in for a second training, "
    "without false alarms?",
    "bayes": (
        "Can the language's exact probabilities stand in for a second training, and does a loss "
        "below the Bayes-optimal loss betray memorisation?"
    ),
}


CLAIMS = [
    Claim(
        "RQ1",
        "The more frequent a string, the earlier it is memorised by recollection.",
        "disagreement",
        "rank association (Somers' D) of occurrence frequency with early start, recollection; "
        "strings that never start rank last",
        above(0),
        over_seeds(frequent_earlier, measure="recollection"),
    ),
    Claim(
        "RQ1",
        "Recollection-based memorisation is strongly correlated with occurrence frequency.",
        "disagreement",
        "rank association (Somers' D) of occurrence frequency with early start, recollection",
        at_least(STRONG),
        over_seeds(frequent_earlier, measure="recollection"),
    ),
    Claim(
        "RQ1",
        "The correlation of frequency with the order of memorisation is the same for other "
        "recollection measures (here by accuracy).",
        "disagreement",
        "rank association (Somers' D) of occurrence frequency with early start, recollection by "
        "accuracy",
        above(0),
        over_seeds(frequent_earlier, measure="recollection_accuracy"),
    ),
    Claim(
        "RQ1",
        "The order of counterfactual memorisation is uncorrelated, at times inversely correlated, "
        "with frequency.",
        "disagreement",
        "rank association (Somers' D) of occurrence frequency with early start, counterfactual",
        below(STRONG),
        over_seeds(frequent_earlier, measure="counterfactual"),
    ),
    Claim(
        "RQ1",
        "The order of contextual memorisation is uncorrelated, at times inversely correlated, "
        "with frequency.",
        "disagreement",
        "rank association (Somers' D) of occurrence frequency with early start, contextual",
        below(STRONG),
        over_seeds(frequent_earlier, measure="contextual"),
    ),
    Claim(
        "RQ1",
        "More frequent strings have a lower optimal contextual loss.",
        "disagreement",
        "rank association (Somers' D) of occurrence frequency with optimal contextual loss",
        below(0),
        over_seeds(frequent_threshold),
    ),
    Claim(
        "RQ1",
        "The optimal contextual loss of the mid-frequent string is close to the test loss.",
        "disagreement",
        "relative distance of the optimal contextual loss of the middle target from the lowest "
        "test loss",
        at_most(NEARLY_EQUAL),
        over_seeds(middle_threshold_from_test_loss),
    ),
    Claim(
        "RQ1",
        "Measures disagree on the start of memorisation of the same strings.",
        "disagreement",
        "share of targets whose start differs between recollection and contextual memorisation",
        above(0),
        over_seeds(start_disagreement, one="recollection", other="contextual"),
    ),
    Claim(
        "RQ1",
        "Measures disagree on the order in which strings are memorised.",
        "disagreement",
        "share of pairs of targets ordered differently by recollection and contextual memorisation",
        above(0),
        over_seeds(order_disagreement, one="recollection", other="contextual"),
    ),
    Claim(
        "RQ1",
        "Counterfactual memorisation starts no later than contextual memorisation (Lemma 1).",
        "disagreement",
        "share of targets whose counterfactual start is later; 0 by construction, because both "
        "starts follow one rule and the contextual threshold is never above the counterfactual "
        "threshold",
        at_most(0),
        over_seeds(starts_later, one="counterfactual", other="contextual"),
        by_construction=True,
    ),
    Claim(
        "RQ1",
        "Counterfactual memorisation precedes contextual memorisation.",
        "disagreement",
        "share of targets whose contextual start is strictly later than the counterfactual one",
        at_least(USUALLY),
        over_seeds(starts_later, one="contextual", other="counterfactual"),
    ),
    Claim(
        "RQ1",
        "The loss of a string in training is not above its counterfactual loss (the assumption "
        "in the proof of Lemma 1).",
        "disagreement",
        "share of (target, epoch) pairs whose loss is above the loss without the target",
        at_most(RARE),
        over_seeds(loss_above_without),
    ),
    Claim(
        "RQ2",
        "The contextual score is a lower bound of the counterfactual score (Lemma 1).",
        "disagreement",
        "largest excess of the contextual score over the counterfactual one, all targets and "
        "epochs; 0 by construction",
        at_most(0),
        over_seeds(contextual_above_counterfactual),
        by_construction=True,
    ),
    Claim(
        "RQ2",
        "Counterfactual memorisation often overestimates contextual memorisation.",
        "disagreement",
        "share of counterfactually memorised (target, epoch) pairs whose contextual score is lower",
        at_least(USUALLY),
        over_seeds(counterfactual_overestimates),
    ),
    Claim(
        "RQ2",
        "The counterfactual score usually increases with epochs.",
        "disagreement",
        "rank association (Somers' D) of the epoch with the score from the start on, mean over the "
        "targets, counterfactual",
        above(0),
        over_seeds(score_increases, measure="counterfactual"),
    ),
    Claim(
        "RQ2",
        "The contextual score usually increases with epochs.",
        "disagreement",
        "rank association (Somers' D) of the epoch with the score from the start on, mean over the "
        "targets, contextual",
        above(0),
        over_seeds(score_increases, measure="contextual"),
    ),
    Claim(
        "RQ2",
        "There is no substantial difference in counterfactual score among strings of varying "
        "frequency.",
        "disagreement",
        "largest minus smallest score of the targets at the last epoch, counterfactual",
        at_most(NEARLY_EQUAL),
        over_seeds(score_range, measure="counterfactual"),
    ),
    Claim(
        "RQ2",
        "There is no substantial difference in contextual score among strings of varying "
        "frequency.",
        "disagreement",
        "largest minus smallest score of the targets at the last epoch, contextual",
        at_most(NEARLY_EQUAL),
        over_seeds(score_range, measure="contextual"),
    ),
    Claim(
        "RQ2",
        "Different measures agree on the memorisation score.",
        "disagreement",
        "mean distance between the counterfactual and the contextual score at the last epoch",
        at_most(NEARLY_EQUAL),
        over_seeds(scores_differ),
    ),
    Claim(
        "RQ3",
        "The fraction of strings memorised by recollection increases monotonically with epochs.",
        "tradeoff",
        "largest fall of the fraction from one epoch to the next, recollection; 0 by "
        "construction if the start is after the last miss",
        at_most(0),
        over_seeds(largest_fall, column="fraction", measure="recollection"),
        by_construction=True,
    ),
    Claim(
        "RQ3",
        "The fraction of strings memorised contextually increases monotonically with epochs.",
        "tradeoff",
        "largest fall of the fraction from one epoch to the next, contextual; 0 by construction "
        "if the start is after the last miss",
        at_most(0),
        over_seeds(largest_fall, column="fraction", measure="contextual"),
        by_construction=True,
    ),
    Claim(
        "RQ3",
        "Memorisation is unavoidable when a language is learned optimally.",
        "tradeoff",
        "share of distinct training strings below the contextual threshold at optimal learning, "
        "minus that share of strings never trained on",
        above(0),
        over_seeds(excess_at_optimum, quantity="below", measure="contextual"),
    ),
    Claim(
        "RQ3",
        "Some degree of memorisation is needed for optimal learning.",
        "tradeoff",
        "mean contextual score of distinct training strings at optimal learning, minus that of "
        "strings never trained on; without the rule for the start",
        above(0),
        over_seeds(excess_at_optimum, quantity="depth", measure="contextual"),
    ),
    Claim(
        "RQ3",
        "Some strings are memorised before optimal learning whichever measure is applied.",
        "tradeoff",
        "share of distinct training strings below the threshold at optimal learning, minus that "
        "share of strings never trained on; the lowest of recollection, counterfactual and "
        "contextual memorisation",
        above(0),
        over_seeds(least_excess_at_optimum),
    ),
    Claim(
        "RQ3",
        "Almost all strings of the high-entropy language are contextually memorised at optimal "
        "learning.",
        "tradeoff",
        "fraction of strings contextually memorised at optimal learning, language of high entropy",
        at_least(ALMOST_ALL),
        over_seeds(at_optimum, column="fraction", measure="contextual"),
        high_entropy,
    ),
    Claim(
        "RQ3",
        "A sizable subset, not almost all, of the strings of the low-entropy language is "
        "contextually memorised at optimal learning.",
        "tradeoff",
        "fraction of strings contextually memorised at optimal learning, language of low entropy",
        between(NEXT_TO_NONE, ALMOST_ALL),
        over_seeds(at_optimum, column="fraction", measure="contextual"),
        low_entropy,
    ),
    Claim(
        "RQ3",
        "By recollection no strings of the high-entropy language are memorised at optimal "
        "learning.",
        "tradeoff",
        "fraction of strings memorised at optimal learning by recollection, language of high "
        "entropy",
        at_most(NEXT_TO_NONE),
        over_seeds(at_optimum, column="fraction", measure="recollection"),
        high_entropy,
    ),
    Claim(
        "RQ3",
        "By recollection almost all strings of the low-entropy language are memorised at optimal "
        "learning.",
        "tradeoff",
        "fraction of strings memorised at optimal learning by recollection, language of low "
        "entropy",
        at_least(ALMOST_ALL),
        over_seeds(at_optimum, column="fraction", measure="recollection"),
        low_entropy,
    ),
    Claim(
        "RQ3",
        "The band of starts by recollection is narrow for the high-entropy language and broad "
        "for the low-entropy one.",
        "tradeoff",
        "width of the band of starts (share of the training), recollection, low minus high entropy",
        above(0),
        low_minus_high(band_width, measure="recollection"),
        low_and_high_entropy,
    ),
    Claim(
        "RQ3",
        "The band of contextual starts is narrow for the high-entropy language and broad for the "
        "low-entropy one.",
        "tradeoff",
        "width of the band of starts (share of the training), contextual, low minus high entropy",
        above(0),
        low_minus_high(band_width, measure="contextual"),
        low_and_high_entropy,
    ),
    Claim(
        "RQ3",
        "Optimal learning typically falls within the band of starts by recollection.",
        "tradeoff",
        "share of models whose epoch of optimal learning lies in the band, recollection",
        at_least(USUALLY),
        over_seeds(optimum_in_band, measure="recollection"),
    ),
    Claim(
        "RQ3",
        "Optimal learning typically falls within the band of contextual starts.",
        "tradeoff",
        "share of models whose epoch of optimal learning lies in the band, contextual",
        at_least(USUALLY),
        over_seeds(optimum_in_band, measure="contextual"),
    ),
    Claim(
        "RQ3",
        "Stopping before any string is memorised is acceptable for the high-entropy language.",
        "tradeoff",
        "relative excess of the test loss over its minimum just before the first contextual "
        "start, language of high entropy",
        at_most(NEARLY_EQUAL),
        over_seeds(cost_of_stopping_early, measure="contextual"),
        high_entropy,
    ),
    Claim(
        "RQ3",
        "Stopping before any string is memorised is highly sub-optimal for the low-entropy "
        "language.",
        "tradeoff",
        "relative excess of the test loss over its minimum just before the first contextual "
        "start, language of low entropy",
        above(NEARLY_EQUAL),
        over_seeds(cost_of_stopping_early, measure="contextual"),
        low_entropy,
    ),
    Claim(
        "RQ4",
        "By recollection, frequent strings are memorised more than infrequent ones.",
        "frequency",
        "fraction memorised at optimal learning, most frequent minus least frequent strings, "
        "recollection",
        above(0),
        over_seeds(top_minus_bottom, column="fraction_distinct", measure="recollection"),
    ),
    Claim(
        "RQ4",
        "Frequent and infrequent strings are almost equally susceptible to contextual "
        "memorisation.",
        "frequency",
        "fraction memorised at optimal learning, most frequent minus least frequent strings, "
        "contextual",
        between(-NEARLY_EQUAL, NEARLY_EQUAL),
        over_seeds(top_minus_bottom, column="fraction_distinct", measure="contextual"),
    ),
    Claim(
        "RQ4",
        "Frequent and infrequent strings are almost equally susceptible to counterfactual "
        "memorisation.",
        "frequency",
        "fraction memorised at optimal learning, most frequent minus least frequent strings, "
        "counterfactual",
        between(-NEARLY_EQUAL, NEARLY_EQUAL),
        over_seeds(top_minus_bottom, column="fraction_distinct", measure="counterfactual"),
    ),
    Claim(
        "RQ4",
        "Frequent strings are, if anything, contextually memorised less.",
        "frequency",
        "weighted memorisation at optimal learning, most frequent minus least frequent strings, "
        "contextual",
        at_most(0),
        over_seeds(top_minus_bottom, column="weighted_distinct", measure="contextual"),
    ),
    Claim(
        "RQ4",
        "Contextual memorisation contradicts recollection on the impact of frequency.",
        "frequency",
        "fraction memorised at optimal learning, most frequent minus least frequent strings: this "
        "difference by recollection minus the same difference by contextual memorisation",
        above(0),
        over_seeds(contradiction),
    ),
    Claim(
        "RQ4",
        "Deduplication delays memorisation by recollection.",
        "deduplication",
        "epochs by which the middle of the 10 % to 90 % band of starts is later than the base's, "
        "recollection; no start counts as one epoch after the last epoch",
        above(0),
        over_seeds(start_delay, measure="recollection"),
    ),
    Claim(
        "RQ4",
        "Deduplication delays contextual memorisation.",
        "deduplication",
        "epochs by which the middle of the 10 % to 90 % band of starts is later than the base's, "
        "contextual; no start counts as one epoch after the last epoch",
        above(0),
        over_seeds(start_delay, measure="contextual"),
    ),
    Claim(
        "RQ4",
        "Deduplication delays learning.",
        "deduplication",
        "epochs by which optimal learning is later than the base's",
        above(0),
        over_seeds(optimum_delay),
    ),
    Claim(
        "RQ4",
        "Deduplication cannot avoid memorisation completely at optimal learning.",
        "deduplication",
        "share of distinct training strings below the contextual threshold at optimal learning, "
        "minus that share of strings never trained on, deduplicated",
        above(0),
        over_seeds(excess_deduplicated, quantity="below", measure="contextual"),
    ),
    Claim(
        "RQ4",
        "Deduplication does not narrow the band of starts by recollection.",
        "deduplication",
        "width of the 10 % to 90 % band of starts minus the base's (share of the training), "
        "recollection",
        at_least(-RARE),
        over_seeds(band_widening, other="base", measure="recollection"),
    ),
    Claim(
        "RQ4",
        "Deduplication does not narrow the band of contextual starts.",
        "deduplication",
        "width of the 10 % to 90 % band of starts minus the base's (share of the training), "
        "contextual",
        at_least(-RARE),
        over_seeds(band_widening, other="base", measure="contextual"),
    ),
    Claim(
        "RQ5",
        "Optimal learning improves with the training size.",
        "training_size",
        "rank association (Somers' D) of training size with lowest test loss",
        below(0),
        over_seeds(with_size, column="test_loss"),
    ),
    Claim(
        "RQ5",
        "Repetition increases with the training size.",
        "training_size",
        "rank association (Somers' D) of training size with the number of repeated strings",
        above(0),
        over_seeds(with_size, column="n_repeated"),
    ),
    *[
        Claim(
            "RQ5",
            f"A larger training set {verb} {adjective} memorisation of {strings}.",
            "training_size",
            "rank association (Somers' D) of training size with the mean score of "
            f"{strings} at optimal learning, {measure}",
            region,
            over_seeds(with_size, column=column, measure=measure),
        )
        for column, strings in (
            ("weighted", "the training strings"),
            ("weighted_repeated", "repeated strings"),
        )
        for measure, adjective, verb, region in (
            ("recollection", "recollection-based", "increases", above(0)),
            ("counterfactual", "counterfactual", "does not increase", at_most(0)),
            ("contextual", "contextual", "does not increase", at_most(0)),
        )
    ],
    *[
        Claim(
            "RQ5",
            f"Models of other sizes that learn better show less {measure} memorisation.",
            "model_size",
            "rank association (Somers' D) of lowest test loss with weighted memorisation at "
            f"optimal learning, within families, {measure}",
            above(0),
            over_seeds(with_test_loss, measure=measure),
        )
        for measure in ("counterfactual", "contextual")
    ],
    Claim(
        "RQ8",
        "Under deduplication the training loss decreases more slowly.",
        "deduplication",
        "training loss minus the base's, each distinct string once, after equally many trained "
        "strings, nats per token",
        above(0),
        over_seeds(slower_training),
    ),
    Claim(
        "RQ8",
        "Deduplication does not lead to an equal learning of test strings.",
        "deduplication",
        "standard deviation of the loss over test strings at optimal learning, deduplicated "
        "relative to base",
        at_least(1 - 2 * NEARLY_EQUAL),
        over_seeds(spread_ratio),
    ),
    Claim(
        "RQ8",
        "Training on matched data of high entropy, unlike deduplication, lets the test strings be "
        "learned equally.",
        "deduplication",
        "standard deviation of the loss over test strings at optimal learning, deduplicated "
        "minus dedup-matched, nats per token",
        above(0),
        over_seeds(spread_above_matched),
    ),
    Claim(
        "RQ9",
        "Under deduplication strings are memorised at different epochs by recollection.",
        "deduplication",
        "epochs in the 10 % to 90 % band of starts, deduplicated, recollection",
        above(1),
        over_seeds(band, name="dedup", measure="recollection"),
    ),
    Claim(
        "RQ9",
        "Under deduplication strings are contextually memorised at different epochs.",
        "deduplication",
        "epochs in the 10 % to 90 % band of starts, deduplicated, contextual",
        above(1),
        over_seeds(band, name="dedup", measure="contextual"),
    ),
    Claim(
        "RQ9",
        "Deduplication does not make memorisation as simultaneous as matched data of high "
        "entropy does.",
        "deduplication",
        "width of the 10 % to 90 % band of starts minus that of dedup-matched (share of the "
        "training), contextual",
        above(0),
        over_seeds(band_widening, other="dedup-matched", measure="contextual"),
    ),
    Claim(
        "RQ9",
        "Under deduplication contextual memorisation starts before optimal learning.",
        "deduplication",
        "share of distinct training strings below the contextual threshold at the last "
        "measurement before optimal learning, minus that share of strings never trained on, "
        "deduplicated",
        above(0),
        over_seeds(excess_before_optimum, measure="contextual"),
    ),
    *APPROXIMATION_CLAIMS,
]
