"""A SLURM cluster on one machine, for the tests: real daemons, two nodes, simulated GPUs.

    python tests/workflow/slurm/cluster.py install|start|stop|status

It needs root and Debian or Ubuntu. `install` takes the packages from apt. `start` puts everything
into one folder and links the configuration into /etc/slurm, because the jobs' own `srun` looks
nowhere else; a machine that has a SLURM configuration of its own is left alone. `stop` ends the
daemons, by the process numbers that they wrote down, and takes the links away again.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from string import Template

HERE = Path(__file__).resolve().parent
FOLDER = Path("/tmp/palimpsest-slurm")
SYSTEM = Path("/etc/slurm")
NODES = ("node1", "node2")
ACCOUNT = "lab"
PORTS = {
    "controller_port": "26817",
    "accounting_port": "26818",
    "database_port": "26819",
    "node_ports": "26821-26822",
}
PACKAGES = (
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "slurm-client",
    "munge",
    "mariadb-server-core",
    "mariadb-client-core",
)
PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "sbatch", "munged", "mariadbd", "mariadb-install-db")


class UnusableError(Exception):
    """There can be no cluster here; the message says why, and the remedy."""


@contextmanager
def lent() -> Iterator[None]:
    """The cluster, running, for one process at a time; others wait until it is free."""
    reason = unusable()
    if reason:
        raise UnusableError(reason)
    with Path(f"{FOLDER}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        start()
        try:
            yield
        finally:
            stop()


def unusable() -> str | None:
    """Why no cluster can be started here, in one line with the remedy; None if one can."""
    return _not_ours() or _not_root() or _not_installed()


def find(program: str) -> str | None:
    """The path of a program, also of those that only root has in its path."""
    return shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def install() -> None:
    """Take from apt what is missing."""
    reason = _not_ours() or _not_root()
    if reason:
        sys.exit(f"error: {reason}")
    if not _not_installed():
        return
    if not find("apt-get"):
        sys.exit("error: there is no apt-get to install SLURM with; use Debian or Ubuntu")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *PACKAGES]):
        subprocess.run(["apt-get", "--quiet", "--quiet", *command], env=environment, check=True)


def _not_ours() -> str | None:
    if os.environ.get("SLURM_CONF"):
        return "SLURM_CONF names a SLURM cluster, which the tests leave alone; use another machine"
    for name in ("slurm.conf", "gres.conf", "slurmdbd.conf"):
        path = SYSTEM / name
        if path.exists() and path.resolve().parent != FOLDER:
            return f"{path} is not of these tests, which leave it alone; use another machine"
    return None


def _not_root() -> str | None:
    if os.geteuid() == 0:
        return None
    return "starting a SLURM cluster needs root; run `sudo make test-slurm`"


def _not_installed() -> str | None:
    missing = [program for program in PROGRAMS if not find(program)]
    if not missing:
        return None
    return f"SLURM is not installed ({', '.join(missing)}); run `make test-slurm` as root"


def start() -> None:
    """Start whatever of the cluster does not run yet, and wait until its nodes can be used."""
    reason = unusable()
    if reason:
        sys.exit(f"error: {reason}")
    _write_configuration()
    _start_munge()
    _start_accounting()
    start_controller()
    for node in NODES:
        start_node(node)
    usable = ("idle", "mixed", "allocated")
    _wait("the nodes", lambda: all(state_of(node) in usable for node in NODES))


def stop() -> None:
    """End every job and daemon, the last to start first, and take the configuration away."""
    if running("slurmctld"):
        _run("scancel", "--user", "root")
        with suppress(TimeoutError):
            _wait("the end of all jobs", lambda: not _output("squeue", "--noheader"), seconds=15)
    for name in (*(f"slurmd-{node}" for node in NODES), "slurmctld", "slurmdbd", "mariadbd"):
        stop_daemon(name)
    stop_daemon("munged")
    for path in SYSTEM.glob("*.conf"):
        if path.is_symlink() and path.readlink().parent == FOLDER:
            path.unlink()


def start_controller() -> None:
    """Start slurmctld, and wait until it answers."""
    if not running("slurmctld"):
        _run("slurmctld")
    _wait("slurmctld", lambda: "is UP" in _output("scontrol", "ping"))


def start_node(node: str) -> None:
    """Start the slurmd of a node."""
    if not running(f"slurmd-{node}"):
        _run("slurmd", "-N", node)


def stop_daemon(name: str, how: signal.Signals = signal.SIGTERM) -> None:
    """End a daemon of the cluster, and wait until it is gone."""
    process = running(name)
    if process is None:
        return
    os.kill(process, how)
    with suppress(TimeoutError):
        _wait(f"the end of {name}", lambda: not running(name), seconds=20)
        return
    os.kill(process, signal.SIGKILL)


def running(name: str) -> int | None:
    """The process number of a daemon of the cluster; None if it does not run."""
    try:
        process = int((FOLDER / f"{name}.pid").read_text())
        command = Path(f"/proc/{process}/comm").read_text().strip()
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return None
    # After a crash, the number may have become another process's.
    return process if command == name.split("-")[0] else None


def state_of(node: str) -> str:
    """What SLURM says of a node: idle, mixed, allocated, down*, ..."""
    return _output("sinfo", "--noheader", "--nodes", node, "--partition", "cpu", "--format", "%T")


def status() -> None:
    """Say which daemons run, and what SLURM says of its nodes."""
    for name in ("munged", "mariadbd", "slurmdbd", "slurmctld", *(f"slurmd-{n}" for n in NODES)):
        print(f"{name:14} {'runs' if running(name) else 'does not run'}")
    print(_output("sinfo", "--Node", "--long"))


def _write_configuration() -> None:
    for name in ("state", "mariadb"):
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
    key = FOLDER / "munge.key"
    if not key.exists():
        key.touch(mode=0o400)
        key.write_bytes(os.urandom(64))
    for device in ("nvidia0", "nvidia1"):
        if not (FOLDER / device).exists():
            _run("mknod", str(FOLDER / device), "c", "1", "3")
    SYSTEM.mkdir(exist_ok=True)
    for template in (HERE / "etc").iterdir():
        path = FOLDER / template.name
        path.touch(mode=0o600)
        path.write_text(Template(template.read_text()).substitute(PORTS, folder=FOLDER))
        link = SYSTEM / template.name
        if template.suffix == ".conf" and not link.is_symlink():
            link.symlink_to(path)
    # Only slurmdbd insists that others cannot read its file; the commands of users read the rest.
    for name in ("slurm.conf", "gres.conf"):
        (FOLDER / name).chmod(0o644)


def _start_munge() -> None:
    socket = FOLDER / "munge.socket"
    if not running("munged"):
        places = {
            "socket": socket,
            "key-file": FOLDER / "munge.key",
            "pid-file": FOLDER / "munged.pid",
            "log-file": FOLDER / "munged.log",
            "seed-file": FOLDER / "munged.seed",
        }
        _run("munged", "--force", *(f"--{flag}={path}" for flag, path in places.items()))
    _wait("munge", lambda: _succeeds("munge", "--no-input", "--socket", str(socket)))


def _start_accounting() -> None:
    data = FOLDER / "mariadb"
    root = ["--no-defaults", "--user=root", f"--datadir={data}"]
    if not (data / "mysql").exists():
        _run(
            "mariadb-install-db",
            *root,
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
        )
    if not running("mariadbd"):
        _start_database(root)
    if not running("slurmdbd"):
        _wait(
            "MariaDB",
            lambda: _succeeds("bash", "-c", f"</dev/tcp/127.0.0.1/{PORTS['database_port']}"),
        )
        _run("slurmdbd")
    _wait("slurmdbd", lambda: _succeeds("sacctmgr", "--noheader", "list", "cluster"))
    # Each ends with 1 where it finds nothing left to add.
    for entity in (
        ["cluster", "palimpsest"],
        ["account", ACCOUNT, "cluster=palimpsest"],
        ["user", "root", f"account={ACCOUNT}", "cluster=palimpsest"],
    ):
        _succeeds("sacctmgr", "--immediate", "--quiet", "add", *entity)


def _start_database(root: list[str]) -> None:
    settings = [
        f"--socket={FOLDER / 'mariadb.socket'}",
        f"--pid-file={FOLDER / 'mariadbd.pid'}",
        "--bind-address=127.0.0.1",
        f"--port={PORTS['database_port']}",
        "--skip-name-resolve",
        "--innodb-buffer-pool-size=64M",
        "--innodb-lock-wait-timeout=900",
        f"--init-file={FOLDER / 'accounts.sql'}",
    ]
    with (FOLDER / "mariadbd.log").open("ab") as log:
        subprocess.Popen(
            [find("mariadbd"), *root, *settings],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _run(program: str, *arguments: str) -> None:
    done = subprocess.run(
        [find(program) or program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"error: {program} failed: {done.stdout.strip()}; see the logs in {FOLDER}")


def _output(program: str, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    return done.stdout.strip()


def _succeeds(program: str, *arguments: str) -> bool:
    return subprocess.run([program, *arguments], capture_output=True).returncode == 0


def _wait(what: str, is_there, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not is_there():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: nothing after {seconds} s; see the logs in {FOLDER}")
        time.sleep(0.1)


if __name__ == "__main__":
    commands = {"install": install, "start": start, "stop": stop, "status": status}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(commands)}")
    commands[sys.argv[1]]()
