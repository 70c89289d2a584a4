"""Models that are only asked: where they come from."""

import pytest
from transformers import AutoTokenizer

from helpers.experiments import DEFAULT, ROOT, experiment, message
from helpers.tiny_language_models import write
from palimpsest.configuration.checks import id_of
from palimpsest.errors import UserError
from palimpsest.models.checkpoints import opened

PINNED = "EleutherAI/pythia-1b-deduped@7199d8fc61a6d565cd1f3c62bf11525b563e13b2"


def test_a_name_of_the_table_stands_for_its_id_and_its_revision(monkeypatch):
    monkeypatch.chdir(ROOT)
    settings = experiment(DEFAULT).settings
    assert id_of(settings, "pythia-1b-deduped") == PINNED
    assert id_of(settings, "pythia-1b") == "EleutherAI/pythia-1b"
    assert id_of(settings, "gemma-3-270m") == "results/pretrained/gemma-3-270m"
    assert id_of(settings, "a/folder") == "a/folder"


@pytest.mark.parametrize(
    ("model", "source", "revision"),
    [
        (PINNED, *PINNED.split("@")),
        ("owner/name", "owner/name", None),
        ("./my@folder", "./my@folder", None),
    ],
)
def test_a_revision_follows_the_name(monkeypatch, model, source, revision):
    asked = []

    def no_network(name, **options):
        asked.append((name, options["revision"]))
        raise OSError("no network")

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", no_network)
    with pytest.raises(UserError, match="cannot be loaded"):
        opened(model)
    assert asked == [(source, revision)]


def test_a_folder_without_a_tokenizer_is_refused_in_one_line(tmp_path):
    """It names the files that are looked for, and what saves them."""
    folder = write(tmp_path / "mine")
    (tmp_path / "mine/tokenizer.json").unlink()
    text = message(lambda: opened(folder))
    assert text.startswith(f"{folder}: cannot be loaded: it has no tokenizer (tokenizer.json, or a")
    assert "a vocabulary with tokenizer_config.json" in text
    assert text.endswith("as model.save_pretrained and tokenizer.save_pretrained leave them")
