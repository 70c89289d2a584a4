"""The claims on memorisation.

The interval of a statistic is over the seeds. If there is only one seed, but a model was retrained
without every training string, the interval is over the strings (bootstrap); it does not cover other
seeds.

A claim that training makes strings memorised is tested on what exceeds the same number of strings
that were never trained on, both at the epoch of optimal learning:

- Where the paper says how many strings are memorised ("almost all", "a sizable subset", "no
  strings"), its share is tested as the paper's code counts, with false alarms. Under the contextual
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

A claim by retraining follows the claim of the same words that is tested with stand-ins, whose rows
say which of the two is the stronger evidence. The first may be left out where it is too weak.

To add a claim, add one row to `CLAIMS`.

Source: Learning Without Memorizing Considered Infeasible. The claims are in the order of the paper,
by question. Palimpsest's own are those corrected for false alarms or beyond unseen strings, on
ranks, and on the Bayes threshold. If the paper uses a word ("strongly", "almost all"), `margins.py`
chooses the number for this word.
"""

from palimpsest.claims import Claim, above, at_least, at_most, below, between
from palimpsest.memorisation.claims import approximation_statistics as approximations
from palimpsest.memorisation.claims import learning_statistics as learning
from palimpsest.memorisation.claims import retraining_statistics as retraining
from palimpsest.memorisation.claims import target_statistics as targets
from palimpsest.memorisation.claims import threshold_statistics as thresholds
from palimpsest.memorisation.claims import training_set_statistics as training_sets
from palimpsest.memorisation.claims.training_set_statistics import UNIT_OF_DELAY
from palimpsest.memorisation.margins import (
    ALMOST_ALL,
    NEARLY_EQUAL,
    NEXT_TO_NONE,
    RARE,
    SAME_ORDER,
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
    "adapters": "Do adapters memorise less than the training of all weights, when both have "
    "learned equally well?",
    "approximation": "Can unseen strings of the same frequency stand in for a second training, "
    "without false alarms?",
    "bayes": (
        "Can the language's exact probabilities stand in for a second training, and does a loss "
        "below the Bayes-optimal loss betray memorisation?"
    ),
}

# How memorisation changes with a lower lowest test loss (figure 6). Better learning means a lower
# loss, so less memorisation is a positive association with the loss.
WITH_BETTER_LEARNING = (
    ("recollection", "recollection-based", "more", below(0)),
    ("counterfactual", "counterfactual", "less", above(0)),
    ("contextual", "contextual", "less", above(0)),
)
STARTS = {"recollection": "starts by recollection", "contextual": "contextual starts"}
STRONGER = "rests on stand-ins; the same by retraining is stronger evidence"

CLAIMS = [
    Claim(
        "RQ1",
        "The more frequent a string, the earlier it is memorised by recollection.",
        targets.frequent_earlier.of(
            measure="recollection", remark="; strings that never start rank last"
        ),
        above(0),
    ),
    Claim(
        "RQ1",
        "Recollection-based memorisation is strongly correlated with occurrence frequency.",
        targets.frequent_earlier.of(measure="recollection"),
        at_least(STRONG),
    ),
    Claim(
        "RQ1",
        "The correlation of frequency with the order of memorisation is the same for other "
        "recollection measures (here by accuracy).",
        targets.frequent_earlier.of(measure="recollection_accuracy"),
        above(0),
    ),
    *(
        Claim(
            "RQ1",
            f"The order of {measure} memorisation is uncorrelated, at times inversely correlated, "
            "with frequency.",
            targets.frequent_earlier.of(measure=measure),
            below(STRONG),
        )
        for measure in ("counterfactual", "contextual")
    ),
    Claim(
        "RQ1",
        "More frequent strings have a lower optimal contextual loss.",
        targets.frequent_threshold,
        below(0),
    ),
    Claim(
        "RQ1",
        "The optimal contextual loss of the mid-frequent string is close to the test loss.",
        targets.middle_threshold_from_test_loss,
        at_most(NEARLY_EQUAL),
    ),
    Claim(
        "RQ1",
        "Measures disagree on the start of memorisation of the same strings.",
        targets.start_disagreement.of(one="recollection", other="contextual"),
        above(RARE),
    ),
    Claim(
        "RQ1",
        "Measures disagree on the order in which strings are memorised.",
        targets.order_disagreement.of(one="recollection", other="contextual"),
        above(RARE),
    ),
    Claim(
        "RQ1",
        "Counterfactual memorisation starts no later than contextual memorisation (Lemma 1).",
        targets.starts_later.of(one="counterfactual", other="contextual"),
        at_most(0),
        by_construction=True,
    ),
    Claim(
        "RQ1",
        "Counterfactual memorisation precedes contextual memorisation.",
        targets.starts_later.of(one="contextual", other="counterfactual"),
        at_least(USUALLY),
    ),
    Claim(
        "RQ1",
        "The loss of a string in training is not above its counterfactual loss (the assumption "
        "in the proof of Lemma 1).",
        targets.loss_above_without,
        at_most(RARE),
    ),
    Claim(
        "RQ2",
        "The contextual score is a lower bound of the counterfactual score (Lemma 1).",
        targets.contextual_above_counterfactual,
        at_most(0),
        by_construction=True,
    ),
    Claim(
        "RQ2",
        "Counterfactual memorisation often overestimates contextual memorisation.",
        targets.counterfactual_overestimates,
        at_least(USUALLY),
        by_construction=True,
    ),
    *(
        Claim(
            "RQ2",
            f"The {measure} score usually increases with epochs.",
            targets.score_increases.of(measure=measure),
            above(0),
        )
        for measure in ("counterfactual", "contextual")
    ),
    *(
        Claim(
            "RQ2",
            f"There is no substantial difference in {measure} score among strings of varying "
            "frequency.",
            targets.score_range.of(measure=measure),
            at_most(NEARLY_EQUAL),
        )
        for measure in ("counterfactual", "contextual")
    ),
    Claim(
        "RQ2",
        "Different measures agree on the memorisation score.",
        targets.scores_differ,
        at_most(NEARLY_EQUAL),
    ),
    Claim(
        "RQ3",
        "The arbitrarily chosen threshold decides how many strings recollection calls memorised at "
        "optimal learning.",
        thresholds.range_over_thresholds,
        at_least(USUALLY),
    ),
    Claim(
        "RQ3",
        "It does not matter whether recollection starts when a loss first crosses the threshold, "
        "or after the last epoch above it.",
        thresholds.rules_differ,
        at_most(NEARLY_EQUAL),
    ),
    Claim(
        "RQ3",
        "The fraction of strings memorised by recollection increases monotonically with epochs.",
        learning.largest_fall.of(measure="recollection"),
        at_most(0),
        by_construction=True,
    ),
    Claim(
        "RQ3",
        "The fraction of strings memorised contextually increases monotonically with epochs.",
        learning.largest_fall.of(measure="contextual"),
        at_most(0),
        by_construction=True,
    ),
    Claim(
        "RQ3",
        "Memorisation is unavoidable when a language is learned optimally.",
        learning.excess_at_optimum.of(quantity="below", measure="contextual"),
        above(0),
        remark=STRONGER,
    ),
    Claim(
        "RQ3",
        "Memorisation is unavoidable when a language is learned optimally (by retraining).",
        retraining.excess_over_placebos.of(quantity="below", measure="contextual"),
        above(0),
    ),
    Claim(
        "RQ3",
        "Memorisation is unavoidable when a language is learned optimally, in every model.",
        learning.excess_in_lowest_model.of(quantity="below", measure="contextual"),
        above(0),
    ),
    Claim(
        "RQ3",
        "Some degree of memorisation is needed for optimal learning.",
        learning.excess_at_optimum.of(quantity="margin", measure="contextual"),
        above(0),
        remark=STRONGER,
    ),
    Claim(
        "RQ3",
        "Some degree of memorisation is needed for optimal learning (by retraining).",
        retraining.excess_over_placebos.of(quantity="margin", measure="contextual"),
        above(0),
    ),
    Claim(
        "RQ3",
        "Some strings are memorised before optimal learning whichever measure is applied.",
        learning.least_excess_at_optimum,
        above(0),
    ),
    *(
        Claim(
            "RQ3",
            f"{strings} contextually memorised at optimal learning{addition}.",
            statistic.of(entropy=entropy),
            region,
            remark=remark,
        )
        for strings, entropy, region in (
            (
                "Almost all strings of the high-entropy language are",
                "high",
                at_least(ALMOST_ALL),
            ),
            (
                "A sizable subset, not almost all, of the strings of the low-entropy language is",
                "low",
                between(NEXT_TO_NONE, ALMOST_ALL),
            ),
        )
        for addition, statistic, remark in (
            ("", learning.fraction_at_optimum.of(measure="contextual"), STRONGER),
            (" (by retraining)", retraining.share_by_retraining, ""),
            (
                ", corrected for false alarms",
                learning.share_made_to_fall.of(measure="contextual"),
                "",
            ),
        )
    ),
    Claim(
        "RQ3",
        "By recollection no strings of the high-entropy language are memorised at optimal "
        "learning.",
        learning.fraction_at_optimum.of(measure="recollection", entropy="high"),
        at_most(NEXT_TO_NONE),
    ),
    *(
        Claim(
            "RQ3",
            f"The alphabet makes no difference to {words} at optimal learning.",
            learning.digits_minus_letters.of(measure=measure),
            between(-NEXT_TO_NONE, NEXT_TO_NONE),
        )
        for measure, words in (
            ("recollection", "memorisation by recollection"),
            ("contextual", "contextual memorisation"),
        )
    ),
    Claim(
        "RQ3",
        "By recollection almost all strings of the low-entropy language are memorised at optimal "
        "learning.",
        learning.fraction_at_optimum.of(measure="recollection", entropy="low"),
        at_least(ALMOST_ALL),
    ),
    *(
        Claim(
            "RQ3",
            f"The band of {starts} is narrow for the high-entropy language and broad for the "
            "low-entropy one.",
            learning.band_wider_with_low_entropy.of(measure=measure),
            above(0),
        )
        for measure, starts in STARTS.items()
    ),
    *(
        Claim(
            "RQ3",
            f"Optimal learning typically falls within the band of {starts}.",
            learning.optimum_in_band.of(measure=measure),
            at_least(USUALLY),
        )
        for measure, starts in STARTS.items()
    ),
    Claim(
        "RQ3",
        "Stopping before any string is memorised is acceptable for the high-entropy language.",
        learning.cost_of_stopping_early.of(measure="contextual", entropy="high"),
        at_most(NEARLY_EQUAL),
    ),
    Claim(
        "RQ3",
        "Stopping before any string is memorised is highly sub-optimal for the low-entropy "
        "language.",
        learning.cost_of_stopping_early.of(measure="contextual", entropy="low"),
        above(NEARLY_EQUAL),
    ),
    Claim(
        "RQ3",
        "Some strings are memorised before optimal learning by the measures that compare with a "
        "second training (by retraining).",
        retraining.least_excess_over_placebos,
        above(0),
    ),
    Claim(
        "RQ4",
        "By recollection, frequent strings are memorised more than infrequent ones.",
        training_sets.fraction_of_frequent.of(measure="recollection"),
        above(0),
    ),
    Claim(
        "RQ4",
        "By recollection, frequent strings are memorised more than infrequent ones, beyond "
        "unseen strings as probable as they are.",
        training_sets.excess_top_minus_bottom.of(quantity="below", measure="recollection"),
        above(0),
    ),
    *(
        Claim(
            "RQ4",
            f"Frequent and infrequent strings are almost equally susceptible to {measure} "
            f"memorisation{addition}.",
            statistic.of(quantity="below", measure=measure),
            between(-NEARLY_EQUAL, NEARLY_EQUAL),
            remark=remark,
        )
        for measure in ("contextual", "counterfactual")
        for addition, statistic, remark in (
            ("", training_sets.excess_top_minus_bottom, STRONGER),
            (" (by retraining)", retraining.repeated_minus_single, ""),
        )
    ),
    Claim(
        "RQ4",
        "Frequent strings are, if anything, contextually memorised less.",
        training_sets.excess_top_minus_bottom.of(quantity="margin", measure="contextual"),
        at_most(0),
        remark=STRONGER,
    ),
    Claim(
        "RQ4",
        "Frequent strings are, if anything, contextually memorised less (by retraining).",
        retraining.repeated_minus_single.of(quantity="margin", measure="contextual"),
        at_most(0),
    ),
    Claim(
        "RQ4",
        "Contextual memorisation contradicts recollection on the impact of frequency.",
        training_sets.contradiction,
        above(0),
    ),
    *(
        Claim(
            "RQ4",
            f"Deduplication delays {delayed}, counted in {unit}.",
            training_sets.start_delay.of(measure=measure, in_strings=in_strings),
            above(0),
        )
        for in_strings, unit in UNIT_OF_DELAY.items()
        for measure, delayed in (
            ("recollection", "memorisation by recollection"),
            ("contextual", "contextual memorisation"),
        )
    ),
    *(
        Claim(
            "RQ4",
            f"Deduplication delays learning, counted in {unit}.",
            training_sets.optimum_delay.of(in_strings=in_strings),
            above(0),
        )
        for in_strings, unit in UNIT_OF_DELAY.items()
    ),
    Claim(
        "RQ4",
        "Deduplication cannot avoid memorisation completely at optimal learning.",
        training_sets.excess_deduplicated.of(quantity="below", measure="contextual"),
        above(0),
    ),
    *(
        Claim(
            "RQ4",
            f"Deduplication does not narrow the band of {starts}.",
            training_sets.band_widening.of(other="base", measure=measure),
            at_least(-RARE),
        )
        for measure, starts in STARTS.items()
    ),
    Claim(
        "RQ5",
        "Optimal learning improves with the training size.",
        training_sets.column_per_doubling.of(column="test_loss"),
        below(0),
    ),
    Claim(
        "RQ5",
        "Repetition increases with the training size.",
        training_sets.column_per_doubling.of(column="n_repeated"),
        above(0),
        by_construction=True,
    ),
    *(
        Claim(
            "RQ5",
            f"A larger training set {verb} {adjective} memorisation of {strings}.",
            training_sets.score_per_doubling.of(measure=measure, strings=strings),
            region,
        )
        for strings in ("the training strings", "repeated strings")
        for measure, adjective, verb, region in (
            ("recollection", "recollection-based", "increases", above(0)),
            ("counterfactual", "counterfactual", "does not increase", at_most(0)),
            ("contextual", "contextual", "does not increase", at_most(0)),
        )
    ),
    Claim(
        "RQ5",
        "The optimal contextual loss of the same strings falls with the training size.",
        training_sets.column_per_doubling.of(column="threshold_shared", measure="contextual"),
        below(0),
    ),
    *(
        Claim(
            "RQ5",
            f"Better learning goes with {less_or_more} {adjective} memorisation, over all models "
            "and training sizes.",
            training_sets.pooled_with_test_loss.of(measure=measure),
            region,
        )
        for measure, adjective, less_or_more, region in WITH_BETTER_LEARNING
    ),
    *(
        Claim(
            "RQ5",
            f"Models of other sizes that learn better show {less_or_more} {adjective} "
            "memorisation.",
            training_sets.with_test_loss.of(measure=measure),
            region,
        )
        for measure, adjective, less_or_more, region in WITH_BETTER_LEARNING
    ),
    Claim(
        "adapters",
        "With these adapters, training memorises less than the training of all weights.",
        training_sets.less_with_adapters,
        above(0),
    ),
    Claim(
        "RQ8",
        "Under deduplication the training loss decreases more slowly.",
        training_sets.slower_training,
        above(0),
    ),
    Claim(
        "RQ8",
        "Deduplication does not lead to an equal learning of test strings.",
        training_sets.spread_ratio,
        at_least(1 - 2 * NEARLY_EQUAL),
    ),
    Claim(
        "RQ8",
        "Training on matched data of high entropy, unlike deduplication, lets the test strings "
        "be learned equally.",
        training_sets.spread_above_matched,
        above(0),
    ),
    Claim(
        "RQ9",
        "Under deduplication strings are memorised at different epochs by recollection.",
        training_sets.band.of(name="dedup", measure="recollection"),
        above(1),
    ),
    Claim(
        "RQ9",
        "Under deduplication strings are contextually memorised at different epochs.",
        training_sets.band.of(name="dedup", measure="contextual"),
        above(1),
    ),
    Claim(
        "RQ9",
        "Deduplication does not make memorisation as simultaneous as matched data of high "
        "entropy does.",
        training_sets.band_widening.of(other="dedup-matched", measure="contextual"),
        above(0),
    ),
    Claim(
        "RQ9",
        "Under deduplication contextual memorisation starts before optimal learning.",
        training_sets.excess_before_optimum.of(measure="contextual"),
        above(0),
    ),
    Claim(
        "approximation",
        "Strings of similar frequency yield similar losses.",
        approximations.stand_in_error,
        at_most(NEARLY_EQUAL),
    ),
    *(
        Claim(
            "approximation",
            f"The same-frequency approximation gives the same verdicts as exact {measure} "
            "memorisation.",
            approximations.same_verdict.of(measure=measure),
            at_least(ALMOST_ALL),
        )
        for measure in ("counterfactual", "contextual")
    ),
    Claim(
        "approximation",
        "The same-frequency threshold is the threshold of exact contextual memorisation.",
        approximations.threshold_distance.of(measure="contextual"),
        at_most(NEARLY_EQUAL),
    ),
    Claim(
        "approximation",
        "Strings of similar frequency yield similar losses, over the training strings left out.",
        approximations.error_of_every_string.of(measure="counterfactual"),
        at_most(NEARLY_EQUAL),
    ),
    Claim(
        "approximation",
        "The same-frequency approximation ranks the training strings by optimal contextual loss "
        "as retraining does.",
        approximations.minus_ceiling.of(
            measure="contextual", quantity="threshold", statistic="correlation"
        ),
        at_least(SAME_ORDER - 1),
    ),
    *(
        Claim(
            "approximation",
            f"The same-frequency approximation ranks the training strings by {ranked} of "
            f"{measure} memorisation as retraining does.",
            approximations.minus_ceiling.of(
                measure=measure, quantity=quantity, statistic="correlation"
            ),
            at_least(SAME_ORDER - 1),
        )
        for quantity, ranked in (("start", "the start"), ("score_at_optimum", "the score"))
        for measure in ("counterfactual", "contextual")
    ),
    *(
        Claim(
            "approximation",
            f"The same-frequency approximation gives the same verdicts as exact {measure} "
            "memorisation over the training strings left out.",
            approximations.minus_ceiling.of(
                measure=measure, quantity="score_at_optimum", statistic="same_verdict"
            ),
            at_least(ALMOST_ALL - 1),
        )
        for measure in ("counterfactual", "contextual")
    ),
    Claim(
        "approximation",
        "The same-frequency threshold is the threshold of exact contextual memorisation, over "
        "the training strings left out.",
        approximations.error_of_every_string.of(measure="contextual"),
        at_most(NEARLY_EQUAL),
    ),
    Claim(
        "approximation",
        "Contextual memorisation by the same-frequency approximation is no false alarm: strings "
        "never trained on rarely count as memorised.",
        approximations.false_alarms.of(measure="contextual", column="share_memorised_unseen"),
        at_most(RARE),
    ),
    Claim(
        "bayes",
        "A loss below the Bayes-optimal loss betrays memorisation: strings never trained on "
        "rarely fall below it.",
        approximations.false_alarms.of(measure="bayes", column="below_unseen"),
        at_most(RARE),
    ),
    Claim(
        "bayes",
        "Memorisation by the Bayes threshold is no false alarm: strings never trained on rarely "
        "count as memorised.",
        approximations.false_alarms.of(measure="bayes", column="share_memorised_unseen"),
        at_most(RARE),
    ),
    Claim(
        "bayes",
        "The language's exact probabilities give the same verdicts as exact contextual "
        "memorisation.",
        approximations.same_verdict.of(measure="bayes"),
        at_least(ALMOST_ALL),
    ),
    Claim(
        "bayes",
        "The Bayes-optimal loss is the threshold of exact contextual memorisation.",
        approximations.threshold_distance.of(measure="bayes"),
        at_most(NEARLY_EQUAL),
    ),
    Claim(
        "bayes",
        "The Bayes-optimal loss ranks the training strings as the optimal contextual loss does.",
        approximations.minus_ceiling.of(
            measure="bayes", quantity="threshold", statistic="correlation"
        ),
        at_least(SAME_ORDER - 1),
    ),
    Claim(
        "bayes",
        "The language's exact probabilities give the same verdicts as exact contextual "
        "memorisation over the training strings left out.",
        approximations.minus_ceiling.of(
            measure="bayes", quantity="score_at_optimum", statistic="same_verdict"
        ),
        at_least(ALMOST_ALL - 1),
    ),
    Claim(
        "bayes",
        "The Bayes-optimal loss is the threshold of exact contextual memorisation, over the "
        "training strings left out.",
        approximations.error_of_every_string.of(measure="bayes"),
        at_most(NEARLY_EQUAL),
    ),
]
