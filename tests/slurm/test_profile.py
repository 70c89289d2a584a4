"""The account of a profile: a placeholder, or an account that SLURM does not list, is refused."""

import shutil
from pathlib import Path

import pytest
import yaml

from helpers.experiments import message
from palimpsest.slurm.profile import PLACEHOLDER, Profile, check_account, slurm_profile

ROOT = Path(__file__).parents[2]
FILE = "config/profiles/slurm/config.yaml"


@pytest.fixture
def lists(tmp_path, monkeypatch):
    """A function that makes a program `sacctmgr`, which lists some accounts; None: no program."""

    (tmp_path / "which").symlink_to(shutil.which("which"))

    def make(*accounts: str | None) -> None:
        # Where SLURM is installed, its own program is not found.
        monkeypatch.setenv("PATH", str(tmp_path))
        if accounts == (None,):
            return
        program = tmp_path / "sacctmgr"
        program.write_text("#!/bin/sh\n" + "".join(f"echo {name}\n" for name in accounts))
        program.chmod(0o755)

    return make


def profile(account: str | None, file: str = FILE) -> Profile:
    return Profile(file, account, None, None)


def test_the_placeholder_is_what_the_profile_ships():
    shipped = yaml.safe_load((ROOT / FILE).read_text())
    assert shipped["default-resources"]["slurm_account"] == PLACEHOLDER


def test_the_placeholder_is_refused_with_file_key_value_and_remedy(lists):
    lists(None)
    line = message(lambda: check_account(profile(PLACEHOLDER)))
    assert line.startswith(f"{FILE}: default-resources/slurm_account: 'lab' is the placeholder")
    assert "sacctmgr show associations" in line


def test_an_account_that_really_has_this_name_is_accepted(lists):
    """SLURM confirms it; where SLURM is not installed, the command line says so."""
    lists("hpc1", PLACEHOLDER)
    check_account(profile(PLACEHOLDER))
    lists(None)
    check_account(profile(PLACEHOLDER, "--default-resources"))


def test_any_other_account_is_believed_where_slurm_is_not_installed(lists):
    lists(None)
    check_account(profile("hpc1"))
    check_account(profile(None))


@pytest.mark.parametrize("account", [PLACEHOLDER, "hpc2"])
def test_an_account_that_slurm_does_not_list_is_refused_with_those_that_it_lists(lists, account):
    lists("hpc1", "hpc3")
    line = message(lambda: check_account(profile(account)))
    assert f"slurm_account: {account!r}: SLURM does not accept it" in line
    assert "hpc1" in line
    assert "hpc3" in line


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_the_profile_of_a_command_line():
    """Only a command whose jobs go to SLURM has one."""
    assert slurm_profile(["--cores", "2"], None) is None
    given = ["--workflow-profile", "config/profiles/slurm", "--dry-run"]
    found = slurm_profile(given, "hpc1")
    assert found == Profile(FILE, "hpc1", "config/profiles/slurm/partitions.yaml", None)
    stated = slurm_profile([*given, "--default-resources", "slurm_account=lab"], "lab")
    assert stated.file == "--default-resources"
