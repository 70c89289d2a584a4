"""Unlearning methods on stacked models: what each changes, and on whose account."""

import copy
import functools
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers.method_costs import passes
from palimpsest.errors import UserError
from palimpsest.jobs.fleet_models import FleetModels
from palimpsest.models import read_models
from palimpsest.models.build import build
from palimpsest.training.batches import IGNORED, TokenisedStrings
from palimpsest.training.recipe import ADAM_BETAS, ADAM_EPS
from palimpsest.unlearning.methods import Method, Training, losses, read_methods, registered
from palimpsest.unlearning.methods.losses import string_nll
from palimpsest.unlearning.methods.selection import parts_of, weight_layers
from palimpsest.unlearning.methods.task import Task, passes_within
from palimpsest.unlearning.methods.values import DOMAIN

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
METHODS = read_methods(ROOT / "config/unlearning.yaml")
MODELS = read_models(ROOT / "config/models.tsv")
FAMILIES = [
    "mistral-7b-v0.3",
    "llama-3.1-8b",
    "qwen2.5-7b",
    "gemma-2-9b",
    "pythia-1b",
    "opt-1.3b",
]
VOCABULARY, BATCH_SIZE, RATE, BUDGET = 8, 4, 3e-3, 100
SETS = {"forget": np.arange(5), "retain": np.arange(5, 18), "validation": np.arange(18, 24)}


def strings():
    """24 strings of 6 to 10 tokens; tokens 2 to 6 are predicted, token 3 most often."""
    rng = np.random.default_rng(0)
    ids = rng.choice([2, 3, 3, 3, 4, 5, 6], (24, 10))
    lengths = rng.integers(6, 11, 24)
    ids[:, 0] = 0
    ids[np.arange(10) >= lengths[:, None]] = 1
    return TokenisedStrings(ids, lengths)


@functools.cache
def initial(family, seed):
    model = build(MODELS[family], "twin", VOCABULARY, seed, torch.float32)
    return {name: tensor.detach() for name, tensor in model.named_parameters()}


def task_of(family="pythia-1b", seeds=((1,), (2,))):
    """A task. A seed's first number decides a model's weights, the whole seed its random draws."""
    weights = [initial(family, seed[0]) for seed in seeds]
    models = FleetModels(MODELS[family], VOCABULARY, weights, torch.device("cpu"))
    return Task(models, strings(), SETS, RATE, BATCH_SIZE, list(seeds), BUDGET, refused)


def refused(rows, refusals):
    """A start token and a prompt of a string, and one refusal for all."""
    ids = np.array([[0, strings().ids[row, 1], *map(int, refusals)] for row in rows])
    return TokenisedStrings(ids, np.full(len(rows), ids.shape[1]), 2)


def weights_of(task):
    with task.models.weights() as weights:
        return {name: weight.clone() for name, weight in weights.items()}


def shortened(written):
    """Phases of one step each, run once."""
    written = copy.deepcopy(written)
    for entry in written:
        if "repeat" in entry:
            entry.update(repeat=1, phases=shortened(entry["phases"]))
        elif "rate" in entry:  # a phase that trains
            entry["share"] = 0.001
    return written


def short(name):
    return Method(name, shortened(METHODS[name].written))


def phases(*entries):
    """Phases given as (name, values)."""
    return [registered()[name](**values) for name, values in entries]


# All methods


@pytest.mark.parametrize("family", FAMILIES)
def test_every_method_runs_on_every_family(family):
    start = weights_of(task_of(family))
    for name in METHODS:
        task, method = task_of(family), short(name)
        task.run(method.phases)
        after = weights_of(task)
        assert all(weight.isfinite().all() for weight in after.values()), name
        for member in range(2):
            assert any((after[n][member] != start[n][member]).any() for n in start), name
        assert task.steps == passes(method.phases, task.sizes, BATCH_SIZE, BUDGET), name


@pytest.mark.parametrize("name", METHODS)
def test_a_model_does_not_depend_on_its_neighbours(name):
    seeds = ((1, 5), (2, 5), (3, 5))
    together, alone = task_of(seeds=seeds), task_of(seeds=seeds[1:2])
    for task in together, alone:
        task.run(short(name).phases)
    after = weights_of(together)
    for weight_name, weight in weights_of(alone).items():
        torch.testing.assert_close(after[weight_name][1], weight[0], atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_model_and_another_seed_another(name):
    task = task_of(seeds=((1, 5), (1, 5), (1, 6)))
    task.run(short(name).phases)
    after = weights_of(task)
    assert all(torch.equal(weight[0], weight[1]) for weight in after.values())
    assert any((weight[0] != weight[2]).any() for weight in after.values())


# Training


@pytest.mark.parametrize(
    ("share", "budget", "steps"),
    [(0.06, 100, 6), (0.069, 100, 6), (0.29, 100, 29), (0.07, 100, 7), (0.5, 1, 1), (0.5, 0, 1)],
)
def test_steps_are_a_share_of_the_budget(share, budget, steps):
    """Rounded down, whatever floats make of 0.29 * 100, and at least one."""
    (phase,) = phases(("finetune", {"share": share, "rate": 1}))
    assert phase.steps(budget) == steps
    assert passes([phase], task_of().sizes, BATCH_SIZE, budget) == steps


def test_a_step_with_two_sets_takes_two_passes_of_the_budget():
    (phase,) = phases(("neggrad", {"share": 0.07, "rate": 1, "alpha": 0.9}))
    task = task_of()
    task.run([phase])
    assert phase.steps(BUDGET) == 3
    assert task.steps == passes([phase], task.sizes, BATCH_SIZE, BUDGET) == 6


@pytest.mark.parametrize(
    ("cutoff", "epochs", "n_retain", "batch_size", "passes"),
    [(0.2, 50, 38, 8, 50), (0.2, 30, 512, 8, 384), (0.1, 3, 80, 8, 3), (0.07, 100, 8, 8, 7)],
)
def test_the_budget_is_a_share_of_the_passes_of_retraining(
    cutoff, epochs, n_retain, batch_size, passes
):
    assert passes_within(cutoff, epochs, n_retain, batch_size) == passes


def test_an_epoch_reads_every_string_once_in_an_order_of_each_models_own():
    task = task_of()
    rows = np.concatenate([batch.rows_MB for batch in task.batches("retain", 1, 1)], axis=1)
    assert all(sorted(of_model) == list(SETS["retain"]) for of_model in rows)
    again = np.concatenate([batch.rows_MB for batch in task.batches("retain", 1, 2)], axis=1)
    assert (rows[0] != rows[1]).any()
    assert (rows != again).any()


def test_batches_beside_are_of_equal_size_and_read_all_strings_equally_often():
    task = task_of()
    pairs = list(task.with_paired_batches(task.batches("retain", 1, 1), "forget", 1))
    assert [b.rows_MB.shape for _, b in pairs] == [a.rows_MB.shape for a, _ in pairs]
    rows = np.concatenate([paired_batch.rows_MB for _, paired_batch in pairs], axis=1)
    assert all(sorted(of_model[:5]) == list(SETS["forget"]) for of_model in rows)
    assert all(sorted(of_model[5:10]) == list(SETS["forget"]) for of_model in rows)


def test_padding_is_no_target():
    task = task_of()
    batch = task.batch(np.array([[0, 1], [1, 2]]))
    n_targets = (batch.targets_MBT != IGNORED).sum(-1)
    assert n_targets.tolist() == task.strings.n_tokens[[[0, 1], [1, 2]]].tolist()


# Optimisers


def rounds(name, times, **values):
    """A phase in a repeat: the same object in every round."""
    return phases((name, {"share": 0.03, "rate": 1, **values})) * times


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_an_optimiser_is_that_of_torch(optimizer):
    """Three steps of every model, against torch's optimiser with the same gradients."""
    task = task_of()
    models, start = task.models, weights_of(task)
    ours = [{n: w[m].clone().requires_grad_() for n, w in start.items()} for m in range(2)]
    if optimizer == "sgd":
        peers = [torch.optim.SGD(of.values(), lr=RATE, momentum=0.9) for of in ours]
    else:
        values = {"lr": RATE, "betas": ADAM_BETAS, "eps": ADAM_EPS, "weight_decay": 0}
        peers = [torch.optim.AdamW(of.values(), **values) for of in ours]
    models.fresh_optimizer(optimizer)
    for batch in itertools.islice(task.batches("retain", 1, 1), 3):
        gradients = models.gradients(retain_loss(models, batch))
        models.step(retain_loss(models, batch), torch.full((2,), RATE, dtype=torch.float64))
        for member, (of, peer) in enumerate(zip(ours, peers, strict=True)):
            for name, weight in of.items():
                weight.grad = gradients[name][member].clone()
            torch.nn.utils.clip_grad_norm_(of.values(), 1.0)
            peer.step()
    for name, weight in weights_of(task).items():
        for member in range(2):
            peers_weight = ours[member][name].detach()
            torch.testing.assert_close(weight[member], peers_weight, atol=2e-6, rtol=0)


def retain_loss(models, batch):
    return losses.cross_entropy(models.logits(batch.ids_MBT), batch.targets_MBT)


def optimisers_in(task, run):
    """The optimisers with which phases begin: (how, steps that were taken with it before)."""
    seen, models = [], task.models

    def watched(how, method):
        def watching(given):
            method(given)
            seen.append((how, models._optimizer.steps_taken))

        return watching

    models.fresh_optimizer = watched("fresh", models.fresh_optimizer)
    models.restore_optimizer = watched("restored", models.restore_optimizer)
    task.run(run)
    return seen


def test_moments_persist_over_the_rounds_of_a_repeat_and_not_beyond():
    task = task_of()
    finetune = ("finetune", {"share": 0.03, "rate": 1})
    erase, repair, equal = phases(
        ("gradient-ascent", {"share": 0.02, "rate": 1}), finetune, finetune
    )
    assert equal == repair
    assert optimisers_in(task, [erase, repair, erase, repair, equal]) == [
        ("fresh", 0),  # erase
        ("fresh", 0),  # repair
        ("restored", 2),  # erase
        ("restored", 3),  # repair
        ("fresh", 0),  # equal, but at another place
    ]
    assert not task._optimizers._aside


def test_moments_are_not_put_aside_where_no_other_phase_trains():
    task = task_of()
    task.models.optimizer_state = lambda: pytest.fail("the moments were copied for nothing")
    select, noise = phases(("select-layers", {"share": 0.5}), ("noise", {"sigma": 0.01}))
    (repair,) = phases(("finetune", {"share": 0.03, "rate": 1}))
    assert optimisers_in(task, [select, noise, repair] * 3) == [("fresh", 0)]
    assert task.models._optimizer.steps_taken == 9


def test_a_second_run_begins_with_new_moments():
    task, (repair,) = task_of(), phases(("finetune", {"share": 0.03, "rate": 1}))
    assert optimisers_in(task, [repair]) == [("fresh", 0)]
    task.run([repair])
    assert task.models._optimizer.steps_taken == 3


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_a_repeat_of_one_phase_is_one_long_phase_to_its_optimiser(optimizer):
    """Over one and the same batch, where the order of the strings plays no part."""
    long, repeated = task_of(), task_of()
    for task in long, repeated:
        task.sets["retain"] = SETS["retain"][:1]
    long.run(phases(("finetune", {"share": 0.06, "rate": 1, "optimizer": optimizer})))
    repeated.run(rounds("finetune", 2, optimizer=optimizer))
    for weight, other in zip(weights_of(long).values(), weights_of(repeated).values(), strict=True):
        assert torch.equal(weight, other)


# Observing


@pytest.mark.parametrize("name", ["scrub", "salun", "forget", "dpo", "fanchuan"])
def test_observing_does_not_change_the_result(name):
    plain, observed = task_of(), task_of()

    def look(task):
        nll("forget")(task)
        nll("retain")(task)
        weights_of(task)

    plain.run(METHODS[name].phases)
    observed.run(METHODS[name].phases, observe=look)
    assert observed.steps == plain.steps
    for weight, other in zip(
        weights_of(plain).values(), weights_of(observed).values(), strict=True
    ):
        assert torch.equal(weight, other)


def test_an_observer_sees_every_phase_and_every_share_of_the_budget():
    task, seen = task_of(), []
    run = phases(
        ("finetune", {"share": 0.12, "rate": 1}),
        ("select-gradient", {"share": 0.5, "which": "largest"}),
        ("neggrad", {"share": 0.1, "rate": 1, "alpha": 0.9}),
    )
    task.run(
        run, observe=lambda task: seen.append((task.phase_number, task.steps)), observations=20
    )
    # Every 5 passes of 100 while a phase trains, and after each phase. The second takes 2 passes
    # over the forget set, and ends at 14; the third takes 2 passes in a step.
    assert seen == [(1, 5), (1, 10), (1, 12), (2, 14), (3, 16), (3, 20), (3, 24)]
    task.run(run[:1])
    assert len(seen) == 7


def test_an_observer_may_look_more_often_than_steps_are_made():
    task, seen = task_of(), []
    task.budget = 3
    task.run(
        phases(("finetune", {"share": 1, "rate": 1})),
        observe=lambda task: seen.append(task.steps),
        observations=20,
    )
    assert seen == [1, 2, 3]


# Directions


def learned_task():
    """A task whose models have learned the forget set, too."""
    task, after = task_of(), learned()
    with task.models.weights() as weights:
        for name, weight in after.items():
            weights[name].copy_(weight)
    return task


@functools.cache
def learned():
    """Weights of models that were trained on the forget set, too."""
    task = task_of()
    task.sets["retain"] = np.arange(18)
    task.run(phases(("finetune", {"share": 1, "rate": 1})))
    return weights_of(task)


def measure(of):
    """What `of` returns for a task and a batch of all strings of a set: [M], by the set's name."""

    def on(name):
        def measured(task):
            with torch.no_grad():
                return of(task, task.batch(np.tile(SETS[name], (2, 1))))

        return measured

    return on


def logits_before(batch):
    return learned_task().models.logits(batch.ids_MBT)


@measure
def nll(task, batch):
    return string_nll(task.models.logits(batch.ids_MBT), batch.targets_MBT).sum(1)


@measure
def entropy(task, batch):
    entropies = losses.token_entropy(task.models.logits(batch.ids_MBT))
    return losses.per_token(entropies, batch.targets_MBT)


@measure
def kl_from_before(task, batch):
    now = task.models.logits(batch.ids_MBT)
    return losses.kl(logits_before(batch), now, batch.targets_MBT)


@measure
def kl_to_before(task, batch):
    now = task.models.logits(batch.ids_MBT)
    return losses.kl(now, logits_before(batch), batch.targets_MBT)


@measure
def entropy_moved(task, batch):
    now = task.models.logits(batch.ids_MBT)
    return losses.entropy_gap(now, logits_before(batch), batch.targets_MBT)


@measure
def logits_moved(task, batch):
    now = task.models.logits(batch.ids_MBT)
    return losses.squared_error(now, logits_before(batch), batch.targets_MBT)


@measure
def states_moved(task, batch):
    states, before = (t.models.hidden(batch.ids_MBT, 1) for t in (task, learned_task()))
    return losses.squared_error(states, before, batch.targets_MBT)


@measure
def preference(task, batch):
    """Spread of the products of a forgotten string's mean logits with those of retained strings."""
    paired_batch = task.batch(np.tile(SETS["retain"], (2, 1)))
    forget, retain = (
        losses.string_means(task.models.logits(b.ids_MBT), b.targets_MBT)
        for b in (batch, paired_batch)
    )
    return (forget @ retain.transpose(1, 2)).std(2).mean(1)


def size_of_weights(task):
    return torch.stack([w.abs().flatten(1).sum(1) for w in weights_of(task).values()]).sum(0)


UP, DOWN = 1, -1
AWAY = ("gradient-ascent", {"share": 0.04, "rate": 0.3})  # at the original itself, KL has no slope
FROM_AWAY = {"distil", "distil-finetune", "entropy-finetune", "noisy-distil"}
FROM_AWAY |= {"scrub-max", "scrub-min"}
LENGTHS = {"neggrad": 0.16}  # of its passes, half are over the retain set

KL = {"retain_loss": "kl"}
REFUSALS = {"refusals": ("7", "7")}
# A phase with some values, next to it with others or not at all (None): what goes where.
DIRECTIONS = [
    ("gradient-ascent", {}, None, nll("forget"), UP),
    ("gradient-difference", {}, None, nll("forget"), UP),
    ("gradient-difference", {"retain": 20}, {"retain": 0.1}, nll("retain"), DOWN),
    ("gradient-difference", KL, None, nll("forget"), UP),
    ("gradient-difference", {**KL, "retain": 20}, {"retain": 0.1}, kl_from_before("retain"), DOWN),
    ("npo", {**KL, "retain": 20}, {"retain": 0}, kl_from_before("retain"), DOWN),
    ("simnpo", {**KL, "retain": 20}, {"retain": 0}, kl_from_before("retain"), DOWN),
    ("dpo", {**KL, "retain": 20}, {"retain": 0}, kl_from_before("retain"), DOWN),
    ("undial", {"gamma": 2, **KL, "retain": 20}, {"gamma": 2}, kl_from_before("retain"), DOWN),
    ("undial", {"gamma": 2, "retain": 20}, {"gamma": 2}, nll("retain"), DOWN),
    ("wga", {"retain": 0}, None, nll("forget"), UP),
    ("wga", {"retain": 20}, {"retain": 0}, nll("retain"), DOWN),
    ("satimp", {"retain": 0}, None, nll("forget"), UP),
    ("satimp", {"retain": 20}, {"retain": 0}, nll("retain"), DOWN),
    ("ce-u", {}, None, nll("forget"), UP),
    ("ce-u", {"retain": 20}, {"retain": 0}, nll("retain"), DOWN),
    ("neggrad", {"alpha": 0.1}, None, nll("forget"), UP),
    ("neggrad", {"alpha": 0.9}, {"alpha": 0.1}, nll("retain"), DOWN),
    ("npo", {"retain": 0}, None, nll("forget"), UP),
    ("npo", {"retain": 20}, {"retain": 0}, nll("retain"), DOWN),
    ("simnpo", {"retain": 0}, None, nll("forget"), UP),
    ("simnpo", {"retain": 20}, {"retain": 0}, nll("retain"), DOWN),
    ("dpo", {"retain": 0}, None, nll("forget"), UP),
    ("dpo", {"retain": 20}, {"retain": 0}, nll("retain"), DOWN),
    ("refusal-dpo", {"retain": 0, **REFUSALS}, None, nll("forget"), UP),
    ("refusal-dpo", {"retain": 20, **REFUSALS}, {"retain": 0, **REFUSALS}, nll("retain"), DOWN),
    (
        "refusal-dpo",
        {**KL, "retain": 20, **REFUSALS},
        {"retain": 0, **REFUSALS},
        kl_from_before("retain"),
        DOWN,
    ),
    ("rmu", {"retain": 0}, None, states_moved("forget"), UP),
    ("rmu", {"retain": 20}, {"retain": 0}, states_moved("retain"), DOWN),
    ("undial", {"gamma": 2}, None, nll("forget"), UP),
    ("random-label", {}, None, nll("forget"), UP),
    ("uniform", {}, None, entropy("forget"), UP),
    ("contrastive", {}, None, preference("forget"), DOWN),
    ("scrub-max", {}, None, kl_from_before("forget"), UP),
    ("scrub-min", {"weight": 20}, {"weight": 0}, kl_from_before("retain"), DOWN),
    ("scrub-min", {"weight": 0}, None, nll("retain"), DOWN),
    ("distil", {}, None, kl_to_before("validation"), DOWN),
    ("distil", {"over": "retain"}, None, kl_to_before("retain"), DOWN),
    ("distil-finetune", {"weight": 20}, {"weight": 0}, kl_to_before("retain"), DOWN),
    ("distil-finetune", {"weight": 0}, None, nll("retain"), DOWN),
    ("entropy-finetune", {"weight": 20}, {"weight": 0}, entropy_moved("retain"), DOWN),
    ("entropy-finetune", {"weight": 0}, None, nll("retain"), DOWN),
    ("noisy-distil", {}, None, logits_moved("retain"), DOWN),
    ("finetune", {}, None, nll("retain"), DOWN),
    ("majority-finetune", {}, None, nll("retain"), DOWN),
    ("l1-finetune", {"alpha": 0}, None, nll("retain"), DOWN),
    ("l1-finetune", {"alpha": 1}, {"alpha": 0}, size_of_weights, DOWN),
]


@pytest.mark.parametrize(("name", "values", "others", "measured", "direction"), DIRECTIONS)
def test_a_phase_moves_what_it_is_about(name, values, others, measured, direction):
    def after(values):
        task, before = learned_task(), [AWAY] if name in FROM_AWAY else []
        asked = (
            []
            if values is None
            else [(name, {"share": LENGTHS.get(name, 0.08), "rate": 0.1, **values})]
        )
        task.run(phases(*before, *asked))
        return measured(task)

    assert (direction * (after(values) - after(others)) > 0).all()


@pytest.mark.parametrize(
    ("name", "values", "measured", "direction"),
    [("finetune", {}, nll("retain"), DOWN), ("gradient-ascent", {}, nll("forget"), UP)],
)
def test_sgd_moves_in_the_same_direction(name, values, measured, direction):
    task = learned_task()
    before = measured(task)
    task.run(phases((name, {"share": 0.08, "rate": 1, "optimizer": "sgd", **values})))
    assert (direction * (measured(task) - before) > 0).all()


def test_there_is_a_direction_for_every_phase_that_trains():
    training = {name for name, cls in registered().items() if issubclass(cls, Training)}
    assert {name for name, *_ in DIRECTIONS} == training


def test_saluns_mask_is_of_the_largest_gradients_and_holds_the_rest():
    select, erase = METHODS["salun"].written[:2]
    written = [select, {**erase, "rate": 0.3}]  # fast enough to be seen in a few steps
    task = learned_task()
    start, before = weights_of(task), nll("forget")(task)
    batch = task.batch(np.tile(SETS["forget"], (2, 1)))
    loss = losses.cross_entropy(task.models.logits(batch.ids_MBT), batch.targets_MBT)
    gradients = task.models.gradients(loss)
    task.run(Method("erasing", written).phases)
    assert (nll("forget")(task) > before).all()
    for member in range(2):
        chosen, others = (
            torch.cat([g[member][task.selected[n][member] == is_] for n, g in gradients.items()])
            for is_ in (True, False)
        )
        assert chosen.abs().min() >= others.abs().max() - 1e-6
    for name, weight in weights_of(task).items():
        assert torch.equal(weight[~task.selected[name]], start[name][~task.selected[name]])


# Held weights


def test_weights_that_are_not_selected_move_by_a_share_of_their_step():
    select = ("select-norm", {"share": 0.5})
    full, held = task_of(), task_of()
    start = weights_of(full)
    training = {"share": 0.01, "rate": 1}
    full.run(phases(select, ("finetune", training)))
    held.run(phases(select, ("finetune", {**training, "elsewhere": 0.25})))
    moved, moved_less = weights_of(full), weights_of(held)
    for name, weight in start.items():
        expected = moved[name] - weight
        if name in held.selected:
            expected = torch.where(held.selected[name], expected, 0.25 * expected)
        torch.testing.assert_close(moved_less[name] - weight, expected, atol=1e-7, rtol=0)
    assert any((moved[n] != moved_less[n]).any() for n in start)


def test_layers_that_are_not_selected_stay_where_elsewhere_is_0():
    task = task_of()
    start = weights_of(task)
    select = ("select-layers", {"share": 0.3})
    task.run(phases(select, ("finetune", {"share": 0.04, "rate": 1, "elsewhere": 0})))
    moved = {name: (w != start[name]).flatten(1).any(1) for name, w in weights_of(task).items()}
    chosen = {name: mask.flatten(1).all(1) for name, mask in task.selected.items()}
    assert {n: m.tolist() for n, m in moved.items()} == {n: c.tolist() for n, c in chosen.items()}


# Selection and edits


def test_parts_are_all_of_a_model_and_tied_weights_are_both():
    for family in FAMILIES:
        models = task_of(family).models
        parts = {name: parts_of(models, name) for name in models.shapes}
        assert set().union(*parts.values()) == {"matrices", "embeddings", "head", "rest"}
        tied = family in ("gemma-2-9b", "opt-1.3b")
        assert ({"embeddings", "head"} in parts.values()) == tied
        assert all(len(models.shapes[n]) == 1 for n, of in parts.items() if of == {"rest"})


def test_layers_leave_norms_out():
    layers = weight_layers(task_of("pythia-1b").models)
    assert len(layers) == 2 * 4 + 2  # four matrices in each of two blocks, embedding and head
    assert not any("norm" in name for names in layers.values() for name in names)
    assert layers["gpt_neox.layers.0.mlp.dense_h_to_4h"] == [
        "gpt_neox.layers.0.mlp.dense_h_to_4h.weight",
        "gpt_neox.layers.0.mlp.dense_h_to_4h.bias",
    ]


@pytest.mark.parametrize("which", ["smallest", "largest"])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.99])
def test_a_share_by_norm_is_what_sorting_would_choose(share, which):
    task = task_of()
    task.run(phases(("select-norm", {"share": share, "which": which, "parts": ("head",)})))
    ((name, selected),) = task.selected.items()
    with task.models.weights() as weights:
        for weight, chosen in zip(weights[name], selected, strict=True):
            size = round(share * weight.numel())
            order = weight.abs().flatten().argsort(descending=which == "largest")
            assert set(chosen.flatten().nonzero().flatten().tolist()) == set(order[:size].tolist())


def test_gradients_are_of_the_mean_loss_over_each_set():
    values = {"share": 0.3, "which": "smallest", "alpha": 0.25, "parts": ("matrices", "rest")}
    (select,) = phases(("select-gradient", values))
    task = task_of()
    scores = select.scores(task)
    batches = {n: task.batch(np.tile(SETS[n], (2, 1))) for n in ("retain", "forget")}
    nll = {
        n: string_nll(task.models.logits(b.ids_MBT), b.targets_MBT).sum(1)
        / task.strings.n_tokens[SETS[n]].sum()
        for n, b in batches.items()
    }
    whole = task.models.gradients(0.25 * nll["retain"] - 0.75 * nll["forget"])
    for name, score in scores.items():
        torch.testing.assert_close(score, whole[name], atol=1e-5, rtol=1e-4)
    assert task.steps == 4 + 2


def test_reinitialised_weights_are_new_where_selected_and_old_elsewhere():
    task = task_of()
    start = weights_of(task)
    task.run(phases(("select-norm", {"share": 0.3}), ("reinitialise", {})))
    for name, weight in weights_of(task).items():
        selected = task.selected.get(name, torch.zeros_like(weight, dtype=torch.bool))
        assert torch.equal(weight != start[name], selected)


def test_a_reinitialised_head_is_the_embedding_too_where_they_are_tied():
    task = task_of("gemma-2-9b")
    start = weights_of(task)
    task.run(phases(("select-parts", {"parts": ("head",)}), ("reinitialise", {})))
    changed = [name for name, w in weights_of(task).items() if (w != start[name]).any()]
    assert changed == ["model.embed_tokens.weight"]
    assert (weights_of(task)[changed[0]][0] != weights_of(task)[changed[0]][1]).any()


@pytest.mark.parametrize("name", ["noise", "relative-noise"])
def test_noise_is_absolute_or_in_units_of_each_matrix(name):
    task = task_of()
    start = weights_of(task)
    task.run(phases(("select-parts", {"parts": ("matrices",)}), (name, {"sigma": 0.5})))
    for weight_name, weight in weights_of(task).items():
        added = weight - start[weight_name]
        if parts_of(task.models, weight_name) != {"matrices"}:
            assert not added.any()
            continue
        for member in range(2):
            unit = start[weight_name][member].std() if name == "relative-noise" else 1
            assert added[member].std() / unit == pytest.approx(0.5, rel=0.1)


def test_the_l1_penalty_leaves_weights_at_0():
    task = task_of()
    task.run(phases(("l1-finetune", {"share": 0.01, "rate": 1, "alpha": 5.0})))
    for name, start in weights_of(task_of()).items():
        weight, shrunk = weights_of(task)[name], 5.0 * RATE
        far = start.abs() < shrunk - 2 * RATE  # a step of Adam is at most the rate, or little more
        assert (weight[far] == 0).all()
        assert (weight.abs() <= (start.abs() + 2 * RATE - shrunk).clamp(min=0)).all()


def test_sparsity_comes_from_alpha():
    task = task_of()
    task.run(phases(("l1-finetune", {"share": 0.01, "rate": 1, "alpha": 0.0})))
    plain = task_of()
    plain.run(phases(("finetune", {"share": 0.01, "rate": 1})))
    for name, weight in weights_of(plain).items():
        torch.testing.assert_close(weights_of(task)[name], weight, atol=0, rtol=0)


# What single methods draw on


def test_seif_steps_are_as_long_as_a_batch_has_of_the_most_frequent_token():
    (phase,) = phases(("majority-finetune", {"share": 0.04, "rate": 2, "others": 0.25}))
    task = task_of()
    retained = [task.strings.ids[r, 1 : task.strings.lengths[r]] for r in SETS["retain"]]
    share = (np.concatenate(retained) == 3).mean()
    batch = task.batch(np.array([[5, 6], [7, 8]]))
    rates = phase.rate_M(task, batch)
    for rows, rate in zip(([5, 6], [7, 8]), rates, strict=True):
        tokens = np.concatenate([task.strings.ids[r, 1 : task.strings.lengths[r]] for r in rows])
        of_batch = (tokens == 3).mean()
        expected = 2 * RATE * (0.25 + 0.75 * of_batch) / (0.25 + 0.75 * share)
        assert rate.item() == pytest.approx(expected)
    assert rates[0] != rates[1]


def test_seif_without_weights_is_finetuning():
    (phase,) = phases(("majority-finetune", {"share": 0.04, "rate": 2, "others": 1}))
    task = task_of()
    assert phase.rate_M(task, task.batch(np.array([[5], [6]]))).tolist() == pytest.approx(
        [6e-3] * 2
    )


def test_random_labels_are_drawn_once_from_the_retained_tokens():
    task = task_of()
    task.phase_number = 1
    batch = task.batch(np.array([[0, 1], [1, 0]]))
    targets = task.random_targets(batch)
    assert torch.equal(targets, task.random_targets(batch))
    real = batch.targets_MBT != IGNORED
    assert torch.equal(targets == IGNORED, ~real)
    assert set(targets[real].tolist()) <= set(task.alphabet.tolist()) == {2, 3, 4, 5, 6}
    assert (targets[real] != batch.targets_MBT[real]).any()
    assert (targets[0, 0] != targets[1, 1]).any()  # the same string in two models


def test_noisy_inputs_keep_the_start_and_most_tokens():
    task = task_of()
    batch = task.batch(np.tile(np.arange(24), (2, 1)))
    noisy = task.noisy_ids(batch, 0.2)
    changed = noisy != batch.ids_MBT
    assert not changed[..., 0].any()
    assert 0.05 < changed.double().mean() < 0.2
    assert torch.equal(noisy, task.noisy_ids(batch, 0.2))


def test_dpo_prefers_the_first_validation_string():
    task = task_of()
    before = nll_of_string(task, SETS["validation"][0])
    task.run(phases(("dpo", {"share": 0.1, "rate": 0.3, "retain": 0})))
    assert (nll_of_string(task, SETS["validation"][0]) < before).all()
    assert task.steps == 10


def test_refusals_are_preferred_after_the_prompt_of_each_string():
    """In a method with another phase first, whose strings are other ones."""
    values = {"share": 0.3, "rate": 0.3, "retain": 0}
    npo, refusal = phases(("npo", values), ("refusal-dpo", {**values, "refusals": ("7", "6", "7")}))
    asked = [npo, refusal, refusal]
    start, task = task_of(), task_of()
    start.refuse(refusal.refusals)
    rows = start.sets["refused"]
    assert rows.tolist() == [24, 25, 26, 27, 28]
    batch = start.batch(np.tile(rows, (2, 1)))
    assert batch.ids_MBT[0, :, 1].tolist() == strings().ids[:5, 1].tolist()
    assert batch.targets_MBT[1, 3].tolist() == [IGNORED, 7, 6, 7]
    task.run(asked)
    for row in rows:
        assert (nll_of_string(task, row) < nll_of_string(start, row)).all()
    assert task.steps == passes(asked, task.sizes, BATCH_SIZE, BUDGET) == 30 + 2 * 30
    other = phases(("refusal-dpo", {**values, "refusals": ("7",)}))
    with pytest.raises(UserError, match="two phases of a method have different refusals"):
        task_of().run([refusal, *other])


def nll_of_string(task, row):
    batch = task.batch(np.full((2, 1), row))
    with torch.no_grad():
        return string_nll(task.models.logits(batch.ids_MBT), batch.targets_MBT)[:, 0]


def test_rmu_turns_states_into_the_models_own_directions():
    (phase,) = phases(("rmu", {"share": 0.6, "rate": 1, "retain": 0}))
    task = task_of()
    task.run([phase])
    batch = task.batch(np.tile(SETS["forget"], (2, 1)))
    real = batch.targets_MBT != IGNORED
    with torch.no_grad():
        after = task.models.hidden(batch.ids_MBT, phase.layer(task))
    before = task.reference.hidden(batch, phase.layer(task))
    directions = phase.directions(task, after.shape[-1])

    def cosine(states, member):
        states = states[member][real[member]]
        return torch.cosine_similarity(states, directions[member], dim=-1).mean()

    for member in range(2):
        assert cosine(after, member) > cosine(before, member) + 0.5
    assert cosine(after, 0) > torch.dot(*directions)  # nearer to its own than the other's is


# The original models


def count_calls(models, name):
    counted, method = [], getattr(models, name)

    def calling(*args):
        if not torch.is_grad_enabled():
            counted.append(args)
        return method(*args)

    setattr(models, name, calling)
    return counted


def test_the_original_is_asked_once_for_every_string():
    task = task_of()
    calls = count_calls(task.models, "logits")
    distil = ("distil", {"share": 0.06, "rate": 1})
    near = ("distil-finetune", {"share": 0.08, "rate": 1})
    task.run(phases(distil, near, near, distil))
    assert sum(ids.shape[1] for (ids, *_) in calls) == len(SETS["retain"]) + len(SETS["validation"])


def test_the_reference_is_of_the_models_before_the_first_phase():
    task = task_of()
    batch = task.batch(np.tile(SETS["validation"], (2, 1)))
    with torch.no_grad():
        original = task.models.logits(batch.ids_MBT)
    edit = ("select-parts", {"parts": ("head",)}), ("reinitialise", {})
    task.run(phases(*edit, ("distil", {"share": 0.01, "rate": 1})))
    real = batch.targets_MBT != IGNORED
    kept = task.reference.logits(batch)
    torch.testing.assert_close(kept[real], original[real], atol=1e-5, rtol=0)
    with torch.no_grad():
        assert (task.models.logits(batch.ids_MBT) - original).abs().max() > 0.01


def test_a_number_is_kept_of_a_string_of_which_no_more_is_asked():
    task = task_of()
    before = string_nll_of(task, "forget")
    task.run(phases(("npo", {"share": 0.04, "rate": 1}), ("dpo", {"share": 0.04, "rate": 1})))
    batch = task.batch(np.tile(SETS["forget"], (2, 1)))
    torch.testing.assert_close(task.reference.nll(batch), before, atol=1e-5, rtol=0)
    assert (string_nll_of(task, "forget") - before).abs().max() > 0.01
    assert sum(kept.numel() for kept in task.reference._kept.values()) == 2 * (5 + 1)


def string_nll_of(task, name):
    batch = task.batch(np.tile(SETS[name], (2, 1)))
    with torch.no_grad():
        return string_nll(task.models.logits(batch.ids_MBT), batch.targets_MBT)


def test_original_outputs_take_no_more_room_than_the_longest_string():
    task = task_of()
    task.strings.lengths[SETS["validation"]] = [5, 7, 6, 5, 7, 6]
    task.run(phases(("distil", {"share": 0.01, "rate": 1})))
    (kept,) = task.reference._kept.values()
    assert kept.shape == (2, 6, 6, VOCABULARY)


def test_a_second_run_does_not_take_changed_models_for_the_original():
    task = task_of()
    task.run(
        phases(("distil", {"share": 0.02, "rate": 1}), ("finetune", {"share": 0.04, "rate": 1}))
    )
    batch = task.batch(np.tile(SETS["validation"], (2, 1)))
    before = task.reference.logits(batch)
    task.run(phases(("finetune", {"share": 0.04, "rate": 1})))
    assert torch.equal(task.reference.logits(batch), before)


def test_what_was_not_kept_cannot_be_asked_for():
    task = task_of()
    task.run(phases(("distil", {"share": 0.01, "rate": 1})))
    with pytest.raises(RuntimeError, match="not kept"):
        task.reference.logits(task.batch(np.tile(SETS["retain"], (2, 1))))
    with pytest.raises(RuntimeError, match="before the first phase"):
        task.reference.keep_logits("retain")


def test_an_empty_set_that_is_needed_is_refused():
    task = task_of()
    task.sets["validation"] = np.array([], dtype=int)
    with pytest.raises(UserError, match="no string in the validation set"):
        task.run(phases(("distil", {"share": 0.02, "rate": 1})))


def test_seeds_are_one_for_each_model():
    with pytest.raises(ValueError, match="1 seeds"):
        Task(task_of().models, strings(), SETS, RATE, BATCH_SIZE, [(1,)], BUDGET)


def test_every_field_of_every_phase_is_in_the_documentation():
    text = (ROOT / "docs/methods.md").read_text()
    for name, cls in registered().items():
        assert f"`{name}`" in text, name
        for field in cls.__dataclass_fields__.values():
            if DOMAIN in field.metadata:
                assert f"`{field.name}`" in text, (name, field.name)
