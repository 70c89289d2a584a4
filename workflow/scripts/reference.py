"""Write the reference pages of the documentation into a folder."""

import argparse
from pathlib import Path

from palimpsest import reference
from palimpsest.datasets.figures import FIGURES as LANGUAGE_FIGURES
from palimpsest.experiment import schema_of
from palimpsest.sections import FIGURES, KINDS, SECTIONS
from palimpsest.unlearning.methods import read_methods
from palimpsest.unlearning.methods_page import methods_page

ROOT = Path(__file__).parents[2]


def pages() -> dict[str, str]:
    """The pages by file name."""
    config = ROOT / "config"
    return {
        "configuration.md": reference.configuration_page(
            schema_of(config / "schemas", SECTIONS), config / "config.yaml", config / "paper.yaml"
        ),
        "tables.md": reference.tables_page(KINDS.values()),
        "claims.md": reference.claims_page(SECTIONS),
        "figures.md": reference.figures_page(
            {"Languages": LANGUAGE_FIGURES}
            | {section.title: section.figures for section in SECTIONS}
        ),
        "fidelity.md": reference.fidelity_page(
            reference.read_fidelity(ROOT / "docs/fidelity.tsv"), KINDS.keys() - FIGURES.keys()
        ),
        "methods_settings.md": reference.WRITTEN
        + "\n"
        + methods_page(read_methods(config / "unlearning.yaml")),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pages go")
    folder = parser.parse_args().folder
    for name, text in pages().items():
        (folder / name).write_text(text)
        print(f"wrote {folder / name}")
