"""The tables of a set of checkpoints, from the scores of records under each of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import hmean, ks_2samp

from palimpsest.audit.checkpoints.clear_gaps import unclear_sets
from palimpsest.audit.checkpoints.closed import share_closed
from palimpsest.audit.checkpoints.compared import Compared
from palimpsest.audit.checkpoints.grouped import grouped_mean
from palimpsest.audit.checkpoints.kinds import (
    ALL_MODELS,
    FORGET,
    FORGET_QUALITY,
    GAPS,
    HOLDOUT,
    MEMBERSHIP,
    METRICS,
    OPEN_UNLEARNING,
    ORIGINAL,
    RETAIN,
    RETRAINED,
    ROLES,
    SCORES,
    TOLD_APART,
    UNLEARNED,
)
from palimpsest.audit.checkpoints.open_unlearning import results
from palimpsest.audit.checkpoints.told_apart import told_apart
from palimpsest.audit.references import share
from palimpsest.errors import Notice, UserError
from palimpsest.making import makes, reads
from palimpsest.records.roc_curves import statistics
from palimpsest.statistics import NO_INTERVAL, Interval
from palimpsest.unlearning import logit_scaled_confidence, pooled_share
from palimpsest.unlearning.evaluate.gaps import Losses

MEANS = ("loss", "probability", "rouge_l_recall", "exact_memorisation", "extraction_strength")
EXACT = "exact_match"
TRUTH_RATIO, UTILITY = "truth_ratio", "retain_utility"
ATTACKS = {"loss": -1, "zlib": 1, "min_k": 1, "min_k_plus": 1}  # the sign of membership
TINY = 1e-10  # as in open-unlearning, against a division by 0


@reads(scores=[SCORES])
@makes(METRICS, GAPS, FORGET_QUALITY, MEMBERSHIP, TOLD_APART, OPEN_UNLEARNING)
def compare(
    scores: Sequence[pd.DataFrame],
    *,
    model: str,
    language: str,
    roles: Mapping[str, Sequence[str]],
    false_positive_rates: Sequence[float],
) -> dict[str, pd.DataFrame | dict]:
    """The tables and results of a set.

    Parameters
    ----------
    scores : tables `checkpoint_scores`, one for each checkpoint
    model : the name of the set
    roles : the names of the checkpoints of each role
    false_positive_rates : at which the share of forget records that attacks find is given

    Warns if the gap is not clear. Raises `UserError` if two checkpoints say the same of every
    record, or have other tokens.
    """
    by_name = {frame["model"].iloc[0]: frame for frame in scores}
    role = {name: role for role in ROLES for name in roles[role]}
    found = Compared(model, language, {name: by_name[name] for name in role}, role)
    check_different(found)
    rows = {
        METRICS: metrics(found),
        GAPS: gaps(found),
        FORGET_QUALITY: forget_qualities(found),
        MEMBERSHIP: membership(found, false_positive_rates),
        TOLD_APART: _told_apart(found),
    }
    about = {"language": language, "model": model}
    made = {
        kind.name: pd.DataFrame([{**about, **row} for row in of_kind]).reindex(columns=kind.names)
        for kind, of_kind in rows.items()
    }
    for why in unclear_sets(made[GAPS.name]).values():
        warnings.warn(
            Notice(
                f"audit/checkpoints/{model}: the gap is not clear, so no share of it is known: "
                f"{why} (docs/checkpoints.md)"
            ),
            stacklevel=2,
        )
    qualities = made[FORGET_QUALITY.name]
    return {**made, OPEN_UNLEARNING.name: results(found, made[METRICS.name], qualities)}


def check_different(found: Compared) -> None:
    """Raise `UserError` if two checkpoints have the same loss on every record, or other tokens."""
    seen: dict[bytes, str] = {}
    (first, scores), *others = found.scores.items()
    for name, frame in others:
        if not np.array_equal(frame["n_tokens"], scores["n_tokens"]):
            raise UserError(
                f"audit/checkpoints/{found.name}: {name} cuts answers into other tokens than "
                f"{first}, so their losses per token cannot be compared; name models with one "
                "tokenizer"
            )
    for name, frame in found.scores.items():
        losses = frame["loss"].to_numpy().tobytes()
        if (twin := seen.setdefault(losses, name)) != name:
            raise UserError(
                f"audit/checkpoints/{found.name}: {name} and {twin} give every answer exactly the "
                "same loss; they are one model under two names: name another one"
            )


def metrics(found: Compared) -> Iterator[dict]:
    """Means over the records of each split, with intervals over their groups.

    Intervals are Student's, and Wilson's of the share of exact matches.
    """
    for name, scores in found.scores.items():
        about = {"checkpoint": name, "role": found.role[name]}
        for split, records in scores.groupby("split", sort=False):
            group = records["group"].to_numpy()
            found_means = {one: grouped_mean(records[one].to_numpy(), group) for one in MEANS}
            found_means[EXACT] = share(records[EXACT], records["group"])
            for metric, mean in found_means.items():
                yield {**about, "split": split, "metric": metric, **_ends(mean, len(records))}
            known = records.dropna(subset=TRUTH_RATIO)
            ratios = true_is_better(split, known[TRUTH_RATIO].to_numpy())
            if len(known):
                mean = grouped_mean(ratios, known["group"].to_numpy())
                yield {**about, "split": split, "metric": TRUTH_RATIO, **_ends(mean, len(known))}
            if len(known) and split == RETAIN:
                means = [records["probability"].mean(), records["rouge_l_recall"].mean()]
                utility = Interval(hmean([*means, ratios.mean()]), np.nan, np.nan)
                yield {**about, "split": split, "metric": UTILITY, **_ends(utility, len(records))}


def true_is_better(split: str, ratio: np.ndarray) -> np.ndarray:
    """Truth ratios as TOFU averages them: 1 is best, on every split.

    On forget records, the best model finds false answers as probable as true ones; on others, it
    finds them impossible.
    """
    if split == FORGET:
        return np.minimum(ratio, 1 / (ratio + TINY))
    return np.maximum(0, 1 - ratio)


def _ends(found: Interval, n_records: int) -> dict:
    return {**found.columns(), "n_records": n_records}


def gaps(found: Compared) -> Iterator[dict]:
    """Shares of the gap closed by each model, on forget, holdout and retain records.

    The controls are the originals, which close nothing, and the retrained models, which close the
    whole gap: each is compared with the others of its role. The only original, whose rise would be
    from itself, has no share, and the only retrained model has none on forget records. On other
    records, the gap is then its own.
    """
    forget = found.is_of(FORGET)
    losses = {
        f"{role}_loss": found.values(found.of_role(role), "loss")[:, forget].mean()
        for role in (ORIGINAL, RETRAINED)
    }
    for name, role in found.role.items():
        others = {one: [other for other in found.of_role(one) if other != name] for one in ROLES}
        known = {one: others[one] or found.of_role(one) for one in (ORIGINAL, RETRAINED)}
        sides = [found.values(known[one], "loss") for one in (ORIGINAL, RETRAINED)]
        (own,) = found.values([name], "loss")
        for split in (FORGET, HOLDOUT, RETAIN):
            measured = found.is_of(split)
            if measured.any():
                closed = share_closed(own, *sides, forget, measured, found.group)
                is_with_itself = role == ORIGINAL or (role == RETRAINED and split == FORGET)
                if is_with_itself and not others[role]:
                    closed = NO_INTERVAL
                row = {"checkpoint": name, "role": role, "split": split, **closed.columns("share")}
                numbers = {f"n_{one}": len(others[one]) for one in (ORIGINAL, RETRAINED)}
                yield {**row, "n_records": int(measured.sum()), **numbers, **losses}
    yield from ({**row, **losses} for row in _pooled(found))


def _pooled(found: Compared) -> Iterator[dict]:
    """The share of all unlearned models, if each has an original of its own, and two or more."""
    originals, retrained, unlearned = (found.of_role(role) for role in ROLES)
    if len(originals) != len(unlearned) or min(len(originals), len(retrained)) < 2:
        return
    forget = found.is_of(FORGET)
    losses = (found.values(names, "loss")[:, forget] for names in (originals, unlearned, retrained))
    row = {"checkpoint": ALL_MODELS, "role": UNLEARNED, "split": FORGET}
    numbers = {"n_original": len(originals), "n_retrained": len(retrained)}
    n_records = int(forget.sum())
    pooled = pooled_share([Losses(*losses)])
    yield {**row, **pooled.columns("share"), "n_records": n_records, **numbers}


def forget_qualities(found: Compared) -> Iterator[dict]:
    """TOFU's forget quality of every model against every other retrained one.

    Without false answers to the forget records, there is none.
    """
    ratios = {
        name: scores.loc[found.is_of(FORGET), TRUTH_RATIO].dropna().to_numpy()
        for name, scores in found.scores.items()
    }
    for name, role in found.role.items():
        for against in found.of_role(RETRAINED):
            if against != name and len(ratios[name]):
                test = ks_2samp(ratios[name], ratios[against])
                yield {
                    "checkpoint": name,
                    "role": role,
                    "against": against,
                    "p_value": test.pvalue,
                    "distance": test.statistic,
                    "n_records": len(ratios[name]),
                }


def membership(found: Compared, false_positive_rates: Sequence[float]) -> Iterator[dict]:
    """How well attacks tell forget from holdout records; nothing without holdout records."""
    forget, holdout = found.is_of(FORGET), found.is_of(HOLDOUT)
    if not holdout.any():
        return
    either = forget | holdout
    for name, scores in found.scores.items():
        for attack, sign in ATTACKS.items():
            score = sign * scores.loc[either, attack].to_numpy()
            by_name = statistics(score, forget[either], found.group[either], false_positive_rates)
            about = {"checkpoint": name, "role": found.role[name], "attack": attack}
            for statistic, value in by_name.items():
                yield {**about, "statistic": statistic, **value.columns()}


def _told_apart(found: Compared) -> Iterator[dict]:
    forget = found.is_of(FORGET)
    confidences = (
        logit_scaled_confidence(found.values(found.of_role(role), "loss")[:, forget], 1)
        for role in (UNLEARNED, RETRAINED)
    )
    yield from told_apart(*confidences)
