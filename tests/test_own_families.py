"""Families of curves and arms that users define: their names, their modules, their promises."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

from gym_fairbandits import arms, curves
from gym_fairbandits.agents import Greedy
from gym_fairbandits.curves.base import check_parameters
from gym_fairbandits.evaluation import evaluate

Floats = NDArray[np.float64]

OWN = """
from dataclasses import dataclass
from typing import ClassVar
from gym_fairbandits.curves import ShapedCurve

@dataclass(frozen=True)
class SlowSteps(ShapedCurve):
    asymptote: float
    family: ClassVar[str] = "slow_steps"

    @classmethod
    def shape(cls, pulls):
        return 1 - 1 / (1 + pulls)
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module that defines a family, found but not imported; forgotten afterwards."""
    (tmp_path / "curves_of_mine.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(curves.base, "_families", dict(curves.base._families))
    yield "curves_of_mine"
    sys.modules.pop("curves_of_mine", None)


def test_a_family_is_found_by_its_module(own_module: str) -> None:
    with pytest.raises(ValueError, match=r"or 'module:family' if .*, got 'slow_steps'"):
        curves.from_dict({"family": "slow_steps", "asymptote": 0.5})
    curve = curves.from_dict({"family": f"{own_module}:slow_steps", "asymptote": 0.5})
    assert curve(3) == 0.375
    assert curves.from_dict(curve.to_dict()) == curve
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        curves.from_dict({"family": "no_such_module:slow_steps", "asymptote": 0.5})
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        arms.from_dict({"family": "no_such_module:mine", "means": [0.5]})


@pytest.mark.slow
@pytest.mark.usefixtures("loky")
def test_other_processes_find_it_too(own_module: str) -> None:
    instance = [{"family": f"{own_module}:slow_steps", "asymptote": top} for top in (0.25, 0.5)]
    settings: dict[str, Any] = {"instance": instance, "horizon": 3, "num_episodes": 2}
    evaluation = evaluate(Greedy(), "ImprovingBandit-v0", n_jobs=2, **settings)
    # Arms 0, 1, 1 pay 1/8, 1/4, 1/3; arm 1 throughout 1/4, 1/3, 3/8.
    assert evaluation.mean("policy_regret") == pytest.approx(0.25, rel=1e-12)


def test_the_name_of_another_family_is_refused() -> None:
    with pytest.raises(ValueError, match=r"got 'linear_cap', the name of .*curves.*LinearCap"):

        class Impostor(curves.Curve):
            family = "linear_cap"

    with pytest.raises(ValueError, match=r"got 'bernoulli', the name of .*arms.*Bernoulli"):

        class OtherImpostor(arms.Arms):
            family = "bernoulli"

    unchanged = curves.from_dict({"family": "linear_cap", "asymptote": 1.0, "ramp": 4})
    assert isinstance(unchanged, curves.LinearCap)


def test_a_class_that_is_defined_once_more_takes_its_own_place(own_module: str) -> None:
    name = {"family": f"{own_module}:slow_steps", "asymptote": 1.0}
    before = type(curves.from_dict(name))
    del sys.modules[own_module]  # as when a cell of a notebook runs again
    after = type(curves.from_dict(name))
    assert after is not before


@dataclass(frozen=True)
class Promising(curves.ShapedCurve):
    """Says that its shape is in the model, which is true if ``bend <= 1`` and ``fall = 0``."""

    asymptote: float
    bend: float = 1.0
    fall: float = 0.0
    family: ClassVar[str] = "promising"

    def __post_init__(self) -> None:
        check_parameters(self)

    @classmethod
    def shape(cls, pulls: Floats, *parameters: Floats) -> Floats:
        bend, fall = parameters
        rising: Floats = np.minimum(pulls / 50, 1.0) ** bend * (1 - fall * (pulls > 50))
        return rising

    def has_model_shape(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("curve", "told"),
    [
        (Promising(0.8, fall=0.5), r"arm 0 decreases: f\(50\) = 0.8 but f\(51\) = 0.4"),
        (0.5 * Promising(0.8, fall=0.5), r"arm 0 decreases: f\(50\) = 0.4 but f\(51\) = 0.2"),
        (Promising(0.4, fall=0.5) + curves.Constant(0.5), "arm 0 decreases"),
        (Promising(0.8, bend=2.0), r"arm 0 breaks f\(2\) <= 2 f\(1\)"),
        (Promising(1.5), r"arm 0 leaves \[0, 1\]"),
    ],
)
def test_a_promise_about_a_shape_that_does_not_hold_is_seen(curve: curves.Curve, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        gym.make("ImprovingBandit-v0", instance=[curve])


@pytest.mark.parametrize("bend", [0.3, 1.0])
def test_a_promise_that_holds_is_believed(bend: float) -> None:
    curve = Promising(0.8, bend)
    for horizon in (1, 2, 3, 50, 1000):
        curves.check_improving(curve, horizon)
        curves.check_improving(0.5 * curve + curves.Constant(0.5), horizon)
