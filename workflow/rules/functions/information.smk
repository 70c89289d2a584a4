# What the rules of information measures take.
import shlex
from dataclasses import asdict

from palimpsest.information import activation_files, finetuned
from palimpsest.information import kinds as neural
from palimpsest.information.encoders import study as encoder_study
from palimpsest.information import section as information_section
from palimpsest.pretrained.embedders import EMBEDDERS, FILES_OF_EMBEDDER

information_block = settings.block("information")
INFORMATION_VARIANTS = information_section.variants(settings) if information_block else []
INFORMATION_SEEDS = information_section.seeds(settings) if information_block else []
ENCODER_STUDIES = encoder_study.studies(settings) if information_block else {}
ENCODER_GROUPS = encoder_study.groups(settings, INFORMATION_SEEDS) if information_block else {}
# Activations that are given, and those of encoders that are fine-tuned
GIVEN_ACTIVATIONS = (
    {**activation_files.groups(information_block), **ENCODER_GROUPS} if information_block else {}
)
ENCODERS_COMPARED = encoder_study.compared(information_block) if information_block else {}
# No dataset has 0 strings: without the study, its rules have paths that nothing asks for.
finetuned_block = (information_block or {}).get("finetuned") or {
    "size": 0,
    "tests": 0,
    "recipe": DEFAULT,
}
# What the datasets of fine-tuning are made with
FINETUNED = {
    "size": finetuned_block["size"],
    "epochs": settings.recipe(finetuned_block["recipe"])["epochs"],
    "tests": finetuned_block["tests"],
}

# Commands that read activations of trained models, and that measure neurons after every epoch of a
# fine-tuning
READ_ACTIVATIONS = query_command("activations", "answers", "norms")
LAYERS_OF_EPOCHS = query_command("layers", weights="checkpoints")


def of_finetuned(pattern, seeds=INFORMATION_SEEDS):
    """The pattern once for every variant and seed of fine-tuning; models stay wildcards."""
    return [
        path
        for variant in finetuned.VARIANTS
        for path in expand(
            pattern,
            variant=variant,
            size=finetuned.size_of(variant, FINETUNED["size"], FINETUNED["epochs"]),
            seed=seeds,
            allow_missing=True,
        )
    ]


def with_information_seeds(pattern):
    """The pattern once for every seed of the section; other wildcards are not filled in."""
    return expand(pattern, seed=INFORMATION_SEEDS, allow_missing=True)


def of_information(pattern):
    """The pattern once for every variant and seed of the section; models stay wildcards."""
    asked = {"variant": INFORMATION_VARIANTS, "seed": INFORMATION_SEEDS}
    return expand(pattern, **asked, allow_missing=True)


def of_information_kinds(named):
    """The files of some kinds for every run of the section, by the names of the kinds."""
    return {kind.name: of_information(kind.path) for kind in named}


def blocks_of_model(wildcards):
    """The number of blocks of a model."""
    return information_section.n_layers(settings, wildcards.model)


def group_of_activations(wildcards):
    """The files of a group that the configuration names; `language` in its paths is the group."""
    return named_by_user(GIVEN_ACTIVATIONS, wildcards.language, "groups of information/activations")


def files_of_group(wildcards):
    """The paths of a group's files of activations."""
    return [each.file for each in group_of_activations(wildcards)]


def models_of_group(wildcards):
    """What the configuration says of a group's models."""
    return [asdict(each) for each in group_of_activations(wildcards)]


def study_of_group(group):
    """The study of encoders that a group of activations is of, or None."""
    names = (file.file.split("/")[3] for file in ENCODER_GROUPS.get(group, []))
    return next(names, None)


def scores_of_group(wildcards):
    """What is known of the encoders of a group; [] for a group of files of the user's own."""
    study = study_of_group(wildcards.language)
    return [neural.ENCODER_SCORES.path.format(language=study)] if study else []


def encoders_of(wildcards):
    """A study of encoders that the configuration names; `language` in its paths is its name."""
    return named_by_user(ENCODER_STUDIES, wildcards.language, encoder_study.KEY)


def of_study(key):
    """A function that gives an attribute of a study of encoders, as a parameter."""

    def value(wildcards):
        return getattr(encoders_of(wildcards), key)

    return value


def texts_of_study(wildcards):
    """The file that the texts of a study are read from or, of a language, its grammar."""
    study = encoders_of(wildcards)
    return study.records or settings.corpus_file(study.language)


def made_encoder(wildcards):
    """The files of an encoder that is made from a package; [] for a folder of the user's own."""
    known = EMBEDDERS.get(encoders_of(wildcards).model)
    return [f"{known.folder}/{name}" for name in FILES_OF_EMBEDDER] if known else []


def local_encoder(wildcards):
    """The files of an encoder in a folder of the user's own."""
    study = encoders_of(wildcards)
    return [] if study.model in EMBEDDERS else files_in(study.model)


def how_to_finetune_encoder(wildcards):
    """The encoder and how it is fine-tuned, as flags."""
    study = encoders_of(wildcards)
    values = {**study.training, "label_noise": information_block["label_noise"]}
    flags = ["--model", study.folder]
    if values.pop("random_weights"):
        flags.append("--random-weights")
    for name, value in values.items():
        flags += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(flags)


def of_encoders(pattern):
    """The pattern once for every seed and variant of a study."""
    variants = encoder_study.variants(information_block) if information_block else []
    return expand(pattern, seed=INFORMATION_SEEDS, variant=variants, allow_missing=True)


def layers_of_study(wildcards):
    """The measures of all layers of a study's encoders, of every group."""
    groups = [group for group in ENCODER_GROUPS if study_of_group(group) == wildcards.language]
    return [neural.GIVEN_LAYERS.path.format(language=group) for group in groups]


FINETUNE_ENCODER_SCRIPT = os.path.relpath(
    os.path.join(PROJECT, "workflow/scripts/finetune_encoder.py")
)
# The command that fine-tunes an encoder
FINETUNE_ENCODER = (
    "python {params.script:q} --study {wildcards.language} --variant {wildcards.variant}"
    " --seed {wildcards.seed} --records {input.records} --cls {output.cls} --mean {output.mean}"
    f" --answers {{output.answers}} --run {{output.run}} {{params.how}}{ON_THIS_MACHINE}"
)
