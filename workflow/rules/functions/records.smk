# What the rules of records take.
from palimpsest.datasets.sampling import INDEPENDENT
from palimpsest.records import kinds as recorded
from palimpsest.records import section as records_section
from palimpsest.records.interventions import ALL as ALL_RECORDS

MEASURE_RECORDS_SCRIPT = os.path.relpath(
    os.path.join(PROJECT, "workflow/scripts/measure_records.py")
)
# The command that asks a checkpoint about records
MEASURE_RECORDS = (
    "python {params.script:q} --corpus {input.corpus} --table {output.table}"
    " --name {wildcards.model} --language {wildcards.language} {params.asked}"
    f"{ON_THIS_MACHINE}"
)
has_records = settings.block("records") is not None
RECORDS_WITHOUT = records_section.without(settings) if has_records else []
checkpoints_of_user = records_section.checkpoints(settings) if has_records else {}
losses_of_user = records_section.given_losses(settings) if has_records else {}


def asked_of_records(wildcards):
    """The files of the section; one line and the end if the block asks for nothing."""
    return delivered("records") or sys.exit(
        "error: records: asks for nothing; name corpora and models to train, checkpoints or losses "
        "in this block (docs/records.md)"
    )


def of_whole_records(wildcards):
    """The traces of the trainings on all records, one for each seed."""
    return [path for runs in runs_on_records(wildcards) for path in runs.paths(paths.TRACE)]


def of_records_without(wildcards):
    """For each seed, the traces of the trainings without folds."""
    runs = runs_on_records(wildcards)
    return [
        fill(path, variant=variant)
        for one in runs
        for path in one.paths(paths.TRACE, variant="{variant}")
        for variant in RECORDS_WITHOUT
    ]


def runs_on_records(wildcards):
    wanted = wildcards.recipe, wildcards.model, wildcards.language
    return [
        runs
        for runs in records_section.whole(settings)
        if (runs.recipe, runs.model, runs.corpus) == wanted
    ]


def retrained_of_records(wildcards):
    """The tables of losses by training again on a corpus, one for each model.

    One line and the end for a name about which nothing is asked, before its old answers are deleted.
    """
    asked = records_section.sources(settings) if has_records else []
    named_by_user(dict.fromkeys(asked), wildcards.language, "records")
    found = [runs for runs in records_section.whole(settings) if runs.corpus == wildcards.language]
    return [path for runs in found for path in runs.paths(recorded.RETRAINED.path)]


def measured_of_records(wildcards):
    """The tables of losses of a corpus under checkpoints."""
    return [
        recorded.MEASURED.path.format(language=wildcards.language, model=name)
        for name, asked in checkpoints_of_user.items()
        if asked.corpus == wildcards.language
    ]


def corpus_of_answers(wildcards):
    """The file of the corpus; [] if the name is that of a user's table of losses."""
    return [] if wildcards.language in losses_of_user else [corpus(wildcards)]


def given_of_records(wildcards):
    """The user's own table of losses; [] if the name is that of a corpus."""
    named = losses_of_user.get(wildcards.language)
    return named.file if named else []


def columns_of_losses(wildcards):
    named = losses_of_user.get(wildcards.language)
    return named.columns if named else None


def answers_of_all_records(wildcards):
    names = records_section.sources(settings)
    return [recorded.ANSWERS.path.format(language=name) for name in names]


def checkpoint_of_user(wildcards):
    """A checkpoint that the configuration names; in paths, the wildcard of its name is `model`."""
    return named_by_user(checkpoints_of_user, wildcards.model, "records/checkpoints")


def models_of_checkpoint(wildcards):
    """The checkpoint and its reference, if there is one."""
    asked = checkpoint_of_user(wildcards)
    return [model for model in (asked.model, asked.reference) if model is not None]


def made_checkpoint_files(wildcards):
    """The files of models that are made from packages; [] for any others."""
    return made_files_of(models_of_checkpoint(wildcards))


def local_checkpoint_files(wildcards):
    """The files of models in the user's own folders."""
    return local_files_of(models_of_checkpoint(wildcards))


def how_to_measure(wildcards):
    """The checkpoint and its reference, as flags."""
    roles = zip(("--model", "--reference"), models_of_checkpoint(wildcards))
    return " ".join(f"{flag} {shlex.quote(model)}" for flag, model in roles)
