"""The profile for SLURM that a command line uses: its file, its account and its partitions."""

import contextlib
import io
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from palimpsest.errors import UserError

PLACEHOLDER = "lab"  # the account of the profile as it comes with the project
DEFAULTS = "--default-res"  # how Snakemake's option for default resources begins


@dataclass(frozen=True)
class Profile:
    """What a command line, with its profile, says of the site.

    `file` is where the account stands: the profile, or an option of the command line. `partitions`
    is the file of partitions. `cores` is the limit that the command line sets for threads.
    """

    file: str
    account: str | None
    partitions: str | None
    cores: int | None


def slurm_profile(arguments: Sequence[str], account: str | None) -> Profile | None:
    """The profile of a command line; None if its jobs do not go to SLURM.

    `account` is the value of the default resource `slurm_account`.
    """
    from snakemake.cli import parse_args

    # Snakemake says a second time which profile it uses.
    with contextlib.redirect_stderr(io.StringIO()):
        _, options = parse_args(list(arguments))
    if options.executor != "slurm":
        return None
    if any(word.startswith(DEFAULTS) for word in arguments):
        file = "--default-resources"
    else:
        file = _file_with_the_account([options.workflow_profile, *(options.profile or [])])
    partitions = options.slurm_partition_config or os.environ.get("SNAKEMAKE_SLURM_PARTITIONS")
    return Profile(file, account, str(partitions) if partitions else None, options.cores)


def _file_with_the_account(profiles: Sequence[str | None]) -> str:
    """The profile's file that sets an account, or else the first of the files."""
    from snakemake.cli import get_profile_dir

    named = [place for name in profiles if name for place in (name, f"profiles/{name}")]
    files = [str(entry[1]) for name in named if (entry := get_profile_dir(name))]
    having = [file for file in files if "slurm_account" in Path(file).read_text()]
    return [*having, *files, "--executor slurm"][0]


def check_account(profile: Profile) -> None:
    """Raise `UserError` if the account is the placeholder, or if SLURM does not list it.

    A site whose account has the placeholder's name passes, because SLURM lists the account. Where
    SLURM does not answer, the account of the command line is believed.
    """
    if profile.account is None:
        return
    where = f"{profile.file}: default-resources/slurm_account: {profile.account!r}"
    answer = _slurm_on(profile.account)
    if isinstance(answer, str):
        raise UserError(f"{where}: {answer}")
    if answer or profile.account != PLACEHOLDER or profile.file == "--default-resources":
        return
    raise UserError(
        f"{where} is the placeholder that comes with the profile; write one of your accounts "
        "(sacctmgr show associations user=$USER format=account,partition), or delete the line on "
        f"a site without accounts. If your account really is {PLACEHOLDER!r}, SLURM confirms it on "
        "the login node; elsewhere, give --default-resources "
        f"slurm_account={PLACEHOLDER} nodes=1 side_by_side=1"
    )


def _slurm_on(account: str) -> bool | str:
    """Whether SLURM lists the account for this user; False if SLURM does not answer.

    A text is SLURM's objection, with the accounts that there are. The plugin asks in the same way
    before it submits a job.
    """
    from snakemake_executor_plugin_slurm.accounts import validate_account
    from snakemake_interface_common.exceptions import WorkflowError

    try:
        return bool(validate_account(account, logging.getLogger("palimpsest")))
    except OSError:  # SLURM's programs are not on this machine
        return False
    except WorkflowError as error:
        said = str(error)
        return f"SLURM does not accept it. {said}" if "appears to be invalid" in said else False
