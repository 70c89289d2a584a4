"""What the site needs besides the pages: README.md as its home, and no links out of docs."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUTSIDE = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#)(?:\.\./|/)[^)]*\)")
OF_README = re.compile(r"\]\(docs/")
BESIDE_DOCS = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#|docs/)[^)]*\)")


def home(readme: str) -> str:
    """The README as a page of docs; what is not in docs is named without a link."""
    return OF_README.sub("](", BESIDE_DOCS.sub(r"\1", readme))


def on_files(files, config):
    from mkdocs.structure.files import File

    files.append(File.generated(config, "index.md", content=home((ROOT / "README.md").read_text())))
    return files


def on_page_markdown(markdown: str, **_) -> str:
    """Files of the code are not on the site, so they are named without a link."""
    return OUTSIDE.sub(r"\1", markdown)
