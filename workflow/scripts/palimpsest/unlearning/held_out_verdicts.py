"""What attackers that are judged on other models than they were fitted on say of a method.

An attacker that is chosen and judged on the same few models finds chance differences as well. So
the words of the report are those of attackers that are judged on models held out. Every repetition
splits the same models, in the same way for all methods: differences between methods are taken
repetition by repetition, and what a split has by chance cancels out.
"""

import pandas as pd

from palimpsest.statistics import DECIMALS, student
from palimpsest.unlearning.setups import ENDS, NONE, RETRAIN


def qualities(effects: pd.DataFrame) -> pd.DataFrame:
    """Forgetting quality under held-out attackers, float[repetitions, methods].

    `effects` is a table `unlearning_effects` of one problem; without any method if it had too few
    models for some to be held out.
    """
    rows = effects[(effects["effect"] == "attacker") & (effects["attacker"] == "held-out")]
    return rows.pivot(index="repetition", columns="method", values="forgetting_quality")


def n_held_out(effects: pd.DataFrame) -> int | None:
    """How many models of each kind attackers are judged on; as many are fitted on."""
    rows = effects[(effects["effect"] == "attacker") & (effects["attacker"] == "held-out")]
    return None if rows.empty else int(rows["value"].iloc[0])


def interval(values: pd.Series) -> dict[str, float]:
    """Mean, and lower and upper end of its 95 % Student interval; they are NaN of one value."""
    # Rounded: differences that are all 0.1 must not be told from 0.1 by their last digit.
    return student(values, DECIMALS)._asdict()


def in_words(name: str, found: pd.DataFrame) -> str:
    """Where a method stands between doing nothing and retraining.

    It is above an end, or below it, if the interval of its paired differences to that end leaves 0
    out. `found` is as `qualities` gives it.
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
