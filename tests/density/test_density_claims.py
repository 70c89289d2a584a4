"""The claims on density, on tables whose effects are known."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, t

from helpers import density_worlds as worlds
from helpers.density_scores import SEEDS, STUDY, memorised, retrieval, separation, truth
from palimpsest.claims import AGREES, CANNOT_TELL, DISAGREES, judge, judge_all
from palimpsest.density import kinds
from palimpsest.density.associations import spearman_given
from palimpsest.density.claims import CLAIMS, QUESTIONS
from palimpsest.density.claims import claim_statistics as claims
from palimpsest.density.earlier import MEASURES, earlier
from palimpsest.density.interventions import LEAK_CONDITIONS
from palimpsest.density.kinds import (
    GAUSSIAN,
    HIDDEN,
    LEAKED,
    NEVER,
    NGRAMS,
    PLACEBO,
    TRAINED,
    UNSEEN,
)
from palimpsest.density.regressions import regress_text
from palimpsest.estimates import over_seeds
from palimpsest.number_format import number
from palimpsest.statistics import student

OF_LEAKAGE = [claim for claim in CLAIMS if claim.statistic.reads == kinds.LEAKAGE.name]
SILENT = dict.fromkeys(["seed", "run", "group", "length", "string", "residual"], 0.0)
NO_COPY, ONE_COPY = claims.NO_COPY, claims.ONE_COPY


def verdicts(table: pd.DataFrame, kind: kinds.Kind) -> pd.DataFrame:
    """The judged claims that read one table, by the claim."""
    chosen = [claim for claim in CLAIMS if claim.statistic.reads == kind.name]
    return judge_all(chosen, {kind.name: table}).set_index("claim")


def one(judged: pd.DataFrame, *words: str) -> pd.Series:
    """The only claim with all these words."""
    (found,) = (row for claim, row in judged.iterrows() if all(word in claim for word in words))
    return found


# Leakage and performance


@pytest.mark.parametrize(("exact", "paraphrase"), [(0.3, 0.0), (0.0, 0.1), (0.2, 0.1), (-0.1, 0.0)])
def test_effects_on_the_loss_are_the_known_ones(exact, paraphrase):
    """Without noise, a copy changes the loss of leaked strings by this factor, and no other."""
    world = worlds.World(exact=exact, paraphrase=paraphrase, **SILENT)
    table = worlds.leakage(world, 0, seeds=2, n_leaked=3, n_never=4)
    helped = {
        leak: world.base * np.exp(-exact * leak[0] - paraphrase * leak[1])
        for leak in LEAK_CONDITIONS
    }
    copies = [helped[1, n] - helped[0, n] for n in range(4)]
    effects = {
        claims.copy_effect: np.mean(copies),
        claims.paraphrase_effect: helped[0, 3] - helped[0, 0],
    }
    for effect, known in effects.items():
        found = effect.of(column="loss").estimate(table)
        np.testing.assert_allclose(found.values, [known] * 2, atol=1e-12)
        assert found.remarks == ("placebos: 0 (0 to 0)",)


def test_effects_on_answers_are_the_known_ones():
    """Two paraphrases, or a copy, make an answer right that is wrong otherwise."""
    world = worlds.World(exact=0.3, paraphrase=0.1, odds=-60, steepness=400, **SILENT)
    table = worlds.leakage(world, 0, seeds=2, n_leaked=3, n_never=4)
    copy = claims.copy_effect.of(column="answer_right").estimate(table)
    assert copy.values == (0.5, 0.5)
    paraphrases = claims.paraphrase_effect.of(column="answer_right").estimate(table)
    assert paraphrases.values == (1.0, 1.0)
    assert copy.remarks == paraphrases.remarks == ("placebos: 0 (0 to 0)",)


def test_what_a_run_or_a_string_has_anyway_is_no_effect():
    """Levels of runs and strings drop out of the difference of two differences."""
    rows = worlds.leakage(worlds.World(**SILENT), 0, seeds=3, n_leaked=3, n_never=4)
    of_run = rows.groupby(["seed", "variant"]).ngroup()
    of_string = rows.groupby(["seed", "string_id"]).ngroup()
    table = rows.assign(loss=of_run**2 + 7.0 * of_string)
    for effect in (claims.copy_effect, claims.paraphrase_effect):
        np.testing.assert_allclose(effect.of(column="loss").estimate(table).values, 0, atol=1e-9)


@pytest.mark.parametrize("embedding", [HIDDEN, NGRAMS])
def test_correlations_by_hand(embedding):
    """Of one seed: over all rows, and over strings without a leak."""
    table = worlds.leakage(worlds.World(exact=0.3, dense=0.1), 1, seeds=1, n_leaked=4, n_never=9)
    rows = table[table["embedding"] == embedding]
    never = rows[rows["string_role"] == NEVER].groupby("variant")[
        ["log_density", "mean_distance", "loss"]
    ]
    beyond = rows.copy()
    for column, means in never.mean().items():
        beyond[column] -= rows["variant"].map(means)
    both = beyond[beyond["string_role"] != PLACEBO]
    partial = spearman_given(both["mean_distance"], both["loss"], both["log_density"])
    found = claims.unique(table, embedding, "mean_distance", "log_density")
    assert found.values == pytest.approx([partial])
    whole = rows[rows["variant"] == "leaked-0-0"]
    partial = spearman_given(whole["log_density"], whole["loss"], whole["length"])
    assert claims.natural(table, embedding).values == pytest.approx([partial])


HELPFUL = worlds.World(exact=0.5, paraphrase=0.15, dense=0.1, odds=-1.0, string=0.1)


@pytest.fixture(scope="module")
def helpful() -> pd.DataFrame:
    """Leaks lower the loss, and so does density."""
    return worlds.leakage(HELPFUL, 3, seeds=5, n_leaked=8, n_never=24)


def test_verdicts_where_leaks_help(helpful):
    judged = verdicts(helpful, kinds.LEAKAGE)
    for words in (
        ("exact copy", "lowers the loss"),
        ("Paraphrases alone", "lower the loss"),
        ("exact copy", "more accurate"),
        ("Without any leak", "hidden states"),
        ("Without any leak", "n-grams"),
        ("equal distance", "n-grams"),
    ):
        assert one(judged, *words)["verdict"] == AGREES, words


def test_verdicts_where_leaks_do_harm():
    harmful = worlds.World(exact=-0.5, paraphrase=-0.15, dense=-0.1, odds=1.0, string=0.1)
    judged = verdicts(worlds.leakage(harmful, 3, seeds=5, n_leaked=8, n_never=24), kinds.LEAKAGE)
    assert AGREES not in set(judged.loc[~judged.index.str.contains("farther away"), "verdict"])
    assert one(judged, "exact copy", "lowers the loss")["verdict"] == DISAGREES


def test_without_right_answers_nothing_is_said_of_accuracy(helpful):
    """Claims on the loss are as before."""
    nothing = helpful.assign(answer_right=None, n_choices=None)
    before, judged = (verdicts(table, kinds.LEAKAGE) for table in (helpful, nothing))
    on_answers = judged.index.str.contains("accura")
    assert on_answers.sum() == 3
    assert set(judged.loc[on_answers, "verdict"]) == {CANNOT_TELL}
    assert AGREES in set(before.loc[on_answers, "verdict"])
    for column in ("estimate", "lower", "upper"):
        assert judged.loc[~on_answers, column].equals(before.loc[~on_answers, column])


def test_notes_have_the_statistic_of_placebos(helpful):
    """Its mean and interval over the seeds, by hand; where nothing is treated, there is none."""
    judged = verdicts(helpful, kinds.LEAKAGE)
    natural = judged.index.str.startswith("Without any leak")
    assert natural.sum() == 2
    assert judged.loc[~natural, "note"].str.contains("placebos: ").all()
    assert not judged.loc[natural, "note"].str.contains("placebos").any()
    own = helpful[helpful["embedding"] == HIDDEN]
    means = own.groupby(["seed", "string_role", "n_copies"])["loss"].mean().unstack("string_role")
    change = (means[PLACEBO] - means[NEVER]).unstack("n_copies")
    mean, lower, upper = student(change[1] - change[0])
    expected = f"placebos: {number(mean)} ({number(lower)} to {number(upper)})"
    assert expected in one(judged, "exact copy", "lowers the loss")["note"]
    assert lower < 0 < upper


N_WORLDS, SEEDS_OF_NOTHING = 200, 3


@pytest.fixture(scope="module")
def of_nothing() -> pd.DataFrame:
    """Many seeds in which leaks make strings denser, and neither helps; one embedding.

    Seeds, runs, strings and rows have levels of their own. All tables are drawn at once, because
    those of `density_worlds` take too long to be drawn by the hundred.
    """
    chance = np.random.default_rng(7)
    roles = np.array([LEAKED] * 2 + [PLACEBO] + [NEVER] * 3)
    n_seeds, n_runs, n_strings = N_WORLDS * SEEDS_OF_NOTHING, len(LEAK_CONDITIONS), len(roles)
    shape = n_seeds, n_runs, n_strings
    seed, run, string = (each.ravel() for each in np.indices(shape))
    exact, paraphrases = np.array(LEAK_CONDITIONS)[run].T
    near = (exact + 0.3 * paraphrases) * (roles[string] == LEAKED)
    levels = [(n_seeds, 1, 1), (n_seeds, n_runs, 1), (n_seeds, 1, n_strings), shape]
    loss, natural, apart = (
        np.broadcast_to(sum(chance.normal(size=level) for level in levels), shape).ravel()
        for _ in range(3)
    )
    log_density = np.log(np.exp(-6 + natural) + near / 100)
    return pd.DataFrame(
        {
            **STUDY,
            "seed": seed,
            "string_id": string,
            "string_role": roles[string],
            "n_copies": exact,
            "paraphrases": paraphrases,
            "length": np.broadcast_to(chance.integers(5, 9, levels[2]), shape).ravel(),
            "loss": 0.7 * np.exp(0.1 * loss),
            "answer_right": chance.normal(size=len(seed)) > loss,
            "embedding": NGRAMS,
            "log_density": log_density,
            "mean_distance": np.exp(0.2 * apart - 0.1 * log_density),
        }
    )


@pytest.mark.parametrize(
    "claim",
    [c for c in OF_LEAKAGE if "hidden" not in c.claim],
    ids=lambda claim: claim.claim.partition(",")[0].replace(" ", "-"),
)
def test_nothing_is_claimed_where_nothing_helps(of_nothing, claim):
    """A verdict is wrong in 2.5 % of the studies on either side; the bound fails once in 1000."""
    values = np.array(claim.statistic.estimate(of_nothing).values)
    assert len(values) == N_WORLDS * SEEDS_OF_NOTHING
    studies = [over_seeds(pd.Series(own)) for own in values.reshape(N_WORLDS, -1)]
    found = [judge(study, claim)["verdict"] for study in studies]
    most = binom.ppf(0.999, N_WORLDS, 0.025)
    assert found.count(AGREES) <= most
    assert found.count(DISAGREES) <= most


def test_one_seed_has_no_verdict(helpful):
    judged = verdicts(helpful[helpful["seed"] == 0], kinds.LEAKAGE)
    assert set(judged["verdict"]) == {CANNOT_TELL}
    assert judged["note"].str.startswith("only one seed has a value").all()


# Density and leakage


def test_all_seeds_at_one_are_certain():
    """Every leaked string is denser than every other one, pair by pair; and the note says so."""
    table = separation(lambda seed, setting, exact, *_: 1.0 if exact else 0.7)
    judged = verdicts(table, kinds.SEPARATION)
    for name in ("hidden states", "n-grams"):
        row = one(judged, "One exact copy", name)
        assert (row["verdict"], row["lower"], row["upper"]) == (AGREES, 1, 1)
        assert row["note"].startswith("each case is certain by itself")
        # The same share of pairs in all five seeds speaks for the median seed.
        row = one(judged, "Paraphrases alone raise", name)
        assert row["verdict"] == DISAGREES
        assert row["note"].startswith("all seeds give the same value: the sign test")


def test_one_pair_in_the_wrong_order_is_not_certain():
    table = separation(lambda seed, setting, exact, *_: 1 - 0.01 * (seed == 2))
    row = one(verdicts(table, kinds.SEPARATION), "One exact copy", "n-grams")
    assert row["verdict"] == AGREES
    assert row["lower"] < row["upper"]
    assert not row["note"].startswith("each case is certain")


def test_separation_is_that_of_the_narrowest_kernel():
    """With a copy and no paraphrase, or all paraphrases and no copy; other rows do not count."""
    level = {(0.1, 1, 0): 0.95, (0.1, 0, 3): 0.6}

    def auc(seed, setting, exact, paraphrases, embedding):
        return level.get((setting, exact, paraphrases), 0.1) + 0.001 * seed

    table = separation(auc)
    copied = claims.separated(table, HIDDEN)
    assert copied.values == pytest.approx([0.95 + 0.001 * seed for seed in SEEDS])
    paraphrased = claims.raised_by_paraphrases(table, HIDDEN)
    assert paraphrased.values == pytest.approx([0.5] * 5)
    assert copied.remarks == ("gaussian kernel, bandwidth 0.1", "placebos: 0.5 (0.5 to 0.5)")
    assert paraphrased.remarks == ("gaussian kernel, bandwidth 0.1", "placebos: 0 (0 to 0)")
    only = separation(auc, kernels={"exponential": (0.1, 1.0)})
    assert claims.separated(only, HIDDEN).values == copied.values


def test_a_narrow_bandwidth_is_compared_with_a_wide_one():
    """Over all conditions with a leak: the condition without one does not count."""

    def auc(seed, setting, exact, paraphrases, embedding):
        if not exact + paraphrases:
            return 0.0 if setting == 0.1 else 1.0
        return 0.8 + 0.01 * seed if setting == 0.1 else 0.6 + 0.1 * (embedding == NGRAMS)

    table = separation(auc)
    for embedding, wide in ((HIDDEN, 0.6), (NGRAMS, 0.7)):
        found = claims.narrow_minus_wide(table, embedding)
        assert found.values == pytest.approx([0.8 + 0.01 * seed - wide for seed in SEEDS])
    one_bandwidth = separation(auc, kernels={GAUSSIAN: (0.1,)})
    judged = verdicts(one_bandwidth, kinds.SEPARATION)
    assert one(judged, "A narrow bandwidth", "n-grams")["verdict"] == CANNOT_TELL


def test_recall_at_ten_is_judged():
    judged = verdicts(retrieval([0.95, 0.96, 0.97], [0.94, 0.95, 0.97]), kinds.RETRIEVAL)
    found = [one(judged, "search", name) for name in ("hidden states", "n-grams")]
    assert [row["verdict"] for row in found] == [AGREES, AGREES]
    assert [row["estimate"] for row in found] == pytest.approx([0.96, 0.95333333])
    assert all("a random order: 0.14" in row["note"] for row in found)
    same = one(judged, "needs no model")
    assert (same["verdict"], same["estimate"]) == (AGREES, pytest.approx(0.02 / 3))


def test_a_recall_that_differs_much_is_not_the_same():
    judged = verdicts(retrieval([0.9, 0.91, 0.92], [0.3, 0.32, 0.34]), kinds.RETRIEVAL)
    assert one(judged, "needs no model")["verdict"] == DISAGREES
    assert one(judged, "search", "n-grams")["verdict"] == DISAGREES


def test_a_left_out_production_is_compared_with_the_others():
    """Changes of its own strings minus changes of the others; hidden states do not count."""
    productions = ["A B", "B A", "C"]
    rows = [
        {
            **STUDY,
            "seed": seed,
            "left_out": out,
            "group": group,
            "embedding": embedding,
            "log_density": (-1.0 if out == group else 0.5) - 0.01 * seed * (out == group),
            "loss": (0.4 + 0.01 * seed if out == group else 0.1) + 5 * (embedding == HIDDEN),
            "n_strings": 4,
        }
        for seed, out, group, embedding in itertools.product(
            SEEDS, productions, productions, (HIDDEN, NGRAMS)
        )
    ]
    judged = verdicts(pd.DataFrame(rows), kinds.LEFT_OUT)
    falls, rises = one(judged, "density falls"), one(judged, "the loss rises")
    assert falls["estimate"] == pytest.approx(-1.52)
    assert rises["estimate"] == pytest.approx(0.32)
    assert falls["verdict"] == rises["verdict"] == AGREES
    assert "others: 0.1 (0.1 to 0.1)" in rises["note"]


# Regressions


def regression_table(**terms: tuple[float, ...]) -> pd.DataFrame:
    """A table `regressions` of accuracy on both, by n-grams.

    `terms` give the effect of each role, the ends of its interval and its p-value.
    """
    rows = [
        {
            **STUDY,
            "string_role": strings,
            "regression": kinds.ON_BOTH,
            "outcome": kinds.ACCURACY,
            "predictor": "raw",
            "embedding": NGRAMS,
            "term": "density",
            "estimate": 9.9,
            "effect": effect,
            "lower": lower,
            "upper": upper,
            "p_value": p_value,
        }
        for strings, (effect, lower, upper, p_value) in terms.items()
    ]
    return pd.DataFrame(rows, columns=kinds.REGRESSIONS.names)


@pytest.mark.parametrize(
    ("effect", "lower", "upper", "verdict"),
    [
        (0.4, 0.01, 0.9, AGREES),
        (0.4, -0.01, 0.9, CANNOT_TELL),
        (-0.4, -0.9, -0.01, DISAGREES),
        (0.4, -np.inf, np.inf, CANNOT_TELL),
        (np.nan, np.nan, np.nan, CANNOT_TELL),
    ],
)
def test_a_regression_is_judged_by_the_interval_of_exchanges(effect, lower, upper, verdict):
    """Its p-value is among those that are corrected for their number."""
    table = regression_table(leaked=(effect, lower, upper, 0.02), placebo=(0.1, -0.3, 0.5, 0.6))
    judged = verdicts(table, kinds.REGRESSIONS)
    row = one(judged, "Accuracy rises", "n-grams, at equal distance")
    assert row["verdict"] == verdict
    known = not np.isnan(effect)
    assert row["interval_over"] == ("exchanges of strings" if known else "")
    assert ("placebos: 0.1 (−0.3 to 0.5)" in row["note"]) or not known
    assert row["p_value"] == (0.02 if known else pytest.approx(np.nan, nan_ok=True))
    assert row["p_holm"] == (0.02 if known else pytest.approx(np.nan, nan_ok=True))


def test_regressions_of_other_embeddings_and_terms_do_not_count():
    table = regression_table(leaked=(0.4, 0.1, 0.7, 0.01), placebo=(0.1, -0.3, 0.5, 0.6))
    judged = verdicts(table, kinds.REGRESSIONS)
    assert len(judged) == 4 + 4
    assert (judged["verdict"] == AGREES).sum() == 1
    assert (judged["verdict"] == CANNOT_TELL).sum() == 7
    # Hidden states of several runs are not compared.
    judged = verdicts(table.assign(embedding=HIDDEN), kinds.REGRESSIONS)
    assert set(judged["verdict"]) == {CANNOT_TELL}


def test_leak_conditions_in_regressions_are_judged():
    """They have no density, and so no embedding."""
    terms = {"leaked": (-0.3, -0.5, -0.1, 0.001), "placebo": (0.0, -0.2, 0.2, 0.9)}
    table = regression_table(**terms).assign(
        regression=kinds.LEAK_CONDITION, outcome=kinds.PERPLEXITY, predictor=None, embedding=None,
        term="exact copy",
    )  # fmt: skip
    judged = verdicts(table, kinds.REGRESSIONS)
    row = one(judged, "In regressions, an exact copy lowers perplexity")
    assert (row["verdict"], row["estimate"], row["p_value"]) == (AGREES, -0.3, 0.001)
    assert "placebos: 0 (−0.2 to 0.2)" in row["note"]
    assert (judged["verdict"] == AGREES).sum() == 1


# Texts


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.1, AGREES), (0.9, DISAGREES), (0.5, CANNOT_TELL), (None, CANNOT_TELL)]
)
def test_the_random_part_hides_the_local_part_where_its_share_is_large(share, verdict):
    """Over documents, whose shares differ by 0.1; another bandwidth says the opposite."""
    text = worlds.text(0)
    document = text["document"].to_numpy()
    if share is not None:
        spread = 0.1 * np.random.default_rng(0).standard_normal(document.max() + 1)
        share = np.clip(share + spread[document] - spread.mean(), 0, 1)
    table = pd.concat(
        [text.assign(local_share=share), text.assign(bandwidth=0.1, local_share=1 - share)]
        if share is not None
        else [text.assign(local_share=np.nan)]
    )
    judged = verdicts(table, kinds.TEXT_DENSITY)
    assert one(judged, "the random part hides the local part")["verdict"] == verdict


def test_claims_on_texts_are_those_of_the_regressions_at_the_papers_bandwidth():
    """Student's interval of the queries; without an approximation, the random part is unknown."""
    text = worlds.text(0, dense=0.4)
    wide = text.assign(bandwidth=5.0, log_local=text["log_local"].to_numpy()[::-1])
    table = regress_text(pd.concat([text, wide]))
    judged = verdicts(table, kinds.TEXT_REGRESSIONS)
    local = one(judged, "nearest texts in the corpus rises")
    (row,) = table[
        (table["regression"] == kinds.ON_DENSITY)
        & (table["term"] == "density")
        & (table["predictor"] == "raw")
        & (table["bandwidth"] == 0.5)
    ].itertuples()
    half = t(row.df).ppf(0.975) * row.std_error
    assert (local["estimate"], local["lower"]) == pytest.approx((row.estimate, row.estimate - half))
    assert (local["verdict"], local["p_value"]) == (AGREES, pytest.approx(row.p_value))
    assert "gaussian kernel, bandwidth 0.5" in local["note"]
    assert local["language"] == "licences"
    assert one(judged, "text rises", "distance")["verdict"] == AGREES
    assert one(judged, "random sample")["verdict"] == CANNOT_TELL
    exact = verdicts(
        regress_text(text.assign(log_local=np.nan, log_random=np.nan)), kinds.TEXT_REGRESSIONS
    )
    # The exact density is not that of the nearest texts.
    for words in ("nearest texts in the corpus rises", "random sample"):
        assert np.isnan(one(exact, words)["estimate"])
    assert one(exact, "text rises", "distance")["verdict"] == AGREES
    assert "not known" in local["note"]


def test_claims_on_texts_are_judged_for_every_set_and_for_responses():
    """Responses of one set follow the distance; those of the other go the other way."""
    made = []
    for name, sign in (("near", -1), ("far", 1)):
        own = worlds.text(0, n=150, dense=0.4, query_set=name)
        answers = np.exp(1 + sign * 0.5 * own["log_local"])
        made.append(own.assign(response_perplexity=answers))
    judged = verdicts(regress_text(pd.concat(made)), kinds.TEXT_REGRESSIONS)
    rows = judged.loc[judged.index.str.contains("of a response rises")].set_index("language")
    assert rows["verdict"].to_dict() == {"licences, near": AGREES, "licences, far": DISAGREES}
    queries = judged.loc[judged.index.str.contains("of a text rises with the distance")]
    assert list(queries["verdict"]) == [AGREES, AGREES]
    without = verdicts(regress_text(worlds.text(0)), kinds.TEXT_REGRESSIONS)
    assert not without.index.str.contains("of a response").any()


@pytest.mark.parametrize("embedding", ["hidden", "ngrams"])
def test_an_embedding_by_the_judged_model_is_said(embedding):
    table = regress_text(worlds.text(0, n=60).assign(embedding=embedding))
    note = one(verdicts(table, kinds.TEXT_REGRESSIONS), "text rises", "distance")["note"]
    assert ("hidden states are those of the model that is judged" in note) == (
        embedding == "hidden"
    )


def from_corpus_and_others(inside: float, outside: float, draw: int = 0) -> pd.DataFrame:
    """Queries from the corpus and others, whose perplexity falls with density as given."""
    own = worlds.text(draw, dense=inside, query_set="own").assign(nearest=0.0)
    return pd.concat([own, worlds.text(draw + 1, dense=outside, query_set="others")])


@pytest.mark.parametrize(
    ("inside", "outside", "verdict"),
    [(0.4, 0.0, AGREES), (0.0, 0.4, DISAGREES), (0.2, 0.2, CANNOT_TELL)],
)
def test_queries_from_the_corpus_follow_density_more_clearly(inside, outside, verdict):
    judged = verdicts(from_corpus_and_others(inside, outside), kinds.TEXT_DENSITY)
    row = one(judged, "for queries from the corpus than for others")
    assert row["verdict"] == verdict
    low, high = re.search(r"halves of the queries from the corpus: \S+ \((\S+) to (\S+)\)",
                          row["note"].replace("−", "-")).groups()  # fmt: skip
    assert float(low) < 0 < float(high)


def test_without_queries_from_the_corpus_there_is_no_comparison():
    judged = verdicts(worlds.text(0), kinds.TEXT_DENSITY)
    assert not judged.index.str.contains("for queries from the corpus than for others").any()


# Truth and memorisation


def test_no_setting_is_chosen_by_the_strings_that_it_is_judged_on():
    """The mean over the settings of each seed."""
    table = truth({0.1: [0.5, 0.6, -0.3], 1.0: [0.1, 0.2, 0.9]})
    assert claims.orders(table, NGRAMS, UNSEEN).values == pytest.approx([0.3, 0.4, 0.3])
    assert claims.orders(table, NGRAMS, TRAINED).values == ()


def test_orders_are_judged():
    judged = verdicts(truth({0.1: [0.5, 0.6, 0.55], 1.0: [0.1, 0.2, 0.1]}), kinds.TRUTH)
    assert one(judged, "n-grams")["verdict"] == AGREES
    assert one(judged, "hidden states")["verdict"] == CANNOT_TELL


def test_support_of_trained_strings_is_compared_with_that_of_unseen_ones():
    """By n-grams, over all bandwidths; a measure that was not run has no verdict."""
    table = memorised([-0.5, -0.6, -0.7], [0.1, 0.0, -0.1])
    found = earlier(table, "contextual")
    assert found.values == pytest.approx([-0.6] * 3)
    table = memorised([-0.5, -0.6, -0.7], [0.1, 0.1, -0.1])
    judged = verdicts(table, kinds.MEMORISED)
    row = one(judged, "by the contextual measure")
    assert (row["verdict"], row["estimate"]) == (AGREES, pytest.approx(-0.6333333333))
    assert "never memorised: trained 0.25; never memorised: unseen 0.75" in row["note"]
    assert "trained: -0.6" in row["note"].replace("−", "-")
    others = judged[~judged.index.str.contains("contextual")]
    assert len(others) == len(MEASURES) - 1
    assert set(others["verdict"]) == {CANNOT_TELL}


@pytest.mark.parametrize(
    ("trained", "unseen", "verdict"),
    [
        ([-0.5, -0.6, -0.7], [0.1, 0.1, -0.1], AGREES),
        ([-0.2, -0.1, -0.15], [-0.5, -0.5, -0.6], CANNOT_TELL),
        ([0.5, 0.6, 0.7], [0.1, 0.0, -0.1], DISAGREES),
    ],
)
def test_a_weaker_association_of_trained_strings_is_not_a_later_start(trained, unseen, verdict):
    """Starts that vary more are associated with less."""
    judged = verdicts(memorised(trained, unseen), kinds.MEMORISED)
    row = one(judged, "by the contextual measure")
    assert row["verdict"] == verdict
    # What is not decided is not significant, and more seeds are not promised to decide it.
    assert (row["p_value"] < 0.05) == (verdict != CANNOT_TELL)
    assert verdict != CANNOT_TELL or np.isnan(row["seeds_needed"])


def test_a_few_starts_say_nothing():
    """Of 24 strings, a share of 0.8 that never start leaves about 5, and 0.85 leaves 4."""
    table = memorised([-0.5, -0.6, -0.7], [0.1, 0.0, -0.1])
    for never, known in ((0.8, True), (0.85, False)):
        found = earlier(table.assign(share_censored=never), "contextual")
        assert bool(found.values) == known


# All claims


def test_every_question_has_claims_and_no_claim_is_there_twice():
    assert {claim.question for claim in CLAIMS} == set(QUESTIONS)
    assert len({claim.claim for claim in CLAIMS}) == len(CLAIMS)


def test_without_tables_no_claim_is_decided(helpful):
    """Tables that are absent, and tables without rows."""
    empty = {kind.name: pd.DataFrame(columns=kind.names) for kind in kinds.KINDS}
    for given in ({}, empty):
        judged = judge_all(CLAIMS, given)
        assert len(judged) == sum(not claim.on_request for claim in CLAIMS)
        assert set(judged["verdict"]) == {CANNOT_TELL}
        assert set(judged["language"]) == {""}
