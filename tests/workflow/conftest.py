"""Projects for the tests of the workflow: fresh, finished, or a copy to be damaged."""

import fcntl
import shutil
from pathlib import Path

import pytest

from helpers.projects import Project


@pytest.fixture
def project(tmp_path) -> Project:
    """A fresh copy of the project."""
    return Project.fresh(tmp_path)


@pytest.fixture(scope="session", autouse=True)
def folder_of_the_tour(tmp_path_factory, worker_id) -> Path:
    """Where the shared tour is, or will be."""
    folder = tmp_path_factory.getbasetemp()
    if worker_id != "master":  # a folder of this process, in the folder of all
        folder = folder.parent
    Project.tour = folder / "finished"
    return Project.tour


@pytest.fixture(scope="session")
def finished(folder_of_the_tour) -> Project:
    """The tour, run to its report; tests must leave its files as they are.

    It runs once for all processes of the tests: the first that needs it makes it.
    """
    with folder_of_the_tour.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        project = Project(folder_of_the_tour)
        if not project.folder.exists():
            Project.fresh(project.folder)
        for target in ("all", "plan"):
            if not (project.folder / f"{target}.done").exists():
                done = project.snakemake(target)
                assert done.returncode == 0, done.stdout
                (project.folder / f"{target}.done").touch()
    return project


@pytest.fixture
def copy_of_finished(finished, tmp_path) -> Project:
    """A copy of the finished tour that a test may damage."""
    folder = tmp_path / "copy"
    shutil.copytree(finished.folder, folder)
    return Project(folder)


@pytest.fixture
def checkpoint():
    """A function that saves a tiny Llama with a tokenizer whose tokens are the given characters."""

    def save(folder: Path, terminals: str) -> None:
        from tokenizers import Tokenizer, decoders, models
        from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

        words = ["<s>", "</s>", "<unk>", *terminals, *(f"<0x{byte:02X}>" for byte in range(256))]
        vocabulary = {word: place for place, word in enumerate(words)}
        model = models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True)
        tokenizer = Tokenizer(model)
        tokenizer.decoder = decoders.ByteFallback()
        # A terminal that is no token falls back to its bytes; padded to two, so that it is split.
        from tokenizers.normalizers import Replace, Sequence

        tokenizer.normalizer = Sequence([Replace("9", "99")]) if "9" not in terminals else None
        fast = PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
        )
        fast.save_pretrained(folder)
        config = AutoConfig.for_model(
            "llama",
            vocab_size=len(words),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=2,
        )
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)

    return save
