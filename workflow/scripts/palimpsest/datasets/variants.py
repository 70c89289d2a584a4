"""The variants of datasets that sections share; a section may have further variants.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.
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
