"""Environments refuse wrong arguments by name, scalar and vector ones alike."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_conformance import SCALAR, VECTOR
from helpers_envs import MIXED, every_id
from helpers_names import EGAL, IMPROVING, Kwargs
from helpers_play import assert_identical

NAN, INF = math.nan, math.inf
INTEGER = "must be an integer"
WRONG: list[tuple[str, Kwargs, type[Exception], str]] = [
    *(
        (env_id, {"horizon": value}, error, f"`horizon` {rule}")
        for env_id in (IMPROVING, EGAL)
        for value, error, rule in [
            (0, ValueError, "must be at least 1, got 0"),
            (-5, ValueError, "must be at least 1, got -5"),
            (2**53 + 1, ValueError, "must be at most 9007199254740992"),
            (10.0, TypeError, INTEGER),
            (NAN, TypeError, INTEGER),
            (None, TypeError, INTEGER),
            (True, TypeError, INTEGER),
            ("10", TypeError, INTEGER),
        ]
    ),
    *(
        (env_id, {name: value}, TypeError, f"`{name}` must be a bool")
        for env_id in (IMPROVING, EGAL)
        for name in ("horizon_known", "render_reveal")
        for value in (1, "yes", None, NAN)
    ),
    *(
        (env_id, {"num_arms": value}, error, f"`num_arms` {rule}")
        for env_id in (IMPROVING, EGAL)
        for value, error, rule in [
            (0, ValueError, "must be at least 1, got 0"),
            (-1, ValueError, "must be at least 1, got -1"),
            (3.0, TypeError, INTEGER),
            (NAN, TypeError, INTEGER),
            (True, TypeError, INTEGER),
            ("3", TypeError, INTEGER),
        ]
    ),
    *(
        (env_id, {"instance": value}, error, message)
        for env_id in (IMPROVING, EGAL)
        for value, error, message in [
            ("nope", ValueError, r"`instance` must be one of \[.*'lower_bound'.*\], got 'nope'"),
            ({"name": "nope"}, ValueError, "`instance` must be one of .*, got 'nope'"),
            ({"late": 1}, ValueError, "`instance` must be one of .*, got None"),
            ({"name": ["x"]}, ValueError, "`instance` must be one of .*"),
            (
                {"name": "lower_bound", "bogus": 1, "num_arms": 10},
                ValueError,
                r"instance 'lower_bound' takes the parameters \[.*\], got \['bogus'\]",
            ),
            (None, TypeError, "`instance` must be a name, .*, got None"),
            (5, TypeError, "`instance` must be a name, .*, got 5"),
            (NAN, TypeError, "`instance` must be a name, .*, got nan"),
        ]
    ),
    (
        IMPROVING,
        {"instance": "early_vs_late", "num_arms": 3},
        ValueError,
        "`num_arms` must be .* 2",
    ),
    (IMPROVING, {"instance": []}, ValueError, "`instance` must hold at least one curve"),
    (IMPROVING, {"instance": [0.5]}, TypeError, "arm 0 must be a `Curve` or its dict form"),
    (IMPROVING, {"instance": MIXED[0]}, TypeError, "`instance` must be a name"),
    (IMPROVING, {"instance": [*MIXED[:2], {"family": "nope"}]}, ValueError, "`family` must be one"),
    (
        IMPROVING,
        {"instance": [*MIXED[:2], {"family": "tabulated", "values": [0.5, 0.75, 0.625]}]},
        ValueError,
        r"arm 2 decreases: f\(2\) = 0\.75 but f\(3\) = 0\.625",
    ),
    (
        IMPROVING,
        {"instance": [{"family": "constant", "value": NAN}]},
        ValueError,
        "`value` must be finite",
    ),
    (
        IMPROVING,
        {"instance": {"name": "early_vs_late", "early_ramp": NAN}},
        ValueError,
        "`early_ramp` must be finite",
    ),
    *(
        (IMPROVING, {"noise_std": value}, error, f"`noise_std` {rule}")
        for value, error, rule in [
            (-0.5, ValueError, "must be at least 0, got -0.5"),
            (NAN, ValueError, "must be finite, got nan"),
            (INF, ValueError, "must be finite, got inf"),
            (None, TypeError, "must be a real number"),
            ("0", TypeError, "must be a real number"),
            (True, TypeError, "must be a real number"),
            (1j, TypeError, "must be a real number"),
        ]
    ),
    *(
        (IMPROVING, {"validate": value}, TypeError, "`validate` must be a bool")
        for value in (1, "no", None, NAN)
    ),
    *(
        (EGAL, {name: value}, error, f"`{name}` {rule}")
        for name in ("num_users", "capacity")
        for value, error, rule in [
            (0, ValueError, "must be at least 1, got 0"),
            (-2, ValueError, "must be at least 1, got -2"),
            (2.0, TypeError, INTEGER),
            (NAN, TypeError, INTEGER),
            (None, TypeError, INTEGER),
            (True, TypeError, INTEGER),
            ("2", TypeError, INTEGER),
        ]
    ),
    (EGAL, {"num_users": 11}, ValueError, r"`num_users` must be at most .* 10, got 11"),
    (
        EGAL,
        {"num_users": 7, "num_arms": 3, "capacity": 2},
        ValueError,
        "`num_users` must be at most .* 6, got 7",
    ),
    *(
        (EGAL, {"objective": value}, ValueError, "`objective` must be one of 'egalitarian', 'util")
        for value in ("fair", None, 3, NAN, ["egalitarian"])
    ),
    (
        EGAL,
        {"instance": {"family": "bernoulli", "means": [0.5, 0.5]}, "num_users": 2, "num_arms": 3},
        ValueError,
        "`num_arms` must be the instance's number of arms, 2",
    ),
    (
        EGAL,
        {"instance": {"family": "bernoulli", "means": [0.5, NAN]}},
        ValueError,
        "`means` must be",
    ),
    (EGAL, {"instance": {"family": "nope"}}, ValueError, "`family` must be one of"),
    (
        EGAL,
        {"instance": {"name": "gaussian", "variance": NAN}},
        ValueError,
        "`variance` must be fini",
    ),
    (
        EGAL,
        {"instance": {"name": "gaussian", "variance": -1}},
        ValueError,
        "`variance` must be at le",
    ),
    (EGAL, {"instance": [0.5, 0.5]}, TypeError, "`instance` must be a name"),
]


@pytest.mark.parametrize(("env_id", "kwargs", "error", "message"), WRONG)
def test_wrong_arguments_are_refused_by_name_scalar_and_vector(
    env_id: str, kwargs: Kwargs, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        SCALAR[env_id](**kwargs)
    with pytest.raises(error, match=message):
        VECTOR[env_id](num_envs=2, **kwargs)
    with pytest.raises(error, match=message):
        gym.make(env_id, **kwargs)


@every_id
def test_every_argument_has_a_wrong_value_above(env_id: str) -> None:
    tried = {name for case, kwargs, *_ in WRONG if case == env_id for name in kwargs}
    assert tried | {"render_mode"} == set(inspect.signature(SCALAR[env_id]).parameters)


@pytest.mark.parametrize("mode", ["nope", 3, "movie"])
@every_id
def test_an_unknown_render_mode_is_refused(env_id: str, mode: Any) -> None:
    with pytest.raises(TypeError, match="`render_mode` must be None or one of"):
        SCALAR[env_id](render_mode=mode)
    with pytest.raises(TypeError, match="`render_mode` must be None or one of"):
        VECTOR[env_id](render_mode=mode)


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"num_envs": 0}, ValueError, "`num_envs` must be at least 1, got 0"),
        ({"num_envs": 2.0}, TypeError, "`num_envs` must be an integer"),
        ({"num_envs": True}, TypeError, "`num_envs` must be an integer"),
        ({"max_episode_steps": 0}, ValueError, "`max_episode_steps` must be at least 1, got 0"),
        ({"max_episode_steps": -2}, ValueError, "`max_episode_steps` must be at least 1, got -2"),
        ({"max_episode_steps": 2.5}, TypeError, "`max_episode_steps` must be an integer"),
        ({"max_episode_steps": NAN}, TypeError, "`max_episode_steps` must be an integer"),
        ({"max_episode_steps": True}, TypeError, "`max_episode_steps` must be an integer"),
        ({"max_episode_steps": "5"}, TypeError, "`max_episode_steps` must be an integer"),
        ({"autoreset_mode": "nope"}, ValueError, "`autoreset_mode` must be .* got 'nope'"),
        ({"autoreset_mode": None}, ValueError, "`autoreset_mode` must be .* got None"),
        ({"autoreset_mode": 1}, ValueError, "`autoreset_mode` must be .* got 1"),
    ],
)
@every_id
def test_wrong_arguments_of_the_vector_environment_are_refused_by_name(
    env_id: str, kwargs: Kwargs, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        gym.make_vec(env_id, **{"num_envs": 2, **kwargs})


@every_id
def test_integers_of_numpy_are_integers(env_id: str) -> None:
    env: Any = SCALAR[env_id](num_arms=np.int8(6), horizon=np.uint16(9), horizon_known=np.True_)
    assert type(env.num_arms) is int
    assert type(env.horizon) is int
    assert env.horizon_known is True
    assert env.observation_space["pulls"].shape == (6,)


@every_id
def test_misspelt_options_are_ignored_with_a_warning(env_id: str) -> None:
    for maker in (gym.make, gym.make_vec):
        env: Any = maker(env_id, horizon=4)
        plain: Any = maker(env_id, horizon=4)
        with pytest.warns(UserWarning, match=r"reads .*`instance`.*, not \['instnace', 3\]"):
            given = env.reset(seed=0, options={"instnace": "nope", 3: 4})
        assert_identical(given, plain.reset(seed=0))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            env.reset(options={})
            env.reset(options={"instance": None})
        with pytest.raises(TypeError, match="`options` must be a dict or None, got"):
            env.unwrapped.reset(options=["instance"])


@pytest.mark.parametrize("means", [[0.5, 0.25], (1, 0), np.array([0.5, 0.25])])
def test_plain_numbers_as_an_instance_are_answered_with_what_to_write(means: Any) -> None:
    with pytest.raises(TypeError, match=r"say which law .* \{\"family\": \"bernoulli\", \"means\""):
        gym.make(EGAL, instance=means, num_users=2)
    with pytest.raises(TypeError, match=r"\[\{\"family\": \"constant\", \"value\": 0\.5\}"):
        gym.make(IMPROVING, instance=means)
