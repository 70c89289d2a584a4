"""Run the examples of the library's page in an environment that may lack extras; print the result.

    python page_of_library.py docs/library.md

The last line is JSON: `attempted` and `failed` examples, `missing` (what examples said of a package
that is not installed), `versions` of all packages, and `modules` that were imported. What needs a
model in a folder is left out. It imports nothing of the project but the library.
"""

import doctest
import importlib.metadata
import json
import re
import sys
import warnings
from pathlib import Path


class Runner(doctest.DocTestRunner):
    """Examples whose package is missing do not fail; they are counted by what is said."""

    def __init__(self):
        super().__init__(optionflags=doctest.NORMALIZE_WHITESPACE)
        self.missing = []

    def report_unexpected_exception(self, out, test, example, exc_info):
        if isinstance(exc_info[1], ModuleNotFoundError) and "pip install" in str(exc_info[1]):
            self.missing.append(str(exc_info[1]))
        else:
            super().report_unexpected_exception(out, test, example, exc_info)


def main(page: Path) -> None:
    warnings.simplefilter("ignore")
    text = re.sub(r"With a model in a folder.*?(?=\n## )", "", page.read_text(), flags=re.DOTALL)
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    runner = Runner()
    done = runner.run(test)
    found = {
        "attempted": done.attempted,
        "failed": done.failed - len(runner.missing),
        "missing": runner.missing,
        "versions": {
            one.metadata["Name"]: one.version for one in importlib.metadata.distributions()
        },
        "modules": sorted(sys.modules),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
