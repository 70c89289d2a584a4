# These steps happen once: the configuration is checked before the rules are read, and the working
# folder is locked before the first job starts. Helpers that rules share are in common.smk.
import os
import sys
from glob import glob

from snakemake.logging import logger
from snakemake.shell import shell
from snakemake.utils import update_config

# The library is in the folder of the scripts, so that scripts find it in every environment.
# `workflow.basedir` would be another folder if another workflow uses this one as a module.
PROJECT = os.path.dirname(os.path.dirname(str(workflow.current_basedir)))
if not os.path.isdir(os.path.join(PROJECT, "workflow/scripts/palimpsest")):
    sys.exit(
        f"error: {PROJECT}: has no workflow/scripts/palimpsest, the library that the rules use; "
        "clone the whole project, and give a module the path of the clone's Snakefile"
    )
sys.path.insert(0, os.path.join(PROJECT, "workflow", "scripts"))

from palimpsest import commands, devices, extensions
from palimpsest.configuration.sources import Sources, of_command_line
from palimpsest.configuration.yaml_files import check_file
from palimpsest.corpora.files import check_names
from palimpsest.ends.ending import Ending
from palimpsest.ends.files import WhenNothingIsToBeDone
from palimpsest.ends.interruption import Interruption
from palimpsest.ends.refusals import Refusals
from palimpsest.ends.targets import PlainTargetErrors
from palimpsest.errors import refusing
from palimpsest.launch import (
    asked_targets,
    collect_rarely,
    hand_on_targets,
    handed_targets,
    is_read_by_a_shell,
    prefer_this_python,
)
from palimpsest.recovery import WorkingFolder, put_damaged_aside
from palimpsest.slurm.executor_slurm_456 import refuse_what_fits_nowhere
from palimpsest.slurm.profile import check_account, slurm_profile
from palimpsest.snakemake_3744 import wake_the_scheduler_only_when_jobs_wait
from palimpsest.snakemake_3808 import keep_outputs_of_failed_updates
from palimpsest.snakemake_4166 import look_behind_ancient_inputs

collect_rarely()
if workflow.is_main_process:
    interruption = Interruption(logger)

# Snakemake does not quote the path of Python (its issue #2645). With --sdm, it takes another one.
if not workflow.deployment_settings.deployment_method and is_read_by_a_shell(sys.executable):
    sys.exit(
        f"error: {sys.executable}: Snakemake runs no script with a Python whose path has a blank "
        "or another sign with a meaning in a shell; move this folder, and make .venv again: make "
        "clean-environment; make run"
    )

given = list(workflow.overwrite_configfiles or [])
commands.use(given)

# Snakemake's own error for a broken file does not name the file, and it accepts a key given twice.
with refusing():
    for path in filter(os.path.exists, ["config/config.yaml", *given]):
        check_file(path)


configfile: "config/config.yaml"


# Snakemake leaves the numbers inside of `--config 'recipes={default: {epochs: 3}}'` as text.
with refusing():
    command_line = of_command_line(workflow.config_settings.config_args)
update_config(config, command_line)

# Later files override earlier ones.
default = [path for path in workflow.configfiles if path not in given]
sources = Sources([os.path.relpath(path) for path in [*default, *given]], command_line)
with refusing():
    extensions.use([*extensions.installed(), *extensions.given_in(config)])
    with extensions.errors_in_one_line():
        from palimpsest.experiment import Experiment

        if workflow.is_main_process:
            hand_on_targets(asked_targets(sys.argv[1:]))
        experiment = extensions.InOneLine(
            Experiment(
                config,
                sources,
                os.path.join(PROJECT, "config/schemas"),
                targets=asked_targets(sys.argv[1:]) if workflow.is_main_process else (),
                is_job=not workflow.is_main_process,
                planned=handed_targets(),
            )
        )
    check_names(config["languages_folder"], sys.argv[1:])

for note in experiment.notes if workflow.is_main_process else ():
    print(f"note: {note}", file=sys.stderr)

prefer_this_python()
keep_outputs_of_failed_updates()
look_behind_ancient_inputs()
wake_the_scheduler_only_when_jobs_wait()
working_folder = WorkingFolder()


def lock_the_folder(rules=None):
    """Keep other Snakemakes out, or end this one in one line; `rules` are those that will run."""
    with refusing():
        working_folder.take(rules)


# Snakemake calls this once, after it has decided which jobs to run and before the first job starts.
onstart:
    if workflow.is_main_process:
        lock_the_folder({job.rule.name for job in workflow.dag.jobs})
        interruption.begin(shell, is_local=workflow.resource_settings.nodes is None)


onerror:
    if workflow.is_main_process:
        interruption.end()
        refusals.end()


# How a command ends: the files to open, what another configuration left, and near names of a
# misspelt target. If nothing is to be done, Snakemake calls no hook.
ending = Ending(experiment, workflow)
refusals = Refusals()
if workflow.is_main_process:
    logger.addFilter(PlainTargetErrors(ending.known_targets, ending.patterns))
    # A job on a cluster is looked for by the number that Snakemake's error has.
    if workflow.resource_settings.nodes is None:
        logger.addFilter(refusals)
    if not workflow.output_settings.dryrun:
        logger.addHandler(WhenNothingIsToBeDone(ending.print))


onsuccess:
    if workflow.is_main_process:
        ending.print()


works = workflow.is_main_process and not workflow.output_settings.dryrun
if works and "--no-hooks" in sys.argv:
    sys.exit(
        "error: --no-hooks: a hook keeps a second Snakemake out of this folder; leave the flag out"
    )
# Snakemake makes environments before it calls `onstart:`.
if works and workflow.deployment_settings.deployment_method:
    lock_the_folder()

# A damaged table is renamed before Snakemake checks which files are missing. Only the main process
# does this, because each job reads this file too. A dry run changes nothing.
if works and working_folder.is_free():
    with refusing():
        put_damaged_aside(glob("results/**/*.parquet", recursive=True))

# With a profile for SLURM, the site is checked before any job starts, in a dry run and for the plan.
if workflow.is_main_process and workflow.resource_settings.nodes is not None:
    account = (workflow.resource_settings.default_resources or {}).get("slurm_account")
    with refusing():
        profile = slurm_profile(sys.argv[1:], account and account.raw)
        if profile is not None:
            check_account(profile)
            refuse_what_fits_nowhere(profile)

# On one machine, Snakemake starts only as many GPU jobs as there are GPUs; on a machine without
# GPUs, no job asks for one. A cluster counts its GPUs itself.
if workflow.is_main_process and workflow.resource_settings.nodes is None:
    if "gpu" not in workflow.global_resources:
        workflow.register_resource("gpu", len(devices.visible()))
