"""What reruns when what changes: every row of docs/reruns.md, by dry runs on the finished tour."""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from helpers.edits import both, changed, commented, deleted, edited, replace, touched
from helpers.experiments import OF_FULL_MODELS
from helpers.forks import Outcome, snakemake_in_forks
from helpers.projects import CONFIGFILES, TOUR
from palimpsest.datasets.figures import FIGURES as LANGUAGE_FIGURES
from palimpsest.memorisation.studies import STUDIES as KNOWN_STUDIES
from palimpsest.sections import FIGURES

# Those of the tour
ALL_STUDIES = {name: one for name, one in KNOWN_STUDIES.items() if name not in OF_FULL_MODELS}
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reruns.md"
LIBRARY = "workflow/scripts/palimpsest"
DATASET = "results/datasets/L2/n16-seed0/base/strings.parquet"
RUN = "results/runs/base/default/opt-1.3b-twin/L2/n16-seed0"
MEASURED = "results/memorisation/default/opt-1.3b-twin/L2/n16/base/starts.parquet"

MODEL = "forgetting/opt-1.3b-twin/L1/n16-seed0"
PROBLEM = f"results/unlearning/{MODEL}"
REPLICATES = f"results/replicates/{MODEL}"
STREAM = "results/runs/stream/default/opt-1.3b-twin/L2/n30-seed0"
PROFILE = "results/profiles/default/opt-1.3b-twin/L2/n30"
LEAKED_RUN = "leakage/opt-1.3b-twin/L6/n16-seed0/leaked-0-0"
LEAKED_WEIGHTS = "results/runs/leaked-0-0/leakage/opt-1.3b-twin/L6/n16-seed0/weights.safetensors"
MARKED_WEIGHTS = "results/runs/marked-100/shortcuts/opt-1.3b-twin/L6/n20-seed0/weights.safetensors"
MARKED_RUN = "shortcuts/opt-1.3b-twin/L6/n20-seed0/marked-100"
RECORDS_TRACE = "results/runs/records/default/opt-1.3b-twin/example/n74-seed0/trace.parquet"
UNLEARNED = f"{PROBLEM}/unlearned/finetune/runs-0-3/unlearned.parquet"


def figures_but(*names: str, on: str = "*") -> list[str]:
    """The figures of all studies but some, on one language or on all, as patterns."""
    studies = ALL_STUDIES.keys() - names
    return [
        f"figure/{figure.name}-{on}" for figure in FIGURES.values() if figure.chapter in studies
    ]


def figures_of_languages(on: str = "*") -> list[str]:
    """The figures of languages, on one language or on all, as patterns."""
    return [f"figure/{figure.name}-{on}" for figure in LANGUAGE_FIGURES]


def figures_of_profiles(*without: str) -> list[str]:
    """The figures of profiles but some, without those of panels and of dilution, as patterns."""
    names = [name for name in FIGURES if name.startswith("profile")]
    left_out = {f"profile_{name}" for name in ("dilution", *without)}
    return [f"figure/{name}-L2" for name in names if name not in left_out]


def figures_of_information(*names: str) -> list[str]:
    """Some figures of information measures, as patterns."""
    return [f"figure/information_{name}-L6" for name in names]


def studies_but(*names: str, on: str = "*") -> list[str]:
    """The tables and figures of all studies but some, on one language or on all, as patterns."""
    made = [f"study/{name}-{on}" for name in ALL_STUDIES if name not in names]
    return [*made, *figures_but(*names, on=on)]


# The columns of the page's tables; a job belongs to one by its log: a
# folder, or a pattern.
FORGETTING = {
    "datasets": ["dataset_forgetting"],
    "models": ["train_replicates"],
    "methods": ["unlearn", "export_unlearned_model", "transfer_settings"],
    "scores": [
        "measure_forgetting",
        "measure_other_metrics",
        "measure_transfer",
        "measure_forgotten_memorisation",
        "measure_ablation",
    ],
    "its figures": ["figure/unlearning_*"],
    "claims": ["claims"],
    "report": ["report"],
}
MEMORISING = {
    "languages": ["language"],
    "datasets": ["dataset", "dataset_matched", "dataset_targets"],
    "training": ["train", "export_model"],
    "measures": ["measure", "measure_targets", "measure_leave_one_out"],
    "studies": ["study/*", "claims"],
    "figures": [*figures_of_languages(), *figures_but()],
    "unlearning": [kind for stage in list(FORGETTING)[:-2] for kind in FORGETTING[stage]],
    "profiles": [
        "dataset_stream",
        "dataset_diluted",
        "estimate_profiles",
        "correlate_profiles",
        "compare_with_retraining",
        "question_streams",
        "compare_notions",
        "measure_dilution",
        "estimate_panel",
        "compare_panels",
        "figure/profile*",
        "figure/panel_profile*",
        "figure/panels_*",
    ],
    "density": [
        "dataset_leaked",
        "embed_strings_*",
        "estimate_density_*",
        "compare_leakage",
        "compare_left_out",
        "regress_on_density",
        "compare_with_truth",
        "compare_memorised",
        "segment_text",
        "embed_text",
        "text_density",
        "figure/*density*",
        "figure/leakage_performance*",
        "figure/effective_epochs*",
        "figure/learnt_by_heart*",
    ],
    "information": [
        "dataset_intervened",
        "read_activations",
        "measure_neurons",
        "compare_information",
        "figure/information_*",
    ],
    "records": [
        "corpus_of_records",
        "dataset_records",
        "retrained_losses",
        "answer_records",
        "all_answers",
        "figure/record_shares*",
    ],
    "report": ["report"],
}
PROFILING = {
    "datasets": ["dataset_stream"],
    "models": ["train/*/n30*", "train/*/n40*"],
    "estimates": ["estimate_profiles"],
    "correlations": ["correlate_profiles"],
    "truth": ["compare_with_retraining"],
    "notions": ["question_streams", "compare_notions"],
    "panels": ["estimate_panel", "compare_panels", "figure/panel_profile*", "figure/panels_*"],
    "dilution": [
        "dataset_diluted",
        "train/*/n80-*",
        "train/*/n160-*",
        "measure_dilution",
        "figure/profile_dilution*",
    ],
    "its figures": figures_of_profiles(),
    "claims": ["claims"],
    "report": ["report"],
}
DENSE = {
    "datasets": ["dataset_leaked", "dataset/L6/*"],
    "models": ["train/*/L6/n1*"],
    "embeddings": ["embed_strings_*"],
    "densities": ["estimate_density_*"],
    "leakage": ["compare_leakage", "compare_left_out", "regress_on_density"],
    "truth": ["compare_with_truth"],
    "memorisation": ["measure/*/L6/*", "compare_memorised"],
    "texts": ["segment_text", "embed_text", "text_density", "figure/text_density*"],
    "its figures": [
        "figure/density_*",
        "figure/leakage_performance*",
        "figure/effective_epochs*",
        "figure/learnt_by_heart*",
    ],
    "claims": ["claims"],
    "report": ["report"],
}
INFORMING = {
    "datasets": ["dataset_intervened"],
    "models": ["train/*/L6/n20-*"],
    "activations": ["read_activations"],
    "neurons": ["measure_neurons"],
    "comparison": ["compare_information"],
    "its figures": ["figure/information_*"],
    "claims": ["claims"],
    "report": ["report"],
}
RECORDING = {
    "records": ["corpus_of_records"],
    "datasets": ["dataset_records"],
    "models": ["train/*/example/*"],
    "losses": ["retrained_losses"],
    "answers": ["answer_records", "all_answers"],
    "its figures": ["figure/record_shares*"],
    "claims": ["claims"],
    "report": ["report"],
}

# Jobs by their logs, as patterns
END = ["claims", "report"]
# What the table `headline` is made of
HEADLINED = ["study/tradeoff-*", "measure_leave_one_out/*", "answer_records/*"]
LANGUAGES = ["language/*", *figures_of_languages()]
STREAMS = ["dataset_stream/*"]
OF_GRID = ["dataset/*", "dataset_matched/*", "dataset_targets/*"]
DILUTED = ["dataset_diluted/*", "train/*/n80-*", "train/*/n160-*"]
LEAKY = ["dataset_leaked/*"]
INTERVENED = ["dataset_intervened/*"]
DATASETS = [*OF_GRID, *STREAMS, "dataset_diluted/*", *LEAKY, *INTERVENED]
PROFILE_FIGURES = figures_of_profiles()
ESTIMATES = ["estimate_profiles/*", "correlate_profiles/*", "compare_with_retraining/*"]
ESTIMATES = [*ESTIMATES, "compare_notions/*", *PROFILE_FIGURES]
PROFILES = ["question_streams/*", *ESTIMATES]
NOTIONS = ["compare_notions/*", "figure/profile_notions-L2"]
PANELS = ["estimate_panel/*", "figure/panel_profile-*"]
DILUTION = ["measure_dilution/*", "figure/profile_dilution-L2"]
# Of density: what the study of leakage makes of its densities, and all that reads its runs
OF_LEAKAGE = [
    "compare_leakage/*",
    "regress_on_density/*",
    *(
        f"figure/{name}-*"
        for name in (
            "density_leakage",
            "leakage_performance",
            "effective_epochs",
            "learnt_by_heart",
            "density_neighbours",
            "density_separation",
            "density_regressions",
        )
    ),
]
LEFT_OUT = ["compare_left_out/*", "figure/density_left_out-*"]
DENSE_TRUTH = ["compare_with_truth/*", "figure/density_truth-*"]
DENSE_MEMORY = ["compare_memorised/*", "figure/density_memorised-*"]
LEAKED = [
    *("embed_strings_leaked/*", "estimate_density_leaked/*"),
    *OF_LEAKAGE,
    *LEFT_OUT,
    *("compare_with_truth/*/leaked-0-0", "figure/density_truth-*"),
]
SUPPORT = [
    *("embed_strings_base/*", "estimate_density_base/*"),
    *("compare_with_truth/*/base", "figure/density_truth-*"),
    *DENSE_MEMORY,
]
DENSITIES = [*LEAKED, *SUPPORT]
ESTIMATED = [job for job in DENSITIES if not job.startswith("embed_")]
TRAIN_LEAKED = ["train/*/L6/n16-*"]
TEXTS = ["segment_text/*", "embed_text/*", "text_density/*"]
TEXTS += [f"figure/text_density{name}-*" for name in ("", "_lengths")]
# Of information: what reads the tables of runs, what reads activations, and what reads models
COMPARED = ["compare_information/*", *figures_of_information("shares", "associations"), *END]
NEURONS = ["measure_neurons/*", *figures_of_information("entropy", "pairs"), *COMPARED]
ACTIVATIONS = ["read_activations/*", *NEURONS]
TRAIN_INTERVENED = ["train/*/L6/n20-*"]
# Of records: what is made of all tables of losses, of those of records alone, and of models
ANSWERED = ["answer_records/*", "all_answers", "figure/record_shares-*"]
RETRAINED = ["retrained_losses/*", "answer_records/example", "all_answers"]
RETRAINED = [*RETRAINED, "figure/record_shares-example"]
TRAIN_RECORDS = ["train/*/example/*", *RETRAINED]
DATASET_RECORDS = ["dataset_records/*", *TRAIN_RECORDS]
ON_LANGUAGES = ["train/*/L?/*", *PROFILES, *DILUTION, *DENSITIES, *ACTIVATIONS]
TRAINING = [*ON_LANGUAGES, *TRAIN_RECORDS]
# Without the replicates of streams, whose seeds are `profiles/exact/seeds`
TRAINING_OF_SEEDS = ["train/*/L?/*[!s]", *ON_LANGUAGES[1:], *TRAIN_RECORDS]
STUDIES = [*studies_but(), *END]
MEASURES = ["measure/*", "measure_targets/*", "measure_leave_one_out/*"]
AFTER_TRAINING = [*MEASURES, *STUDIES, *DENSE_MEMORY]
# The runs that keep no weights, but for those of density, and all that reads them
WITHOUT_WEIGHTS = [
    *("train/*/L[12]/*", "measure/*/L[12]/*", *MEASURES[1:], *TRAIN_RECORDS),
    *(*PROFILES, *DILUTION, *STUDIES),
]
# All that reads the job of the twin with every variant, which every study on L2 does
RICHEST = "default/opt-1.3b-twin/L2/n16"
ON_L2 = [*studies_but(on="L2"), *END]
AFTER_RICHEST = [f"measure*/{RICHEST}*", *ON_L2]
RETRAIN_RICHEST = [f"train/{RICHEST}", *AFTER_RICHEST]
# Of the unlearning: what reads some tables, from the last to the first
OF_STAGES = ("curves", "relearning")  # figures of what is measured while models unlearn
OF_STRINGS = ("memorisation", "gaps")  # figures of what is left of single strings
OF_EPSILONS = [
    f"figure/{name}-*"
    for name in FIGURES
    if name.startswith("unlearning_")
    and name not in OF_FULL_MODELS
    and name.removeprefix("unlearning_") not in (*OF_STAGES, *OF_STRINGS)
]
FORGOTTEN_MEMORISATION = [
    "measure_forgotten_memorisation/*",
    *(f"figure/unlearning_{name}-*" for name in OF_STRINGS),
]
EPSILONS = ["measure_forgetting/*", *OF_EPSILONS, *END]
EVALUATED = [*EPSILONS, *FORGOTTEN_MEMORISATION, "measure_other_metrics/*"]
SCORES = [*EVALUATED, *(f"figure/unlearning_{name}-*" for name in OF_STAGES)]
UNLEARN = ["unlearn/*", *SCORES]
TRAIN_REPLICATES = ["train_replicates/*", *UNLEARN]
FORGET = ["dataset_forgetting/*", *TRAIN_REPLICATES]
ALL_OF_L2 = ["language/L2", "dataset*/L2/*", "train/*/L2/*", "measure*/*/L2/*", "figure/*-L2"]
ALL_OF_L2 = [*ALL_OF_L2, *PROFILES, *DILUTION]  # all profiles are of L2
# What depends on one model of the profiles: its estimates, and the comparison of all models
OF_ONE_ESTIMATE = ["estimate_profiles/default/opt-1.3b-twin/*", "correlate_profiles/*"]
OF_ONE_ESTIMATE = [*OF_ONE_ESTIMATE, "compare_with_retraining/*", *NOTIONS, *PROFILE_FIGURES]
OF_ONE_PROFILE = ["question_streams/*", *OF_ONE_ESTIMATE]


@dataclass(frozen=True)
class Case:
    """A change, as an edit of the finished study's folder or settings, and the jobs it plans."""

    change: Callable[[Path], None] | str
    plans: list[str]


def forget_named(folder: Path) -> None:
    """Name the strings to forget in a file."""
    (folder / "forget.txt").write_text("1 2 3\n")
    edited(TOUR, "share: 0.2", "share: 0.2\n  forget: forget.txt")(folder)


def innocent_models(folder: Path) -> None:
    """Train further models on the retain set by a recipe of their own."""
    edited(TOUR, "recipes:\n", "recipes:\n  small: {batch_size: 4}\n")(folder)
    edited(TOUR, "share: 0.2", "share: 0.2\n  innocent_recipe: small")(folder)


def cell(model: str, old: str, new: str) -> Callable[[Path], None]:
    """Change a cell of a model's row of the table of models."""

    def change(folder: Path) -> None:
        table = folder / "config/models.tsv"
        (row,) = (line for line in table.read_text().splitlines() if line.startswith(f"{model}\t"))
        assert f"\t{old}\t" in f"{row}\t"
        replaced = f"{row}\t".replace(f"\t{old}\t", f"\t{new}\t", 1).removesuffix("\t")
        replace(table, table.read_text().replace(row, replaced))

    return change


def copied(source: str, copy: str, key: str) -> Callable[[Path], None]:
    """Point a key of the configuration to a copy of a file or folder."""

    def change(folder: Path) -> None:
        path = folder / source
        (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / copy)
        replace(folder / TOUR, f"{key}: {copy}\n" + (folder / TOUR).read_text())

    return change


def of_a_new(folder: str) -> list[str]:
    """All jobs of the unlearning of a new size and a new seed."""
    per_model = ("train_replicates", "unlearn", "measure_*")
    jobs = [f"{kind}/forgetting/opt-1.3b-twin/L1/{folder}*" for kind in per_model]
    return [f"dataset_forgetting/L1/{folder}", *jobs, "figure/unlearning_*", *END]


NOTHING: list[str] = []
EVERY_TABLE = [*LANGUAGES, *DATASETS, *TRAINING, *PANELS, *AFTER_TRAINING, *FORGET, *TEXTS]
EVERY_TABLE = [*EVERY_TABLE, "corpus_of_records/*", "dataset_records/*", *ANSWERED]
NEW_KIND = """
NEW = Kind("new", "One row per thing.", "results/new/{language}.parquet", SHARED("language"))
KINDS = (*KINDS, NEW)
"""
NEW_CLAIM = """
from dataclasses import replace
CLAIMS = [*CLAIMS, replace(CLAIMS[0], claim="The same once more.")]
"""
SCORED_BY = {
    "confidence": "sequence",
    "delta": "1.0e-6",
    "thresholds": "grid",
    "bin_width": 0.25,
}
FOLLOWED_BY = {  # what decides the schedules of methods, and what is done with their models
    "cutoff": "cutoff: 0.3",
    "curve/models": "curve: {models: 3}",
    "curve/points": "curve: {points: 3}",
    "relearn/models": "relearn: {models: 3}",
    "relearn/steps": "relearn: {steps: 3}",
}
CASES = {
    # The configuration; a text is what is given to --config
    "a comment in a configuration file": Case(commented(TOUR), NOTHING),
    "a seed is added": Case(
        "seeds=[0, 1, 7]", ["dataset*/*seed7", *TRAINING_OF_SEEDS, *AFTER_TRAINING]
    ),
    "a seed is taken out": Case("seeds=[0]", [*TRAINING_OF_SEEDS, *AFTER_TRAINING]),
    "a size is added to the grid": Case(
        "sizes=[16, 32]", ["dataset/*/n32-seed?", "train/*/n32", "measure/*/n32/base", "report"]
    ),
    "a language is added to the grid": Case(
        "languages=[L1, L2, L3]",
        [
            "language/L3",
            "dataset/L3/n16-seed0",
            "dataset/L3/n16-seed1",
            "train/default/opt-1.3b-twin/L3/n16",
            "train/default/pythia-1b-twin/L3/n16",
            "measure/default/opt-1.3b-twin/L3/n16/base",
            "measure/default/pythia-1b-twin/L3/n16/base",
            "study/tradeoff-L3",
            "study/thresholds-L3",
            *figures_of_languages("L3"),
            "figure/tradeoff-L3",
            "figure/thresholds-L3",
            *END,
        ],
    ),
    "a language is added to the unlearning": Case(
        "unlearning={languages: [L1, L3]}",
        [
            "language/L3",
            *figures_of_languages("L3"),
            "dataset_forgetting/L3/*",
            "train_replicates/*/L3/*",
            "unlearn/*/L3/*",
            "measure_*/L3/*",
            "figure/unlearning_*-L3",
            *END,
        ],
    ),
    "a language is taken out of the grid": Case("languages=[L2]", ["headline", *END]),
    "a model is added to the grid": Case(
        edited("grid.yaml", "pythia-1b-twin]", "pythia-1b-twin, gemma-2-2b-twin]"),
        [
            "train/default/gemma-2-2b-twin/L1/n16",
            "train/default/gemma-2-2b-twin/L2/n16",
            "measure/default/gemma-2-2b-twin/L1/n16/base",
            "measure/default/gemma-2-2b-twin/L2/n16/base",
            "study/tradeoff-*",
            "study/thresholds-*",
            "study/frequency-*",
            "figure/tradeoff-*",
            "figure/thresholds-*",
            "figure/frequency-*",
            *END,
        ],
    ),
    "`memorisation/loss_threshold`": Case(
        "memorisation={loss_threshold: 0.3}",
        [
            "measure/*",
            "measure_targets/*",
            *studies_but("exact"),
            *FORGOTTEN_MEMORISATION,
            *DENSE_MEMORY,
            *END,
        ],
    ),
    "`memorisation/accuracy_threshold`": Case(
        "memorisation={accuracy_threshold: 0.9}",
        [
            "measure/*",
            "measure_targets/*",
            *studies_but("exact"),
            *FORGOTTEN_MEMORISATION,
            *DENSE_MEMORY,
            *END,
        ],
    ),
    "`memorisation/start`": Case("memorisation={start: first_crossing}", AFTER_TRAINING),
    "`memorisation/stand_in_gap`": Case("memorisation={stand_in_gap: 1}", AFTER_TRAINING),
    "`recipes/default/epochs`": Case(
        "recipes={default: {epochs: 5}}", [*TRAINING, *AFTER_TRAINING, *TRAIN_REPLICATES]
    ),
    "the recipe of one study": Case(
        edited(
            TOUR,
            "sizes: [16, 24]}\n    model_size",
            "sizes: [16, 24], recipe: short}\n    model_size",
        ),
        [
            *(f"train/short/opt-1.3b-twin/L2/n{size}" for size in (16, 24)),
            *(f"measure/short/opt-1.3b-twin/L2/n{size}/base" for size in (16, 24)),
            *(f"{what}/training_size-*" for what in ("study", "figure")),
            *END,
        ],
    ),
    "`recipes/default/evaluate_every`": Case(
        "recipes={default: {evaluate_every: 4}}",
        [*TRAINING, *AFTER_TRAINING, *TRAIN_REPLICATES],
    ),
    "`recipes/default/weight_decay`": Case(
        "recipes={default: {weight_decay: 0.1}}", [*TRAINING, *AFTER_TRAINING, *TRAIN_REPLICATES]
    ),
    "`recipes/default/checkpoint_every`": Case("recipes={default: {checkpoint_every: 3}}", NOTHING),
    "`recipes/default/processes`, of twins": Case("recipes={default: {processes: 2}}", NOTHING),
    "`recipes/default/zero_stage`": Case(
        "recipes={default: {zero_stage: 1}}", [*TRAINING, *AFTER_TRAINING, *TRAIN_REPLICATES]
    ),
    "the keys `recipes/default/adapter_*`, while `adapter` is none": Case(
        "recipes={default: {adapter_rank: 4, adapter_alpha: 4, adapter_targets: [q_proj]}}",
        NOTHING,
    ),
    "`training_by_model`, of other models": Case(
        "training_by_model={gemma-2-2b: {processes: 4}}", NOTHING
    ),
    "`hardware`, with twins alone": Case(
        "hardware={gpu_memory_gb: 40, twin_gpus: 0, seeds_per_job: 2}", NOTHING
    ),
    "`save_weights: true`": Case("save_weights=true", WITHOUT_WEIGHTS),
    "`save_weights: huggingface`": Case(
        "save_weights=huggingface", [*WITHOUT_WEIGHTS, "export_model/*"]
    ),
    "`trackers`": Case("trackers=[tensorboard]", NOTHING),
    "the engine of a model": Case(
        "engine={pythia-1b-twin: fleet}",
        [
            "train/default/pythia-1b-twin/*",
            "measure/default/pythia-1b-twin/*",
            "study/tradeoff-*",
            "study/thresholds-*",
            "study/frequency-*",
            "figure/tradeoff-*",
            "figure/thresholds-*",
            "figure/frequency-*",
            *END,
        ],
    ),
    "`datasets/test_size`": Case(
        "datasets={test_size: 41}",
        [*DATASETS, "dataset_records/*", *TRAINING, *AFTER_TRAINING, *FORGET],
    ),
    "`datasets/split`": Case(
        "datasets={split: independent}",
        [*OF_GRID, "train/*/n12", "train/*/n16", "train/*/n24", *AFTER_TRAINING, *SUPPORT],
    ),
    "`datasets/predict_end`": Case(
        "datasets={predict_end: true}",
        [*DATASETS, "dataset_records/*", *TRAINING, *AFTER_TRAINING, *FORGET],
    ),
    "`datasets/language_sample`": Case(
        "datasets={language_sample: 301}", [*LANGUAGES, "dataset_targets/*", *RETRAIN_RICHEST]
    ),
    "`datasets/high_entropy_counterpart` of a language that is used": Case(
        "datasets={high_entropy_counterpart: {L2: L3}}", ["dataset_matched/*", *RETRAIN_RICHEST]
    ),
    "`datasets/high_entropy_counterpart` of another": Case(
        "datasets={high_entropy_counterpart: {L6: L3}}", NOTHING
    ),
    # The studies
    "a study is taken out that only reads": Case(
        "memorisation={studies: {tradeoff: null}}", ["headline", *END]
    ),
    "the study `exact` is taken out": Case(
        "memorisation={studies: {exact: null}}",
        [
            f"train/{RICHEST}",
            f"measure/{RICHEST}/*",
            f"measure_targets/{RICHEST}",
            *studies_but("exact", on="L2"),
            *END,
        ],
    ),
    "the study `disagreement` is taken out": Case(
        "memorisation={studies: {disagreement: null}}",
        [
            *LANGUAGES,
            f"train/{RICHEST}",
            f"measure/{RICHEST}/*",
            f"measure_leave_one_out/{RICHEST}",
            *studies_but("disagreement", on="L2"),
            *END,
        ],
    ),
    "the study `bits_by_rule` is taken out": Case(
        "memorisation={studies: {bits_by_rule: null}}",
        [
            f"train/{RICHEST}",
            f"measure*/{RICHEST}*",
            *studies_but("bits_by_rule", on="L2"),
            *END,
        ],
    ),
    "the size of a study": Case(
        "memorisation={studies: {tradeoff: {size: 24}}}",
        [
            "dataset/L1/n24-seed0",
            "dataset/L1/n24-seed1",
            "train/default/opt-1.3b-twin/L1/n24",
            "train/default/pythia-1b-twin/L1/n24",
            "train/default/pythia-1b-twin/L2/n24",
            "measure/default/opt-1.3b-twin/L1/n24/base",
            "measure/default/pythia-1b-twin/L1/n24/base",
            "measure/default/pythia-1b-twin/L2/n24/base",
            "study/tradeoff-*",
            "figure/tradeoff-*",
            *END,
        ],
    ),
    "a size is added to a study": Case(
        "memorisation={studies: {training_size: {sizes: [16, 24, 32]}}}",
        [
            "dataset/L2/n32-seed0",
            "dataset/L2/n32-seed1",
            "train/default/opt-1.3b-twin/L2/n32",
            "measure/default/opt-1.3b-twin/L2/n32/base",
            "study/training_size-*",
            "figure/training_size-*",
            *END,
        ],
    ),
    "a language is taken out of a study": Case(
        "memorisation={studies: {tradeoff: {languages: [L1]}}}", ["headline", *END]
    ),
    "`memorisation/studies/frequency/share`": Case(
        "memorisation={studies: {frequency: {share: 0.2}}}",
        ["study/frequency-*", "figure/frequency-*", *END],
    ),
    "`memorisation/studies/disagreement/targets`": Case(
        "memorisation={studies: {disagreement: {targets: 3}}}",
        [*LANGUAGES, "dataset_targets/*", *RETRAIN_RICHEST],
    ),
    "`memorisation/studies/exact/seeds`": Case(
        "memorisation={studies: {exact: {seeds: [0, 1]}}}", RETRAIN_RICHEST
    ),
    "`memorisation/studies/exact/strings`": Case(
        "memorisation={studies: {exact: {strings: 5}}}", RETRAIN_RICHEST
    ),
    "`memorisation/studies/exact/replicate`": Case(
        "memorisation={studies: {exact: {replicate: false}}}", RETRAIN_RICHEST
    ),
    # Languages
    "a rule of a language's grammar": Case(
        edited("config/languages/L2.pcfg", "0.95", "0.94"), [*ALL_OF_L2, *ON_L2]
    ),
    "a comment in a language's grammar": Case(
        commented("config/languages/L2.pcfg"), [*ALL_OF_L2, *ON_L2]
    ),
    "the grammar of a high-entropy counterpart": Case(
        commented("config/languages/L1.pcfg"),
        [
            "language/L1",
            "dataset/L1/*",
            "dataset_matched/L2/*",
            "train/*/L1/*",
            "measure/*/L1/*",
            "figure/*-L1",
            "study/*-L1",
            *RETRAIN_RICHEST,
            *FORGET,
        ],
    ),
    "a grammar that nothing uses": Case(commented("config/languages/L5.pcfg"), NOTHING),
    "a grammar is saved again as it was": Case(touched("config/languages/L2.pcfg"), NOTHING),
    "`languages_folder` names a copy": Case(
        copied("config/languages", "copy", "languages_folder"),
        [*LANGUAGES, *DATASETS, *ON_LANGUAGES, *AFTER_TRAINING, *FORGET],
    ),
    # The table of models
    "the learning rate of a twin": Case(
        cell("pythia-1b", "3e-3", "2e-3"),
        [
            "train/default/pythia-1b-twin/*",
            "measure/default/pythia-1b-twin/*",
            "study/tradeoff-*",
            "study/thresholds-*",
            "study/frequency-*",
            "figure/tradeoff-*",
            "figure/thresholds-*",
            "figure/frequency-*",
            *END,
        ],
    ),
    "the learning rate of a twin that unlearns, too": Case(
        cell("opt-1.3b", "3e-3", "2e-3"),
        [
            "train/*/opt-1.3b-twin/*",
            "measure/default/opt-1.3b-twin/*",
            "measure_targets/*",
            "measure_leave_one_out/*",
            *STUDIES,
            *TRAIN_REPLICATES,
            *OF_ONE_PROFILE,
            *DILUTION,
            *DENSITIES,
            *ACTIVATIONS,
            *RETRAINED,
        ],
    ),
    "the family of a model": Case(
        cell("opt-2.7b", "OPT", "Opt"),
        [
            "study/model_size-*",
            "figure/model_size-*",
            *END,
        ],
    ),
    "the learning rate of a full model, of its twin": Case(
        cell("opt-1.3b", "5e-6", "1e-6"), NOTHING
    ),
    "the revision of a full model, of its twin": Case(cell("opt-1.3b", "main", "v2"), NOTHING),
    "the number of parameters of a model": Case(
        cell("opt-1.3b", "1316000000", "1315758080"), NOTHING
    ),
    "the row of another model": Case(cell("gemma-2-2b", "3e-3", "2e-3"), NOTHING),
    "a row is added": Case(
        commented(
            "config/models.tsv",
            "new\tLlama\tnew\tmain\tllama\t1000\t1\t16\t99\t5e-5\t16\t1\t2\t3e-3",
        ),
        NOTHING,
    ),
    "`models_table` names a copy": Case(
        copied("config/models.tsv", "copy.tsv", "models_table"),
        [*TRAINING, *AFTER_TRAINING, *TRAIN_REPLICATES, *TEXTS[1:]],
    ),
    # Unlearning
    "`unlearning/n`": Case(
        "unlearning={n: 5, pool: 5}",
        [
            "train_replicates/*/0-4",
            "train_replicates/*/5-9",
            "unlearn/*/0-4",
            "unlearn/*/5-9",
            *SCORES,
        ],
    ),
    "`unlearning/repetitions`": Case(
        "unlearning={repetitions: 3}", ["unlearn/*/0-5", "unlearn/*/6-11", *SCORES]
    ),
    "`unlearning/setups`: one is taken out": Case("unlearning={setups: [reuse-n-n]}", EVALUATED),
    "`unlearning/pool`": Case(
        "unlearning={pool: 6}",
        [
            "train_replicates/*/0-5",
            "train_replicates/*/6-11",
            "unlearn/*/0-4",
            "unlearn/*/5-9",
            *SCORES,
        ],
    ),
    "`unlearning/size`": Case("unlearning={size: 18}", of_a_new("n18-seed0")),
    "a seed is added to `unlearning/seeds`": Case(
        "unlearning={seeds: [0, 1]}", of_a_new("n16-seed1")
    ),
    "`unlearning/share`": Case("unlearning={share: 0.3}", FORGET),
    "`unlearning/groups`": Case("unlearning={groups: derivation}", FORGET),
    "`unlearning/forget` names a file": Case(forget_named, FORGET),
    "`unlearning/validation`": Case("unlearning={validation: 9}", FORGET),
    "`recipes/forgetting/epochs`": Case("recipes={forgetting: {epochs: 5}}", TRAIN_REPLICATES),
    "`recipes/forgetting/evaluate_every`": Case(
        "recipes={forgetting: {evaluate_every: 1}}", TRAIN_REPLICATES
    ),
    "`unlearning/innocent_recipe`": Case(
        innocent_models,
        [
            "train_replicates/small/*",
            *EPSILONS,
            *FORGOTTEN_MEMORISATION,
        ],
    ),
    "a model is added to the unlearning": Case(
        "unlearning={models: [opt-1.3b-twin, opt-2.7b-twin]}",
        [
            "train_replicates/forgetting/opt-2.7b-twin/*",
            "unlearn/forgetting/opt-2.7b-twin/*",
            "measure_*/forgetting/opt-2.7b-twin/L1/n16-seed0",
            "figure/unlearning_*",
            *END,
        ],
    ),
    "a method is added": Case(
        both(
            commented(
                "small_methods.yaml", "mine: {phases: [{repair: finetune, share: 1, rate: 1}]}"
            ),
            edited(TOUR, "[finetune, g", "[finetune, mine, g"),
        ),
        UNLEARN,
    ),
    "a method is replaced by another": Case(
        both(
            commented(
                "small_methods.yaml", "mine: {phases: [{repair: finetune, share: 1, rate: 1}]}"
            ),
            edited(TOUR, "[finetune, g", "[mine, g"),
        ),
        UNLEARN,
    ),
    "the rate of a method's phase": Case(
        edited("small_methods.yaml", "rate: 0.5", "rate: 0.4"), UNLEARN
    ),
    "the grid of a method": Case(
        edited("small_methods.yaml", "[0.1, 0.2]", "[0.1, 0.2, 0.3]"), NOTHING
    ),
    "a comment in the table of methods": Case(commented("small_methods.yaml"), NOTHING),
    "`unlearning/ablation`, without a method that has both roles": Case(
        "unlearning={ablation: false}", NOTHING
    ),
    "`unlearning/search`": Case("unlearning={search: {seeds: [5], settings: 1}}", NOTHING),
    "`unlearning/transfer`": Case(
        "unlearning={transfer: {languages: [L6], tuning_seeds: [3], seeds: [4], n: 2}}",
        [
            "dataset_forgetting/L6/*",
            "train_replicates/forgetting/opt-1.3b-twin/L6/*",
            "transfer_settings/*",
            "measure_transfer/*",
            "figure/unlearning_transfer-L6",
            *END,
        ],
    ),
    **{
        f"`unlearning/{key}`": Case(f"unlearning={{{key}: {value}}}", EPSILONS)
        for key, value in SCORED_BY.items()
    },
    **{
        f"`unlearning/{key}`": Case(f"unlearning={{{value}}}", UNLEARN)
        for key, value in FOLLOWED_BY.items()
    },
    "`unlearning/save_models`": Case(
        "unlearning={save_models: 1}",
        ["export_unlearned_model/forgetting/opt-1.3b-twin/L1/n16-seed0/*-0"],
    ),
    "`unlearning/runs_per_job`": Case(
        "unlearning={runs_per_job: 3}",
        [
            *(f"train_replicates/*/{part}" for part in ("0-1", "2-3", "4-5", "6-7")),
            *(f"unlearn/*/{part}" for part in ("0-2", "3-4", "5-7")),
            *SCORES,
        ],
    ),
    "`unlearning: null`": Case("unlearning=null", END),
    "a file of the library's `unlearning/methods`": Case(
        changed(f"{LIBRARY}/unlearning/methods/ascent.py"), NOTHING
    ),
    "`unlearning/evaluate/samples.py` of the library, which all scores use": Case(
        changed(f"{LIBRARY}/unlearning/evaluate/samples.py"), EVALUATED
    ),
    "`unlearning/evaluate/scores.py` of the library": Case(
        changed(f"{LIBRARY}/unlearning/evaluate/scores.py"), EPSILONS
    ),
    "`unlearning/forgetting_data.py` of the library": Case(
        changed(f"{LIBRARY}/unlearning/forgetting_data.py"), FORGET
    ),
    "`unlearning/run/unlearn.py` of the library": Case(
        changed(f"{LIBRARY}/unlearning/run/unlearn.py"), NOTHING
    ),
    "`unlearning/evaluate/metrics.py` of the library": Case(
        changed(f"{LIBRARY}/unlearning/evaluate/metrics.py"),
        ["measure_other_metrics/*", "figure/unlearning_metrics-*", *END],
    ),
    "`unlearning/evaluate/gap_tables.py` of the library": Case(
        changed(f"{LIBRARY}/unlearning/evaluate/gap_tables.py"),
        [*FORGOTTEN_MEMORISATION, *END],
    ),
    "`unlearning/tuning/search.py` of the library": Case(
        changed(f"{LIBRARY}/unlearning/tuning/search.py"), NOTHING
    ),
    "`unlearning/tuning/choice.py` of the library": Case(
        changed(f"{LIBRARY}/unlearning/tuning/choice.py"), NOTHING
    ),
    "a dataset to forget from is deleted": Case(
        deleted("results/datasets/L1/n16-seed0/retain/strings.parquet"), FORGET
    ),
    "the weights of original models are deleted": Case(
        deleted(f"{REPLICATES}/original/0-3/weights.safetensors"),
        ["train_replicates/*/original/*", *UNLEARN],
    ),
    "the weights of the ideal's models are deleted": Case(
        deleted(f"{REPLICATES}/retain/4-7/weights.safetensors"),
        ["train_replicates/*/retain/4-7", "unlearn/*/0-3", *SCORES],
    ),
    "an unlearned table is deleted": Case(deleted(UNLEARNED), ["unlearn/*/0-3", *SCORES]),
    "an unlearned table is saved again as it was": Case(touched(UNLEARNED), NOTHING),
    "a table of scores is deleted": Case(deleted(f"{PROBLEM}/scores.parquet"), EPSILONS),
    # Code
    "a file of the library's `languages`": Case(
        changed(f"{LIBRARY}/languages/inside.py"),
        [*LANGUAGES, *DATASETS, "dataset_records/*", *TRAINING, *AFTER_TRAINING, *FORGET],
    ),
    "a file of the library's `datasets`": Case(
        changed(f"{LIBRARY}/datasets/build.py"),
        [*DATASETS, "dataset_records/*", *TRAINING, *AFTER_TRAINING, *FORGET],
    ),
    "a file of the library's `corpora`": Case(
        changed(f"{LIBRARY}/corpora/grammar_corpus.py"),
        [*LANGUAGES, *DATASETS, "dataset_records/*", *TRAINING, *AFTER_TRAINING, *FORGET],
    ),
    "a file of one intervention: `memorisation/target_data.py` of the library": Case(
        changed(f"{LIBRARY}/memorisation/target_data.py"), ["dataset_targets/*", *RETRAIN_RICHEST]
    ),
    "a file of the library's `training`": Case(changed(f"{LIBRARY}/training/runs.py"), NOTHING),
    "a file of the library's `models`": Case(changed(f"{LIBRARY}/models/build.py"), NOTHING),
    "a file of the library's `memorisation`": Case(
        changed(f"{LIBRARY}/memorisation/measures.py"),
        [*AFTER_TRAINING, *COMPARED, *ANSWERED],
    ),
    "a figure's style: a file of the library's `figures`": Case(
        changed(f"{LIBRARY}/figures/style.py"), ["figure/*", "report"]
    ),
    "a file of the library's `report`": Case(changed(f"{LIBRARY}/report/page.py"), ["report"]),
    "the report's template": Case(
        commented(f"{LIBRARY}/report/frame.html.j2", "<!-- another thought -->"), ["report"]
    ),
    "a file that the library's parts share: `tables/files.py`": Case(
        changed(f"{LIBRARY}/tables/files.py"),
        EVERY_TABLE,
    ),
    "a file of the library's `planning`": Case(
        edited(f"{LIBRARY}/planning/assumptions.py", "SAFETY = 2.0", "SAFETY = 3.0"), NOTHING
    ),
    "a comment in a file of the library": Case(
        commented(f"{LIBRARY}/memorisation/measures.py"), NOTHING
    ),
    "a function that no table is made with": Case(
        commented(f"{LIBRARY}/memorisation/measures.py", "def new():\n    return 1"), NOTHING
    ),
    "a new claim": Case(commented(f"{LIBRARY}/memorisation/claims/rows.py", NEW_CLAIM), END),
    "a new kind of table": Case(commented(f"{LIBRARY}/memorisation/kinds.py", NEW_KIND), NOTHING),
    "`scripts/make.py`, which makes all tables": Case(
        commented("workflow/scripts/make.py"),
        EVERY_TABLE,
    ),
    "`scripts/finetune.py`": Case(commented("workflow/scripts/finetune.py"), NOTHING),
    "a comment in a rule": Case(commented("workflow/rules/memorisation.smk"), NOTHING),
    "the memory or time of a rule": Case(
        edited("workflow/rules/memorisation.smk", "mem_mb=4000", "mem_mb=5000"), NOTHING
    ),
    # Files of results
    "a trace is deleted": Case(deleted(f"{RUN}/trace.parquet"), RETRAIN_RICHEST),
    "a manifest is deleted": Case(deleted(f"{RUN}/manifest.json"), RETRAIN_RICHEST),
    "a dataset is deleted": Case(
        deleted(DATASET), ["dataset/L2/n16-seed0", "train/*/L2/n16", "measure*/*/L2/n16*", *ON_L2]
    ),
    "a table of a measure is deleted": Case(
        deleted(MEASURED),
        [
            f"measure/{RICHEST}/base",
            *studies_but("disagreement", "exact", on="L2"),
            *END,
        ],
    ),
    "a study's table is deleted": Case(
        deleted("results/studies/frequency/L2.parquet"),
        ["study/frequency-L2", "figure/frequency-L2", *END],
    ),
    "`claims.parquet` is deleted": Case(deleted("results/claims.parquet"), END),
    "`headline.csv` is deleted": Case(deleted("results/headline.csv"), ["headline", "report"]),
    "a figure is deleted": Case(
        deleted("results/figures/frequency-L2.svg"), ["figure/frequency-L2", "report"]
    ),
    "the report is deleted": Case(deleted("results/report.html"), ["report"]),
    "logs and benchmarks are deleted": Case(deleted("logs", "benchmarks"), NOTHING),
    "a trace is saved again as it was": Case(touched(f"{RUN}/trace.parquet"), NOTHING),
    "a dataset is saved again as it was": Case(touched(DATASET), NOTHING),
    # Profiles
    "`profiles/cohorts`": Case(
        "profiles={cohorts: 4}",
        [
            "dataset_stream/*/n40*",
            "train/*/n40-*",
            "correlate_profiles/*/n40",
            "estimate_profiles/*/n40",
            "compare_with_retraining/*/n40",
            "question_streams/*/n40",
            "compare_notions/*/n40",
            *PROFILE_FIGURES,
            *END,
        ],
    ),
    "`profiles/panel`": Case("profiles={panel: 4}", [*STREAMS, "train/*/n30-*", *PROFILES, *END]),
    "`profiles/validation`": Case(
        "profiles={validation: 9}",
        [*STREAMS, "train/*/n30-*", *PROFILES, *DILUTED, *DILUTION, *END],
    ),
    "`profiles/exact/seeds`": Case(
        "profiles={exact: {seeds: [0, 1]}}",
        ["train/default/opt-1.3b-twin/L2/n30-*", *OF_ONE_PROFILE, *END],
    ),
    "`profiles/notions/replicates`": Case(
        "profiles={notions: {replicates: 2}}",
        ["train/default/opt-1.3b-twin/L2/n30-replicates", *NOTIONS, *END],
    ),
    "`profiles/notions/continuation`": Case(
        "profiles={notions: {continuation: 3}}", [*NOTIONS, *END]
    ),
    "`profiles/dilution/copies`": Case(
        "profiles={dilution: {copies: [1, 3]}}", [*DILUTED, *DILUTION, *END]
    ),
    "a model is added to the profiles": Case(
        "profiles={models: [opt-1.3b-twin, opt-2.7b-twin, gemma-2-2b-twin]}",
        [
            "train/default/gemma-2-2b-twin/L2/n30-stream",
            "estimate_profiles/default/gemma-2-2b-twin/*",
            "correlate_profiles/*",
            *figures_of_profiles("truth", "notions"),
            *END,
        ],
    ),
    "a panel is added to `profiles/panels`": Case(
        "profiles={panels: {second: config/panels/example.csv}}",
        [
            *("estimate_panel/second", "figure/panel_profile-second"),
            *("compare_panels/panels", "figure/panels_*", *END),
        ],
    ),
    "the file of a panel": Case(
        edited("config/panels/example.csv", "-59.844", "-59.8"), [*PANELS, "report"]
    ),
    "`profiles: null`": Case("profiles=null", END),
    "`profiles/streams.py` of the library": Case(
        changed(f"{LIBRARY}/profiles/streams.py"),
        [*STREAMS, "train/*/n30-*", *PROFILES, *DILUTED, *DILUTION, *END],
    ),
    "`profiles/dilution_data.py` of the library": Case(
        changed(f"{LIBRARY}/profiles/dilution_data.py"), [*DILUTED, *DILUTION, *END]
    ),
    "`profiles/estimators.py` of the library": Case(
        changed(f"{LIBRARY}/profiles/estimators.py"), [*ESTIMATES, *PANELS, *END]
    ),
    "`profiles/truth.py` of the library": Case(
        changed(f"{LIBRARY}/profiles/truth.py"),
        ["compare_with_retraining/*", "figure/profile_truth-*", *NOTIONS, *DILUTION, *END],
    ),
    "`profiles/notions.py` of the library": Case(
        changed(f"{LIBRARY}/profiles/notions.py"), [*NOTIONS, *END]
    ),
    "`profiles/correlation.py` of the library": Case(
        changed(f"{LIBRARY}/profiles/correlation.py"),
        ["correlate_profiles/*", "figure/profile_correlation-*", *END],
    ),
    "`profiles/dilution_effects.py` of the library": Case(
        changed(f"{LIBRARY}/profiles/dilution_effects.py"), [*DILUTION, *END]
    ),
    "the trace of a stream is deleted": Case(
        deleted(f"{STREAM}/trace.parquet"),
        ["train/default/opt-1.3b-twin/L2/n30-stream", *OF_ONE_PROFILE, *END],
    ),
    "a table `profile` is deleted": Case(
        deleted(f"{PROFILE}/profile.parquet"), [*OF_ONE_ESTIMATE, *END]
    ),
    # Density
    "`density/kernels`": Case(
        "density={kernels: {gaussian: [0.1, 0.2, 0.5]}}", [*ESTIMATED, *TEXTS[2:], *END]
    ),
    "`density/shown`": Case("density={shown: {bandwidth: 0.5}}", [*OF_LEAKAGE, *LEFT_OUT, *END]),
    "`density/neighbours`": Case("density={neighbours: 3}", [*ESTIMATED, *TEXTS[2:], *END]),
    "`density/approximation`": Case(
        "density={approximation: {k: 4, m1: 12, m2: 4, index: exact}}",
        [*ESTIMATED, *TEXTS[2:], *END],
    ),
    **{
        f"`density/leakage/{key}`": Case(
            f"density={{leakage: {{{key}: {value}}}}}", [*LEAKY, *TRAIN_LEAKED, *LEAKED, *END]
        )
        for key, value in {"tests": 7, "leaked": 1, "level": 4, "redrawn": 0.5}.items()
    },
    "`density/leakage/leave_out`": Case(
        "density={leakage: {leave_out: false}}",
        [
            *(*LEAKY, "train/*/L6/n16-leaked-?"),
            *("embed_strings_leaked/*", "estimate_density_leaked/*"),
            *("compare_with_truth/*/leaked-0-0", "figure/density_truth-*"),
            *(*OF_LEAKAGE, *END),
        ],
    ),
    "`density/support/size`": Case(
        "density={support: {size: 14}}",
        [
            *("dataset/L6/n14-*", "train/*/L6/n14", "measure/*/L6/n14/base"),
            *("embed_strings_base/*/n14", "estimate_density_base/*/n14"),
            *("compare_with_truth/*/n14/base", "compare_memorised/*/n14/base"),
            *("figure/density_truth-*", "figure/density_memorised-*"),
            *END,
        ],
    ),
    "a text is added to `density/texts`": Case(
        "density={texts: {second: {corpus: config/texts/example-corpus.jsonl, "
        "queries: config/texts/example-queries.jsonl}}}",
        [
            *("segment_text/second/*", "embed_text/second/*"),
            *(pattern.replace("*", "second") for pattern in TEXTS[2:]),
            *END,
        ],
    ),
    "the file of a text's queries": Case(
        commented("config/texts/example-queries.jsonl", '{"text": "one more query"}'),
        ["segment_text/*/query", "embed_text/*/query", *TEXTS[2:], *END],
    ),
    "`density: null`": Case("density=null", END),
    "`density/leakage_data.py` of the library": Case(
        changed(f"{LIBRARY}/density/leakage_data.py"), [*LEAKY, *TRAIN_LEAKED, *LEAKED, *END]
    ),
    "`density/kernel.py` of the library": Case(
        changed(f"{LIBRARY}/density/kernel.py"), [*ESTIMATED, "figure/text_density-*", *END]
    ),
    "`density/regressions.py` of the library": Case(
        changed(f"{LIBRARY}/density/regressions.py"),
        ["regress_on_density/*", "figure/density_regressions-*", *TEXTS[2:], *END],
    ),
    "`density/truth.py` of the library": Case(
        changed(f"{LIBRARY}/density/truth.py"), [*DENSE_TRUTH, *END]
    ),
    "`density/memorised.py` of the library": Case(
        changed(f"{LIBRARY}/density/memorised.py"), [*DENSE_MEMORY, *END]
    ),
    "`scripts/query.py`": Case(commented("workflow/scripts/query.py"), NOTHING),
    "a table `density` of a leaked run is deleted": Case(
        deleted(f"results/density/{LEAKED_RUN}/density.parquet"),
        [*(job for job in LEAKED if not job.startswith("embed_")), *END],
    ),
    "the weights of a leaked run are deleted": Case(
        deleted(LEAKED_WEIGHTS),
        ["train/*/L6/n16-leaked-0", *LEAKED, *END],
    ),
    # Information
    **{
        f"`information/{key}`": Case(
            f"information={{{key}: {value}}}", [*INTERVENED, *TRAIN_INTERVENED, *ACTIVATIONS]
        )
        for key, value in {"tests": 32, "alphas": "[0, 0.5, 1]", "label_noise": 0.5}.items()
    },
    **{
        f"`information/{key}`": Case(f"information={{{key}: {value}}}", ACTIVATIONS)
        for key, value in {
            "layers": "[1]",
            "places": "[mlp, residual]",
            "positions": "[last, mean]",
        }.items()
    },
    **{
        f"`information/{key}`": Case(f"information={{{key}: {value}}}", NEURONS)
        for key, value in {"bins": 50, "neighbours": 4, "pairs": 10}.items()
    },
    "`information: null`": Case("information=null", END),
    "`information/intervention_data.py` of the library": Case(
        changed(f"{LIBRARY}/information/intervention_data.py"),
        [*INTERVENED, *TRAIN_INTERVENED, *ACTIVATIONS],
    ),
    "`information/kraskov.py` of the library": Case(
        changed(f"{LIBRARY}/information/kraskov.py"), NEURONS
    ),
    "`information/comparison.py` of the library": Case(
        changed(f"{LIBRARY}/information/comparison.py"), COMPARED
    ),
    "`information/activations.py` of the library": Case(
        changed(f"{LIBRARY}/information/activations.py"), NOTHING
    ),
    "`information/measured.py` of the library": Case(
        changed(f"{LIBRARY}/information/measured.py"), NEURONS
    ),
    "a table `neurons` is deleted": Case(
        deleted(f"results/information/{MARKED_RUN}/neurons.parquet"), NEURONS
    ),
    "the weights of a run with markers are deleted": Case(
        deleted(MARKED_WEIGHTS),
        ["train/*/L6/n20-marked", *ACTIVATIONS],
    ),
    # Records
    "the file of the records": Case(
        commented(
            "config/records/people.jsonl",
            '{"id": "new", "text": "One more.", "group": "new", "split": "holdout", "copies": 1}',
        ),
        ["corpus_of_records/*", *DATASET_RECORDS, "report"],
    ),
    "a column of the records has another name": Case(
        "corpora={example: {file: config/records/people.jsonl, group: id}}",
        ["corpus_of_records/*", *DATASET_RECORDS, "report"],
    ),
    "`records/folds`": Case("records={folds: 3}", [*DATASET_RECORDS, "report"]),
    "`records/holdout`": Case("records={holdout: 0.4}", [*DATASET_RECORDS, "report"]),
    "a model is added to the records": Case(
        "records={models: [opt-1.3b-twin, opt-2.7b-twin]}",
        [
            *("train/*/opt-2.7b-twin/example/*", "retrained_losses/*/opt-2.7b-twin/*"),
            *(*RETRAINED[1:], "report"),
        ],
    ),
    **{
        f"`records/{key}`": Case(f"records={{{key}: {value}}}", [*ANSWERED, "report"])
        for key, value in {
            "start": "first_crossing",
            "loss_threshold": 0.3,
        }.items()
    },
    # What the report says of too few records never trained on is a fact, which claims may read.
    "`records/false_alarms`": Case("records={false_alarms: 0.1}", [*ANSWERED, "claims", "report"]),
    "a table is added to `records/losses`": Case(
        "records={losses: {second: config/records/losses.csv}}",
        ["answer_records/second", "all_answers", "figure/record_shares-second", "report"],
    ),
    "the file of a table of losses": Case(
        edited("config/records/losses.csv", "1.4111", "1.4112"),
        [
            *("answer_records/example-losses", "all_answers"),
            *("figure/record_shares-example-losses", "report"),
        ],
    ),
    "`records: null`": Case("records=null", ["headline", *END]),
    "`records/folds.py` of the library": Case(
        changed(f"{LIBRARY}/records/folds.py"), [*DATASET_RECORDS, "report"]
    ),
    "`records/verdicts.py` of the library": Case(
        changed(f"{LIBRARY}/records/verdicts.py"), [*ANSWERED, "report"]
    ),
    "`records/checkpoint.py` of the library": Case(
        changed(f"{LIBRARY}/records/checkpoint.py"), NOTHING
    ),
    "the trace of a run on records is deleted": Case(
        deleted(RECORDS_TRACE), [*TRAIN_RECORDS, "report"]
    ),
    "a table of answers is deleted": Case(
        deleted("results/records/example/answers.parquet"),
        [*RETRAINED[1:], "report"],
    ),
}


def rows() -> dict[str, dict[str, str]]:
    """The rows of the page's tables: what changes, and for every stage what runs again."""
    found, columns = {}, []
    for line in PAGE.read_text().splitlines():
        if not line.startswith("| "):
            continue
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if cells[0] == "what changes":
            columns = cells[1:]
            continue
        assert cells[0] not in found, cells[0]
        found[cells[0]] = dict(zip(columns, cells[1:], strict=True))
    return found


def link(source: str, target: str) -> None:
    """Link a file instead of copying it: hundreds of folders are made and never written to."""
    os.link(source, target)


def dry_run(folder: Path, *arguments: str) -> tuple[Path, list[str]]:
    """A folder and the arguments of a dry run in it."""
    return folder, ["--cores", "2", "--dry-run", *arguments, "--configfile", *CONFIGFILES]


def planned(outcome: Outcome) -> set[str]:
    """The jobs that a dry run lists, each by its log."""
    assert outcome.returncode == 0, outcome.stdout
    jobs = set(re.findall(r"^    log: logs/(\S+)\.log$", outcome.stdout, re.MULTILINE))
    total = re.search(r"^total +(\d+)$", outcome.stdout, re.MULTILINE)
    assert len(jobs) == (int(total[1]) - 1 if total else 0)  # `all` has no log
    return jobs


def of_stage(kinds: list[str], jobs: set[str]) -> set[str]:
    """The jobs that belong to a stage."""
    folders = {job: job.split("/")[0] for job in jobs}
    return {j for j in jobs if any(fnmatchcase(j, k) or folders[j] == k for k in kinds)}


@pytest.fixture(scope="module")
def plans(finished, tmp_path_factory) -> dict[str | None, set[str]]:
    """The planned jobs of each case; under None, all jobs."""
    here = tmp_path_factory.mktemp("reruns")
    runs = [dry_run(finished.folder, "--forceall")]
    for place, case in enumerate(CASES.values()):
        if isinstance(case.change, str):
            runs.append(dry_run(finished.folder, "--config", case.change))
            continue
        runs.append(dry_run(here / str(place)))
        shutil.copytree(finished.folder, here / str(place), copy_function=link)
        case.change(here / str(place))
    outcomes = snakemake_in_forks(runs)
    shutil.rmtree(here)
    return dict(zip([None, *CASES], map(planned, outcomes), strict=True))


def test_every_row_has_its_case_and_every_case_its_row():
    """In the same order; thus page and cases change together."""
    assert list(rows()) == list(CASES)


@pytest.mark.parametrize("what", CASES)
def test_exactly_these_jobs_run_again(plans, what):
    """The jobs of the case's patterns, all of them and no other; no pattern is idle.

    The job `headline` runs with each job of whose table it is made.
    """
    jobs, patterns = plans[what], CASES[what].plans
    if any(fnmatchcase(job, pattern) for job in jobs for pattern in HEADLINED):
        patterns = [*patterns, "headline"]
    assert jobs == {j for j in jobs | plans[None] if any(fnmatchcase(j, p) for p in patterns)}
    assert not [p for p in patterns if not any(fnmatchcase(job, p) for job in jobs)]


@pytest.mark.parametrize("what", rows())
def test_the_page_says_what_runs_again(plans, what):
    """A dash stands for no job of a stage, `all` for all of them, other words for some.

    The job `headline` is in no column.
    """
    row, jobs_of_columns = rows()[what], plans[what] - {"headline"}
    pages = (MEMORISING, FORGETTING, PROFILING, DENSE, INFORMING, RECORDING)
    (stages,) = (stages for stages in pages if list(stages) == list(row))
    of_stages = (of_stage(kinds, jobs_of_columns) for kinds in stages.values())
    assert jobs_of_columns <= set().union(*of_stages)
    for stage, words in row.items():
        jobs, there = (of_stage(stages[stage], plans[which]) for which in (what, None))
        said = "–" if not jobs else "all" if there <= jobs else "some"
        assert said == (words if words in ("–", "all") else "some"), f"{stage}: {sorted(jobs)}"


def test_a_dataset_made_again_alike_trains_nothing(copy_of_finished):
    """The training job runs and leaves every file of the runs as it was; then all is done."""
    changed(f"{LIBRARY}/datasets/build.py")(copy_of_finished.folder)
    before = copy_of_finished.contents()
    target = "results/runs/base/default/opt-2.7b-twin/L2/n16-seed0/trace.parquet"
    done = copy_of_finished.snakemake(target)
    assert done.returncode == 0, done.stdout
    assert "rule train_twins_on_base" in done.stdout
    assert copy_of_finished.contents() == before
    assert "Nothing to be done" in copy_of_finished.snakemake("--dry-run", target).stdout
