"""The recipe of docs/slurm.md for sites that only take `--gres`, with the plugin's own options."""

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake_executor_plugin_slurm.utils import set_gres_string
from snakemake_executor_plugin_slurm.validation import get_forbidden_slurm_options
from snakemake_executor_plugin_slurm_jobstep import get_gpu_setting

PAGE = Path(__file__).parents[2] / "docs/slurm.md"


@pytest.fixture
def path(tmp_path) -> str:
    """A path with the recipe's programs first, and then some that print what they are given."""
    (script,) = re.findall(r"```sh\n(#!.*?)```", PAGE.read_text(), re.DOTALL)
    for folder, content in (("ours", script), ("site", '#!/bin/sh\nprintf "%s\\n" "$@"\n')):
        (tmp_path / folder).mkdir()
        for name in ("sbatch", "srun"):
            (tmp_path / folder / name).write_text(content)
            (tmp_path / folder / name).chmod(0o755)
    return f"{tmp_path}/ours:{tmp_path}/site:/usr/bin:/bin"


def given_to_slurm(path: str, call: str) -> list[str]:
    """What the site's program gets of a call, which the plugin gives to a shell."""
    done = subprocess.run(
        call, shell=True, env={"PATH": path}, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [
        ({"gpu": 2}, "--gres=gpu:2"),
        ({"gpu": 2, "gpu_model": "a100"}, "--gres=gpu:a100:2"),
        ({"gpu": 0}, None),
    ],
)
def test_what_the_plugin_asks_for_is_translated(path, resources, wanted):
    """At submission and in the step within the job; every other argument stays as it is."""
    job = SimpleNamespace(resources=resources)
    others = ["--comment", "two  words", "--wrap=train --gpus=1 $HOME"]
    quoted = "--comment 'two  words' '--wrap=train --gpus=1 $HOME'"
    gpus = [wanted] if wanted else []
    assert given_to_slurm(path, f"sbatch{set_gres_string(job)} {quoted}") == gpus + others
    count = [f"--gres=gpu:{resources['gpu']}"] if wanted else []
    assert given_to_slurm(path, f"srun {get_gpu_setting(job)} {quoted}") == count + others


def test_the_plugin_still_has_no_other_way():
    """`--gres` may not stand in `slurm_extra`."""
    assert any(re.search(pattern, "--gres=gpu:1") for pattern in get_forbidden_slurm_options())
