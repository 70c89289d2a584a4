"""The models of an unlearning problem, as arrays of their predictions.

All evaluations of unlearning are functions of these arrays. There are original models, retrained
models and, for each method, unlearned models. A model is known by its predictions for every string.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from palimpsest import tables
from palimpsest.commands import remake
from palimpsest.datasets.choices import in_tokens_of_a_model
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import UserError
from palimpsest.regimes import replicate_of
from palimpsest.tables.trace import TRACE
from palimpsest.unlearning.evaluate.predictions import (
    TOKEN_SCORES,
    VALUES,
    Key,
    Predictions,
    TokenScores,
)
from palimpsest.unlearning.interventions import ORIGINAL, RETAIN
from palimpsest.unlearning.kinds import UNLEARNED, UNLEARNED_MODELS
from palimpsest.unlearning.run.setups import (
    ENDS,
    INNOCENT,
    NONE,
    RETRAIN,
    REUSE_N_1,
    Members,
    Setup,
    n_retrained,
    retraining_steps,
)

PROBLEM_KEYS = ["model", "language", "size", "seed"]
PREDICTED = ["string_id", "n_tokens", *VALUES]


def read_trained(
    paths: Iterable[str],
    variant: str,
    string_ids: np.ndarray,
    epoch: Literal["last", "all"] = "last",
) -> Predictions:
    """Read the traces of models trained on a variant; each file holds some replicates.

    Parameters
    ----------
    paths : tables of kind `trace`, with variants `{variant}-{replicate}`
    variant : "original" or "retain"
    string_ids : str[strings], the strings to read, in this order
    epoch : "last" or "all"
        Ask for all epochs with few strings only, because a trace of many models is long.

    Raises
    ------
    UserError
        If a file is not a complete trace of such models, lacks a string, or has other epochs.
    """
    parts = []
    for path in paths:
        epochs = np.unique(tables.read_arrow(path, TRACE, ["epoch"])["epoch"].to_numpy())
        if epoch == "last":
            epochs, wanted = epochs[-1:], [("epoch", "=", int(epochs[-1]))]
        else:
            wanted = [("string_id", "in", list(string_ids))]
        columns = [*PROBLEM_KEYS, "variant", "epoch", *PREDICTED]
        table = tables.read_arrow(path, TRACE, columns, wanted)
        names = _models(path, table, ["variant"], epochs)
        keys = [(_replicate(path, name, variant), 0) for (name,) in names]
        parts.append(_part(path, table, keys, string_ids, epochs))
    trained = _joined(parts, {ORIGINAL: "original", RETAIN: "retrained"}[variant])
    return trained if epoch == "all" else _at_one_epoch(trained)


def read_unlearned(
    paths: Iterable[str], method: str, string_ids: np.ndarray, with_tokens: bool = False
) -> Predictions:
    """Read the tables of kind `unlearned` of one method; each file holds some models.

    With `with_tokens`, also read the scores that need every token.

    Raises `UserError` if a file is incomplete, belongs to another method, or lacks a string.
    """
    parts = []
    for path in paths:
        columns = [*PROBLEM_KEYS, "method", "origin", "unlearning_replicate", *PREDICTED]
        columns += TOKEN_SCORES if with_tokens else []
        table = tables.read_arrow(path, UNLEARNED, columns)
        _check_method(path, table["method"], method)
        keys = _models(path, table, ["origin", "unlearning_replicate"], None)
        parts.append(_part(path, table, keys, string_ids, None))
    return _at_one_epoch(_joined(parts, f"unlearned ({method})"))


def _models(path: str, table: pa.Table, names: list[str], epochs: np.ndarray | None) -> list[tuple]:
    """The values of the columns `names` for every model of a file, in order.

    Raises `UserError` unless the rows are sorted by model and then by epoch, and each epoch has the
    same strings in the same order.
    """
    strings = table["string_id"].combine_chunks().dictionary_encode()
    shape = (-1, 1 if epochs is None else len(epochs), len(strings.dictionary))
    whole = len(table) % (shape[1] * shape[2]) == 0
    if whole:
        # A dictionary has the order of first appearance: the order of the first model's strings.
        places = strings.indices.to_numpy().reshape(shape)
        whole = (places == np.arange(shape[2])).all()
    if whole and epochs is not None:
        whole = (table["epoch"].to_numpy().reshape(shape) == epochs[:, None]).all()
    found = []
    for name in names if whole else []:
        column = table[name].combine_chunks().dictionary_encode()
        codes = column.indices.to_numpy().reshape(len(places), -1)
        whole &= (codes == codes[:, :1]).all()
        found.append([column.dictionary[int(code)].as_py() for code in codes[:, 0]])
    models = list(zip(*found, strict=True))
    if not whole or len(set(models)) < len(models):
        raise UserError(
            f"{path}: its rows must be grouped by model, with the same strings in the same order "
            f"for each model; {remake(path)}"
        )
    return models


def _part(
    path: str,
    table: pa.Table,
    keys: list[Key],
    string_ids: np.ndarray,
    epochs: np.ndarray | None,
) -> Predictions:
    """The models of one file, [models, epochs, strings], with the strings `string_ids`."""
    remedy = remake(path)
    there = table["string_id"].unique().to_pylist()
    place = pd.Index(there).get_indexer(string_ids)
    if (place < 0).any():
        stranger = np.asarray(string_ids)[place < 0][0]
        raise UserError(f"{path}: lacks the string {stranger}; it is of an older dataset: {remedy}")
    shape = (len(keys), -1, len(there))

    def values(names: list[str]) -> list[np.ndarray]:
        return [table[name].to_numpy().reshape(shape)[..., place] for name in names]

    nll, n_correct, rank_sum = values(VALUES)
    if not np.isfinite(nll).all():
        raise UserError(
            f"{path}: a model's loss is not finite; lower the learning rate of its method, or "
            f"{remedy}"
        )
    return Predictions(
        problem={key: table[key][0].as_py() for key in PROBLEM_KEYS},
        what="",
        files=dict.fromkeys(keys, str(path)),
        epochs=epochs,
        string_ids=np.asarray(string_ids, dtype=object),
        n_tokens=table["n_tokens"].to_numpy()[: len(there)][place],
        nll=nll,
        n_correct=n_correct,
        rank_sum=rank_sum,
        tokens=TokenScores(*values(TOKEN_SCORES)) if "min_k" in table.column_names else None,
    )


def _at_one_epoch(predictions: Predictions) -> Predictions:
    """[models, strings] from [models, 1, strings]."""
    values = {name: getattr(predictions, name)[:, 0] for name in VALUES}
    tokens = predictions.tokens and predictions.tokens.at((slice(None), 0))
    return replace(predictions, tokens=tokens, **values)


def _joined(parts: list[Predictions], what: str) -> Predictions:
    if not parts:
        raise UserError(f"no table of {what} models is given; give at least one")
    first, files = parts[0], {}
    for part in parts:
        path = next(iter(part.files.values()))
        remedy = remake(path)
        if part.problem != first.problem:
            raise UserError(f"{path}: is of another problem than the other files; {remedy}")
        if not np.array_equal(part.epochs, first.epochs):
            raise UserError(f"{path}: has other epochs than the other files; {remedy}")
        twice = files.keys() & part.files.keys()
        if twice:
            raise UserError(
                f"{path}: its model {min(twice)} is in {files[min(twice)]} too; {remedy}"
            )
        files.update(part.files)
    values = {name: np.concatenate([getattr(part, name) for part in parts]) for name in VALUES}
    tokens = first.tokens and TokenScores(
        *(np.concatenate([getattr(part.tokens, name) for part in parts]) for name in TOKEN_SCORES)
    )
    return replace(first, what=what, files=files, tokens=tokens, **values)


def _replicate(path: str, name: str, variant: str) -> int:
    """The replicate in the name of a variant: 12 for `original-12`."""
    replicate = replicate_of(name, variant)
    if replicate is None:
        raise UserError(
            f"{path}: holds the variant {name!r}, not {variant}-0, {variant}-1, ...; give traces "
            f"of the variant {variant}"
        )
    return replicate


def _check_method(path: str, column: pa.ChunkedArray, method: str) -> None:
    names = column.unique().to_pylist()
    if names != [method]:
        raise UserError(
            f"{path}: is of the method {', '.join(names)}, not of {method}; {remake(path)}"
        )


@dataclass(frozen=True)
class UnlearnedModels:
    """A method and its models: their predictions and, where known, their costs.

    `models` holds the rows of `unlearned_models`, indexed by origin and replicate. Models of the
    two ends have one number only. A model of `none` has the number of the original model. A model
    of `retrain` has the number of the retrained model it is paired with: `replicate -
    retrained_offset`. For example, with `retrained_offset` 3, replicate 5 is paired with retrained
    model 2.

    `measured` has the predictions in the method's own tables, with the scores that need every
    token. For the two ends, `predictions` are from traces, and `measured` counts models like
    `models`. `measured` is None if the scores are not read, or if an end has no tables.
    """

    name: str
    predictions: Predictions
    models: pd.DataFrame
    retrained_offset: int = 0
    measured: Predictions | None = None

    def of(self, members: Members) -> Predictions:
        origins, unlearning_replicates = self.keys(members)
        return self.predictions.of(origins + self.retrained_offset, unlearning_replicates)

    def measured_of(self, members: Members) -> Predictions | None:
        """The models of a repetition with the scores that need every token; None without them."""
        return self.measured and self.measured.of(*self.keys(members))

    def rows(self, members: Members) -> np.ndarray:
        """Indices int[n] of a repetition's models among all models of the method."""
        origins, unlearning_replicates = self.keys(members)
        return self.predictions.rows(origins + self.retrained_offset, unlearning_replicates)

    def values(self, column: str, members: Members) -> np.ndarray:
        """The values float[n] of a column of `unlearned_models` for the models of a repetition.

        Raises `UserError` if a model has no row.
        """
        keys = list(zip(*self.keys(members), strict=True))
        absent = [key for key in keys if key not in self.models.index]
        if absent:
            raise UserError(
                f"{self.name}: the model with origin {absent[0][0]}, replicate {absent[0][1]} has "
                "no row of unlearned_models; delete the method's tables under results/unlearning "
                "and rerun"
            )
        return self.models.loc[keys, column].to_numpy(dtype=float)

    def keys(self, members: Members) -> tuple[np.ndarray, np.ndarray]:
        """Origins and unlearning replicates int[n] of this method's models in a repetition."""
        if self.name == NONE:
            return members.origins, np.zeros_like(members.origins)
        if self.name in (RETRAIN, INNOCENT):
            return members.retrained, np.zeros_like(members.retrained)
        return members.origins, members.unlearning_replicates


@dataclass(frozen=True)
class Problem:
    """A training set, its forget set, and the models trained with and without the forget set.

    `strings` is the dataset; its order of strings is the order in both predictions. There are twice
    as many retrained models as any set-up compares with: the second half is the ideal `retrain`.
    `innocent` are models that are trained on the retain set in another way, which is no
    failure to unlearn, if there are any; their numbers follow those of the retrained models.
    """

    strings: pd.DataFrame
    originals: Predictions
    retrained: Predictions
    setups: tuple[Setup, ...]
    innocent: Predictions | None = None

    @property
    def keys(self) -> dict:
        """Model, language, size and seed."""
        return self.originals.problem

    @property
    def string_ids(self) -> np.ndarray:
        """str[strings]."""
        return self.originals.string_ids

    @cached_property
    def n_reference(self) -> int:
        """Number of retrained models with which unlearned models are compared."""
        return n_retrained(self.setups)

    @cached_property
    def reference(self) -> Predictions:
        return self.retrained.of(np.arange(self.n_reference))

    @cached_property
    def forget(self) -> np.ndarray:
        """bool[strings]: the forget set."""
        return (self.strings["split"] == "forget").to_numpy()

    @cached_property
    def never_trained(self) -> np.ndarray:
        """bool[strings]: test strings that no model was trained on."""
        return (self.strings["split"] == "test").to_numpy()

    def copies(self, name: Literal["retain", "forget", "test"]) -> np.ndarray:
        """Number of copies int[strings] of each string in a set.

        A test string may also be in the retain set; it then stays in the test set. A test string
        that is also in the forget set is left out of the test set: otherwise a method would have to
        predict well the strings that it has to forget.
        """
        if name == "test":
            return np.where(self.forget, 0, self.strings["test_count"])
        inside = self.strings["split"] == {"retain": "train", "forget": "forget"}[name]
        return np.where(inside, self.strings["count"], 0)

    def retraining_steps(self, epochs: int, batch_size: int) -> int:
        return retraining_steps(epochs, int(self.copies("retain").sum()), batch_size)

    @cached_property
    def stock(self) -> Members:
        """The distinct models of one set-up, each paired with a retrained model.

        The set-up is the one with most distinct original models; of several, the one with most
        models.
        """
        return max(
            (_distinct(setup) for setup in self.setups),
            key=lambda stock: (len(np.unique(stock.origins)), len(stock.origins)),
        )

    @property
    def independent(self) -> bool:
        """Whether no two unlearned models of the stock come from one original model.

        If two do, what chance did in the training of this original model looks like an effect of
        unlearning. Tests and intervals over such models are wrong.
        """
        return len(np.unique(self.stock.origins)) == len(self.stock.origins)

    @property
    def innocent_models(self) -> list[UnlearnedModels]:
        """The innocent models, as if they were models of a method; [] if there are none."""
        if self.innocent is None:
            return []
        costs = read_models([], INNOCENT)
        return [UnlearnedModels(INNOCENT, self.innocent, costs, 2 * self.n_reference)]

    def methods(
        self, unlearned: Iterable[str], models: Iterable[str], with_tokens: bool = False
    ) -> Iterator[UnlearnedModels]:
        """Yield the original models, then the models of each method, then the ideal `retrain`.

        Parameters
        ----------
        unlearned : tables of kind `unlearned`, in folders `{method}/{part}/`
            The predictions of the two ends are in the traces. Their tables, if there are any, are
            read for the scores that need every token.
        models : tables of kind `unlearned_models`, in the same folders; the ends may have none.
        with_tokens : bool
            Read the scores that need every token.

        Raises
        ------
        UserError
            If a file belongs to another problem or method than its folder says.
        """
        predicted, known = _by_method(unlearned), _by_method(models)

        def read(name: str) -> Predictions:
            found = read_unlearned(predicted[name], name, self.string_ids, with_tokens)
            if found.problem != self.keys:
                path = predicted[name][0]
                raise UserError(
                    f"{path}: is of {found.problem}, the traces are of {self.keys}; {remake(path)}"
                )
            return found

        def end(name: str, trained: Predictions, retrained_offset: int = 0) -> UnlearnedModels:
            measured = read(name) if with_tokens and name in predicted else None
            costs = read_models(known.get(name, []), name)
            return UnlearnedModels(name, trained, costs, retrained_offset, measured)

        yield end(NONE, self.originals)
        for name in (name for name in predicted if name not in ENDS):
            found, costs = read(name), read_models(known.get(name, []), name)
            yield UnlearnedModels(name, found, costs, measured=found if with_tokens else None)
        yield end(RETRAIN, self.retrained, self.n_reference)


def setups_of(
    names: Iterable[str], n: int, repetitions: int, pool: int, seed: int
) -> tuple[Setup, ...]:
    return tuple(Setup(name, n, repetitions, pool, seed) for name in names)


def problem_of(
    *,
    dataset: str,
    originals: Sequence[str],
    retrained: Sequence[str],
    innocent: Sequence[str] = (),
    setups: Iterable[str],
    n: int,
    repetitions: int,
    pool: int,
    seed: int,
) -> Problem:
    asked = setups_of(setups, n, repetitions, pool, seed)
    return read_problem(originals, retrained, dataset, asked, innocent)


def read_problem(
    originals: Iterable[str],
    retrained: Iterable[str],
    dataset: str,
    setups: Iterable[Setup],
    innocent: Sequence[str] = (),
) -> Problem:
    """Read a problem from its traces and its dataset, the variant `original`.

    Raises `UserError` if the files belong to different problems, or if nothing is to be forgotten.
    """
    strings = tables.read(dataset, STRINGS)
    string_ids = strings["string_id"].to_numpy(dtype=object)
    trained = read_trained(originals, ORIGINAL, string_ids)
    problem = Problem(
        in_tokens_of_a_model(strings, trained.n_tokens),
        trained,
        read_trained(retrained, RETAIN, string_ids),
        tuple(setups),
        read_trained(innocent, RETAIN, string_ids) if innocent else None,
    )
    if not problem.forget.any() or not problem.copies("test").any():
        raise UserError(
            f"{dataset}: has no strings of the split forget, or none to test on; give the dataset "
            "of the variant original of an unlearning problem"
        )
    of_dataset = strings[PROBLEM_KEYS[1:]].iloc[0].to_dict()
    for trained in filter(None, (problem.originals, problem.retrained, problem.innocent)):
        if trained.problem != {"model": problem.keys["model"], **of_dataset}:
            raise UserError(
                f"{dataset}: is of {of_dataset}, the traces of {trained.what} models are of "
                f"{trained.problem}; give those of one problem"
            )
    return problem


def read_models(paths: Iterable[str], method: str) -> pd.DataFrame:
    frame = tables.read_all(list(paths), UNLEARNED_MODELS)
    strangers = set(frame["method"]) - {method}
    if strangers:
        raise UserError(
            f"the tables of unlearned models of {method} have rows of {min(strangers)}; delete "
            "them and rerun"
        )
    return frame.set_index(["origin", "unlearning_replicate"]).sort_index()


def _by_method(paths: Iterable[str]) -> dict[str, list[str]]:
    """Files by method, which is the name of their folder `{method}/{part}/`, in the given order."""
    found: dict[str, list[str]] = {}
    for path in paths:
        found.setdefault(Path(path).parent.parent.name, []).append(path)
    return found


def _distinct(setup: Setup) -> Members:
    """The models of all repetitions of a set-up that share neither origin nor retrained model.

    All models of reuse-n-1 share one origin; for this set-up, the models of one repetition.
    """
    if setup.name == REUSE_N_1:
        return setup.members(0)
    each = np.arange(setup.n_trained)
    return Members(each, np.zeros_like(each), each)
