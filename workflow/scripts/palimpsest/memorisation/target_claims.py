"""The claims on target strings: when memorisation starts, and how large it becomes (RQ1, RQ2).

With few targets, rank associations have few values, and seeds often agree by chance. For example,
if three targets start in random order, one model has D = 1, 1/3, -1/3 or -1 with probabilities 1/6,
1/3, 1/3 and 1/6. So three seeds give the same value in 2 (1/6)³ + 2 (1/3)³ = 8.3 % of cases. An
interval without width is therefore no verdict. The notes of the claims say how likely this is with
the targets and the seeds of the study.
"""

from palimpsest.claims import (
    CONSTANT,
    DIFFERENCE,
    NOT_NEGATIVE,
    RETRAINING,
    SHARE,
    Claim,
    above,
    at_least,
    at_most,
    below,
)
from palimpsest.memorisation.claim_statistics import (
    contextual_above_counterfactual,
    counterfactual_overestimates,
    equal_by_chance,
    estimator,
    frequent_earlier,
    frequent_threshold,
    loss_above_without,
    middle_threshold_from_test_loss,
    order_disagreement,
    score_increases,
    score_range,
    scores_differ,
    start_disagreement,
    starts_later,
)
from palimpsest.memorisation.margins import NEARLY_EQUAL, RARE, STRONG, USUALLY

EARLY_START = "rank association (Somers' D) of occurrence frequency with early start"

CLAIMS = [
    Claim(
        "RQ1",
        "The more frequent a string, the earlier it is memorised by recollection.",
        "disagreement",
        f"{EARLY_START}, recollection; strings that never start rank last",
        above(0),
        estimator(frequent_earlier, remark=equal_by_chance, measure="recollection"),
        limits=DIFFERENCE,
        evidence=(CONSTANT,),
    ),
    Claim(
        "RQ1",
        "Recollection-based memorisation is strongly correlated with occurrence frequency.",
        "disagreement",
        f"{EARLY_START}, recollection",
        at_least(STRONG),
        estimator(frequent_earlier, remark=equal_by_chance, measure="recollection"),
        limits=DIFFERENCE,
        evidence=(CONSTANT,),
    ),
    Claim(
        "RQ1",
        "The correlation of frequency with the order of memorisation is the same for other "
        "recollection measures (here by accuracy).",
        "disagreement",
        f"{EARLY_START}, recollection by accuracy",
        above(0),
        estimator(frequent_earlier, remark=equal_by_chance, measure="recollection_accuracy"),
        limits=DIFFERENCE,
        evidence=(CONSTANT,),
    ),
    Claim(
        "RQ1",
        "The order of counterfactual memorisation is uncorrelated, at times inversely correlated, "
        "with frequency.",
        "disagreement",
        f"{EARLY_START}, counterfactual",
        below(STRONG),
        estimator(frequent_earlier, remark=equal_by_chance, measure="counterfactual"),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ1",
        "The order of contextual memorisation is uncorrelated, at times inversely correlated, "
        "with frequency.",
        "disagreement",
        f"{EARLY_START}, contextual",
        below(STRONG),
        estimator(frequent_earlier, remark=equal_by_chance, measure="contextual"),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ1",
        "More frequent strings have a lower optimal contextual loss.",
        "disagreement",
        "rank association (Somers' D) of occurrence frequency with optimal contextual loss",
        below(0),
        estimator(frequent_threshold, remark=equal_by_chance),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ1",
        "The optimal contextual loss of the mid-frequent string is close to the test loss.",
        "disagreement",
        "relative distance of the optimal contextual loss of the middle target from the lowest "
        "test loss",
        at_most(NEARLY_EQUAL),
        estimator(middle_threshold_from_test_loss),
        limits=NOT_NEGATIVE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ1",
        "Measures disagree on the start of memorisation of the same strings.",
        "disagreement",
        "share of targets whose start differs between recollection and contextual memorisation",
        above(RARE),
        estimator(start_disagreement, one="recollection", other="contextual"),
        limits=SHARE,
        evidence=(
            CONSTANT,
            RETRAINING,
        ),
    ),
    Claim(
        "RQ1",
        "Measures disagree on the order in which strings are memorised.",
        "disagreement",
        "share of pairs of targets ordered differently by recollection and contextual memorisation",
        above(RARE),
        estimator(order_disagreement, one="recollection", other="contextual"),
        limits=SHARE,
        evidence=(
            CONSTANT,
            RETRAINING,
        ),
    ),
    Claim(
        "RQ1",
        "Counterfactual memorisation starts no later than contextual memorisation (Lemma 1).",
        "disagreement",
        "share of targets whose counterfactual start is later; 0 by construction, because both "
        "starts follow one rule and the contextual threshold is never above the counterfactual "
        "threshold",
        at_most(0),
        estimator(starts_later, one="counterfactual", other="contextual"),
        by_construction=True,
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ1",
        "Counterfactual memorisation precedes contextual memorisation.",
        "disagreement",
        "share of targets whose contextual start is strictly later than the counterfactual one",
        at_least(USUALLY),
        estimator(starts_later, one="contextual", other="counterfactual"),
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ1",
        "The loss of a string in training is not above its counterfactual loss (the assumption "
        "in the proof of Lemma 1).",
        "disagreement",
        "share of (target, epoch) pairs whose loss is above the loss without the target",
        at_most(RARE),
        estimator(loss_above_without),
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ2",
        "The contextual score is a lower bound of the counterfactual score (Lemma 1).",
        "disagreement",
        "largest excess of the contextual score over the counterfactual one, all targets and "
        "epochs; 0 by construction",
        at_most(0),
        estimator(contextual_above_counterfactual),
        by_construction=True,
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ2",
        "Counterfactual memorisation often overestimates contextual memorisation.",
        "disagreement",
        "share of counterfactually memorised (target, epoch) pairs whose contextual score is "
        "lower; nearly 1 by construction, because the two thresholds of a target are equal only at "
        "the epoch of its lowest loss without it",
        at_least(USUALLY),
        estimator(counterfactual_overestimates),
        by_construction=True,
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ2",
        "The counterfactual score usually increases with epochs.",
        "disagreement",
        "rank association (Somers' D) of the epoch with the score from the start on, mean over the "
        "targets, counterfactual",
        above(0),
        estimator(score_increases, measure="counterfactual"),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ2",
        "The contextual score usually increases with epochs.",
        "disagreement",
        "rank association (Somers' D) of the epoch with the score from the start on, mean over the "
        "targets, contextual",
        above(0),
        estimator(score_increases, measure="contextual"),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ2",
        "There is no substantial difference in counterfactual score among strings of varying "
        "frequency.",
        "disagreement",
        "largest minus smallest score of the targets at the last epoch, counterfactual",
        at_most(NEARLY_EQUAL),
        estimator(score_range, measure="counterfactual"),
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ2",
        "There is no substantial difference in contextual score among strings of varying "
        "frequency.",
        "disagreement",
        "largest minus smallest score of the targets at the last epoch, contextual",
        at_most(NEARLY_EQUAL),
        estimator(score_range, measure="contextual"),
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ2",
        "Different measures agree on the memorisation score.",
        "disagreement",
        "mean distance between the counterfactual and the contextual score at the last epoch",
        at_most(NEARLY_EQUAL),
        estimator(scores_differ),
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
]
