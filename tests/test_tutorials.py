"""The tutorials run, print what they show, stay small and keep their answers folded up."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbclient")

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "tutorials"
PATHS = sorted(FOLDER.glob("*.ipynb"))
EXPECTED = ["egalitarian_assignment.ipynb", "late_bloomer.ipynb"]
each_tutorial = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def read(path: Path) -> Any:
    return nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]


def code_cell(source: str) -> Any:
    return nbformat.v4.new_code_cell(source)  # type: ignore[no-untyped-call]


def printed(cell: Any) -> str:
    """Return what a cell prints."""
    return "".join(
        output.text
        for output in cell.get("outputs", [])
        if output.output_type == "stream" and output.name == "stdout"
    )


def answer(notebook: Any) -> tuple[str, str]:
    """Return the code of the folded answer and what it says that this prints."""
    blocks = dict(re.findall(r"```(python|text)\n(.*?)```", notebook.cells[-1].source, re.DOTALL))
    return blocks["python"], blocks["text"]


def run(notebook: Any) -> None:
    """Execute a notebook in place, from the root, where the package is found without a build."""
    resources = {"metadata": {"path": str(ROOT)}}
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources)
    client.execute()


def test_there_are_two_tutorials() -> None:
    assert [path.name for path in PATHS] == EXPECTED


@pytest.mark.slow
@each_tutorial
def test_a_tutorial_runs_and_prints_what_it_shows_and_so_does_its_answer(path: Path) -> None:
    shown, fresh = read(path), read(path)
    code, output = answer(shown)
    fresh.cells.append(code_cell(code))
    run(fresh)  # raises if a cell does
    assert printed(fresh.cells.pop()) == output
    for old, new in zip(shown.cells, fresh.cells, strict=True):
        assert printed(new) == printed(old)


@pytest.mark.slow
def test_a_cell_that_raises_is_found_out() -> None:
    notebook = read(PATHS[0])
    notebook.cells = [code_cell("1 / 0")]
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        run(notebook)


@each_tutorial
def test_a_tutorial_was_run_from_top_to_bottom_without_errors_or_warnings(path: Path) -> None:
    code = [cell for cell in read(path).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert {output.output_type for output in outputs} <= {"stream", "display_data"}
    assert not [output for output in outputs if output.get("name") == "stderr"]
    pictures = [output for output in outputs if output.output_type == "display_data"]
    assert len(pictures) >= 5
    assert all("image/png" in picture.data for picture in pictures)


@each_tutorial
def test_a_tutorial_is_small(path: Path) -> None:
    assert path.stat().st_size < 300_000
    for cell in read(path).cells:
        assert sum(len(str(output)) for output in cell.get("outputs", [])) < 60_000
        assert len(cell.source.splitlines()) <= 45


@each_tutorial
def test_the_answer_is_one_folded_block_at_the_end_which_github_folds_too(path: Path) -> None:
    # GitHub does not heed a cell's `jupyter.source_hidden`; a `<details>` block folds in both.
    *before, last = read(path).cells
    assert last.cell_type == "markdown"
    assert last.source.startswith("<details>\n<summary>")
    assert last.source.endswith("</details>")
    assert last.source.count("<details") == last.source.count("</details>") == 1
    assert "</summary>\n\n" in last.source  # else Markdown inside is not read as such
    assert any("## Your turn" in cell.source for cell in before)
    assert not any("<details" in cell.source for cell in before)


@each_tutorial
def test_what_a_tutorial_links_to_is_there(path: Path) -> None:
    text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)]+)\)", text)
    local = [link for link in links if not link.startswith("https://")]
    assert {Path(link).name for link in local} >= {"glossary.md"}
    assert all((FOLDER / link).is_file() for link in local)


@each_tutorial
def test_the_agents_that_a_tutorial_recommends_exist(path: Path) -> None:
    from gym_fairbandits import agents

    text = "\n".join(cell.source for cell in read(path).cells)
    recommended = set(re.findall(r"`agents\.(\w+)`", text))
    assert len(recommended) >= 4
    assert recommended <= set(agents.__all__)
