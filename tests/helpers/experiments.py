"""Experiments made from configuration files, as the workflow makes them."""

import copy
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
import yaml

from palimpsest.configuration.sources import Sources
from palimpsest.errors import UserError
from palimpsest.experiment import Experiment
from palimpsest.section import Section
from palimpsest.sections import SECTIONS

ROOT = Path(__file__).parents[2]
DEFAULT, PAPER = "config/config.yaml", "config/paper.yaml"
SCHEMAS = "config/schemas"


def laid_over(under: dict, over: dict) -> dict:
    """The configuration with another laid over it, as Snakemake does: block by block."""
    merged = copy.deepcopy(under)
    for key, value in over.items():
        blocks = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = laid_over(merged[key], value) if blocks else value
    return merged


def configuration(*files) -> dict:
    """The values of some configuration files, each laid over the ones before."""
    merged = {}
    for file in files:
        merged = laid_over(merged, yaml.safe_load(Path(file).read_text()) or {})
    return merged


def experiment(
    *files,
    config: dict | None = None,
    command_line: dict | None = None,
    sections: Sequence[Section] = SECTIONS,
    schemas: str | Path = SCHEMAS,
    targets: Iterable[str] | None = None,
    is_job: bool = False,
    planned: Iterable[str] = (),
) -> Experiment:
    """The experiment of some files, or of a configuration that was read from them.

    What the command line gives is laid over either. By default, everything is to be made.
    """
    read = configuration(*files) if config is None else config
    sources = Sources(list(files), command_line)
    return Experiment(
        laid_over(read, command_line or {}), sources, schemas, sections, targets, is_job, planned
    )


def message(work: Callable) -> str:
    """The one-line message that the work ends with."""
    with pytest.raises(UserError) as error:
        work()
    assert "\n" not in str(error.value)
    return str(error.value)


# What is for full models, so that the tour does not have it: a study, its table and its figure; and
# models that are looked at after every epoch, which the study in environments has. Methods on
# another problem are for the paper's experiment, fields are for texts (config/people.yaml), and an
# audit is for a model of a user's own (config/minimal/audit.yaml). The atlas retrains without every
# string (config/atlas.yaml). Activations are of models that other programs trained
# (examples/digits.py). Bounds of records need records that no training left out.
OF_FULL_MODELS = {
    *("adapters", "layers", "epochs", "information_epochs", "unlearning_transfer"),
    *("fields", "exposure", "field_values"),
    *("given_neurons", "given_pairs", "given_layers", "given_scores", "given_associations"),
    "given_distributions",
    *("labelled", "encoder_answers", "encoder_runs", "encoder_scores", "encoders"),
    *("audit_passes", "audit_continuations", "attack_scores", "attack_roc"),
    *("extracted", "extraction_shares", "detectors", "planted_secrets"),
    *("recited", "explained", "private_shares", "audit_findings"),
    *("checkpoint_answers", "checkpoint_scores", "checkpoint_metrics", "checkpoint_gaps"),
    *("checkpoint_forget_quality", "checkpoint_membership", "checkpoint_tests"),
    *("retrained", "influence", "halves", "curves", "contenders", "frontier", "conformal"),
    *("atlas", "atlas_whose", "atlas_foretold", "foretold", "foretelling"),
    *("gradient_scores", "gradient_effects", "gradient_costs", "last_pass", "removed_tokens"),
    *("retrained_fields", "conformal_records"),
    *("panel_rows", "panel_outcomes", "measured_panel", "panels_effects", "panels_persistence"),
    *(
        "profile_schedules",
        "panels_profile",
        "panels_profiles",
        "panels_memorisation",
        "panels_correlation",
    ),
}
