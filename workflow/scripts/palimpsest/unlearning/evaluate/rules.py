"""The rules by which forgetting is scored."""

from dataclasses import dataclass

from palimpsest.unlearning.attacks.confidence import Of
from palimpsest.unlearning.attacks.thresholds import Thresholds


@dataclass(frozen=True)
class Rules:
    """How forgetting is scored.

    See `logit_scaled_confidence` for `confidence` (geometric_mean or sequence), `epsilon` for
    `thresholds` (exact or grid) and `delta`, and `forgetting_quality` for `bin_width`. A method is
    within the `cutoff` if it takes at most this share of the steps of retraining.
    """

    confidence: Of
    thresholds: Thresholds
    delta: float
    bin_width: float
    cutoff: float
