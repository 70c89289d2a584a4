"""Memorisation: measures on losses, their approximation, the tables, studies and claims."""

from palimpsest.memorisation.approximation import StandIns, stand_ins
from palimpsest.memorisation.exact import exact_tables
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

__all__ = [
    "STUDIES",
    "Memorisation",
    "StandIns",
    "bayes",
    "contextual",
    "counterfactual",
    "exact_tables",
    "lemma_assumption_broken",
    "memorisation_tables",
    "recollection",
    "stand_ins",
]
