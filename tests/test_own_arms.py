"""Reward laws that users define: what they must say before anything is played."""

from __future__ import annotations

import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_names import Floats, Ints

from gym_fairbandits.agents import EgalUCB
from gym_fairbandits.arms import Arms, Bernoulli, base, from_dict
from gym_fairbandits.experiments.engine import simulate

NOTHING = object()


class Own(Arms):
    """Pays its means plus the draw; ``noise`` and ``means`` are what each instance is given."""

    def __init__(self, noise: Any = "random", means: Any = NOTHING) -> None:
        if noise is not NOTHING:
            self.noise = noise
        if means is not NOTHING:
            self.means = means

    def rewards(self, arms: Ints, draws: Floats, step: int | Ints, pulls: Ints) -> Floats:
        paid: Floats = self.means[arms] + draws
        return paid

    def parameters(self) -> dict[str, Any]:
        return {}


MEANS = np.array([0.5, 0.25])
MISTAKES: list[tuple[Own, type[Exception], str]] = [
    *(
        (
            Own(noise, MEANS),
            ValueError,
            f"`Own.noise` must be one of 'random', 'standard_normal', None, got {noise!r}",
        )
        for noise in ("normal", "uniform", "gaussian", "", 0, ["random"])
    ),
    (Own(NOTHING, MEANS), TypeError, "`Own` must have `noise`"),
    (Own("random"), TypeError, "`Own` must have `means`"),
    (
        Own("random", [0.5, 0.25]),
        TypeError,
        "`Own.means` must be an array of shape (num_arms,), got [0.5, 0.25]",
    ),
    (Own("random", np.array([0.5, np.nan])), ValueError, "`Own.means` must be finite, got nan"),
    (Own("random", np.ones((2, 2))), ValueError, "`Own.means` must be a non-empty sequence"),
    (Own("random", np.zeros(0)), ValueError, "`Own.means` must be a non-empty sequence"),
    (Own("random", np.array(["a", "b"])), TypeError, "`Own.means` must be a non-empty sequence"),
]


@pytest.mark.parametrize(("law", "error", "message"), MISTAKES, ids=lambda value: None)
def test_a_law_that_would_be_played_wrongly_is_refused(
    law: Own, error: type[Exception], message: str
) -> None:
    told = re.escape(message)
    with pytest.raises(error, match=told):
        gym.make("EgalAssign-v0", instance=law, num_users=2)
    with pytest.raises(error, match=told):
        gym.make_vec("EgalAssign-v0", num_envs=2, instance=law, num_users=2)
    with pytest.raises(error, match=told):
        simulate(EgalUCB(), law, num_users=2, horizon=4, num_runs=1)
    drawn: Any = gym.make("EgalAssign-v0", instance=lambda *_: law, num_users=2, num_arms=2)
    with pytest.raises(error, match=told):
        drawn.reset(seed=0)
    env: Any = gym.make("EgalAssign-v0", num_users=2, num_arms=2, horizon=4)
    env.reset(seed=0)
    arms = env.unwrapped.arms
    with pytest.raises(error, match=told):
        env.reset(options={"instance": law})
    assert env.unwrapped.arms is arms


def test_a_law_that_is_defined_once_more_takes_its_own_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(base, "_families", dict(base._families))

    def define() -> type[Arms]:
        class Again(Bernoulli):
            family = "law_defined_again"

        return Again

    before, after = define(), define()  # as when a cell of a notebook runs again
    made = from_dict({"family": "law_defined_again", "means": [0.5]})
    assert type(made) is after is not before


@pytest.mark.parametrize("noise", ["random", "standard_normal", None])
def test_noise_says_which_draws_a_law_gets(noise: str | None) -> None:
    env: Any = gym.make("EgalAssign-v0", instance=Own(noise, np.zeros(2, int)), num_users=2)
    env.reset(seed=3)
    generator = np.random.default_rng(3)
    expected = np.zeros(2) if noise is None else getattr(generator, noise)(2)
    assert env.step([0, 1])[4]["user_rewards"].tolist() == expected.tolist()
