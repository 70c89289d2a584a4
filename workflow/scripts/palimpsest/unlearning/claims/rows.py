"""The claims on unlearning, each with the statistic that tests the claim.

The table lists every finding of *Are we making progress in unlearning?*, section 6 and appendices,
and whether it can be tested here. F is the forgetting quality.

===== ========================================================= ===================================
where finding                                                   tested here with
===== ========================================================= ===================================
Q1    reuse-n-n gives nearly the F of full                      scores, if both set-ups are run
Q1    the ranking of methods is the same under both             scores, if both set-ups are run
Q1    reuse-n-1 underestimates Fanchuan                         no: it has one original model, and
                                                                luck with that one is not known
Q2    top methods of the competition outperform others in F     tests
Q2    ... and in final score                                    scores
Q3    methods differ in what they cost in utility               scores
Q3    Sebastian has the best F and the largest cost             no: a fact about one data set
Q4    the accuracy gap is no proxy of F                         metrics and scores
Q5    few methods transfer to other data with little tuning     no: methods are tuned on other
                                                                problems of the same kind
A.8   methods have different trade-offs of utility with F       gap_summary and scores
A.8   F varies more over runs than accuracy does                no: the two have different units
A.9   some strings are hard for all methods                     epsilons
A.9   methods differ in which strings they find hard            epsilons
A.9   methods differ in the shape of their epsilons             no: no direction is claimed
A.10  a repair phase of another method can help                 no: the paper tried two mixtures
A.11  the MIA gap ranks methods differently from F              metrics and scores
A.13  attackers overfit the models that they are fitted on      effects
A.13  ... which does not change the ranking                     effects
A.14  fewer models to judge an attacker: the same ranking       effects
A.15  the bootstrap approximates full                           no: its bias is known by theory, and
                                                                it needs pools that few can afford
===== ========================================================= ===================================

The others are Palimpsest's own: that methods forget, that they fall short of retraining, that they
close the gap unevenly, that strings remain memorised, that forgetting trades against utility, that
models return to the original models' loss in fewer steps, and that the share of the gap closed
stands in for F.

A statistic has one value per seed, and its interval is over the seeds. Every seed has training
strings, a forget set and models of its own. `none` (the original models) and `retrain` (further
retrained models) are the two ends with which methods are compared; they are in no mean over methods
and in no pair of methods. A verdict is about these methods with these settings.

To add a claim, add one `Claim` to `CLAIMS`.
"""

from functools import partial

from palimpsest.claims import (
    ANY_NUMBER,
    DIFFERENCE,
    NOT_NEGATIVE,
    RETRAINING,
    Claim,
    above,
    at_least,
    at_most,
    below,
)
from palimpsest.unlearning.claims.claim_statistics import (
    competition_forgets_more,
    competition_scores_more,
    costs_differ,
    estimator,
    forgets,
    forgotten,
    lowest_of_methods,
    memorised,
    relearned_faster,
    share_told_jointly,
    short_of_retraining,
    told_jointly,
    trade,
    unevenness,
    within_in_every_method,
)
from palimpsest.unlearning.claims.hardness_statistics import (
    estimator_under_full,
    hard_for_all,
    hard_for_some,
)
from palimpsest.unlearning.claims.ranking_statistics import (
    attackers_rank_alike,
    distance_from_full,
    fewer_models_rank_alike,
    gap_ranks_as_quality,
    overfitted,
    ranking_estimator,
    setup_ranks_as_full,
    share_ranks_as_quality,
)
from palimpsest.unlearning.run.setups import REUSE_N_N

QUESTIONS = {
    "forgetting": "Do unlearning methods forget, and which of them forget more?",
    "utility": "What does forgetting cost on strings that are not to be forgotten?",
    "evaluation": "Does the answer depend on how forgetting is evaluated?",
    "hardness": "Are some strings harder to forget than others, whatever the method?",
    "metrics": "Do simpler metrics say the same as the forgetting quality?",
}

NEARLY_EQUAL = 0.1  # difference of shares

SAME_ORDER = "share of the pairs of methods"
CEILING = "minus the share on which two repetitions of the latter agree"

CLAIMS = [
    Claim(
        "forgetting",
        "Unlearning methods forget something.",
        "unlearning_gap_summary",
        "share of the gap to retraining that a method closes on the forget strings, minus the "
        "larger of those on placebos and on retained strings (at most 1), mean over the methods",
        above(0),
        estimator(forgets),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "forgetting",
        "Every method forgets something, the weakest too.",
        "unlearning_gap_summary",
        "share of the gap to retraining that a method closes on the forget strings, minus the "
        "larger of those on placebos and on retained strings (at most 1), of the method with the "
        "lowest",
        above(0),
        lowest_of_methods(forgotten),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "forgetting",
        "Unlearning methods fall short of retraining.",
        "unlearning_tests",
        "forgetting quality of relabelled models minus that of the method's, mean over the methods",
        above(0),
        estimator(short_of_retraining),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "forgetting",
        "An attacker that sees all forget strings at once tells unlearned from retrained models.",
        "unlearning_tests",
        "the joint attacker's share of errors on further retrained models, minus the mean over the "
        "methods",
        above(0),
        estimator(told_jointly, {"share of the methods that are told": share_told_jointly}),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "forgetting",
        "The competition's methods forget more than those from the literature.",
        "unlearning_tests",
        "mean forgetting quality of the competition's methods minus that of the literature's",
        above(0),
        estimator(competition_forgets_more),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "forgetting",
        "The competition's methods have better final scores than those from the literature.",
        "unlearning_scores",
        "mean final score of the competition's methods minus that of the literature's",
        above(0),
        estimator(competition_scores_more, score="final_score"),
        limits=ANY_NUMBER,
        evidence=(RETRAINING,),
    ),
    Claim(
        "forgetting",
        "The competition's methods have better final scores than those from the literature, by "
        "probability.",
        "unlearning_scores",
        "mean final score of the competition's methods minus that of the literature's; utility is "
        "the mean probability of tokens in the place of the share of right tokens",
        above(0),
        estimator(competition_scores_more, score="final_score_probability"),
        limits=ANY_NUMBER,
        evidence=(RETRAINING,),
    ),
    Claim(
        "forgetting",
        "Methods close the gap unevenly over the forget strings.",
        "unlearning_gaps",
        "middle half of the strings' shares of the gap closed, from its lowest to its highest, "
        "minus that of further retrained models with the method's uncertainty; mean over the "
        "methods",
        above(0),
        estimator(unevenness),
        limits=ANY_NUMBER,
        evidence=(RETRAINING,),
    ),
    Claim(
        "forgetting",
        "Forget strings are still memorised after unlearning.",
        "unlearning_memorisation",
        "share of the unlearned models that memorise a forget string counterfactually, minus that "
        "of retrained models, minus the same difference for placebos; mean over the methods",
        above(0),
        estimator(
            memorised,
            {"the same before unlearning": partial(memorised, when="before")},
            when="after",
        ),
        limits=(-2, 2),
        evidence=(RETRAINING,),
    ),
    Claim(
        "utility",
        "Methods differ in what they cost in utility.",
        "unlearning_scores",
        "difference in utility between the two methods that differ most on another seed; "
        "utility is the mean probability of tokens on retained strings times that on test strings, "
        "each divided by that of retrained models",
        above(0),
        estimator(costs_differ),
        limits=ANY_NUMBER,
        evidence=(RETRAINING,),
    ),
    Claim(
        "utility",
        "Forgetting trades against utility: methods that forget more cost more.",
        "unlearning_gap_summary unlearning_scores",
        "rank association over the methods of the share of the gap closed (forget strings minus "
        "the larger of placebos and retained strings) with the loss of utility",
        above(0),
        estimator(trade),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "evaluation",
        "Repeating only the unlearning (reuse-n-n) gives nearly the same forgetting quality as "
        "training all models anew (full).",
        "unlearning_scores",
        "largest distance over the methods between forgetting quality under reuse-n-n and under "
        "full, as a share of the distance between doing nothing and retraining under full",
        at_most(NEARLY_EQUAL),
        within_in_every_method(distance_from_full, setup=REUSE_N_N),
        limits=NOT_NEGATIVE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "evaluation",
        "Repeating only the unlearning (reuse-n-n) ranks methods as training all models anew "
        "(full) does.",
        "unlearning_scores",
        f"{SAME_ORDER} that reuse-n-n orders by forgetting quality as full does, {CEILING}",
        at_least(-NEARLY_EQUAL),
        ranking_estimator(setup_ranks_as_full, setup=REUSE_N_N),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "evaluation",
        "Attackers that are judged on the models that they were fitted on find too much.",
        "unlearning_effects",
        "forgetting quality under held-out attackers minus that under attackers judged on the "
        "models that they were fitted on, mean over the methods",
        above(0),
        estimator(overfitted),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "evaluation",
        "Judging attackers on the models that they were fitted on does not change the ranking of "
        "methods.",
        "unlearning_effects",
        f"{SAME_ORDER} that these attackers order by forgetting quality as held-out attackers do, "
        f"{CEILING}",
        at_least(-NEARLY_EQUAL),
        ranking_estimator(attackers_rank_alike),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "evaluation",
        "Judging attackers on fewer models does not change the ranking of methods.",
        "unlearning_effects",
        f"{SAME_ORDER} that the fewest models to judge held-out attackers order by forgetting "
        f"quality as the most models do, {CEILING}",
        at_least(-NEARLY_EQUAL),
        ranking_estimator(fewer_models_rank_alike),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "hardness",
        "Some strings are hard to forget for all methods.",
        "epsilons",
        "rank agreement (gamma) over the forget strings between the epsilons of two methods in "
        "different repetitions, minus that between a method and further retrained models; there is "
        "an interval under the set-up full only",
        above(0),
        estimator_under_full(hard_for_all),
        limits=(-2, 2),
        evidence=(RETRAINING,),
    ),
    Claim(
        "hardness",
        "Methods differ in which strings they find hard to forget.",
        "epsilons",
        "rank agreement (gamma) over the forget strings between the epsilons of a method in two "
        "repetitions, minus that between two methods in different repetitions",
        above(0),
        estimator(hard_for_some),
        limits=(-2, 2),
        evidence=(RETRAINING,),
    ),
    Claim(
        "metrics",
        "The accuracy gap is a poor proxy of the forgetting quality.",
        "unlearning_metrics unlearning_scores",
        f"{SAME_ORDER} that the accuracy gap orders as the forgetting quality does, {CEILING}",
        below(-NEARLY_EQUAL),
        ranking_estimator(gap_ranks_as_quality, metric="accuracy_gap"),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "metrics",
        "The membership inference gap ranks methods differently from the forgetting quality.",
        "unlearning_metrics unlearning_scores",
        f"{SAME_ORDER} that the membership inference gap orders as the forgetting quality does, "
        f"{CEILING}",
        below(-NEARLY_EQUAL),
        ranking_estimator(gap_ranks_as_quality, metric="mia_gap"),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "metrics",
        "The share of the gap closed ranks methods as the forgetting quality does.",
        "unlearning_gap_summary unlearning_scores",
        f"{SAME_ORDER} that the distance of the share from 1 orders as the forgetting quality "
        f"does, {CEILING}",
        at_least(-NEARLY_EQUAL),
        ranking_estimator(share_ranks_as_quality),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "metrics",
        "Unlearned models return to the original models' loss on the forget strings in fewer steps "
        "than retrained models do.",
        "unlearning_metrics",
        "steps of training on the forget strings in which retrained models reach the original "
        "models' loss on them, minus those of unlearned models, mean over the methods",
        above(0),
        estimator(relearned_faster),
        limits=ANY_NUMBER,
        evidence=(RETRAINING,),
    ),
]
