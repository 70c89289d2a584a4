"""How methods do on another problem than that of their tuning, as they are and with light tuning.

Source: Are we making progress in unlearning?, section 6, Q5, figure 7.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pandas as pd

from palimpsest.datasets.kinds import STRINGS
from palimpsest.making import makes, reads
from palimpsest.unlearning.evaluate.rules import Rules
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
    epochs: int,
    batch_size: int,
    **rules,
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
    epochs, batch_size : see `search_problem`
    rules : those of `Rules`
    """
    problems = problems_of(datasets, retrained, epochs, batch_size)
    scoring = Rules(**rules)
    is_tuning = searched["seed"].isin(tuning_seeds)
    to_tune, to_judge = searched[is_tuning], searched[~is_tuning]
    by_method = {name: to_tune[to_tune["method"] == name] for name in settings}
    tried = tuning(by_method, problems, settings, scoring)
    chosen = tried[tried["chosen"]].set_index("method")["point"]
    rows = []
    for (method, *key), found in to_judge.groupby(["method", *PROBLEM_KEYS], sort=False):
        originals = found[found["point"] == NONE]
        for way, point in ((DIRECT, DIRECT), (LIGHT, chosen[method])):
            after = found[found["point"] == point]
            of_key = of_point(after, originals, problems, scoring)
            rows.append(
                {
                    **dict(zip(PROBLEM_KEYS, key, strict=True)),
                    "method": method,
                    "tuning": way,
                    "point": point,
                    "settings": json.dumps(settings[method][point]),
                    **{name: of_key[name] for name in TRANSFER.names if name in of_key},
                    "n_models": after["origin"].nunique(),
                }
            )
    return pd.DataFrame(rows, columns=TRANSFER.names)
