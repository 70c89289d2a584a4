"""The whole road on a tour: from grammars to the report."""

import json
import os
import shutil
import signal

import numpy as np
import pandas as pd
import pytest
import yaml
from safetensors.torch import load_file

from helpers.experiments import OF_FULL_MODELS
from helpers.model_folders import nll_of
from helpers.projects import TOUR, wait_until
from helpers.reports import MOST_OF_A_TOUR, MOST_WORDS, Page, Sentences, Unfolded
from palimpsest import tables, traces
from palimpsest.datasets.figures import FIGURES as LANGUAGE_FIGURES
from palimpsest.density.kinds import DENSITY_BINS, TEXT_BINS, TEXT_REGRESSIONS
from palimpsest.figures.figure import NOTHING_DRAWN
from palimpsest.memorisation.studies import STUDIES
from palimpsest.models.alphabets import TEXT_VOCABULARY
from palimpsest.profiles.interventions import DILUTED, STREAM, stream_without
from palimpsest.regimes import of_replicate
from palimpsest.sections import FIGURES, KINDS, NAMES
from palimpsest.unlearning.kinds import (
    JUDGED,
    PROBED,
    SEARCHED,
    STAGES,
    TUNING,
    UNLEARNED,
    UNLEARNED_MODELS,
)

# Which only the targets unlearning_tuning and unlearning_judged make
OF_SEARCH = (SEARCHED, TUNING, PROBED, JUDGED)
# Not made, because no method of the tour both erases and repairs
OF_BOTH_ROLES = "unlearning_ablation"
# Not made, because the tour has no checkpoint to ask; the study in environments has
OF_CHECKPOINTS = "measured_losses"
# Empty, because no language model reads the text of the tour
OF_PERPLEXITY = (TEXT_BINS, TEXT_REGRESSIONS)
# Empty where fewer than ten strings are of similar length, as in the tour
OF_MANY_STRINGS = (DENSITY_BINS,)
# Measures of a run that the target memorisation does not ask for
OF_DENSITIES = "results/memorisation/default/opt-1.3b-twin/L6/n12/base/starts.parquet"
REPLICATES = [of_replicate(name, 0) for name in (STREAM, *map(stream_without, (1, 2, 3)))]


def test_every_table_of_the_contract_is_there_and_valid(finished):
    """Each kind of table has a file at its documented place, which reads as that kind."""
    for kind in KINDS.values():
        if kind in OF_SEARCH or kind.name in {*OF_FULL_MODELS, OF_BOTH_ROLES, OF_CHECKPOINTS}:
            continue
        pattern = pd.Series(kind.path).str.replace(r"\{\w+\}", "*", regex=True)[0]
        paths = sorted(finished.folder.glob(pattern))
        if kind.name in ("training_set", "starts", "scores", "learning", "averages"):
            # two models on two languages, two variants, another size, another model, and what
            # densities are compared with
            assert len(paths) == 9, kind.name
        if kind in (UNLEARNED, UNLEARNED_MODELS, STAGES):
            # two methods and the two ends in two jobs; the ends have no models in the second
            assert len(paths) == 4 * 2, kind.name
            is_empty = [not len(tables.read(path, kind)) for path in paths]
            assert sum(is_empty) >= 2, kind.name
            paths = [path for path, empty in zip(paths, is_empty, strict=True) if not empty]
        assert paths, f"no {kind.name} at {kind.path}"
        for path in paths:
            rows = tables.read(path, kind)
            assert rows.empty == (kind in (*OF_PERPLEXITY, *OF_MANY_STRINGS)), path


def test_figures_and_report_are_there(finished):
    """Every figure is vector graphics and a picture, and the report shows all with something drawn.

    The others say what would make them, and are linked.
    """
    figures = sorted((finished.folder / "results/figures").glob("*.svg"))
    assert {figure.stem.partition("-")[0] for figure in figures} == set(FIGURES) - OF_FULL_MODELS
    report = (finished.folder / "results/report.html").read_text()
    pages = {page.stem: page.read_text() for page in (finished.folder / "results/report").iterdir()}
    whole = "".join(pages.values())
    for figure in figures:
        assert figure.with_suffix(".png").stat().st_size > 5_000
        assert figure.name in report
        how = "href" if f'id="{NOTHING_DRAWN}"' in figure.read_text() else "src"
        assert f'{how}="../figures/{figure.name}"' in whole
    claims = pd.read_parquet(finished.folder / "results/claims.parquet")
    for copy in (pd.read_csv, pd.read_json):
        ending = copy.__name__.removeprefix("read_")
        assert len(copy(finished.folder / f"results/claims.{ending}")) == len(claims)
    for name, text in pages.items():
        assert len(Unfolded(text).text.split()) <= MOST_WORDS.get(name, 20_000), name
    assert yaml.safe_load((finished.folder / TOUR).read_text())["title"] in report


def test_the_report_of_a_tour_is_short(copy_of_finished):
    """It is written again alone, links to every figure, and says that nothing else changed."""
    done = copy_of_finished.snakemake("report", "--config", "short_report=true")
    assert done.returncode == 0, done.stdout
    results = copy_of_finished.folder / "results"
    report = (results / "report.html").read_text()
    assert len(Sentences(report).words) <= MOST_OF_A_TOUR
    assert {path for path in Page(report).links if path.endswith(".svg")} <= {
        path.relative_to(results).as_posix() for path in results.glob("figures/*.svg")
    }
    assert "Since the last report of this folder:</b> nothing changed." in report


def test_measures_join(finished):
    """Any two measures join on the shared columns without losing or repeating a string."""
    folder = finished.folder / "results/memorisation/default/opt-1.3b-twin/L2/n16/base"
    scores = tables.read(folder / "scores.parquet", KINDS["scores"])
    keys = ["model", "language", "size", "seed", "variant", "string_id", "epoch"]
    contextual = scores[scores["measure"] == "contextual"]
    bayes = scores[scores["measure"] == "bayes"]
    joined = contextual.merge(bayes, on=keys, validate="one_to_one")
    assert len(joined) == len(contextual) == len(bayes) > 0
    strings = tables.read(
        finished.folder / "results/datasets/L2/n16-seed0/base/strings.parquet", KINDS["strings"]
    )
    seed0 = contextual[contextual["seed"] == 0]
    assert set(seed0["string_id"]) == set(strings.loc[strings["count"] > 0, "string_id"])


def test_averages_are_those_of_the_seeds(finished):
    """Mean and spread over the seeds, recomputed from the tables of single seeds."""
    folder = finished.folder / "results/memorisation/default/pythia-1b-twin/L2/n16/base"
    averages = tables.read(folder / "averages.parquet", KINDS["averages"])
    dataset = tables.read(folder / "training_set.parquet", KINDS["training_set"])
    learning = tables.read(folder / "learning.parquet", KINDS["learning"])
    contextual = dataset[dataset["measure"] == "contextual"].groupby("epoch")["mean_score"]
    rows = averages[(averages["measure"] == "contextual") & (averages["quantity"] == "mean_score")]
    rows = rows.set_index("epoch")
    pd.testing.assert_series_equal(rows["mean"], contextual.mean(), check_names=False)
    pd.testing.assert_series_equal(rows["std"], contextual.std(), check_names=False)
    losses = averages[averages["quantity"] == "test_loss"].set_index("epoch")
    by_epoch = learning.groupby("epoch")["test_loss"]
    pd.testing.assert_series_equal(losses["min"], by_epoch.min(), check_names=False)
    assert (losses["n_seeds"] == 2).all()
    assert losses["measure"].isna().all()


def test_the_bayes_column_is_the_threshold_of_bayes(finished):
    """A trace's Bayes threshold is the dataset's optimal loss, string by string."""
    folder = finished.folder / "results"
    scores = tables.read(
        folder / "memorisation/default/opt-1.3b-twin/L1/n16/base/scores.parquet", KINDS["scores"]
    )
    strings = tables.read(folder / "datasets/L1/n16-seed1/base/strings.parquet", KINDS["strings"])
    bayes = scores[(scores["measure"] == "bayes") & (scores["seed"] == 1)]
    joined = bayes.merge(strings, on="string_id", validate="many_to_one")
    assert len(joined)
    assert (joined["threshold"] == joined["optimal_loss"]).all()


def test_traces_begin_untrained_and_learn(finished):
    """Epoch 0 is near a uniform guess over the vocabulary, and training lowers the loss."""
    for path in (finished.folder / "results/runs").rglob("trace.parquet"):
        for trace in traces.read_all(path):
            # A stream of three macro-batches, or one that is measured after each quarter, or at
            # its end
            epochs = [0, 1, 2, 3, 4]
            if trace.run["variant"].startswith(DILUTED):
                epochs = [epoch * trace.run["size"] // 40 for epoch in epochs]
            elif trace.run["variant"] in REPLICATES:
                epochs = [0, 3]
            elif trace.run["variant"].startswith(STREAM):
                epochs = epochs[:4]
            assert trace.epochs.tolist() == epochs
            # Nine terminals, start and end; or the tokens of a tokenizer of texts
            n_tokens = TEXT_VOCABULARY if trace.run["language"] == "example" else 11
            assert abs(trace.loss[0].mean() - np.log(n_tokens)) < 0.2
            assert trace.loss[-1].mean() < trace.loss[0].mean()


def test_both_engines_leave_the_same_files(finished):
    """Nothing downstream can tell which engine trained a model."""
    runs = finished.folder / "results/runs"
    engines = {
        path.relative_to(runs).parts[2]: json.loads(path.read_text())["engine"]
        for path in runs.rglob("manifest.json")
    }
    assert engines == {
        "opt-1.3b-twin": "fleet",
        "opt-2.7b-twin": "fleet",
        "pythia-1b-twin": "deepspeed",
    }
    for name in ("trace.parquet", "manifest.json"):
        assert (runs / "base/default/pythia-1b-twin/L1/n16-seed0" / name).exists()
        assert (runs / "base/default/opt-1.3b-twin/L1/n16-seed0" / name).exists()


def test_weights_are_saved_on_demand(copy_of_finished):
    """Asked for later, they are trained again, because nothing else has kept them.

    Another program reads the folder made from them, and predicts as the trace says.
    """
    run = copy_of_finished.folder / "results/runs/base/default/opt-2.7b-twin/L2/n16-seed0"
    target = str((run / "huggingface").relative_to(copy_of_finished.folder))
    dataset = copy_of_finished.folder / "results/datasets/L2/n16-seed0/base/strings.parquet"
    weights = {}
    for engine in ("fleet", "deepspeed"):
        settings = ["save_weights=huggingface", f"engine={{opt-2.7b-twin: {engine}}}"]
        done = copy_of_finished.snakemake(target, "--config", *settings)
        assert done.returncode == 0, done.stdout
        weights[engine] = load_file(run / "weights.safetensors")
        trace = tables.read(run / "trace.parquet", KINDS["trace"])
        last = trace[trace["epoch"] == trace["epoch"].max()].set_index("string_id")["nll"]
        nll = nll_of(run / "huggingface", tables.read(dataset, KINDS["strings"]))
        assert (nll - last).abs().max() < 1e-3
    one, other = weights.values()
    assert {name: t.shape for name, t in one.items()} == {n: t.shape for n, t in other.items()}
    assert max((one[name] - other[name]).abs().max() for name in one) < 1e-2


def test_saving_weights_later_trains_what_lacks_them(finished):
    """The target `finetune` then asks for the weights of every run, or for folders as well."""
    jobs = finished.jobs("finetune", "--config", "save_weights=true")
    assert sum(count for rule, count in jobs.items() if rule.startswith("train")) == 12
    assert "export_model" not in jobs
    with_folders = finished.jobs("finetune", "--config", "save_weights=huggingface")
    of_one_model = len(list((finished.folder / "results/runs").rglob("manifest.json")))
    left_out = (finished.folder / "results/runs").glob("leave-one-out*/**/manifest.json")
    of_one_model -= len(list(left_out))
    assert with_folders == {
        **jobs,
        "export_model": of_one_model,
        "total": jobs["total"] + of_one_model,
    }


def test_a_variant_that_no_study_asks_for_is_a_target(project):
    """The twin is trained on other variants by a study."""
    jobs = project.jobs("results/runs/dedup/default/opt-2.7b-twin/L2/n16-seed0/trace.parquet")
    assert jobs["train_one_run"] == 1


def test_a_twin_that_no_study_asks_for_is_a_target(project):
    """Its run is a job of its own."""
    jobs = project.jobs("results/runs/dedup/default/gemma-2-2b-twin/L3/n20-seed0/trace.parquet")
    assert jobs["train_one_run"] == 1


def test_a_second_run_has_nothing_to_do(finished):
    """Nothing is rebuilt when nothing changed."""
    done = finished.snakemake("--dry-run")
    assert "Nothing to be done" in done.stdout


def test_a_threshold_retrains_nothing(finished):
    """A changed threshold redoes the measures and what depends on them, but no training."""
    jobs = finished.jobs("--config", "memorisation={loss_threshold: 0.3}")
    assert jobs["measure"] == 9
    assert jobs["measure_targets"] == 1
    assert not [rule for rule in jobs if rule.startswith(("train", "dataset", "language"))]


def test_the_order_of_keys_is_nothing(copy_of_finished):
    """The same configuration, its keys in another order, has nothing to do."""
    path = copy_of_finished.folder / TOUR
    text, before = path.read_text(), "{epochs: 4, checkpoint_every: 1}"
    assert before in text
    path.write_text(text.replace(before, "{checkpoint_every: 1, epochs: 4}"))
    assert "Nothing to be done" in copy_of_finished.snakemake("--dry-run").stdout


def test_an_edited_measure_is_measured_anew_and_nothing_is_trained(copy_of_finished):
    """The code of a script counts as the rule's, so results never go stale silently."""
    path = copy_of_finished.folder / "workflow/scripts/palimpsest/memorisation/measures.py"
    path.write_text(path.read_text() + "\nassert True\n")
    jobs = copy_of_finished.jobs()
    assert jobs["measure"] == 9
    assert jobs["claims"] == jobs["write_report"] == 1
    assert not [rule for rule in jobs if rule.startswith(("train", "dataset", "language"))]


def test_an_added_seed_trains_that_seed_alone(copy_of_finished):
    """With one more seed, the existing traces do not change in any byte."""
    before = copy_of_finished.contents()
    target = "results/runs/base/default/opt-1.3b-twin/L2/n16-seed7/trace.parquet"
    done = copy_of_finished.snakemake(target, "--config", "seeds=[0, 1, 7]")
    assert done.returncode == 0, done.stdout
    after = copy_of_finished.contents()
    assert target in after
    assert before.items() <= after.items()
    log = (copy_of_finished.folder / "logs/train/default/opt-1.3b-twin/L2/n16.log").read_text()
    # base, dedup, dedup-matched, and two targets with and without
    assert "runs 1 to 7 of 7" in log


def test_the_same_study_again_gives_the_same_traces(finished, project):
    """Two runs with the same seeds, in two folders, give traces that are equal bit for bit."""
    target = "results/runs/base/default/pythia-1b-twin/L1/n16-seed1/trace.parquet"
    done = project.snakemake(target)
    assert done.returncode == 0, done.stdout
    again = (project.folder / target).read_bytes()
    assert again == (finished.folder / target).read_bytes()


def test_a_snakemake_killed_while_it_writes_tables(copy_of_finished):
    """Tables that a killed job had begun with are made again, without being asked to."""
    project = copy_of_finished
    before = project.contents()
    shutil.rmtree(project.folder / "results/memorisation")
    targets = ["memorisation", OF_DENSITIES]
    with project.running(*targets) as process:
        wait_until(
            lambda: list(project.folder.glob("results/memorisation/*/*/*/*/*/starts.parquet"))
        )
        os.killpg(process.pid, signal.SIGKILL)
    done = project.snakemake(*targets)
    assert done.returncode == 0, done.stdout
    after = project.contents()
    tables = [name for name in before if name.startswith("results/memorisation/")]
    assert tables
    assert all(after[name] == before[name] for name in tables)


@pytest.mark.parametrize(
    "target",
    [
        "all",
        "languages",
        "datasets",
        "finetune",
        "figures",
        "report",
        *(
            name for name in NAMES if name not in ("audit", "atlas")
        ),  # the tour asks nothing of these
        *(name for name in STUDIES if name not in OF_FULL_MODELS),
        "unlearning_tuning",
        "results/claims.parquet",
        "results/figures/tradeoff-L1.svg",
        "results/runs/with-s1/default/opt-1.3b-twin/L2/n16-seed0/trace.parquet",
        "results/unlearning/forgetting/opt-1.3b-twin/L1/n16-seed0/scores.parquet",
        "results/figures/unlearning_scores-L1.svg",
        "results/figures/panel_profile-example.svg",
        "results/figures/profile_truth-L2.svg",
        "results/density/leakage/opt-1.3b-twin/L6/n16/leakage.parquet",
        "results/density/texts/example/density.parquet",
        "results/figures/density_memorised-L6.svg",
        "results/records.parquet",
        "results/records/example/answers.parquet",
        "results/figures/record_shares-example.svg",
    ],
)
def test_every_target_can_be_asked_for_alone(project, target):
    """From nothing, a dry run of each named target and of single files lists its jobs."""
    assert project.jobs(target)["total"] >= 2


def test_a_stream_of_another_model_and_seed_is_trained_once_through(project):
    """A run that no section asks for has the regime of the section's runs of its variant."""
    target = "results/runs/stream/default/opt-2.7b-twin/L1/n16-seed5/trace.parquet"
    done = project.snakemake("--dry-run", "--printshellcmds", target)
    assert "--regimes one-pass:1" in done.stdout


@pytest.mark.parametrize("configfiles", [(), (TOUR,), ("config/paper.yaml",)])
def test_the_shipped_configurations_list_all_their_jobs(project, configfiles):
    """The default experiment, the tour and the paper's study are valid and complete."""
    jobs = project.jobs(configfiles=configfiles)
    if configfiles == (TOUR,):
        # Languages have figures of their own, and there are two: one is that of densities. Records
        # and a table of losses have one each.
        more = len(LANGUAGE_FIGURES) + 1
        assert jobs["figure"] == len(FIGURES.keys() - OF_FULL_MODELS) + more
    elif configfiles:
        # All three seeds of a model, a language and a size are one job.
        # Those that keep the losses of their tokens have a rule of their own.
        on_base = [n for rule, n in jobs.items() if rule.startswith("train_full_on_base")]
        assert sum(on_base) == 18 * 8 * 4
        assert {rule for rule in jobs if "twins" in rule} == {
            "train_twins_on_base_and_leave_one_out_and_leave_one_out_again",
            "train_twins_on_stream",
            "train_twins_on_stream__2",
            "train_twins_on_stream_replicates",
            "train_twins_on_diluted",
            "train_twins_on_diluted__2",  # of another size
            "train_twins_on_leaked_0",
            "train_twins_on_leaked_1",
            "train_twins_on_without_production",
            "train_twins_on_base",  # what densities are compared with
            "train_twins_on_marked",
            "train_twins_on_shuffled",
        }
    else:
        assert {rule: count for rule, count in jobs.items() if "twins" in rule} == {
            "train_twins_on_base": 18,
            "train_twins_on_base_and_leave_one_out_and_leave_one_out_again": 2,
            "train_twins_on_base_and_dedup_and_dedup_matched_and_targets": 1,
            "train_twins_on_stream": 2,
            "train_twins_on_stream__2": 1,  # also without each macro-batch
            "train_twins_on_stream_replicates": 1,
            "train_twins_on_diluted": 1,
            "train_twins_on_diluted__2": 1,  # of another size
            "train_twins_on_leaked_0": 1,  # four numbers of paraphrases, without a copy
            "train_twins_on_leaked_1": 1,
            "train_twins_on_without_production": 1,
            "train_twins_on_base__2": 1,  # also keeps weights
            "train_twins_on_marked": 2,  # of two models
            "train_twins_on_shuffled": 2,
        }
        assert not [rule for rule in jobs if "full" in rule]


@pytest.mark.parametrize(
    "name",
    ["full", "one-gpu", "pretrained", "pretrained-twins", "pretrained-unlearning", "encoders"],
)
def test_the_configurations_of_the_other_pages_list_their_jobs(project, name):
    """They are valid, and a dry run needs neither a GPU nor a model."""
    assert project.jobs(configfiles=(f"config/{name}.yaml",))["total"] > 10
