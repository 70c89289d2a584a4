# What the rules of memorisation profiles take.
from palimpsest.datasets.sampling import INDEPENDENT
from palimpsest.profiles import dilution, panel_files
from palimpsest.profiles import kinds as profiled
from palimpsest.profiles import section as profile_section
from palimpsest.profiles.interventions import DILUTED, DILUTED_WITHOUT, STREAM
from palimpsest.profiles.interventions import stream_without
from palimpsest.regimes import of_replicate

WITHOUT_PROFILES = {
    "cohorts": 0,
    "panels": {},
    "exact": None,
    "notions": None,
    "dilution": None,
}

profile_block = settings.block("profiles") or WITHOUT_PROFILES
panels_of_user = panel_files.panels(profile_block)
PROFILE_SEEDS = (profile_block["exact"] or {"seeds": []})["seeds"]
STREAMS_WITHOUT = [stream_without(cohort + 1) for cohort in range(profile_block["cohorts"])]
STREAM_REPLICATES = [
    of_replicate(variant, number)
    for variant in (STREAM, *STREAMS_WITHOUT)
    for number in range((profile_block["notions"] or {"replicates": 0})["replicates"])
]
STREAM_FILES = {
    "traces": fill(paths.TRACE, variant=STREAM),
    "datasets": fill(paths.DATASET, variant=STREAM),
    "manifests": fill(paths.MANIFEST, variant=STREAM),
}
DILUTED_FILES = {
    "traces": fill(paths.TRACE, variant=DILUTED),
    "datasets": fill(paths.DATASET, variant=DILUTED),
    "manifests": fill(paths.MANIFEST, variant=DILUTED),
    "without": fill(paths.TRACE, variant=DILUTED_WITHOUT),
}
# No stream has 0 strings: without the study, its rules have paths that nothing asks for.
DILUTED_SIZES = (profile_block["dilution"] or {"sizes": [0]})["sizes"]
# The command that questions the trained models of streams
QUESTION_STREAMS = query_command("continuations", "influences")


def of_profile_seeds(pattern):
    """The pattern once for every seed of the exact truth."""
    return expand(pattern, seed=PROFILE_SEEDS, allow_missing=True)


def with_diluted_sizes(pattern):
    """The pattern once for every size of a diluted stream."""
    return expand(pattern, size=DILUTED_SIZES, allow_missing=True)


def profiles_to_correlate(wildcards):
    """The profiles of all models on a language."""
    runs = profile_section.streams(settings)
    return [
        path
        for one in runs
        for path in one.paths(profiled.PROFILE.path)
        if one.corpus == wildcards.language
    ]


def of_panel(key):
    """A function that gives a key of a panel that the configuration names, as `of_text` does."""

    def value(wildcards):
        return getattr(named_by_user(panels_of_user, wildcards.language, "profiles/panels"), key)

    return value


def with_panels(pattern):
    """The pattern once for every panel, from that of the smallest model to that of the largest."""
    return [pattern.format(language=name) for name in panels_of_user]
