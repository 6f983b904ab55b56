"""Families of curves and arms that users define: their names, their modules, their promises."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from helpers_names import Floats, Ints

from gym_fairbandits import arms, curves
from gym_fairbandits.curves.base import check_parameters


def test_a_dict_form_is_data_and_imports_nothing() -> None:
    for from_dict in (curves.from_dict, arms.from_dict):
        with pytest.raises(ValueError, match="got 'antigravity:mine'; one of your own is known"):
            from_dict({"family": "antigravity:mine", "means": [0.5]})
    assert "antigravity" not in sys.modules


def test_the_name_of_another_family_is_refused() -> None:
    with pytest.raises(ValueError, match=r"got 'linear_cap', the name of .*curves.*LinearCap"):

        class Impostor(curves.Curve):
            family = "linear_cap"

    with pytest.raises(ValueError, match=r"got 'bernoulli', the name of .*arms.*Bernoulli"):

        class OtherImpostor(arms.Arms):
            family = "bernoulli"

    unchanged = curves.from_dict({"family": "linear_cap", "asymptote": 1.0, "ramp": 4})
    assert isinstance(unchanged, curves.LinearCap)


def test_a_class_that_is_defined_once_more_takes_its_own_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(curves.base, "_families", dict(curves.base._families))

    def define() -> type[curves.Curve]:
        class Again(curves.Constant):
            family = "defined_again"

        return Again

    before, after = define(), define()  # as when a cell of a notebook runs again
    made = curves.from_dict({"family": "defined_again", "value": 0.5})
    assert type(made) is after is not before


@dataclass(frozen=True)
class Nameless(curves.Curve):
    """Plays like any curve, but nothing names its dict form."""

    asymptote: float = 0.5

    def evaluate(self, pulls: Floats) -> Floats:
        return np.full_like(pulls, 0.5)


class NamelessArms(arms.Arms):
    """Plays like any arms, but nothing names their dict form."""

    noise = None
    means = np.array([0.5])

    def rewards(self, arms: Ints, draws: Floats, step: int | Ints, pulls: Ints) -> Floats:
        return self.means[arms]

    def parameters(self) -> dict[str, Any]:
        return {}


def test_what_has_no_family_plays_and_is_told_so_where_it_needs_one() -> None:
    for env in (
        gym.make("ImprovingBandit-v0", instance=[Nameless()]),
        gym.make("EgalAssign-v0", instance=NamelessArms(), num_users=1),
    ):
        env.reset(seed=0)
    for thing, name in ((Nameless(), "Nameless"), (NamelessArms(), "NamelessArms")):
        with pytest.raises(TypeError, match=f"`{name}` must have a `family`, the name of its dict"):
            thing.to_dict()


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


@dataclass(frozen=True)
class Recorded(curves.Curve):
    """Knows the rewards of ten pulls and no more."""

    family: ClassVar[str] = "recorded"
    asymptote: float = 1.0

    def evaluate(self, pulls: Floats) -> Floats:
        rewards: Floats = np.arange(1, 11)[pulls.astype(np.int64) - 1] / 10
        return rewards


@pytest.mark.parametrize("horizon", [7, 10])
def test_no_curve_is_asked_for_more_pulls_than_an_episode_has(horizon: int) -> None:
    instance = [Recorded(), curves.Constant(0.5)]
    env = gym.make("ImprovingBandit-v0", instance=instance, horizon=horizon)
    envs = gym.make_vec("ImprovingBandit-v0", num_envs=2, instance=instance, horizon=horizon)
    for _ in range(2):
        env.reset(seed=0)
        envs.reset(seed=0)
        for pull in range(1, horizon + 1):
            assert env.step(0)[1] == pull / 10
            assert envs.step(np.array([0, 1]))[1].tolist() == [pull / 10, 0.5]
        assert env.unwrapped.next_expected_rewards()[0] == horizon / 10  # type: ignore[attr-defined]
