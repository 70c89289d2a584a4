"""Memorisation: measures on losses, their approximation, the tables, studies and claims."""

from palimpsest.memorisation.approximation import StandIns, stand_ins
from palimpsest.memorisation.leave_one_out import leave_one_out_tables
from palimpsest.memorisation.measures import (
    Memorisation,
    bayes,
    contextual,
    counterfactual,
    lemma_assumption_broken,
    recollection,
)
from palimpsest.memorisation.runs import memorisation_tables
from palimpsest.memorisation.studies import STUDIES
from palimpsest.memorisation.targets import target_tables

__all__ = [
    "STUDIES",
    "Memorisation",
    "StandIns",
    "bayes",
    "contextual",
    "counterfactual",
    "leave_one_out_tables",
    "lemma_assumption_broken",
    "memorisation_tables",
    "recollection",
    "stand_ins",
    "target_tables",
]
