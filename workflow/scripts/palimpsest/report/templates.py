"""Templates: those of the skeleton, and those that sections have beside their modules."""

from pathlib import Path

import jinja2

from palimpsest.report.number_format import number, plural, slug

HERE = Path(__file__).parent


def template(module_file: str, name: str) -> jinja2.Template:
    """The template beside a module; whatever is filled in is escaped.

    It can import the macros of the skeleton. Those that it defines itself are attributes of its
    `module`: functions that return `Markup`.
    """
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([Path(module_file).parent, HERE]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(number=number, plural=plural, slug=slug)
    return made.get_template(name)
