"""Programs of this environment, such as those of requirements-peers.txt."""

import os
import shutil
import sys
from pathlib import Path


def program(name: str) -> str | None:
    """The path of a program beside this Python, or on the path; None if it is not installed."""
    places = [str(Path(sys.executable).parent), os.environ["PATH"]]
    return shutil.which(name, path=os.pathsep.join(places))
