"""What an environment takes as an instance: curves, dicts, callables, and specs in JSON."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from helpers_instances import curves_of, improving

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits.arms import Empirical
from gym_fairbandits.curves import Constant, Curve, LinearCap, Tabulated

# --- What an environment takes as an instance -----------------------------------------------------


def test_a_sequence_of_curves_or_dicts_is_taken_as_it_is() -> None:
    curves: list[Curve] = [Constant(0.5), LinearCap(1.0, 4), Tabulated((0.1, 0.2))]
    dicts = [curve.to_dict() for curve in curves]
    for instance in (curves, tuple(curves), dicts, [curves[0], dicts[1], curves[2]]):
        env = improving(instance)
        assert env.num_arms == 3
        for seed in (0, None):
            env.reset(seed=seed)
            assert list(env.curves) == curves
    assert curves_of(curves, num_arms=3) == curves


def test_a_callable_draws_from_the_stream_of_instances_at_every_reset() -> None:
    asked: list[tuple[type, int]] = []

    def draw(rng: np.random.Generator, num_arms: int) -> list[Curve | dict[str, Any]]:
        asked.append((type(rng), num_arms))
        levels = rng.random(num_arms).tolist()
        return [Constant(levels[0]), *({"family": "constant", "value": v} for v in levels[1:])]

    env = improving(draw, num_arms=3)
    assert asked == []
    episodes = []
    for seed in (7, None, 7, None):
        env.reset(seed=seed)
        episodes.append([curve.value for curve in env.curves])
    assert asked == [(np.random.Generator, 3)] * 4
    assert episodes[:2] == episodes[2:]
    assert episodes[0] != episodes[1]
    stream = np.random.default_rng(7).spawn(1)[0]
    assert episodes[:2] == [stream.random(3).tolist(), stream.random(3).tolist()]
    assert len(curves_of(draw)) == 10


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        ([Constant(0.5)], ValueError, "`num_arms` must be the instance's number of arms, 1, or"),
        ([], ValueError, "`instance` must hold at least one curve, got none"),
        (None, TypeError, "`instance` must be"),
        (Constant(0.5), TypeError, "`instance` must be"),
        ([Constant(0.5), 0.25], TypeError, "arm 1 must be a `Curve` or its dict form, got 0.25"),
        ([Constant(0.5), Constant(1.5)], ValueError, "arm 1 leaves [0, 1]: f(1) = 1.5"),
        ([{"family": "constant"}] * 2, TypeError, "family 'constant' takes the parameters"),
    ],
)
def test_a_callable_that_draws_something_else_is_refused_and_the_episode_goes_on(
    returned: Any, error: Any, message: str
) -> None:
    good = [LinearCap(1.0, 4), Constant(0.5)]
    answers: list[Any] = [good, returned, good]
    env = improving(lambda rng, num_arms: answers.pop(0), num_arms=2)
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(error, match=re.escape(message)):
        env.reset()
    observation, reward, *_ = env.step(0)
    assert reward == 0.5
    assert observation["pulls"].tolist() == [2, 0]
    assert list(env.curves) == good
    env.reset()
    assert env.step(0)[1] == 0.25


@pytest.mark.parametrize(
    ("instance", "settings", "error", "message"),
    [
        (
            "early_late",
            {},
            ValueError,
            "`instance` must be one of ['early_vs_late', 'lower_bound',",
        ),
        ("early_late", {}, ValueError, "got 'early_late'"),
        ({"late": 2}, {}, ValueError, "`instance` must be one of ['early_vs_late',"),
        ({"name": 3}, {}, ValueError, "`instance` must be one of ['early_vs_late',"),
        (
            {"name": "lower_bound", "lat": 2},
            {},
            ValueError,
            "instance 'lower_bound' takes the parameters "
            "['late', 'num_arms', 'printing', 'steps'], got ['lat']",
        ),
        (
            {"name": "policy_vs_external", "steps": 9},
            {},
            ValueError,
            "instance 'policy_vs_external' takes the parameters [], got ['steps']",
        ),
        (
            {"name": "random_concave", "seed": 1},
            {},
            ValueError,
            "takes the parameters ['num_arms']",
        ),
        (
            {"name": "random_concave", "num_arms": 0},
            {},
            ValueError,
            "`num_arms` must be at least 1",
        ),
        ({"name": "lower_bound", "late": 10}, {}, ValueError, "`late` must be at most 9, got 10"),
        (
            {"name": "early_vs_late", "late_asymptote": 1.5},
            {},
            ValueError,
            "arm 1 leaves [0, 1]: f(27) = 1.0125",
        ),
        ("early_vs_late", {"num_arms": 3}, ValueError, "number of arms, 2, or None, got 3"),
        ("policy_vs_external", {"num_arms": 1}, ValueError, "number of arms, 2, or None, got 1"),
        ("lower_bound", {"num_arms": 1}, ValueError, "`num_arms` must be at least 2, got 1"),
        (
            {"name": "random_concave", "num_arms": 3},
            {"num_arms": 4},
            ValueError,
            "number of arms, 3, or None, got 4",
        ),
        (
            {"name": "lower_bound", "num_arms": 3},
            {"num_arms": 4},
            ValueError,
            "number of arms, 3, or None, got 4",
        ),
        ([Constant(0.5)], {"num_arms": 2}, ValueError, "number of arms, 1, or None, got 2"),
        ([], {}, ValueError, "`instance` must hold at least one curve, got none"),
        ([Constant(0.5), 0.5], {}, TypeError, "arm 1 must be a `Curve` or its dict form, got 0.5"),
        ([Constant(2.0)], {}, ValueError, "arm 0 leaves [0, 1]: f(1) = 2.0"),
        ([{"family": "line"}], {}, ValueError, "`family` must be one of"),
        (
            None,
            {},
            TypeError,
            "`instance` must be a name, a dict with a name, a sequence of curves",
        ),
        (3, {}, TypeError, "`instance` must be a name, a dict with a name, a sequence of curves"),
        (LinearCap(1.0, 4), {}, TypeError, "`instance` must be a name, a dict with a name, a seq"),
    ],
)
def test_wrong_improving_instances_are_refused(
    instance: Any, settings: dict[str, Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        improving(instance, **settings)
    if settings or instance is None:
        return  # a `None` option is no option
    env, twin = improving("lower_bound", noise_std=0.5), improving("lower_bound", noise_std=0.5)
    for either in (env, twin):
        either.reset(seed=1)
        either.step(3)
    with pytest.raises((TypeError, ValueError)):
        env.reset(options={"instance": instance})
    assert env.curves == twin.curves
    for action in (3, 9):
        after, expected = env.step(action), twin.step(action)
        assert after[1] == expected[1]
        assert all(after[0][key].tolist() == expected[0][key].tolist() for key in after[0])


# --- JSON -----------------------------------------------------------------------------------------

JSON_ABLE: list[tuple[str, Any, dict[str, Any]]] = [
    ("ImprovingBandit-v0", "random_concave", {"num_arms": 3}),
    ("ImprovingBandit-v0", {"name": "early_vs_late", "late_ramp": 90}, {}),
    ("ImprovingBandit-v0", {"name": "lower_bound", "late": None, "printing": "appendix"}, {}),
    ("ImprovingBandit-v0", {"name": "round_robin_trap", "num_arms": 4, "steps": 9}, {}),
    ("ImprovingBandit-v0", "policy_vs_external", {}),
    ("ImprovingBandit-v0", [c.to_dict() for c in [Constant(0.5), Tabulated((0.1, 0.2))]], {}),
    ("EgalAssign-v0", "bernoulli", {"num_arms": 7}),
    ("EgalAssign-v0", {"name": "gaussian", "variance": 0.1}, {}),
    ("EgalAssign-v0", {"name": "two_level", "high": 0.9}, {"num_users": 3}),
    ("EgalAssign-v0", {"name": "lower_bound", "boosted": [2, 3]}, {"num_users": 2}),
    ("EgalAssign-v0", Empirical([[1.0], [2.0, 3.0]]).to_dict(), {"num_users": 2}),
]


@pytest.mark.parametrize(("env_id", "instance", "settings"), JSON_ABLE)
def test_specs_with_instances_survive_json(
    env_id: str, instance: Any, settings: dict[str, Any]
) -> None:
    before = json.dumps(instance)
    env: Any = gym.make(env_id, instance=instance, horizon=30, **settings)
    spec = EnvSpec.from_json(cast(EnvSpec, env.spec).to_json())
    other: Any = gym.make(spec)
    for either in (env, other):
        either.reset(seed=2)
    attribute = "curves" if env_id == "ImprovingBandit-v0" else "arms"
    assert getattr(env.unwrapped, attribute) == getattr(other.unwrapped, attribute)
    assert json.dumps(instance) == before
