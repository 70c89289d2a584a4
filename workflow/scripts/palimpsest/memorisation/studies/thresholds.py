"""The study `thresholds`: recollection by several thresholds, and by both rules for the start."""

from __future__ import annotations

from typing import ClassVar

from palimpsest.configuration.settings import Settings
from palimpsest.datasets.kinds import STRINGS
from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.memorisation.kinds import LEARNING, columns
from palimpsest.memorisation.study import SIZE_KEY, Study, kind_of_study
from palimpsest.paths import TRACE

pd = lazy_import("pandas")
likelihoods = lazy_import("palimpsest.memorisation.likelihoods")
measures = lazy_import("palimpsest.memorisation.measures")
runs = lazy_import("palimpsest.memorisation.runs")
np = lazy_import("numpy")

KIND = kind_of_study(
    "thresholds",
    "One row per model, seed, threshold of the loss, rule for the start and epoch: recollection.",
    columns(
        """
        model language size seed variant loss_threshold start_rule epoch share_memorised
        share_memorised_unseen test_loss optimal_epoch still_learning counterpart
        """,
        loss_threshold="float: loss below which a string counts as memorised, nats per token",
        start_rule="str: after_last_miss, or first_crossing as in the paper's text",
        share_memorised="float: share of training strings (with copies) that are memorised",
        share_memorised_unseen="float?: the same share of the unseen strings; NaN if there are "
        "none",
    ),
)
LEARNED = ["epoch", "test_loss", "optimal_epoch", "still_learning"]


@reads(strings=STRINGS, learning=LEARNING)
@makes(KIND)
def table(
    *,
    strings: pd.DataFrame,
    learning: pd.DataFrame,
    traces: list[str],
    loss_thresholds: list[float],
    counterpart: str | None = None,
) -> pd.DataFrame:
    """Recollection of the training strings and of unseen strings, by threshold and rule.

    Parameters
    ----------
    traces : paths of the traces of the runs
    loss_thresholds : nats per token
    counterpart : the language's counterpart of high entropy, or None

    Source: section 4, RQ3 ("the arbitrarily chosen threshold influences memorization score").
    """
    found = pd.concat(
        [
            rows_of_run(trace, dataset, threshold, rule)
            for trace, dataset, _ in likelihoods.read_runs(traces, strings, learning)
            for threshold in loss_thresholds
            for rule in measures.START_RULES
        ],
        ignore_index=True,
    ).merge(learning[[*likelihoods.RUN, *LEARNED]], on=[*likelihoods.RUN, "epoch"])
    of_language = pd.array([counterpart] * len(found), dtype="string")
    return found.assign(counterpart=of_language)[KIND.names]


def rows_of_run(trace, strings: pd.DataFrame, threshold: float, rule: str) -> pd.DataFrame:
    """One row for each epoch of a run."""
    shares = {}
    for group, members in likelihoods.members_of_groups(strings).items():
        loss = runs.restrict(trace, members).loss
        memorised = measures.recollection(loss, threshold, rule).memorised
        copies = members["count"].to_numpy() if group == likelihoods.TRAIN else None
        shares[group] = np.average(memorised, axis=1, weights=copies) if len(members) else np.nan
    return pd.DataFrame({"epoch": trace.epochs}).assign(
        **trace.run,
        loss_threshold=threshold,
        start_rule=rule,
        share_memorised=shares[likelihoods.TRAIN],
        share_memorised_unseen=shares[likelihoods.UNSEEN],
    )


class Thresholds(Study):
    name = "thresholds"
    order = 35
    title = "One threshold for all strings"
    description = "Recollection by several thresholds of the loss, and by both rules for the start."
    text = (
        "Recollection calls a string memorised if its loss is below a threshold that somebody"
        " chose. Here the same trainings are counted with several thresholds, and by two "
        "rules for losses that fall below and rise again."
    )
    keys: ClassVar = {
        "size": SIZE_KEY,
        "loss_thresholds": {
            "description": "Thresholds of the loss, nats per token.",
            "type": "array",
            "minItems": 2,
            "uniqueItems": True,
            "items": {"type": "number", "exclusiveMinimum": 0},
        },
    }
    files: ClassVar = {"traces": TRACE}

    def parameters(self, settings: Settings, language: str) -> dict:
        return {
            "loss_thresholds": self.block(settings)["loss_thresholds"],
            "counterpart": settings.counterpart(language),
        }


STUDY = Thresholds()
