"""Samples of models: what is read is what was written, and what is missing is named."""

import numpy as np
import pytest

from helpers.unlearning_world import (
    EPOCHS,
    FORGET,
    KEYS,
    SPLITS,
    STRINGS,
    TRAINED,
    only,
    trace,
    unlearned,
    world,
)
from palimpsest import tables
from palimpsest.errors import UserError
from palimpsest.sections import KINDS
from palimpsest.unlearning.evaluate.samples import (
    Members,
    Predictions,
    read_problem,
    read_trained,
    read_unlearned,
    setups_of,
)

IDS = STRINGS["string_id"].to_numpy(dtype=object)
N_STRINGS = len(SPLITS)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A world that tests only read."""
    return world(tmp_path_factory.mktemp("world"), n=6, pool=8)


def one_line(error, *parts):
    """The message of an error, one line that has all the parts."""
    message = str(error.value)
    assert "\n" not in message
    for part in parts:
        assert str(part) in message, message


def known_losses(n):
    """Losses [n, strings], no two alike."""
    return 1 + np.arange(n * N_STRINGS).reshape(n, -1) / (100 * n * N_STRINGS)


def two_traces(folder):
    """Traces of the unlearning_replicates 0 to 2 and 3 to 4, and their losses at the last epoch."""
    loss = known_losses(5)
    return [
        trace(folder / "a" / "trace.parquet", "original", [0, 1, 2], loss[:3]),
        trace(folder / "b" / "trace.parquet", "original", [3, 4], loss[3:]),
    ], loss


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_trained_models_are_found_by_their_draw_whatever_the_order_of_files(tmp_path, order):
    paths, loss = two_traces(tmp_path)
    read = read_trained([paths[i] for i in order], "original", IDS)
    assert read.problem == KEYS
    wanted = np.array([4, 0, 0, 3])
    np.testing.assert_allclose(read.of(wanted).loss, loss[wanted])


def test_strings_come_as_asked_for_and_with_all_epochs(tmp_path):
    paths, loss = two_traces(tmp_path)
    some = [7, 2, 11]
    read = read_trained(paths, "original", IDS[some], "all")
    assert read.nll.shape == (5, len(EPOCHS), 3)
    np.testing.assert_array_equal(read.epochs, EPOCHS)
    np.testing.assert_allclose(read.loss[:, -1], loss[:, some])
    np.testing.assert_allclose(read.loss[:, 0], 2 * loss[:, some])
    last = read_trained(paths, "original", IDS[some])
    for name in ("nll", "n_correct", "rank_sum"):
        np.testing.assert_array_equal(getattr(last, name), getattr(read, name)[:, -1])


def test_a_missing_draw_is_named_with_the_file_that_should_hold_it(tmp_path):
    paths, _ = two_traces(tmp_path)
    only(paths[0], "trace", lambda frame: frame["variant"] != "original-1")
    read = read_trained(paths, "original", IDS)
    with pytest.raises(UserError) as error:
        read.rows(np.array([0, 1]))
    one_line(error, "original", "replicate 1", f"rerun: snakemake --cores 1 {paths[0]}")
    with pytest.raises(UserError) as error:
        read.rows(np.array([5]))
    one_line(error, "replicate 5", paths[1])


def test_a_missing_unlearned_model_is_named_by_origin_and_draw(tmp_path):
    made = world(tmp_path, n=4, pool=4)
    path = made.unlearned[0]
    only(
        path,
        "unlearned",
        lambda frame: ~((frame["origin"] == 2) & (frame["unlearning_replicate"] == 1)),
    )
    read = read_unlearned([path], "good", IDS)
    with pytest.raises(UserError) as error:
        read.of(np.array([1, 2]), np.array([1, 1]))
    one_line(error, "good", "origin 2, replicate 1", path)


def test_traces_of_another_kind_of_models_are_refused(tmp_path):
    paths, _ = two_traces(tmp_path)
    with pytest.raises(UserError) as error:
        read_trained(paths, "retain", IDS)
    one_line(error, paths[0], "original-0", "retain")


@pytest.mark.parametrize(
    ("broken", "part"),
    [
        (lambda frame: frame.iloc[:-1], "must be grouped by model"),
        (lambda frame: frame.sample(frac=1, random_state=0), "must be grouped by model"),
        (lambda frame: frame.assign(variant="original-0"), "must be grouped by model"),
        (lambda frame: frame[frame["string_id"] != IDS[3]], f"lacks the string {IDS[3]}"),
        (lambda frame: frame.assign(language="other"), "another problem"),
        (lambda frame: frame[frame["epoch"] < 10], "other epochs"),
        (lambda frame: frame[:135].assign(variant="original-2"), "is in"),
        (lambda frame: frame.assign(nll=np.inf), "not finite"),
    ],
)  # fmt: skip
def test_a_trace_that_does_not_fit_is_refused(tmp_path, broken, part):
    paths, _ = two_traces(tmp_path)
    tables.write(paths[1], broken(tables.read(paths[1], KINDS["trace"])), KINDS["trace"])
    with pytest.raises(UserError) as error:
        read_trained(paths, "original", IDS)
    one_line(error, paths[1], part, f"rerun: snakemake --cores 1 {paths[1]}")


def test_a_table_in_the_folder_of_another_method_is_refused(made):
    with pytest.raises(UserError) as error:
        read_unlearned([made.unlearned[0]], "other", IDS)
    one_line(error, "good", "other", made.unlearned[0])


def test_the_ideal_is_retrained_models_that_nothing_is_compared_with(made):
    problem = made.problem()
    methods = {method.name: method for method in made.methods(problem)}
    assert list(methods) == ["none", "good", "shifted", "retrain"]
    members = Members(np.array([1, 2]), np.array([2, 0]), np.array([5, 3]))
    retrained = read_trained(made.retrained, "retain", IDS)
    assert problem.n_reference == 8
    np.testing.assert_array_equal(
        methods["retrain"].of(members).nll, retrained.of(np.array([13, 11])).nll
    )
    np.testing.assert_array_equal(
        methods["none"].of(members).nll, problem.originals.of(np.array([1, 2])).nll
    )
    unlearned = read_unlearned([made.unlearned[0]], "good", IDS)
    np.testing.assert_array_equal(
        methods["good"].of(members).nll,
        unlearned.of(members.origins, members.unlearning_replicates).nll,
    )


def test_too_few_retrained_models_for_the_ideal_are_refused(made):
    problem = read_problem(made.originals, made.retrained[:1], made.dataset, made.setups)
    ideal = list(made.methods(problem))[-1]
    with pytest.raises(UserError, match="retrained model with replicate 8 is missing"):
        ideal.of(problem.stock)


def test_a_model_without_its_cost_is_named(tmp_path):
    made = world(tmp_path, n=4, pool=4)
    only(made.models[0], "unlearned_models", lambda frame: frame["origin"] != 3)
    problem = made.problem()
    good = list(made.methods(problem))[1]
    with pytest.raises(UserError) as error:
        good.values("steps", problem.stock)
    one_line(error, "good", "origin 3, replicate 0")


def test_sets_count_copies_and_a_forget_string_is_in_no_test_set(made):
    problem = made.problem()
    count, test_count = STRINGS["count"].to_numpy(), STRINGS["test_count"].to_numpy()
    np.testing.assert_array_equal(problem.copies("forget"), np.where(FORGET, count, 0))
    np.testing.assert_array_equal(problem.copies("retain"), np.where(TRAINED & ~FORGET, count, 0))
    test = problem.copies("test")
    assert test_count[FORGET].any()
    assert not test[FORGET].any()
    np.testing.assert_array_equal(test[~FORGET], test_count[~FORGET])
    # Ten retained strings of 1, 2, 3, 1, ... copies are 19: three batches of 8.
    assert problem.copies("retain").sum() == 19
    assert problem.retraining_steps(10, 8) == 30


def test_a_dataset_without_a_forget_set_is_refused(made, tmp_path):
    path = tmp_path / "strings.parquet"
    tables.write(path, STRINGS.replace({"split": {"forget": "train"}}), KINDS["strings"])
    with pytest.raises(UserError) as error:
        read_problem(made.originals, made.retrained, path, made.setups)
    one_line(error, path, "forget")


def test_a_dataset_of_another_problem_is_refused(made, tmp_path):
    path = tmp_path / "strings.parquet"
    tables.write(path, STRINGS.assign(seed=1), KINDS["strings"])
    with pytest.raises(UserError) as error:
        read_problem(made.originals, made.retrained, path, made.setups)
    one_line(error, path, "one problem")


@pytest.mark.parametrize(
    ("names", "size", "origins"),
    [
        (["reuse-n-n"], 4, 4),
        (["reuse-n-n", "bootstrap"], 7, 7),
        (["full"], 12, 12),
        (["reuse-n-1"], 4, 1),
        (["reuse-n-1", "reuse-n-n"], 4, 4),
        (["reuse-n-n", "reuse-n-1"], 4, 4),
        (["reuse-n-1", "bootstrap", "reuse-n-n"], 7, 7),
    ],
)
def test_the_stock_has_every_model_once(made, names, size, origins):
    problem = read_problem(
        made.originals, made.retrained, made.dataset, setups_of(names, 4, 3, 7, 0)
    )
    stock = problem.stock
    assert len(set(zip(stock.origins, stock.unlearning_replicates, strict=True))) == size
    assert len(set(stock.retrained)) == size
    assert len(set(stock.origins)) == origins
    assert problem.independent == (origins == size)


def test_scores_of_tokens_are_read_where_asked_for(tmp_path):
    """Those of an end are in its own tables; a model of the ideal has its pair's number there."""
    made = world(tmp_path, n=4, pool=4)
    problem = made.problem()
    loss = known_losses(4)
    for end in ("none", "retrain"):
        keys = [(origin, 0) for origin in range(4)]
        made.unlearned.append(unlearned(tmp_path, end, keys, loss)[0])
    asked = problem.methods(made.unlearned, made.models, with_tokens=True)
    methods = {method.name: method for method in asked}
    assert list(methods) == ["none", "good", "shifted", "retrain"]
    members = Members(np.array([1, 2]), np.array([0, 1]), np.array([3, 0]))
    for end, rows in (("none", [1, 2]), ("retrain", [3, 0])):
        found = methods[end].measured_of(members)
        np.testing.assert_array_equal(found.tokens.min_k, -3 * loss[rows])
        np.testing.assert_array_equal(found.tokens.min_k_plus, -loss[rows])
    good = methods["good"].measured_of(members).restricted(FORGET)
    np.testing.assert_allclose(good.tokens.min_k, -3 * good.loss)
    np.testing.assert_array_equal(good.tokens.n_last_correct, good.n_correct // 2)
    for method in made.methods(problem):
        assert method.measured_of(members) is None


def test_probability_by_hand():
    """TOFU's Probability: the geometric mean over tokens, then the mean over copies of strings."""
    found = Predictions(
        {},
        "",
        {},
        None,
        string_ids=np.array(["a", "b", "c"]),
        n_tokens=np.array([2, 1, 4]),
        nll=-np.log([[0.5 * 0.5, 0.1, 0.2**4], [0.9 * 0.4, 0.3, 1]]),
        n_correct=np.zeros((2, 3)),
        rank_sum=np.zeros((2, 3)),
    )
    expected = [(3 * 0.5 + 0.1) / 4, (3 * 0.6 + 0.3) / 4]
    np.testing.assert_allclose(found.probability(np.array([3, 1, 0])), expected)
