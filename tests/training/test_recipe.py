"""The recipe, the order of the data, batches, and the numbers of a trace."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM, get_scheduler

from palimpsest.errors import UserError
from palimpsest.models.build import SymbolTokens
from palimpsest.training.batches import IGNORED, by_length, encode, micro_batches
from palimpsest.training.evaluation import evaluate, measure_batch, predict, summarise
from palimpsest.training.recipe import SCHEDULES, Recipe, epoch_order

CPU = torch.device("cpu")
TERMINALS = ("1", "2", "3", "x")
TOKENS = SymbolTokens(TERMINALS, terminals=(5, 7, 4, 9), start=2, end=3)

texts = st.lists(
    st.lists(st.sampled_from(TERMINALS), min_size=1, max_size=9).map(" ".join),
    min_size=1,
    max_size=12,
)


@pytest.fixture(autouse=True)
def _one_thread():
    """Tiny tensors are slower on several threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


# The schedule and the epochs


@settings(deadline=None)
@given(
    total=st.integers(1, 300),
    ratio=st.sampled_from([0.0, 0.05, 0.1, 1 / 3, 0.5, 1.0]) | st.floats(0, 1),
    peak=st.floats(1e-8, 10),
    name=st.sampled_from(SCHEDULES),
)
def test_the_learning_rate_is_that_of_transformers(total, ratio, peak, name):
    """At every step the rate of `get_scheduler`, without its state."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=peak)
    warmup = math.ceil(total * ratio)
    named = "constant_with_warmup" if name == "constant" else name
    schedule = get_scheduler(named, optimizer, warmup, total)
    recipe = Recipe(peak, warmup_ratio=ratio, schedule=name)
    for step in range(total):
        assert recipe.learning_rate_at(step, total) == pytest.approx(
            optimizer.param_groups[0]["lr"], rel=1e-12, abs=1e-15 * peak
        )
        optimizer.step()
        schedule.step()


def test_the_learning_rate_of_a_short_run():
    """Computed by hand: two steps of warm-up from 0, the peak, then down to just above 0."""
    recipe = Recipe(1.0, warmup_ratio=0.25)
    rates = [recipe.learning_rate_at(step, 8) for step in range(8)]
    assert rates == pytest.approx([0, 1 / 2, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6])


@given(epochs=st.integers(1, 300), every=st.integers(1, 400))
def test_the_epochs_that_are_measured(epochs, every):
    """The untrained model, every n-th epoch and the last one, in order and without duplicates."""
    measured = Recipe(1.0, epochs=epochs, evaluate_every=every).evaluation_epochs()
    assert measured == sorted(set(measured))
    assert measured[0] == 0
    assert measured[-1] == epochs
    assert all(epoch % every == 0 for epoch in measured[:-1])
    assert len(measured) == 1 + -(-epochs // every)


@given(n=st.integers(1, 200), seed=st.integers(0, 2**32 - 1), epoch=st.integers(1, 1000))
def test_the_order_of_an_epoch_depends_on_seed_and_epoch_alone(n, seed, epoch):
    """A permutation, the same again whatever was drawn before."""
    order = epoch_order(n, seed, epoch)
    assert sorted(order) == list(range(n))
    np.random.default_rng(0).random(7)
    np.testing.assert_array_equal(order, epoch_order(n, seed, epoch))


def test_orders_differ_between_epochs_and_seeds():
    """No two of many epochs and seeds share an order of 64 strings."""
    orders = {tuple(epoch_order(64, seed, epoch)) for seed in range(8) for epoch in range(1, 9)}
    assert len(orders) == 64


# Batches

shapes = {
    "n": st.integers(1, 70),
    "batch": st.integers(1, 20),
    "micro": st.integers(1, 20),
    "processes": st.integers(1, 5),
}


@given(**shapes)
def test_an_epoch_visits_every_string_once(n, batch, micro, processes):
    """Over processes and passes, each step has the next strings of the order, and no other."""
    order = epoch_order(n, 0, 1)
    of_rank = [
        list(micro_batches(order, batch, micro, rank, processes)) for rank in range(processes)
    ]
    for step, of_processes in enumerate(zip(*of_rank, strict=True)):
        rows = np.concatenate([rows for passes in of_processes for rows in passes])
        expected = order[step * batch : (step + 1) * batch]
        assert sorted(rows[rows >= 0]) == sorted(expected)
        assert set(rows[rows < 0]) <= {-1}
    assert len(of_rank[0]) == Recipe(1.0, batch_size=batch).steps_per_epoch(n)


@given(**shapes)
def test_all_processes_make_equally_many_passes(n, batch, micro, processes):
    """Collectives match: equal numbers of passes, as the optimiser counts them, of equal size."""
    recipe = Recipe(1.0, batch_size=batch, micro_batch_size=micro)
    order = np.arange(n)
    of_rank = [
        list(micro_batches(order, batch, micro, rank, processes)) for rank in range(processes)
    ]
    shapes = {tuple(len(rows) for rows in passes) for steps in of_rank for passes in steps}
    assert len(shapes) == 1
    (lengths,) = shapes
    assert len(lengths) == recipe.accumulation_steps(processes)
    assert len(set(lengths)) == 1
    assert lengths[0] <= micro


def test_processes_share_a_batch_evenly():
    """Two processes take half of each batch, also where one pass could hold it all."""
    for rank in range(2):
        (step,) = micro_batches(np.arange(8), 8, 8, rank, 2)
        assert [len(rows[rows >= 0]) for rows in step] == [4]


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=40).map(np.array),
    batch=st.integers(1, 10),
    processes=st.integers(1, 4),
)
def test_measuring_covers_every_string(lengths, batch, processes):
    """Every row is in a batch, batches are of similar length, and their number can be shared."""
    batches = by_length(lengths, np.arange(len(lengths)), batch, processes)
    assert len(batches) % processes == 0
    real = -(-len(lengths) // batch)
    assert sorted(np.concatenate(batches[:real])) == list(range(len(lengths)))
    assert len(batches) - real < processes
    assert all(0 < len(rows) <= batch for rows in batches)
    assert list(lengths[np.concatenate(batches[:real])]) == sorted(lengths)


@pytest.mark.parametrize("predict_end", [False, True])
def test_encoding_is_symbol_by_symbol(predict_end):
    """A start token, one token per terminal, the end token if it is predicted, then padding."""
    encoded = encode(pd.Series(["1 2 3", "x"]), TOKENS, predict_end)
    if predict_end:
        assert encoded.ids.tolist() == [[2, 5, 7, 4, 3], [2, 9, 3, 3, 3]]
        assert encoded.n_tokens.tolist() == [4, 2]
    else:
        assert encoded.ids.tolist() == [[2, 5, 7, 4], [2, 9, 3, 3]]
        assert encoded.n_tokens.tolist() == [3, 1]


def test_a_symbol_that_is_no_terminal_is_refused():
    """The symbol is named, in one line, with the remedy."""
    with pytest.raises(UserError) as error:
        encode(pd.Series(["1 2", "1 q"]), TOKENS, False)
    assert "has the symbol 'q', which is not a terminal" in str(error.value)


def test_a_batch_is_padded_and_masked():
    """Inputs lose the last token, targets the start; padding is masked and never predicted."""
    encoded = encode(pd.Series(["1 2 3", "x", "1 1 1 1 1"]), TOKENS, False)
    batch = encoded.batch(np.array([1, 0]), CPU)
    assert batch.ids_BT.tolist() == [[2, 9, 3], [2, 5, 7]]
    assert batch.mask_BT.tolist() == [[1, 1, 0], [1, 1, 1]]
    assert batch.targets_BT.tolist() == [[9, IGNORED, IGNORED], [5, 7, 4]]


def test_a_batch_of_equal_lengths_has_no_mask():
    """A mask of ones only costs time."""
    encoded = encode(pd.Series(["1 2", "x x", "1"]), TOKENS, True)
    assert encoded.batch(np.array([0, 1]), CPU).mask_BT is None


def test_a_filler_row_predicts_nothing():
    """A place left over in a pass has no target, though it has tokens to keep the shape."""
    encoded = encode(pd.Series(["1 2 3", "x"]), TOKENS, False)
    batch = encoded.batch(np.array([0, -1, -1]), CPU)
    assert batch.ids_BT.shape == (3, 3)
    assert batch.targets_BT.tolist() == [[5, 7, 4], [IGNORED] * 3, [IGNORED] * 3]
    empty = encoded.batch(np.array([-1, -1]), CPU)
    assert (empty.targets_BT == IGNORED).all()


# What is measured


def naive(logits, targets):
    """The same numbers token by token, in float64."""
    result = np.zeros((3, len(targets)))
    for row, line in enumerate(targets):
        for place, token in enumerate(line):
            if token == IGNORED:
                continue
            scores = logits[row, place].double()
            result[0, row] -= float(torch.log_softmax(scores, 0)[token])
            result[1, row] += int(scores.argmax()) == token
            result[2, row] += 1 + int((scores > scores[token]).sum())
    return result


@settings(deadline=None)
@given(seed=st.integers(0, 2**31), ties=st.booleans(), vocabulary=st.integers(2, 9))
def test_a_batch_is_measured_as_token_by_token(seed, ties, vocabulary):
    """Loss, hits and ranks of the predicted tokens, with and without ties; padding never counts."""
    chance = torch.Generator().manual_seed(seed)
    logits = torch.randn((4, 6, vocabulary), generator=chance) * 4
    if ties:
        logits = logits.round()
    targets = torch.randint(vocabulary, (4, 6), generator=chance)
    targets[torch.rand((4, 6), generator=chance) < 0.3] = IGNORED
    targets[0] = IGNORED
    measured = measure_batch(logits, targets)
    assert measured.dtype == torch.float64
    np.testing.assert_allclose(measured, naive(logits, targets.tolist()), rtol=2e-6, atol=1e-5)
    np.testing.assert_array_equal(measured[1:], naive(logits, targets.tolist())[1:])
    assert (measured[:, 0] == 0).all()


def test_a_tie_is_a_shared_rank():
    """Tokens with equal logits share the best rank among them."""
    logits = torch.tensor([[[1.0, 3.0, 3.0, 3.0]]])
    ranks = [int(measure_batch(logits, torch.tensor([[token]]))[2]) for token in range(4)]
    assert ranks == [4, 1, 1, 1]


def test_what_padding_predicts_changes_nothing():
    """Logits at positions without a target do not matter."""
    logits = torch.randn((2, 3, 5))
    targets = torch.tensor([[1, 2, IGNORED], [4, IGNORED, IGNORED]])
    before = measure_batch(logits, targets)
    logits[targets == IGNORED] = 1e9
    torch.testing.assert_close(measure_batch(logits, targets), before)


def test_bf16_logits_are_widened_first():
    """The loss of half-precision logits is exact for those logits."""
    logits = (torch.randn((3, 4, 50)) * 5).bfloat16()
    targets = torch.randint(50, (3, 4))
    measured = measure_batch(logits, targets)
    np.testing.assert_allclose(measured, naive(logits, targets.tolist()), rtol=1e-6)


@cache
def llama():
    """A tiny Llama with random weights."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    config = LlamaConfig(vocab_size=10, num_attention_heads=2, pad_token_id=3, **sizes)
    return LlamaForCausalLM(config)


@settings(max_examples=25, deadline=None)
@given(texts=texts, predict_end=st.booleans(), batch=st.integers(1, 5))
def test_strings_are_measured_as_if_alone(texts, predict_end, batch):
    """Padding, batching and order change nothing: each string's numbers are its own."""
    encoded = encode(pd.Series(texts), TOKENS, predict_end)
    together = evaluate(llama(), encoded, np.arange(len(encoded.lengths)), batch, CPU)
    assert together.shape == (3, len(texts))
    for row, text in enumerate(texts):
        alone = encode(pd.Series([text]), TOKENS, predict_end)
        ids = torch.from_numpy(alone.ids)
        with torch.no_grad():
            logits = llama()(input_ids=ids[:, :-1]).logits
        expected = naive(logits, ids[:, 1:].tolist())[:, 0]
        assert together[0, row] == pytest.approx(expected[0], abs=1e-4)
        assert together[1, row] == expected[1]
        assert together[2, row] == expected[2]


def test_measuring_leaves_the_model_in_training_mode():
    """The next epoch trains as the last one did, and no gradient is kept."""
    encoded = encode(pd.Series(["1 2"]), TOKENS, False)
    model = llama().train()
    evaluate(model, encoded, np.arange(len(encoded.lengths)), 4, CPU)
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_filler_row_gives_no_gradient():
    """A pass with fillers has the loss and gradient of the pass without them."""
    encoded = encode(pd.Series(["1 2 3", "x", "2 2"]), TOKENS, False)

    def gradient(rows):
        batch = encoded.batch(np.array(rows), CPU)
        llama().zero_grad()
        loss = torch.nn.functional.cross_entropy(
            predict(llama(), batch).flatten(0, 1),
            batch.targets_BT.flatten(),
            ignore_index=IGNORED,
            reduction="sum",
        )
        loss.backward()
        return torch.cat([p.grad.flatten() for p in llama().parameters()])

    torch.testing.assert_close(gradient([0, 1, -1, -1]), gradient([0, 1]), atol=1e-6, rtol=1e-5)
    llama().zero_grad()


def test_the_loss_of_a_multiset():
    """Nats per token over all copies; an empty set has no loss."""
    measured = np.array([[2.0, 6.0, 100.0]])
    counts, n_tokens = np.array([3, 1, 0]), np.array([2, 4, 5])
    assert summarise(measured, counts, n_tokens) == pytest.approx((3 * 2 + 6) / (3 * 2 + 4))
    assert math.isnan(summarise(measured, 0 * counts, n_tokens))


def test_a_recipe_is_a_value():
    """Equal recipes are equal and hashable: the state of a run is keyed by it."""
    assert Recipe(1e-3) == Recipe(1e-3)
    assert hash(Recipe(1e-3)) != hash(replace(Recipe(1e-3), epochs=51))
