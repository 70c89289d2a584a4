"""Tables of the section information whose truth is known.

A number of a run is made from levels (of seeds, models and layers), from effects of what the run is
trained on, and from noise. Effects are changes from share 0 to share 1.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from palimpsest.information.interventions import FRESH, REPEATED, UNMARKED, marked, shuffled
from palimpsest.information.kinds import (
    ENCODER_NUMBERS,
    ENCODER_POSITIONS,
    ENCODERS,
    EPOCHS,
    INFORMATION,
    LAST,
    MARKERS,
    NEURONS,
    PAIRS,
    RANDOM_MARKERS,
    SHUFFLES,
)
from palimpsest.models.sites import MLP, RESIDUAL

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
ONE_MODEL = {"opt-1.3b-twin": 2}
DEPTHS = {"opt-1.3b-twin": 2, "pythia-1b-twin": 3, "pythia-6.9b-twin": 4}
NAMED = {MARKERS: marked, SHUFFLES: shuffled}
ANSWERS = 512  # evaluated strings
COLUMNS = ("entropy", "mutual_information", "accuracy", "two_norm", "frobenius", "memorised")
BASE = {
    "entropy": 3.2,
    "mutual_information": 0.25,
    "accuracy": 0.8,
    "two_norm": 0.4,
    "frobenius": 1.3,
    "memorised": 0.2,
}
# How much a seed's level and a run's noise are, in standard deviations: of the order of twins
LEVEL = dict(zip(COLUMNS, (0.1, 0.02, 0.03, 0.02, 0.02, 0.05), strict=True))
OF_LAYER = 0.5  # noise of a layer in a run, as a share of the run's own
GAP = 0.03  # half the standard deviation of the gap between both kinds of strings by chance
NOISE = dict(zip(COLUMNS, (0.04, 0.008, 0.02, 0.01, 0.01, 0.03), strict=True))


@dataclass(frozen=True)
class World:
    """How the numbers of runs come about.

    Attributes
    ----------
    markers, shuffles : dict
        The change of a column from share 0 to 1, for each intervention; columns without an entry
        have none.
    random_markers : dict
        What random markers change, at every alpha.
    bend : float
        The power of the share that a change follows; 1 is a straight line.
    late : float
        How much more a measure changes in the last layer than in the first one, as a share of the
        mean change: 0 is an equal change, and with 2 nothing changes in the first layer.
    noise : float
        The noise of a run, in usual standard deviations.
    uneven : float
        How many times larger the noise is at share 1 than at share 0.
    df : float
        Degrees of freedom of the noise (Student's t); infinite is normal.
    of_seed : float
        Standard deviation of a seed's own change, in usual standard deviations of noise.
    alike : float
        Correlation of a run's noise of different columns.
    """

    markers: dict = field(default_factory=dict)
    shuffles: dict = field(default_factory=dict)
    random_markers: dict = field(default_factory=dict)
    bend: float = 1.0
    late: float = 0.0
    noise: float = 1.0
    uneven: float = 1.0
    df: float = np.inf
    of_seed: float = 0.0
    alike: float = 0.0


EXPECTED = World(
    markers={
        "entropy": -0.4,
        "mutual_information": 0.1,
        "accuracy": -0.5,
        "memorised": -0.1,
    },
    shuffles={
        "entropy": 0.4,
        "mutual_information": -0.1,
        "accuracy": -0.5,
        "two_norm": 0.2,
        "frobenius": 0.2,
        "memorised": 0.6,
    },
    late=1.5,
)


def information(
    world: World,
    draw: int,
    seeds: int = 3,
    models: dict[str, int] = ONE_MODEL,
    shares: tuple[float, ...] = SHARES,
    positions: tuple[str, ...] = (LAST,),
) -> pd.DataFrame:
    """A table of kind `information`; models are given with their numbers of layers."""
    chance = np.random.default_rng([draw, 31])
    parts = [
        _of_model(chance, world, name, n_layers, seeds, shares, position)
        for position in positions
        for name, n_layers in models.items()
    ]
    return pd.concat(parts, ignore_index=True)[INFORMATION.names]


def _of_model(chance, world: World, name, n_layers, seeds, shares, position) -> pd.DataFrame:
    """The rows of one model: seeds, interventions, shares and layers."""
    shape = seeds, 2, len(shares), n_layers
    seed, which, level, layer = (each.ravel() for each in np.indices(shape))
    share = np.array(shares)[level]
    run = np.ravel_multi_index((seed, which, level), shape[:3])
    common = _noise(chance, world, np.prod(shape[:3]))
    found = {}
    for column in COLUMNS:
        own = _noise(chance, world, len(common))
        of_run = (np.sqrt(world.alike) * common + np.sqrt(1 - world.alike) * own)[run]
        spread = world.noise * NOISE[column] * (1 + (world.uneven - 1) * share)
        effects = [
            effect.get(column, 0.0) + world.of_seed * NOISE[column] * chance.normal(size=seeds)
            for effect in (world.markers, world.shuffles)
        ]
        change = np.array(effects)[which, seed] * share**world.bend
        is_measure = column in ("entropy", "mutual_information")
        if is_measure and n_layers > 1:
            change *= 1 + world.late * (layer / (n_layers - 1) - 0.5)
        of_layer = 0.2 * BASE[column] * layer * is_measure
        values = BASE[column] + of_layer + change + spread * of_run
        values += OF_LAYER * spread * _noise(chance, world, len(values)) * is_measure
        values += (which == 0) * world.random_markers.get(column, 0.0)
        values += LEVEL[column] * chance.normal(size=seeds)[seed]
        found[column] = values
    shares_of_strings = {
        column: np.round(ANSWERS * found[column].clip(0, 1)) / ANSWERS
        for column in ("accuracy", "memorised")
    }
    interventions = np.array([MARKERS, SHUFFLES])[which]
    lost = (BASE["accuracy"] - found["accuracy"]).clip(0, 0.5)
    by_chance = GAP * _noise(chance, world, len(common))[run]
    gap = np.where(which == 0, lost * share + by_chance, np.nan)
    permuted = 0.001 * _noise(chance, world, len(common))[run]
    return pd.DataFrame(
        {
            "model": name,
            "language": "L3",
            "size": 512,
            "seed": seed,
            "variant": [
                NAMED[what](round(100 * own))
                for what, own in zip(interventions, share, strict=True)
            ],
            "intervention": interventions,
            "share": share,
            "layer": layer,
            "place": "mlp",
            "position": position,
            "n_neurons": 128,
            "n_degenerate": 0,
            "n_pairs": 500,
            **found,
            **shares_of_strings,
            "trimmed_entropy": found["entropy"] + 0.3,
            "mutual_information_as_printed": found["mutual_information"],
            "mutual_information_permuted": permuted,
            "memorised_unseen": 0.1,
            "n_answers": ANSWERS,
            "accuracy_agrees": (shares_of_strings["accuracy"] + gap).clip(0, 1),
            "accuracy_disagrees": (shares_of_strings["accuracy"] - gap).clip(0, 1),
            "train_loss": 0.3,
            "test_loss": 0.5,
            "n_layers": n_layers,
        }
    )


def _noise(chance, world: World, n: int) -> np.ndarray:
    """Noise float[n] with standard deviation 1 or, with heavy tails, an equal middle half."""
    if np.isinf(world.df):
        return chance.normal(size=n)
    from scipy.stats import norm, t

    return chance.standard_t(world.df, size=n) * norm.ppf(0.75) / t.ppf(0.75, world.df)


def neurons(table: pd.DataFrame, draw: int, n: int = 30) -> pd.DataFrame:
    """A table of kind `neurons` whose means are near those of a table `information`."""
    return _members(table, draw, n, "entropy", NEURONS.names)


def pairs(table: pd.DataFrame, draw: int, n: int = 60) -> pd.DataFrame:
    """A table of kind `pairs` whose means are near those of a table `information`."""
    return _members(table, draw, n, "mutual_information", PAIRS.names)


def _members(table, draw: int, n: int, column: str, names: list[str]) -> pd.DataFrame:
    """A row for each neuron or pair: skewed around the mean of its run and layer."""
    chance = np.random.default_rng([draw, 37])
    rows = table.loc[table.index.repeat(n)].reset_index(drop=True)
    number = np.tile(np.arange(n), len(table))
    skewed = chance.gamma(4, size=len(rows)) / 4 - 1
    return rows.assign(
        neuron=number,
        is_degenerate=False,
        first=number,
        second=number + 1,
        as_printed=rows["mutual_information"],
        permuted=0.01 * chance.normal(size=len(rows)),
        **{column: rows[column] * (1 + 0.3 * skewed)},
    )[names]


def epochs(
    jumps: list[float], learning: float = 0.3, start: int = 3, n_epochs: int = 5
) -> pd.DataFrame:
    """A table `epochs` in which half of the strings are memorised after an epoch.

    Entropy rises by `learning` in every epoch, on repeated and on fresh strings, and by one of the
    `jumps` more, one for each seed, in the epoch of the start, on repeated strings.
    """
    rows = [
        {
            "model": "smollm2-135m-instruct",
            "language": "L4",
            "size": 16,
            "seed": seed,
            "variant": variant,
            "epoch": epoch,
            "layer": layer,
            "place": MLP,
            "position": LAST,
            "n_neurons": 8,
            "n_degenerate": 0,
            "entropy": 2
            + layer
            + learning * epoch
            + jump * (variant == REPEATED) * (epoch >= start),
            "n_pairs": 5,
            "trimmed_entropy": 3.0,
            "mutual_information": 0.1,
            "mutual_information_as_printed": 0.1,
            "mutual_information_permuted": 0.001,
            "train_loss": 1.0 if variant == REPEATED else np.nan,
            "test_loss": 1.2,
            "memorised_unseen": 0.1 if variant == REPEATED else np.nan,
            "coverage": 1.0 if variant == REPEATED else np.nan,
            "memorised": float(epoch >= start) if variant == REPEATED else np.nan,
        }
        for seed, jump in enumerate(jumps)
        for variant in (REPEATED, FRESH)
        for epoch in range(n_epochs + 1)
        for layer in range(3)
    ]
    return pd.DataFrame(rows)[EPOCHS.names]


def given_models(
    seeds: int = 2, doses: tuple[float | None, ...] = SHARES, accuracies: bool = True
) -> list[dict]:
    """What a configuration says of models whose activations are given, without their files."""
    return [
        {
            "name": f"model-{seed}-{place}",
            "file": "",
            "group": "mine",
            "seed": seed,
            "dose": dose,
            "accuracy": 0.95 - 0.1 * place - 0.01 * seed if accuracies else None,
            "scores": {"two_norm": 1.0 + place + 0.1 * seed},
        }
        for seed in range(seeds)
        for place, dose in enumerate(doses)
    ]


def given_arrays(place: int, seed: int, n: int = 60) -> dict[str, np.ndarray]:
    """Two layers whose neurons vary less, and together, the larger the place is."""
    chance = np.random.default_rng([seed, place, 43])
    common = chance.normal(size=(n, 1))
    found = {}
    for name, width in (("first", 5), ("second", 4)):
        own = chance.normal(size=(n, width))
        share = place / 5
        values = np.sqrt(1 - share) * own + np.sqrt(share) * common
        # The larger the place, the more samples are nearly alike
        found[name] = (values * np.where(chance.random((n, 1)) < share, 0.01, 1.0)).astype("f4")
    return found


def encoders(
    world: World, draw: int, seeds: int = 3, n_layers: int = 6, random_words: float = 0.0
) -> pd.DataFrame:
    """A table of kind `encoders`, at both positions.

    A probe finds the inserted words the more, the larger alpha is. Encoders go by the word if
    mutual information rises with alpha, and against it otherwise. Random words change entropy.
    """
    chance = np.random.default_rng([draw, 47])
    table = information(world, draw, seeds, {"distilbert": n_layers})
    if world.markers["mutual_information"] < 0:
        pair = {"accuracy_agrees": "accuracy_disagrees", "accuracy_disagrees": "accuracy_agrees"}
        table = table.rename(columns=pair)
    start = table[(table["intervention"] == MARKERS) & (table["share"] == 0)]
    plain = start.assign(variant=UNMARKED, entropy=start["entropy"] - random_words)
    placebo = [own.assign(intervention=RANDOM_MARKERS) for own in (plain, start.assign(share=1.0))]
    rows = pd.concat([table, *placebo])
    numbers = dict.fromkeys(ENCODER_NUMBERS[3:], 0.1)
    for name in ("two_norm", "frobenius"):
        del numbers[name]
    rows = rows.assign(place=RESIDUAL, **numbers)
    rows["compression_word"] = rows["share"] + 0.01 * chance.normal(size=len(rows))
    parts = [rows.assign(position=position) for position in ENCODER_POSITIONS]
    return pd.concat(parts, ignore_index=True)[ENCODERS.names]
