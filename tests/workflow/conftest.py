"""A copy of the project in a folder of its own, and the ways to run Snakemake in it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SMALL = Path(__file__).with_name("small.yaml")
PARTS = ("Snakefile", "workflow", "config", "envs")


def pytest_collection_modifyitems(items):
    """Keep the tests of the workflow on one worker, where they share the finished small study."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("workflow"))


class Project:
    """A project folder and Snakemake in it."""

    def __init__(self, folder: Path):
        self.folder = folder

    @classmethod
    def fresh(cls, folder: Path) -> "Project":
        """A copy of what the workflow consists of, without any result."""
        for part in PARTS:
            if (ROOT / part).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / part, folder / part, ignore=ignored)
            else:
                shutil.copy(ROOT / part, folder / part)
        shutil.copy(SMALL, folder / "small.yaml")
        return cls(folder)

    def command(self, *arguments: str, cores: int = 2, configfile: str | None = "small.yaml"):
        """The command line of Snakemake."""
        command = [sys.executable, "-m", "snakemake", "--cores", str(cores), *arguments]
        return command + (["--configfile", configfile] if configfile else [])

    def snakemake(self, *arguments: str, **options) -> subprocess.CompletedProcess:
        """Run Snakemake to its end; `stdout` holds all that it printed."""
        return subprocess.run(
            self.command(*arguments, **options),
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
        )

    def jobs(self, *arguments: str, **options) -> dict[str, int]:
        """How many jobs of each rule a dry run lists."""
        done = self.snakemake("--dry-run", *arguments, **options)
        assert done.returncode == 0, done.stdout
        table = done.stdout.split("Job stats:")[-1].splitlines()
        rows = [line.split() for line in table]
        return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}

    def contents(self) -> dict[str, bytes]:
        """Every file under `results`, to see that nothing was changed."""
        found = (self.folder / "results").rglob("*")
        return {str(f.relative_to(self.folder)): f.read_bytes() for f in found if f.is_file()}


@pytest.fixture
def project(tmp_path) -> Project:
    """A fresh copy of the project."""
    return Project.fresh(tmp_path)


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Project:
    """The small study, run to its report; tests must leave its files as they are."""
    project = Project.fresh(tmp_path_factory.mktemp("finished"))
    for target in ("all", "plan"):
        done = project.snakemake(target)
        assert done.returncode == 0, done.stdout
    return project


@pytest.fixture
def copy_of_finished(finished, tmp_path) -> Project:
    """A copy of the finished small study that a test may damage."""
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
