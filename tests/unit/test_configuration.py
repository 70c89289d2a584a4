"""The configuration: what a study asks for, and one line for whatever is wrong with it."""

import copy
import json
from pathlib import Path

import pytest
import yaml

from palimpsest.configuration import STUDIES, RunGroup, Study
from palimpsest.errors import UserError
from palimpsest.planning.assumptions import TWIN_START_SECONDS
from palimpsest.planning.plan import Planner
from palimpsest.yaml_files import check_file

ROOT = Path(__file__).parents[2]
DEFAULT = "config/config.yaml"
SCHEMA = "config/schemas/config.schema.yaml"


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    """Paths of a configuration are relative to where Snakemake runs."""
    monkeypatch.chdir(ROOT)


def laid_over(under, over):
    """The configuration with another laid over it, as Snakemake does: block by block."""
    merged = copy.deepcopy(under)
    for key, value in over.items():
        blocks = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = laid_over(merged[key], value) if blocks else value
    return merged


def study(*files, config=None, command_line=None):
    """The study of some configuration files, each laid over the ones before."""
    merged = {}
    for file in files:
        merged = laid_over(merged, yaml.safe_load(Path(file).read_text()) or {})
    merged = laid_over(merged if config is None else config, command_line or {})
    return Study(merged, [str(file) for file in files], SCHEMA, command_line)


def message(work):
    """The one-line message that the work ends with."""
    with pytest.raises(UserError) as error:
        work()
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def mine(tmp_path):
    """A function that writes a file to lay over the default study, and gives its path."""

    def write(text):
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        return path

    return write


# What there is to do


def test_the_default_study():
    """One twin per family, two languages, every study; nothing that needs a download."""
    default = study(DEFAULT)
    assert default.studies() == list(STUDIES)
    assert default.roles == ["s0", "s1", "s2"]
    assert default.all_languages == ["L1", "L2", "L4"]
    assert default.unlearning.methods[0] == "none"
    assert default.unlearning.methods[-1] == "retrain"
    assert all(group.model.endswith("-twin") for group in default.trained_groups)
    grid = [group for group in default.measured_groups if group.variant == "base"]
    families = {default.models[group.model.removesuffix("-twin")].family for group in grid}
    assert len(families) >= 6
    assert {(g.language, g.size) for g in grid} >= {("L1", 64), ("L2", 64), ("L2", 16)}


def test_the_papers_study():
    """18 pretrained models on eight languages, four sizes and three seeds, and one twin.

    The twin is that of the exact study, as a full model for every training string is out of reach.
    """
    paper = study(DEFAULT, "config/paper.yaml")
    assert len(paper.config["models"]) == 18
    assert paper.seeds == [0, 1, 2]
    full = [group for group in paper.measured_groups if not group.model.endswith("-twin")]
    twins = set(paper.trained_groups) - set(full)
    assert {g for g in twins if g.model.endswith("-twin")} == {
        *paper.study_groups("exact", "L2"), *paper.left_out_groups("L2")
    }  # fmt: skip
    grid = [g for g in full if g.variant == "base" and g.language != "L4-skewed"]
    assert len(grid) == 18 * 8 * 4
    assert {g.size for g in grid} == {16, 64, 256, 1024}
    assert {g.language for g in grid} == {f"L{i}" for i in range(1, 9)}


@pytest.mark.parametrize("files", [[DEFAULT], [DEFAULT, "config/paper.yaml"]])
def test_every_study_reads_what_is_measured(files):
    """What a study reads is trained and measured, once, and belongs to one of its languages."""
    whole = study(*files)
    assert len(set(whole.measured_groups)) == len(whole.measured_groups)
    assert len(set(whole.trained_groups)) == len(whole.trained_groups)
    assert set(whole.measured_groups) <= set(whole.trained_groups)
    for name in whole.studies():
        if name == "disagreement":  # reads tables of targets, not of groups
            continue
        for language in whole.study_languages(name):
            groups = whole.study_groups(name, language)
            assert groups
            assert set(groups) <= set(whole.measured_groups)
            assert {group.language for group in groups} == {language}


def test_exact_retraining_is_with_and_without_every_target():
    """Two variants per target, on the languages of the study alone."""
    default = study(DEFAULT)
    retrained = set(default.trained_groups) - set(default.measured_groups)
    targets = {group for group in retrained if group.variant != "leave-one-out"}
    (group,) = default.target_groups("L2")
    assert {g.variant for g in targets} == {
        f"{kind}-s{rank}" for kind in ("with", "without") for rank in range(3)
    }
    assert {(g.model, g.language, g.size) for g in targets} == {(group.model, "L2", 64)}
    assert default.target_groups("L1") == []


def test_every_string_is_left_out_of_the_exact_study_alone(mine):
    """One group of runs per model and language, of the study's seeds; its base is measured."""
    changed = study(
        DEFAULT,
        mine(
            "models: [opt-1.3b-twin]\nseeds: [4, 5, 6]\n"
            "studies: {exact: {models: [opt-2.7b-twin], languages: [L1, L7], size: 32, seeds: [6]}}"
        ),
    )
    left_out = [g for g in changed.trained_groups if g.variant == "leave-one-out"]
    assert left_out == [
        RunGroup("opt-2.7b-twin", language, 32, "leave-one-out") for language in ("L1", "L7")
    ]
    assert [changed.left_out_groups(language) for language in ("L1", "L2", "L7")] == [
        left_out[:1], [], left_out[1:]
    ]  # fmt: skip
    assert changed.seeds_of("leave-one-out") == [6]
    assert changed.seeds_of("base") == [4, 5, 6]
    assert {RunGroup("opt-2.7b-twin", language, 32) for language in ("L1", "L7")} <= set(
        changed.measured_groups
    )
    without = study(DEFAULT, mine("studies: {exact: null}"))
    assert not [g for g in without.trained_groups if g.variant == "leave-one-out"]
    assert without.study_languages("exact") == without.left_out_groups("L2") == []


def test_deduplication_reads_the_counterpart_where_there_is_one(mine):
    """The matched variant needs a high-entropy counterpart; without one the others remain."""
    default = study(DEFAULT)
    variants = [group.variant for group in default.study_groups("deduplication", "L2")]
    assert variants == ["base", "dedup", "dedup-matched"]
    assert default.counterpart("L2") == "L1"
    l1 = study(DEFAULT, mine("studies: {deduplication: {languages: [L1]}}"))
    assert [g.variant for g in l1.study_groups("deduplication", "L1")] == ["base", "dedup"]
    assert l1.counterpart("L1") is None


def test_a_study_that_is_left_out_is_not_run():
    """No target groups, no languages and no additions of it remain."""
    config = yaml.safe_load(Path(DEFAULT).read_text())
    config["studies"] = {"tradeoff": config["studies"]["tradeoff"]}
    narrow = study(DEFAULT, config=config)
    assert narrow.studies() == ["tradeoff"]
    assert narrow.target_groups("L2") == []
    assert narrow.left_out_groups("L2") == []
    assert narrow.study_languages("disagreement") == []
    assert {group.variant for group in narrow.trained_groups} == {"base"}


def test_no_study_at_all_is_a_grid():
    """The grid alone is trained and measured."""
    config = yaml.safe_load(Path(DEFAULT).read_text())
    config["studies"] = {}
    grid = study(DEFAULT, config=config)
    assert grid.studies() == []
    assert len(grid.trained_groups) == 6 * 2 * 1


def test_all_means_the_grid(mine):
    """`all` follows the grid, a list replaces it, and its languages join all the languages."""
    text = "models: [opt-1.3b-twin]\nstudies: {frequency: {languages: [L7], models: all}}"
    changed = study(DEFAULT, mine(text))
    assert changed.study_groups("frequency", "L7") == [RunGroup("opt-1.3b-twin", "L7", 64)]
    assert changed.study_groups("tradeoff", "L1") == [RunGroup("opt-1.3b-twin", "L1", 64)]
    assert changed.all_languages == ["L1", "L2", "L7", "L4"]
    assert RunGroup("opt-1.3b-twin", "L7", 64) in changed.measured_groups


def test_a_new_language_and_a_new_model_need_no_code(mine, tmp_path):
    """A grammar file and a row of the table are all it takes."""
    (tmp_path / "mini.pcfg").write_text("S -> 'a' S [0.5] | 'b' [0.5]\n")
    table = Path("config/models.tsv").read_text()
    row = "mine\tLlama\tcheckpoints/mine\tmain\tllama\t1000\t1\t16\t11\t5e-5\t16\t1\t2\t3e-3\n"
    (tmp_path / "models.tsv").write_text(table + row)
    studies = {name: {"models": "all", "languages": "all"} for name in STUDIES}
    studies["exact"]["models"] = ["mine-twin"]
    over = {
        "models_table": str(tmp_path / "models.tsv"),
        "languages_folder": str(tmp_path),
        "models": ["mine", "mine-twin"],
        "languages": ["mini"],
        "studies": studies,
    }
    config = laid_over(yaml.safe_load(Path(DEFAULT).read_text()), over)
    config["datasets"]["high_entropy_counterpart"] = {}
    config["unlearning"] = None
    own = study(DEFAULT, config=config)
    assert own.grammar_file("mini") == str(tmp_path / "mini.pcfg")
    assert {group.model for group in own.trained_groups} == {"mine", "mine-twin"}


def test_engines(mine):
    """The engine of a model's name wins over that of its scale."""
    changed = study(DEFAULT, mine("engine: {opt-1.3b-twin: deepspeed}"))
    assert changed.engine("opt-1.3b-twin") == "deepspeed"
    assert changed.engine("opt-2.7b-twin") == "fleet"
    assert changed.engine("opt-1.3b") == "deepspeed"


def test_a_model_may_be_trained_otherwise(mine):
    """Its own keys win over those of `training`, which hold for all other models."""
    text = "models: [opt-1.3b, opt-2.7b]\ntraining: {zero_stage: 2}\n"
    changed = study(DEFAULT, mine(text + "training_by_model: {opt-2.7b: {processes: 4}}"))
    plain = changed.config["training"]
    assert changed.training("opt-1.3b") == plain
    assert changed.training("opt-2.7b") == {**plain, "processes": 4}
    assert changed.planner.gpus("opt-2.7b") == 4


def test_a_twin_is_trained_by_one_process(mine):
    """Whatever full models take."""
    text = "training: {zero_stage: 2, processes: 4, offload_optimizer: cpu}"
    training = study(DEFAULT, mine(text)).training("opt-1.3b-twin")
    assert (training["processes"], training["offload_optimizer"]) == (1, "none")
    assert training["zero_stage"] == 2


def test_the_papers_models_fit_because_some_are_offloaded():
    """Those of 7B parameters and more, each of which is refused without."""
    paper = study(DEFAULT, "config/paper.yaml")
    offloaded = {m for m in paper.models if paper.training(m)["offload_optimizer"] == "cpu"}
    assert offloaded == {name for name, row in paper.models.items() if row.parameters > 6e9}
    for model in offloaded:
        without = {"training_by_model": {model: {"offload_optimizer": "none"}}}
        said = message(lambda over=without: study(DEFAULT, "config/paper.yaml", command_line=over))
        assert said.startswith(f"--config: training_by_model/{model}")
        assert f"training_by_model/{model}: {{offload_optimizer: cpu}}" in said


# The plan


def test_every_run_has_a_row_of_the_plan(tmp_path):
    """Trainings of leave-one-out count one per string at most; parts of the hours add up."""
    default = study(DEFAULT)
    rows = Planner(default, tmp_path).rows
    of_unlearning = {row["variant"]: row for row in rows[-3:]}
    assert {variant: row["trainings"] for variant, row in of_unlearning.items()} == {
        "original": 32,
        "retain": 64,  # beside as many for the ideal
        "unlearned": 6 * 3 * 32 + 2 * 32,  # six methods, three repetitions; the two ends
    }
    studies = sum(len(default.seeds_of(group.variant)) for group in default.trained_groups)
    assert len(rows) == studies + 3
    (left_out,) = (row for row in rows if row["variant"] == "leave-one-out")
    assert left_out["trainings"] == 64
    for row in rows:
        parts = row["training_hours"] + row["measuring_hours"] + row["checkpoint_hours"]
        assert row["hours"] == pytest.approx(parts)
        assert row["gpu_memory_gb"] is None
        assert not row["done"]


def test_a_finished_run_makes_its_model_measured(tmp_path):
    """The speed of the manifests counts, of runs of the same engine and settings alone."""
    default = study(DEFAULT)
    folder = tmp_path / "opt-6.7b-twin/L1/n64-seed0/base"
    folder.mkdir(parents=True)
    (folder / "trace.parquet").touch()
    manifest = {
        "model": "opt-6.7b-twin",
        "language": "L1",
        "size": 64,
        "engine": "fleet",
        "resumed_from_epoch": 0,
        "hardware": {"gpus": []},
        "configuration": {"recipe": {**default.config["training"], "epochs": 10}},
        "training_seconds": 10.0,
        "training_tokens_per_second": 4672.0,
        "wall_time_seconds": 30.0,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    planner = Planner(default, tmp_path)
    rows = [row for row in planner.rows if row["model"] == "opt-6.7b-twin"]
    assert {row["basis"] for row in rows} == {"measured"}
    assert [row["done"] for row in rows].count(True) == 1
    # 50 epochs of 64 strings of 73 tokens; measured 51 times where the manifest's run was 11 times.
    for row in rows:
        assert row["training_hours"] == pytest.approx(50 * 64 * 73 / 4672 / 3600)
        assert row["measuring_hours"] == pytest.approx(20 * 51 / 11 / 3600)
    assert {r["basis"] for r in planner.rows if r["model"] != "opt-6.7b-twin"} == {"assumed"}
    unlike = ({"engine": "deepspeed"}, {"resumed_from_epoch": 3}, {"training_seconds": 0.0})
    for change in unlike:
        (folder / "manifest.json").write_text(json.dumps({**manifest, **change}))
        assert Planner(default, tmp_path).speed("opt-6.7b-twin") is None
    for damaged in ("{", "{}", "[]", ""):
        (folder / "manifest.json").write_text(damaged)
        assert Planner(default, tmp_path).speed("opt-6.7b-twin") is None


def test_a_job_of_twins_takes_as_long_as_all_its_runs():
    """Three seeds of base, and one of leave-one-out with 64 trainings, and a start."""
    planner = study(DEFAULT).planner
    one = planner.duration("pythia-1b-twin", "L2", 64).seconds
    job = planner.job_seconds("pythia-1b-twin", "L2", 64, ["base", "leave-one-out"])
    assert job - TWIN_START_SECONDS == pytest.approx(67 * one)


def test_a_job_trains_all_variants_of_a_twin(mine):
    """Every run of a twin is in one job, and in no other."""
    default = study(DEFAULT)
    of_jobs = [
        RunGroup(group.model, group.language, group.size, variant)
        for variants, groups in default.twin_jobs.items()
        for group in groups
        for variant in variants
    ]
    assert len(of_jobs) == len(set(of_jobs))
    assert set(of_jobs) == set(default.trained_groups)


# What is wrong

LANGUAGES = "L1, L2, L3, L4, L4-skewed, L5, L6, L7, L8"

WRONG = {
    "an unknown method": (
        "unlearning: {methods: [finetune, scrubb]}",
        "unlearning/methods[1]: unknown method 'scrubb'; known: ",
        "(did you mean 'scrub'?)",
        "Add it to config/unlearning.yaml",
    ),
    "an end as a method": (
        "unlearning: {methods: [none, finetune]}",
        "unlearning/methods[0]: 'none' is always there; leave it out",
    ),
    "tuning without a grid": (
        "unlearning: {tuning: [sun]}",
        "unlearning/tuning[0]: 'sun' has no grid in config/unlearning.yaml",
    ),
    "a pool that is too small": (
        "unlearning: {pool: 16, setups: [bootstrap]}",
        "unlearning/pool: 16 models are fewer than unlearning/n, which is 32",
    ),
    "a share of nothing": (
        "unlearning: {share: 0.001}",
        "unlearning/share: 0.001 of 48 strings is none; raise it to 0.021 or more",
    ),
    "a share of everything": (
        "unlearning: {share: 1}",
        "unlearning/share: 1 is not allowed; must be a number above 0 below 1",
    ),
    "a forget set that is not there": (
        "unlearning: {forget: none.txt}",
        "unlearning/forget: no such file: none.txt; give a text file with one string a line, or "
        "drawn",
    ),
    "a method table that is not there": (
        "unlearning: {table: none.yaml}",
        "unlearning/table: no such file: none.yaml",
    ),
    "an unknown set-up": (
        "unlearning: {setups: [ful]}",
        "unlearning/setups[0]: 'ful' is not allowed; must be one of full, reuse-n-n, reuse-n-1, "
        "bootstrap (did you mean 'full'?)",
    ),
    # what is wrong: (text laid over the default, the message behind the file's name)
    "text for a number": (
        "training: {epochs: fifty}",
        "training/epochs: 'fifty' is not allowed; must be a whole number from 1 to 100000",
    ),
    "YAML reads 3e-3 as text": (
        "training: {weight_decay: 3e-3}",
        "training/weight_decay: '3e-3' is not allowed; must be a number from 0 to 1 "
        "(YAML reads it as text; write 0.003)",
    ),
    "quoted number": (
        "training: {batch_size: '8'}",
        "training/batch_size: '8' is not allowed; must be a whole number from 1 to 65536",
    ),
    "float for an integer": (
        "training: {epochs: 2.5}",
        "training/epochs: 2.5 is not allowed; must be a whole number from 1 to 100000",
    ),
    "boolean for an integer": (
        "training: {epochs: true}",
        "training/epochs: True is not allowed; must be a whole number from 1 to 100000",
    ),
    "boolean for a seed": ("seeds: [0, yes]", "seeds[1]: True is not allowed; must be a whole"),
    "integer for a boolean": (
        "datasets: {predict_end: 1}",
        "datasets/predict_end: 1 is not allowed; must be true or false",
    ),
    "text for a boolean": (
        "datasets: {predict_end: 'false'}",
        "datasets/predict_end: 'false' is not allowed; must be true or false",
    ),
    "null": (
        "training: {epochs: }",
        "training/epochs: None is not allowed; must be a whole number from 1 to 100000",
    ),
    "list for a number": (
        "training: {epochs: [50]}",
        "training/epochs: [50] is not allowed; must be a whole number from 1 to 100000",
    ),
    "number for a block": (
        "training: 7",
        "training: 7 is not allowed; must be a block of keys",
    ),
    "nothing for a block": (
        "datasets:",
        "datasets: None is not allowed; must be a block of keys",
    ),
    "text for a list": (
        "models: pythia-1b-twin",
        "models: 'pythia-1b-twin' is not allowed; must be a list of at least 1, each a text",
    ),
    "block for a list": ("seeds: {a: 1}", "seeds: {'a': 1} is not allowed; must be a list"),
    "zero epochs": ("training: {epochs: 0}", "training/epochs: 0 is not allowed; must be a whole"),
    "negative epochs": (
        "training: {epochs: -3}",
        "training/epochs: -3 is not allowed; must be a whole number from 1 to 100000",
    ),
    "an engine that is none": (
        "engine: {twin: fleets}",
        "engine/twin: 'fleets' is not allowed; must be one of fleet, deepspeed "
        "(did you mean 'fleet'?)",
    ),
    "a fleet of full models": (
        "engine: {pythia-1b: fleet}",
        "engine/pythia-1b: fleet trains twins only; set deepspeed, or name the twin pythia-1b-twin",
    ),
    "an engine for a model that is none": (
        "engine: {pythia-1-twin: fleet}",
        "engine/pythia-1-twin: unknown model 'pythia-1-twin'",
    ),
    "a full model without every string": (
        "studies: {exact: {models: [pythia-1b]}}",
        "studies/exact/models[0]: 'pythia-1b' would be trained once per training string",
    ),
    "huge epochs": (
        "training: {epochs: 1000000000}",
        "training/epochs: 1000000000 is not allowed; must be a whole number from 1 to 100000",
    ),
    "huge size": (
        "sizes: [64, 100000000000]",
        "sizes[1]: 100000000000 is not allowed; must be a whole number from 1 to 1000000",
    ),
    "zero size": ("sizes: [0]", "sizes[0]: 0 is not allowed; must be a whole number from 1"),
    "negative seed": ("seeds: [-1]", "seeds[0]: -1 is not allowed; must be a whole number from 0"),
    "seed beyond 32 bits": (
        "seeds: [4294967296]",
        "seeds[0]: 4294967296 is not allowed; must be a whole number from 0 to 4294967295",
    ),
    "not a number": (
        "training: {gradient_clipping: .nan}",
        "training/gradient_clipping: nan is not a finite number",
    ),
    "infinite": (
        "memorisation: {loss_threshold: .inf}",
        "memorisation/loss_threshold: inf is not a finite number",
    ),
    "minus infinite in a list": ("sizes: [64, -.inf]", "sizes[1]: -inf is not a finite number"),
    "zero clipping": (
        "training: {gradient_clipping: 0}",
        "training/gradient_clipping: 0 is not allowed; must be a number above 0 to 1000000",
    ),
    "warm-up over 1": (
        "training: {warmup_ratio: 5}",
        "training/warmup_ratio: 5 is not allowed; must be a number from 0 to 1",
    ),
    "accuracy of 1": (
        "memorisation: {accuracy_threshold: 1}",
        "memorisation/accuracy_threshold: 1 is not allowed; must be a number from 0 below 1",
    ),
    "share over a half": (
        "studies: {frequency: {share: 0.6}}",
        "studies/frequency/share: 0.6 is not allowed; must be a number above 0 to 0.5",
    ),
    "ZeRO stage": (
        "training: {zero_stage: 4}",
        "training/zero_stage: 4 is not allowed; must be a whole number from 0 to 3",
    ),
    "precision": (
        "training: {precision: fp16}",
        "training/precision: 'fp16' is not allowed; must be one of auto, fp32, bf16",
    ),
    "misspelt choice": (
        "memorisation: {start: after_last_mis}",
        "memorisation/start: 'after_last_mis' is not allowed; must be one of after_last_miss, "
        "first_crossing (did you mean 'after_last_miss'?)",
    ),
    "offload as a boolean": (
        "training: {offload_optimizer: true}",
        "training/offload_optimizer: True is not allowed; must be one of none, cpu",
    ),
    "misspelt key": (
        "training: {epoch: 3}",
        "training: unknown key 'epoch'; known: epochs, batch_size",
        "(did you mean 'epochs'?)",
    ),
    "misspelt section": (
        "trainings: {epochs: 3}",
        "unknown key 'trainings'; known: models_table",
        "(did you mean 'training'?)",
    ),
    "misspelt study": (
        "studies: {trade_off: {models: all}}",
        "studies: unknown key 'trade_off'; known: disagreement, exact, tradeoff",
        "(did you mean 'tradeoff'?)",
    ),
    "American spelling": (
        "memorization: {loss_threshold: 0.3}",
        "unknown key 'memorization'",
        "(did you mean 'memorisation'?)",
    ),
    "a key that is no text": ("1: 2", "unknown key 1; known: models_table"),
    "duplicate model": (
        "models: [opt-1.3b-twin, opt-1.3b-twin]",
        "models: ['opt-1.3b-twin', 'opt-1.3b-twin'] lists something twice; each may stand once",
    ),
    "duplicate seed": ("seeds: [1, 2, 1]", "seeds: [1, 2, 1] lists something twice"),
    "duplicate size": (
        "studies: {training_size: {sizes: [16, 16]}}",
        "studies/training_size/sizes: [16, 16] lists something twice",
    ),
    "no models": ("models: []", "models: [] is not allowed; must be a list of at least 1, each"),
    "no languages": ("languages: []", "languages: [] is not allowed; must be a list of at least"),
    "no seeds": ("seeds: []", "seeds: [] is not allowed; must be a list of at least 1"),
    "no models of a study": (
        "studies: {tradeoff: {models: []}}",
        "studies/tradeoff/models: [] is not allowed; must be 'all' or a list of at least 1",
    ),
    "all, misspelt": (
        "studies: {tradeoff: {languages: everything}}",
        "studies/tradeoff/languages: 'everything' is not allowed; must be 'all' or a list",
    ),
    "no targets": (
        "studies: {disagreement: {targets: 0}}",
        "studies/disagreement/targets: 0 is not allowed; must be a whole number from 1 to 20",
    ),
    "a name that is a number": (
        "languages: [1]",
        "languages[0]: 1 is not allowed; must be a text",
    ),
    "unknown model": (
        "models: [opt-1.3b-twin, opt-1.4b]",
        "models[1]: unknown model 'opt-1.4b'; known: mistral-7b-v0.3, ",
        "(did you mean 'opt-1.3b'?); or add a row to config/models.tsv",
    ),
    "a study's unknown model": (
        "studies: {model_size: {models: [gpt-5]}}",
        "studies/model_size/models[0]: unknown model 'gpt-5'; known: ",
    ),
    "unknown language": (
        "languages: [L1, L9]",
        f"languages[1]: unknown language 'L9'; known: {LANGUAGES} (did you mean 'L",
        "Add a grammar as config/languages/L9.pcfg",
    ),
    "a study's unknown language": (
        "studies: {deduplication: {languages: [l2]}}",
        f"studies/deduplication/languages[0]: unknown language 'l2'; known: {LANGUAGES}",
    ),
    "unknown counterpart": (
        "datasets: {high_entropy_counterpart: {L2: L1x}}",
        "datasets/high_entropy_counterpart/L2: unknown language 'L1x'",
    ),
    "counterpart of an unknown language": (
        "datasets: {high_entropy_counterpart: {L22: L1}}",
        "datasets/high_entropy_counterpart/L22: unknown language 'L22'",
    ),
    "a path for a language": (
        "languages: [../languages/L1]",
        "languages[0]: unknown language '../languages/L1'; known: ",
        "Add a grammar as config/languages/NAME.pcfg",
    ),
    "a command for a language": (
        "languages: ['a;rm -rf']",
        "languages[0]: unknown language 'a;rm -rf'; known: ",
        "Add a grammar as config/languages/NAME.pcfg",
    ),
    "a substitution for a model": ("models: [$(id)]", "models[0]: unknown model '$(id)'; known: "),
    "a path for a model": ("models: [../x]", "models[0]: unknown model '../x'; known: "),
    "letters of another script": ("languages: [λ1]", "languages[0]: unknown language 'λ1'; known"),
    "an empty name": ("languages: ['']", "languages[0]: unknown language ''; known: "),
    "a name of several lines": (
        'languages: ["L1\\nL2"]',
        "languages[0]: unknown language 'L1\\nL2'; known: ",
    ),
    "no table of models": (
        "models_table: config/nothing.tsv",
        "models_table: no such file: config/nothing.tsv",
    ),
    "a folder for the table of models": (
        "models_table: config",
        "models_table: no such file: config",
    ),
    "no folder of languages": (
        "languages_folder: config/nothing",
        "languages_folder: no such folder: config/nothing",
    ),
    "an empty path": ("models_table: ''", "models_table: '' is not allowed; must be"),
    "offload without ZeRO": (
        "training: {offload_optimizer: cpu}",
        "training/offload_optimizer: cpu needs training/zero_stage to be 1, 2 or 3; it is 0",
    ),
    "unlearning with parted weights": (
        "training: {zero_stage: 3}\nengine: {twin: deepspeed}\n"
        "unlearning: {models: [pythia-1b-twin]}",
        "training/zero_stage: pythia-1b-twin cannot unlearn with ZeRO 3",
    ),
    "own settings of an unknown model": (
        "training_by_model: {llama-2-13: {zero_stage: 3}}",
        "training_by_model/llama-2-13: unknown model 'llama-2-13'; known: ",
        "(did you mean 'llama-2-13b'?)",
    ),
    "own settings of a twin": (
        "training_by_model: {opt-1.3b-twin: {zero_stage: 3}}",
        "training_by_model/opt-1.3b-twin: twins are trained by one process",
    ),
    "an own setting that decides more than memory": (
        "training_by_model: {opt-1.3b: {epochs: 3}}",
        "training_by_model/opt-1.3b: unknown key 'epochs'; known: processes, micro_batch_size",
    ),
    "an own ZeRO stage that is none": (
        "training_by_model: {opt-1.3b: {zero_stage: 5}}",
        "training_by_model/opt-1.3b/zero_stage: 5 is not allowed; must be a whole number from 0",
    ),
    "own offload without ZeRO": (
        "training_by_model: {opt-1.3b: {offload_optimizer: cpu}}",
        "training_by_model/opt-1.3b/offload_optimizer: cpu needs "
        "training_by_model/opt-1.3b/zero_stage to be 1, 2 or 3; it is 0",
    ),
    "utilisation in percent": (
        "hardware: {utilisation: 30}",
        "hardware/utilisation: 30 is not allowed; must be a number above 0 to 1",
    ),
    "two GPUs for twins": (
        "hardware: {twin_gpus: 2}",
        "hardware/twin_gpus: 2 is not allowed; must be a whole number from 0 to 1",
    ),
    "a model that fits nowhere": (
        "models: [llama-2-13b]\nhardware: {gpu_memory_gb: 2}",
        "hardware/gpu_memory_gb: llama-2-13b needs 279 GB on each GPU with ZeRO 0 on 1 GPU, and "
        "hardware/gpu_memory_gb is 2; no settings fit; leave the model out",
    ),
    "a model that is too large": (
        "models: [opt-1.3b-twin, llama-2-13b]\ntraining: {zero_stage: 0}",
        "training/zero_stage: llama-2-13b needs 279 GB on each GPU with ZeRO 0 on 1 GPU, and "
        "hardware/gpu_memory_gb is 80; it fits with training_by_model/llama-2-13b: {zero_stage: ",
        "} or training_by_model/llama-2-13b: {zero_stage: 3, processes: 4}",
    ),
    "a model whose own settings are too few": (
        "models: [llama-2-13b]\ntraining_by_model: {llama-2-13b: {zero_stage: 2, processes: 2}}",
        "training_by_model/llama-2-13b: llama-2-13b needs ",
        " with ZeRO 2 on 2 GPUs, and hardware/gpu_memory_gb is 80",
    ),
    "measuring too many strings at once": (
        "models: [opt-1.3b]\ntraining: {evaluation_batch_size: 4096}",
        "training/evaluation_batch_size: opt-1.3b needs ",
        "it fits with training_by_model/opt-1.3b: {evaluation_batch_size: 512}",
    ),
    "a seed of the exact study that no run has": (
        "studies: {exact: {seeds: [0, 7]}}",
        "studies/exact/seeds[1]: 7 is not among the seeds: 0, 1, 2",
    ),
    "no seeds of the exact study": (
        "studies: {exact: {seeds: []}}",
        "studies/exact/seeds: [] is not allowed; must be a list of at least 1",
    ),
    "a seed of the exact study twice": (
        "studies: {exact: {seeds: [1, 1]}}",
        "studies/exact/seeds: [1, 1] lists something twice",
    ),
    "a number for a model's name": (
        "engine: {1: fleet}",
        "engine: 1 is not allowed; must be a text",
    ),
    "a number for a language's name": (
        "datasets: {high_entropy_counterpart: {1: L1}}",
        "datasets/high_entropy_counterpart: 1 is not allowed; must be a text",
    ),
    "braces in a path": (
        "languages_folder: config/{language}",
        "languages_folder: 'config/{language}' is not allowed; must be a path without braces",
    ),
    "a path that turns the line around": (
        'models_table: "\\u202evst.sledom"',
        "models_table: '\\u202evst.sledom' is not allowed; must be a path without braces",
    ),
    "a path longer than any": (
        f"models_table: {'x' * 300}",
        "models_table: no such file: xxx",
    ),
    "blocks without end": ("models: &a [*a]", "models[0][0]", "is a block within blocks"),
    "billions of values": (
        "models: &a [x, x, x, x, x, x, x, x, x, x]\n"
        "languages: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
        "sizes: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n"
        "seeds: [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]",
        "seeds[",
        "a configuration has at most 10,000 values",
    ),
    "a value of great length": (
        f"training: {{epochs: {'x' * 500}}}",
        "training/epochs: 'xxxxxxxxxxxxxxx",
        "... is not allowed; must be a whole number",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_configuration_is_one_line(mine, what):
    """The file, the key, the value, what is allowed and, where it can, the right spelling."""
    text, start, *parts = WRONG[what]
    path = mine(text)
    said = message(lambda: study(DEFAULT, path))
    assert said.startswith(f"{path}: {start}"), said
    for part in parts:
        assert part in said
    assert len(said) < 800


def missing_keys():
    """Every key that the schema requires, with the block that it stands in."""

    def walk(rules, path):
        for name in rules.get("required", []):
            yield (*path, name)
        for name, inner in rules.get("properties", {}).items():
            yield from walk(inner, (*path, name))

    return list(walk(yaml.safe_load((ROOT / SCHEMA).read_text()), ()))


@pytest.mark.parametrize("path", missing_keys(), ids="/".join)
def test_a_missing_key_is_named(path):
    """Whatever key is left out, it is named with the block that it is missing from."""
    config = yaml.safe_load(Path(DEFAULT).read_text())
    block = config
    for step in path[:-1]:
        block = block[step]
    del block[path[-1]]
    where = "/".join(path[:-1])
    said = message(lambda: study(DEFAULT, config=config))
    assert said == f"{DEFAULT}: {where + ': ' if where else ''}the key {path[-1]!r} is missing"


def test_a_size_larger_than_a_language_is_refused(mine, tmp_path):
    """A finite language cannot give more different strings than it has."""
    (tmp_path / "coin.pcfg").write_text("S -> 'a' [0.5] | 'b' [0.5]\n")
    path = mine(f"languages_folder: {tmp_path}\nlanguages: [coin]\nsizes: [2, 3]\n")
    config = laid_over(yaml.safe_load(Path(DEFAULT).read_text()), yaml.safe_load(path.read_text()))
    config["studies"], config["datasets"]["high_entropy_counterpart"] = {}, {}
    config["unlearning"] = None
    said = message(lambda: study(DEFAULT, path, config=config))
    assert said.startswith(f"{path}: sizes: 3 strings cannot be drawn for training from coin")
    assert "has at most 2" in said
    config["sizes"] = [2]
    assert study(DEFAULT, path, config=config).all_languages == ["coin"]


FILES = {
    # what is wrong: (content, message behind the file's name)
    "a key twice": ("seeds: [1]\nsizes: [2]\nseeds: [3]\n", ":3: the key 'seeds' stands there"),
    "a key twice in a block": ("training:\n  epochs: 1\n  epochs: 2\n", ":3: the key 'epochs'"),
    "not closed": ("models: [a,\n", ":2: "),
    "tabs": ("training:\n\tepochs: 1\n", ":2: found character '\\t'"),
    "a tag that runs code": ("a: !!python/object/apply:os.getcwd []\n", ":1: could not determine"),
    "a list": ("- a\n", ": must hold keys and their values"),
    "empty": ("", ": must hold keys and their values"),
    "bytes": (b"\xff\xfe\x00", ": is not text in YAML: "),
    "too deep": ("a: " + "[" * 2000, ": is not text in YAML: "),
}


@pytest.mark.parametrize("what", FILES)
def test_a_broken_file_is_named_with_its_line(tmp_path, monkeypatch, what):
    """A configuration file that Snakemake would refuse without a name, or take for another."""
    monkeypatch.chdir(tmp_path)
    content, start = FILES[what]
    Path("mine.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message(lambda: check_file("mine.yaml")).startswith(f"mine.yaml{start}")


def test_a_list_as_a_key_is_refused_with_its_line(tmp_path, monkeypatch):
    """YAML allows it, and no configuration has one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("seeds: [0]\n? [1, 2]\n: 3\n")
    assert message(lambda: check_file("mine.yaml")).startswith("mine.yaml:2: ")


def test_a_block_that_is_used_again_is_no_key_twice(tmp_path):
    """The same key in two blocks, a block used by name, and one laid over another, are all fine."""
    path = tmp_path / "mine.yaml"
    path.write_text("a: &a {x: 1, y: 2}\nb: {x: 3}\nc: *a\nd: {<<: *a, x: 4}\n")
    check_file(path)


GRAMMARS = {
    # what is wrong: (grammar, message behind the file's name)
    "white space in a terminal": (
        "S -> 'a b' [0.5] | 'c' [0.5]",
        ": the terminal 'a b' is empty or has white space in it",
    ),
    "sum": ("S -> 'a' [0.5] | 'b' [0.2]", ":1: the rules of S sum to 0.7"),
    "no arrow": ("S 'a'", ":1: missing arrow"),
    "never ends": ("S -> 'a' S S [0.9] | 'b' [0.1]", ":1: "),
    "empty": ("", ": empty file"),
    "bytes": (b"\xff\xfe\x00", ""),
}


@pytest.mark.parametrize("what", GRAMMARS)
def test_a_broken_grammar_is_named_before_any_job_starts(mine, tmp_path, what):
    """The grammar's own file and line stand first: that is where the remedy is."""
    grammar, start = GRAMMARS[what]
    file = tmp_path / "mine.pcfg"
    file.write_bytes(grammar if isinstance(grammar, bytes) else grammar.encode())
    config = laid_over(
        yaml.safe_load(Path(DEFAULT).read_text()),
        {"languages_folder": str(tmp_path), "languages": ["mine"]},
    )
    config["studies"], config["datasets"]["high_entropy_counterpart"] = {}, {}
    config["unlearning"] = None
    assert message(lambda: study(DEFAULT, config=config)).startswith(f"{file}{start}")


def test_a_broken_table_of_models_is_named_before_any_job_starts(mine, tmp_path):
    """The table's own file, line and column."""
    table = Path("config/models.tsv").read_text().replace("5e-6", "fast", 1)
    (tmp_path / "models.tsv").write_text(table)
    said = message(lambda: study(DEFAULT, mine(f"models_table: {tmp_path}/models.tsv")))
    assert said.startswith(f"{tmp_path}/models.tsv:2: learning_rate: 'fast' must be")


def test_a_grammar_with_a_name_of_its_own_is_refused(tmp_path):
    """A name becomes a path and a wildcard, so a file that exists may still have a bad one."""
    (tmp_path / "my language.pcfg").write_text("S -> 'a' [1]\n")
    over = {"languages_folder": str(tmp_path), "languages": ["my language"]}
    config = laid_over(yaml.safe_load(Path(DEFAULT).read_text()), over)
    config["studies"], config["datasets"]["high_entropy_counterpart"] = {}, {}
    config["unlearning"] = None
    said = message(lambda: study(DEFAULT, config=config))
    assert "languages[0]: 'my language' is not a name; allowed are letters, digits" in said
    assert "rename the grammar's file" in said


@pytest.mark.parametrize(
    ("under", "over", "key", "named"),
    [
        ("training: {epochs: 0}", "seeds: [1]", "training/epochs", "under"),
        ("training: {epochs: 5}", "training: {epochs: 0}", "training/epochs", "over"),
        ("training: {epochs: 0}", "training: {batch_size: 4}", "training/epochs", "under"),
        ("seeds: [1]", "training: {epoch: 1}", "training", "over"),
        ("models: [nobody]", "languages: [L1]", "models[0]", "under"),
        ("languages: [L1]", "languages: [L99]", "languages[0]", "over"),
        (
            "training: {zero_stage: 0}",
            "training: {offload_optimizer: cpu}",
            "training/offload_optimizer",
            "over",
        ),
    ],
)
def test_of_two_files_the_one_with_the_value_is_named(tmp_path, under, over, key, named):
    """A user mends the file that the message names, so it must be the one that set the value."""
    files = {"under": tmp_path / "under.yaml", "over": tmp_path / "over.yaml"}
    files["under"].write_text(under)
    files["over"].write_text(over)
    said = message(lambda: study(DEFAULT, files["under"], files["over"]))
    assert said.startswith(f"{files[named]}: {key}: "), said


def test_a_misspelt_key_is_sought_in_the_file_that_has_it(tmp_path):
    """A misspelt key is named with the file that it stands in, not one with the same block."""
    (tmp_path / "under.yaml").write_text("training: {epoch: 1}")
    (tmp_path / "over.yaml").write_text("training: {epochs: 3}")
    said = message(lambda: study(DEFAULT, tmp_path / "under.yaml", tmp_path / "over.yaml"))
    assert said.startswith(f"{tmp_path / 'under.yaml'}: training: unknown key 'epoch'")


def test_every_key_of_the_schema_is_in_the_default_and_documented():
    """The default study shows every key, each key has a description, and no key is unknown."""
    schema, config = (yaml.safe_load((ROOT / file).read_text()) for file in (SCHEMA, DEFAULT))

    def walk(rules, block, path):
        if rules.get("additionalProperties") is not False:
            return
        assert set(rules["properties"]) == set(block), path
        for name, inner in rules["properties"].items():
            assert inner["description"].endswith("."), (*path, name)
            walk(inner, block[name], (*path, name))

    walk(schema, config, ())


@pytest.mark.parametrize(
    ("over", "start"),
    [
        ({"training": {"epochs": 0}}, "training/epochs: 0 is not allowed"),
        ({"seeds": [1, 1]}, "seeds: [1, 1] lists something twice"),
        ({"extra": 1}, "unknown key 'extra'"),
        ({"training": {"epoch": 1}}, "training: unknown key 'epoch'"),
        ({"languages": ["L9"]}, "languages[0]: unknown language 'L9'"),
    ],
)
def test_a_value_of_the_command_line_is_named_so(over, start):
    """The file has another value, which is right: it is the command line that has to change."""
    said = message(lambda: study(DEFAULT, command_line=over))
    assert said.startswith(f"--config: {start}"), said
