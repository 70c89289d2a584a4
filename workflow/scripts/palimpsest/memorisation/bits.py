"""Memorised bits: what a model holds of a string beyond what the language alone gives."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from palimpsest.allowed import checked_numbers
from palimpsest.memorisation.likelihoods import TRAIN, UNSEEN, by_group, read_runs
from palimpsest.traces import Trace


def memorised_bits(nll: ArrayLike, language_nll: ArrayLike) -> np.ndarray:
    """Bits that a model saves in coding a string, compared with the language itself.

    The bits are log2 of the string's probability under the model, minus log2 of its probability
    under the language. They are negative where the model predicts the string worse than the
    language does. A string drawn from the language has at most 0 bits in expectation, under any
    model that is independent of the draw.

    Parameters
    ----------
    nll : float[..., strings], nats per string; negative log likelihood under the model
    language_nll : float[strings], nats per string
        Negative log likelihood of the same tokens under the language: the Bayes-optimal loss times
        the number of predicted tokens.

    Returns float[..., strings], bits per string. Raises `ValueError` if a value is not finite, or
    the shapes do not fit.

    Source: How much do language models memorize? (arXiv 2505.24832), unintended memorisation. The
    paper codes a string with the better of the model and a reference model, which is the positive
    part of these bits; the reference model is here the language itself.
    """
    nll = checked_numbers("nll", nll)
    language_nll = checked_numbers("language_nll", language_nll)
    if nll.shape[-1:] != language_nll.shape:
        raise ValueError(
            f"language_nll: has the shape {language_nll.shape} and must have one value per string, "
            f"{nll.shape[-1:]}"
        )
    for name, values in (("nll", nll), ("language_nll", language_nll)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name}: must be finite")
    return (language_nll - nll) / np.log(2)


def bits_table(
    paths: list[str], strings: pd.DataFrame, learning: pd.DataFrame, parameters: dict[str, int]
) -> pd.DataFrame:
    """The table `bits` of some runs.

    Parameters
    ----------
    paths : traces of the runs
    strings, learning : stacked tables of these kinds
    parameters : the number of parameters of every model

    Raises `UserError` if a run has no dataset or no learning.
    """
    return pd.concat(
        [
            bits_rows(trace, dataset, parameters[trace.run["model"]]).assign(optimal_epoch=optimum)
            for trace, dataset, optimum in read_runs(paths, strings, learning)
        ],
        ignore_index=True,
    )


def bits_rows(trace: Trace, strings: pd.DataFrame, parameters: int) -> pd.DataFrame:
    """The table `bits` of one run, without its epoch of optimal learning.

    The corrected total is the total minus the bits of an equal number of strings that the model was
    never trained on.
    """
    of_strings = {
        group: memorised_bits(likelihoods.nll, likelihoods.language_nll)
        for group, likelihoods in by_group(trace, strings).items()
    }
    train, unseen = of_strings[TRAIN], of_strings[UNSEEN]
    n_train = train.shape[1]
    corrected = train.sum(axis=1) - n_train * mean_over_strings(unseen)
    return pd.DataFrame(
        {
            **trace.run,
            "epoch": trace.epochs,
            "parameters": parameters,
            "n_train": n_train,
            "n_unseen": unseen.shape[1],
            "bits": mean_over_strings(train),
            "bits_unseen": mean_over_strings(unseen),
            "positive": mean_over_strings(np.maximum(train, 0)),
            "positive_unseen": mean_over_strings(np.maximum(unseen, 0)),
            "total": train.sum(axis=1),
            "total_corrected": corrected,
            "per_parameter": train.sum(axis=1) / parameters,
            "corrected_per_parameter": corrected / parameters,
        }
    )


def mean_over_strings(bits: np.ndarray) -> np.ndarray:
    """Mean float[epochs] of float[epochs, strings]; NaN without strings."""
    return bits.mean(axis=1) if bits.shape[1] else np.full(len(bits), np.nan)
