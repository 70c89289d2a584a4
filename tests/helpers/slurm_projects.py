"""Projects that run on the cluster, and what SLURM says of them."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from helpers.projects import CONFIGFILES, Project, wait_until

PROFILE = "config/profiles/slurm"
FIELDS = ("JobIDRaw", "Partition", "State", "AllocTRES", "TimelimitRaw", "NodeList", "Comment")


class SlurmProject(Project):
    """A project folder and, in it, Snakemake with the profile for SLURM."""

    started: ClassVar[list[subprocess.Popen]] = []

    def command(
        self, *arguments: str, configfiles: tuple[str, ...] = CONFIGFILES, **_
    ) -> list[str]:
        """The command line that the documentation gives."""
        command = [sys.executable, "-m", "snakemake", "--workflow-profile", PROFILE]
        return [*command, *arguments, *(["--configfile", *configfiles] if configfiles else [])]

    def ask_for(self, rule: str, resources: str) -> None:
        """Let a rule ask for some resources, by a line in the project's profile."""
        path = self.folder / PROFILE / "config.yaml"
        start = "set-resources:\n"
        path.write_text(path.read_text().replace(start, f"{start}  {rule}: {{{resources}}}\n"))

    def start(self, *arguments: str) -> subprocess.Popen:
        """Start Snakemake, as if from the login node; what it prints goes to a file."""
        with (self.folder / "printed.log").open("a") as log:
            running = subprocess.Popen(
                self.command(*arguments),
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": ""},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(running)
        return running

    def finish(self, running: subprocess.Popen) -> None:
        """Wait until Snakemake has ended well."""
        status = running.wait(1800)
        assert status == 0, self.printed()

    def printed(self) -> str:
        """What Snakemake has printed so far."""
        return (self.folder / "printed.log").read_text()

    def queue(self) -> dict[str, str]:
        """The state of every job that runs or waits for this project, by its number."""
        listed = output("squeue", "--noheader", "--format", "%i|%T|%Z")
        rows = [line.split("|") for line in listed.splitlines()]
        return {number: state for number, state, folder in rows if folder == str(self.folder)}

    def accounted(self) -> list[dict[str, str]]:
        """The project's jobs in SLURM's accounting; a requeued job is there more than once."""
        settings = ["-X", "--duplicates", "--parsable2", "--noheader", "--starttime", "now-1hours"]
        listed = output("sacct", *settings, "--format", ",".join((*FIELDS, "WorkDir%200")))
        rows = [line.split("|") for line in listed.splitlines()]
        return [dict(zip(FIELDS, row, strict=False)) for row in rows if row[-1] == str(self.folder)]

    def trainings(self) -> list[dict[str, str]]:
        """The accounted jobs that train."""
        return [job for job in self.accounted() if job["Comment"].startswith("rule_train")]

    def until_training(self, freeze: bool = False) -> str:
        """Wait until each run of a training on two seeds has a checkpoint; return its job's number.

        With `freeze`, the training then pauses but does not end. Otherwise, a small training may
        finish before a fault reaches it.
        """
        state = self.folder / "results/.state"
        wait_until(
            lambda: len({path.parent for path in state.glob("*/epoch-*")}) == 2,
            "checkpoints of two runs",
        )
        if freeze:
            for process in self.training_processes():
                os.kill(int(process.name), signal.SIGSTOP)
        (job,) = [number for number, state in self.queue().items() if state == "RUNNING"]
        return job

    def training_processes(self) -> list[Path]:
        """The folder in /proc of every process that trains for this project."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(FileNotFoundError, ProcessLookupError):
                trains = "/finetune.py\0" in (process / "cmdline").read_text(errors="replace")
                if trains and (process / "cwd").readlink() == self.folder:
                    found.append(process)
        return found


def output(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def environment_of(process: Path) -> dict[str, str]:
    """The environment of a process, by its folder in /proc."""
    pairs = (process / "environ").read_text().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)
