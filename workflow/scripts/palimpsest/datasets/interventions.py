"""The interventions that sections share; a section may have further ones."""

from palimpsest.interventions import BASE, Intervention

DEDUP = "dedup"  # each distinct string of base once
DEDUP_MATCHED = "dedup-matched"  # equally many distinct strings as dedup, from the counterpart

INTERVENTIONS = (
    Intervention(BASE, "palimpsest.datasets.plain:base"),
    Intervention(DEDUP, "palimpsest.datasets.plain:dedup"),
    Intervention(DEDUP_MATCHED, "palimpsest.datasets.plain:dedup_matched"),
)
