# What the rules of memorisation profiles take.
from palimpsest.datasets.sampling import INDEPENDENT
from palimpsest.profiles import dilution, panel_files
from palimpsest.profiles import kinds as profiled
from palimpsest.profiles import section as profile_section
from palimpsest.profiles.interventions import DILUTED, DILUTED_WITHOUT, STREAM
from palimpsest.profiles.interventions import stream_without
from palimpsest.regimes import of_replicate

WITHOUT_PROFILES = {
    "recipe": "default",
    "cohorts": 0,
    "panels": {},
    "exact": None,
    "notions": None,
    "dilution": None,
}

profile_block = settings.block("profiles") or WITHOUT_PROFILES
panels_of_user = panel_files.panels_of(settings) if settings.block("profiles") else {}
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
ASK_PANEL_SCRIPT = os.path.relpath(os.path.join(PROJECT, "workflow/scripts/ask_panel.py"))
# The command that measures the strings of a panel under a checkpoint
ASK_PANEL = (
    "python {params.script:q} --rows {input.rows} --table {output.table}"
    " --name {wildcards.language} --time {wildcards.model} {params.asked}"
    f"{ON_THIS_MACHINE}"
)
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


def measured_panel(wildcards):
    """The checkpoints and strings of a panel that is made; one line and the end for another one."""
    known = {name: one.measured for name, one in panels_of_user.items() if one.measured}
    return named_by_user(known, wildcards.language, "profiles/panels")


def of_measured_panel(*keys):
    """A function that gives the files under some keys of such a panel, as far as it has them."""

    def files(wildcards):
        found = (getattr(measured_panel(wildcards), key) for key in keys)
        return [file for file in found if file]

    return files


def draws_of_panel(wildcards):
    """Which strings of a panel are measured, as arguments by name."""
    found = measured_panel(wildcards)
    return {"times": found.times, **found.draws}


def checkpoints_of_panel(wildcards):
    return dict(measured_panel(wildcards).checkpoints)


def checkpoint_of_panel(wildcards):
    """The folder or name of a checkpoint; in paths, the wildcard of its step is `model`."""
    return named_by_user(
        measured_panel(wildcards).checkpoints, wildcards.model, "profiles/panels/checkpoints"
    )


def made_files_of_panel(wildcards):
    return made_files_of([checkpoint_of_panel(wildcards)])


def local_files_of_panel(wildcards):
    return local_files_of([checkpoint_of_panel(wildcards)])


def how_to_ask_panel(wildcards):
    """The checkpoint and the strings, as flags."""
    found = measured_panel(wildcards)
    strings = ("--tokens", found.tokens) if found.tokens else ("--texts", found.texts)
    return shlex.join(("--model", checkpoint_of_panel(wildcards), *strings))


def outcomes_of_panel(wildcards):
    """The outcomes under each checkpoint of a panel, in the order of their steps."""
    pattern = profiled.PANEL_OUTCOMES.path
    steps = measured_panel(wildcards).checkpoints
    return [pattern.format(language=wildcards.language, model=step) for step in steps]
