"""The tables, claims, figures and report of profiles, on streams whose effects are known."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from helpers import panel_worlds
from helpers import profile_worlds as worlds
from helpers.drawn_titles import covering_titles
from palimpsest import tables
from palimpsest.claims import judge_all
from palimpsest.figures import style
from palimpsest.lazy_import import named
from palimpsest.profiles import kinds, summaries
from palimpsest.profiles.claims import CLAIMS
from palimpsest.profiles.claims.claim_statistics import bias_of_removal
from palimpsest.profiles.correlation import pearson
from palimpsest.profiles.figures import FIGURES
from palimpsest.profiles.panel import read_panel
from palimpsest.profiles.profile import of_panel, pooled
from palimpsest.profiles.report import part

LARGEST = list(worlds.MODELS)[-1]


@pytest.fixture(scope="module")
def world() -> dict[str, pd.DataFrame]:
    return worlds.world()


@pytest.fixture(scope="module")
def without_noise() -> dict[str, pd.DataFrame]:
    """Strings differ in their level only, so that every estimate has to be exact."""
    return worlds.world(noise=0.0)


@pytest.fixture(scope="module")
def own() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables of the shipped example of a panel."""
    return of_panel(read_panel("config/panels/example.csv"), "example")


@pytest.fixture(scope="module")
def study() -> dict[str, pd.DataFrame]:
    return panel_worlds.as_the_paper_saw()


@pytest.fixture(autouse=True, scope="module")
def in_the_project(pytestconfig):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(pytestconfig.rootpath)
        yield


@pytest.mark.parametrize("name", worlds.KINDS)
def test_a_table_is_of_its_kind(world, tmp_path, name):
    """Columns, types and nulls; and reading gives back what was written."""
    (kind,) = (kind for kind in kinds.KINDS if kind.name == name)
    tables.write(tmp_path / "table.parquet", world[name], kind)
    assert len(tables.read(tmp_path / "table.parquet", kind)) == len(world[name])


def test_an_own_panel_is_of_its_kinds(own, tmp_path):
    for table, kind in zip(own, (kinds.PANEL_PROFILE, kinds.PANEL_PERSISTENCE), strict=True):
        tables.write(tmp_path / "table.parquet", table, kind)


def test_known_effects_are_found(without_noise):
    """Of every model, at every time; the difference also has the levels of the strings."""
    cells = summaries.estimates(without_noise["profile"])
    strength = cells["model"].map({model: n + 1 for n, model in enumerate(worlds.MODELS)})
    rows = zip(strength, cells["cohort"], cells["time"], strict=True)
    np.testing.assert_allclose(cells["estimate"], [worlds.effect(*row) for row in rows], atol=1e-9)
    placebos = summaries.estimates(without_noise["profile"], kinds.PLACEBO)
    np.testing.assert_allclose(placebos["estimate"], 0, atol=1e-9)


def test_pooled_estimates_are_means_over_the_seeds(world):
    for name in ("profile", "persistence"):
        pooled_table = world[f"pooled_{name}"]
        keys = ["model", "outcome", "since"] if name == "persistence" else None
        keys = keys or ["model", "outcome", "estimator", "cohort", "time"]
        keys = ["string_role", *keys]  # placebos, too
        mean, of_all = (t.groupby(keys)["estimate"].mean() for t in (world[name], pooled_table))
        pd.testing.assert_series_equal(mean, of_all, atol=1e-9)
        assert (pooled_table["n_seeds"] == 3).all()


def test_pooled_bands_are_narrower(world):
    one, all_of_them = (
        summaries.estimates(world[name]).groupby("model")["std_error"].mean()
        for name in ("profile", "pooled_profile")
    )
    assert (all_of_them < 0.75 * one).all()


def test_pooling_removes_what_runs_have_in_common():
    panels = [stream.panels("log_likelihood", 6)["trained"] for stream in worlds.streams(LARGEST)]
    together = pooled(panels)
    untreated = together.outcome[np.isinf(together.cohorts)]
    np.testing.assert_allclose(untreated.mean(axis=0), 0, atol=1e-9)


def test_placebos_are_never_trained_on_and_have_random_times():
    """Half of the validation strings, in cohorts as large as those of the panel."""
    (stream, *_) = worlds.streams(LARGEST)
    panel = stream.panels("log_likelihood", 6)["placebo"]
    times, counts = np.unique(panel.cohorts, return_counts=True)
    assert len(panel.cohorts) == 24
    assert counts.tolist() == [6, 6, 12]
    assert set(times[:-1]) <= {1, 2, 3, 4}
    again = stream.panels("log_likelihood", 6)["placebo"]
    assert (panel.cohorts == again.cohorts).all()


def test_runs_with_other_cohorts_are_not_pooled():
    """Their times are the same, so that a mean over units is one over runs."""
    made = [stream.panels("log_likelihood", 6)["placebo"] for stream in worlds.streams(LARGEST)]
    assert len({tuple(sorted(panel.cohorts)) for panel in made}) == 1
    other = replace(made[1], cohorts=np.where(made[1].cohorts == made[1].treated[0], 9, np.inf))
    with pytest.raises(ValueError, match="differ in the sizes of their cohorts"):
        pooled([made[0], other])


def test_the_total_effect_has_what_the_specific_effect_has_not(world):
    """What all strings lose without a cohort is in the total effect alone."""
    compared = world["exact_profile"]
    cells = compared[compared["outcome"] == "log_likelihood"]
    rows = zip(cells["cohort"], cells["time"], strict=True)
    known = [worlds.effect(3, *row) for row in rows]
    is_after = cells["time"] >= cells["cohort"]
    np.testing.assert_allclose(cells["specific"], known, atol=1e-9)
    np.testing.assert_allclose(cells["general"], is_after * 1.0, atol=1e-9)
    np.testing.assert_allclose(cells["total"], known + is_after * 1.0, atol=1e-9)
    assert (compared.loc[compared["time"] < compared["cohort"], "total"] == 0).all()


def test_errors_are_those_of_the_cells(world):
    """Bias, spread and coverage of one group, by hand; the base period is left out."""
    compared, found = world["exact_profile"], world["estimator_errors"]
    names = {
        "seed": 1,
        "outcome": "log_likelihood",
        "estimator": "difference_in_differences",
    }
    rows = compared
    for name, value in names.items():
        rows, found = rows[rows[name] == value], found[found[name] == value]
    found = found[(found["truth"] == "total")].set_index("cells")
    rows = rows[rows["time"] >= rows["cohort"]]
    error = rows["estimate"] - rows["total"]
    assert found.loc["after", "n_cells"] == len(rows) == 10
    assert found.loc["after", "bias"] == pytest.approx(error.mean())
    assert found.loc["after", "std"] == pytest.approx(error.std(ddof=0))
    assert found.loc["after", "rmse"] == pytest.approx(np.sqrt((error**2).mean()))
    inside = (rows["lower"] <= rows["total"]) & (rows["total"] <= rows["upper"])
    assert found.loc["after", "coverage"] == pytest.approx(inside.mean())
    assert found.loc["after", "all_covered"] == inside.all()
    # Cohorts 2, 3 and 4 have 1, 2 and 3 times before their base period.
    assert found.loc["before", "n_cells"] == 6


def test_notions_are_those_of_the_known_world(without_noise):
    """Every notion, and its placebo, by hand; the total effect has what all strings have."""
    found = without_noise["notions"].set_index("notion")
    known = [worlds.effect(3, cohort, worlds.COHORTS) for cohort in found["cohort"]]
    np.testing.assert_allclose(found["specific"], known, atol=1e-9)
    np.testing.assert_allclose(found["total"], np.array(known) + 1, atol=1e-9)
    both = found.loc[["difference_in_differences"]]
    np.testing.assert_allclose(both["estimate"], both["specific"], atol=1e-9)
    means = found.loc["architectural"]
    # The replicates shift all strings by 10 nats on average.
    np.testing.assert_allclose(means["placebo"], 1 - 10, atol=1e-9)
    np.testing.assert_allclose(means["estimate"] - means["placebo"], means["specific"], atol=1e-9)
    moved = found.loc["influence"]
    np.testing.assert_allclose(moved["estimate"], moved["specific"] / 2 + 0.1, atol=1e-9)
    np.testing.assert_allclose(moved["placebo"], 0.1, atol=1e-9)
    shares = found.loc["extractable"]
    assert (shares["estimate"] == 0.5).all()
    assert (shares["placebo"] == 0.25).all()
    assert set(shares["unit"]) == {"share of strings"}
    plain = found.loc["influence_removal"]
    np.testing.assert_allclose(plain["placebo"], 0.1 - 2, atol=1e-9)
    np.testing.assert_allclose(plain["estimate"], moved["estimate"].to_numpy() - 2, atol=1e-9)
    assert len(found) == 6 * 3 * worlds.COHORTS


def test_correlations(without_noise):
    """Effects that are multiples of each other: 1 after the treatment; nothing to say before."""
    found = without_noise["profile_correlation"]
    after = found[(found["cells"] == "after") & (found["outcome"] == "log_likelihood")]
    np.testing.assert_allclose(after["correlation"], 1)
    assert (after["n_cells"] == 10).all()
    sizes = found["model"].map(worlds.MODELS), found["other"].map(worlds.MODELS)
    assert (sizes[0] <= sizes[1]).all()
    assert np.isnan(pearson(np.ones(3), np.arange(3.0)))
    assert np.isnan(pearson(np.ones(1), np.ones(1)))


SAME = "The profile of the smaller model predicts that of the larger one."
VERDICTS = {
    "Larger models memorise strings more strongly just after training on them.": "agrees",
    "Memorisation persists more in larger models.": "agrees",
    "At the end of training, strings that were seen late are memorised more.": "agrees",
    "Just after training on them, strings are memorised more if they are seen early.": "agrees",
    "The log-likelihood shows more effects than the token accuracy.": "agrees",
    "Difference-in-differences tells which macro-batches a model has memorised.": "agrees",
    "Difference-in-differences has smaller errors than the difference, for the specific effect.": (
        "agrees"
    ),
    "An influence function is unbiased for the specific effect.": "disagrees",
    "An influence function by plain removal is unbiased for the total effect.": "disagrees",
    "More strings can be extracted if they were trained on.": "agrees",
    "Strings that are never trained on show no effect.": "agrees",
}


def test_verdicts_on_a_known_world():
    """Little noise and many seeds: the verdicts are those by which the world was made."""
    judged = judge_all(CLAIMS, worlds.world(range(8), noise=0.1, general=3.0)).set_index("claim")
    pairs = [f"L1: {one} and {other}" for one, other in combinations(worlds.MODELS, 2)]
    assert set(judged["language"]) == {"L1", *pairs}
    found = judged.loc[list(VERDICTS), "verdict"].to_dict()
    assert found == VERDICTS
    of_pairs = judged.loc[SAME].set_index("language")
    assert of_pairs.index.tolist() == pairs
    assert set(of_pairs["verdict"]) == {"agrees"}


def test_the_order_of_strings_and_of_outcomes_may_be_the_other_way_round(world):
    """Late strings are memorised more just after training, and only the accuracy shows it."""
    profile = pd.concat(
        [world["profile"].assign(seed=lambda t, n=n: t["seed"] + 3 * n) for n in range(3)]
    )
    chance = np.random.default_rng(0)
    after = profile["time"] >= profile["cohort"]
    late = 0.1 * profile["cohort"] + 0.01 * chance.normal(size=len(profile))
    turned = profile.assign(
        estimate=np.where(after, late, profile["estimate"]),
        significant=after
        & (profile["outcome"] == "token_accuracy")
        & (chance.random(len(profile)) < 0.8),
    )
    judged = judge_all(CLAIMS, {"profile": turned}).set_index("claim")["verdict"]
    assert (
        judged["Just after training on them, strings are memorised more if they are seen early."]
        == "disagrees"
    )
    assert judged["The log-likelihood shows more effects than the token accuracy."] == "disagrees"


def test_each_pair_of_models_has_a_verdict_of_its_own(world):
    """A model whose profile is another one is not predicted; the two others are."""
    table = world["profile_correlation"].copy()
    table = pd.concat([table.assign(seed=table["seed"] + 3 * n) for n in range(3)])
    chance = np.random.default_rng(0)
    is_odd = (table["model"] == LARGEST) | (table["other"] == LARGEST)
    is_odd &= table["cells"] == "after"
    table.loc[is_odd, "correlation"] = 0.1 * chance.normal(size=is_odd.sum())
    judged = judge_all(CLAIMS, {"profile_correlation": table}).set_index("claim").loc[SAME]
    small, middle, _ = worlds.MODELS
    assert judged.set_index("language")["verdict"].to_dict() == {
        f"L1: {small} and {middle}": "agrees",
        f"L1: {small} and {LARGEST}": "disagrees",
        f"L1: {middle} and {LARGEST}": "disagrees",
    }


def test_common_errors_alone_predict_nothing():
    """Nothing is memorised by two models that are measured on the same strings.

    The plain correlation alone would agree in more than half of such studies.
    """
    verdicts, after = [], []
    for study in range(20):
        table = worlds.two_models(study)
        own = table[(table["model"] != table["other"]) & (table["cells"] == "after")]
        after.append(own["correlation"].mean())
        judged = judge_all(CLAIMS, {"profile_correlation": table}).set_index("claim")
        verdicts.append(judged.loc[SAME, "verdict"])
    assert np.mean(after) > 0.7
    # At an error rate of 5 %, 5 or less of 20 agree in 99.9 % of such counts.
    assert verdicts.count("agrees") <= 5
    assert "disagrees" not in verdicts


def test_common_errors_do_not_hide_a_profile_that_is_predicted():
    """They are alike before the treatment, but the profiles are alike beyond them."""

    def strong(cohort, since):
        return 20 * np.sin(cohort) - since

    table = worlds.two_models(0, (strong, lambda g, d: 2 * strong(g, d)))
    judged = judge_all(CLAIMS, {"profile_correlation": table}).set_index("claim")
    assert judged.loc[SAME, "verdict"] == "agrees"


def test_effects_that_only_fade_alike_are_not_alike_within_lags():
    """Each cohort has a level of its own in each model; only the fading is common."""

    def fading(number):
        levels = 1 + 0.3 * np.random.default_rng(number).normal(size=9)
        return lambda cohort, since: 60 * levels[cohort] * (0.15 + 0.85 * 0.5**since)

    table = pd.concat(
        [worlds.two_models(n, (fading([n, 1]), fading([n, 2])), seeds=1) for n in range(20)]
    )
    own = table[(table["model"] != table["other"]) & (table["cells"] == "after")]
    assert own["correlation"].mean() > 0.75
    assert abs(own["within_lags"].mean()) < 0.3
    alike = worlds.two_models(0, (fading(1), fading(1)))
    alike = alike[(alike["model"] != alike["other"]) & (alike["cells"] == "after")]
    assert (alike["within_lags"] > 0.9).all()


UNBIASED = "An influence function is unbiased for the specific effect."
REMOVAL = "An influence function by plain removal is unbiased for the total effect."


@pytest.mark.parametrize(
    ("estimate", "verdict"), [(0.2, "agrees"), (0.12, "disagrees"), (0.28, "disagrees")]
)
def test_an_influence_function_is_unbiased_within_a_tenth_of_the_effect(estimate, verdict):
    """A bias of 0.08 nats is small, but 40 % of this effect."""
    chance = np.random.default_rng(0)
    rows = [
        {"seed": seed, "cohort": cohort, "notion": notion, "model": "m", "language": "L1"}
        for seed in range(5)
        for cohort in range(8)
        for notion in ("influence", "influence_removal")
    ]
    noise = 0.01 * chance.normal(size=len(rows))
    table = pd.DataFrame(rows).assign(estimate=estimate + noise, placebo=0.0)
    judged = judge_all(CLAIMS, {"notions": table.assign(specific=0.2, total=0.2)})
    found = judged.set_index("claim")["verdict"]
    assert (found[UNBIASED], found[REMOVAL]) == (verdict, verdict)


def test_a_bias_of_just_a_tenth_is_seldom_judged():
    """Of a true effect that varies, too; at an error rate of 2.5 % on either side."""
    chance, n = np.random.default_rng(0), 200
    ends = []
    for _ in range(n):
        total = 0.2 + 0.02 * chance.normal(size=5)
        table = pd.DataFrame({"seed": range(5), "model": "m", "notion": "influence_removal"})
        table = table.assign(estimate=1.1 * total + 0.01 * chance.normal(size=5), total=total)
        found = bias_of_removal(table.assign(placebo=0.0), 0.1)
        ends.append((found.lower > 0, found.upper < 0))
    # 13 or less of 200 are judged in 99.9 % of such counts.
    assert (np.sum(ends, axis=0) <= 13).all()


@pytest.mark.parametrize(
    ("effect", "verdict"), [(0.0, "agrees"), (0.06, "disagrees"), (-0.06, "disagrees")]
)
def test_placebos_show_nothing_within_a_tenth_of_the_effect(effect, verdict):
    rows = [
        {"seed": seed, "cohort": 1, "time": time, "string_role": strings, "estimate": estimate}
        for seed in range(5)
        for time in range(1, 5)
        for strings, estimate in (("trained", 0.2), ("placebo", effect))
    ]
    noise = 0.005 * np.random.default_rng(0).normal(size=len(rows))
    about = {"model": "m", "language": "L1", "size": 1, "parameters": 1, "significant": True}
    about |= {"estimator": "difference_in_differences", "outcome": "log_likelihood"}
    table = pd.DataFrame(rows).assign(**about, std_error=1.0)
    judged = judge_all(CLAIMS, {"profile": table.assign(estimate=table["estimate"] + noise)})
    claim = "Strings that are never trained on show no effect."
    assert judged.set_index("claim").loc[claim, "verdict"] == verdict


def test_one_model_and_no_truth_leave_claims_open(world):
    """A ladder of one model has no largest and no smallest; without retraining, no error."""
    profile = world["profile"]
    alone = {"profile": profile[profile["model"] == LARGEST]}
    judged = judge_all(CLAIMS, alone).set_index("claim")
    open_ones = judged.loc["Memorisation persists more in larger models."]
    assert open_ones["verdict"] == "cannot tell"
    assert (judged.loc[judged["evidence"] == "retraining", "verdict"] == "cannot tell").all()


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_figure_is_drawn(world, study, own, tmp_path, figure):
    """From the tables of its kinds; every axis has a label, and the caption two sentences."""
    given = {**world, **study, "panel_profile": own[0], "panel_persistence": own[1]}
    drawn = named(figure.draw)(*(given[kind.name] for kind in figure.tables))
    for axes in drawn.axes:
        assert axes.get_ylabel() or axes.get_xlabel() or axes.get_title("left")
    assert not covering_titles(drawn)
    style.save(drawn, tmp_path / "figure.svg")
    assert (tmp_path / "figure.png").stat().st_size > 5000
    assert figure.caption.count(". ") == 1


@pytest.mark.parametrize("name", ["profile_correlation", "panels_correlation"])
def test_a_negative_correlation_has_a_colour_of_its_own(world, study, name):
    """And the axes say which model is on which."""
    (figure,) = (figure for figure in FIGURES if figure.name == name)
    table = {**world, **study}[name].assign(correlation=-0.8)
    axes = named(figure.draw)(table).axes[0]
    (image,) = axes.images
    negative, none, positive = (image.cmap(image.norm(value)) for value in (-0.8, 0, 0.8))
    assert len({negative, none, positive}) == 3
    assert np.nanmin(image.get_array()) == pytest.approx(-0.8)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("larger model", "smaller model")


def test_a_heat_map_colours_significant_cells_only(world):
    table = world["pooled_profile"]
    drawn = named(FIGURES[0].draw)(table)
    cells = summaries.estimates(table)
    for axes, model in zip(drawn.axes, worlds.MODELS, strict=False):
        shown = axes.collections[0].get_array()
        expected = cells[cells["model"] == model]
        assert np.ma.count(shown) == expected["significant"].sum() > 0


def test_the_report_says_what_was_found(world):
    found = part(world)
    chapter, of_dilution = found.chapters
    for model in worlds.MODELS:
        assert model in chapter.before
    assert "specific" in chapter.after
    assert "late minus early" in of_dilution.before
    assert part({}).chapters[0].before == ""
    assert "influence function" in chapter.after
    of_truth = ("estimator_errors", "notions")
    without_truth = {**world, **{name: world[name].iloc[:0] for name in of_truth}}
    assert part(without_truth).chapters[0].after == ""
