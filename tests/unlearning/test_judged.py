"""Metrics of unlearning, judged on models of which it is known what they were trained on."""

import numpy as np
import pandas as pd
import pytest

from helpers.experiments import DEFAULT, ROOT, experiment, message
from helpers.unlearning_twins import RECIPE, assignment, trained_twins
from helpers.unlearning_world import FORGET, STRINGS, losses, predictions, token_scores
from palimpsest import tables
from palimpsest.errors import UserError
from palimpsest.jobs.query import QueryFiles
from palimpsest.sections import KINDS
from palimpsest.statistics import clopper_pearson
from palimpsest.unlearning.judging import judged as judging
from palimpsest.unlearning.judging.jobs import PROBE, judge_of
from palimpsest.unlearning.judging.parts import EIGHTH, SECOND, every
from palimpsest.unlearning.judging.patching import patched
from palimpsest.unlearning.judging.probe import probe
from palimpsest.unlearning.section import SECTION

# The grammar has a rule that is never reached, and says so.
pytestmark = pytest.mark.filterwarnings("ignore::palimpsest.languages.GrammarWarning")

JUDGED = "config/judged.yaml"
N = 40
NAMES = ["none", "traced", "retrain", "npo"]
STAGES = ("unlearning", "4-bit", "relearning", "patching")
TAUGHT = every(SECOND, FORGET)
TRAINED = (STRINGS["split"] == "train").to_numpy()


# Worlds whose answer is known


def table(name, by_stage, seed):
    """A table `unlearning_probed` from losses [models, strings] of each stage."""
    parts = []
    for stage, loss in by_stage.items():
        keys = {"model": "m", "language": "L", "size": 100, "seed": seed, "method": name}
        origin = np.repeat(np.arange(len(loss)), len(STRINGS))
        columns = {**predictions(loss), **token_scores(loss)}
        parts.append(pd.DataFrame({**keys, "stage": stage, "origin": origin, **columns}))
    return pd.concat(parts)[KINDS["unlearning_probed"].names]


def world(seed, knows, spread=0.1):
    """The tables of one problem.

    `knows` maps a stage and a kind of models to the forget strings bool[strings] that they know.
    Retrained models know none.
    """
    chance, of_kinds = np.random.default_rng(seed), {name: {} for name in NAMES}
    for stages in (STAGES[:3], STAGES[3:]):
        for name in NAMES:
            n = 2 * N if name == "retrain" else N
            of_kinds[name] |= {
                stage: losses(chance, n, TRAINED | knows.get((stage, name), False), spread)
                for stage in stages
            }
    return [table(name, by_stage, seed) for name, by_stage in of_kinds.items()]


def of_worlds(knows, seeds=(0, 1, 2)):
    """The table of some problems of one world."""
    probed = [each for seed in seeds for each in world(seed, knows)]
    found = judging.judged(
        probed,
        [STRINGS.assign(seed=seed) for seed in seeds],
        names=NAMES,
        study=8,
        confidence="geometric_mean",
        thresholds="exact",
        delta=1e-5,
        bin_width=0.5,
    )
    return found.set_index(["metric", "statistic", "method"])


# The method hides what it leaves: after relearning, its models know the other forget strings again.
TRUE = {
    **{(stage, "none"): FORGET for stage in STAGES},
    **{(stage, "traced"): every(EIGHTH, FORGET) for stage in STAGES},
    ("relearning", "npo"): FORGET,
    ("patching", "npo"): FORGET,
}
# Relearning and rounding make originals forget, and what was forgotten stays so
FRAGILE = {("unlearning", "none"): FORGET, ("unlearning", "traced"): every(EIGHTH, FORGET)}
NOTHING = {}  # nobody was trained on anything that matters


@pytest.fixture(scope="module")
def studies():
    """Few comparisons: they take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "STUDIES", 4)
        yield


@pytest.fixture(scope="module")
def true(studies):
    return of_worlds(TRUE)


@pytest.fixture(scope="module")
def fragile(studies):
    return of_worlds(FRAGILE)


@pytest.fixture(scope="module")
def nothing(studies):
    return of_worlds(NOTHING)


def test_a_metric_that_tells_is_said_to_tell(true, nothing):
    """By pairs of models and by the models that it calls trained; by neither where none was."""
    row = true.loc[("auc_loss", "auc", "none")]
    assert row["estimate"] == 1
    assert np.isnan(row["lower"])
    assert row["placebo_lower"] < 0.5 < row["placebo_upper"]
    row = true.loc[("auc_loss", "called", "none")]
    assert row["estimate"] == 1
    assert row["lower"] == pytest.approx(clopper_pearson(1, 3 * N)[0])
    assert row["n_compared"] == 3 * N
    assert row["n_problems"] == 3
    assert 0.5 < true.loc[("loss", "dose", "traced"), "estimate"] <= 1
    for metric in ("loss", "auc_loss", "auc_min_k", "leak_at_1"):
        row = nothing.loc[(metric, "auc", "none")]
        assert row["lower"] < 0.5 < row["upper"]
        row = nothing.loc[(metric, "dose", "traced")]
        assert row["lower"] < 0 < row["upper"]
        assert nothing.loc[(metric, "called", "none"), "upper"] < 0.3


def test_false_alarms_are_at_most_what_they_are_to_be():
    """Of models like those of the reference, over many problems, also with ties."""
    chance = np.random.default_rng(0)
    for draw in (chance.normal, lambda size: chance.integers(0, 3, size).astype(float)):
        shares = []
        for _ in range(400):
            values = draw(size=3 * N)
            shares.append(judging._called(values[:N], values[N:]).mean())
        assert np.mean(shares) < judging.LEVEL + 3 * np.std(shares) / 20
    assert judging._called(np.array([19.0]), np.arange(19.0)).all()
    assert not judging._called(np.array([18.0]), np.arange(19.0)).any()  # a tie with the largest


def test_a_verdict_that_lasts_and_one_that_does_not(true, fragile):
    for after in ("4_bit", "relearned", "patched"):
        assert true.loc[("auc_loss", f"kept_{after}", "none"), "estimate"] == 1
        assert fragile.loc[("auc_loss", f"kept_{after}", "none"), "upper"] < 0.5


def test_what_comes_back_is_found_beside_what_retrained_models_do(true, fragile):
    row = true.loc[("auc_loss", "returned_relearned", "npo")]
    assert row["estimate"] > 0.9
    assert row["placebo_upper"] < 0.3
    row = true.loc[("auc_loss", "returned_4_bit", "npo")]
    assert row["estimate"] < 0.3
    row = fragile.loc[("auc_loss", "returned_relearned", "npo")]
    assert row["lower"] <= row["placebo_upper"]
    assert row["estimate"] < 0.3


def test_patched_models_are_compared_with_retrained_models_as_they_are(true, fragile, studies):
    """Patched retrained models say nothing: the layers of an original do not fit them."""
    row = true.loc[("auc_loss", "returned_patched", "npo")]
    assert row["estimate"] > 0.9
    assert np.isnan(row["placebo"])
    assert fragile.loc[("auc_loss", "returned_patched", "npo"), "estimate"] < 0.3
    broken = of_worlds({**TRUE, ("patching", "retrain"): FORGET})
    assert broken.loc[("auc_loss", "returned_patched", "npo"), "estimate"] > 0.9


def test_patching_undoes_a_share_of_what_a_method_raised_the_loss_by(true, fragile):
    """All of it where the patched models know the strings again, and none where they do not."""
    assert true.loc[("loss", "undone_patched", "npo"), "estimate"] == pytest.approx(1, abs=0.1)
    assert fragile.loc[("loss", "undone_patched", "npo"), "estimate"] == pytest.approx(0, abs=0.1)


def test_what_is_asked_after_relearning_is_asked_of_other_strings(studies):
    """Models that only know the strings that were learned again have returned by no metric."""
    found = of_worlds({**FRAGILE, ("relearning", "npo"): TAUGHT})
    assert found.loc[("loss", "returned_relearned", "npo"), "estimate"] < 0.3
    assert found.loc[("relearned_loss", "auc", "npo"), "estimate"] == 1
    assert np.isnan(found.loc[("relearned_loss", "auc", "npo"), "placebo"])


def test_comparisons_tell_originals_and_rarely_retrained_models(true, nothing):
    """PrivLeak has no interval, and says nothing, if every original model has an AUC of 1."""
    assert true.loc[("privleak_loss", "study", "none"), "estimate"] == 0
    for metric in ("ks_log_p", "forgetting_quality", "leak_at_1", "auc_loss"):
        assert true.loc[(metric, "study", "none"), "estimate"] == 1
        assert nothing.loc[(metric, "study", "none"), "estimate"] < 0.6


def test_a_comparison_has_no_model_on_both_sides():
    models = {
        "retrain": {"unlearning": predictions_of(12)},
        "none": {"unlearning": predictions_of(6)},
    }
    chance = np.random.default_rng(0)
    for _ in range(20):
        one, other = judging._draw(chance, models, "retrain", 6)
        assert sorted([*one, *other]) == list(range(12))
        one, other = judging._draw(chance, models, "none", 6)
        assert sorted(one) == list(range(6))
        assert len(set(other)) == 6
        assert max(other) < 12


def predictions_of(n):
    loss = losses(np.random.default_rng(0), n, TRAINED)
    return judging.by_stage(table("none", {"unlearning": loss}, 0), STRINGS)["unlearning"]


def test_a_retrained_model_is_calibrated_by_the_others():
    """With its own loss in the mean, retrained models would look less trained than they are."""
    found = judging.World.of(dict(zip(NAMES, world(3, TRUE), strict=True)), STRINGS.assign(seed=3))
    problem = found.with_forget(found.problem.forget)
    loss = found.models["retrain"]["unlearning"].loss
    expected = []
    for place, own in enumerate(loss):
        score = np.delete(loss, place, axis=0).mean(axis=0) - own
        pairs = score[problem.forget][:, None] > score[problem.never_trained]
        expected.append(pairs.mean())
    values = found.values(problem, "retrain", "unlearning")["auc_calibrated"]
    np.testing.assert_allclose(values, expected)
    assert problem.never_trained.sum() == 20 - 12  # without placebos


def test_models_measured_on_another_dataset_are_refused():
    found = table("none", {"unlearning": losses(np.random.default_rng(0), 2, TRAINED)}, 0)
    with pytest.raises(UserError, match="seed 0, were measured on another dataset"):
        judging.by_stage(found, STRINGS.iloc[::-1])


def test_shares_know_no_more_than_their_trials_and_one_problem_has_no_interval():
    n = pd.Series([10, 10])
    found = judging.over_problems(pd.Series([0.0, 0.0]), n, "called")
    assert (found.mean, found.lower) == (0, 0)
    assert found.upper == pytest.approx(clopper_pearson(0, 20)[1])
    wide = judging.over_problems(pd.Series([0.0, 1.0]), n, "called")
    assert (wide.lower, wide.upper) == (0, 1)
    assert np.isnan(judging.over_problems(pd.Series([0.7]), n[:1], "called").lower)
    near = pd.Series([0.04, 0.05, 0.06])  # many comparisons of few models in each problem
    assert judging.over_problems(near, pd.Series([4] * 3), "study").upper < 0.08
    assert judging.over_problems(near, pd.Series([4] * 3), "called").upper > 0.2
    assert judging.over_problems(near * 0, pd.Series([4] * 3), "study").upper > 0.2
    missing = judging.over_problems(pd.Series([0.7, np.nan]), n, "called")
    assert missing.mean == 0.7
    assert np.isnan(missing.lower)


# Jobs


def asked(**changes):
    return experiment(DEFAULT, JUDGED, command_line={"unlearning": {"judge": changes}})


def test_models_that_judge_are_trained_only_on_demand():
    """By default, nothing is judged."""
    assert judge_of(experiment(DEFAULT).settings) is None
    found = asked(seeds=[7], n=20)
    on_demand = [runs for runs in found.replicates_on_demand if runs.seeds == (7,)]
    assert [(runs.variant, len(runs.replicates)) for runs in on_demand] == [
        ("original", 20),
        ("traced", 20),
        ("retain", 40),
    ]
    assert not any(runs in found.requests for runs in on_demand)
    jobs = [job for job in SECTION.unfinished(found.settings) if job.given["query"] == PROBE]
    assert len(jobs) == 1
    assert set(jobs[0].given["values"]["models"]) == {"none", "traced", "retrain", "npo",
                                                      "gradient-difference"}  # fmt: skip


def test_the_target_needs_its_block():
    said = message(lambda: experiment(DEFAULT, targets=["unlearning_judged"]))
    assert "unlearning/judge: is null, so there is nothing to make for the target" in said
    assert experiment(DEFAULT, JUDGED, targets=["unlearning_judged"]).settings


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"study": 65}, "unlearning/judge/study: 65 models of each kind are more than "),
        ({"methods": ["npos"]}, "unlearning/judge/methods[0]: unknown method 'npos'; known: "),
        ({"methods": ["none"]}, "unlearning/judge/methods[0]: 'none' is always there; leave it"),
        ({"n": 18}, "unlearning/judge/n: 18 is not allowed; must be a whole number from 19 to"),
    ],
)
def test_wrong_values_are_refused(changes, said):
    command = {"unlearning": {"judge": changes}}
    target = ["unlearning_judged"]
    assert said in message(
        lambda: experiment(DEFAULT, JUDGED, command_line=command, targets=target)
    )


# Models


@pytest.fixture(scope="module")
def probed(tmp_path_factory, on_the_cpu):
    """Two models of each variant, asked in four stages; three of twelve strings are to forget."""
    folder = tmp_path_factory.mktemp("probed")
    trained = trained_twins(folder, 2)
    files = [
        QueryFiles(
            trained.datasets["original"],
            trained.weights,
            [str(folder / name / "probed.parquet")],
            str(folder / name / "manifest.json"),
        )
        for name in ("none", "retrain", "ascent")
    ]
    ascent = [{"erase": "gradient-ascent", "share": 0.5, "rate": 1.0}]
    models = {
        "none": {"variant": "original", "n": 2, "phases": []},
        "retrain": {"variant": "retain", "n": 2, "phases": []},
        "ascent": {"variant": "original", "n": 2, "phases": ascent},
    }
    values = {"models": models, "cutoff": 1.0, "relearn": 3}
    probe.query.run(files, values, assignment(folder / "asked"))
    kind = KINDS["unlearning_probed"]
    return trained, {
        name: tables.read(one.tables[0], kind) for name, one in zip(models, files, strict=True)
    }


def test_models_are_measured_as_they_are_rounded_and_relearning(probed):
    trained, found = probed
    strings = tables.read(trained.datasets["original"], KINDS["strings"])
    for name, variant in (("none", "original"), ("retrain", "retain")):
        for origin in (0, 1):
            last = trained.trace(variant, origin, RECIPE.epochs)
            as_is = of(found[name], "unlearning", origin)
            np.testing.assert_allclose(as_is["nll"], last["nll"], rtol=1e-5)
            assert list(as_is["string_id"]) == list(strings["string_id"])
            rounded = of(found[name], "4-bit", origin)
            assert 0 < abs(rounded["nll"].to_numpy() / as_is["nll"].to_numpy() - 1).max() < 0.5
    forget = (strings["split"] == "forget").to_numpy()
    taught = every(SECOND, forget)
    change = {
        name: of(table, "relearning", 0)["nll"].to_numpy() - of(table, "unlearning", 0)["nll"]
        for name, table in found.items()
    }
    assert (change["ascent"][taught] < 0).all()
    rise = of(found["ascent"], "unlearning", 0)["nll"] - of(found["none"], "unlearning", 0)["nll"]
    assert (rise[forget] > 0).all()


def test_a_patched_model_has_the_lower_layers_of_an_original(probed):
    """Of an original, that is the model itself; of others, neither the model nor the original."""
    _, found = probed
    for origin in (0, 1):
        as_is, patched = (of(found["none"], stage, origin)["nll"] for stage in STAGES[::3])
        np.testing.assert_allclose(as_is, patched, rtol=1e-5)
        own = of(found["retrain"], "unlearning", origin)["nll"]
        of_retrained = of(found["retrain"], "patching", origin)["nll"]
        assert abs(of_retrained / own - 1).max() > 1e-3
        assert abs(of_retrained / as_is - 1).max() > 1e-3


@pytest.mark.parametrize(
    ("names", "lower"),
    [
        (
            [
                "gpt_neox.embed_in.weight",
                "gpt_neox.layers.0.mlp.weight",
                "gpt_neox.layers.1.mlp.weight",
                "gpt_neox.final_layer_norm.weight",
                "embed_out.weight",
            ],
            2,
        ),
        (
            [
                "model.decoder.embed_tokens.weight",
                "model.decoder.embed_positions.weight",
                "model.decoder.layers.0.fc1.weight",
                "model.decoder.layers.1.fc1.weight",
                "model.decoder.layers.2.fc1.weight",
                "model.decoder.final_layer_norm.weight",
                "lm_head.weight",
            ],
            3,
        ),
    ],
)
def test_embeddings_and_the_lower_half_of_the_layers_are_patched(names, lower):
    own, other = dict.fromkeys(names, "own"), dict.fromkeys(names, "other")
    found = patched(own, other)
    assert list(found.values()) == ["other"] * lower + ["own"] * (len(names) - lower)


def of(table, stage, origin):
    return table[(table["stage"] == stage) & (table["origin"] == origin)].reset_index(drop=True)


def test_an_eighth_of_the_strings_stays_in_training(tmp_path):
    """Whole strings with their copies, and all that is retained."""
    from palimpsest.corpora.grammar_corpus import GrammarCorpus
    from palimpsest.datasets.build import DatasetRequest
    from palimpsest.datasets.sampling import Sampler
    from palimpsest.unlearning import forgetting_data

    sampler = Sampler("L3", GrammarCorpus.from_file(ROOT / "config/languages/L3.pcfg"), 0)
    options = {"validation": 4, "groups": "string", "share": 0.5, "forget_file": []}
    request = DatasetRequest(sampler, "traced", 40, 8, False, options=options)
    original, traced = forgetting_data.original(request), forgetting_data.traced(request)
    forget = (original["split"] == "forget").to_numpy()
    stays = every(EIGHTH, forget)
    assert stays.sum() == -(-forget.sum() // 8) > 1
    assert (traced["count"][forget & ~stays] == 0).all()
    assert (traced["count"] == original["count"])[~forget | stays].all()
    assert set(traced["variant"]) == {"traced"}
