"""How often the 95 % intervals of ROC curves miss the truth, in simulated audits.

Run as a script: `python tests/benchmarks/bench_attack_intervals.py`. Scores of members and of
others are normal and differ by some standard deviations; scores of a group have a share of their
variance in common. A row has the worst of several distances. The peer is the bootstrap over groups
of both sides: of an AUC on the scale of logits, of a share of members found by percentiles. The
last rows are the mean widths of intervals where 37 % of the members are found at 1 %.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

from rows import Row, at_most, main, shown  # noqa: E402

from palimpsest.records.roc_curves import AUC, TPR, statistics  # noqa: E402

N_AUDITS, N_OF_PEER, TINY = 4000, 200, 2
N_DRAWS = 200  # of a bootstrap
TARGET = 6.0  # percent
WIDTHS = (100, 400, 1000)  # texts on each side
DISTANCES = (0.0, 1.0, 2.33, 4.4)  # AUC: 0.5, 0.76, 0.95 and 0.999
RATES = (0.01, 0.05, 0.1, 0.2)
# Groups of members, groups of others, texts of a group on either side
FEW_GROUPS = ((30, 2, 1, 15), (2, 30, 15, 1), (30, 3, 1, 10), (3, 30, 10, 1), (5, 5, 6, 6))
MANY_GROUPS = ((12, 12, 5, 5), (30, 30, 2, 2), (100, 100, 1, 1))
OF_RATES = ((100, 100, 1, 1), (200, 200, 1, 1), (1000, 1000, 1, 1), (40, 200, 5, 1), (40, 40, 5, 5))


class World(NamedTuple):
    """Groups of members and of others, the texts of each, and what scores of a group share."""

    n_members: int
    n_others: int
    per_member: int
    per_other: int
    shared: float

    @property
    def group(self) -> np.ndarray:
        return np.repeat(
            np.arange(self.n_members + self.n_others),
            [self.per_member] * self.n_members + [self.per_other] * self.n_others,
        )

    @property
    def member(self) -> np.ndarray:
        return self.group < self.n_members

    def scores(self, chance: np.random.Generator, distance: float) -> np.ndarray:
        of_group = chance.normal(size=self.n_members + self.n_others)[self.group]
        own = chance.normal(size=len(self.group))
        noise = np.sqrt(self.shared) * of_group + np.sqrt(1 - self.shared) * own
        return noise + distance * self.member

    def __str__(self) -> str:
        members = f"{self.n_members} groups of {self.per_member}"
        return f"{members}, {self.n_others} of {self.per_other}; {self.shared:g}"


def bootstrap(
    chance: np.random.Generator, score: np.ndarray, world: World, rate: float | None
) -> tuple[float, float]:
    """The ends of the interval of the AUC, or of the share of members found at a rate."""
    sides = (world.n_members, world.n_others)
    drawn = [chance.multinomial(n, np.full(n, 1 / n), N_DRAWS) for n in sides]
    weight = np.concatenate(drawn, axis=1)[:, world.group]
    values = curves(score, world.member, weight, rate)
    if rate is not None:
        return tuple(np.quantile(values, [0.025, 0.975]))
    (value,) = curves(score, world.member, np.ones((1, len(score))), None)
    if value == 1:
        return 1.0, 1.0
    reach = 1.96 * np.std(values) / (value * (1 - value))
    return expit(logit(value) - reach), expit(logit(value) + reach)


def curves(
    score: np.ndarray, member: np.ndarray, weight: np.ndarray, rate: float | None
) -> np.ndarray:
    """float64[draws]: the AUC, or the share found, of texts with weight[draws, texts]."""
    order = np.argsort(-score)
    tpr, fpr = (
        np.cumsum(weight[:, order] * side[order], axis=1) / (weight @ side)[:, None]
        for side in (member, ~member)
    )
    if rate is None:
        return np.trapezoid(np.pad(tpr, ((0, 0), (1, 0))), np.pad(fpr, ((0, 0), (1, 0))), axis=1)
    return np.where(fpr <= rate * (1 + 1e-9), tpr, 0).max(axis=1)


def missed(world: World, distance: float, rate: float | None, n_audits: int) -> tuple:
    """Percent of intervals that miss the truth, of ours and of the bootstrap; and the mean."""
    chance, of_peer = np.random.default_rng(0), np.random.default_rng(1)
    name = AUC if rate is None else f"{TPR}{rate:g}"
    truth = norm.cdf(distance / np.sqrt(2))
    if rate is not None:
        truth = norm.sf(norm.isf(rate) - distance)
    ours, peer = [], []
    for number in range(n_audits):
        score = world.scores(chance, distance)
        found = statistics(score, world.member, world.group, [rate] if rate else [])[name]
        ours.append(not found.lower <= truth <= found.upper)
        if number < N_OF_PEER:
            lower, upper = bootstrap(of_peer, score, world, rate)
            peer.append(not lower <= truth <= upper)
    return 100 * np.mean(ours), 100 * np.mean(peer)


def row(what: str, world: World, rate: float | None, n_audits: int) -> Row:
    found = [missed(world, distance, rate, n_audits) for distance in DISTANCES]
    ours, peer = np.max(found, axis=0)
    return at_most(f"{what}, {world}", ours, peer, "%", TARGET, peer / max(ours, 0.1))


def width(n: int, n_audits: int) -> Row:
    chance, world, peer = np.random.default_rng(0), World(n, n, 1, 1, 0.0), np.random.default_rng(1)
    member, group, ends = world.member, world.group, []
    for _ in range(n_audits):
        score = world.scores(chance, 2.0)
        _, *ours = statistics(score, member, group, [0.01])[f"{TPR}0.01"]
        ends.append([*ours, *bootstrap(peer, score, world, 0.01)])
    ours, of_peer = np.diff(np.mean(ends, axis=0))[[0, 2]]
    return shown(f"width of found at 0.01, {n} on each side", ours, of_peer, "", of_peer / ours)


def rows(tiny: bool) -> Iterator[Row]:
    n_audits = TINY if tiny else N_AUDITS
    for groups in FEW_GROUPS + MANY_GROUPS:
        for shared in (0.5, 0.9) if max(groups[2:]) > 1 else (0.0,):
            yield row("AUC", World(*groups, shared), None, n_audits)
    for groups in OF_RATES:
        for rate in RATES:
            if rate * (groups[1] + 1) >= 1:
                shared = 0.7 if max(groups[2:]) > 1 else 0.0
                yield row(f"found at {rate:g}", World(*groups, shared), rate, n_audits)
    for n in WIDTHS:
        yield width(n, min(n_audits, N_OF_PEER))


if __name__ == "__main__":
    sys.exit(main(rows))
