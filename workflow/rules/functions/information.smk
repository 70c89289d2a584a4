# What the rules of information measures take.
from dataclasses import asdict

from palimpsest.information import activation_files, finetuned
from palimpsest.information import kinds as neural
from palimpsest.information import section as information_section

information_block = settings.block("information")
INFORMATION_VARIANTS = information_section.variants(settings) if information_block else []
INFORMATION_SEEDS = information_section.seeds(settings) if information_block else []
GIVEN_ACTIVATIONS = activation_files.groups(information_block) if information_block else {}
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
