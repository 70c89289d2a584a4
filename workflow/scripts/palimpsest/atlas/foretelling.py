"""Foretelling: what training will do to each string, written before the training begins.

A regression on earlier runs predicts, for each training string of a later run, its loss at the end
and the epoch at which it is memorised. It knows what can be known before the first step: the
string's exact probability, its copies, its place in the order, the schedule, the other strings, and
the size of the model. All values of strings are relative to the run's mean, so that languages are
comparable.

The size of its errors comes from earlier runs, too: those that lack as much of the others as the
later run does (cross-validation by what is new). Of a new model, the other models' runs on the same
strings stay, so its errors are rather too small. With few models or languages, nothing guarantees
that 90 % of the intervals have the outcome; the judge counts them.

The strings of a later run are handed out only after its predictions were written. Their hash and
the time are in a promise, which the judge compares with the time at which the training began.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from palimpsest import manifests, traces
from palimpsest.atlas import kinds
from palimpsest.atlas.agreement import SHUFFLE_SEED
from palimpsest.atlas.contenders import n_grams
from palimpsest.atlas.distances import edit_distances, to_nearest_other
from palimpsest.atlas.kinds import BELOW_OPTIMAL, BITS, OUTCOMES, RECOLLECTED
from palimpsest.atlas.truth import RUN, rows_of_run
from palimpsest.conformal import LEVEL
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import UserError
from palimpsest.making import makes, reads
from palimpsest.memorisation.leave_one_out import rank_correlation
from palimpsest.memorisation.measures import Start, bayes, recollection
from palimpsest.memorisation.runs import epoch_of, paired, restrict, run_name
from palimpsest.traces import Trace
from palimpsest.training.recipe import Recipe, epoch_order

PARTS = ("model", "language", "size")  # what may be new beside the seed
SEED_ALONE = "seed"
OF_STRING = ["rarity", "exposure", "last_seen", "length", "isolation", "shared_n_grams"]
OF_RUN = ["parameters", "n_training_strings", "all_exposure"]
# What each prediction knows of a string, beside the run
DESIGNS = {"predicted": OF_STRING, "by_rarity": ["rarity"], "by_mean": []}
LEAST = 1e-6  # bits per token: lower losses count as this
N_SHUFFLES = 200


# What is known before a training


def known_before(strings: pd.DataFrame, recipe: Recipe, parameters: int) -> pd.DataFrame:
    """The features of each training string of a run, from its dataset and its recipe.

    Parameters
    ----------
    strings : table `strings` of one language, size and seed
    parameters : of the model, an estimate

    Returns columns language, size, seed, string_id, `OF_STRING`, `OF_RUN`, and two by which
    outcomes are scaled: `mean_bits` (mean Bayes-optimal loss of the training strings, bits per
    token) and `beyond` (the epoch that stands for never).
    """
    train = strings[strings["count"] > 0]
    copies, optimal = train["count"].to_numpy(), train["optimal_loss"].to_numpy()
    mean = max(np.average(optimal, weights=copies), LEAST)
    exposure, last_seen = presentations(copies, int(train["seed"].iloc[0]), recipe)
    isolation, shared = of_texts(tuple(train["text"]))
    found = train[["language", "size", "seed", "string_id"]].reset_index(drop=True)
    of_string = {
        "rarity": np.log(np.maximum(optimal, LEAST) / mean),
        "exposure": np.log(exposure),
        "last_seen": last_seen,
        "length": np.log(train["n_tokens"].to_numpy()),
        "isolation": isolation,
        "shared_n_grams": shared,
    }
    return found.assign(
        **{name: values - np.mean(values) for name, values in of_string.items()},
        parameters=math.log(parameters),
        n_training_strings=math.log(copies.sum()),
        all_exposure=math.log(exposure.sum()),
        mean_bits=mean / math.log(2),
        beyond=float(recipe.epochs + recipe.evaluate_every),
    )


def presentations(copies: np.ndarray, seed: int, recipe: Recipe) -> tuple[np.ndarray, np.ndarray]:
    """How much, and how late, a training will show each distinct string.

    Parameters
    ----------
    copies : int[strings]
    seed : of the run; with the epoch, it decides the order

    Returns the sum of the learning rates of the steps that have the string, once for each copy, and
    the place of its last copy in the last epoch, from 0 to 1, both float[strings].
    """
    rows = np.repeat(np.arange(len(copies)), copies)
    n_steps = recipe.steps_per_epoch(len(rows))
    steps = np.arange(len(rows)) // recipe.batch_size
    exposure, last_seen = np.zeros(len(copies)), np.zeros(len(copies))
    for epoch in range(1, recipe.epochs + 1):
        shown = rows[epoch_order(len(rows), seed, epoch)]
        first = (epoch - 1) * n_steps
        rates = [
            recipe.learning_rate_at(first + step, recipe.epochs * n_steps)
            for step in range(n_steps)
        ]
        np.add.at(exposure, shown, np.array(rates)[steps])
    np.maximum.at(last_seen, shown, np.arange(1, len(shown) + 1) / len(shown))
    return exposure, last_seen


@cache
def of_texts(texts: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """What the other training strings have in common with each string.

    Returns the edit distance to the nearest other string, per symbol, and the mean over the
    string's 3-grams of the log of 1 plus the other strings that have it, both float[strings].
    """
    nearest = np.minimum(to_nearest_other(edit_distances(texts), texts), 1)  # the only one has none
    of_strings = [n_grams(text) for text in texts]
    n_strings = Counter(gram for grams in of_strings for gram in grams)
    # Sets have no order, so the sum must not depend on it.
    shared = [
        math.fsum(math.log(n_strings[gram]) for gram in grams) / len(grams) for grams in of_strings
    ]
    return nearest, np.array(shared)


def outcomes_of(
    trace: Trace, strings: pd.DataFrame, start: Start, loss_threshold: float
) -> pd.DataFrame:
    """The outcomes of the training strings of a run: string_id, and a column for each outcome.

    A start is an epoch, NaN for never.
    """
    train = strings[strings["count"] > 0]
    loss = restrict(trace, train).loss
    starts = {
        RECOLLECTED: recollection(loss, loss_threshold, start).start,
        BELOW_OPTIMAL: bayes(loss, train["optimal_loss"].to_numpy(), start).start,
    }
    return pd.DataFrame(
        {
            "string_id": train["string_id"].to_numpy(dtype=object),
            BITS: loss[-1] / math.log(2),
            **{name: epoch_of(found, trace.epochs) for name, found in starts.items()},
        }
    )


# Scales: losses are compared as shares of the language's, and starts as shares of the training


def to_scale(outcome: str, values: np.ndarray, rows: pd.DataFrame) -> np.ndarray:
    if outcome == BITS:
        return np.log(np.maximum(values, LEAST) / rows["mean_bits"].to_numpy())
    return np.where(np.isnan(values), 1.0, values / rows["beyond"].to_numpy())


def from_scale(outcome: str, values: np.ndarray, rows: pd.DataFrame) -> np.ndarray:
    if outcome == BITS:
        return np.exp(values) * rows["mean_bits"].to_numpy()
    return np.clip(values, 0, 1) * rows["beyond"].to_numpy()


@dataclass(frozen=True)
class Foresight:
    """Regressions on earlier runs for runs that are new in the same way.

    `new` are the parts of a run that the earlier ones lack. `regressions` has one for each outcome
    and each of `DESIGNS`. `reach` is, by outcome, how far an interval reaches on the outcome's
    scale; NaN without earlier runs that are as new.
    """

    new: tuple[str, ...]
    regressions: Mapping[str, Mapping[str, Pipeline]]
    reach: Mapping[str, float]

    @classmethod
    def of(cls, earlier: pd.DataFrame, run: pd.DataFrame) -> Foresight:
        """Fit on the rows of earlier runs, for a run with these features."""
        new = tuple(part for part in PARTS if run[part].iloc[0] not in set(earlier[part]))
        targets = {name: to_scale(name, earlier[name].to_numpy(), earlier) for name in OUTCOMES}
        regressions = {
            outcome: {name: fitted(earlier, target, new, known) for name, known in DESIGNS.items()}
            for outcome, target in targets.items()
        }
        apart = list(new or (SEED_ALONE,))
        far = {outcome: reach(earlier, target, apart) for outcome, target in targets.items()}
        return cls(new, regressions, far)

    def table(self, run: pd.DataFrame) -> pd.DataFrame:
        """The table `foretold` of one run, from its features."""
        tables = []
        for outcome, by_design in self.regressions.items():
            made = {name: fit.predict(_with_cell(run, self.new)) for name, fit in by_design.items()}
            for name, sign in (("lower", -1), ("upper", 1)):
                made[name] = made["predicted"] + sign * self.reach[outcome]
            values = {name: from_scale(outcome, scaled, run) for name, scaled in made.items()}
            tables.append(run[[*RUN, "string_id"]].assign(outcome=outcome, **values))
        new = ", ".join(self.new) or SEED_ALONE
        return pd.concat(tables, ignore_index=True).assign(new=new)[kinds.FORETOLD.names]


def fitted(
    rows: pd.DataFrame, target: np.ndarray, new: Sequence[str], known: Sequence[str]
) -> Pipeline:
    """A regression of `target` float[rows] on the features `known` of strings, and on the run's.

    Runs that are alike in all parts but `new` have a mean of their own.
    """
    encoded = make_column_transformer(
        (StandardScaler(), [*known, *OF_RUN]), (OneHotEncoder(handle_unknown="ignore"), ["cell"])
    )
    return make_pipeline(encoded, Ridge(1.0)).fit(_with_cell(rows, new), target)


def _with_cell(rows: pd.DataFrame, new: Sequence[str]) -> pd.DataFrame:
    """The rows with a name that is the same for runs that are alike in all parts but `new`."""
    cell = pd.Series("", index=rows.index, dtype=object)
    for part in PARTS:
        if part not in new:
            cell = cell + rows[part].astype(str).astype(object) + " "
    return rows.assign(cell=cell)


def reach(rows: pd.DataFrame, target: np.ndarray, apart: list[str], level: float = LEVEL) -> float:
    """The quantile of the errors on earlier runs that lack of the others what a later run lacks.

    Each group of runs with equal parts `apart` is foretold from the runs that share none of these
    parts. NaN if there are no such groups.
    """
    errors = []
    for places in rows.groupby(apart).indices.values():
        shares = (rows[apart] == rows[apart].iloc[places[0]]).any(axis=1).to_numpy()
        if shares.all():
            continue
        new = [part for part in apart if part in PARTS]
        regression = fitted(rows[~shares], target[~shares], new, OF_STRING)
        held_out = regression.predict(_with_cell(rows.iloc[places], new))
        errors.append(np.abs(target[places] - held_out))
    if not errors:
        return math.nan
    return float(np.quantile(np.concatenate(errors), level, method="higher"))


# Before the trainings


@reads(traces=[traces.read], datasets=STRINGS, strings=[STRINGS])
@makes(kinds.FORETOLD, kinds.PROMISE)
def foretell(
    traces: Sequence[Trace],
    datasets: pd.DataFrame,
    strings: Sequence[pd.DataFrame],
    promise: Sequence[str],
    model: str,
    recipes: Mapping[str, Mapping],
    n_parameters: Mapping[str, Mapping[str, int]],
    start: Start,
    loss_threshold: float,
) -> Iterator[dict]:
    """Foretell the runs of one model on some datasets: a table and a promise for each of them.

    A promise keeps its time if the predictions are those that it was made for.

    Parameters
    ----------
    traces : of the earlier runs
    datasets : tables `strings` of the earlier runs, each once
    strings : tables `strings` of the later runs, without their outcomes
    promise : the paths of their promises
    model : the model of the later runs; they differ in their seeds only
    recipes : the values of the recipe of each model, see `Recipe`
    n_parameters : parameters of each model on each language
    start, loss_threshold : see `palimpsest.memorisation.all_measures.Thresholds`
    """
    earlier = earlier_rows(traces, datasets, recipes, n_parameters, start, loss_threshold)
    foresight = None
    for later, path in zip(strings, promise, strict=True):
        language = later["language"].iloc[0]
        features = known_before(later, Recipe(**recipes[model]), n_parameters[model][language])
        run = features.assign(model=model)
        foresight = foresight or Foresight.of(earlier, run)
        table = foresight.table(run)
        digest = digest_of(table)
        yield {
            "foretold": table,
            "promise": {
                **{name: table[name].iloc[0] for name in ("model", "language")},
                **{name: int(table[name].iloc[0]) for name in ("size", "seed")},
                "sha256": digest,
                "written": _time_of(path, digest),
                "earlier": [run_name(trace.run) for trace in traces],
            },
        }


def earlier_rows(
    traces: Sequence[Trace],
    datasets: pd.DataFrame,
    recipes: Mapping[str, Mapping],
    n_parameters: Mapping[str, Mapping[str, int]],
    start: Start,
    loss_threshold: float,
) -> pd.DataFrame:
    """Features and outcomes of all training strings of the earlier runs; see `foretell`."""
    by_run = dict(list(datasets.groupby(["language", "size", "seed"])))
    rows = []
    for trace in traces:
        model, language, size, seed = (trace.run[name] for name in RUN)
        ((trace, strings),) = paired([trace], [by_run[language, size, seed].reset_index(drop=True)])
        features = known_before(strings, Recipe(**recipes[model]), n_parameters[model][language])
        found = outcomes_of(trace, strings, start, loss_threshold)
        rows.append(features.assign(model=model).merge(found, on="string_id", validate="1:1"))
    return pd.concat(rows, ignore_index=True)


def digest_of(foretold: pd.DataFrame) -> str:
    """SHA-256 of the predictions of a run, as CSV."""
    return hashlib.sha256(foretold.to_csv(index=False).encode()).hexdigest()


def _time_of(path: str, digest: str) -> str:
    """When these predictions were written: now, unless the promise at this path is of them."""
    try:
        before = manifests.read(path)
    except UserError:
        return manifests.now()
    return before["written"] if before.get("sha256") == digest else manifests.now()


# After the trainings


@reads(
    foretold=kinds.FORETOLD,
    promise=[manifests.read],
    traces=[traces.read],
    datasets=[STRINGS],
    manifests=[manifests.read],
)
@makes(kinds.FORETELLING)
def foretelling_table(
    foretold: pd.DataFrame,
    promise: Sequence[dict],
    traces: Sequence[Trace],
    datasets: Sequence[pd.DataFrame],
    manifests: Sequence[dict],
    start: Start,
    loss_threshold: float,
) -> pd.DataFrame:
    """How well later runs were foretold, and whether before they were trained.

    Parameters
    ----------
    foretold : the predictions of all these runs
    promise, traces, datasets, manifests : one for each run
    start, loss_threshold : as in `foretell`

    Raises `UserError` if the predictions are of other strings than the run.
    """
    rows = []
    for (trace, strings), promised, manifest in zip(
        paired(traces, datasets), promise, manifests, strict=True
    ):
        about = {name: trace.run[name] for name in RUN}
        of_run = rows_of_run(foretold, about).reset_index(drop=True)
        found = outcomes_of(trace, strings, start, loss_threshold)
        beyond = float(trace.epochs[-1] + trace.epochs[-1] - trace.epochs[-2])
        shown = {
            "foretold_before": was_before(of_run, promised, manifest),
            **{name: promised[name] for name in ("sha256", "written")},
            "started": manifest.get("started", ""),
        }
        for outcome in OUTCOMES:
            predicted = of_run[of_run["outcome"] == outcome].set_index("string_id")
            if set(predicted.index) != set(found["string_id"]):
                raise UserError(
                    f"{run_name(trace.run)}: predictions are of other strings than the run; "
                    "delete the run and rerun"
                )
            exact = found.set_index("string_id").loc[predicted.index, outcome].to_numpy(dtype=float)
            rows.append({**about, "outcome": outcome, **shown, **judged(predicted, exact, beyond)})
    return pd.DataFrame(rows)[kinds.FORETELLING.names]


def was_before(foretold: pd.DataFrame, promise: Mapping, manifest: Mapping) -> bool:
    """Whether a run's training began after exactly these predictions were written.

    The manifest of a training that was resumed says only when it was taken up again, which proves
    nothing.
    """
    is_whole = digest_of(foretold) == promise["sha256"] and not manifest["resumed_from_epoch"]
    return bool(is_whole and promise["written"] < manifest.get("started", ""))


def judged(predicted: pd.DataFrame, exact: np.ndarray, beyond: float) -> dict:
    """The columns of the table `foretelling` that compare predictions with what was found.

    Parameters
    ----------
    predicted : rows of one run and outcome
    exact : float[rows], NaN for never
    beyond : the epoch that stands for never
    """
    never = np.isnan(exact)
    values = np.where(never, beyond, exact)
    by_name = {name: predicted[name].to_numpy() for name in DESIGNS}
    orders = np.tile(by_name["predicted"], (N_SHUFFLES, 1))
    shuffled = np.random.default_rng(SHUFFLE_SEED).permuted(orders, axis=1)
    lower, upper = predicted["lower"].to_numpy(), predicted["upper"].to_numpy()
    has_interval = not np.isnan(lower).any()
    inside = (lower <= values) & (values <= upper)
    return {
        "new": predicted["new"].iloc[0],
        "n_strings": len(values),
        "r_squared": r_squared(values, by_name["predicted"]),
        "r_squared_by_rarity": r_squared(values, by_name["by_rarity"]),
        "r_squared_by_mean": r_squared(values, by_name["by_mean"]),
        "placebo": r_squared(values, shuffled),
        "rank_correlation": float(rank_correlation(values, by_name["predicted"])),
        "coverage": float(inside.mean()) if has_interval else math.nan,
        "width": float(np.median(upper - lower)) if has_interval else math.nan,
        "never": float(never.mean()),
    }


def r_squared(exact: np.ndarray, predicted: np.ndarray) -> float:
    """1 minus the squared errors over those of the mean of `exact`; NaN if all are alike.

    Parameters
    ----------
    exact : float[strings]
    predicted : float[..., strings]; the mean is over all of them
    """
    return (
        float(1 - np.mean((exact - predicted) ** 2) / np.var(exact)) if np.ptp(exact) else math.nan
    )
