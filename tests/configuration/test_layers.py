"""What a later file changes in the values of earlier ones: blocks, entries, names of the grid."""

import re
from pathlib import Path

import pytest

from helpers.experiments import DEFAULT, configuration, experiment, laid_over, message
from palimpsest.memorisation.studies import STUDIES, requested
from palimpsest.sections import NAMES


@pytest.fixture
def files(tmp_path):
    """A function that writes files to lay over each other, and gives their paths."""

    def write(*texts):
        paths = [tmp_path / f"{place}.yaml" for place in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        return paths

    return write


def studies_of(whole):
    return {study.name for study in requested(whole.settings)}


def models_of(whole):
    return {runs.model for runs in whole.requests}


ALONE = "unlearning: null\nprofiles: null\ndensity: null\ninformation: null\n"

# Left out with null


@pytest.mark.parametrize("name", NAMES)
def test_a_block_that_is_opened_again_has_its_defaults(files, name):
    """What the last file does not say is as in the default, and not missing."""
    default = configuration(DEFAULT)[name]
    key, value = next((k, v) for k, v in default.items() if isinstance(v, int | float))
    again = experiment(DEFAULT, *files(f"{name}: null", f"{name}: {{{key}: {value}}}"))
    assert again.config[name] == default


def test_a_study_that_is_opened_again_has_its_defaults(files):
    shut, again = files(
        "memorisation: {studies: {exact: null}}", "memorisation: {studies: {exact: {size: 32}}}"
    )
    default = configuration(DEFAULT)["memorisation"]["studies"]["exact"]
    assert "exact" not in studies_of(experiment(DEFAULT, shut))
    found = experiment(DEFAULT, shut, again).config["memorisation"]["studies"]["exact"]
    assert found == {**default, "size": 32}


@pytest.mark.parametrize("name", ["density", "unlearning"])
def test_a_block_may_be_opened_again_without_a_key(files, name):
    """Snakemake itself leaves null where an empty block is laid over it."""
    again = experiment(DEFAULT, *files(f"{name}: null", f"{name}: {{}}"))
    assert again.config[name] == experiment(DEFAULT).config[name]
    shut = experiment(DEFAULT, *files(f"{name}: null", f"{name}: {{}}", f"{name}: null"))
    assert shut.config[name] is None


def test_a_folder_of_ones_own_is_named_where_the_defaults_need_another(files, tmp_path):
    """The default's value is right, and the file that does not go with it is the user's."""
    (tmp_path / "dyck.pcfg").write_text("S -> '1' S '2' [0.4] | '3' [0.6]\n")
    (path,) = files(f"languages_folder: {tmp_path}\nlanguages: [dyck]")
    said = message(lambda: experiment(DEFAULT, path))
    start = f"{path}: languages_folder: does not go with {DEFAULT}: "
    assert re.fullmatch(
        rf"{re.escape(start)}(\w+)(/[\w/]+)\[\d\]: unknown language '([\w-]+)'; known: dyck. Add a "
        rf"grammar as {re.escape(str(tmp_path))}/\3.pcfg, a text as .txt, or records of your "
        r"own in the block corpora; or set \1\2, or "
        r"\1: null as well",
        said,
    )
    path.write_text(f"languages_folder: {tmp_path}\nlanguages: [Dyck]")
    assert message(lambda: experiment(DEFAULT, path)).startswith(f"{path}: languages[0]: unknown")


def test_a_table_of_ones_own_is_named_where_the_defaults_need_other_models(files, tmp_path):
    header, *rows = Path("config/models.tsv").read_text().splitlines(keepends=True)
    table = tmp_path / "models.tsv"
    table.write_text(header + "".join(row for row in rows if row.startswith("opt-1.3b\t")))
    (path,) = files(f"models_table: {table}\nmodels: [opt-1.3b-twin]")
    said = message(lambda: experiment(DEFAULT, path))
    assert said.startswith(f"{path}: models_table: does not go with {DEFAULT}: ")


def test_an_opened_block_has_the_defaults_and_not_what_null_took_out(files):
    """And an error about a default names the user's last file, and that of the default."""
    before, shut, again = files(
        "unlearning: {n: 8, size: 0}", "unlearning: null", "unlearning: {pool: 300}"
    )
    found = experiment(DEFAULT, before, shut, again).config["unlearning"]
    assert found == {**configuration(DEFAULT)["unlearning"], "pool": 300}
    again.write_text("unlearning: {pool: 300, setups: [bootstrap], search: {seeds: [1]}}")
    said = message(lambda: experiment(DEFAULT, before, shut, again))
    assert said.startswith(f"{again}: unlearning/search/seeds: ")
    again.write_text("unlearning: {save_models: 20, n: 10}")
    before.write_text("unlearning: {save_models: 1}")
    said = message(lambda: experiment(DEFAULT, before, shut, again))
    assert said.startswith(f"{again}: unlearning/save_models: 20 models are more")
    again.write_text("unlearning: {n: 400}")
    before.write_text("unlearning: {pool: 1000, setups: [bootstrap]}")
    shut.write_text("unlearning: null")
    again.write_text("unlearning: {n: 400, setups: [bootstrap]}")
    said = message(lambda: experiment(DEFAULT, before, shut, again))
    assert said.startswith(f"{again}: unlearning/pool: 256 models are fewer than unlearning/n")
    assert said.endswith(f"the value is that of {DEFAULT}: set the key in {again}")


def test_null_leaves_all_studies_out(files):
    """And an empty block changes nothing, because it says nothing."""
    assert studies_of(experiment(DEFAULT, *files("memorisation: {studies: null}"))) == set()
    empty = experiment(DEFAULT, *files("memorisation: {studies: {}}"))
    assert studies_of(empty) == studies_of(experiment(DEFAULT))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("profiles: {panels: null}", "profiles/panels"),
        ("density: {texts: null}", "density/texts"),
        ("training_by_model: null", "training_by_model"),
        ("training_by_model: {opt-1.3b: null}", "training_by_model"),
        ("datasets: {high_entropy_counterpart: null}", "datasets/high_entropy_counterpart"),
    ],
)
def test_null_takes_out_all_entries_or_one(files, text, key):
    found = experiment(DEFAULT, *files(text)).config
    for step in key.split("/"):
        found = found[step]
    assert found == {}


def test_null_takes_out_what_an_earlier_file_put_in(files):
    pairs = files("datasets: {high_entropy_counterpart: {L2: null}}")
    found = experiment(DEFAULT, *pairs).config["datasets"]["high_entropy_counterpart"]
    assert found == {"L4": "L3", "L4-skewed": "L3"}
    kernels = experiment(DEFAULT, *files("density: {kernels: {exponential: null}}"))
    assert list(kernels.config["density"]["kernels"]) == ["gaussian"]
    engine = files("engine: {opt-1.3b-twin: deepspeed}", "engine: {opt-1.3b-twin: null}")
    assert experiment(DEFAULT, *engine).config["engine"] == configuration(DEFAULT)["engine"]


def test_null_is_no_value_of_a_required_key(files):
    (path,) = files("engine: {twin: null}")
    said = message(lambda: experiment(DEFAULT, path))
    assert said.startswith(f"{path}: engine/twin: null is not allowed")


# Only some studies


def test_only_the_named_studies_run(files):
    (path,) = files("memorisation: {studies: {only: [tradeoff, bits]}}")
    some = experiment(DEFAULT, path)
    assert studies_of(some) == {"tradeoff", "bits"}
    tables = {p.split("/")[2] for p in some.outputs["memorisation"] if "/studies/" in p}
    assert tables == {"tradeoff", "bits"}
    assert studies_of(experiment(DEFAULT, *files("memorisation: {studies: {only: []}}"))) == set()
    both = experiment(DEFAULT, path, command_line={"memorisation": {"studies": {"only": None}}})
    assert studies_of(both) == studies_of(experiment(DEFAULT))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("only: [trade_off]", "only[0]: 'trade_off' is not allowed; must be one of"),
        ("only: tradeoff", "only: 'tradeoff' is not allowed; must be null, or a list of names"),
        ("only: [adapters]", "only[0]: the study adapters has no settings here"),
        ("{only: [exact], exact: null}", "only[0]: the study exact has no settings here"),
    ],
)
def test_a_study_that_cannot_be_chosen_is_refused(files, text, said):
    inner = text if text.startswith("{") else f"{{{text}}}"
    (path,) = files(f"memorisation: {{studies: {inner}}}")
    found = message(lambda: experiment(DEFAULT, path))
    assert found.startswith(f"{path}: memorisation/studies/{said}")


# The grid of a later file


def test_default_studies_add_no_models_to_a_grid_of_ones_own(files):
    """As many of the grid as the study had; what is in the grid already stays."""
    (path,) = files(ALONE + "models: [pythia-1b-twin, opt-6.7b-twin]\nlanguages: [L5]\n")
    whole = experiment(DEFAULT, path)
    assert models_of(whole) == {"pythia-1b-twin", "opt-6.7b-twin"}
    assert whole.languages == ["L5"]
    models = {name: study.models(whole.settings) for name, study in STUDIES.items()}
    assert models["disagreement"] == models["exact"] == ["pythia-1b-twin"]
    assert models["tradeoff"] == models["extraction"] == ["pythia-1b-twin", "opt-6.7b-twin"]
    assert models["model_size"] == ["opt-6.7b-twin", "pythia-1b-twin"]
    (line, *more) = [note for note in whole.notes if "/models" in note]
    assert line.startswith(f"{path}: models: memorisation/studies/")
    assert not [note for note in more if "left out" in note]


def test_a_study_of_the_same_file_keeps_its_models(files):
    """Whoever names both the grid and a study's models wants both."""
    study = "memorisation: {studies: {exact: {models: [opt-1.3b-twin]}}}\n"
    whole = experiment(DEFAULT, *files(f"{ALONE}models: [pythia-1b-twin]\n{study}"))
    assert STUDIES["exact"].models(whole.settings) == ["opt-1.3b-twin"]
    earlier = experiment(DEFAULT, *files(study, f"{ALONE}models: [pythia-1b-twin]\n"))
    assert STUDIES["exact"].models(earlier.settings) == ["pythia-1b-twin"]


def test_retraining_is_left_out_of_a_grid_of_full_models(files):
    """A full model is out of reach for it, and nobody asked for its twin."""
    (path,) = files(ALONE + "models: [opt-1.3b]\nrecipes: {default: {evaluation_batch_size: 16}}\n")
    whole = experiment(DEFAULT, path)
    assert "exact" not in studies_of(whole)
    assert models_of(whole) == {"opt-1.3b"}
    assert (
        f"{path}: models: exact is left out, because this list has no name that ends"
        in " ".join(whole.notes)
    )


def test_some_of_the_seeds_are_some_of_the_new_seeds(files):
    whole = experiment(DEFAULT, *files("seeds: [0]"))
    assert whole.refused == {}
    assert whole.config["memorisation"]["studies"]["exact"]["seeds"] == [0]
    assert whole.config["profiles"]["exact"]["seeds"] == [0]
    assert whole.config["information"]["seeds"] == [0]
    other = experiment(DEFAULT, *files("seeds: [7, 1, 8, 9, 10, 11]"))
    assert other.config["information"]["seeds"] == [1, 7, 8, 9, 10]
    ladder = experiment(DEFAULT, *files("profiles: {models: [opt-1.3b-twin]}"))
    assert ladder.config["profiles"]["exact"]["models"] == ["opt-1.3b-twin"]


@pytest.mark.parametrize(
    "name",
    ["full", "power", "paper", "tour", "one-gpu", "pretrained", "pretrained-twins", "encoders"],
)
def test_a_shipped_file_names_all_that_it_means(name):
    """So nothing in it follows from the default, and it reads as it runs.

    Only a key that it sets in the recipe `default` holds for the default's other recipes, too.
    """
    path = f"config/{name}.yaml"
    whole = experiment(DEFAULT, path)
    assert whole.notes == []
    written = configuration(DEFAULT, path)
    assert {**whole.config, "recipes": written["recipes"]} == written


def test_a_folder_of_ones_own_needs_no_language_of_the_default(tmp_path, files):
    """With one grammar, without a word on the pairs of languages that it does not have."""
    (tmp_path / "mine").mkdir()
    Path(tmp_path / "mine/mini.pcfg").write_text(
        "S -> A A A A A A A A A A [1.0]\nA -> 'a' [0.5] | 'b' [0.5]\n"
    )
    (path,) = files(f"languages_folder: {tmp_path}/mine\nlanguages: [mini]\nsizes: [64]\n{ALONE}")
    studies = {"memorisation": {"studies": {"only": ["deduplication", "disagreement"]}}}
    whole = experiment(DEFAULT, path, command_line=studies)
    assert whole.languages == ["mini"]
    assert whole.config["datasets"]["high_entropy_counterpart"] == {}
    own = laid_over(studies, {"datasets": {"high_entropy_counterpart": {"mini": "maxi"}}})
    said = message(lambda: experiment(DEFAULT, path, command_line=own))
    assert said.startswith("--config: datasets/high_entropy_counterpart/mini: unknown language")


# Which claims are tested


@pytest.mark.parametrize(
    ("later", "chosen"),
    [
        ("title: Mine", True),
        ("hardware: {gpus: 4}", True),
        ("seeds: [7, 8]", False),
        ("unlearning: {n: 16}", False),
        ("memorisation: null", False),
        ("claims: null", False),
        ("seeds: [7, 8]\nclaims: {least_power: 0.5}", True),
    ],
)
def test_an_experiment_that_a_later_file_changes_tests_all_claims(files, later, chosen):
    """Unless the file chooses claims: the powers were found in the default experiment."""
    assert bool(experiment(DEFAULT, *files(later)).config["claims"]) == chosen


def test_a_table_of_powers_that_is_not_there_is_refused(files):
    given = files("claims: {power_table: none.tsv}")
    said = "claims/power_table: no such file: none.tsv; give such a table, or claims: null"
    assert said in message(lambda: experiment(DEFAULT, *given))
