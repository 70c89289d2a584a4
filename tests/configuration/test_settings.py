"""Settings: what a configuration says of its models and languages."""

from helpers.experiments import DEFAULT, PAPER, experiment, laid_over, message
from palimpsest.configuration.settings import Settings
from palimpsest.planning.fit import does_not_fit
from palimpsest.planning.plan import Planner


def test_engines(mine):
    """The engine of a model's name has priority over the engine of its scale."""
    changed = experiment(DEFAULT, mine("engine: {opt-1.3b-twin: deepspeed}")).settings
    assert changed.engine("opt-1.3b-twin") == "deepspeed"
    assert changed.engine("opt-2.7b-twin") == "fleet"
    assert changed.engine("opt-1.3b") == "deepspeed"


def test_a_model_may_be_trained_otherwise(mine):
    """The model's own keys override the keys of `training`; other models keep `training`."""
    text = "models: [opt-1.3b, opt-2.7b]\ntraining: {zero_stage: 2}\n"
    changed = experiment(DEFAULT, mine(text + "training_by_model: {opt-2.7b: {processes: 4}}"))
    every = {**changed.config["training"], "epochs": 50, "evaluate_every": 1}
    plain = {key: value for key, value in every.items() if not key.startswith("adapter")}
    assert changed.settings.training("opt-1.3b") == plain
    assert changed.settings.training("opt-2.7b") == {**plain, "processes": 4}
    assert changed.planner.gpus("opt-2.7b") == 4


def test_the_keys_of_adapters_are_only_there_with_an_adapter(mine):
    """So a change of them reruns no training of all weights; targets are one word, for a flag."""
    text = "models: [opt-1.3b, opt-2.7b]\ntraining: {zero_stage: 2, adapter_rank: 8}\n"
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


def test_a_training_size_may_have_epochs_of_its_own(mine):
    """Sizes that are not named have the epochs of `other`; a plain number is for every size."""
    changed = experiment(DEFAULT, mine("training: {epochs: {n16: 40, other: 10}}")).settings
    epochs = [changed.training("opt-1.3b-twin", size)["epochs"] for size in (16, 64, None)]
    assert epochs == [40, 10, 10]
    plain = experiment(DEFAULT, mine("training: {epochs: 7}")).settings
    assert plain.training("opt-1.3b", 256)["epochs"] == 7


def test_a_training_size_may_be_measured_less_often(mine):
    """A plain number is for every size, and gives the recipe that it always gave."""
    changed = experiment(DEFAULT, mine("training: {evaluate_every: {n16: 5, other: 2}}"))
    every = [changed.settings.training("opt-1.3b", n)["evaluate_every"] for n in (16, 64, None)]
    assert every == [5, 2, 2]
    plain = experiment(DEFAULT, mine("training: {evaluate_every: 1}")).settings
    default = experiment(DEFAULT).settings
    for size in (16, 256, 240):
        recipe = {**default.training("opt-1.3b-twin", size), "evaluate_every": 1}
        assert plain.training("opt-1.3b-twin", size) == recipe
    assert default.training("opt-1.3b-twin", 240)["evaluate_every"] == 5


def test_the_plan_knows_the_epochs_of_each_size(mine):
    """A run of twice the epochs takes about twice the time."""
    text = "training: {epochs: {n64: 20, other: 10}}"
    planner = experiment(DEFAULT, mine(text)).planner
    same = experiment(DEFAULT, mine("training: {epochs: 20}")).planner
    of_64, of_16 = (planner.duration("opt-1.3b-twin", "L1", size) for size in (64, 16))
    assert of_64 == same.duration("opt-1.3b-twin", "L1", 64)
    assert of_16.seconds < 0.6 * same.duration("opt-1.3b-twin", "L1", 16).seconds


def test_a_twin_is_trained_by_one_process(mine):
    """Full models may take several processes."""
    text = "training: {zero_stage: 2, processes: 4, offload_optimizer: cpu}"
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
