"""The README's sessions give what they show, and so do the docstrings' examples."""

from __future__ import annotations

import doctest
import pkgutil
from pathlib import Path

import pytest
from helpers_checkout import imported

import gym_fairbandits
from gym_fairbandits.agents import registry

README = Path(__file__).parents[1] / "README.md"
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(gym_fairbandits.__path__, "gym_fairbandits.")
    if not module.name.endswith("__main__")
)


def test_readme_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stable_baselines3")
    # What a session registers is forgotten afterwards.
    players = {env_id: dict(known) for env_id, known in registry._players.items()}
    monkeypatch.setattr(registry, "_players", players)
    blocks = README.read_text(encoding="utf-8").split("```python\n")[1:]
    session = "\n".join(block.split("```")[0] for block in blocks)
    parser = doctest.DocTestParser()
    test = parser.get_doctest(session, {}, "README.md", str(README), 0)
    assert len(test.examples) > 15
    results = doctest.DocTestRunner().run(test)
    assert results.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    assert doctest.testmod(imported(name)).failed == 0
