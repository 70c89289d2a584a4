"""Streams: their datasets, and runs that see each string once."""

import itertools
import subprocess

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp

from helpers.commands import GRAMMAR, finetune, query
from palimpsest import manifests, tables, traces
from palimpsest.corpora import read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.kinds import STRINGS
from palimpsest.datasets.sampling import Sampler
from palimpsest.profiles.interventions import STREAM, replaced_cohort, stream_without
from palimpsest.profiles.kinds import CONTINUATIONS, INFLUENCES
from palimpsest.profiles.measured import cohorts_in, learning_rates
from palimpsest.profiles.section import QUESTIONS

OPTIONS = {"cohorts": 4, "panel": 3, "validation": 6}
CORPUS = read_corpus(GRAMMAR)
VARIANTS = [STREAM, stream_without(2), stream_without(4)]
STREAM_OF = {"stream-0": "stream", "stream-1": "stream", "stream-without-2-0": stream_without(2)}
REPLICATES = list(STREAM_OF)


def stream(variant=STREAM, size=40, seed=0, **options) -> pd.DataFrame:
    """A dataset of four macro-batches of ten strings."""
    made_by = "palimpsest.profiles.streams:stream"
    given = {**OPTIONS, **options}
    sampler = Sampler("L2", CORPUS, seed)
    return build(sampler, variant, size, 8, False, options=given, made_by=made_by)


def ids(table: pd.DataFrame, **wanted) -> set[str]:
    """The names of the rows with these values."""
    for name, value in wanted.items():
        table = table[table[name] == value]
    return set(table["string_id"])


def test_macro_batches_are_equally_large_and_disjoint():
    table = stream()
    assert table["string_id"].is_unique
    trained = table[table["count"] > 0]
    assert (trained["count"] == 1).all()
    assert trained["cohort"].value_counts().to_dict() == {1: 10, 2: 10, 3: 10, 4: 10}
    panel = table[table["split"] == "panel"]
    assert panel["cohort"].value_counts().to_dict() == {1: 3, 2: 3, 3: 3, 4: 3}
    validation = table[table["split"] == "validation"]
    assert len(validation) == 6
    assert validation["cohort"].isna().all()
    assert (validation["count"] == 0).all()


def test_without_a_macro_batch_only_this_macro_batch_is_another():
    whole, without = stream(), stream(stream_without(2))
    for cohort in (1, 3, 4):
        assert ids(whole, cohort=cohort) == ids(without, cohort=cohort)
    assert not ids(whole, cohort=2) & ids(without, cohort=2)
    assert len(ids(without, cohort=2)) == 10
    assert ids(without, split="held_out") == ids(whole[whole["cohort"] == 2], split="panel")
    assert ids(without, split="validation") == ids(whole, split="validation")
    assert not ids(without, split="panel")
    # The same strings take the place of any macro-batch.
    assert ids(stream(stream_without(4)), cohort=4) == ids(without, cohort=2)


def test_macro_batches_and_validation_strings_are_exchangeable():
    """Frequent strings are drawn early, so the order of drawing must not decide the macro-batch."""
    rows = [stream(size=80, seed=seed, cohorts=2, panel=2, validation=40) for seed in range(8)]
    table = pd.concat(rows)
    groups = [table.loc[table["cohort"] == cohort, "log_prob"] for cohort in (1, 2)]
    groups.append(table.loc[table["split"] == "validation", "log_prob"])
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert ks_2samp(groups[one], groups[other]).pvalue > 0.001


@pytest.mark.parametrize("name", ["base", "with-s0", "without-s0", STREAM])
def test_other_variants_replace_no_macro_batch(name):
    assert replaced_cohort(name) is None


def test_the_learning_rate_of_a_cohort_is_the_mean_over_its_steps():
    """40 strings, 5 a step: 8 steps, 4 to warm up, two steps a cohort."""
    recipe = {"learning_rate": 1.0, "epochs": 4, "batch_size": 5, "warmup_ratio": 0.5}
    assert learning_rates(stream(), recipe) == {1: 0.125, 2: 0.625, 3: 0.875, 4: 0.375}


@pytest.fixture(scope="module", params=["fleet", "deepspeed"])
def runs(request, tmp_path_factory):
    """The traces and manifests of a stream, of two streams without a macro-batch, and replicates.

    And the tables about the trained model of the stream, the only one that keeps its weights.
    """
    folder = tmp_path_factory.mktemp(request.param)
    trained = [*VARIANTS, *REPLICATES]
    files = {name: folder / f"runs/{name}" for name in trained}
    for name in VARIANTS:
        tables.write(folder / f"data/{name}/strings.parquet", stream(name), STRINGS)
    command = finetune(
        engine=request.param,
        dataset=[folder / f"data/{STREAM_OF.get(name, name)}/strings.parquet" for name in trained],
        regimes=[*["one-pass:1"] * len(VARIANTS), "one-pass:4:0", "one-pass:4:1", "one-pass:4:0"],
        trace=[files[name] / "trace.parquet" for name in trained],
        manifest=[files[name] / "manifest.json" for name in trained],
        weights=[files[STREAM] / "weights.safetensors"],
        state=folder / "state",
        batch_size=5,
        threads=1,
        memory_mb=4000,
        gpus=0,
        evaluate_every=3,
    )
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    # Twice the same model, because a job questions the models of several seeds
    copies = [folder / f"profiles/{number}" for number in range(2)]
    command = query(
        QUESTIONS,
        [copy / "continuations.parquet" for copy in copies],
        [copy / "influences.parquet" for copy in copies],
        engine=request.param,
        dataset=[folder / f"data/{STREAM}/strings.parquet"] * 2,
        weights=[files[STREAM] / "weights.safetensors"] * 2,
        manifest=[copy / "manifest.json" for copy in copies],
        state=folder / "state",
        batch_size=5,
        threads=1,
        memory_mb=4000,
        gpus=0,
    )
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    found = {
        name: (traces.read(file / "trace.parquet"), manifests.read(file / "manifest.json"))
        for name, file in files.items()
    }
    kept = [name for name in trained if (files[name] / "weights.safetensors").exists()]
    answers = [
        [tables.read(copy / f"{kind.name}.parquet", kind) for kind in (CONTINUATIONS, INFLUENCES)]
        for copy in copies
    ]
    return {**found, "kept": kept, "answers": answers}


@pytest.mark.slow
def test_a_stream_is_measured_after_every_macro_batch(runs):
    """Whatever `epochs` and `evaluate_every` are; only the panel and the validation strings."""
    trace, manifest = runs[STREAM]
    assert trace.epochs.tolist() == [0, 1, 2, 3, 4]
    table = stream()
    assert set(trace.string_ids) == ids(table, split="panel") | ids(table, split="validation")
    assert sorted(cohorts_in(trace, table)) == [1] * 3 + [2] * 3 + [3] * 3 + [4] * 3 + [np.inf] * 6
    assert manifest["configuration"]["recipe"]["epochs"] == 4
    without, _ = runs[stream_without(2)]
    left_out = ids(stream(stream_without(2)), split="held_out")
    assert set(without.string_ids) == left_out | ids(table, split="validation")


@pytest.mark.slow
def test_before_a_macro_batch_nothing_depends_on_it(runs):
    """Bit for bit; afterwards, its strings and all others are predicted differently."""
    whole, _ = runs[STREAM]
    for name in VARIANTS[1:]:
        without, _ = runs[name]
        cohort = replaced_cohort(name)
        both = whole.nll[:, whole.column_of(without.string_ids)]
        same = (both == without.nll).all(axis=1)
        assert same.tolist() == [time < cohort for time in whole.epochs]


@pytest.mark.slow
def test_replicates_differ_in_weights_and_order_and_are_measured_at_the_end(runs):
    """Their untrained models differ already; the seed and the dataset are those of the stream."""
    whole, _ = runs[STREAM]
    replicates = {name: runs[name][0] for name in REPLICATES}
    for name, trace in replicates.items():
        assert trace.run == {**whole.run, "variant": name}
        assert trace.epochs.tolist() == [0, 4]
    first, second, without = replicates.values()
    assert first.string_ids.tolist() == whole.string_ids.tolist()
    before = [trace.nll[0] for trace in (whole, first, second)]
    before.append(whole.nll[0, whole.column_of(without.string_ids)])
    of_without = without.nll[0]
    for some in itertools.combinations(before[:3], 2):
        assert (some[0] != some[1]).all()
    assert (before[3] != of_without).all()


@pytest.mark.slow
def test_only_what_is_asked_for_keeps_its_weights(runs):
    assert runs["kept"] == [STREAM]


@pytest.mark.slow
def test_the_model_of_a_stream_is_questioned(runs):
    """Every measured string has a row; the answers are the same when they are asked for again."""
    (continuations, influences), again = runs["answers"]
    for first, second in zip((continuations, influences), again, strict=True):
        pd.testing.assert_frame_equal(first, second)
    trace, _ = runs[STREAM]
    assert continuations["string_id"].tolist() == trace.string_ids.tolist()
    n_correct = trace.n_correct[-1]
    assert (continuations["n_last_right"] <= n_correct).all()
    all_right = n_correct == trace.n_tokens
    assert (continuations["n_last_right"] == trace.n_tokens)[all_right].all()
    table = stream()
    for cohort, rows in influences.groupby("without"):
        own = ids(table[table["cohort"] == cohort], split="panel")
        unseen = set(rows["string_id"]) - own
        assert len(rows) == 3 + len(unseen)
        assert len(unseen) == 3
        assert unseen < ids(table, split="validation")
    assert influences["influence"].abs().max() > 0
    assert influences["residual"].between(0, 1).all()


@pytest.mark.slow
def test_a_string_is_trained_on_once(runs):
    """By the number of tokens that the run was trained on: those of the 40 strings."""
    _, manifest = runs[STREAM]
    tokens = manifest["training_seconds"] * manifest["training_tokens_per_second"]
    table = stream()
    expected = table.loc[table["count"] > 0, "n_tokens"].sum()
    assert tokens == pytest.approx(expected, rel=0.05)
