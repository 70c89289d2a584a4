"""The study `exact`: models retrained without a training string, and the approximations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar

from palimpsest.configuration.checks import trained_for_each_string
from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.errors import UserError
from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.memorisation import kinds
from palimpsest.memorisation.kinds import APPROXIMATION, CHEAP_EVIDENCE, columns
from palimpsest.memorisation.study import SIZE_KEY, Study, kind_of_study
from palimpsest.regimes import LeaveOneOut
from palimpsest.requests import Runs

pd = lazy_import("pandas")
leave_one_out_module = lazy_import("palimpsest.memorisation.leave_one_out")

SEEDS_KEY = {
    "description": "Seeds of the study, among the `seeds` above. Each trains one model for every "
    "string that is left out.",
    "type": "array",
    "minItems": 1,
    "uniqueItems": True,
    "items": {"type": "integer", "minimum": 0, "maximum": 4294967295},
}
STRINGS_KEY = {
    "description": "Number of distinct training strings that are left out, one after another; "
    "`all`: every string. Half of fewer strings are repeated ones, if there are so many.",
    "oneOf": [{"const": "all"}, {"type": "integer", "minimum": 2, "maximum": 1000000}],
}
REPLICATE_KEY = {
    "description": "Whether everything is trained once more, with other initial weights: how well "
    "retraining agrees with itself is the ceiling by which approximations are judged.",
    "type": "boolean",
}
KIND = kind_of_study(
    "exact",
    "One row per model, seed, training string, measure, evidence and quantity: the "
    "approximation beside exact retraining.",
    columns(
        """
        model language size seed string_id count log_prob measure evidence quantity by_retraining
        approximate correlation
        """,
        evidence=CHEAP_EVIDENCE,
        by_retraining="float?: the quantity by retraining without the string; NaN: no start",
        approximate="float?: by the cheaper threshold; NaN: no start",
        correlation="float?: Spearman rank correlation of the two over the run's strings; NaN if "
        "undefined",
    ),
)


@reads(leave_one_out=kinds.LEAVE_ONE_OUT, approximation=APPROXIMATION)
@makes(KIND)
def table(*, leave_one_out: pd.DataFrame, approximation: pd.DataFrame) -> pd.DataFrame:
    """Approximations of memorisation, and exact retraining, for every training string.

    Source: section 3.3; this study tests its hypothesis.
    """
    keys = ["model", "language", "size", "seed", "measure", "evidence", "quantity"]
    whole = approximation[approximation["group"] == "all"]
    correlation = whole[whole["statistic"] == "correlation"].rename(
        columns={"value": "correlation"}
    )
    pairs = leave_one_out_module.side_by_side(leave_one_out).drop(columns=["distance", "ratio"])
    joined = pairs.merge(correlation[[*keys, "correlation"]], on=keys)
    if len(joined) != len(pairs):
        raise UserError(
            f"{len(pairs)} rows of memorisation, {len(joined)} with their correlation: the tables "
            "are not of the same runs; make both anew"
        )
    return joined


class Exact(Study):
    name = "exact"
    order = 20
    title = "Training without a string"
    description = (
        "Training strings measured by retraining without each of them, and how well the "
        "approximations do."
    )
    text = (
        "Retraining without a string is the sure way to know what the string adds. Here this "
        "was done for every training string, or for a sample. The paper uses unseen strings "
        "of the same frequency instead; another shortcut is the Bayes-optimal loss. The "
        "question is how near these come to retraining."
    )
    makes = (kinds.LEAVE_ONE_OUT, APPROXIMATION)
    keys: ClassVar = {
        "size": SIZE_KEY,
        "seeds": SEEDS_KEY,
        "strings": STRINGS_KEY,
        "replicate": REPLICATE_KEY,
    }

    def runs(self, settings: Settings, language: str) -> list[Runs]:
        """The base runs with which leave-one-out is compared, for the study's seeds."""
        seeds = tuple(self.block(settings)["seeds"])
        return [replace(runs, seeds=seeds) for runs in super().runs(settings, language)]

    def measured(self, settings: Settings) -> Iterable[Runs]:
        """The base runs, measured for all seeds."""
        return [replace(runs, seeds=settings.seeds) for runs in self._all_runs(settings)]

    def retrained(self, settings: Settings) -> Iterable[Runs]:
        """Each model without each of the strings; with `replicate`, a second time as well."""
        block = self.block(settings)
        strings = None if block["strings"] == "all" else block["strings"]
        regimes = [LeaveOneOut(strings)]
        if block["replicate"]:
            regimes.append(LeaveOneOut(strings, again=True))
        return [
            replace(runs, regime=regime) for regime in regimes for runs in self._all_runs(settings)
        ]

    def mistakes(self, settings: Settings) -> Iterator[Mistake]:
        """Full models, for which leave-one-out is too expensive; seeds that are not in `seeds`."""
        yield from super().mistakes(settings)
        key = f"memorisation/studies/{self.name}"
        yield from trained_for_each_string(settings, f"{key}/models", self.models(settings))
        # It compares with the runs of these seeds, so they must be there.
        for place, seed in enumerate(self.block(settings)["seeds"]):
            if seed not in settings.seeds:
                known = ", ".join(map(str, settings.seeds))
                yield Mistake(f"{key}/seeds[{place}]", f"{seed} is not among the seeds: {known}")


STUDY = Exact()
