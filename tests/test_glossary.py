"""Every name and every test in the glossary exists, and no bound is left out of it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from gym_fairbandits import bounds
from gym_fairbandits.agents import EgalUCB, RoundRobin
from gym_fairbandits.wrappers import ExternalRegret, FairnessMetrics, PolicyRegret

TESTS = Path(__file__).parent
GLOSSARY = TESTS.parent / "docs" / "glossary.md"
AGENTS: dict[str, Any] = {"ImprovingBandit-v0": RoundRobin, "EgalAssign-v0": EgalUCB}


def sections() -> dict[str, list[list[str]]]:
    """Return the rows of each table, as lists of cells, by the headings above it."""
    tables: dict[str, list[list[str]]] = {}
    part = paper = ""
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            part = line[3:]
        elif line.startswith("### "):
            paper = line[4:].split(",")[0]
        elif line.startswith("| "):
            tables.setdefault(f"{part}: {paper}", []).append(line.strip("| ").split(" | "))
    return {title: rows[2:] for title, rows in tables.items()}  # without the head and its rule


def spans(cell: str) -> list[str]:
    """Return what stands in backticks; nothing else but commas may stand beside it."""
    found = re.findall(r"`([^`]+)`", cell)
    assert found, cell
    assert ", ".join(f"`{span}`" for span in found) == cell
    return found


NAMES = [
    pytest.param(span, "Lim" in title, id=f"{title.split(': ')[1]}-{span}")
    for title, rows in sections().items()
    for row in rows
    for span in spans(row[2])
]
NAMED_TESTS = sorted(
    {
        span
        for title, rows in sections().items()
        if title.startswith("Results")
        for row in rows
        for span in spans(row[3])
    }
)


def played(env_id: str) -> tuple[Any, Any]:
    """Return the last observation and info of an episode."""
    env = FairnessMetrics(ExternalRegret(PolicyRegret(gym.make(env_id, horizon=1))))
    observation, _ = env.reset(seed=0)
    observation, _, _, _, info = env.step(AGENTS[env_id]().act(observation))
    return observation, info


def resolve(path: str) -> Any:
    """Return what a dotted path below the package means; an annotated attribute is its name."""
    parts = path.split(".")
    found: Any = importlib.import_module("gym_fairbandits")
    for number, part in enumerate(parts):
        if inspect.isclass(found) and part in {
            name for kind in found.__mro__ for name in vars(kind).get("__annotations__", {})
        }:
            return part
        if inspect.ismodule(found) and not hasattr(found, part):
            importlib.import_module(".".join(["gym_fairbandits", *parts[: number + 1]]))
        found = getattr(found, part)
    return found


def check_name(name: str, is_assignment: bool) -> None:
    """Fail unless the package has what the glossary calls by ``name``."""
    key = re.fullmatch(r'(observation|info)\["(\w+)"\]', name)
    argument = re.fullmatch(r"([\w.]+)\((\w+)\)", name)
    if key is not None:
        observation, info = played("EgalAssign-v0" if is_assignment else "ImprovingBandit-v0")
        assert key[2] in {"observation": observation, "info": info}[key[1]]
    elif argument is not None:
        assert argument[2] in inspect.signature(resolve(argument[1])).parameters
    else:
        assert re.fullmatch(r"[\w.]+", name), name
        resolve(name)


def test_there_is_a_table_of_symbols_and_one_of_results_for_each_paper() -> None:
    widths = {title: {len(row) for row in rows} for title, rows in sections().items()}
    assert widths == {
        "Symbols: Patil": {3},
        "Symbols: Lim": {3},
        "Results: Patil": {4},
        "Results: Lim": {4},
    }
    assert min(len(rows) for rows in sections().values()) >= 10


@pytest.mark.parametrize(("name", "is_assignment"), NAMES)
def test_every_name_exists(name: str, is_assignment: bool) -> None:
    check_name(name, is_assignment)


@pytest.mark.parametrize(
    ("name", "is_assignment"),
    [
        ("bounds.no_such_bound", False),
        ("no_such_module.name", False),
        ("curves.Curve.no_such_attribute", False),
        ("agents.EgalUCB(no_such_argument)", True),
        ('observation["last_reward"]', True),  # the other environment's
        ('info["user_rewards"]', False),
        ("two words", False),
    ],
)
def test_a_name_that_does_not_exist_is_found_out(name: str, is_assignment: bool) -> None:
    with pytest.raises((AssertionError, AttributeError, ModuleNotFoundError)):
        check_name(name, is_assignment)


@pytest.mark.parametrize("named", NAMED_TESTS)
def test_every_test_exists(named: str) -> None:
    file, name = named.split("::")
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    assert name.startswith("test_")
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_bound_has_its_place() -> None:
    named = {
        span
        for title, rows in sections().items()
        if title.startswith("Results")
        for row in rows
        for span in spans(row[2])
    }
    assert {f"bounds.{name}" for name in bounds.__all__} <= named
