"""The study `disagreement`: the same strings under every measure, by exact retraining."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from palimpsest.configuration.settings import Settings
from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.memorisation.interventions import with_target, without_target
from palimpsest.memorisation.kinds import AGREEMENT, TARGET_SCORES
from palimpsest.memorisation.study import SIZE_KEY, Study, kind_of_study
from palimpsest.requests import Runs

pd = lazy_import("pandas")

TARGETS_KEY = {
    "description": "Target strings of decreasing frequency, called s0, s1, ...",
    "type": "integer",
    "minimum": 1,
    "maximum": 20,
}
KIND = kind_of_study(
    "disagreement",
    "One row per model, seed, target string, measure, evidence and epoch: the tables "
    "`target_scores`, stacked.",
    TARGET_SCORES.columns,
)


@reads(target_scores=TARGET_SCORES)
@makes(KIND)
def table(*, target_scores: pd.DataFrame) -> pd.DataFrame:
    """Exact retraining with and without the target strings; the table is not changed.

    Source: section 3.2, RQ1 and RQ2, figures 1, 2 and 13 to 17.
    """
    return target_scores


class Disagreement(Study):
    name = "disagreement"
    order = 10
    title = "One string, several verdicts"
    description = "The same strings under every measure, by retraining with and without them."
    text = (
        "For each of several target strings, from frequent to rare, one model is trained with"
        " it and one without. If two measures give different starts, the difference is in "
        "their definitions and not in the model."
    )
    makes = (TARGET_SCORES, AGREEMENT)
    keys: ClassVar = {"size": SIZE_KEY, "targets": TARGETS_KEY}

    def roles(self, settings: Settings) -> list[str]:
        return [f"s{rank}" for rank in range(self.block(settings)["targets"])]

    def measured(self, settings: Settings) -> Iterable[Runs]:
        """No runs, because this study has its own measures."""
        return ()

    def retrained(self, settings: Settings) -> Iterable[Runs]:
        return [
            replace(runs.on(intervention(role)), label="targets")
            for runs in self._all_runs(settings)
            for role in self.roles(settings)
            for intervention in (with_target, without_target)
        ]


STUDY = Disagreement()
