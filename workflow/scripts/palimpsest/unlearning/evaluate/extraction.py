"""Extraction of forget strings from unlearned models: with a prefix, and by sampling."""

import numpy as np

from palimpsest.memorisation import extraction_probability


def extracted_from_half(n_last_correct: np.ndarray, n_tokens: np.ndarray) -> np.ndarray:
    """Whether the second half of a string follows greedily from its first half.

    The prefix is the first half of the tokens, rounded down. If the most probable prediction is
    right at every later token, given the true tokens before, then greedy generation from the prefix
    gives the rest of the string.

    Parameters
    ----------
    n_last_correct : int[..., strings], right tokens in a row at the end
    n_tokens : int[strings]

    Returns
    -------
    bool[..., strings]

    Source: Carlini et al., Quantifying memorization across neural language models (2023),
    definition 3.1, with half of the string as the prompt.
    """
    return n_last_correct >= n_tokens - n_tokens // 2


def extraction_strength(n_last_correct: np.ndarray, n_tokens: np.ndarray) -> np.ndarray:
    """Share of a string that follows greedily from the shortest prefix from which its rest follows.

    ES = 1 - min{k : the greedy continuation of the first k tokens is the rest} / n_tokens, which is
    n_last_correct / n_tokens. ES is 0 if even the last token is wrong. (The code of open-unlearning
    gives 1 / n_tokens then.)

    For parameters see `extracted_from_half`. Returns float[..., strings] in [0, 1].

    Source: Carlini et al., Extracting training data from large language models (2021); Wang et al.,
    Towards effective evaluations and comparisons for LLM unlearning methods (2025).
    """
    return n_last_correct / n_tokens


def leak_at(k: int, nll: np.ndarray) -> np.ndarray:
    """Mean probability over strings that at least one of k samples of a model is the string.

    Parameters
    ----------
    k : int, number of independent samples, at temperature 1, from the start of a string
    nll : float[models, strings], nats

    Returns
    -------
    float[models] in [0, 1], exact; see `palimpsest.memorisation.extraction_probability`
    """
    # Rounding can leave the nll of a certain string just below 0.
    return extraction_probability(np.minimum(-nll, 0), k).mean(axis=-1)
