"""The tables of the share of the gap closed: one row per string, and one row per method."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from palimpsest.unlearning.evaluate.gaps import (
    Losses,
    clear_gaps,
    pooled_share,
    spread,
    string_shares,
)
from palimpsest.unlearning.evaluate.placebos import FORGET, strings_and_controls
from palimpsest.unlearning.evaluate.samples import Problem, UnlearnedModels
from palimpsest.unlearning.kinds import GAP_SUMMARY, GAPS
from palimpsest.unlearning.run.setups import INNOCENT


def gap_tables(problem: Problem, methods: Iterable[UnlearnedModels]) -> dict[str, pd.DataFrame]:
    """The tables `unlearning_gaps` and `unlearning_gap_summary` of one problem.

    The models are those of `Problem.stock`. There are no intervals if several of them come from one
    original model. The gap leads to the first half of the retrained models; the ideal `retrain` is
    the other half, so it should close the whole gap.

    No model was trained on a placebo, and all models were trained on a retained string. So neither
    has a gap of its own. Their rise is divided by the gap of their forget string. The quotient is
    the share that a method would seem to close if it only raised the loss of unseen strings, or of
    all training strings. A control has a share if its forget string has a clear gap.

    Raises `UserError` if a model is missing, or if there is no placebo.
    """
    stock = problem.stock
    originals = problem.originals.of(stock.origins)
    retrained = problem.retrained.of(stock.retrained)
    measured = strings_and_controls(problem)
    of_strings, summaries = [], []
    for method in (*methods, *problem.innocent_models):
        unlearned = method.of(stock)
        for kind, places in measured:
            losses = Losses(*(some.loss[:, places] for some in (originals, unlearned, retrained)))
            compared = losses
            if kind != FORGET:
                own = Losses(
                    originals.loss[:, problem.forget],
                    unlearned.loss[:, problem.forget],
                    retrained.loss[:, problem.forget],
                )
                compared = with_gap_of(losses, own)
            keys = {**problem.keys, "method": method.name, "string_role": kind}
            means = dict(
                zip(
                    ("before", "after", "retrained"),
                    (values.mean(axis=0) for values in losses),
                    strict=True,
                )
            )
            shares = string_shares(*compared)
            row = summary(compared, shares.share)
            if not problem.independent:
                nothing = np.full(len(places), np.nan)
                shares = shares._replace(lower=nothing, upper=nothing)
                row |= {"lower": np.nan, "upper": np.nan}
            names = {"string_id": problem.string_ids[places]}
            if method.name != INNOCENT:
                of_strings.append(pd.DataFrame({**keys, **names, **means, **shares._asdict()}))
            summaries.append({**keys, **row})
    return {
        GAPS.name: pd.concat(of_strings, ignore_index=True),
        GAP_SUMMARY.name: pd.DataFrame(summaries),
    }


def with_gap_of(losses: Losses, own: Losses) -> Losses:
    """Losses with the rise of controls and the gap of the forget strings `own`, string by string.

    So the gaps are as clear, and as uncertain, as those of the forget strings.
    """
    return own._replace(after=own.before + losses.after - losses.before)


def summary(losses: Losses, shares: np.ndarray) -> dict:
    """The share over all strings with its interval, the spread of `shares`, and counts.

    `shares` is float[strings], from `string_shares`.
    """
    share, lower, upper = pooled_share([losses])
    return {
        "share": share,
        "lower": lower,
        "upper": upper,
        **spread(shares)._asdict(),
        "n_strings": losses.before.shape[1],
        "n_clear": int(clear_gaps(losses.before, losses.retrained).sum()),
        "n_models": len(losses.after),
    }
