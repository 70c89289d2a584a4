"""Bad input gets one clear line and exit status 1; nothing starts and nothing is overwritten."""

import re

import pytest

from helpers.edits import edited
from helpers.projects import TOUR, refused


def write(project, name: str, text: str) -> None:
    (project.folder / name).parent.mkdir(parents=True, exist_ok=True)
    (project.folder / name).write_text(text)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "recipes={default: {epochs: ten}}",
            "recipes/default/epochs: 'ten' is not allowed; must be a whole number",
        ),
        (
            "recipes={default: {epoch: 3}}",
            "recipes/default: unknown key 'epoch'; .*did you mean 'epochs'",
        ),
        (
            "languages=[L1, L9]",
            r"languages\[1\]: unknown language 'L9'; known: L1, .*Add a grammar",
        ),
        (
            "models=[pythia-1b-twins]",
            "unknown model 'pythia-1b-twins'.*did you mean 'pythia-1b-twin'",
        ),
        (
            "memorisation={studies: {tradeoff: {models: [gpt-5-twin], languages: all, size: 16}}}",
            r"memorisation/studies/tradeoff/models\[0\]: unknown model 'gpt-5-twin'",
        ),
        ("models_table=nowhere.tsv", "models_table: no such file: nowhere.tsv"),
        (
            "unlearning={methods: [scrub, finetune]}",
            r"unlearning/methods\[0\]: unknown method 'scrub'; known: finetune, gradient-ascent\. "
            "Add it to unlearning/own_methods, or to small_methods.yaml",
        ),
        ("unlearning={methods: [none, finetune]}", "unlearning/methods.0.: 'none' is always there"),
        (
            "unlearning={search: {seeds: [0]}}",
            "unlearning/search/seeds: seed 0 of L1 is in the evaluation, too",
        ),
        ("unlearning={table: nowhere.yaml}", "unlearning/table: no such file: nowhere.yaml"),
        ("unlearning={forget: nowhere.txt}", "unlearning/forget: no such file: nowhere.txt"),
        ("unlearning={pool: 3}", "unlearning/pool: 3 is not allowed"),
        (
            "unlearning={n: 5, setups: [bootstrap]}",
            "unlearning/pool: 4 models are fewer than unlearning/n, which is 5",
        ),
        ("unlearning={delta: 1e-6}", "unlearning/delta: '1e-6' .*reads it as text; write 1.0e-06"),
        (
            "unlearning={models: [gpt-5-twin]}",
            r"unlearning/models\[0\]: unknown model 'gpt-5-twin'",
        ),
        ("unlearning={languages: [L9]}", r"unlearning/languages\[0\]: unknown language 'L9'"),
    ],
)
def test_configuration(project, setting, message):
    """A wrong value names file, key, value, what is allowed and the nearest right spelling."""
    line = refused(project.snakemake("--config", setting))
    assert re.search(message, line)
    assert not (project.folder / "results").exists()
    assert not (project.folder / "logs").exists()


def test_configuration_file_is_named(project):
    """The message names the file that has the wrong value."""
    edited(TOUR, "sizes: [16]", "sizes: [-16]")(project.folder)
    assert f"{TOUR}: sizes[0]: -16 is not allowed" in refused(project.snakemake())


def test_grammar(project):
    """A broken grammar is refused with its file and line before any job starts."""
    write(project, "config/languages/L1.pcfg", "S -> A [0.6] | 'b' [0.3]\nA -> 'a' [1]\n")
    line = refused(project.snakemake())
    assert "L1.pcfg:1: the rules of S sum to 0.9" in line
    assert not (project.folder / "results").exists()


def test_models_table(project):
    """A broken table of models is refused with its file, line and column."""
    path = project.folder / "config/models.tsv"
    path.write_text(path.read_text().replace("5e-06", "fast").replace("5e-6", "fast"))
    assert re.search(r"models.tsv:2: learning_rate: 'fast' must be", refused(project.snakemake()))


def test_train_size_beyond_the_language(project):
    """A training size larger than the language can fill is refused before any job starts."""
    write(project, "config/languages/tiny.pcfg", "S -> 'a' [0.5] | 'b' [0.5]\n")
    line = refused(project.snakemake("--config", "languages=[tiny]"))
    assert f"{TOUR}: sizes: 16 strings cannot be drawn" in line
    assert "at most 2" in line


def test_tokenizer_that_splits_a_terminal(project, checkpoint):
    """A model whose tokenizer splits a terminal is refused by name, before any job starts."""
    checkpoint(project.folder / "local", terminals="12345678")
    row = "tiny\tLlama\tlocal\tmain\tllama\t1000\t1\t32\t300\t0.001\t32\t1\t2\t0.003\n"
    table = project.folder / "config/models.tsv"
    table.write_text(table.read_text() + row)
    line = refused(project.snakemake("--config", "models=[tiny]"))
    assert "tiny: its tokenizer splits the terminal '9'" in line
    assert not (project.folder / "results").exists()


def test_full_model_from_a_local_folder(project, checkpoint):
    """A checkpoint on disk is trained as it is, by two processes, and the manifest says so."""
    checkpoint(project.folder / "local", terminals="123456789")
    row = "tiny\tLlama\tlocal\tmain\tllama\t1000\t1\t32\t300\t0.001\t32\t1\t2\t0.003\n"
    table = project.folder / "config/models.tsv"
    table.write_text(table.read_text() + row)
    folder = project.folder / "results/runs/base/default/tiny/L1/n16-seed0"
    settings = "recipes={default: {processes: 2, zero_stage: 2, micro_batch_size: 2}}"
    done = project.snakemake(
        str(folder.relative_to(project.folder) / "trace.parquet"), "--config", settings
    )
    assert done.returncode == 0, done.stdout
    manifest = (folder / "manifest.json").read_text()
    assert '"scale": "full"' in manifest
    assert '"processes": 2' in manifest
