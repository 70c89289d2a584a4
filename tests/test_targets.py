"""A target checks the blocks that it needs, and no others; a block with a mistake is not built."""

import re

import pytest

from helpers.experiments import DEFAULT, ROOT, experiment, message
from palimpsest.launch import asked_targets
from palimpsest.memorisation.studies import STUDIES, requested
from palimpsest.sections import NAMES


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    """Paths of a configuration are relative to where Snakemake runs."""
    monkeypatch.chdir(ROOT)


# Each breaks the relation of one block to another, or to a file.
BROKEN = {
    "memorisation": {"languages": ["L99"]},
    "unlearning": {"unlearning": {"save_models": 33}},
    "profiles": {"profiles": {"panel": 33}},
    "density": {"density": {"shown": {"bandwidth": 0.3}}},
    "information": {"information": {"languages": ["L1"]}},
    "records": {"records": {"corpora": ["mine"]}},
    "audit": {"audit": {"attacks": ["mine"]}},
    "atlas": {"atlas": {"models": ["opt-1.3b"]}},
}
EVERYTHING = [None, ["all"], ["finetune"], ["report"], ["claims"], ["figures"], ["plan"]]
# A file of each section, and of none
FILES = {
    "memorisation": "results/memorisation/default/opt-1.3b-twin/L2/n64/base/starts.parquet",
    "unlearning": "results/figures/unlearning_gaps-L3-short.svg",
    "profiles": "results/profiles/default/llama-3.2-1b-twin/L1/n256/profile.parquet",
    "density": "./results/density/leakage/opt-1.3b-twin/L3/n72/leakage.parquet",
    "information": "results/information/shortcuts/opt-1.3b-twin/L3-short/n240/information.parquet",
    "records": "results/records/mine/answers.parquet",
    "audit": "results/audit/mine/small/scores.parquet",
    "atlas": "results/atlas/forgetting/opt-1.3b-twin/L2/n64/atlas.parquet",
}
DATASET = "results/datasets/L2/n64-seed0/base/strings.parquet"
RUN = "results/runs/base/default/opt-1.3b-twin/L2/n64-seed0/trace.parquet"
REPLICATES = "results/replicates/forgetting/pythia-1b-twin/L3/n48-seed1/retain/0-95/trace.parquet"


def broken(name, targets):
    return experiment(DEFAULT, command_line=BROKEN[name], targets=targets)


@pytest.mark.parametrize("name", NAMES)
def test_only_what_a_target_needs_is_checked(name):
    """The other sections are whole; the broken one is left out, and refused when it is wanted."""
    others = [other for other in NAMES if other != name]
    rest = broken(name, [*others, DATASET, *(FILES[other] for other in others)])
    assert [section.name for section in rest.sections] == others
    assert set(rest.refused) == {name}
    assert not any(path for path in rest.outputs if path == name)
    said = message(lambda: broken(name, [*others, name]))
    assert said == str(rest.refused[name])
    assert message(lambda: broken(name, [FILES[name]])) == said


@pytest.mark.parametrize("targets", [*EVERYTHING, [RUN], ["mispelt"], ["remove_stale_state"]])
def test_what_needs_every_section_refuses_a_mistake_in_one(targets):
    """So does a run's file, which is trained for any of them, and what is not known."""
    left_out = dict.fromkeys(("memorisation", "unlearning", "profiles"))
    over = {**left_out, **BROKEN["density"]}
    said = message(lambda: experiment(DEFAULT, command_line=over, targets=targets))
    assert "density/shown/bandwidth: 0.3 is not among" in said


def test_what_is_known_of_a_language_alone_needs_no_section():
    """A language of one's own is looked at before any model is trained on it."""
    for target in ("results/languages/L3/summary.json", "results/figures/language-L3.svg"):
        assert broken("unlearning", [target]).refused
    assert broken("information", ["pretrained"]).refused


def test_replicates_may_be_of_any_section():
    """Their path has the name of one section, whichever asks for them."""
    said = message(lambda: broken("density", [REPLICATES]))
    assert "density/shown/bandwidth" in said


EXACT = {"memorisation": {"studies": {"exact": {"seeds": [7]}}}}


def test_a_study_is_checked_for_those_that_read_it():
    """`extraction` reads the retraining of `exact`; `tradeoff` does not."""
    rest = experiment(DEFAULT, command_line=EXACT, targets=["tradeoff", "unlearning"])
    assert set(rest.refused) == {"memorisation/studies/exact"}
    assert "exact" not in {study.name for study in requested(rest.settings)}
    assert len(requested(rest.settings)) > 5
    for targets in (["exact"], ["extraction"], ["memorisation"], ["tradeoff", "all"], None):
        said = message(
            lambda targets=targets: experiment(DEFAULT, command_line=EXACT, targets=targets)
        )
        assert "memorisation/studies/exact/seeds[0]: 7 is not among the seeds" in said
    table, figure = "results/studies/exact/L2.parquet", "results/figures/exact-L2.png"
    for file in (table, figure):
        message(lambda file=file: experiment(DEFAULT, command_line=EXACT, targets=[file]))
    file = "results/studies/tradeoff/L2.parquet"
    assert experiment(DEFAULT, command_line=EXACT, targets=[file]).refused


def test_density_delivers_the_same_when_memorisation_has_a_mistake():
    """It reads the measures of memorisation, and not the studies."""
    whole = experiment(DEFAULT).outputs["density"]
    assert broken("memorisation", ["density"]).outputs["density"] == whole


def test_every_study_is_a_part():
    (section,) = [each for each in experiment(DEFAULT).sections if each.name == "memorisation"]
    assert [part.name for part in section.parts] == list(STUDIES)


@pytest.mark.parametrize(
    "over",
    [
        {"unlearning": {"save_models": "many"}},
        {"unlearning": {"n": 1}},
        {"unlearning": {"number": 8}},
        {"memorisation": {"studies": {"exact": {"size": 0}}}},
        {"recipes": {"default": {"offload_optimizer": "cpu"}}},
        {"engine": {"pythia-1-twin": "fleet"}},
    ],
)
def test_a_wrong_value_is_refused_for_every_target(over):
    """Its block need not be read for that."""
    said = message(lambda: experiment(DEFAULT, command_line=over, targets=["density"]))
    assert said == message(lambda: experiment(DEFAULT, command_line=over))


def test_a_model_that_does_not_fit_is_refused_where_it_is_trained():
    """Of each section, and of each study."""
    over = {
        "hardware": {"gpu_memory_gb": 20},
        "unlearning": {"models": ["llama-2-13b"]},
        "memorisation": {"studies": {"bits": {"models": ["llama-2-7b"]}}},
    }
    rest = experiment(DEFAULT, command_line=over, targets=["tradeoff", "density"])
    assert set(rest.refused) == {"memorisation/studies/bits", "unlearning"}
    assert "llama-2-13b needs" in str(rest.refused["unlearning"])
    assert not any(runs.model.startswith("llama-2") for runs in rest.requests)


@pytest.mark.parametrize(
    ("command", "targets"),
    [
        ("-n --cores 1 unlearning", {"unlearning"}),
        ("unlearning density --cores 1", {"unlearning", "density"}),
        ("--cores 1", None),
        ("--quiet results/report.html", None),  # Snakemake takes the file as a value of --quiet
        ("--quiet rules -- density", {"density"}),
        ("density -R unlearning --until report -P all", {"density", "unlearning", "report", "all"}),
        ("-R unlearning", None),
        ("density --omit-from all", {"density"}),
        ("density --no-such-flag", None),
        ("density --config seeds=[0] --configfile config/tour.yaml", {"density"}),
    ],
)
def test_targets_are_read_as_snakemake_reads_them(command, targets):
    """What is not known to be less is everything."""
    assert asked_targets(command.split()) == targets


@pytest.mark.parametrize(
    ("over", "target", "key"),
    [
        ({"density": None}, "density", "density"),
        ({"memorisation": None}, "tradeoff", "memorisation"),
        ({"memorisation": {"studies": None}}, "exact", "memorisation/studies/exact"),
        ({}, "adapters", "memorisation/studies/adapters"),
        ({}, "results/studies/adapters/L2.parquet", "memorisation/studies/adapters"),
        ({"memorisation": None}, "results/studies/tradeoff/L2.parquet", "memorisation"),
        ({"memorisation": None}, "./results/figures/tradeoff-L2.svg", "memorisation"),
        ({"unlearning": None}, "unlearning_tuning", "unlearning"),
        ({"unlearning": None}, "results/figures/unlearning_gaps-L3-short.svg", "unlearning"),
    ],
)
def test_a_target_whose_block_is_null_is_refused(over, target, key):
    """A command that makes nothing would look like one that is done."""
    said = message(lambda: experiment(DEFAULT, command_line=over, targets=["plan", target]))
    target = target.removeprefix("./")
    assert f"{key}: is null, so there is nothing to make for the target {target}; " in said
    experiment(DEFAULT, command_line=over, targets=["plan"])


@pytest.mark.parametrize(
    "target",
    [
        "disagreement",
        "results/studies/disagreement/L2.parquet",
        "results/figures/disagreement-L2.svg",
    ],
)
def test_the_target_of_a_study_that_is_not_chosen_is_refused(target):
    over = {"memorisation": {"studies": {"only": ["tradeoff"]}}}
    said = message(lambda: experiment(DEFAULT, command_line=over, targets=[target]))
    assert (
        "memorisation/studies/only: does not name disagreement, so there is nothing to make for"
        in said
    )
    experiment(DEFAULT, command_line=over, targets=["tradeoff"])


@pytest.mark.parametrize("section", ["memorisation", "profiles", "unlearning"])
def test_tables_of_runs_need_no_block(section):
    """A run can be made that no block asks for."""
    path = {
        "memorisation": "results/memorisation/default/opt-1.3b-twin/L2/n64/base/starts.parquet",
        "profiles": "results/profiles/default/opt-1.3b-twin/L1/n256/profile.parquet",
        "unlearning": "results/unlearning/forgetting/opt-1.3b-twin/L1/n256-seed0/scores.parquet",
    }[section]
    experiment(DEFAULT, command_line={section: None}, targets=[path])


def test_dry_runs_of_the_page_do_not_print_every_job():
    """Hundreds of jobs, of several lines each, would hide the counts and the reasons."""
    page = (ROOT / "docs/targets.md").read_text()
    runs = re.findall(r"^.*--dry-run.*$", page, re.MULTILINE)
    assert runs
    assert all("--dry-run --quiet rules" in line for line in runs)
