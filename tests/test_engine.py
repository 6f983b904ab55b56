"""Simulations against stepped environments, and compiled rules against the package's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled
from helpers_agents import EGAL_AGENTS, HORIZON, FirstPullOfArmZeroPaysNothing, episode
from helpers_names import EGAL, IMPROVING, Ints
from numpy.testing import assert_allclose, assert_array_equal

from gym_fairbandits import agents
from gym_fairbandits.agents import Agent, AnytimeImproving, EgalUCB, OracleRotation
from gym_fairbandits.agents.egalitarian import RotatingAgent, top_arms, ucb_index
from gym_fairbandits.arms import Arms, Bernoulli, Empirical, Gaussian, Switching
from gym_fairbandits.experiments import Simulation, simulate

RATINGS = Empirical([[1.0, 2.0, 3.5], [0.5, 0.1], [0.7], [2.0, 0.3], [5.0, 1.0, -2.0]])
INSTANCES: dict[str, Any] = {
    "bernoulli": "bernoulli",
    "gaussian": {"name": "gaussian", "variance": 0.1},
    "ties": Bernoulli([0.5, 1.0, 1.0, 0.0, 1.0]),
    "certain": Gaussian([0.5, 0.4, 0.5, 0.1], 0.0),
    "empirical": RATINGS,
    "drawn ratings": lambda rng, num_users, num_arms: Empirical(rng.random((num_arms, 3))),
}
SIZES = [(1, 1, 401), (3, 1, 300), (4, 1, 302), (4, 2, 301), (4, 4, 55), (2, 1, 1)]


def stepped(
    agent: Agent, instance: Any, seed: int, checkpoints: Sequence[int], **kwargs: Any
) -> Any:
    """Return pulls, and regret and users' totals at checkpoints, of the scalar environment."""
    env: Any = gym.make(EGAL, instance=instance, **kwargs).unwrapped
    agent.reset(seed=seed)
    observation, _ = env.reset(seed=seed)
    expected, realized, optimum = [], [], []
    for step in range(1, env.horizon + 1):
        observation, *_ = env.step(agent.act(observation))
        if step in checkpoints:
            expected.append(env.expected_user_returns())
            realized.append(env.realized_user_returns())
            optimum.append(env.optimal_return())
    return env.pulls, np.array(expected), np.array(realized), np.array(optimum)


def assert_is_stepping(
    runs: Simulation, make: Callable[[], Agent], instance: Any, seed: int, **kwargs: Any
) -> None:
    for run in range(len(runs.pulls)):
        pulls, expected, realized, optimum = stepped(
            make(), instance, seed + run, runs.checkpoints.tolist(), **kwargs
        )
        assert_array_equal(runs.pulls[run], pulls)
        assert_allclose(runs.expected_user_returns[run], expected, rtol=1e-9, atol=1e-9)
        assert_allclose(runs.realized_user_returns[run], realized, rtol=1e-9, atol=1e-9)
        assert_allclose(runs.optimum[run], optimum, rtol=1e-12)


# --- blocks are steps ---------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize(("num_users", "capacity", "horizon"), SIZES)
def test_engines_play_what_the_environment_plays(
    engine: str, name: str, num_users: int, capacity: int, horizon: int
) -> None:
    if engine == "numba":
        pytest.importorskip("numba")
    checkpoints = sorted({1, min(2, horizon), min(7, horizon), (horizon + 1) // 2, horizon})
    make = partial(EgalUCB, c=0.3, capacity=capacity)
    kwargs: dict[str, Any] = {"num_users": num_users, "capacity": capacity, "horizon": horizon}
    runs = simulate(
        make(),
        INSTANCES[name],
        num_runs=3,
        seed=5,
        checkpoints=checkpoints,
        engine=engine,
        **kwargs,
    )
    assert runs.engine == engine
    assert_is_stepping(runs, make, INSTANCES[name], 5, **kwargs)


@pytest.mark.parametrize("name", EGAL_AGENTS)
@pytest.mark.parametrize("horizon_known", [False, True])
def test_every_agent_plays_what_it_plays_alone(name: str, horizon_known: bool) -> None:
    kwargs: dict[str, Any] = {
        "num_users": 3,
        "horizon": HORIZON,
        "num_arms": 5,
        "horizon_known": horizon_known,
    }
    make = EGAL_AGENTS[name]
    runs = simulate(make(), "bernoulli", num_runs=2, seed=1, checkpoints=[1, 50, HORIZON], **kwargs)
    assert_is_stepping(runs, make, "bernoulli", 1, **kwargs)


def test_agents_that_learn_between_blocks_or_play_other_numbers_of_arms_are_stepped() -> None:
    plays = partial(simulate, instance="two_level", num_users=3, horizon=30, num_runs=2)
    assert plays(agents.EgalKLUCB(), engine="numpy").engine == "numpy"
    assert plays(EgalUCB(update="played")).engine == "numpy"
    assert plays(agents.EgalThompson()).engine == "steps"
    assert plays(agents.PoorestFirst()).engine == "steps"
    assert plays(OracleRotation).engine == "steps"


@pytest.mark.parametrize(
    "arms",
    [
        FirstPullOfArmZeroPaysNothing([0.9, 0.5, 0.1]),
        Switching([[0.9, 0.1, 0.5], [0.1, 0.9, 0.5]], [40]),
    ],
)
def test_arms_that_depend_on_more_than_the_draw_are_stepped(arms: Arms) -> None:
    runs = simulate(
        EgalUCB(), arms, num_users=2, horizon=90, num_runs=2, seed=3, checkpoints=[40, 41, 90]
    )
    assert runs.engine == "steps"
    assert_is_stepping(runs, EgalUCB, arms, 3, num_users=2, horizon=90)


def test_a_block_begins_as_an_agent_acts() -> None:
    acting, choosing = EgalUCB(capacity=2), EgalUCB(capacity=2)
    rng = np.random.default_rng(0)
    for step in range(0, 20, 2):
        pulls = np.full((3, 4), step // 2, dtype=np.int64)
        observation = {
            "pulls": pulls,
            "reward_sum": rng.random((3, 4)) * pulls,
            "user_reward_sum": np.zeros((3, 4)),
        }
        sets = choosing.begin_block(observation, step)
        assert_array_equal(acting.act(observation), np.repeat(sets, 2, axis=1))


def test_chooses_per_block_is_of_those_who_override_nothing() -> None:
    class Watching(EgalUCB):
        def _act(self, observation: Any) -> Ints:
            return super()._act(observation)

    assert EgalUCB().chooses_per_block
    assert not Watching().chooses_per_block
    assert not agents.EgalThompson("gaussian").chooses_per_block


def test_rotating_agents_with_other_seams_still_rotate() -> None:
    # `begin_block` and `act` may alternate: the set chosen by either stands for the block.
    agent: RotatingAgent = EgalUCB()
    env: Any = gym.make(EGAL, num_users=3, horizon=9)
    observation, _ = env.reset(seed=0)
    batch = {name: values[None] for name, values in observation.items()}
    sets = agent.begin_block(batch, 0)[0].copy()
    observation, *_ = env.step(sets)
    assert_array_equal(agent.act(observation), np.roll(sets, 1))


# --- results ------------------------------------------------------------------------------------


def test_regret_of_a_rotation_by_hand() -> None:
    # Arms pay 0.9, 0.5, 0.1 for certain. The first block plays arms 0 and 1, so that user 0 has
    # 0.9, then 1.4; user 1 has 0.5, then 1.4. Two users get 0.7 per step at best.
    runs = simulate(
        EgalUCB(),
        Gaussian([0.9, 0.5, 0.1], 0.0),
        num_users=2,
        horizon=2,
        num_runs=1,
        checkpoints=[1, 2],
    )
    assert_allclose(runs.expected_user_returns, [[[0.9, 0.5], [1.4, 1.4]]])
    assert_allclose(runs.optimum, [[0.7, 1.4]])
    assert_allclose(runs.policy_regret, [[0.2, 0.0]], atol=1e-15)
    assert_allclose(runs.realized_regret, [[0.2, 0.0]], atol=1e-15)
    assert runs.pulls.tolist() == [[2, 2, 0]]


def test_utilitarian_regret_is_of_the_mean() -> None:
    runs = simulate(
        EgalUCB(),
        Gaussian([0.9, 0.5, 0.1], 0.0),
        num_users=2,
        horizon=3,
        num_runs=1,
        checkpoints=3,
        objective="utilitarian",
    )
    # The third step plays arm 2, never played, and arm 0: a mean of 0.5.
    assert_allclose(runs.policy_regret, [[0.0, 0.0, 0.2]], atol=1e-15)


def test_checkpoints_are_spread_to_the_end() -> None:
    runs = simulate(EgalUCB(), "bernoulli", num_users=2, horizon=10, num_runs=1, checkpoints=4)
    assert runs.checkpoints.tolist() == [2, 5, 7, 10]


def test_an_oracle_has_no_regret_and_the_agent_given_stays_as_it_was() -> None:
    runs = simulate(OracleRotation, "bernoulli", num_users=2, horizon=40, num_runs=3)
    assert_allclose(runs.policy_regret, 0, atol=1e-12)
    agent = EgalUCB()
    before = repr(vars(agent))
    simulate(agent, "bernoulli", num_users=2, horizon=40, num_runs=3)
    assert repr(vars(agent)) == before


@pytest.mark.parametrize("agent", [AnytimeImproving(), agents.UniformRandom()])
def test_improving_arms_are_runs_of_one_user(agent: Agent) -> None:
    runs = simulate(
        agent, "random_concave", num_users=None, horizon=60, num_runs=2, seed=4, checkpoints=[9, 60]
    )
    for run in range(2):
        env: Any = gym.make(IMPROVING, horizon=60).unwrapped
        agent.reset(seed=4 + run)
        episode(env, agent, seed=4 + run)
        assert_array_equal(runs.pulls[run], env.pulls)
        assert_allclose(runs.expected_user_returns[run, -1], [env.expected_return()])
        assert_allclose(
            runs.policy_regret[run, -1], env.optimal_return() - env.expected_return(), atol=1e-9
        )
    assert runs.expected_user_returns.shape == (2, 2, 1)


# --- compiled forms of rules --------------------------------------------------------------------


def test_compiled_index_and_choice_are_the_agents_value_for_value() -> None:
    kernels = pytest.importorskip("gym_fairbandits.experiments._kernels")
    rng = np.random.default_rng(0)
    for num_arms in (1, 2, 10, 37):
        for _ in range(200):
            pulls = rng.integers(0, 20, num_arms)
            sums = np.where(
                rng.random() < 0.5, rng.integers(0, 20, num_arms), rng.normal(size=num_arms)
            )
            steps, sigma = np.array([rng.integers(1, 10**6)]), float(rng.random())
            expected = ucb_index(sums[None], pulls[None], steps, 6.0, sigma)[0]
            index = np.empty(num_arms)
            kernels.index_into(index, sums, pulls, 6.0 * np.log(steps)[0], sigma)
            assert_array_equal(index, expected)
            count = int(rng.integers(1, num_arms + 1))
            chosen = np.empty(count, dtype=np.int64)
            kernels.top_into(chosen, np.empty(count), index)
            assert_array_equal(chosen, top_arms(index[None], count)[0])


@pytest.mark.parametrize("law", [Bernoulli([0.2, 0.7]), Gaussian([0.2, -3.0], [1.5, 0.1]), RATINGS])
def test_compiled_rewards_are_those_of_the_arms(law: Arms) -> None:
    kernels = pytest.importorskip("gym_fairbandits.experiments._kernels")
    from gym_fairbandits.experiments.engine import _tables

    kind, means, std, pool, starts, counts = _tables(law)
    rng = np.random.default_rng(1)
    draws = rng.random(500)
    draws[:3] = 0.0, 0.2, np.nextafter(1.0, 0.0)
    for arm in range(law.num_arms):
        expected = law.rewards(np.full(500, arm), draws, 0, np.zeros(law.num_arms, dtype=np.int64))
        numbers = means[arm], std[arm], pool, starts[arm], counts[arm]
        found = [kernels.reward(kind, draw, *numbers) for draw in draws.tolist()]
        assert_array_equal(found, expected)


@pytest.mark.parametrize(("num_users", "num_arms"), [(1, 6), (4, 6), (6, 6)])
def test_both_engines_choose_alike_through_ties_and_long_runs(
    num_users: int, num_arms: int
) -> None:
    pytest.importorskip("numba")
    for arms in (Bernoulli([0.5] * num_arms), Gaussian([0.0] * num_arms, 1e-9)):
        numpy_runs, numba_runs = (
            simulate(
                EgalUCB(c=2),
                arms,
                num_users=num_users,
                horizon=12_000,
                num_runs=2,
                checkpoints=30,
                engine=engine,
            )
            for engine in ("numpy", "numba")
        )
        assert_array_equal(numpy_runs.pulls, numba_runs.pulls)
        assert_allclose(
            numpy_runs.realized_user_returns, numba_runs.realized_user_returns, rtol=1e-9
        )


def test_beyond_the_kept_inverses_and_over_many_pieces_the_engines_agree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("numba")
    play = partial(
        simulate, EgalUCB(), "gaussian", num_users=2, horizon=3001, num_runs=2, checkpoints=7
    )
    whole = play(engine="numba")
    monkeypatch.setattr("gym_fairbandits.experiments.engine.INVERSES", 5)
    monkeypatch.setattr("gym_fairbandits.experiments.engine.DRAWS_AT_ONCE", 40)
    pieces = play(engine="numba")
    assert_array_equal(whole.pulls, pieces.pulls)
    assert_allclose(whole.realized_user_returns, pieces.realized_user_returns, rtol=1e-12)
    assert_array_equal(whole.pulls, play(engine="numpy").pulls)


# --- arguments ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"agent": "egal-ucb"}, TypeError, "`agent` must be an `Agent` or make one"),
        ({"num_runs": 0}, ValueError, "`num_runs` must be at least 1"),
        ({"seed": -1}, ValueError, "`seed` must be at least 0"),
        ({"horizon": 2.5}, TypeError, "`horizon` must be an integer"),
        ({"engine": "jax"}, ValueError, "`engine` must be one of"),
        ({"checkpoints": []}, ValueError, "`checkpoints` must ascend"),
        ({"checkpoints": [5, 5]}, ValueError, "`checkpoints` must ascend"),
        ({"checkpoints": [0, 5]}, ValueError, "`checkpoints` must be at least 1"),
        ({"checkpoints": [11]}, ValueError, "`checkpoints` must be at most 10"),
        ({"checkpoints": 11}, ValueError, "`checkpoints` must be at most 10"),
        ({"num_users": 20}, ValueError, "`num_users` must be at most"),
        ({"agent": EgalUCB(capacity=2)}, ValueError, "`capacity` must be at least that of"),
        (
            {"agent": EgalUCB(capacity=3), "capacity": 3, "num_users": 4},
            ValueError,
            "`capacity` must divide",
        ),
        ({"agent": agents.PoorestFirst(), "engine": "numba"}, ValueError, "block by block"),
        ({"agent": agents.EgalMOSS(10), "engine": "numba"}, ValueError, "other than `EgalUCB`"),
        ({"agent": EgalUCB(update="played"), "engine": "numba"}, ValueError, 'update="all"'),
    ],
)
def test_wrong_arguments_are_named(
    changed: dict[str, Any], error: type[Exception], message: str
) -> None:
    arguments: dict[str, Any] = {
        "agent": EgalUCB(),
        "instance": "bernoulli",
        "num_users": 2,
        "horizon": 10,
        "num_runs": 1,
    }
    with pytest.raises(error, match=message):
        simulate(**(arguments | changed))


def test_without_numba_auto_takes_numpy_and_numba_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr("gym_fairbandits.experiments.engine.find_spec", lambda name: None)
    play = partial(simulate, EgalUCB(), "bernoulli", num_users=2, horizon=10, num_runs=1)
    assert play().engine == "numpy"
    with pytest.raises(DependencyNotInstalled, match="needs numba"):
        play(engine="numba")
