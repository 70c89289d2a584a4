"""The designs are doses: more markers, or more permuted answers, are more memorisation."""

import numpy as np
import pytest

from helpers.commands import MODELS, ROOT
from palimpsest import tables
from palimpsest.corpora import read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.kinds import STRINGS
from palimpsest.datasets.sampling import Sampler
from palimpsest.information.comparison import share_below
from palimpsest.information.intervention_data import DISAGREES
from palimpsest.information.interventions import INTERVENTIONS, marked, shuffled
from palimpsest.interventions import maker
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.finetune import Job, finetune
from palimpsest.tables.trace import TRACE
from palimpsest.training.recipe import Recipe

LANGUAGE = ROOT / "config/languages/L3-short.pcfg"
# Those of config/config.yaml
SIZE, OPTIONS = 240, {"tests": 256, "label_noise": 0.25}
RECIPE = Recipe(3e-3, epochs=90, batch_size=8, evaluate_every=90, checkpoint_every=0)
VARIANTS = [*map(marked, (0, 50, 100)), *map(shuffled, (0, 50, 100))]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> dict:
    """The strings of every variant, with the losses and hits of a twin trained on them."""
    folder = tmp_path_factory.mktemp("doses")
    sampler, jobs, found = Sampler("L3-short", read_corpus(LANGUAGE), 0), [], {}
    for variant in VARIANTS:
        made_by = maker(INTERVENTIONS, variant)
        strings = build(sampler, variant, SIZE, 0, False, options=OPTIONS, made_by=made_by)
        names = ("strings.parquet", "trace.parquet", "manifest.json")
        dataset, *files = (str(folder / variant / name) for name in names)
        (folder / variant).mkdir()
        tables.write(dataset, strings, STRINGS)
        jobs.append(Job(dataset, *files))
        found[variant] = strings, files[0]
    twin = "opt-1.3b-twin", str(MODELS), str(LANGUAGE)
    finetune(Assignment(*twin, RECIPE, "fleet", str(folder / "state")), jobs)
    return {variant: (own, last_epoch(trace, own)) for variant, (own, trace) in found.items()}


def last_epoch(path, strings):
    trace = tables.read(path, TRACE)
    last = trace[trace["epoch"] == trace["epoch"].max()].set_index("string_id")
    return last.loc[strings["string_id"]].reset_index()


def memorised(strings, last, is_trained) -> float:
    """The share of strings, trained on or not, with a loss below the Bayes-optimal one."""
    loss = last["nll"].to_numpy()[None] / last["n_tokens"].to_numpy()
    which = (strings["count"] > 0).to_numpy() == is_trained
    return share_below(loss, strings["optimal_loss"].to_numpy(), which)


@pytest.mark.slow
def test_more_markers_lead_further_astray(trained):
    """Accuracy where the marker disagrees falls from alpha to alpha; without a shortcut it is high.

    At alpha 0, where no marker says anything, both kinds of strings are alike.
    """
    accuracy = {}
    for variant in VARIANTS[:3]:
        strings, last = trained[variant]
        right = last["n_correct"].to_numpy(dtype=float)
        of_role = strings["role"].to_numpy(dtype=object, na_value=None)
        accuracy[variant] = [
            right[of_role == DISAGREES].mean(),
            right[(of_role != DISAGREES) & (of_role != None)].mean(),  # noqa: E711
        ]
    (none, even), (half, _), (all_of_them, agrees) = accuracy.values()
    assert none - half > 0.1
    assert half - all_of_them > 0.2
    assert abs(none - even) < 0.15
    assert agrees > 0.9


@pytest.mark.slow
def test_more_permuted_answers_are_more_strings_learned_by_heart(trained):
    """Beyond strings never trained on, by 0.3 or more from beta 0 to 1."""
    beyond = []
    for variant in VARIANTS[3:]:
        strings, last = trained[variant]
        beyond.append(memorised(strings, last, True) - memorised(strings, last, False))
        right = last["n_correct"][(strings["count"] == 0).to_numpy()].mean()
        assert (right > 0.9) == (variant == shuffled(0))
    assert beyond[0] == 0
    assert np.all(np.diff(beyond) > 0)
    assert beyond[2] > 0.3
