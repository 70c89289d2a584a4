# What the rules of checkpoints that another program saved take.
from dataclasses import asdict

from palimpsest.audit.checkpoints import kinds as checkpoint_kinds
from palimpsest.audit.checkpoints import sets as checkpoint_sets

ASK_CHECKPOINT_SCRIPT = os.path.relpath(os.path.join(PROJECT, "workflow/scripts/ask_checkpoint.py"))
# The command that asks a checkpoint
ASK_CHECKPOINT = (
    "python {params.script:q} --corpus {input.corpus} --table {output.table}"
    " --name {wildcards.model} --language {wildcards.language} {params.asked}"
    f"{ON_THIS_MACHINE}"
)
has_audit = settings.block("audit") is not None
sets_of_checkpoints = checkpoint_sets.sets(settings) if has_audit else {}
asked_checkpoints = checkpoint_sets.checkpoints(settings) if has_audit else {}


def asked_of_checkpoint(wildcards):
    """What a checkpoint is asked; in paths, the wildcard of its name is `model`."""
    of_corpus = {
        name: asked
        for (corpus, name), asked in asked_checkpoints.items()
        if corpus == wildcards.language
    }
    return named_by_user(of_corpus, wildcards.model, "audit/checkpoints")


def made_files_of_checkpoint(wildcards):
    """The files of a checkpoint that is made from a package; [] for any other."""
    return made_files_of([asked_of_checkpoint(wildcards).model])


def local_files_of_checkpoint(wildcards):
    """The files of a checkpoint in a folder of the user's own."""
    return local_files_of([asked_of_checkpoint(wildcards).model])


def how_to_ask_checkpoint(wildcards):
    """The checkpoint and how it is asked, as flags."""
    flags = asdict(asked_of_checkpoint(wildcards))
    del flags["corpus"]
    known = {name: value for name, value in flags.items() if value is not None}
    return shlex.join(f"--{name.replace('_', '-')}={value}" for name, value in known.items())


def set_of_user(wildcards):
    """A set that the configuration names; in paths, the wildcard of its name is `model`."""
    return named_by_user(sets_of_checkpoints, wildcards.model, "audit/checkpoints")


def scores_of_set(wildcards):
    """The tables of scores of a set's checkpoints."""
    names = set_of_user(wildcards).names
    language = wildcards.language
    return [checkpoint_kinds.SCORES.path.format(language=language, model=name) for name in names]


def roles_of_set(wildcards):
    """The names of a set's checkpoints of each role."""
    return {role: list(models) for role, models in set_of_user(wildcards).models.items()}
