"""Templates: those of the report's frame, and those in the folders of sections."""

from pathlib import Path

import jinja2

from palimpsest.number_format import number, plural, slug

HERE = Path(__file__).parent
TABLE = "table.html.j2"


def template(module_file: str, name: str) -> jinja2.Template:
    """The template in the folder of a module; all inserted values are escaped.

    A template can call the macro `table`. The macros that it defines are attributes of its
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
    made.globals["table"] = made.get_template(TABLE).module.table
    return made.get_template(name)
