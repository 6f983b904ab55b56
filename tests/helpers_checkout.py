"""The folders of the checkout, the modules in them, and what a fresh Python says there."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "gym_fairbandits"
AGENTS = ROOT / "agents"


def python_files() -> dict[str, Path]:
    """Return every module of the package by its dotted name, agents included, once each."""
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in PACKAGE.rglob("*.py")
        if AGENTS not in path.resolve().parents
    }
    for path in AGENTS.rglob("*.py"):
        files[".".join(("gym_fairbandits", *path.relative_to(ROOT).with_suffix("").parts))] = path
    return {name.removesuffix(".__init__"): path for name, path in sorted(files.items())}


def imported(name: str) -> ModuleType:
    """Import a module of ours; skip the test where an extra that it needs is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        lacking = str(error.name)
        if lacking.partition(".")[0] == "gym_fairbandits":
            raise
        pytest.skip(f"{name} needs {lacking}")


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a fresh Python; fail with its traceback if it fails."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done
