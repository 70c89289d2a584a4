# Inputs and parameters of the rules of memorisation.
from palimpsest.memorisation import kinds as memorised
from palimpsest.memorisation.section import DEFAULTS, MEASURED
from palimpsest.memorisation.studies import STUDIES
from palimpsest.memorisation.studies import exposure as exposure_study
from palimpsest.memorisation.interventions import with_target, without_target
from palimpsest.regimes import LEAVE_ONE_OUT, LEAVE_ONE_OUT_AGAIN

# The keys that affect the measures. A change of any other key of the block reruns no measure. Where
# the block is null, other sections measure by the defaults.
THRESHOLDS = {
    key: lookup(f"memorisation/{key}", within=config, default=value)
    for key, value in DEFAULTS.items()
}


# For each target string: the variant with the string, and the variant without the string
ROLES = [f"s{rank}" for rank in range(experiment.n_targets)]
WITH_TARGETS = [with_target(role) for role in ROLES]
WITHOUT_TARGETS = [without_target(role) for role in ROLES]
TARGET_VARIANTS = [*WITH_TARGETS, *WITHOUT_TARGETS]


def with_exact_seeds(pattern, variant):
    """The pattern of a variant once for every seed of the study `exact` (leave-one-out)."""
    seeds = (STUDIES["exact"].block(settings) or {"seeds": settings.seeds})["seeds"]
    return expand(pattern, variant=variant, seed=seeds, allow_missing=True)


def trained_again(wildcards):
    """The traces of leave-one-out-again; [] if the study `exact` trains nothing once more."""
    block = STUDIES["exact"].block(settings) or {"replicate": False}
    return with_exact_seeds(paths.TRACE, LEAVE_ONE_OUT_AGAIN) if block["replicate"] else []


def name_of_counterpart(wildcards):
    """The language's counterpart of high entropy, if it has one."""
    return settings.counterpart(wildcards.language)


def study_inputs(wildcards):
    """The files from which a study's table is made, by the name of their kind."""
    return STUDIES[wildcards.study].inputs(settings, wildcards.language)


def study_parameters(wildcards):
    """The values that a study's table needs in addition to the tables that it reads."""
    return STUDIES[wildcards.study].parameters(settings, wildcards.language)


def study_table(wildcards):
    """The function that makes a study's table."""
    return STUDIES[wildcards.study].location


def study_code(wildcards):
    """A hash of the code that makes a study's table."""
    return of_code("make.py", study_table(wildcards))


exposure_block = exposure_study.STUDY.block(settings)
# The command that ranks the values of fields under trained models
RANK_VALUES = query_command("field_values")
