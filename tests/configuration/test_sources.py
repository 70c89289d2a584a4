"""Where a value was set: the file, or the command line, that the user has to mend."""

import pytest

from helpers.experiments import DEFAULT, ROOT, experiment, message
from palimpsest.configuration.sources import of_command_line


@pytest.mark.parametrize(
    ("under", "over", "key", "named"),
    [
        ("recipes: {default: {epochs: 0}}", "seeds: [1]", "recipes/default/epochs", "under"),
        (
            "recipes: {default: {epochs: 5}}",
            "recipes: {default: {epochs: 0}}",
            "recipes/default/epochs",
            "over",
        ),
        (
            "recipes: {default: {epochs: 0}}",
            "recipes: {default: {batch_size: 4}}",
            "recipes/default/epochs",
            "under",
        ),
        ("seeds: [1]", "recipes: {default: {epoch: 1}}", "recipes/default", "over"),
        ("models: [nobody]", "languages: [L1]", "models[0]", "under"),
        ("languages: [L1]", "languages: [L99]", "languages[0]", "over"),
        (
            "recipes: {default: {zero_stage: 0}}",
            "recipes: {default: {offload_optimizer: cpu}}",
            "recipes/default/offload_optimizer",
            "over",
        ),
    ],
)
def test_of_two_files_the_one_with_the_value_is_named(tmp_path, under, over, key, named):
    """A user mends the file that the message names, so it must be the one that set the value."""
    files = {"under": tmp_path / "under.yaml", "over": tmp_path / "over.yaml"}
    files["under"].write_text(under)
    files["over"].write_text(over)
    said = message(lambda: experiment(DEFAULT, files["under"], files["over"]))
    assert said.startswith(f"{files[named]}: {key}: "), said


def test_a_misspelt_key_is_sought_in_the_file_that_has_it(tmp_path):
    """A misspelt key is named with its own file, not with another file with the same block."""
    (tmp_path / "under.yaml").write_text("recipes: {default: {epoch: 1}}")
    (tmp_path / "over.yaml").write_text("recipes: {default: {epochs: 3}}")
    said = message(lambda: experiment(DEFAULT, tmp_path / "under.yaml", tmp_path / "over.yaml"))
    assert said.startswith(f"{tmp_path / 'under.yaml'}: recipes/default: unknown key 'epoch'")


@pytest.mark.parametrize(
    ("over", "start"),
    [
        ({"recipes": {"default": {"epochs": 0}}}, "recipes/default/epochs: 0 is not allowed"),
        ({"seeds": [1, 1]}, "seeds: [1, 1] lists a value twice"),
        ({"extra": 1}, "unknown key 'extra'"),
        ({"recipes": {"default": {"epoch": 1}}}, "recipes/default: unknown key 'epoch'"),
        ({"languages": ["L9"]}, "languages[0]: unknown language 'L9'"),
    ],
)
def test_a_value_of_the_command_line_is_named_so(over, start):
    """The file has another value, which is right: the command line has to change."""
    said = message(lambda: experiment(DEFAULT, command_line=over))
    assert said.startswith(f"--config: {start}"), said


def test_values_of_the_command_line_are_read_as_yaml():
    """Snakemake leaves values inside a block as text."""
    given = [
        "recipes={default: {epochs: 3, rate: 1.0e-3}}",
        "unlearning=null",
        "seeds=[0]",
        "models=",
    ]
    read = {"recipes": {"default": {"epochs": 3, "rate": 0.001}}, "unlearning": None, "seeds": [0]}
    assert of_command_line(given) == {**read, "models": None}
    assert of_command_line(["title=[not closed"]) == {"title": "[not closed"}


def test_later_entries_of_the_command_line_override_earlier_ones():
    given = [
        "recipes={default: {epochs: 3, batch_size: 8}}",
        "recipes={default: {epochs: 4}}",
        "seeds=[1]",
        "seeds=[2]",
    ]
    assert of_command_line(given) == {
        "recipes": {"default": {"epochs": 4, "batch_size": 8}},
        "seeds": [2],
    }


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ('title="Report #1"', "Report #1"),
        ('title="a: b"', "a: b"),
        ("title='2020'", "2020"),
        ("title=x=y", "x=y"),
        ("title=Report #1", "Report #1"),
        ("title= [1", " [1"),
    ],
)
def test_a_text_in_quotes_is_a_text(entry, value):
    assert of_command_line([entry]) == {"title": value}
    assert of_command_line(['languages=["010"]']) == {"languages": ["010"]}


def test_a_value_of_the_default_is_mended_in_the_file_that_the_user_gave(tmp_path):
    """The shipped file may be installed, and is the same for all studies."""
    given = tmp_path / "mine.yaml"
    given.write_text("title: mine")
    default = tmp_path / "default.yaml"
    text = (ROOT / "config/config.yaml").read_text()
    default.write_text(text.replace("predict_end: false", "predict_end: 3"))
    said = message(lambda: experiment(default, given))
    wrong = "datasets/predict_end: 3 is not allowed; must be true or false"
    assert said == f"{given}: {wrong}; the value is that of {default}: set the key in {given}"
    alone = message(lambda: experiment(default))
    assert alone.startswith(f"{default}: {wrong}")
    assert "the value is that of" not in alone
