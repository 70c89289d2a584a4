"""The claims on training-data density, each with the statistic that tests the claim.

The claims on leakage, on the bandwidth and on the search for neighbours are those of *LMD3:
Language Model Data Density Dependence*, sections 6.1 and 6.2 and appendices A.5, A.6 and A.10. The
claims on the language's exact probabilities and on memorisation are Palimpsest's own.

All test strings of a seed are random samples of one distribution, and all runs of a seed have the
same ones. So what leakage does to a string is a difference of two differences: between leaked
strings and those that are never leaked, and between two runs. The first removes what a run does to
all strings, the second how hard the strings are. Placebos are treated in the same way as leaked
strings, and their statistic is in the marks.

A statistic has one value per seed, and its interval is over the seeds. Every seed draws its strings
and trains its models independently; in a language with few strings, seeds can draw the same
strings. The claims on regressions are different: one regression is over all seeds, and its interval
is that of a permutation test, which exchanges strings. Regressions of texts have the interval of
Student's t over the queries.
"""

from collections.abc import Callable
from functools import partial

import pandas as pd

from palimpsest.claims import (
    ANY_NUMBER,
    DIFFERENCE,
    LANGUAGE,
    NO_THRESHOLD,
    SHARE,
    Claim,
    above,
    at_least,
    below,
    between,
)
from palimpsest.density.associations import spearman_given
from palimpsest.density.earlier import MEASURES, earlier
from palimpsest.density.kernel import preferred_kernel
from palimpsest.density.kinds import (
    ACCURACY,
    HIDDEN,
    LEAK_CONDITION,
    LEAKAGE,
    LEAKED,
    LEFT_OUT,
    MEMORISED,
    NEVER,
    NGRAMS,
    ON_BOTH,
    ON_DENSITY,
    ON_DISTANCE,
    ON_RANDOM,
    PERPLEXITY,
    PLACEBO,
    REGRESSIONS,
    RETRIEVAL,
    SEPARATION,
    TEXT_REGRESSIONS,
    TRUTH,
    UNSEEN,
)
from palimpsest.density.leakage_tables import once
from palimpsest.density.regressed import of_text, regressed, regressed_on_density
from palimpsest.density.regressions import DENSITY, DISTANCE, EXACT, LINEAR
from palimpsest.estimates import DROPPED, Estimate, interval_note, over_seeds
from palimpsest.number_format import number
from palimpsest.statistics import student

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
RECALL, RETRIEVED = 0.9, 10
# The largest difference of two recalls that counts as none
TOLERATED = 0.05
NO_COPY, ONE_COPY = 0, 1
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
# The paper's claims on regressions: sentence, unit of the estimate, region, and which term of which
# regression on raw density
REGRESSED = (
    (
        "Perplexity falls as the density {} rises.",
        "perplexity",
        below(0),
        {"outcome": PERPLEXITY, "regression": ON_DENSITY, "term": DENSITY},
    ),
    (
        "Accuracy rises with the density {}.",
        "log odds",
        above(0),
        {"outcome": ACCURACY, "regression": ON_DENSITY, "term": DENSITY},
    ),
    (
        "Accuracy rises with the density {}, at equal distance to the nearest training strings.",
        "log odds",
        above(0),
        {"outcome": ACCURACY, "regression": ON_BOTH, "term": DENSITY},
    ),
    (
        "Accuracy falls with the distance to the nearest training strings, at equal density {}.",
        "log odds",
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
    ),
    (
        "The perplexity of a text rises with the density of a random sample of the corpus.",
        above(0),
        ON_RANDOM,
        DENSITY,
    ),
    (
        "The perplexity of a text rises with the distance to the nearest texts in the corpus.",
        above(0),
        ON_DISTANCE,
        DISTANCE,
    ),
)
# The same on the leak condition: sentence, unit, region and term
ON_LEAKS = (
    (
        "an exact copy lowers perplexity",
        "perplexity",
        below(0),
        {"outcome": PERPLEXITY, "term": EXACT},
    ),
    (
        "perplexity falls with the number of paraphrases",
        "perplexity, linear trend",
        below(0),
        {"outcome": PERPLEXITY, "term": LINEAR},
    ),
    (
        "an exact copy raises accuracy",
        "log odds",
        above(0),
        {"outcome": ACCURACY, "term": EXACT},
    ),
    (
        "accuracy rises with the number of paraphrases",
        "log odds, linear trend",
        above(0),
        {"outcome": ACCURACY, "term": LINEAR},
    ),
)


def beyond_never(leakage: pd.DataFrame, column: str, treated: str) -> pd.DataFrame:
    """Mean of treated strings minus that of strings never leaked; by seed (rows) and condition."""
    by_run = leakage.groupby(["strings", "seed", "exact", "paraphrases"])[column].mean()
    return (by_run[treated] - by_run[NEVER]).unstack(["exact", "paraphrases"])


def copy_effect(leakage: pd.DataFrame, column: str, treated: str = LEAKED) -> pd.Series:
    """What one exact copy changes, by seed: the mean over the numbers of paraphrases."""
    found = beyond_never(leakage, column, treated)
    return found[ONE_COPY].mean(axis=1) - found[NO_COPY].mean(axis=1)


def paraphrase_effect(leakage: pd.DataFrame, column: str, treated: str = LEAKED) -> pd.Series:
    """What all paraphrases change without an exact copy, by seed."""
    found = beyond_never(leakage, column, treated)[NO_COPY]
    return found[found.columns.max()] - found[0]


def magnified(leakage: pd.DataFrame, column: str, treated: str = LEAKED) -> pd.Series:
    """What all paraphrases change with an exact copy, minus their change without one; by seed."""
    found = beyond_never(leakage, column, treated)
    most = found.columns.get_level_values("paraphrases").max()
    change = {exact: found[exact, most] - found[exact, 0] for exact in (NO_COPY, ONE_COPY)}
    return change[ONE_COPY] - change[NO_COPY]


def of_leakage(leakage: pd.DataFrame, effect: Callable, column: str) -> Estimate:
    own = once(leakage)
    return beside_placebo(effect(own, column), effect(own, column, PLACEBO))


def beside_placebo(values: pd.Series, placebo: pd.Series) -> Estimate:
    return over_seeds(values, DROPPED, marks=[interval_note("placebos", student(placebo.dropna()))])


# Density and leakage


def separated(separation: pd.DataFrame, embedding: str) -> Estimate:
    """Area under the curve for strings with a copy and no paraphrase, of the narrowest kernel."""
    rows = of_kernel(separation, embedding)
    narrow = rows[(rows["setting"] == rows["setting"].min()) & (rows["paraphrases"] == 0)]
    narrow = narrow[narrow["exact"] == ONE_COPY].set_index("seed")
    found = with_setting(beside_placebo(narrow["auc"], narrow["placebo"]), rows)
    # An area of 1 in all seeds is certain: every leaked string is denser than every other string.
    return found._replace(counts_certain=bool((narrow["auc"] == 1).all()))


def raised_by_paraphrases(separation: pd.DataFrame, embedding: str) -> Estimate:
    """The same area with all paraphrases and no copy, minus that without any leak."""
    rows = of_kernel(separation, embedding)
    narrow = rows[(rows["setting"] == rows["setting"].min()) & (rows["exact"] == NO_COPY)]
    by_number = narrow.set_index(["paraphrases", "seed"])[["auc", "placebo"]]
    change = by_number.loc[narrow["paraphrases"].max()] - by_number.loc[0]
    return with_setting(beside_placebo(change["auc"], change["placebo"]), rows)


def of_kernel(separation: pd.DataFrame, embedding: str) -> pd.DataFrame:
    rows = separation[separation["embedding"] == embedding]
    return rows[rows["estimator"] == preferred_kernel(set(rows["estimator"]))]


def narrow_minus_wide(separation: pd.DataFrame, embedding: str) -> Estimate:
    """Area under the curve of the narrowest bandwidth minus that of the widest.

    Mean over all conditions in which something is leaked.
    """
    rows = of_kernel(separation, embedding)
    rows = rows[(rows["exact"] > 0) | (rows["paraphrases"] > 0)]
    by_setting = rows.groupby(["setting", "seed"])[["auc", "placebo"]].mean()
    narrow, wide = by_setting.loc[rows["setting"].min()], by_setting.loc[rows["setting"].max()]
    change = narrow - wide
    return with_setting(beside_placebo(change["auc"], change["placebo"]), rows)


def with_setting(estimate: Estimate, rows: pd.DataFrame) -> Estimate:
    mark = f"{rows['estimator'].iloc[0]} kernel, bandwidth {number(rows['setting'].min())}"
    return estimate._replace(marks=(mark, *estimate.marks))


def recalled(retrieval: pd.DataFrame) -> pd.DataFrame:
    """Recall by seed (rows) and embedding (columns)."""
    rows = retrieval[retrieval["k"] == RETRIEVED]
    return rows.pivot(index="seed", columns="embedding", values="recall")


def recall(retrieval: pd.DataFrame, embedding: str) -> Estimate:
    """Recall of copies and paraphrases; the recall of a random order is in the marks."""
    chance = retrieval.loc[retrieval["k"] == RETRIEVED, "chance"].mean()
    marks = [f"a random order: {number(chance)}"]
    return over_seeds(recalled(retrieval)[embedding], DROPPED, marks=marks)


def recall_difference(retrieval: pd.DataFrame) -> Estimate:
    found = recalled(retrieval)
    return over_seeds(found[HIDDEN] - found[NGRAMS], DROPPED)


def left_out(table: pd.DataFrame, column: str) -> Estimate:
    """The change for strings of the production that is left out, beyond that for the others."""
    rows = table[table["embedding"] == NGRAMS]
    own_group = rows["left_out"] == rows["group"]
    own, others = (rows[some].groupby("seed")[column].mean() for some in (own_group, ~own_group))
    return over_seeds(own - others, DROPPED, marks=[interval_note("others", student(others))])


# Density and performance


def beyond_run(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with densities, distances and loss minus their means over strings never leaked.

    The means are those of each run. A run with more leaked strings has fewer others, which changes
    the density at all strings and the loss on them.
    """
    run, columns = ["seed", "exact", "paraphrases"], ["log_density", "mean_distance", "loss"]
    means = rows[rows["strings"] == NEVER].groupby(run)[columns].mean()
    of_run = rows[run].join(means, on=run)[columns]
    return rows.assign(**(rows[columns] - of_run))


def unique(leakage: pd.DataFrame, embedding: str, predictor: str, given: str) -> Estimate:
    """Partial rank correlation of a predictor and the loss, at equal values of another predictor.

    Over leaked strings, strings that are never leaked, and all runs of a seed. The marks have the
    same correlation with placebos instead of leaked strings.
    """
    rows = beyond_run(leakage[leakage["embedding"] == embedding])
    values = [
        rows[rows["strings"].isin([role, NEVER])]
        .groupby("seed")
        .apply(lambda own: spearman_given(own[predictor], own["loss"], own[given]))
        for role in (LEAKED, PLACEBO)
    ]
    return beside_placebo(*values)


def natural(leakage: pd.DataFrame, embedding: str) -> Estimate:
    """Partial rank correlation of log density and loss at equal length, without any leak."""
    rows = leakage[
        (leakage["embedding"] == embedding)
        & (leakage["exact"] == 0)
        & (leakage["paraphrases"] == 0)
    ]
    correlations = rows.groupby("seed").apply(
        lambda own: spearman_given(own["log_density"], own["loss"], own["length"])
    )
    return over_seeds(correlations, DROPPED)


# Density and truth


def orders(truth: pd.DataFrame, embedding: str, strings: str) -> Estimate:
    """Correlation with the exact probability at equal length, mean over all settings.

    The mean, because the best setting would be chosen by the strings that judge it.
    """
    rows = truth[(truth["embedding"] == embedding) & (truth["strings"] == strings)]
    return over_seeds(rows.groupby("seed")["given_length"].mean(), DROPPED)


CLAIMS = [
    Claim(
        "leakage",
        "An exact copy in the training data lowers the loss on a test string.",
        LEAKAGE.name,
        "change of the loss by one copy, beyond strings that are not leaked (nats per token)",
        below(0),
        partial(of_leakage, effect=copy_effect, column="loss"),
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "leakage",
        "Paraphrases alone lower the loss on a test string.",
        LEAKAGE.name,
        "change of the loss by three paraphrases, beyond strings that are not leaked (nats per "
        "token)",
        below(0),
        partial(of_leakage, effect=paraphrase_effect, column="loss"),
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "leakage",
        "An exact copy magnifies what paraphrases do to the loss.",
        LEAKAGE.name,
        "change of the loss by three paraphrases, with a copy minus without (nats per token)",
        below(0),
        partial(of_leakage, effect=magnified, column="loss"),
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "leakage",
        "An exact copy magnifies what paraphrases do to accuracy.",
        LEAKAGE.name,
        "change of the share of right answers by three paraphrases, with a copy minus without",
        above(0),
        partial(of_leakage, effect=magnified, column="answer_right"),
        limits=(-2, 2),
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "leakage",
        "An exact copy in the training data makes the answer to a test string more accurate.",
        LEAKAGE.name,
        "change of the share of right answers by one copy, beyond strings that are not leaked",
        above(0),
        partial(of_leakage, effect=copy_effect, column="answer_right"),
        limits=DIFFERENCE,
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "leakage",
        "Paraphrases alone make the answer to a test string more accurate.",
        LEAKAGE.name,
        "change of the share of right answers by three paraphrases, beyond strings that are "
        "not leaked",
        above(0),
        partial(of_leakage, effect=paraphrase_effect, column="answer_right"),
        limits=DIFFERENCE,
        evidence=(NO_THRESHOLD,),
    ),
    *(
        Claim(
            "leakage_density",
            f"One exact copy makes a test string highly separable by the density {NAMES[name]}, by "
            "the gaussian kernel with a narrow bandwidth.",
            SEPARATION.name,
            "probability that a leaked string is denser than one that is not, narrowest bandwidth",
            at_least(SEPARABLE),
            partial(separated, embedding=name),
            limits=SHARE,
            evidence=(NO_THRESHOLD,),
        )
        for name in NAMES
    ),
    *(
        Claim(
            "leakage_density",
            f"Paraphrases alone raise the density {NAMES[name]} at a test string.",
            SEPARATION.name,
            "probability that a leaked string is denser than one that is not, narrowest bandwidth: "
            "with three paraphrases, minus without any leak",
            above(0),
            partial(raised_by_paraphrases, embedding=name),
            limits=DIFFERENCE,
            evidence=(NO_THRESHOLD,),
        )
        for name in NAMES
    ),
    *(
        Claim(
            "leakage_density",
            f"A narrow bandwidth of the density {NAMES[name]} separates leaked strings better than "
            "a wide one.",
            SEPARATION.name,
            "probability that a leaked string is denser, narrowest minus widest bandwidth",
            above(0),
            partial(narrow_minus_wide, embedding=name),
            limits=DIFFERENCE,
            evidence=(NO_THRESHOLD,),
        )
        for name in NAMES
    ),
    *(
        Claim(
            "leakage_density",
            f"The search for neighbours by the embedding {NAMES[name]} finds what was leaked.",
            RETRIEVAL.name,
            "recall of a string's copy and paraphrases among its ten nearest training strings",
            at_least(RECALL),
            partial(recall, embedding=name),
            limits=SHARE,
            evidence=(NO_THRESHOLD,),
        )
        for name in NAMES
    ),
    Claim(
        "leakage_density",
        "An embedding that needs no model finds what was leaked as well as the model's own.",
        RETRIEVAL.name,
        "recall at ten by hidden states minus recall by n-grams",
        between(-TOLERATED, TOLERATED),
        recall_difference,
        limits=DIFFERENCE,
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "leakage_density",
        "Without the strings of one production, density falls at test strings of this production.",
        LEFT_OUT.name,
        "change of the log density of n-grams, beyond that at strings of other productions",
        below(0),
        partial(left_out, column="log_density"),
        limits=ANY_NUMBER,
        evidence=(NO_THRESHOLD,),
    ),
    Claim(
        "density_performance",
        "Without the strings of one production, the loss rises on test strings of this production.",
        LEFT_OUT.name,
        "change of the loss, beyond that on strings of other productions (nats per token)",
        above(0),
        partial(left_out, column="loss"),
        evidence=(NO_THRESHOLD,),
    ),
    *(
        Claim(
            "density_performance",
            f"{words} {NAMES[name]}, {result}.",
            LEAKAGE.name,
            f"partial rank correlation of {predictor.replace('_', ' ')} and loss over strings and "
            "runs, both beyond strings that are not leaked",
            region,
            partial(unique, embedding=name, predictor=predictor, given=given),
            limits=DIFFERENCE,
            evidence=(NO_THRESHOLD,),
        )
        for name in NAMES
        for words, result, region, predictor, given in UNIQUE
    ),
    *(
        Claim(
            "leakage",
            f"In regressions, {sentence}.",
            REGRESSIONS.name,
            f"change ({unit}), linear or logistic",
            region,
            partial(regressed, regression=LEAK_CONDITION, **term),
            limits=ANY_NUMBER,
            evidence=(NO_THRESHOLD,),
        )
        for sentence, unit, region, term in ON_LEAKS
    ),
    *(
        Claim(
            "density_performance",
            f"In regressions: {sentence.format(NAMES[name])}",
            REGRESSIONS.name,
            f"change for one standard deviation ({unit}), linear or logistic, raw density",
            region,
            partial(regressed_on_density, embedding=name, **term),
            limits=ANY_NUMBER,
            evidence=(NO_THRESHOLD,),
        )
        for name in NAMES
        for sentence, unit, region, term in REGRESSED
    ),
    *(
        Claim(
            "density_texts",
            sentence,
            TEXT_REGRESSIONS.name,
            "change of a query's perplexity for one standard deviation, raw density",
            region,
            partial(of_text, regression=regression, term=term),
            limits=ANY_NUMBER,
            evidence=(NO_THRESHOLD,),
        )
        for sentence, region, regression, term in OF_TEXTS
    ),
    *(
        Claim(
            "density_performance",
            f"Without any leak, the loss is lower where the density {NAMES[name]} is higher.",
            LEAKAGE.name,
            "rank correlation of log density and loss over test strings, at equal length",
            below(0),
            partial(natural, embedding=name),
            limits=DIFFERENCE,
            evidence=(NO_THRESHOLD,),
        )
        for name in NAMES
    ),
    *(
        Claim(
            "density_truth",
            f"The density {NAMES[name]} orders strings that were never trained on as the "
            "language's probabilities do.",
            TRUTH.name,
            "rank correlation with the exact probability at equal length, mean over all kernels, "
            "bandwidths and numbers of neighbours",
            above(0),
            partial(orders, embedding=name, strings=UNSEEN),
            limits=DIFFERENCE,
            evidence=(LANGUAGE,),
        )
        for name in NAMES
    ),
    *(
        Claim(
            "density_memorised",
            f"Strings with dense support are memorised earlier, by {name}.",
            MEMORISED.name,
            "rank association of support by other training strings and start of memorisation at "
            "equal probability, minus that of unseen strings",
            below(0),
            partial(earlier, measure=measure),
            limits=(-2, 2),
            evidence=(NO_THRESHOLD,),
        )
        for measure, name in MEASURES.items()
    ),
]
