"""What is written on a drawn figure."""


def words_around(axes, which: str) -> list[str]:
    """The labels of an axis, of the axes that share it, and of the subfigures around them."""
    shared = getattr(axes, f"get_shared_{which}_axes")().get_siblings(axes)
    words = [getattr(other, f"get_{which}label")() for other in shared]
    holder, root = axes.figure, axes.get_figure(root=True)
    while holder is not root:
        words.append(getattr(holder, f"get_sup{which}label")())
        holder = holder._parent
    return words
