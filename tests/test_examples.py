"""What the examples share: how they end at Ctrl-C."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def shared() -> Any:
    """The module that every example starts with."""
    spec = importlib.util.spec_from_file_location("cli_of_examples", EXAMPLES / "cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ctrl_c_is_one_line_and_exit_code_130(
    shared: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def main() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as stopped:
        shared.start(main)
    assert stopped.value.code == 130
    assert capsys.readouterr().err == "stopped\n"


def test_every_example_with_arguments_is_started_so() -> None:
    scripts = [path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.py")]
    with_arguments = [script for script in scripts if "from cli import" in script]
    assert len(with_arguments) >= 6
    assert all(script.endswith("    start(main)\n") for script in with_arguments)
