"""Which modules a job finds, of those that it is asked about, and where it looks for programs."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path


def found(modules):
    """The modules that are loaded, or that can be imported; one that breaks is there too."""
    there = [name for name in modules if name in sys.modules]
    for name in modules:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name == name:
                continue
        except Exception:
            pass
        there.append(name)
    return there


def in_child(modules, answer):
    """What a forked child finds; `answer` is a file of its own, because two jobs run at once."""
    child = os.fork()
    if child == 0:
        answer.write_text(json.dumps(found(modules)))
        os._exit(0)
    os.waitpid(child, 0)
    return json.loads(answer.read_text())


def in_new_process(modules):
    """What another process of this Python finds."""
    command = [sys.executable, __file__, *modules]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def main(names, output):
    asked = json.loads(Path(names).read_text())
    answers = {
        "prefix": sys.prefix,
        "needed": found(asked["needed"]),
        "itself": found(asked["modules"]),
        "child": in_child(asked["modules"], Path(output).resolve().with_suffix(".child")),
        "new process": in_new_process(asked["modules"]),
        "path": os.environ["PATH"].split(os.pathsep),
    }
    Path(output).write_text(json.dumps(answers))


if __name__ == "__main__":
    if "snakemake" in globals():
        main(snakemake.input.names, snakemake.output.found)
    elif sys.argv[1].endswith(".json"):
        main(*sys.argv[1:])
    else:
        print(json.dumps(found(sys.argv[1:])))
