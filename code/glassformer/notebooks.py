"""Execute chapters in place, so that running again without a change leaves the file unchanged."""

from __future__ import annotations

import argparse
import hashlib
import os
from collections import Counter
from pathlib import Path

import nbformat

from .config import write_atomically

NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3", "file_extension": ".py"},
}

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def normalise(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Drop what differs between two runs: time stamps, kernel versions, widgets, cell ids."""
    notebook.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        tags = cell.metadata.get("tags")
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        digest = hashlib.sha1(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:10]
        cell.id = f"{digest}-{seen[digest]}" if seen[digest] else digest
        seen[digest] += 1
        if cell.cell_type == "code":
            cell.outputs = _merge_streams(cell.outputs)
            for output in cell.outputs:
                output.get("data", {}).pop(WIDGET_VIEW, None)
    return notebook


def _merge_streams(outputs: list) -> list:
    """Join stream pieces of one name that follow each other: the kernel cuts them at random."""
    merged: list = []
    for output in outputs:
        last = merged[-1] if merged else None
        both = last is not None and last.output_type == output.output_type == "stream"
        if both and last.name == output.name:
            last.text += output.text
        else:
            merged.append(output)
    return merged


def execute(path: Path, timeout: int = 300) -> bool:
    """Run every cell of the notebook from a fresh kernel and store it; True if the file changed."""
    before = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(before, as_version=4)
    run(notebook, path.parent, timeout)
    store(notebook, path)
    return path.read_text(encoding="utf-8") != before


def run(notebook: nbformat.NotebookNode, folder: Path, timeout: int = 300) -> None:
    """Run every cell from a fresh kernel that works in a folder."""
    from nbclient import NotebookClient

    NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        record_timing=False,
        store_widget_state=False,
        resources={"metadata": {"path": str(folder)}},
    ).execute()


def store(notebook: nbformat.NotebookNode, path: Path) -> None:
    """Write a notebook, whole or not at all."""
    write_atomically(path, f"{nbformat.writes(normalise(notebook))}\n".encode())


def main() -> None:
    """Command line: `python -m glassformer.notebooks book/01_data.ipynb …`."""
    parser = argparse.ArgumentParser(prog="python -m glassformer.notebooks", description=__doc__)
    parser.add_argument("notebooks", nargs="+", type=Path)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    for path in parser.parse_args().notebooks:
        if not path.is_file():
            parser.exit(1, f"There is no notebook {path}.\n")
        print(f"{path}: {'outputs stored' if execute(path) else 'unchanged'}", flush=True)


if __name__ == "__main__":
    main()
