"""Streams: datasets whose strings are trained on once, one macro-batch after the other.

Source: Causal Estimation of Memorisation Profiles, sections 2.1 and 6.
"""

from collections import Counter

import numpy as np
import pandas as pd

from palimpsest.datasets.build import DatasetRequest, tabulate
from palimpsest.datasets.strings import string_id
from palimpsest.profiles.interventions import replaced_cohort

PANEL, VALIDATION, HELD_OUT = "panel", "validation", "held_out"


def stream(request: DatasetRequest) -> pd.DataFrame:
    """Distinct strings in macro-batches of equal size, and strings that are never trained on.

    Macro-batches and validation strings are samples of one distribution. In a stream without a
    macro-batch, spare strings, the same for every macro-batch, take its place: the model takes
    equally many steps, and only the strings differ.

    Options: `cohorts`, the number of macro-batches; `panel`, the number of strings of each that are
    measured; `validation`, the number of strings that are never trained on. `request.size` counts
    the strings that are trained on.
    """
    n_cohorts, panel, validation = (request.options[k] for k in ("cohorts", "panel", "validation"))
    each = request.size // n_cohorts
    lower = "profiles/cohorts, profiles/cohort_size or profiles/validation"
    shuffled = request.sampler.shuffled(validation + each + request.size, lower)
    never, spare = shuffled[:validation], shuffled[validation : validation + each]
    rest = shuffled[validation + each :]
    batches = {number + 1: rest[number * each : (number + 1) * each] for number in range(n_cohorts)}
    held_out = []
    if (replaced := replaced_cohort(request.variant)) is not None:
        held_out = batches[replaced][:panel]
        batches[replaced] = spare
    cohorts = {s: number for number, batch in batches.items() for s in batch}
    measured = {string_id(s) for batch in batches.values() for s in batch[:panel]}
    train = Counter(s for batch in batches.values() for s in batch)
    table = tabulate(request, train, Counter(), held_out=[*held_out, *never], cohorts=cohorts)
    names = table["string_id"]
    split = np.select(
        [
            names.isin({string_id(s) for s in never}),
            names.isin({string_id(s) for s in held_out}),
            names.isin(measured) & (replaced is None),
        ],
        [VALIDATION, HELD_OUT, PANEL],
        default="train",
    )
    return table.assign(split=split)
