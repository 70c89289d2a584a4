"""Measures of activations of a user's own, and how they order the models of a group.

Source: the paper on information measures of neurons, appendices A, C.4 and D.2, tables 4 and 6.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from palimpsest.errors import Notice, UserError
from palimpsest.information.activation_files import (
    ActivationFile,
    check_copies,
    check_same_samples,
    read_arrays,
)
from palimpsest.information.encoders.scores import given_scores
from palimpsest.information.kinds import (
    ACCURACY,
    DOSE,
    ENCODER_SCORES,
    GIVEN_ASSOCIATIONS,
    GIVEN_LAYERS,
    GIVEN_NEURONS,
    GIVEN_PAIRS,
    GIVEN_SCORES,
    OF_GIVEN,
    OF_SITE,
    SCORES,
)
from palimpsest.information.measured import How, means, of_site
from palimpsest.information.neurons import is_degenerate, share_of_copies
from palimpsest.information.trends import fisher, kendall
from palimpsest.making import makes, reads
from palimpsest.statistics import MOST_ITEMS, is_constant, order_p_value, student, student_p_value

FEWEST_MODELS = 3  # of a seed that orders them


@reads(scores=[ENCODER_SCORES])
@makes(*OF_GIVEN)
def of_group(
    files: Sequence[str],
    models: Sequence[dict],
    language: str,
    threads: int,
    scores: Sequence[pd.DataFrame] = (),
    *,
    bins: int,
    neighbours: int,
    pairs: int | str,
) -> dict[str, pd.DataFrame]:
    """The tables of a group of models.

    Parameters
    ----------
    files : paths of the files of activations
    models : what the configuration says of each, in the same order; see `ActivationFile`
    language : the name of the group
    threads : number of threads
    scores : of encoders that are fine-tuned here, what is known of them besides `models`, in a
        table `encoder_scores`; or nothing
    bins, neighbours, pairs : see `How`

    Layers of several models are the same if they have the same name. A warning names the models
    whose layers have not the names of the first model's.

    Raises `UserError` if a file cannot be read, if arrays are not finite or of different lengths,
    or if more than a few per cent of the samples are copies.
    """
    how, parts, lengths = How(bins, neighbours, pairs), [], {}
    names: dict[str, list[str]] = {}  # of layers, by the file
    numbers: dict[str, int] = {}  # of layers, by their names
    known = {name: own for table in scores for name, own in given_scores(table, language).items()}
    models = [ActivationFile(**{**each, **known.get(each["name"], {})}) for each in models]
    for path, about in zip(files, models, strict=True):
        arrays = read_arrays(path)
        lengths[path] = len(next(iter(arrays.values())))
        check_same_samples(lengths)
        _check_neighbours(path, lengths[path], neighbours)
        _check_copies_of_all(path, arrays)
        names[path] = list(arrays)
        for name in arrays:
            numbers.setdefault(name, len(numbers))
        parts.append(_of_model(arrays, about, how, threads, numbers))
    _say_other_names(names)
    of_all = zip(*parts, strict=True)
    tables = {
        kind.name: pd.concat(own, ignore_index=True).assign(language=language)[kind.names]
        for kind, own in zip((GIVEN_NEURONS, GIVEN_PAIRS, GIVEN_LAYERS), of_all, strict=True)
    }
    numbers = scores_of(tables[GIVEN_LAYERS.name], models)
    numbers = numbers.assign(language=language)[GIVEN_SCORES.names]
    found = associations(numbers).assign(language=language)[GIVEN_ASSOCIATIONS.names]
    return {**tables, GIVEN_SCORES.name: numbers, GIVEN_ASSOCIATIONS.name: found}


def _check_neighbours(path: str, n: int, neighbours: int) -> None:
    if n <= neighbours:
        raise UserError(
            f"{path}: a sample has only {n - 1} neighbours among {n} samples, and {neighbours} are "
            "asked for; save more samples, or lower information/neighbours"
        )


def _check_copies_of_all(path: str, arrays: dict[str, np.ndarray]) -> None:
    """Refuse samples that are copies in all layers: the data has them more than once."""
    varying = [values[:, ~is_degenerate(values)] for values in arrays.values()]
    joined = np.concatenate([values.astype(np.float32) for values in varying], axis=1)
    if joined.shape[1]:
        check_copies(path, share_of_copies(joined))


def _say_other_names(names: Mapping[str, list[str]]) -> None:
    """Warn, in one line, of files whose layers have not the names of the first file's."""
    (first, known), *others = names.items()
    unlike = [(path, own) for path, own in others if {*own} != {*known}]
    if not unlike:
        return
    path, own = unlike[0]
    parts = {"has": [n for n in own if n not in known], "lacks": [n for n in known if n not in own]}
    said = [f"{verb} {', '.join(map(repr, some))}" for verb, some in parts.items() if some]
    more = f", and {len(unlike) - 1} other files differ from it, too" if unlike[1:] else ""
    warnings.warn(
        Notice(
            f"{path}: {' and '.join(said)}, unlike {first}{more}; layers are compared by name, and "
            "scores are means over all layers of a model: give the same layer the same name"
        ),
        stacklevel=3,
    )


def _of_model(
    arrays: dict[str, np.ndarray],
    about: ActivationFile,
    how: How,
    threads: int,
    numbers: Mapping[str, int],
) -> tuple[pd.DataFrame, ...]:
    """The neurons, pairs and layers of a model; `numbers` has that of each layer by its name."""
    parts = []
    for name, values in sorted(arrays.items(), key=lambda item: numbers[item[0]]):
        # The columns of a site, by which means are taken
        site = dict(zip(OF_SITE, (numbers[name], name, name), strict=True))
        neurons, pairs = of_site(values, site, how, threads)
        varying = values[:, ~is_degenerate(values)]
        copies = share_of_copies(varying) if varying.shape[1] else np.nan
        layers = means(neurons, pairs).assign(n_samples=len(values), copies=copies)
        parts.append((neurons, pairs, layers))
    named = {
        "model": about.name,
        "seed": about.seed,
        "dose": about.dose,
        "accuracy": about.accuracy,
    }
    return tuple(
        pd.concat(tables, ignore_index=True)
        .rename(columns={"place": "layer_name"})
        .assign(**named)
        .astype({"dose": float, "accuracy": float})
        for tables in zip(*parts, strict=True)
    )


def scores_of(layers: pd.DataFrame, models: Sequence[ActivationFile]) -> pd.DataFrame:
    """One row per model and score: means of the measures over the layers, and given numbers."""
    found = layers.groupby("model")[[*SCORES]].mean()
    rows = [
        {"model": each.name, "seed": each.seed, "score": score, "value": value}
        for each in models
        for score, value in {
            **found.loc[each.name].to_dict(),
            **each.scores,
            ACCURACY: each.accuracy,
            DOSE: each.dose,
        }.items()
        if value is not None
    ]
    return pd.DataFrame(rows).astype({"value": float})


def associations(scores: pd.DataFrame) -> pd.DataFrame:
    """How scores go together over the models of a seed; one row for each pair of scores.

    Kendall's tau says whether both order the models alike, Pearson's correlation whether they
    change in proportion, and a slope how much a score changes from dose 0 to 1. Each is worked out
    for every seed. Intervals are Student's over the seeds, of Pearson's correlations by Fisher's
    transformation. With one seed, the p-value of tau is exact: the share of all orders in which tau
    is as far from 0.
    """
    wide = scores.pivot(index=["seed", "model"], columns="score", values="value")
    names = [name for name in dict.fromkeys(scores["score"]) if name in wide]
    rows = [
        row
        for place, other in enumerate(names)
        for one in names[:place]
        if (row := _association(wide, one, other)) is not None
    ]
    columns = [name for name in GIVEN_ASSOCIATIONS.names if name != "language"]
    return pd.DataFrame(rows, columns=columns)


def _association(wide: pd.DataFrame, one: str, other: str) -> dict | None:
    """The row of two scores; None if no seed has three models with both."""
    known = wide[[one, other]].dropna()
    units = [own.to_numpy().T for _, own in known.groupby(level="seed")]
    units = [unit for unit in units if unit.shape[1] >= FEWEST_MODELS]
    taus = np.array([kendall(*unit) for unit in units], dtype=float)
    if not np.isfinite(taus).any():
        return None
    units = [unit for unit, tau in zip(units, taus, strict=True) if np.isfinite(tau)]
    taus = taus[np.isfinite(taus)]
    tau = student(taus)
    pearson = np.tanh(student([fisher(*unit) for unit in units]))
    slope = student([_slope(*unit) for unit in units] if other == DOSE else [])
    return {
        "score": one,
        "other": other,
        "n_models": sum(unit.shape[1] for unit in units),
        "n_seeds": len(units),
        "tau": tau.mean,
        "tau_lower": np.clip(tau.lower, -1, 1),
        "tau_upper": np.clip(tau.upper, -1, 1),
        "p_value": _p_value(units, taus),
        **dict(zip(("pearson", "pearson_lower", "pearson_upper"), pearson, strict=True)),
        **dict(zip(("slope", "slope_lower", "slope_upper"), slope, strict=True)),
    }


def _p_value(units: list[np.ndarray], taus: np.ndarray) -> float:
    """Two-sided, of tau 0: Student's over the seeds; exact with one seed, or with equal taus."""
    if not is_constant(taus):
        return student_p_value(taus, 0)
    if max(unit.shape[1] for unit in units) > MOST_ITEMS:
        return np.nan
    return order_p_value(*zip(*units, strict=True))


def _slope(values: np.ndarray, doses: np.ndarray) -> float:
    """The least-squares change of values float[models] from dose 0 to dose 1."""
    if is_constant(doses):
        return np.nan
    apart = doses - doses.mean()
    return float(apart @ values / (apart @ apart))
