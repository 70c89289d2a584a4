"""The share of the gap that one model closed, from one model of each kind on.

`palimpsest.unlearning.pooled_share` needs two models of each kind, because it leaves out strings
whose own gap is not clear over models. Here the gap is that of all forget records together.
"""

from __future__ import annotations

import numpy as np

from palimpsest.audit.checkpoints.grouped import Source, interval, of_groups, of_models
from palimpsest.statistics import NO_INTERVAL, Interval
from palimpsest.unlearning.evaluate.gaps import CLEAR


def share_closed(
    model: np.ndarray,
    originals: np.ndarray,
    retrained: np.ndarray,
    forget: np.ndarray,
    measured: np.ndarray,
    group: np.ndarray,
) -> Interval:
    """The rise of a model's loss on some records, over the gap of the forget records.

    The rise is from the mean of the original models, and the gap from there to the mean of the
    retrained ones; both are means over records. On other records than the forget records, the share
    is what the model would seem to close if it only raised the loss of all texts.

    The interval speaks of other records, and of other originals and retrained models where there
    are two or more; the model itself stays what it is.

    Parameters
    ----------
    model, originals, retrained : float[records], float[models, records], nats per token
    forget, measured : bool[records], which may be the same records, or else have none in common
    group : [records], names of groups whose records are not independent

    Returns
    -------
    Interval; all NaN if the gap is not at least 3 standard errors above 0, or without records.

    Source: ratios of means, Cochran, Sampling Techniques (1977), section 6.3.
    """
    if not measured.any() or not forget.any():
        return NO_INTERVAL
    before = originals.mean(axis=0)
    each_gap = (retrained.mean(axis=0) - before)[forget]
    gap = each_gap.mean()
    if not is_clear(originals[:, forget], retrained[:, forget], group[forget]):
        return NO_INTERVAL
    each_rise = (model - before)[measured]
    rise = each_rise.mean()
    share = rise / gap
    of_gap = -share * (each_gap - gap) / gap / len(each_gap)
    of_rise = (each_rise - rise) / gap / len(each_rise)
    if (forget == measured).all():
        sources = [of_groups(of_rise + of_gap, group[forget])]
    else:
        sources = [of_groups(of_gap, group[forget]), of_groups(of_rise, group[measured])]
    of_originals = share * originals[:, forget].mean(axis=1) - originals[:, measured].mean(axis=1)
    sources += _if_many(of_originals / gap)
    sources += _if_many(share * retrained[:, forget].mean(axis=1) / gap)
    return interval(float(share), sources)


def is_clear(originals: np.ndarray, retrained: np.ndarray, group: np.ndarray) -> bool:
    """Whether the mean gap is 3 standard errors above 0 or more; both are float[models, records].

    A share divides by the gap, so with a less certain gap, it could be any number.
    """
    each = retrained.mean(axis=0) - originals.mean(axis=0)
    gap = each.mean()
    sources = [of_groups((each - gap) / len(each), group)]
    sources += _if_many(originals.mean(axis=1)) + _if_many(retrained.mean(axis=1))
    error = np.sqrt(sum(source.variance for source in sources))
    return bool(gap > 0 and gap >= CLEAR * error)


def _if_many(influence: np.ndarray) -> list[Source]:
    """The variance from models; nothing of one model, whose variance nobody knows."""
    return [of_models(influence)] if len(influence) > 1 else []
