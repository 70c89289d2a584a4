"""Tables of the section density whose truth is known.

Performance is made from levels (of seeds, runs, groups, lengths and strings) and from effects of
leaks and of density. A string that is leaked has a higher density, whether it helps or not.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest.density.interventions import LEAK_CONDITIONS, leaked
from palimpsest.density.kernel import GAUSSIAN
from palimpsest.density.kinds import (
    EMBEDDINGS_OF_STRINGS,
    LEAKAGE,
    LEAKED,
    NEVER,
    PLACEBO,
    TEXT_DENSITY,
)

BANDWIDTH, NEIGHBOURS = 0.1, 10
GROUPS, SHORTEST, LONGEST = 6, 8, 15


@dataclass(frozen=True)
class World:
    """How performance comes about; losses are in nats per token, and odds are of right answers.

    Attributes
    ----------
    exact, paraphrase : float
        Fall of a leaked string's loss for a copy, and for each paraphrase.
    dense : float
        Fall of every string's loss per standard deviation of its natural log density.
    base : float
        Mean loss.
    odds : float
        Log odds of a right answer at the mean loss. A loss that is lower by 1 raises them by
        `steepness`.
    seed, run, group, length, string, residual : float
        Standard deviations of the levels.
    slope : float
        Standard deviation over strings of what a condition does to a string that is not leaked:
        other training strings make room for the planted ones.
    in_run : float
        Standard deviation of the levels of a group in a run.
    uneven : float
        Standard deviation over strings of the logarithm of the residual's standard deviation.
    alike : float
        Correlation of a seed's loss with its densities: two embeddings differ in scale.
    by_group : float
        Standard deviation over groups of the natural log density.
    by_length, dense_by_length : float
        Fall of every string's loss, and rise of its natural log density in standard deviations, per
        standard deviation of the log length.
    """

    exact: float = 0.0
    paraphrase: float = 0.0
    dense: float = 0.0
    base: float = 0.7
    odds: float = 0.8
    steepness: float = 4.0
    seed: float = 0.03
    run: float = 0.03
    group: float = 0.15
    length: float = 0.05
    string: float = 0.2
    residual: float = 0.08
    slope: float = 0.0
    in_run: float = 0.0
    uneven: float = 0.0
    alike: float = 0.0
    by_group: float = 0.0
    by_length: float = 0.0
    dense_by_length: float = 0.0


def leakage(
    world: World,
    draw: int,
    seeds: int = 5,
    n_leaked: int = 12,
    n_never: int = 48,
    embeddings: tuple[str, ...] = EMBEDDINGS_OF_STRINGS,
    lengths: int = LONGEST - SHORTEST + 1,
    size: int = 128,
) -> pd.DataFrame:
    """A table of kind `leakage`; there are as many placebos as leaked strings."""
    chance = np.random.default_rng([draw, 17])
    of_groups = world.group * chance.normal(size=GROUPS)
    of_lengths = world.length * chance.normal(size=lengths)
    of_densities = world.by_group * chance.normal(size=GROUPS)
    parts = []
    for seed in range(seeds):
        strings = _strings(chance, seed, n_leaked, n_never, lengths)
        longer = np.log(strings["length"] / strings["length"].mean())
        longer /= longer.std() or 1.0
        strings["dense"] += of_densities[strings["number"]] + world.dense_by_length * longer
        strings["level"] = (
            of_groups[strings["number"]]
            + of_lengths[strings["length"] - SHORTEST]
            + world.string * chance.normal(size=len(strings))
            - world.dense * strings["dense"]
            - world.by_length * longer
        )
        parts.append(_seed(chance, world, seed, strings, embeddings, size))
    return pd.concat(parts, ignore_index=True)[LEAKAGE.names]


def _strings(chance, seed: int, n_leaked: int, n_never: int, lengths: int) -> pd.DataFrame:
    """The test strings of a seed; `dense` is the natural log density, standardised."""
    n = 2 * n_leaked + n_never
    number = chance.choice(GROUPS, n, p=np.arange(GROUPS, 0, -1) / (GROUPS * (GROUPS + 1) / 2))
    return pd.DataFrame(
        {
            "string_id": [f"{seed:04x}{place:08x}" for place in range(n)],
            "number": number,
            "group": [f"S -> A{which}" for which in number],
            "length": SHORTEST + chance.integers(lengths, size=n),
            "string_role": [LEAKED] * n_leaked + [PLACEBO] * n_leaked + [NEVER] * n_never,
            "dense": chance.normal(size=n),
        }
    )


def _seed(chance, world: World, seed: int, strings: pd.DataFrame, embeddings, size: int):
    """The rows of a seed."""
    n, is_leaked = len(strings), (strings["string_role"] == LEAKED).to_numpy()
    slopes = world.slope * chance.normal(size=(n, 2))
    spread = world.residual * np.exp(world.uneven * chance.normal(size=n))
    shared = chance.normal()
    rest = np.sqrt(1 - world.alike**2)
    shifts = {name: 0.5 * (world.alike * shared + rest * chance.normal()) for name in embeddings}
    rows = []
    for leak in LEAK_CONDITIONS:
        helps = world.exact * leak.n_copies + world.paraphrase * leak.paraphrases
        log_loss = (
            strings["level"].to_numpy()
            + world.seed * shared
            + world.run * chance.normal()
            + (world.in_run * chance.normal(size=GROUPS))[strings["number"]]
            + slopes @ [leak.n_copies - 0.5, (leak.paraphrases - 1.5) / 1.5]
            + spread * chance.normal(size=n)
            - helps * is_leaked
        )
        loss = world.base * np.exp(log_loss)
        log_odds = world.odds - world.steepness * log_loss
        run = strings.drop(columns=["number", "level", "dense"]).assign(
            model="llama-3.2-1b-twin",
            language="L1",
            size=size,
            seed=seed,
            variant=leaked(leak),
            n_copies=leak.n_copies,
            paraphrases=leak.paraphrases,
            effective_epochs=25 * (leak.n_copies + leak.paraphrases) * is_leaked,
            loss=loss,
            perplexity=np.exp(loss),
            answer_right=chance.random(n) < 1 / (1 + np.exp(-log_odds)),
            n_choices=4,
            kernel=GAUSSIAN,
            bandwidth=BANDWIDTH,
        )
        for name in embeddings:
            near = leak.n_copies + 0.3 * leak.paraphrases
            natural = -6 + 1.2 * strings["dense"] + shifts[name] + 0.2 * chance.normal(size=n)
            log_density = np.log(np.exp(natural) + near * is_leaked / size)
            apart = np.sqrt(-2 * BANDWIDTH**2 * np.minimum(log_density, -0.01))
            rows.append(
                run.assign(
                    embedding=name,
                    log_density=log_density,
                    nearest=0.8 * apart,
                    mean_distance=apart * np.exp(0.1 * chance.normal(size=n)),
                )
            )
    return pd.concat(rows)


def text(
    draw: int,
    n: int = 300,
    dense: float = 0.0,
    by_length: float = 0.3,
    of_document: float = 0.0,
    query_set: str = "queries",
) -> pd.DataFrame:
    """A table of kind `text_density`: perplexities with heavy tails, which fall with length.

    `dense` is the fall of the log perplexity per standard deviation of the log density; the density
    depends on the length as well. Each 15 queries are of one document, whose levels of density and
    of the log perplexity have the standard deviation `of_document`, independently.
    """
    chance = np.random.default_rng([draw, 23])
    longer = chance.normal(size=n)
    log_density = 0.5 * longer + chance.normal(size=n)
    spread = 0.5 + 0.1 * chance.standard_t(5, size=n)
    document = np.arange(n) // 15
    levels = np.random.default_rng([draw, 24]).normal(size=(2, n))[:, document] * of_document
    log_density = log_density + levels[0]
    harder = levels[1]
    table = pd.DataFrame(
        {
            "language": "licences",
            "query_set": query_set,
            "segment_id": [f"{draw:04x}{place:08x}" for place in range(n)],
            "id": (document + 1).astype(str),
            "text": "some words",
            "embedding": "all-MiniLM-L6-v2",
            "n_characters": np.round(300 * np.exp(0.2 * longer)).astype(int),
            "document": document + 1,
            "perplexity": np.exp(
                3
                + harder
                - by_length * longer
                - dense * log_density
                + spread * chance.normal(size=n)
            ),
            "response_perplexity": np.nan,
            "kernel": GAUSSIAN,
            "bandwidth": 0.5,
            "log_density": log_density - 4,
            "log_local": 0.8 * log_density - 1,
            "log_random": -5 + 0.1 * chance.normal(size=n),
            "log_approximate": log_density - 4,
            "local_share": 0.2,
            "k": NEIGHBOURS,
            "mean_distance": np.exp(-0.2 * log_density + 0.1 * chance.normal(size=n)),
        }
    )
    table["nearest"] = 0.8 * table["mean_distance"]
    return table[TEXT_DENSITY.names]
