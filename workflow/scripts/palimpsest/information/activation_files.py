"""Activations of a user's own: files of the configuration, and their arrays.

A file holds the activations of one model. An array is a layer: float[samples, neurons]. Models of a
group are compared with each other, on the same samples.

Source: the paper on information measures of neurons, appendix A.
"""

from __future__ import annotations

import contextlib
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy

from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.named_files import errors_of
from palimpsest.configuration.settings import Settings
from palimpsest.errors import UserError
from palimpsest.information.kinds import ALL_SCORES
from palimpsest.information.neurons import MOST_COPIES
from palimpsest.lazy_import import lazy_import
from palimpsest.models.table import NAME, NAMES_ARE
from palimpsest.tables.user_files import wrong_path

pa = lazy_import("pyarrow")
parquet = lazy_import("pyarrow.parquet")

KEY = "information/activations"
NPZ, PARQUET, SAFETENSORS = FORMATS = (".npz", ".parquet", ".safetensors")
SAFETENSORS_TYPES = {
    **{f"F{n}": f"f{n // 8}" for n in (16, 32, 64)},
    **{f"{kind}{n}": f"{kind.lower()}{n // 8}" for kind in "IU" for n in (8, 16, 32, 64)},
    "BOOL": "bool",
}
GROUP = "mine"  # of models for which the configuration names none


@dataclass(frozen=True)
class ActivationFile:
    """A file of activations, and what the configuration says of its model.

    Parameters
    ----------
    name : of the model
    file : its path
    group : of models that are compared with each other
    seed : models of one group and seed differ in their dose alone
    accuracy : share of right answers; None if it is not given
    dose : how much is to be memorised, such as alpha; None if it is not given
    scores : other numbers of the model by name, such as norms of its weights
    """

    name: str
    file: str
    group: str = GROUP
    seed: int = 0
    accuracy: float | None = None
    dose: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)


def activation_files(block: Mapping) -> list[ActivationFile]:
    """The files of the block `information`, in order. A value is a path or a block with `file`."""
    return [
        ActivationFile(name, **({"file": value} if isinstance(value, str) else value))
        for name, value in (block["activations"] or {}).items()
    ]


def groups(block: Mapping) -> dict[str, list[ActivationFile]]:
    """The files of the block `information` by their groups, in order."""
    found: dict[str, list[ActivationFile]] = {}
    for each in activation_files(block):
        found.setdefault(each.group, []).append(each)
    return found


def mistakes(settings: Settings) -> Iterator[Mistake]:
    """Files that are not there, and names that cannot be in paths or are used already."""
    lengths: dict[str, dict[str, int]] = {}
    for each in activation_files(settings.block("information")):
        key = f"{KEY}/{each.name}"
        if not NAME.fullmatch(each.name):
            yield Mistake(key, f"is not a name; allowed are {NAMES_ARE}")
        elif wrong := wrong_path(each.file, FORMATS, "activations of a model"):
            yield Mistake(key, wrong)
        elif not (wrong := list(errors_of(key, n_samples, each.file))):
            lengths.setdefault(each.group, {})[each.file] = n_samples(each.file)
        else:
            yield from wrong
        if not NAME.fullmatch(each.group):
            yield Mistake(f"{key}/group", f"{each.group!r} is not a name; allowed are {NAMES_ARE}")
        for name in each.scores.keys() & {*ALL_SCORES}:
            yield Mistake(f"{key}/scores/{name}", "is a number of our own; take another name")
    for of_group in lengths.values():
        yield from errors_of(KEY, check_same_samples, of_group)


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays float[samples, neurons] of a file by name, all finite, with as many samples.

    In a .npz file or a .safetensors file, an array is a layer. In a Parquet file, a column of lists
    of numbers is a layer, and a row is a sample; other columns are not read. Layers have the order
    of the file, those of .safetensors the order of their names and numbers.

    Raises `UserError` if the file cannot be read, has no arrays, or has arrays that are of another
    shape, of different lengths or not finite.
    """
    reader = {NPZ: _from_npz, PARQUET: _from_parquet, SAFETENSORS: _from_safetensors}
    ending = Path(path).suffix.lower()
    if ending not in reader:
        raise UserError(f"{path}: activations are in a file {', '.join(FORMATS)}")
    arrays = reader[ending](path)
    _check_shapes(path, {name: Head(one.dtype, one.shape) for name, one in arrays.items()})
    for name, values in arrays.items():
        _check_finite(f"{path}: array {name!r}", values)
    return arrays


class Head(NamedTuple):
    """What the head of a file tells of an array."""

    dtype: np.dtype
    shape: tuple[int, ...]


def n_samples(path: str | Path) -> int:
    """The number of samples, from the head of a file: the arrays are not read.

    Raises `UserError` unless the head tells of arrays of numbers [samples, neurons] of one length.
    The head of a Parquet file does not tell the lengths of its lists.
    """
    ending = Path(path).suffix.lower()
    if ending == PARQUET:
        _check_any(path, _columns_of_lists(path))
        return parquet.read_metadata(path).num_rows
    heads = (_heads_of_npz if ending == NPZ else _heads_of_safetensors)(path)
    _check_shapes(path, heads)
    return next(iter(heads.values())).shape[0]


def check_copies(path: str | Path, share: float) -> None:
    """Raise `UserError` if a share of samples that are copies is too large."""
    if share > MOST_COPIES:
        raise UserError(
            f"{path}: {share:.1%} of the samples are copies of another one in all arrays, which "
            f"makes mutual information too large; give each sample once (up to {MOST_COPIES:.0%} "
            "are let through)"
        )


def check_same_samples(lengths: Mapping[str, int]) -> None:
    """Raise `UserError` if models of a group, by their file, have different numbers of samples."""
    (first, n), *others = lengths.items()
    for path, own in others:
        if own != n:
            raise UserError(
                f"{path}: has {own} samples, and {first} has {n}; measures depend on their number, "
                "so models of a group need the same samples: save these, or name another group"
            )


def _check_any(path: str | Path, arrays: Sized) -> None:
    if not len(arrays):
        raise UserError(f"{path}: holds no arrays; save one float[samples, neurons] for each layer")


def _check_shapes(path: str | Path, heads: Mapping[str, Head]) -> None:
    _check_any(path, heads)
    for name, (dtype, shape) in heads.items():
        if len(shape) != 2 or dtype.kind not in "fiub" or 0 in shape:
            raise UserError(
                f"{path}: array {name!r} is {dtype}{list(shape)} and must be "
                "float[samples, neurons]"
            )
    (first, (_, (n, _))), *others = heads.items()
    for name, (_, (own, _)) in others:
        if own != n:
            raise UserError(
                f"{path}: array {name!r} has {own} samples, and {path}: array {first!r} has {n}; "
                "all arrays of a file need the same samples"
            )


def _check_finite(where: str, values: np.ndarray) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        sample, neuron = np.argwhere(~finite)[0]
        raise UserError(
            f"{where} has {values.size - finite.sum():,} values that are not finite, the first in "
            f"sample {sample} and neuron {neuron} (from 0); leave out these samples in all arrays"
        )


@contextlib.contextmanager
def _reading_npz(path: str | Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError, EOFError, KeyError, AttributeError, zipfile.BadZipFile):
        raise UserError(
            f"{path}: is not a complete .npz file of arrays of numbers; save it with numpy.savez"
        ) from None


def _from_npz(path: str | Path) -> dict[str, np.ndarray]:
    with _reading_npz(path), np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _heads_of_npz(path: str | Path) -> dict[str, Head]:
    with _reading_npz(path), zipfile.ZipFile(path) as file:
        return {name.removesuffix(".npy"): _head_of_npy(file, name) for name in file.namelist()}


def _head_of_npy(file: zipfile.ZipFile, name: str) -> Head:
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    with file.open(name) as array:
        shape, _, dtype = read[npy.read_magic(array)](array)
    return Head(dtype, shape)


@contextlib.contextmanager
def _reading_safetensors(path: str | Path) -> Iterator[None]:
    from safetensors import SafetensorError

    try:
        yield
    except (SafetensorError, OSError, TypeError, AttributeError, KeyError):
        raise UserError(
            f"{path}: is not a complete .safetensors file of types that NumPy has; save it with "
            "safetensors, in float32 or float16"
        ) from None


def _from_safetensors(path: str | Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    with _reading_safetensors(path):
        arrays = load_file(os.fspath(path))
    return {name: arrays[name] for name in sorted(arrays, key=_in_natural_order)}


def _heads_of_safetensors(path: str | Path) -> dict[str, Head]:
    from safetensors import safe_open

    with _reading_safetensors(path), safe_open(os.fspath(path), "numpy") as file:
        slices = {name: file.get_slice(name) for name in sorted(file.keys(), key=_in_natural_order)}
        return {
            name: Head(np.dtype(SAFETENSORS_TYPES[one.get_dtype()]), tuple(one.get_shape()))
            for name, one in slices.items()
        }


def _in_natural_order(name: str) -> list:
    """A key by which layer.2 is before layer.10."""
    parts = "".join(c if c.isdigit() else f"\0{c}\0" for c in name).split("\0")
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]


def _from_parquet(path: str | Path) -> dict[str, np.ndarray]:
    try:
        table = parquet.read_table(path, columns=(names := _columns_of_lists(path)))
    except (pa.ArrowException, OSError):
        raise UserError(f"{path}: is not a complete Parquet file; save it again") from None
    return {name: _stacked(f"{path}: column {name!r}", table[name]) for name in names}


def _columns_of_lists(path: str | Path) -> list[str]:
    try:
        schema = parquet.read_schema(path)
    except (pa.ArrowException, OSError):
        raise UserError(f"{path}: is not a complete Parquet file; save it again") from None
    return [name for name in schema.names if _is_list(schema.field(name).type)]


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(
        kind
    )  # fmt: skip


def _stacked(where: str, column: pa.ChunkedArray) -> np.ndarray:
    """The lists of a column as an array [samples, neurons]."""
    lists = column.combine_chunks()
    lengths: Sequence = pa.compute.list_value_length(lists).to_numpy(zero_copy_only=False)
    if column.null_count or len(np.unique(lengths)) != 1:
        raise UserError(
            f"{where} has lists of different lengths; a list holds one number for each neuron"
        )
    values = lists.flatten()
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        raise UserError(f"{where} has lists of {values.type}, and they must be of numbers")
    # A null among the numbers becomes NaN, and the message then names its place.
    return values.to_numpy(zero_copy_only=False).reshape(len(lists), -1)
