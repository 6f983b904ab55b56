"""What pip installs: a wheel built from the sdist, whole, and no trouble for its neighbours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from helpers_checkout import AGENTS, PACKAGE, ROOT, python_files

import gym_fairbandits

pytestmark = pytest.mark.slow
pytest.importorskip("build")


def run(*command: str | Path, cwd: Path) -> str:
    """Return what a command prints; fail with all that it said if it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file but the caches that an import leaves behind."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel built from an sdist of the tree."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    skipped = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(PACKAGE, source / PACKAGE.name, symlinks=True, ignore=skipped)
    shutil.copytree(AGENTS, source / AGENTS.name, ignore=skipped)
    output = tmp_path_factory.mktemp("dist")
    # By default `build` makes the sdist and then the wheel from what the sdist holds.
    run(sys.executable, "-m", "build", "--outdir", output, source, cwd=output)
    (path,) = output.glob("*.whl")
    return path


def test_wheel_built_from_the_sdist_is_whole(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (archive.read(name).decode() for name in names if name.endswith("/METADATA"))
    modules = {
        name.replace(".", "/") + ("/__init__.py" if path.name == "__init__.py" else ".py")
        for name, path in python_files().items()
    }
    assert {name for name in names if name.endswith(".py")} == modules
    assert "gym_fairbandits/agents/egalitarian.py" in modules
    assert "gym_fairbandits/py.typed" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert f"\nVersion: {gym_fairbandits.__version__}\n" in metadata
    assert "\nLicense-Expression: MIT\n" in metadata


def test_wheel_keeps_to_its_own_folders(wheel: Path) -> None:
    # A top-level `agents` would overwrite that of openai-agents, and be removed with it.
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert tops == {"gym_fairbandits", f"gym_fairbandits-{gym_fairbandits.__version__}.dist-info"}


def test_wheel_and_openai_agents_leave_each_other_whole(wheel: Path, tmp_path: Path) -> None:
    # Installed over each other, as neighbours are whose files share names; and taken away again.
    uv = (sys.executable, "-m", "uv", "--quiet")
    run(*uv, "venv", "--python", sys.executable, "venv", cwd=tmp_path)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = (*uv, "pip")
    command = (*pip, "install", "--python", str(python), "openai-agents")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if "Failed to fetch" in done.stderr:
        pytest.skip(f"the package index is out of reach: {done.stderr.splitlines()[-1].strip()}")
    assert done.returncode == 0, done.stderr
    (theirs,) = tmp_path.glob("venv/**/site-packages/agents")
    before = contents(theirs)

    run(*pip, "install", "--python", python, wheel, cwd=tmp_path)
    assert contents(theirs) == before
    code = (
        "import agents, gym_fairbandits.agents as ours\n"
        "print(agents.Agent.__module__, ours.EgalUCB.__module__)"
    )
    modules = run(python, "-I", "-c", code, cwd=tmp_path).split()
    assert modules == ["agents.agent", "gym_fairbandits.agents.egalitarian"]

    run(*pip, "uninstall", "--python", python, "gym-fairbandits", cwd=tmp_path)
    assert not (theirs.parent / "gym_fairbandits").exists()
    assert contents(theirs) == before

    run(*pip, "install", "--python", python, "--no-deps", wheel, cwd=tmp_path)
    run(*pip, "uninstall", "--python", python, "openai-agents", cwd=tmp_path)
    code = "import gym_fairbandits.agents as ours; print(ours.EgalUCB.__module__)"
    assert run(python, "-I", "-c", code, cwd=tmp_path).split() == modules[1:]
