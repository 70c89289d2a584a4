"""How methods do on another problem than that of their tuning, as they are and with light tuning.

Source: Are we making progress in unlearning?, section 6, Q5, figure 7.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from palimpsest.datasets.kinds import STRINGS
from palimpsest.making import makes, reads
from palimpsest.unlearning.attacks.confidence import logit_scaled_confidence
from palimpsest.unlearning.attacks.quality import forgetting_quality
from palimpsest.unlearning.attacks.thresholds import epsilon
from palimpsest.unlearning.evaluate.samples import PROBLEM_KEYS
from palimpsest.unlearning.kinds import SEARCHED, TRANSFER
from palimpsest.unlearning.run.setups import NONE
from palimpsest.unlearning.tuning.choice import of_point, problems_of, tuning
from palimpsest.unlearning.tuning.jobs import DIRECT, LIGHT


@reads(searched=SEARCHED, datasets=[STRINGS])
@makes(TRANSFER)
def transfer(
    searched: pd.DataFrame,
    datasets: Sequence[pd.DataFrame],
    retrained: Sequence[str],
    *,
    settings: Mapping[str, Mapping[str, dict]],
    tuning_seeds: Sequence[int],
    cutoff: float,
    epochs: int,
    batch_size: int,
    delta: float,
    thresholds: str,
    bin_width: float,
) -> pd.DataFrame:
    """The table `unlearning_transfer`.

    Light tuning chooses the point by the rule of the search, on the problems of `tuning_seeds`. The
    other problems judge the point, so their retrained models do not choose it.

    Parameters
    ----------
    searched : all methods, points and problems
    datasets : one for each problem
    retrained : traces of the retrained models, equally many files for each problem
    settings : the factors that every point sets, by method
    others : see `tuning`, `search_problem` and `epsilon`
    """
    problems, losses = problems_of(datasets, retrained, epochs, batch_size)
    is_tuning = searched["seed"].isin(tuning_seeds)
    to_tune, to_judge = searched[is_tuning], searched[~is_tuning]
    by_method = {name: to_tune[to_tune["method"] == name] for name in settings}
    tried = tuning(by_method, problems, settings, cutoff)
    chosen = tried[tried["chosen"]].set_index("method")["point"]
    rows = []
    for (method, *key), found in to_judge.groupby(["method", *PROBLEM_KEYS], sort=False):
        key = tuple(key)
        originals = found[found["point"] == NONE]
        for way, point in ((DIRECT, DIRECT), (LIGHT, chosen[method])):
            after = found[found["point"] == point]
            quality = quality_of(after, losses[key], delta, thresholds, bin_width)
            of_losses = of_point(after, originals, problems, cutoff)
            rows.append(
                {
                    **dict(zip(PROBLEM_KEYS, key, strict=True)),
                    "method": method,
                    "tuning": way,
                    "point": point,
                    "settings": json.dumps(settings[method][point]),
                    "forgetting_quality": quality,
                    "score": quality * kept(after, originals),
                    **{name: of_losses[name] for name in TRANSFER.names if name in of_losses},
                    "n_models": after["origin"].nunique(),
                }
            )
    return pd.DataFrame(rows, columns=TRANSFER.names)


def quality_of(
    after: pd.DataFrame,
    retrained: pd.DataFrame,
    delta: float,
    thresholds: str,
    bin_width: float,
) -> float:
    """Forgetting quality of a point's models; 0 if a loss is not finite.

    `retrained` holds losses float[models, forget strings], nats per token, by string.
    """
    losses = after.pivot(index="origin", columns="string_id", values="loss")
    if not np.isfinite(losses.to_numpy()).all():
        return 0.0
    samples = [
        logit_scaled_confidence(own.to_numpy(), np.ones(own.shape[1]), "geometric_mean")
        for own in (losses, retrained[losses.columns])
    ]
    return forgetting_quality(epsilon(*samples, delta, thresholds), len(losses), bin_width)


def kept(after: pd.DataFrame, originals: pd.DataFrame) -> float:
    """What is kept of the probability of tokens on retained strings, times that on unseen ones.

    The losses are those of models, so that a model counts once, whatever the number of strings.
    """
    ratios = [
        np.exp(-_of_models(after, name)).mean() / np.exp(-_of_models(originals, name)).mean()
        for name in ("retain_loss", "unseen_loss")
    ]
    return float(np.prod(ratios))


def _of_models(rows: pd.DataFrame, name: str) -> np.ndarray:
    return rows.drop_duplicates("origin")[name].to_numpy()
