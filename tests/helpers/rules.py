"""The rules of the workflow, as Snakemake understands them."""

import os
from functools import cache
from pathlib import Path
from unittest.mock import patch

from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, ResourceSettings, StorageSettings

ROOT = Path(__file__).parents[2]


@cache
def rules(*configfiles):
    """Every rule that runs a script or a command, by its name; nothing is run.

    What the workflow writes into the environment is taken back here, because fixtures of whole
    modules call this.
    """
    here = Path.cwd()
    try:
        with patch.dict(os.environ), SnakemakeApi() as api:
            workflow = api.workflow(
                resource_settings=ResourceSettings(cores=1),
                config_settings=ConfigSettings(configfiles=[ROOT / file for file in configfiles]),
                storage_settings=StorageSettings(),
                snakefile=ROOT / "Snakefile",
                workdir=ROOT,
            )
            found = {rule.name: rule for rule in workflow._workflow.rules}
    finally:
        os.chdir(here)
    return {name: rule for name, rule in found.items() if rule.script or rule.shellcmd}


def script_of(name):
    """The script that a rule runs, by `script:` or in a shell command with it as a param."""
    rule = rules()[name]
    if rule.script:
        return (ROOT / "workflow/rules" / rule.script).resolve()
    return ROOT / dict(rule.params.items())["script"]
