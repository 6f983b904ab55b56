"""Data flows down, never up: which part of the package may import which.

``ALLOWED`` is the whole rule. A part is a module or folder directly under ``gym_fairbandits``;
it may import itself, what ``ALLOWED`` grants it, and any other distribution. Imports within
functions and under ``TYPE_CHECKING`` count too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from helpers_checkout import ROOT, python_files

FOUNDATIONS = {"_checks", "_sums", "_grid", "curves", "arms", "spaces"}
PROBLEMS = {"instances", "_sources", "optimum", "bounds"}

ALLOWED: dict[str, set[str]] = {
    # Foundations: checks of arguments, reward laws, action spaces.
    "_checks": set(),
    "_sums": set(),
    "curves": {"_checks", "_sums"},
    "arms": {"_checks"},
    "_grid": {"_checks", "_sums", "arms", "curves"},
    "spaces": {"_checks"},
    # Problems made of them, and what is known about their solutions.
    "instances": {"_checks", "arms", "curves"},
    "_sources": {"_checks", "_grid", "arms", "curves", "instances"},
    "_rested": {"curves"},
    "_max_min": set(),
    "optimum": {"_checks", "_grid", "_max_min", "_rested", "arms", "curves"},
    "bounds": {"_checks", "curves", "instances"},
    "datasets": {"_checks", "arms"},
    # Environments, and wrappers around them.
    "envs": FOUNDATIONS | PROBLEMS,
    "wrappers": FOUNDATIONS | PROBLEMS | {"envs"},
    # Policies and their judge know spaces, observations and steps, but no environment.
    # Oracles too: they are handed an environment and import none.
    "agents": {"_checks", "spaces"},
    "_rollout": {"_checks", "wrappers"},
    "evaluation": {"_checks", "_rollout", "spaces", "wrappers", "agents.base"},
    # On top.
    "experiments": FOUNDATIONS
    | PROBLEMS
    | {"datasets", "envs", "wrappers", "agents", "_rollout", "evaluation", "__init__"},
    "__main__": {"instances", "wrappers", "agents", "evaluation", "experiments", "__init__"},
    # `import gym_fairbandits` registers by string and imports nothing of its own.
    "__init__": set(),
}

MODULES = python_files()
OUTSIDE = {  # what only a checkout has
    "agents",  # installed, it is gym_fairbandits.agents
    *(
        name
        for folder in ("benchmarks", "examples", "tests")
        for name in (folder, *(path.stem for path in (ROOT / folder).rglob("*.py")))
    ),
}


def part_of(module: str) -> str:
    """Return the part that ``module``, a name below ``gym_fairbandits``, belongs to."""
    return module.split(".")[1] if "." in module else "__init__"


def imported(module: str, path: Path, source: str) -> Iterator[tuple[ast.stmt, str]]:
    """Yield every import statement of ``source`` with the full name of a module it imports."""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{origin}.{alias.name}" for alias in node.names]
            for target in sorted({name if name in MODULES else origin for name in names}):
                yield node, target


def violations(module: str, path: Path, source: str) -> list[str]:
    """Return what ``source``, the text of ``module``, imports against the rule; one line each."""
    part = part_of(module)
    if part not in ALLOWED:
        return [f"{module} is new: add `{part}` to ALLOWED in {Path(__file__).name}"]
    found = []
    for node, target in imported(module, path, source):
        where = f"{path.name}:{node.lineno}: "
        if target.split(".")[0] in OUTSIDE:
            found.append(where + f"`{target}` exists only in a checkout")
        if target.split(".")[0] != "gym_fairbandits":
            continue
        if part == part_of(target):
            if part == "agents" and not (isinstance(node, ast.ImportFrom) and node.level):
                found.append(where + f"agents import `{target}` relatively")
            continue
        if part == "agents" and isinstance(node, ast.ImportFrom) and node.level:
            found.append(where + f"`{target}` lies outside agents/: import it by its full name")
        below = target.partition(".")[2] or "__init__"
        if not any(f"{below}.".startswith(f"{allowed}.") for allowed in ALLOWED[part]):
            found.append(where + f"`{part}` must not import `{target}`")
    return found


@pytest.mark.parametrize("module", list(MODULES))
def test_imports_flow_down(module: str) -> None:
    path = MODULES[module]
    found = violations(module, path, path.read_text(encoding="utf-8"))
    assert not found, "\n".join(found)


def test_the_rule_has_no_cycle_and_no_unknown_name() -> None:
    graph = {part: {name.split(".")[0] for name in names} for part, names in ALLOWED.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError
    assert set().union(*graph.values()) <= set(ALLOWED)


@pytest.mark.parametrize(
    ("module", "source", "message"),
    [
        ("curves", "from gym_fairbandits.envs import x", "`curves` must not import"),
        ("curves", "from .envs.core import x", "`curves` must not import `gym_fairbandits.envs"),
        ("curves", "def f():\n    import gym_fairbandits.envs", "x.py:2: `curves` must not import"),
        ("curves", "from gym_fairbandits import __version__", "must not import `gym_fairbandits`"),
        ("curves", "from gym_fairbandits import spaces", "import `gym_fairbandits.spaces`"),
        ("envs.x", "from ..wrappers import y", "`envs` must not import `gym_fairbandits.wrappers`"),
        ("agents.x", "from gym_fairbandits.envs import y", "`agents` must not import"),
        ("agents.x", "from gym_fairbandits.agents.base import y", "relatively"),
        ("agents.x", "from ..spaces import y", "by its full name"),
        ("evaluation", "from gym_fairbandits.agents.classic import y", "must not import"),
        ("arms", "import agents.base", "`agents.base` exists only in a checkout"),
        ("arms", "from tests.test_layering import ROOT", "exists only in a checkout"),
        ("brand_new", "", "add `brand_new` to ALLOWED"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str, message: str) -> None:
    found = violations(f"gym_fairbandits.{module}", Path("x.py"), source)
    assert len(found) == 1
    assert message in found[0]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("curves", "import numpy as np\nfrom gym_fairbandits._checks import x"),
        ("envs.x", "from gym_fairbandits import spaces\nfrom gym_fairbandits.envs._core import y"),
        ("agents.x", "from gym_fairbandits.spaces import y\nfrom .base import Agent\nimport math"),
        ("evaluation", "from gym_fairbandits.agents.base import Agent"),
    ],
)
def test_a_right_import_is_not_found(module: str, source: str) -> None:
    assert violations(f"gym_fairbandits.{module}", Path("x.py"), source) == []
