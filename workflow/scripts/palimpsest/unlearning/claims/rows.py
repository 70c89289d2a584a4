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
Q2    several methods of the competition outperform others in F tests
Q2    ... and in final score                                    scores
Q3    methods differ in what they cost in utility               scores
Q3    Sebastian has the best F and the largest cost             no: a fact about one data set
Q4    the accuracy gap is no proxy of F                         metrics and scores
Q5    some methods of the competition are ahead on other data   transfer, if it is run
Q5    ... but not all                                           transfer, if it is run
A.8   methods have different trade-offs of utility with F       gap_summary and scores
A.8   F varies more over runs than accuracy does                no: the two have different units
A.9   some strings are hard for all methods                     epsilons
A.9   methods differ in which strings they find hard            epsilons
A.9   methods differ in the shape of their epsilons             no: no direction is claimed
A.10  Seif's repair phase helps Kookmin, and harms Fanchuan     scores, if the mixtures are run
A.10  ... and Seif is a little worse with a plain one           no: within the paper's intervals
A.11  the MIA gap ranks methods differently from F              metrics and scores
A.13  attackers overfit the models that they are fitted on      effects
A.13  ... which does not change the ranking                     effects
A.14  fewer models to judge an attacker: the same ranking       effects
A.15  the bootstrap approximates full                           scores, if both set-ups are run
A.15  ... and better, the larger its pool                       effects and scores, with full
A.15  more repetitions of the bootstrap do not help             no: shown by the effects
===== ========================================================= ===================================

The others are Palimpsest's own: that methods forget, that they fall short of retraining, that they
close the gap unevenly, that strings remain memorised, that forgetting trades against utility, that
models return to the original models' loss in fewer steps, that the share of the gap closed stands
in for F, that the erase phases of a method matter, and that light tuning helps.

A statistic has one value per seed, and its interval is over the seeds. Every seed has training
strings, a forget set and models of its own. `none` (the original models) and `retrain` (further
retrained models) are the two ends with which methods are compared; they are in no mean over methods
and in no pair of methods. A verdict is about these methods with these settings.

To add a claim, add one row to `CLAIMS`.
"""

from palimpsest.claims import Claim, above, at_least, at_most, below
from palimpsest.unlearning.claims import ablation_statistics as ablation
from palimpsest.unlearning.claims import claim_statistics as statistics
from palimpsest.unlearning.claims import hardness_statistics as hardness
from palimpsest.unlearning.claims import ranking_statistics as rankings
from palimpsest.unlearning.claims import side_statistics as sides
from palimpsest.unlearning.run.setups import BOOTSTRAP, REUSE_N_N

QUESTIONS = {
    "forgetting": "Do unlearning methods forget, and which of them forget more?",
    "utility": "What does forgetting cost on strings that are not to be forgotten?",
    "evaluation": "Does the answer depend on how forgetting is evaluated?",
    "hardness": "Are some strings harder to forget than others, whatever the method?",
    "metrics": "Do simpler metrics say the same as the forgetting quality?",
    "transfer": "Do methods carry over to another problem with little tuning?",
}

NEARLY_EQUAL = 0.1  # difference of shares

CLAIMS = [
    Claim(
        "forgetting",
        "Unlearning methods forget something.",
        statistics.forgets,
        above(0),
    ),
    Claim(
        "forgetting",
        "Every method forgets something, the weakest too.",
        statistics.forgotten,
        above(0),
    ),
    Claim(
        "forgetting",
        "Unlearning methods fall short of retraining.",
        statistics.short_of_retraining,
        above(0),
    ),
    Claim(
        "forgetting",
        "An attacker that sees all forget strings at once tells unlearned from retrained models.",
        statistics.joint_attack_error,
        above(0),
    ),
    Claim(
        "forgetting",
        "Several methods of the competition forget more than every method of the literature.",
        sides.competition_forgets_more,
        above(0),
    ),
    Claim(
        "forgetting",
        "Several methods of the competition have better final scores than every method of the "
        "literature.",
        sides.competition_scores_more.of(score="final_score"),
        above(0),
    ),
    Claim(
        "forgetting",
        "Several methods of the competition have better final scores than every method of the "
        "literature, by probability.",
        sides.competition_scores_more.of(score="final_score_probability"),
        above(0),
    ),
    Claim(
        "forgetting",
        "The erase phases of a method matter: with them, its forgetting quality is better than "
        "that of its repair phases alone.",
        ablation.erasing_adds_quality,
        above(0),
    ),
    Claim(
        "forgetting",
        "The erase phases of a method matter: with them, it closes more of the gap on forget "
        "strings alone than its repair phases do.",
        ablation.erasing_adds_share,
        above(0),
    ),
    Claim(
        "forgetting",
        "Kookmin forgets more with the repair phase of Seif than with its own.",
        statistics.repaired_by_another.of(method="kookmin", repair="seif"),
        above(0),
    ),
    Claim(
        "forgetting",
        "Fanchuan forgets less with the repair phase of Seif than with its own.",
        statistics.repaired_by_another.of(method="fanchuan", repair="seif"),
        below(0),
    ),
    Claim(
        "forgetting",
        "Methods close the gap unevenly over the forget strings.",
        statistics.unevenness,
        above(0),
    ),
    Claim(
        "forgetting",
        "Forget strings are still memorised after unlearning.",
        statistics.still_memorised,
        above(0),
    ),
    Claim(
        "utility",
        "Methods differ in what they cost in utility.",
        statistics.costs_differ,
        above(0),
    ),
    Claim(
        "utility",
        "Forgetting trades against utility: methods that forget more cost more.",
        statistics.trade,
        above(0),
    ),
    Claim(
        "evaluation",
        "Repeating only the unlearning (reuse-n-n) gives nearly the same forgetting quality as "
        "training all models anew (full).",
        rankings.distance_from_full.of(setup=REUSE_N_N),
        at_most(NEARLY_EQUAL),
    ),
    Claim(
        "evaluation",
        "Repeating only the unlearning (reuse-n-n) ranks methods as training all models anew "
        "(full) does.",
        rankings.setup_ranks_as_full.of(setup=REUSE_N_N),
        at_least(-NEARLY_EQUAL),
    ),
    Claim(
        "evaluation",
        "Attackers that are judged on the models that they were fitted on find too much.",
        rankings.overfitted,
        above(0),
    ),
    Claim(
        "evaluation",
        "Judging attackers on the models that they were fitted on does not change the ranking of "
        "methods.",
        rankings.attackers_rank_alike,
        at_least(-NEARLY_EQUAL),
    ),
    Claim(
        "evaluation",
        "Judging attackers on fewer models does not change the ranking of methods.",
        rankings.fewer_models_rank_alike,
        at_least(-NEARLY_EQUAL),
    ),
    Claim(
        "evaluation",
        "Drawing models from a pool (bootstrap) gives nearly the same forgetting quality as "
        "training all models anew (full).",
        rankings.distance_from_full.of(setup=BOOTSTRAP),
        at_most(NEARLY_EQUAL),
    ),
    Claim(
        "evaluation",
        "The larger the pool of the bootstrap, the nearer it is to training all models anew "
        "(full).",
        rankings.larger_pools_are_nearer,
        above(0),
    ),
    Claim(
        "hardness",
        "Some strings are hard to forget for all methods.",
        hardness.hard_for_all,
        above(0),
    ),
    Claim(
        "hardness",
        "Methods differ in which strings they find hard to forget.",
        hardness.hard_for_some,
        above(0),
    ),
    Claim(
        "metrics",
        "The accuracy gap is a poor proxy of the forgetting quality.",
        rankings.gap_ranks_as_quality.of(gap="accuracy gap"),
        below(-NEARLY_EQUAL),
    ),
    Claim(
        "metrics",
        "The membership inference gap ranks methods differently from the forgetting quality.",
        rankings.gap_ranks_as_quality.of(gap="membership inference gap"),
        below(-NEARLY_EQUAL),
    ),
    Claim(
        "metrics",
        "The share of the gap closed ranks methods as the forgetting quality does.",
        rankings.share_ranks_as_quality,
        at_least(-NEARLY_EQUAL),
    ),
    Claim(
        "metrics",
        "Unlearned models return to the original models' loss on the forget strings in fewer steps "
        "than retrained models do.",
        statistics.relearned_faster,
        above(0),
    ),
    Claim(
        "transfer",
        "On another problem, with light tuning, some method of the competition scores higher than "
        "every method of the literature.",
        sides.one_transfers,
        above(0),
    ),
    Claim(
        "transfer",
        "On another problem, with light tuning, not every method of the competition does.",
        sides.all_transfer,
        below(0),
    ),
    Claim(
        "transfer",
        "On another problem, light tuning of the learning rates improves the scores of methods.",
        sides.light_tuning_helps,
        above(0),
    ),
]
