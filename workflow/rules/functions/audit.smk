# What the rules of the audit take.
from palimpsest.audit import kinds as audited
from palimpsest.audit import section as audit_section
from palimpsest.audit.interventions import MEMBERS
from palimpsest.records import kinds as answered

AUDIT_TARGET_SCRIPT = os.path.relpath(os.path.join(PROJECT, "workflow/scripts/audit_target.py"))
# The command that asks a target and its references
AUDIT_TARGET = (
    "python {params.script:q} --corpus {input.corpus} --passes {output.passes}"
    " --continuations {output.continuations}"
    " --name {wildcards.model} --language {wildcards.language} {params.asked}"
    f"{ON_THIS_MACHINE}"
)
audited_targets = audit_section.targets(settings) if settings.block("audit") else {}
attacks_of_audit = audit_section.attacks(settings) if settings.block("audit") else []
ASKED_OF_TARGETS = ("prompt", "continuation", "neighbours", "prefixes", "secrets")


def asked_of_audit(wildcards):
    """The files of the section; one line and the end if the block asks for nothing."""
    return delivered("audit") or sys.exit(
        "error: audit: asks for nothing; name targets in this block (docs/audit.md)"
    )


def target_of_user(wildcards):
    """A target that the configuration names; in paths, the wildcard of its name is `model`."""
    return named_by_user(audited_targets, wildcards.model, "audit/targets")


def models_of_target(wildcards):
    """The target and its references, but for a target that is trained here."""
    asked = target_of_user(wildcards)
    return [*([] if asked.runs else [asked.model]), *asked.references.values()]


def trained_target(wildcards):
    """The folder of a target that is trained here; [] for any others."""
    asked = target_of_user(wildcards)
    return asked.model if asked.runs else []


def retraining_of(wildcards):
    """The trainings of a target, if the records section trains its model without records, too."""
    runs = target_of_user(wildcards).runs
    return runs if runs and audit_section.is_retrained(settings, runs) else None


def answers_about_target(wildcards):
    """Which records its model memorised, by training it again without them; [] if it is not."""
    return [answered.ANSWERS.path] if retraining_of(wildcards) else []


def retrained_model(wildcards):
    runs = retraining_of(wildcards)
    return runs.model if runs else None


def retrained_seed(wildcards):
    runs = retraining_of(wildcards)
    return runs.seeds[0] if runs else None


def coin_of_target(wildcards):
    """Whether a coin chose the members of its groups of two."""
    return target_of_user(wildcards).coin


def made_files_of_target(wildcards):
    """The files of models that are made from packages; [] for any others."""
    return made_files_of(models_of_target(wildcards))


def local_files_of_target(wildcards):
    """The files of models in the user's own folders."""
    return local_files_of(models_of_target(wildcards))


def how_to_audit(wildcards):
    """The target, its references and what is asked of them, as flags."""
    asked = target_of_user(wildcards)
    block = settings.block("audit")
    references = [("--reference", name, model) for name, model in asked.references.items()]
    values = [(f"--{key}", str(block[key])) for key in ASKED_OF_TARGETS]
    flags = [("--model", asked.model), *references, *values, ("--attacks", *attacks_of_audit)]
    return shlex.join(part for flag in flags for part in flag)
