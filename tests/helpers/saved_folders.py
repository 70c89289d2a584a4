"""Folders as `Dataset.save_to_disk` and `DatasetDict.save_to_disk` of `datasets` leave them."""

import json
from pathlib import Path

import pyarrow as pa


def write_dataset(folder: Path, table: pa.Table, n_files: int = 1, at_once: int = 2) -> Path:
    """One dataset, its rows spread over some files. A dataset without rows has no file."""
    folder.mkdir(parents=True)
    n_files = min(n_files, table.num_rows)
    names = [f"data-{place:05d}-of-{n_files:05d}.arrow" for place in range(n_files)]
    starts = [place * table.num_rows // n_files for place in range(n_files)] + [table.num_rows]
    for name, start, end in zip(names, starts, starts[1:], strict=False):
        with (
            pa.OSFile(str(folder / name), "wb") as file,
            pa.ipc.new_stream(file, table.schema) as s,
        ):
            s.write_table(table.slice(start, end - start), max_chunksize=at_once)
    state = {
        "_data_files": [{"filename": name} for name in names],
        "_fingerprint": "712ffe6edef94664",
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    features = {field.name: {"dtype": str(field.type), "_type": "Value"} for field in table.schema}
    info = {"citation": "", "description": "", "features": features, "homepage": "", "license": ""}
    (folder / "state.json").write_text(json.dumps(state, indent=2, sort_keys=True))
    (folder / "dataset_info.json").write_text(json.dumps(info, indent=2))
    return folder


def write_splits(folder: Path, splits: dict[str, pa.Table]) -> Path:
    folder.mkdir(parents=True)
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": list(splits)}))
    for name, table in splits.items():
        write_dataset(folder / name, table)
    return folder
