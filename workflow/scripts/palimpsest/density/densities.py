"""The densities of the training strings of a run, at every string that is measured.

Source: LMD3: Language Model Data Density Dependence, section 4.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from palimpsest.datasets.kinds import STRINGS
from palimpsest.density.algorithm_1 import log_parts_of_densities
from palimpsest.density.kernel import log_density_of_others, log_kernel_density
from palimpsest.density.kernel_values import Setting
from palimpsest.density.kinds import DENSITY, EMBEDDINGS, HIDDEN, NEIGHBOURS, NGRAMS
from palimpsest.density.neighbours import nearest
from palimpsest.density.sizes import Approximation
from palimpsest.density.vectors import ngram_vectors
from palimpsest.errors import UserError
from palimpsest.making import makes, reads

OF_DATASET = ["language", "size", "seed", "variant"]
APPROXIMATE = ("log_local", "log_random", "log_approximate")
Kernels = Mapping[str, Sequence[float]]  # the bandwidths of each kernel


def embeddings_of(strings: pd.DataFrame, hidden: pd.DataFrame) -> dict[str, np.ndarray]:
    """The embeddings float64[strings, D] of a dataset, by name, in the dataset's order.

    `strings` is a table of kind `strings`, and `hidden` a table of kind `embeddings`.

    Raises `UserError` if a string has no hidden states.
    """
    vectors = hidden.set_index("string_id")["vector"].reindex(strings["string_id"])
    if vectors.isna().any():
        missing = vectors.index[vectors.isna()][0]
        raise UserError(
            f"embeddings of {strings['variant'].iloc[0]}, seed {strings['seed'].iloc[0]}: string "
            f"{missing} has none, because they are of an older dataset; delete them and run again"
        )
    return {
        HIDDEN: stacked(vectors.tolist()).astype(float),
        NGRAMS: ngram_vectors([text.split() for text in strings["text"]]),
    }


def stacked(vectors: Sequence[np.ndarray]) -> np.ndarray:
    """Vectors as one array [n, D]; `UserError` if the numbers of dimensions differ."""
    widths = sorted({len(vector) for vector in vectors})
    if len(widths) > 1:
        raise UserError(
            f"embeddings: have {widths[0]} and {widths[-1]} dimensions in one table; embed all "
            "strings with one model"
        )
    return np.stack(vectors)


@reads(datasets=[STRINGS], embeddings=[EMBEDDINGS])
@makes(DENSITY, NEIGHBOURS)
def densities(
    datasets: Sequence[pd.DataFrame],
    embeddings: Sequence[pd.DataFrame],
    model: str,
    *,
    kernels: Kernels,
    neighbours: int,
    approximation: Mapping | None,
) -> Iterator[dict[str, pd.DataFrame]]:
    """Yield the tables `density` and `neighbours` of every run.

    `embeddings` are in the order of `datasets`. For the other arguments, see `density_tables`;
    `approximation` has the sizes by name.
    """
    sizes = approximation and Approximation.of_block(approximation)
    for strings, hidden in zip(datasets, embeddings, strict=True):
        vectors = embeddings_of(strings, hidden)
        yield density_tables(model, strings, vectors, kernels, neighbours, sizes)


def density_tables(
    model: str,
    strings: pd.DataFrame,
    embeddings: Mapping[str, np.ndarray],
    kernels: Kernels,
    k: int,
    approximation: Approximation | None = None,
) -> dict[str, pd.DataFrame]:
    """The tables `density` and `neighbours` of one run.

    Parameters
    ----------
    strings : table of kind `strings`; the corpus is its training strings, with copies
    embeddings : float[strings, D], by the embedding's name, in the order of `strings`
    kernels : the bandwidths of each kernel
    k : number of neighbours
    approximation : None: exact densities only
    """
    counts = strings["count"].to_numpy()
    trained = np.flatnonzero(counts)
    corpus = np.repeat(np.arange(len(strings)), counts)
    first_copy = np.searchsorted(corpus, trained)
    about = strings[[*OF_DATASET, "string_id"]].assign(model=model)
    density, neighbours = [], []
    for name, vectors in embeddings.items():
        points = vectors[corpus]
        for found in log_densities(vectors, points, kernels, approximation):
            others = np.full(len(strings), np.nan)
            of_points = log_density_of_others(points, found["bandwidth"], found["kernel"])
            others[trained] = of_points[first_copy]
            density.append(about.assign(embedding=name, **found, log_density_others=others))
        neighbours.append(about.assign(embedding=name, **distances(vectors, points, k)))
    stacked = {DENSITY: density, NEIGHBOURS: neighbours}
    return {
        kind.name: pd.concat(parts, ignore_index=True)[kind.names]
        for kind, parts in stacked.items()
    }


def settings_of(kernels: Kernels) -> list[Setting]:
    """Every kernel with every one of its bandwidths."""
    return [(kernel, float(bandwidth)) for kernel, some in kernels.items() for bandwidth in some]


def log_densities(
    queries: np.ndarray, corpus: np.ndarray, kernels: Kernels, approximation: Approximation | None
) -> Iterator[dict]:
    """Yield the columns `kernel` to `log_approximate` for every kernel and bandwidth.

    Densities are float64[queries]. The exact ones are always summed. Those of an approximation are
    NaN without one, and in a corpus that has too few points for its sizes.
    """
    settings = settings_of(kernels)
    if approximation is None or not approximation.fits(len(corpus)):
        parts = np.full((len(settings), len(APPROXIMATE)), np.nan)
    else:
        parts = log_parts_of_densities(queries, corpus, settings, approximation)
    for (kernel, bandwidth), of_setting in zip(settings, parts, strict=True):
        yield {
            "kernel": kernel,
            "bandwidth": bandwidth,
            "log_density": log_kernel_density(queries, corpus, bandwidth, kernel),
            **dict(zip(APPROXIMATE, of_setting, strict=True)),
        }


def distances(queries: np.ndarray, corpus: np.ndarray, k: int) -> dict[str, np.ndarray | int]:
    found, _ = nearest(queries, corpus, k)
    return {"k": k, "nearest": found[:, 0], "mean_distance": found.mean(axis=1)}
