"""Settings, baselines and comparisons for the tests of evaluations."""

from __future__ import annotations

from typing import Any

import numpy as np
from helpers_agents import EGAL_AGENTS, EGAL_ORACLES, IMPROVING_AGENTS, IMPROVING_ORACLES
from helpers_names import EGAL, IMPROVING, Kwargs
from helpers_play import assert_identical
from numpy.testing import assert_array_equal
from numpy.typing import ArrayLike, NDArray

from gym_fairbandits.arms import Bernoulli
from gym_fairbandits.evaluation import Comparison, Evaluation

SETTINGS: dict[str, tuple[str, Kwargs]] = {
    "improving-redrawn-noise": (IMPROVING, {"num_arms": 4, "noise_std": 0.25, "horizon": 9}),
    "improving-fixed": (
        IMPROVING,
        {"instance": "early_vs_late", "horizon": 13, "horizon_known": True},
    ),
    "egal-bernoulli": (EGAL, {"num_users": 3, "num_arms": 5, "horizon": 13}),
    "egal-gaussian-shared": (
        EGAL,
        {
            "instance": {"name": "gaussian", "variance": 0.1},
            "num_users": 4,
            "num_arms": 5,
            "capacity": 2,
            "objective": "utilitarian",
            "horizon": 11,
        },
    ),
}
# Means that floating point holds exactly, best first: arms 0 and 1 of 4 make mu* = 1.25.
DYADIC = [0.75, 0.5, 0.25, 0.125]


def baselines(env_id: str) -> dict[str, Any]:
    """Return every baseline as a user passes it: agents as objects, oracles as classes."""
    plain = IMPROVING_AGENTS if env_id == IMPROVING else EGAL_AGENTS
    oracles = IMPROVING_ORACLES if env_id == IMPROVING else EGAL_ORACLES
    return {**{name: make() for name, make in plain.items()}, **oracles}


def assert_same(actual: Evaluation, expected: Evaluation) -> None:
    """Assert that two evaluations agree in every bit; what is told of them may differ."""
    given, wanted = ({**vars(run), "played": ""} for run in (actual, expected))
    assert_identical(given, wanted, "evaluation")


def assert_all_same(actual: Comparison, expected: Comparison) -> None:
    assert list(actual.evaluations) == list(expected.evaluations)
    for name, evaluation in expected.evaluations.items():
        assert_same(actual[name], evaluation)


def made(columns: dict[str, ArrayLike], users: ArrayLike | None = None) -> Evaluation:
    """Return an evaluation with these metrics and nothing else of interest."""
    episodes = {name: np.array(values, dtype=np.float64) for name, values in columns.items()}
    count = len(next(iter(episodes.values())))
    episodes.setdefault("optimal_return", np.full(count, 10.0))
    pulls = np.zeros((count, 2), dtype=np.int64)
    returns = None if users is None else np.array(users, dtype=np.float64)
    return Evaluation(episodes, (), np.zeros((count, 0)), pulls, returns)


class LowestFree:
    """The lowest arm that the masks allow."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> tuple[NDArray[np.int64], None]:
        assert action_masks.dtype == np.bool_
        assert_array_equal(action_masks, observation["taken"] == 0)
        return action_masks.argmax(axis=1), None


TRAP: Kwargs = {"instance": "policy_vs_external", "horizon": 20}
FIXED: Kwargs = {"instance": Bernoulli(DYADIC), "num_users": 2, "horizon": 12}
