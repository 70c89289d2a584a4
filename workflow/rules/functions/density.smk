# What the rules of training-data density take.
from palimpsest.datasets.sampling import INDEPENDENT
from palimpsest.density import kinds as dense
from palimpsest.density import leakage
from palimpsest.density import section as density_section
from palimpsest.density.interventions import LEAK_CONDITIONS, NO_LEAK, leaked

# The command that embeds strings by trained models
EMBED_STRINGS = query_command("embeddings")
density_block = settings.block("density") or {"leakage": None, "support": None}


def leaky_languages():
    """Languages of the study of leakage that have the same variants: with equally many productions.

    A dictionary from a suffix for names of rules to the languages and their variants.
    """
    languages = (density_block["leakage"] or {"languages": []})["languages"]
    alike = {}
    for language in languages:
        alike.setdefault(tuple(leakage.variants(settings, language)), []).append(language)
    groups = enumerate(alike.items())
    return {f"__{n + 1}" if n else "": (found, list(names)) for n, (names, found) in groups}


def embedded_together():
    """The runs whose strings one job embeds: by a name for rules, their languages and variants."""
    parts = {f"leaked{suffix}": found for suffix, found in leaky_languages().items()}
    if density_block["support"]:
        parts[BASE] = density_block["support"]["languages"], [BASE]
    return parts


def of_variants_and_seeds(pattern, variants):
    """The pattern once for every variant and seed; other wildcards are not filled in."""
    return with_seeds(with_variants(pattern, variants))


def of_factorial(pattern):
    """The pattern once for every run of the factorial of leakage."""
    return of_variants_and_seeds(pattern, leakage.FACTORIAL)


def fullest_leak(pattern):
    """The pattern once for every seed of the run with copies and all paraphrases."""
    return with_seeds(fill(pattern, variant=leaked(LEAK_CONDITIONS[-1])))


def left_out_and_whole(pattern):
    """An input function: a file of each run without a production, and of each whole run."""

    def files(wildcards):
        variants = [leaked(NO_LEAK), *leakage.without_productions(settings, wildcards.language)]
        return expand(of_variants_and_seeds(pattern, variants), **wildcards)

    return files


def files_of_runs(runs):
    """The inputs that `results_of` reads; `runs` makes an input from a pattern."""
    patterns = {
        "datasets": paths.DATASET,
        "traces": paths.TRACE,
        "density": dense.DENSITY.path,
        "neighbours": dense.NEIGHBOURS.path,
    }
    return {name: runs(pattern) for name, pattern in patterns.items()}
