"""The site's pages run, what they link to is there, and the API reference leaves no name out."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import os
import re
import subprocess
import sys
import types
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from gym_fairbandits import __main__ as cli
from gym_fairbandits import agents
from gym_fairbandits.agents import registry
from gym_fairbandits.arms import base as arms_base
from gym_fairbandits.curves import base as curves_base
from gym_fairbandits.experiments.learning import EGAL, IMPROVING

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
NEEDS = {"datasets": "polars", "learned_agents": "stable_baselines3"}
SLOW = {"learned_agents"}  # loads torch
FENCES = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> list[str]:
    """Return the Python code of a page, but for what needs a cluster of the reader's."""
    found = FENCES.findall(page.read_text(encoding="utf-8"))
    return [block for block in found if "tcp://HOST" not in block]


def run(code: list[str], name: str) -> None:
    """Run blocks one after the other: sessions must give what they show."""
    module = types.ModuleType(name)
    sys.modules[name] = module  # dataclasses look their annotations up there
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    for block in code:
        if ">>> " in block:
            test = parser.get_doctest(block, vars(module), name, name, 0)
            test.globs = vars(module)  # it takes a copy
            assert runner.run(test, clear_globs=False).failed == 0
        else:
            exec(compile(block, name, "exec"), vars(module))


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget afterwards which agents, families, environments and modules a page has added."""
    players = {env_id: dict(known) for env_id, known in registry._players.items()}
    monkeypatch.setattr(registry, "_players", players)
    for base in (curves_base, arms_base):
        monkeypatch.setattr(base, "_families", dict(base._families))
    modules, envs = dict(sys.modules), dict(gym.registry)
    yield
    for name in set(sys.modules) - set(modules):
        if name.startswith("docs_"):
            del sys.modules[name]
    for env_id in set(gym.registry) - set(envs):
        del gym.registry[env_id]


# --- The pages -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.slow] if page.stem in SLOW else [])
        for page in PAGES
        if blocks(page)
    ],
)
def test_code_of_a_page_runs_and_gives_what_it_shows(page: Path, registries: None) -> None:
    if page.stem in NEEDS:
        pytest.importorskip(NEEDS[page.stem])
    run(blocks(page), f"docs_{page.stem}")


@pytest.mark.parametrize("code", [[">>> 1 + 1\n3\n"], ["1 / 0"]])
def test_code_that_does_not_is_found_out(code: list[str], registries: None) -> None:
    with pytest.raises((AssertionError, ZeroDivisionError)):
        run(code, "docs_wrong")


def test_all_pages_with_code_are_run() -> None:
    assert len([page for page in PAGES if blocks(page)]) >= 10
    assert sum(len(blocks(page)) for page in PAGES) >= 25


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_of_a_page_lead_to_files(page: Path) -> None:
    text = FENCES.sub("", page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\((?!https?://)([^)#]+)", text)
    assert [link for link in links if not (DOCS / link).is_file()] == []


def test_tables_of_agents_are_those_of_the_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["agents", "--markdown"]) == 0
    tables = capsys.readouterr().out
    assert [line.split("`")[1] for line in tables.splitlines() if line.startswith("| `")] == [
        name
        for env_id in ("ImprovingBandit-v0", "EgalAssign-v0")
        for name in agents.available(env_id)
    ]
    assert "| `oracle-rotation` | `agents.OracleRotation` | Rotates the users over" in tables
    text = (DOCS / "agents.md").read_text(encoding="utf-8")
    shown = text[text.index("## ImprovingBandit-v0") : text.index("\n## By name")]
    assert shown == tables, "docs/agents.md must hold what `agents --markdown` prints"


def test_sources_name_every_agent_once() -> None:
    sources = (DOCS / "agents.md").read_text(encoding="utf-8").split("## Sources")[1]
    first_cells = [line.split("|")[1] for line in sources.splitlines() if line.startswith("| `")]
    named = [name for cell in first_cells for name in re.findall(r"`([^`]+)`", cell)]
    assert sorted(named) == sorted(agents.available())


def test_the_table_of_hyperparameters_is_that_of_the_recipes() -> None:
    recipes = (IMPROVING, EGAL)
    rows: dict[str, list[Any]] = {
        "wrapper": [
            ", ".join(f"`{wrapper.__name__}`" for wrapper in recipe.wrappers) or "none"
            for recipe in recipes
        ],
        "decisions in all": [recipe.total_steps for recipe in recipes],
        "environments side by side": [recipe.num_envs for recipe in recipes],
        **{
            f"`{name}`{', falling to 0' * (name == 'learning_rate')}": [
                recipe.settings[name] for recipe in recipes
            ]
            for name in IMPROVING.settings
        },
        "`gamma`, horizon unknown": [recipe.gamma_unknown for recipe in recipes],
        "`gamma`, horizon known": [recipe.gamma for recipe in recipes],
    }
    assert IMPROVING.settings.keys() == EGAL.settings.keys()
    lines = [f"| {name} | {' | '.join(map(str, values))} |" for name, values in rows.items()]
    page = (DOCS / "learned_agents.md").read_text(encoding="utf-8")
    assert "\n".join(["| --- | ---: | ---: |", *lines, ""]) in page


# --- The site ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hooks() -> Any:
    """The module that makes what is not written by hand."""
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("site_hooks", DOCS / "site_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def public_modules() -> list[str]:
    """Return the public modules as the folders have them."""
    paths = [path.relative_to(ROOT) for path in (ROOT / "gym_fairbandits").rglob("*.py")]
    # `rglob` does not follow the link to the agents before Python 3.13.
    agents_below = (ROOT / "agents").rglob("*.py")
    paths += [Path("gym_fairbandits") / path.relative_to(ROOT) for path in agents_below]
    names = {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths}
    return sorted(name for name in names if not re.search(r"\._", name))


def test_every_public_module_has_a_page(hooks: Any) -> None:
    modules = [module.path for module in hooks.public_modules()]
    assert sorted(modules) == public_modules()
    assert len({hooks.page_of(module) for module in hooks.public_modules()}) == len(modules)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("agents.EgalUCB", "gym_fairbandits.agents.egalitarian.EgalUCB"),
        ("agents.EgalUCB.act", "gym_fairbandits.agents.base.Agent.act"),  # inherited
        ("curves.Curve.asymptote", "gym_fairbandits.curves.base.Curve"),  # no entry of its own
        ("datasets.movielens", "gym_fairbandits.datasets.movielens"),  # of a private module
        (
            "envs.ImprovingBanditEnv.render",  # of a private class
            "gym_fairbandits.envs.improving_bandit.ImprovingBanditEnv.render",
        ),
        ("instances.IMPROVING", "gym_fairbandits.instances.IMPROVING"),
        ("bounds", "gym_fairbandits.bounds"),
        ("bounds.no_such_bound", None),
    ],
)
def test_names_lead_to_where_they_are_shown(hooks: Any, path: str, expected: str | None) -> None:
    assert hooks.anchor(path) == expected


def test_roles_become_links_and_stars_stay_stars(hooks: Any) -> None:
    text = "*One* of :meth:`act`, ``a * b``, T mu* / U; :meth:`gymnasium.Env.step`::"
    assert hooks.to_markdown(text, "gym_fairbandits.agents.EgalUCB") == (
        "*One* of [`act`][gym_fairbandits.agents.base.Agent.act], ``a * b``, T mu\\* / U; "
        "`gymnasium.Env.step`:"
    )


def test_names_in_backticks_become_links_outside_code_and_headings(hooks: Any) -> None:
    text = "# `agents.Agent`\n`agents.Agent(x)` `late_bloomer.py`\n```\n`agents.Agent`\n```"
    assert hooks.with_links(text, "page.md") == (
        "# `agents.Agent`\n"
        "[`agents.Agent(x)`][gym_fairbandits.agents.base.Agent] `late_bloomer.py`\n"
        "```\n`agents.Agent`\n```"
    )


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_shows_every_public_name(
    hooks: Any, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # the theme's, about MkDocs itself
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

    inventory = (tmp_path / "objects.inv").read_bytes().split(b"\n", maxsplit=4)[4]
    entries = [line.split(" ") for line in zlib.decompress(inventory).decode().splitlines()]
    shown = {entry[0]: entry[3] for entry in entries}
    for module in public_modules():
        assert module in shown
        for name in importlib.import_module(module).__all__:
            assert f"{module}.{name}" in shown, f"{module} exports {name}, and no page shows it"
    page = (tmp_path / "api" / "agents" / "egalitarian" / "index.html").read_text(encoding="utf-8")
    assert 'id="gym_fairbandits.agents.egalitarian.EgalUCB"' in page
    for path in tmp_path.rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        assert not re.search(r":(class|func|meth|mod|data|attr):", html), f"a role in {path}"
        loaded = re.findall(
            r'<(?:script|img)[^>]+src="(https?:[^"]+)|<link[^>]+rel="stylesheet"[^>]+href="(https?:[^"]+)',
            html,
        )
        assert not loaded, f"{path} loads {loaded}"
