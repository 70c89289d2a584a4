# What happens once, before all rules are read. The configuration is checked, and the working folder
# taken. Helpers that rules share are in common.smk.
import os
import sys
from glob import glob

from snakemake.persistence import PersistenceBase
from snakemake.utils import update_config

# The library is beside the scripts, where they find it in any environment.
sys.path.insert(0, os.path.join(workflow.basedir, "workflow", "scripts"))

from palimpsest import devices
from palimpsest.configuration.sources import Sources, as_yaml
from palimpsest.configuration.yaml_files import check_file
from palimpsest.errors import UserError
from palimpsest.experiment import Experiment
from palimpsest.launch import collect_rarely, prefer_this_python
from palimpsest.recovery import WorkingFolder, leave_failed_updates, put_damaged_aside

collect_rarely()
given = list(workflow.overwrite_configfiles or [])

# Snakemake would read a broken file without naming it, and accept a key that is given twice.
try:
    for path in ["config/config.yaml", *given]:
        if os.path.exists(path):
            check_file(path)
except UserError as error:
    sys.exit(f"error: {error}")


configfile: "config/config.yaml"


# Snakemake leaves the numbers inside of `--config 'training={epochs: 3}'` as text.
command_line = as_yaml(workflow.config_settings.config)
update_config(config, command_line)

# The file that wins stands last.
default = [path for path in workflow.configfiles if path not in given]
sources = Sources([os.path.relpath(path) for path in [*default, *given]], command_line)
try:
    experiment = Experiment(config, sources, os.path.join(workflow.basedir, "config/schemas"))
except UserError as error:
    sys.exit(f"error: {error}")

prefer_this_python()
working_folder = WorkingFolder()
leave_failed_updates(PersistenceBase)


def taking_the_folder(execute):
    """Snakemake's own way to start working, which first takes the folder."""

    def take_and_execute(*arguments, **named):
        try:
            if workflow.output_settings.dryrun:
                working_folder.look()
            else:
                working_folder.take()
                put_damaged_aside(glob("results/**/*.parquet", recursive=True))
        except UserError as error:
            sys.exit(f"error: {error}")
        return execute(*arguments, **named)

    return take_and_execute


# A job reads this file too, and some commands only list something. Neither takes the folder.
if workflow.is_main_process:
    workflow.execute = taking_the_folder(workflow.execute)

# On one machine no more jobs start than its GPUs can take; without any, none asks for one. A
# cluster counts its own.
if workflow.is_main_process and workflow.resource_settings.nodes is None:
    if "gpu" not in workflow.global_resources:
        workflow.register_resource("gpu", len(devices.visible()))
