"""A phase of unlearning of a user's own, for the study that `palimpsest init` makes."""

from __future__ import annotations

import ast
from pathlib import Path

from palimpsest import extensions
from palimpsest.errors import UserError
from palimpsest.plain_text import read_text

FOLDER = "my_code"  # of the extension, in the folder of the study
INNER = Path("unlearning/methods")  # where the library finds phases
PLACE = Path(FOLDER) / INNER
STUB = '''"""A phase of my own: gradient ascent that stops at a uniform guess. Rewrite its loss."""

from __future__ import annotations

import math

from palimpsest.unlearning.methods import FORGET, Training, number, phase
from palimpsest.unlearning.methods.losses import cross_entropy


@phase("{name}")
class {of_class}(Training):
    """Maximises the cross-entropy on the forget set, up to a share of a uniform guess's."""

    over = FORGET
    ceiling: float = number(1.0, above=0, most=1)

    def loss(self, task, batch, paired_batch):
        """One number for each model, [M]."""
        logits = task.models.logits(batch.ids_MBT)
        most = self.ceiling * math.log(logits.shape[-1])
        return -cross_entropy(logits, batch.targets_MBT).clamp(max=most)
'''


def phase_in(file: Path) -> str:
    """The name of the first phase in a file, or of that in the stub if there is no such file.

    Raises `UserError` for a file whose name is no module's, or is taken by the library, and for one
    without a phase. The code is not run.
    """
    if file.suffix != ".py" or not file.stem.isidentifier():
        raise UserError(
            f"{file}: is no name of a module; take letters, digits and _ , such as my_phase.py"
        )
    if (extensions.LIBRARY / INNER / file.name).exists():
        raise UserError(f"{file}: the library has a file of this name; rename yours")
    if not file.exists():
        return file.stem.replace("_", "-")
    try:
        code = ast.parse(read_text(file))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UserError(f"{file}:{line}: {type(error).__name__}: {error}") from None
    for node in code.body:
        for decorator in node.decorator_list if isinstance(node, ast.ClassDef) else ():
            match decorator:
                case ast.Call(func=ast.Name(id="phase"), args=[ast.Constant(value=str(name)), *_]):
                    return name
    raise UserError(
        f'{file}: has no phase, a class with the decorator @phase("my-phase") (docs/methods.md)'
    )


def text_of(file: Path) -> str:
    """The text of a file with a phase, or a stub that runs if there is no such file."""
    if file.exists():
        return read_text(file)
    of_class = "".join(part.capitalize() for part in file.stem.split("_") if part) or "Mine"
    return STUB.format(name=phase_in(file), of_class=of_class)


def phases_with(name: str) -> list[dict]:
    """The phases of a method that erases by a phase of this name, and then repairs."""
    return [
        {"erase": name, "share": 0.2, "rate": 0.5},
        {"repair": "finetune", "share": 0.8, "rate": 1.0},
    ]
