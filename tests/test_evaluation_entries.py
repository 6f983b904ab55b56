"""What a policy may be: agents, classes, callables, predictors, and what translates for them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_evaluation import DYADIC, LowestFree, assert_same
from helpers_names import EGAL, IMPROVING, Kwargs
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from gym_fairbandits.agents import FixedArm, OracleArm, OracleRotation, RoundRobin, StaticOracle
from gym_fairbandits.arms import Bernoulli, Gaussian
from gym_fairbandits.evaluation import Entry, compare, evaluate
from gym_fairbandits.wrappers import RankedAssignment, SequentialAssignment

IMPROVING_PAIR: Kwargs = {"instance": "early_vs_late", "horizon": 100, "num_episodes": 2}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (OracleArm, 80.5),  # 820/40 + 60
        (Entry(OracleArm), 80.5),
        (Entry(factory=OracleArm), 80.5),
        (Entry(factory=partial(OracleArm, steps=1)), 49.75),  # 1/4 + 99/2: the early arm
        (Entry(factory=lambda env: FixedArm(env.single_action_space.n - 1)), 80.5),
        (Entry(factory=FixedArm), 49.75),
        (Entry(factory=lambda: FixedArm(1)), 80.5),
        (FixedArm, 49.75),
        (FixedArm(1), 80.5),
        (Entry(FixedArm(1)), 80.5),
        (lambda observation: np.ones(len(observation["pulls"]), dtype=np.int32), 80.5),
    ],
)
@pytest.mark.parametrize("wrappers", [(), (gym.Wrapper,)], ids=["native", "wrapped"])
def test_agents_classes_factories_and_callables_play(
    policy: Any, expected: float, wrappers: Sequence[Any]
) -> None:
    if isinstance(policy, Entry):
        policy = Entry(policy.policy, factory=policy.factory, wrappers=wrappers)
        run = evaluate(policy, IMPROVING, **IMPROVING_PAIR)
    else:
        run = evaluate(policy, IMPROVING, wrappers=wrappers, **IMPROVING_PAIR)
    assert_allclose(run.episodes["expected_return"], [expected] * 2, rtol=1e-14)
    assert_allclose(run.episodes["policy_regret"], [80.5 - expected] * 2, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("wrappers", [(), (gym.Wrapper,)], ids=["native", "wrapped"])
def test_egalitarian_oracles_reach_their_known_regrets(wrappers: Sequence[Any]) -> None:
    comparison = compare(
        {
            "rotation": Entry(OracleRotation, wrappers=wrappers),
            "static": Entry(StaticOracle, wrappers=wrappers),
        },
        EGAL,
        instance=Bernoulli(DYADIC),
        num_users=2,
        horizon=12,
        num_episodes=5,
        num_envs=2,
    )
    rotation, static = comparison["rotation"], comparison["static"]
    assert rotation.user_returns is not None
    assert rotation.user_returns.tolist() == [[7.5, 7.5]] * 5
    assert rotation.episodes["policy_regret"].tolist() == [0.0] * 5
    assert static.user_returns is not None
    assert static.user_returns.tolist() == [[9.0, 6.0]] * 5
    assert static.episodes["policy_regret"].tolist() == [1.5] * 5  # T (mu* / U - mu_U)
    assert static.episodes["min_user_return"].tolist() == [6.0] * 5
    assert static.pulls.tolist() == [[12, 12, 0, 0]] * 5


def test_a_callable_gets_observations_and_nothing_else() -> None:
    seen: list[list[str]] = []

    def rarest(observation: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
        seen.append(sorted(observation))
        fewest: NDArray[np.int64] = observation["pulls"].argmin(axis=1)
        return fewest

    play: Any = partial(
        compare, env_id=IMPROVING, num_arms=4, horizon=10, num_episodes=5, num_envs=2
    )
    comparison = play({"callable": rarest, "agent": RoundRobin()})
    assert_same(comparison["callable"], comparison["agent"])
    assert seen == [["last_increment", "last_reward", "pulls", "reward_sum"]] * 30


class Explorer:
    """A learner whose ``act`` is for training, with arguments of its own."""

    def act(self, observation: Any, epsilon: float) -> Any:
        raise NotImplementedError

    def predict(
        self, observation: Any, state: Any, episode_start: Any, deterministic: bool
    ) -> tuple[Any, Any]:
        return np.ones(len(observation["pulls"]), dtype=np.int64), state


def test_a_policy_is_asked_by_predict_whatever_else_it_has() -> None:
    for policy in (Explorer(), Explorer, Entry(factory=Explorer)):
        run = evaluate(policy, IMPROVING, **IMPROVING_PAIR)
        assert_allclose(run.episodes["expected_return"], [80.5] * 2, rtol=1e-14)


class Recurrent:
    """Arm t mod k: t is kept in the state that the evaluation carries."""

    calls = 0

    def predict(
        self, observation: Any, state: Any, episode_start: Any, deterministic: bool
    ) -> tuple[NDArray[np.int64], Any]:
        rows, num_arms = observation["pulls"].shape
        self.calls += 1
        assert deterministic is True
        assert episode_start.dtype == np.bool_
        assert episode_start.tolist() == [state is None] * rows
        counted = np.zeros(rows, dtype=np.int64) if state is None else state
        assert_array_equal(counted, observation["pulls"].sum(axis=1))
        return counted % num_arms, counted + 1


@pytest.mark.parametrize("wrappers", [(), (gym.Wrapper,)], ids=["native", "wrapped"])
def test_recurrent_state_is_carried_and_starts_anew_with_each_chunk(
    wrappers: Sequence[Any],
) -> None:
    policy = Recurrent()
    play: Any = partial(evaluate, env_id=IMPROVING, num_arms=3, horizon=10, num_episodes=7)
    assert_same(play(policy, num_envs=3, wrappers=wrappers), play(RoundRobin()))
    assert policy.calls == 3 * 10


@pytest.mark.parametrize("num_envs", [1, 3])
def test_masks_reach_policies_that_take_them(num_envs: int) -> None:
    run = evaluate(
        LowestFree(),
        EGAL,
        instance=Gaussian(DYADIC, 1.0),
        num_users=3,
        horizon=4,
        num_episodes=5,
        num_envs=num_envs,
        wrappers=[partial(SequentialAssignment, strict=True)],
    )
    assert run.user_returns is not None
    assert run.user_returns.tolist() == [[3.0, 2.0, 1.0]] * 5  # user u always had arm u
    assert run.pulls.tolist() == [[4, 4, 4, 0]] * 5


class Unmasked:
    """Round robin that would take masks, if there were any."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: Any = "none given",
    ) -> tuple[NDArray[Any], Any]:
        assert action_masks == "none given"
        return RoundRobin().predict(observation, state)


@pytest.mark.parametrize("wrappers", [(), (gym.Wrapper,)], ids=["native", "wrapped"])
def test_no_masks_are_passed_where_the_environment_has_none(wrappers: Sequence[Any]) -> None:
    play: Any = partial(evaluate, env_id=IMPROVING, num_arms=3, horizon=4, num_episodes=2)
    assert_same(play(Unmasked(), wrappers=wrappers), play(RoundRobin()))


def test_action_wrappers_translate() -> None:
    def scores(observation: dict[str, NDArray[Any]]) -> NDArray[np.float32]:
        assert observation["pulls"].shape[1:] == (4,)
        return np.array([[-1, 0, 1, 0]] * len(observation["pulls"]), dtype=np.float32)

    run = evaluate(
        scores,
        EGAL,
        instance=Gaussian(DYADIC, 1.0),
        num_users=2,
        horizon=4,
        num_episodes=3,
        wrappers=[RankedAssignment],
    )
    assert run.pulls.tolist() == [[0, 4, 4, 0]] * 3
    assert run.user_returns is not None
    assert run.user_returns.tolist() == [[1.0, 2.0]] * 3  # user 0 the best score, then arm 1


def test_wrappers_apply_innermost_first() -> None:
    made_of: list[tuple[str, Any, Any]] = []

    def layer(name: str, env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
        wrapped: gym.Env[Any, Any] = gym.Wrapper(env)
        made_of.append((name, env, wrapped))
        return wrapped

    wrappers = [partial(layer, "inner"), partial(layer, "outer")]
    evaluate(FixedArm(0), IMPROVING, num_episodes=2, horizon=2, wrappers=wrappers)
    assert [name for name, _, _ in made_of] == ["inner", "outer"] * 2
    for (_, _, inner), (_, around, _) in zip(made_of[::2], made_of[1::2], strict=True):
        assert around is inner


def test_an_entry_has_environment_arguments_of_its_own() -> None:
    left: list[list[int]] = []

    def aware(observation: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
        left.append(observation["remaining"].ravel().tolist())
        return np.ones(len(observation["pulls"]), dtype=np.int64)

    def unaware(observation: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
        assert "remaining" not in observation
        return np.ones(len(observation["pulls"]), dtype=np.int64)

    comparison = compare(
        {"aware": Entry(aware, env_kwargs={"horizon_known": True}), "unaware": unaware},
        IMPROVING,
        instance="early_vs_late",
        horizon=3,
        horizon_known=False,
        num_episodes=2,
    )
    assert left == [[3, 3], [2, 2], [1, 1]]
    assert_same(comparison["aware"], comparison["unaware"])


def test_an_observation_normaliser_may_be_a_callable() -> None:
    def doubled(observation: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        return {name: 2 * values for name, values in observation.items()}

    seen: list[int] = []

    def policy(observation: dict[str, NDArray[Any]]) -> NDArray[np.int64]:
        seen.append(int(observation["pulls"].sum()))
        return np.zeros(len(observation["pulls"]), dtype=np.int64)

    play: Any = partial(evaluate, env_id=IMPROVING, num_arms=2, horizon=3, num_episodes=1)
    play(policy, normalize=doubled)
    play(policy, normalize=doubled, wrappers=[gym.Wrapper])
    play(Entry(policy, normalize=doubled))
    play(policy)
    assert seen == [0, 2, 4] * 3 + [0, 1, 2]
