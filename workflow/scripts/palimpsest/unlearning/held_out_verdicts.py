"""Verdicts on methods, in words, from held-out attackers.

An attacker that is fitted and judged on the same few models also finds differences that are only
chance. So the report uses held-out attackers, which are judged on other models than they were
fitted on. Every repetition splits the same models, in the same way for all methods. Differences
between methods are taken within a repetition, so that the chance of a split cancels out.
"""

import pandas as pd

from palimpsest.statistics import DECIMALS, student
from palimpsest.unlearning.setups import ENDS, NONE, RETRAIN


def qualities(effects: pd.DataFrame) -> pd.DataFrame:
    """Forgetting quality under held-out attackers, float[repetitions, methods].

    `effects` is a table `unlearning_effects` of one problem. The result has no methods if the
    problem had too few models to hold some out.
    """
    rows = effects[(effects["effect"] == "attacker") & (effects["attacker"] == "held-out")]
    return rows.pivot(index="repetition", columns="method", values="forgetting_quality")


def n_held_out(effects: pd.DataFrame) -> int | None:
    """Number of models of each kind that judge an attacker; the same number fits it."""
    rows = effects[(effects["effect"] == "attacker") & (effects["attacker"] == "held-out")]
    return None if rows.empty else int(rows["value"].iloc[0])


def interval(values: pd.Series) -> dict[str, float]:
    """Mean, and the ends of its 95 % Student interval; the ends are NaN if there is one value."""
    # Rounded, so that rounding errors do not separate differences that are all 0.1 from 0.1.
    return student(values, DECIMALS)._asdict()


def in_words(name: str, found: pd.DataFrame) -> str:
    """The position of a method between doing nothing and retraining, in words.

    A method is above or below an end if the interval of the paired differences to that end excludes
    0. `found` is the result of `qualities`.
    """
    if not {name, *ENDS} <= set(found.columns):
        return "cannot tell: too few models"
    if len(found) < 2:
        return "cannot tell: one repetition"
    to_none, to_retrain = (interval(found[name] - found[end]) for end in (NONE, RETRAIN))
    if to_none["upper"] < 0:
        return "easier to tell from retraining than the original is"
    short = to_retrain["upper"] < 0
    if to_none["lower"] > 0:
        return "forgets in part" if short else "not told apart from retraining"
    return "not told apart from doing nothing" if short else "cannot tell: intervals too wide"
