"""The package as pip, importers and type checkers see it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers_checkout import AGENTS, PACKAGE, ROOT, imported, python_files, run_python

import gym_fairbandits

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# What the extras bring: importing the package must not import any of it.
EXTRAS = (
    "joblib",
    "matplotlib",
    "moviepy",
    "numba",
    "pandas",
    "polars",
    "pyarrow",
    "pygame",
    "sb3_contrib",
    "stable_baselines3",
    "torch",
    "tqdm",
)


def importable() -> list[str]:
    """Return the names of all modules whose import runs no command."""
    return [name for name in python_files() if not name.endswith(".__main__")]


def project() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


# --- folders and files ---------------------------------------------------------------------------


def test_packages_are_the_folders_on_disk() -> None:
    on_disk = {name for name, path in python_files().items() if path.name == "__init__.py"}
    homeless = {name for name in python_files() if name.rpartition(".")[0] not in {"", *on_disk}}
    assert not homeless, "a folder with modules lacks its `__init__.py`"
    assert set(project()["tool"]["setuptools"]["packages"]) == on_disk


def test_agents_link_serves_checkers_and_editors() -> None:
    link = PACKAGE / "agents"
    if not link.is_symlink():
        # Where links become text files, git leaves the target as the text.
        assert link.is_file(), "gym_fairbandits/agents must be a link, not a second copy"
        assert link.read_text(encoding="utf-8").strip() == "../agents"
        return
    assert Path(os.readlink(link)).as_posix() == "../agents"


def test_no_agents_module_shadows_the_standard_library() -> None:
    shadows = {path.stem for path in AGENTS.rglob("*.py")} & set(sys.stdlib_module_names)
    assert not shadows, "running a script inside agents/ would import these instead"


def test_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
    assert project()["tool"]["setuptools"]["package-data"] == {"gym_fairbandits": ["py.typed"]}


# --- version -------------------------------------------------------------------------------------


def test_version_is_single_sourced() -> None:
    settings = project()
    assert "version" not in settings["project"]
    assert settings["project"]["dynamic"] == ["version"]
    source = settings["tool"]["setuptools"]["dynamic"]["version"]
    assert source == {"attr": "gym_fairbandits.__version__"}
    # A literal, so that a build reads it without importing gymnasium.
    text = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    assert f'\n__version__ = "{gym_fairbandits.__version__}"\n' in text


def test_installed_version_is_this_one() -> None:
    try:
        installed = importlib.metadata.version("gym-fairbandits")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("gym-fairbandits is not installed")
    assert installed == gym_fairbandits.__version__, "the version changed: install again"


def test_changelog_knows_the_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, _, _ = changelog.partition("\n## [")[2].partition("\n## [")
    heading, _, entries = newest.partition("\n")
    release, development, _ = gym_fairbandits.__version__.partition(".dev")
    if development:
        assert heading == "Unreleased]"
        assert re.search(rf"\b{re.escape(release)}\b", entries), "say which release comes next"
    else:
        assert re.fullmatch(rf"{re.escape(release)}\] - \d{{4}}-\d\d-\d\d", heading)
    assert "\n- " in entries


# --- imports -------------------------------------------------------------------------------------


def test_import_brings_none_of_the_extras() -> None:
    code = f"import sys, gym_fairbandits; print([m for m in {EXTRAS!r} if m in sys.modules])"
    assert run_python(code).stdout.strip() == "[]"


def test_extras_named_here_are_those_of_pyproject() -> None:
    import_names = {"pygame_ce": "pygame"}
    extras = project()["project"]["optional-dependencies"]
    named = {"torch"}  # by way of stable-baselines3
    for extra in set(extras) - {"dev", "docs", "test"}:  # tools, which no code imports
        for requirement in extras[extra]:
            name = re.split(r"[^\w-]", requirement)[0].replace("-", "_")
            named.add(import_names.get(name, name))
    assert named - {"gym_fairbandits"} == set(EXTRAS)


def test_import_registers_both_environments() -> None:
    code = (
        "import gymnasium, gym_fairbandits\n"
        "for name in ('ImprovingBandit-v0', 'EgalAssign-v0'):\n"
        "    spec = gymnasium.spec(name)\n"
        "    parts = (spec.entry_point, spec.vector_entry_point, spec.max_episode_steps)\n"
        "    print(*(type(part).__name__ for part in parts))"
    )
    assert run_python(code).stdout.splitlines() == ["str str NoneType"] * 2


@pytest.mark.parametrize("name", ["ImprovingBandit-v0", "EgalAssign-v0"])
def test_make_works_without_an_import(name: str) -> None:
    code = (
        "import gymnasium\n"
        f"env = gymnasium.make('gym_fairbandits:{name}')\n"
        "env.reset(seed=0)\n"
        "print(env.spec.id)"
    )
    assert run_python(code).stdout.strip() == name


# --- exports -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", importable())
def test_exported_names_are_true(name: str) -> None:
    module = imported(name)
    exported = list(getattr(module, "__all__", ()))
    assert len(exported) == len(set(exported))
    missing = [export for export in exported if not hasattr(module, export)]
    assert not missing, f"`__all__` of {name} names what it does not have"
    if any(part.startswith("_") for part in name.split(".")):
        return  # private modules may leave `__all__` out, not lie in it
    assert hasattr(module, "__all__"), f"{name} is public and must have `__all__`"
    defined = {
        attribute
        for attribute, value in vars(module).items()
        if not attribute.startswith("_")
        and callable(value)
        and getattr(value, "__module__", None) == name
    }
    assert not defined - set(exported), f"`__all__` of {name} lacks public names defined in it"


# --- README and CI -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ['pip install -e ".[dev]"', "python examples/compare_agents.py", "python -m pytest"]
)
def test_ci_runs_the_commands_of_the_readme(command: str) -> None:
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")
    without_options = (ROOT / ".ci" / "run").read_text(encoding="utf-8").replace(" --quiet", "")
    assert command in without_options
