"""Settings: what a configuration says of its models and languages."""

from helpers.experiments import DEFAULT, PAPER, experiment, laid_over, message
from palimpsest import tables
from palimpsest.configuration import settings as settings_of_a_configuration
from palimpsest.configuration.checks import recipes_named
from palimpsest.configuration.settings import GRID, Settings
from palimpsest.corpora import read_records_corpus
from palimpsest.corpora.kinds import CORPUS
from palimpsest.corpora.records import corpus_table
from palimpsest.planning.fit import does_not_fit
from palimpsest.planning.plan import Planner


def test_engines(mine):
    """The engine of a model's name has priority over the engine of its scale."""
    changed = experiment(DEFAULT, mine("engine: {opt-1.3b-twin: deepspeed}")).settings
    assert changed.engine("opt-1.3b-twin") == "deepspeed"
    assert changed.engine("opt-2.7b-twin") == "fleet"
    assert changed.engine("opt-1.3b") == "deepspeed"


def test_a_model_may_be_trained_otherwise(mine):
    """The model's own keys override those of every recipe; other models keep the recipe."""
    text = "models: [opt-1.3b, opt-2.7b]\nrecipes: {default: {zero_stage: 2}}\n"
    changed = experiment(DEFAULT, mine(text + "training_by_model: {opt-2.7b: {processes: 4}}"))
    every = changed.config["recipes"]["default"]
    plain = {key: value for key, value in every.items() if not key.startswith("adapter")}
    assert changed.settings.training("opt-1.3b") == plain
    assert changed.settings.training("opt-2.7b") == {**plain, "processes": 4}
    assert changed.planner.gpus("opt-2.7b") == 4


def test_the_keys_of_adapters_are_only_there_with_an_adapter(mine):
    """So a change of them reruns no training of all weights; targets are one word, for a flag."""
    text = "models: [opt-1.3b, opt-2.7b]\nrecipes: {default: {zero_stage: 2, adapter_rank: 8}}\n"
    own = "{adapter: lora, adapter_targets: [q_proj, fc1]}"
    settings = experiment(DEFAULT, mine(f"{text}training_by_model: {{opt-2.7b: {own}}}")).settings
    plain, adapted = settings.training("opt-1.3b"), settings.training("opt-2.7b")
    assert adapted.keys() - plain.keys() == {
        "adapter",
        "adapter_rank",
        "adapter_alpha",
        "adapter_dropout",
        "adapter_targets",
        "adapter_rate",
    }
    assert (adapted["adapter"], adapted["adapter_rank"]) == ("lora", 8)
    assert adapted["adapter_targets"] == "q_proj,fc1"


def test_a_users_records_are_read_once_and_by_no_job(tmp_path, monkeypatch):
    """All blocks that are checked share a corpus; a job has the table that was made of the file."""
    (tmp_path / "mine.txt").write_text("".join(f"text {n}\n" for n in range(20)))
    read, made = [], str(tmp_path / "{language}.parquet")

    def counted(file, columns):
        read.append(file)
        return read_records_corpus(file, columns)

    monkeypatch.setattr(settings_of_a_configuration, "read_records_corpus", counted)
    monkeypatch.setattr(settings_of_a_configuration, "CORPUS_OF_RECORDS", made)
    given = {
        "corpora": {"mine": str(tmp_path / "mine.txt")},
        "records": {"corpora": ["mine"], "models": ["llama-3.2-1b-twin"]},
    }

    def strings(is_job):
        read.clear()
        asked = experiment(DEFAULT, command_line=given, targets=["records"], is_job=is_job)
        assert asked.requests
        return asked.settings.corpus("mine").strings

    expected = strings(is_job=False)
    assert len(read) == 1
    assert strings(is_job=True) == expected
    assert len(read) == 1  # the job that makes the table
    tables.write(made.format(language="mine"), corpus_table(given["corpora"]["mine"], {}), CORPUS)
    assert strings(is_job=True) == expected
    assert not read
    # The main process does not trust the table: the file may be another one by now.
    (tmp_path / "mine.txt").write_text("".join(f"other {n}\n" for n in range(20)))
    assert strings(is_job=False) != expected
    assert len(read) == 1
    (tmp_path / "mine.parquet").write_text("no table")
    assert strings(is_job=True) == strings(is_job=False)


def test_a_recipe_has_the_keys_that_differ(mine):
    """All its other values are those of `default`; any key may differ."""
    text = "recipes: {mine: {epochs: 7, batch_size: 4, weight_decay: 0.1, processes: 2}}"
    settings = experiment(DEFAULT, mine(f"{text}\nrecipe: mine")).settings
    usual, own = settings.training("opt-1.3b"), settings.training("opt-1.3b", "mine")
    differ = {key for key in usual if own[key] != usual[key]}
    assert differ == {"epochs", "batch_size", "weight_decay", "processes"}
    assert settings.training("opt-1.3b-twin", "mine")["processes"] == 1


def test_a_later_files_default_recipe_beats_earlier_recipes(mine):
    """It is the later word; what the later file itself says of a recipe is kept."""
    changed = experiment(DEFAULT, mine("recipes: {default: {epochs: 7}}")).settings
    assert changed.recipe("shortcuts")["epochs"] == changed.recipe("short")["epochs"] == 7
    assert changed.recipe("shortcuts")["evaluate_every"] == 90
    text = "recipes: {default: {epochs: 7}, short: {epochs: 3}}"
    both = experiment(DEFAULT, mine(text)).settings
    assert (both.recipe("short")["epochs"], both.recipe("leakage")["epochs"]) == (3, 7)


def test_a_users_own_recipe_that_a_later_default_changes_is_a_note(mine, tmp_path):
    later = tmp_path / "later.yaml"
    later.write_text("recipes: {default: {epochs: 7}}")
    own = mine("recipes: {short: {epochs: 3, batch_size: 4}}")
    whole = experiment(DEFAULT, own, later)
    assert whole.settings.recipe("short")["epochs"] == 7
    assert whole.settings.recipe("short")["batch_size"] == 4
    assert whole.notes == [
        f"{later}: recipes/default/epochs holds for the recipe short, too, because only the "
        f"earlier {own} sets recipes/short/epochs"
    ]


def test_a_recipe_that_nothing_names_is_a_note(mine):
    """A recipe of the first file is none: a section that is left out may name it."""
    whole = experiment(DEFAULT, mine("recipes: {lonely: {epochs: 7}}\ninformation: null"))
    (note,) = whole.notes
    assert "recipes/lonely: nothing names this recipe" in note
    assert not experiment(DEFAULT, mine("recipes: {own: {epochs: 7}}\nrecipe: own")).notes


def test_every_recipe_of_the_default_is_named():
    whole = experiment(DEFAULT)
    named = {name for _, name in recipes_named(whole.config)}
    assert named - {GRID} == set(whole.config["recipes"])


def test_the_plan_knows_the_epochs_of_each_recipe(mine):
    """A run of twice the epochs takes about twice the time."""
    text = "recipes: {default: {epochs: 20}, half: {epochs: 10}}\nrecipe: half"
    planner = experiment(DEFAULT, mine(text)).planner
    named = "opt-1.3b-twin", "L1", 64
    assert planner.duration(*named, "half").seconds < 0.6 * planner.duration(*named).seconds
    rows = [row for row in experiment(DEFAULT, mine(text)).plan if row["variant"] == "base"]
    assert {row["recipe"] for row in rows} == {"default", "half"}


def test_a_twin_is_trained_by_one_process(mine):
    """Full models may take several processes."""
    text = "recipes: {default: {zero_stage: 2, processes: 4, offload_optimizer: cpu}}"
    training = experiment(DEFAULT, mine(text)).settings.training("opt-1.3b-twin")
    assert (training["processes"], training["offload_optimizer"]) == (1, "none")
    assert training["zero_stage"] == 2


def test_the_papers_models_fit_because_some_are_offloaded():
    """Models of 7B parameters and more are offloaded; without this, each is refused."""
    paper = experiment(DEFAULT, PAPER)
    models, training = paper.settings.models, paper.settings.training
    offloaded = {m for m in models if training(m)["offload_optimizer"] == "cpu"}
    assert offloaded == {name for name, row in models.items() if row.parameters > 6e9}
    without = {"training_by_model": {m: {"offload_optimizer": "none"} for m in offloaded}}
    settings = Settings(laid_over(paper.config, without))
    mistakes = list(does_not_fit(settings, Planner(settings), paper.single_runs))
    assert {mistake.key.split("/")[1] for mistake in mistakes} == offloaded
    for mistake in mistakes:
        model = mistake.key.split("/")[1]
        assert f"training_by_model/{model}: {{offload_optimizer: cpu}}" in mistake.text
    said = message(lambda: experiment(DEFAULT, PAPER, command_line=without))
    assert said.startswith("--config: training_by_model/")


def test_the_counterpart_of_a_language():
    """Only some languages have one; a corpus is read once."""
    settings = experiment(DEFAULT).settings
    assert settings.counterpart("L2") == "L1"
    assert settings.counterpart("L1") is None
    assert settings.corpus_file("L2") == "config/languages/L2.pcfg"
    assert settings.corpus("L2") is settings.corpus("L2")
