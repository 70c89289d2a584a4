"""The claims of the paper on unlearning, each with the statistic that tests the claim.

The table lists every finding of *Are we making progress in unlearning?*, section 6 and appendices,
and whether it can be tested here. F is the forgetting quality.

===== ========================================================= ===================================
where finding                                                   tested here with
===== ========================================================= ===================================
Q1    reuse-n-n gives nearly the F of full                      scores, if both set-ups are run
Q1    the ranking of methods is the same under both             scores, if both set-ups are run
Q1    reuse-n-1 underestimates Fanchuan                         no: it has one original model, and
                                                                luck with that one is not known
Q2    top methods of the competition outperform others in F     effects (held-out attackers)
Q2    ... and in final score                                    scores, if full is run
Q3    methods differ in what they cost in utility               scores, if full is run
Q3    Sebastian has the best F and the largest cost             no: a fact about one data set
Q4    the accuracy gap is no proxy of F                         metrics and effects
Q5    few methods transfer to other data with little tuning     no: settings are tuned on this data
A.8   F varies more over runs than accuracy does                no: the two have different units
A.9   some strings are hard for all methods                     epsilons
A.9   methods differ in which strings they find hard            epsilons
A.9   methods differ in the shape of their epsilons             no: no direction is claimed
A.10  a repair phase of another method can help                 no: the paper tried two mixtures
A.11  the MIA gap ranks methods differently from F              metrics and effects
A.13  attackers overfit the models that they are fitted on      effects
A.13  ... which does not change the ranking                     effects
A.14  fewer models to judge an attacker: the same ranking       effects
A.15  the bootstrap approximates full                           no: its bias is known by theory, and
                                                                it needs pools that few can afford
===== ========================================================= ===================================

Two claims are Palimpsest's own, and the other claims build on them: that methods forget, and that
they fall short of retraining. `none` (the original models) and `retrain` (further retrained models)
are the two ends with which methods are compared. The ends are not in means over methods or in pairs
of methods.

A verdict is about these methods with these settings, on this forget set. An interval over splits of
the models does not cover other forget sets. An interval over forget strings does not cover other
trainings.
"""

from palimpsest.claims import (
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
from palimpsest.unlearning.claim_statistics import (
    above_doing_nothing,
    attackers_order_alike,
    competition_forgets_more,
    competition_scores_more,
    distance_from_full,
    fewer_models_order_alike,
    hard_for_all,
    hard_for_some,
    ordered_as_by_quality,
    over_repetitions,
    over_splits,
    over_strings,
    overfitted,
    pairs_over_models,
    pairs_over_repetitions,
    pairs_over_splits,
    setup_order_alike,
    short_of_retraining,
    utility_differs,
)
from palimpsest.unlearning.setups import REUSE_N_N

QUESTIONS = {
    "forgetting": "Do unlearning methods forget, and which of them forget more?",
    "utility": "What does forgetting cost on strings that are not to be forgotten?",
    "evaluation": "Does the answer depend on how forgetting is evaluated?",
    "hardness": "Are some strings harder to forget than others, whatever the method?",
    "metrics": "Do simpler metrics say the same as the forgetting quality?",
}

ALMOST_ALL = 0.9  # share of pairs of methods in the same order at which a ranking is the same
NEARLY_EQUAL = 0.1  # difference of shares
USUALLY = 0.5  # share of pairs
POORLY = 0.75  # share of pairs in the same order, which is a rank correlation (Kendall) of 0.5

CLAIMS = [
    Claim(
        "forgetting",
        "Unlearning methods forget something.",
        "unlearning_effects",
        "forgetting quality under held-out attackers, mean over the methods, minus that of the "
        "original models",
        above(0),
        over_splits(above_doing_nothing),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "forgetting",
        "Unlearning methods fall short of retraining.",
        "unlearning_effects",
        "forgetting quality under held-out attackers of further retrained models, minus the mean "
        "over the methods",
        above(0),
        over_splits(short_of_retraining),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "forgetting",
        "The competition's methods forget more than those from the literature.",
        "unlearning_effects",
        "share of the pairs of a method of the competition and a method of the literature in "
        "which the competition's method has the higher forgetting quality under held-out attackers",
        above(USUALLY),
        pairs_over_splits(competition_forgets_more),
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "forgetting",
        "The competition's methods have better final scores than those from the literature.",
        "unlearning_scores",
        "share of the pairs of a method of the competition and a method of the literature in "
        "which the competition's method has the higher final score, set-up full",
        above(USUALLY),
        pairs_over_repetitions(competition_scores_more),
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "utility",
        "Methods differ in what they cost in utility.",
        "unlearning_scores",
        "largest difference in utility between two methods, set-up full; utility is the accuracy "
        "on retained strings times the accuracy on test strings, each divided by the accuracy of "
        "retrained models",
        above(NEARLY_EQUAL),
        over_repetitions(utility_differs),
        limits=NOT_NEGATIVE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "evaluation",
        "Repeating only the unlearning (reuse-n-n) gives nearly the same forgetting quality as "
        "training all models anew (full).",
        "unlearning_scores",
        "largest distance between a method's forgetting quality under reuse-n-n and under full, "
        "as a share of the distance between doing nothing and retraining under full",
        at_most(NEARLY_EQUAL),
        over_repetitions(distance_from_full, setup=REUSE_N_N),
        limits=NOT_NEGATIVE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "evaluation",
        "Repeating only the unlearning (reuse-n-n) ranks methods as training all models anew "
        "(full) does.",
        "unlearning_scores",
        "share of the pairs of methods that both set-ups order alike by forgetting quality",
        at_least(ALMOST_ALL),
        pairs_over_repetitions(setup_order_alike, setup=REUSE_N_N),
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "evaluation",
        "Attackers that are judged on the models that they were fitted on find too much.",
        "unlearning_effects",
        "forgetting quality under held-out attackers minus that under attackers judged on the "
        "models that they were fitted on, mean over the methods",
        above(0),
        over_splits(overfitted),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "evaluation",
        "Judging attackers on the models that they were fitted on does not change the ranking of "
        "methods.",
        "unlearning_effects",
        "share of the pairs of methods that both kinds of attackers order alike by forgetting "
        "quality",
        at_least(ALMOST_ALL),
        pairs_over_splits(attackers_order_alike),
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "evaluation",
        "Judging attackers on fewer models does not change the ranking of methods.",
        "unlearning_effects",
        "share of the pairs of methods whose order by forgetting quality is the same with the "
        "fewest and with the most models, held-out attackers",
        at_least(ALMOST_ALL),
        pairs_over_splits(fewer_models_order_alike),
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "hardness",
        "Some strings are hard to forget for all methods.",
        "epsilons",
        "rank agreement (gamma) over the forget strings between the epsilons of two methods in "
        "different repetitions, minus that between a method and further retrained models",
        above(0),
        over_strings(hard_for_all),
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
        over_strings(hard_for_some),
        limits=(-2, 2),
        evidence=(RETRAINING,),
    ),
    Claim(
        "metrics",
        "The accuracy gap is a poor proxy of the forgetting quality.",
        "unlearning_metrics unlearning_effects",
        "share of the pairs of methods in which the method with the smaller accuracy gap has the "
        "higher forgetting quality under held-out attackers",
        below(POORLY),
        pairs_over_models(ordered_as_by_quality, metric="accuracy_gap"),
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "metrics",
        "The membership inference gap ranks methods differently from the forgetting quality.",
        "unlearning_metrics unlearning_effects",
        "share of the pairs of methods in which the method with the smaller gap has the higher "
        "forgetting quality under held-out attackers",
        below(1),
        pairs_over_models(ordered_as_by_quality, metric="mia_gap"),
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
]
