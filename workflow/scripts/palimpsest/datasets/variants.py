"""The variants of datasets that no section owns; a section may have more of its own.

Only light modules are imported: Snakemake reads this while it builds its graph of jobs.
"""

from palimpsest.variants import BASE, DEDUP, DEDUP_MATCHED, ORIGINAL, RETAIN, TARGETED, Variant

VARIANTS = (
    Variant(BASE, "palimpsest.datasets.plain:base"),
    Variant(DEDUP, "palimpsest.datasets.plain:dedup"),
    Variant(DEDUP_MATCHED, "palimpsest.datasets.plain:dedup_matched"),
    Variant(TARGETED, "palimpsest.datasets.targets:with_or_without_target"),
    Variant(ORIGINAL, "palimpsest.datasets.forgetting:original"),
    Variant(RETAIN, "palimpsest.datasets.forgetting:retain"),
)
