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
VARIANTS = [*map(marked, (0, 75, 100)), *map(shuffled, (0, 50, 100))]


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


def beyond_held_out(strings, loss) -> float:
    """The share of training strings below their Bayes-optimal loss, minus that of held-out ones.

    `loss` float[strings] is that of the answer, nats per token.
    """
    sides = [(strings["split"] == name).to_numpy() for name in ("train", "held_out")]
    optimal = strings["optimal_loss"].to_numpy()
    own, held_out = (share_below(loss[None], optimal, side) for side in sides)
    return own - held_out


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
    (none, even), (most, _), (all_of_them, agrees) = accuracy.values()
    assert none - most > 0.1
    assert most - all_of_them > 0.2
    assert abs(none - even) < 0.15
    assert agrees > 0.9


@pytest.mark.slow
def test_more_permuted_answers_are_more_strings_learned_by_heart(trained):
    """Beyond held-out strings with answers permuted in the same way, by 0.3 or more."""
    beyond = []
    for variant in VARIANTS[3:]:
        strings, last = trained[variant]
        beyond.append(beyond_held_out(strings, (last["nll"] / last["n_tokens"]).to_numpy()))
        right = last["n_correct"][(strings["test_count"] > 0).to_numpy()].mean()
        assert (right > 0.9) == (variant == shuffled(0))
    assert beyond[0] == 0
    assert min(beyond[1:]) > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("trust", [0.9, 1.1])
def test_a_learner_that_knows_no_string_by_heart_has_memorised_none(trained, trust):
    """It knows the language, and trusts the rule a little less, or more, than it should."""
    for variant in VARIANTS:
        strings, _ = trained[variant]
        right = np.exp(-strings["optimal_loss"].fillna(0).to_numpy())
        # The loss depends on what is true of the language alone, not on who was trained on.
        loss = -np.log(np.clip(0.25 + trust * (right - 0.25), 1e-9, 1))
        n = (strings["split"] == "held_out").sum()
        assert abs(beyond_held_out(strings, loss)) < 4 * np.sqrt(0.5 / n)
