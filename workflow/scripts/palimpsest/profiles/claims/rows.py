"""The claims on memorisation profiles.

The first five are findings of *Causal Estimation of Memorisation Profiles*, section 7. That the
estimators are unbiased is proved in its section 4 under assumptions, which random macro-batches
fulfil here by construction; so their bias is in the report, and no claim. That difference-in-
differences has the lower variance is proved in appendix A, and measured here by training again. The
assumptions leave out that training on some strings changes the predictions of others, so two
kinds of truth are compared (`palimpsest.profiles.truth`). The claims on other notions ask what its
section 5 doubts. Those on several panels are findings of its section 7, on one training of each
model. Those on placebos and on the specific effect are Palimpsest's own.
"""

from palimpsest.claims import Claim, above, below, between
from palimpsest.profiles import effects, kinds
from palimpsest.profiles.claims import claim_statistics as statistics
from palimpsest.profiles.claims import panel_statistics
from palimpsest.profiles.kinds import DIFFERENCE, DIFFERENCE_IN_DIFFERENCES, SPECIFIC, TOTAL

QUESTIONS = {
    "profile_size": "Do larger models memorise more of what they see once?",
    "profile_order": "What does memorisation of a string depend on?",
    "profile_estimators": "Does one run tell what retraining would?",
    "profile_notions": "Do other definitions of memorisation agree with training again?",
    "profile_dilution": "Does more data dilute memorisation, and do early strings fade?",
    "profile_panels": "Do the panels of several models show what the paper saw?",
    "profile_placebos": "Do the estimators find anything where there is nothing?",
}
NOTIONS = {
    DIFFERENCE_IN_DIFFERENCES: "Difference-in-differences",
    DIFFERENCE: "The difference of means",
    kinds.ARCHITECTURAL: "Architectural memorisation",
    kinds.INFLUENCE: "An influence function",
    kinds.REMOVAL: "An influence function by plain removal",
}
# Pearson: below it, less than a quarter of the variance of one profile is in the other
PREDICTS = 0.5
# The largest share of an effect that counts as none
NO_SHARE = 0.1

CLAIMS = [
    Claim(
        "profile_size",
        "Larger models memorise strings more strongly just after training on them.",
        statistics.stronger,
        above(0),
    ),
    Claim(
        "profile_size",
        "Memorisation persists more in larger models.",
        statistics.more_persistent,
        above(0),
    ),
    Claim(
        "profile_order",
        "Memorisation just after training follows the learning rate.",
        statistics.follows_rate,
        above(0),
        on_request=True,
    ),
    Claim(
        "profile_order",
        "Just after training on them, strings are memorised more if they are seen early.",
        statistics.early_effects,
        below(0),
    ),
    Claim(
        "profile_estimators",
        "The log-likelihood shows more effects than the token accuracy.",
        statistics.finer_outcome,
        above(0),
    ),
    Claim(
        "profile_order",
        "At the end of training, strings that were seen late are memorised more.",
        statistics.recency,
        above(0),
    ),
    Claim(
        "profile_size",
        "The profile of the smaller model predicts that of the larger one.",
        statistics.predicts.of(least=PREDICTS),
        above(0),
    ),
    Claim(
        "profile_placebos",
        "The profile of the smaller model predicts that of the larger one better than where "
        "nothing is memorised.",
        statistics.predicts_more_than_nothing,
        above(0),
    ),
    *(
        Claim(
            "profile_estimators",
            f"Difference-in-differences has smaller errors than the difference, for the {truth} "
            "effect.",
            statistics.error_ratio.of(truth=truth),
            below(1),
        )
        for truth in (SPECIFIC, TOTAL)
    ),
    Claim(
        "profile_estimators",
        "One run does not show how a macro-batch changes the model as a whole.",
        statistics.spread_of_general_effect,
        above(1),
        # The error against the total effect has the general effect in addition.
        by_construction=True,
    ),
    *(
        Claim(
            "profile_notions",
            f"{name} tells which macro-batches a model has memorised.",
            statistics.follows_truth.of(notion=notion),
            above(0),
        )
        for notion, name in NOTIONS.items()
    ),
    Claim(
        "profile_notions",
        "An influence function is unbiased for the specific effect.",
        statistics.bias_of_influence.of(tolerated=NO_SHARE),
        above(0),
    ),
    Claim(
        "profile_notions",
        "An influence function by plain removal is unbiased for the total effect.",
        statistics.bias_of_removal.of(tolerated=NO_SHARE),
        above(0),
    ),
    Claim(
        "profile_notions",
        "More strings can be extracted if they were trained on.",
        statistics.extracted_beyond,
        above(0),
    ),
    Claim(
        "profile_dilution",
        "Strings are memorised less when they are diluted in more data.",
        statistics.of_factor.of(factor="size"),
        below(0),
    ),
    Claim(
        "profile_dilution",
        "Strings that are seen early are memorised less.",
        statistics.of_factor.of(factor="position"),
        above(0),
    ),
    *(
        Claim(
            "profile_panels",
            sentence,
            statistic,
            region,
            remark="one training of each model",
            on_request=True,
        )
        for sentence, statistic, region in (
            (
                "In panels, larger models memorise strings more strongly just after training.",
                panel_statistics.in_every_pair.of(part=effects.INSTANTANEOUS),
                above(0),
            ),
            (
                "In panels, memorisation persists more in larger models.",
                panel_statistics.in_every_pair.of(part=effects.PERSISTENT),
                above(0),
            ),
            (
                "In panels, strings are memorised more just after training if they are seen early.",
                panel_statistics.order.of(part=effects.INSTANTANEOUS_ORDER),
                below(0),
            ),
            (
                "In panels, strings that were seen late are memorised more at the end.",
                panel_statistics.order.of(part=effects.RESIDUAL_ORDER),
                above(0),
            ),
            (
                "In panels, memorisation falls to a plateau.",
                panel_statistics.falls_to_a_plateau.of(tolerated=NO_SHARE),
                above(0),
            ),
            (
                "In panels, no memorisation persists in the smallest model.",
                panel_statistics.of_the_smallest_model,
                between(-NO_SHARE, NO_SHARE),
            ),
            (
                "In panels, the profile of the smaller model predicts that of the larger one.",
                panel_statistics.predicts_in_pair,
                above(PREDICTS),
            ),
        )
    ),
    Claim(
        "profile_placebos",
        "Strings that are never trained on show no effect.",
        statistics.placebo.of(tolerated=NO_SHARE),
        above(0),
    ),
]
