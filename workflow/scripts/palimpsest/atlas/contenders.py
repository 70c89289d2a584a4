"""Contenders: cheap measures of how much a training string is memorised, and from when on.

A contender is one row of `CONTENDERS`. Each says what it needs beside the model, and its `amount`
is higher for strings that it takes for memorised more. Contenders that need checkpoints come from
`gradients`, and the influence of one string on another from `EFFECTS`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from palimpsest.atlas.distances import (
    choice_distances,
    edit_distances,
    symbols,
    to_nearest_other,
)
from palimpsest.atlas.kinds import CURVATURE, EKFAC, MAGIC, TRACIN, TRAK
from palimpsest.atlas.passes import Passes
from palimpsest.audit.extraction import log10_samples
from palimpsest.audit.membership import ATTACKS, Given
from palimpsest.audit.membership.attack import LOWERCASE
from palimpsest.audit.passes import Pass
from palimpsest.density.kernel import log_density_of_others
from palimpsest.density.kinds import GAUSSIAN
from palimpsest.density.vectors import ngram_vectors
from palimpsest.languages import Grammar
from palimpsest.memorisation.all_measures import Thresholds, every_measure
from palimpsest.memorisation.measures import Memorisation
from palimpsest.memorisation.runs import epoch_of, restrict, stand_in_losses
from palimpsest.token_losses import TokenLosses
from palimpsest.traces import Trace
from palimpsest.unlearning.evaluate.extraction import extracted_from_half, extraction_strength

# What a contender needs beside the model
LAST, CURVE, STRINGS_ALONE = "the last losses", "all losses", "the strings"
UNSEEN, LANGUAGE = "unseen strings", "the language"
GRADIENTS_AT_END, CHECKPOINTS = "the last weights", "the weights of all epochs"
OTHER_SEEDS = "models of other seeds"
EVERY_STEP = "every step of the training"
CHANGED, LOWER_CASE = "changed strings", "texts in lower case"
RETRAINING = "retraining"
# Measures by gradients: the method that makes them, and what it needs
GRADIENTS = {
    "gradient norm": (TRACIN, GRADIENTS_AT_END),
    "tracin": (TRACIN, CHECKPOINTS),
    "tracin by adamw": (TRACIN, CHECKPOINTS),
    "gradient cosine": (TRACIN, CHECKPOINTS),
    "ek-fac": (EKFAC, GRADIENTS_AT_END),
    "trak": (TRAK, GRADIENTS_AT_END),
    "magic": (MAGIC, EVERY_STEP),
    "curvature": (CURVATURE, CHECKPOINTS),
}
N_GRAM = 3
KERNEL, BANDWIDTH = GAUSSIAN, 0.1  # those that the section density shows by default
FEWEST_FOR_SPREAD = 2  # reference models, for LiRA
ITSELF = "itself"  # the effect of a string on itself alone, the same for all: a placebo


@dataclass(frozen=True)
class Cell:
    """What is known of the training strings of one run, without training again.

    `strings` is the table `strings` of all distinct training strings, and `unseen` that of some
    strings that were never trained on. `loss` and `wrong` float[epochs, strings] are nats per token
    and the share of wrong tokens. `measured` are the section memorisation's measures, by measure
    and evidence. `tokens` are the losses of single tokens. `passes` are None if models did not pass
    over the strings once more.
    """

    strings: pd.DataFrame
    unseen: pd.DataFrame
    loss: np.ndarray
    wrong: np.ndarray
    measured: dict[tuple[str, str], Memorisation]
    tokens: TokenLosses
    passes: Passes | None = None
    grammar: Grammar | None = None

    @property
    def has(self) -> set[str]:
        """What is known, of the needs of contenders that not every run can have."""
        if self.passes is None:
            return set()
        needs = {GRADIENTS_AT_END, CHANGED}
        needs |= {OTHER_SEEDS} if self.passes.n_references else set()
        return needs | ({LOWER_CASE} if LOWERCASE in self.passes.changed else set())

    @cached_property
    def distances(self) -> np.ndarray:
        """int[strings, strings + unseen]: edit distances."""
        return edit_distances(self.texts)[: len(self.strings)]

    @property
    def texts(self) -> list[str]:
        return [*self.strings["text"], *self.unseen["text"]]

    @property
    def given(self) -> Given:
        """What an attack is given: log probabilities of the tokens after the last epoch."""
        return Given(self.strings["text"].tolist(), self.last)

    @cached_property
    def last(self) -> Pass:
        """The log probabilities of the tokens after the last epoch; nothing else is known."""
        nll = self.tokens.of(self.strings["string_id"].to_numpy(dtype=object))[-1]
        n_tokens = self.strings["n_tokens"].to_numpy()
        unknown = np.full(len(nll), np.nan)
        return Pass(n_tokens, -nll, unknown, unknown, unknown, unknown)


@dataclass(frozen=True)
class Contender:
    """One cheap measure; its title is in `titles.py`.

    `amount` gives float[strings], higher for strings that are memorised more, NaN where it does not
    apply. `start` gives the index of the epoch at which memorisation starts, NaN for never; None if
    the measure has no starts.
    """

    name: str
    needs: str
    source: str
    amount: Callable[[Cell], np.ndarray]
    start: Callable[[Cell], np.ndarray] | None = None


def by_measure(measure: str, needs: str, evidence: str) -> Contender:
    """A measure of the section memorisation: its margin at the last epoch, and its start.

    The margin is the relative distance of the loss below the threshold, negative above it.
    """

    def amount(cell: Cell) -> np.ndarray:
        threshold = cell.measured[measure, evidence].threshold[-1]
        beyond = threshold - (cell.wrong if measure == "recollection_accuracy" else cell.loss)[-1]
        return np.divide(beyond, threshold, out=np.zeros_like(beyond), where=threshold != 0)

    def start(cell: Cell) -> np.ndarray:
        return cell.measured[measure, evidence].start

    return Contender(measure, needs, "Learning Without Memorizing (2025)", amount, start)


def by_attack(name: str) -> Contender:
    """An attack of the section audit that needs the losses of single tokens only."""
    attack = ATTACKS[name]
    return Contender(name, LAST, attack.source, lambda cell: attack.score(cell.given))


def by_distribution(name: str) -> Contender:
    """An attack of the section audit that needs the distribution of each token."""
    attack = ATTACKS[name]

    def amount(cell: Cell) -> np.ndarray:
        return attack.score(cell.passes.given(cell.passes.trained))

    return Contender(name, GRADIENTS_AT_END, attack.source, amount)


def by_change(name: str, needs: str = CHANGED) -> Contender:
    """An attack of the section audit that needs changed strings."""
    attack = ATTACKS[name]

    def amount(cell: Cell) -> np.ndarray:
        given = cell.passes.given(cell.passes.trained)
        return attack.score(replace(given, changed=cell.passes.changed))

    return Contender(name, needs, attack.source, amount)


def by_reference(name: str, fewest: int = 1) -> Contender:
    """An attack of the section audit that needs reference models: those of the other seeds.

    NaN for a string that a reference was trained on, and with fewer references than `fewest`.
    """
    attack = ATTACKS[name]

    def amount(cell: Cell) -> np.ndarray:
        is_apart, given = cell.passes.beside_references
        amounts = np.full(len(is_apart), np.nan)
        if cell.passes.n_references >= fewest and is_apart.any():
            amounts[is_apart] = attack.score(given)[: is_apart.sum()]
        return amounts

    return Contender(name, OTHER_SEEDS, attack.source, amount)


def forgetting(cell: Cell) -> np.ndarray:
    """float[strings]: the sum of the falls of the share of right tokens, over the epochs.

    The source counts how often an example that was right is wrong after the next step.
    """
    return np.maximum(0.0, np.diff(cell.wrong, axis=0)).sum(axis=0)


def n_grams(text: str) -> set[tuple[str, ...]]:
    parts = symbols(text)
    return {tuple(parts[i : i + N_GRAM]) for i in range(max(1, len(parts) - N_GRAM + 1))}


def unique_n_grams(cell: Cell) -> np.ndarray:
    """float[strings]: mean over the string's 3-grams of 1 / (training strings that have it)."""
    of_strings = [n_grams(text) for text in cell.strings["text"]]
    n_strings = Counter(gram for grams in of_strings for gram in grams)
    # Sets have no order, so the sum must not depend on it.
    sums = [math.fsum(1 / n_strings[gram] for gram in grams) for grams in of_strings]
    return np.array(sums) / [len(grams) for grams in of_strings]


def isolation(cell: Cell) -> np.ndarray:
    """float[strings]: edit distance to the nearest other training string, per symbol."""
    return to_nearest_other(cell.distances[:, : len(cell.strings)], cell.strings["text"])


def extraction(cell: Cell) -> np.ndarray:
    """float[strings]: minus log10 of the samples that hold the second half with probability 1/2.

    They are samples of what follows the first half, rounded down; n of (n, p)-extraction.
    """
    of_strings = cell.last.split(cell.last.log_prob)
    of_halves = np.array([own[len(own) // 2 :].sum() for own in of_strings])
    return -log10_samples(np.minimum(of_halves, 0.0))


def n_last_right(cell: Cell) -> tuple[np.ndarray, np.ndarray]:
    """int[strings]: tokens in a row at the end that are the most probable ones, and all tokens."""
    found = cell.passes.pass_of(cell.passes.trained)
    is_wrong = [own[::-1] > 1 for own in found.split(found.rank)]
    n_last = [int(own.argmax()) if own.any() else len(own) for own in is_wrong]
    return np.array(n_last), found.n_tokens


def against_stand_ins(cell: Cell) -> np.ndarray:
    """float[strings]: fall of the loss over the training, minus that of unseen stand-ins.

    The source compares cohorts that are trained on at different steps. All strings of a cell are in
    each epoch, so the treatment is the whole training, and each string is a cohort of its own.
    """
    stand_in = cell.measured["counterfactual", "same-frequency"].threshold
    return (cell.loss[0] - cell.loss[-1]) - (stand_in[0] - stand_in[-1])


def thinness(cell: Cell, vectors: np.ndarray) -> np.ndarray:
    """float[strings]: minus the log density of all other training strings, copies among them.

    The density is exact: so few strings need no approximation.
    """
    copies = np.repeat(np.arange(len(cell.strings)), cell.strings["count"])
    of_copies = log_density_of_others(vectors[copies], BANDWIDTH, KERNEL)
    return -of_copies[np.searchsorted(copies, np.arange(len(cell.strings)))]


def ngram_thinness(cell: Cell) -> np.ndarray:
    return thinness(cell, ngram_vectors([symbols(text) for text in cell.strings["text"]]))


CONTENDERS = (
    # The order of strings by the margin is that by the loss, which is the oldest attack.
    by_measure("recollection", CURVE, "constant"),
    by_measure("recollection_accuracy", CURVE, "constant"),
    by_measure("counterfactual", UNSEEN, "same-frequency"),
    by_measure("contextual", UNSEEN, "same-frequency"),
    by_measure("bayes", LANGUAGE, "language"),
    Contender(
        "high_loss",
        LAST,
        "the last loss with the other sign: what is hard is memorised",
        lambda cell: cell.loss[-1],
    ),
    by_attack("min_k"),
    by_attack("zlib"),
    Contender(
        "loss_drop",
        CURVE,
        "the loss before training minus the loss at the end",
        lambda cell: cell.loss[0] - cell.loss[-1],
    ),
    Contender(
        "mean_loss",
        CURVE,
        "the higher, the later the string is learned",
        lambda cell: cell.loss.mean(axis=0),
    ),
    Contender("forgetting", CURVE, "Toneva et al. (2019)", forgetting),
    Contender(
        "rarity",
        LANGUAGE,
        "minus the exact log probability",
        lambda cell: -cell.strings["log_prob"].to_numpy(),
    ),
    Contender(
        "copies",
        STRINGS_ALONE,
        "number of copies in the training set",
        lambda cell: cell.strings["count"].to_numpy(dtype=float),
    ),
    Contender("unique_n_grams", STRINGS_ALONE, "of the training set", unique_n_grams),
    Contender("isolation", STRINGS_ALONE, "edit distance to the nearest other", isolation),
    Contender("ngram_density", STRINGS_ALONE, "LMD3 (2024), of n-grams", ngram_thinness),
    Contender(
        "hidden_density",
        GRADIENTS_AT_END,
        "LMD3 (2024), of mean last hidden states",
        lambda cell: thinness(cell, cell.passes.vectors),
    ),
    Contender("extraction", LAST, "Hayes et al. (2025)", extraction),
    Contender(
        "discoverable",
        GRADIENTS_AT_END,
        "Carlini et al., Quantifying Memorization Across Neural Language Models (2023)",
        lambda cell: extracted_from_half(*n_last_right(cell)).astype(float),
    ),
    Contender(
        "extraction_strength",
        GRADIENTS_AT_END,
        "Carlini et al., Extracting Training Data from Large Language Models (2021)",
        lambda cell: extraction_strength(*n_last_right(cell)),
    ),
    Contender(
        "difference_in_differences",
        UNSEEN,
        "Lesci et al., Causal Estimation of Memorisation Profiles (2024)",
        against_stand_ins,
    ),
    by_distribution("min_k_plus"),
    by_change("neighbours"),
    by_change("recall"),
    by_change("lowercase", LOWER_CASE),
    by_reference("reference"),
    by_reference("lira", FEWEST_FOR_SPREAD),
    by_reference("rmia"),
    by_reference("ez_mia"),
)
NOT_ALWAYS = {GRADIENTS_AT_END, OTHER_SEEDS, CHANGED, LOWER_CASE}
BY_CHANGE = tuple(of.name for of in CONTENDERS if of.needs in (CHANGED, LOWER_CASE))
WITH_STARTS = tuple(contender.name for contender in CONTENDERS if contender.start)

# Measures of what a removed string (row) does to the loss of another (column), from strings alone
# or with the language: float[strings, strings + unseen]
EFFECTS = {
    ITSELF: lambda cell: np.eye(*cell.distances.shape),
    "near_strings": lambda cell: -cell.distances.astype(float),
    "copies_of_near_strings": lambda cell: (
        cell.strings["count"].to_numpy()[:, None] / (1.0 + cell.distances)
    ),
    "near_derivations": lambda cell: (
        -choice_distances(cell.grammar, cell.texts)[: len(cell.strings)].astype(float)
    ),
}
OF_LANGUAGE = {"near_derivations"}  # effects that need a grammar


def said_of(
    trace: Trace,
    strings: pd.DataFrame,
    tokens: TokenLosses,
    names: np.ndarray,
    unseen: np.ndarray,
    thresholds: Thresholds,
    passes: Passes | None = None,
    grammar: Grammar | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What every contender says of some training strings of a run, and of each on each other.

    Parameters
    ----------
    trace : the run on all strings
    strings : its dataset
    tokens : the losses of its single tokens
    names : the training strings that are wanted
    unseen : strings that were never trained on, for the effects on them
    passes, grammar : of models over all strings, and of the language; without one, what needs it is
        left out

    Returns the rows of the table `contenders`, without the columns of the run, and the effects, in
    rows of measure, needs, removed, string_id and effect.
    """
    cell = cell_of(trace, strings, tokens, unseen, thresholds, passes, grammar)
    ids = cell.strings["string_id"].to_numpy(dtype=object)
    wanted = np.isin(ids, names)
    measured = np.append(wanted, np.ones(len(cell.unseen), dtype=bool))
    measured_ids = np.append(ids, cell.unseen["string_id"])[measured]
    amounts = [
        pd.DataFrame(
            {
                "measure": contender.name,
                "needs": contender.needs,
                "string_id": ids,
                "amount": contender.amount(cell),
                "measured_start": starts(contender, cell, trace.epochs),
            }
        )[wanted]
        for contender in CONTENDERS
        if contender.needs not in NOT_ALWAYS - cell.has
    ]
    effects = [
        pd.DataFrame(
            {
                "measure": name,
                "needs": LANGUAGE if name in OF_LANGUAGE else STRINGS_ALONE,
                "removed": np.repeat(ids[wanted], len(measured_ids)),
                "string_id": np.tile(measured_ids, wanted.sum()),
                "effect": function(cell)[np.ix_(wanted, measured)].ravel(),
            }
        )
        for name, function in EFFECTS.items()
        if grammar is not None or name not in OF_LANGUAGE
    ]
    return pd.concat(amounts, ignore_index=True), pd.concat(effects, ignore_index=True)


def amounts_of(scores: pd.DataFrame, names: np.ndarray) -> pd.DataFrame:
    """Rows of the table `contenders` from scores by gradients after the last epoch."""
    last = scores[(scores["epoch"] == scores["epoch"].max()) & scores["string_id"].isin(names)]
    found = last[["measure", "string_id"]].assign(amount=last["value"], measured_start=np.nan)
    return found.assign(needs=_needs(found["measure"]))


def effects_of(influence: pd.DataFrame, names: np.ndarray) -> pd.DataFrame:
    """Rows of effects from influence by gradients, of some training strings."""
    chosen = influence["removed"].isin(names)
    found = influence.loc[chosen, ["measure", "removed", "string_id"]]
    return found.assign(effect=influence["value"], needs=_needs(found["measure"]))


def seconds_by_measure(costs: pd.DataFrame) -> dict[str, float]:
    """Core-seconds of each measure by gradients; those of TracIn are made together."""
    seconds = costs.set_index("method")["seconds"]
    return {name: seconds[method] for name, (method, _) in GRADIENTS.items() if method in seconds}


def _needs(measures: pd.Series) -> pd.Series:
    return measures.map({name: needs for name, (_, needs) in GRADIENTS.items()})


def starts(contender: Contender, cell: Cell, epochs: np.ndarray) -> np.ndarray:
    """float[strings]: the epochs of the contender's starts; NaN where it has none."""
    if contender.start is None:
        return np.full(len(cell.strings), np.nan)
    return epoch_of(contender.start(cell), epochs)


def cell_of(
    trace: Trace,
    strings: pd.DataFrame,
    tokens: TokenLosses,
    unseen: np.ndarray,
    thresholds: Thresholds,
    passes: Passes | None = None,
    grammar: Grammar | None = None,
) -> Cell:
    train = strings[strings["count"] > 0].reset_index(drop=True)
    of_train = restrict(trace, train)
    stand_in = stand_in_losses(trace, strings, train, thresholds.stand_in_gap)[1]
    wrong = 1 - of_train.accuracy
    optimal = train["optimal_loss"].to_numpy()
    without = {"same-frequency": stand_in}
    measured = every_measure(of_train.loss, wrong, optimal, without, thresholds)
    others = strings[strings["string_id"].isin(unseen)]
    return Cell(train, others, of_train.loss, wrong, measured, tokens, passes, grammar)
