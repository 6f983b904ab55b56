"""The agents against the published sequences, exact arithmetic, and themselves row by row."""

from __future__ import annotations

import copy
import inspect
import math
import pickle
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from helpers_agents import (
    ALL_AGENTS,
    DATA,
    DETERMINISTIC,
    EGAL,
    HORIZON_AWARE,
    IMPROVING,
    FirstPullOfArmZeroPaysNothing,
    Ints,
    Observation,
    build,
    episode,
    exact_algorithm1,
    exact_cap,
    factories,
    fixed,
    float_caps,
    random_caps,
    row,
)
from numpy.testing import assert_array_equal
from scipy.stats import chisquare

from gym_fairbandits.agents import (
    Agent,
    AnytimeImproving,
    EgalUCB,
    FixedArm,
    Greedy,
    OracleArm,
    OracleRotation,
    RotatingAgent,
    RoundRobin,
    StaticOracle,
    UniformRandom,
)
from gym_fairbandits.agents.egalitarian import ucb_index
from gym_fairbandits.agents.improving import optimistic_estimate
from gym_fairbandits.arms import Bernoulli
from gym_fairbandits.curves import Constant, LinearCap, Tabulated
from gym_fairbandits.envs import ImprovingBanditEnv
from gym_fairbandits.wrappers import PolicyRegret
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

MODES = list(AutoresetMode)
every_agent = pytest.mark.parametrize(("env_id", "name"), ALL_AGENTS)
every_deterministic_agent = pytest.mark.parametrize(("env_id", "name"), DETERMINISTIC)

# Horizons at which EgalAssign's last block is cut short, so that episodes end within a block.
SMALL: dict[str, dict[str, Any]] = {
    IMPROVING: {"num_arms": 4, "horizon": 23},
    EGAL: {"num_users": 3, "num_arms": 5, "horizon": 23},
}

# --- Published values ---------------------------------------------------------------------------

PUBLISHED: dict[str, Callable[[], Agent]] = {
    "algorithm1": AnytimeImproving,
    "round_robin": RoundRobin,
    "greedy_last": Greedy,
}


def published_env(case: dict[str, Any]) -> PolicyRegret[Any, Any]:
    curves = [Tabulated(tuple(float(Fraction(value)) for value in values)) for values in case["f"]]
    return PolicyRegret(gym.make(IMPROVING, instance=curves, horizon=case["T"]))


@pytest.mark.parametrize("policy", PUBLISHED)
@pytest.mark.parametrize("case", DATA["imab_cases"], ids=lambda case: str(case["name"]))
def test_improving_agents_reproduce_the_published_cases(case: dict[str, Any], policy: str) -> None:
    expected = case["policies"][policy]
    env = published_env(case)
    sequence, rewards, info = episode(env, PUBLISHED[policy]())
    assert sequence == expected["sequence"]
    assert_array_equal(np.bincount(sequence, minlength=case["k"]), expected["counts"])
    close = {
        "expected_return": Fraction(expected["reward"]),
        "optimal_return": Fraction(case["opt"]),
        "policy_regret": Fraction(expected["regret"]),
        "competitive_ratio": Fraction(expected["ratio"]),
    }
    for key, value in close.items():
        assert info[key] == pytest.approx(float(value), rel=1e-12, abs=1e-12), key
    assert math.fsum(rewards) == pytest.approx(info["expected_return"], rel=1e-12)


def test_optimistic_estimates_follow_the_published_trace() -> None:
    env = gym.make(IMPROVING, instance="early_vs_late", horizon=1000)
    agent = AnytimeImproving()
    trace = {entry["t"]: entry for entry in DATA["imab_trace_early_vs_late"]}
    assert sorted(trace) == list(range(5, 25))
    observation, _ = env.reset()
    for step in range(1, 25):
        if step in trace:
            entry = trace[step]
            assert observation["pulls"].tolist() == entry["N"]
            assert observation["pulls"].max() == entry["N_star"]
            batch = {name: values[None] for name, values in observation.items()}
            exact = [[float(Fraction(value)) for value in entry["p"]]]
            np.testing.assert_allclose(optimistic_estimate(batch), exact, rtol=1e-12)
            assert agent.act(observation) == entry["pull"]
        observation, *_ = env.step(agent.act(observation))


@pytest.mark.parametrize("case", DATA["egal_cases"], ids=lambda case: str(case["name"]))
def test_egal_ucb_reproduces_the_published_cases(case: dict[str, Any]) -> None:
    if "stale" in case["name"]:
        arms: Any = FirstPullOfArmZeroPaysNothing(case["mu"])
    elif case["name"] == "K2_U1_01":
        arms = Bernoulli(case["mu"])
    else:
        arms = fixed(case["mu"])
    agent = EgalUCB(**case["options"])
    steps = agent.num_steps(case["T"], case["U"])
    assert steps == len(case["assign"])
    env = gym.make(EGAL, instance=arms, num_users=case["U"], horizon=steps)
    bandit: Any = env.unwrapped
    observation, _ = env.reset(seed=0)
    assigned = []
    for _ in range(steps):
        action = agent.act(observation)
        observation, *_ = env.step(action)
        assigned.append(action.tolist())
    assert assigned == case["assign"]
    np.testing.assert_allclose(observation["reward_sum"], case["S"], rtol=1e-12)
    np.testing.assert_allclose(observation["user_reward_sum"], case["user_totals"], rtol=1e-12)
    benchmark = bandit.optimal_return(case["T"])
    assert benchmark == pytest.approx(case["T_mustar_over_U"], rel=1e-12)
    assert benchmark - bandit.realized_return() == pytest.approx(case["regret"], abs=1e-12)
    if case["options"].get("update") != "played":  # whose indices are from different times
        index = ucb_index(
            observation["reward_sum"][None], observation["pulls"][None], np.array([steps]), 6, 1.0
        )
        np.testing.assert_allclose(index[0], case["ucb_final"], rtol=1e-12)


def test_the_printed_update_rule_never_returns_to_an_arm_that_paid_nothing_once() -> None:
    arms = FirstPullOfArmZeroPaysNothing([1, 0.5])
    horizon = 2000
    shares = {}
    for update in ("played", "all"):
        env = gym.make(EGAL, instance=arms, num_users=1, horizon=horizon)
        assigned, _, _ = episode(env, EgalUCB(update=update))
        shares[update] = Counter(action[0] for action in assigned)[0]
    assert shares["played"] == 1
    assert shares["all"] > horizon / 2


@pytest.mark.parametrize("horizon", [1, 2, 23, 24])
def test_number_of_steps_of_both_loops(horizon: int) -> None:
    assert EgalUCB(loop="fixed").num_steps(horizon, 3) == horizon
    # while b <= T/U, b from 0: the blocks b = 0, ..., floor(T/U).
    assert EgalUCB(loop="printed").num_steps(horizon, 3) == 3 * (horizon // 3 + 1)
    assert EgalUCB(loop="printed", capacity=3).num_steps(horizon, 6) == 2 * (horizon // 2 + 1)


@pytest.mark.parametrize("case", DATA["egal_capacity_cases"], ids=["U=4", "U=6"])
def test_egal_ucb_reproduces_the_published_capacity_cases(case: dict[str, Any]) -> None:
    users, capacity = case["U"], case["C"]
    env = PolicyRegret(
        gym.make(
            EGAL,
            instance=fixed(case["mu"]),
            num_users=users,
            capacity=capacity,
            horizon=case["T"],
        )
    )
    assigned, _, info = episode(env, EgalUCB(capacity=capacity))
    assert assigned == case["assign"]
    pulls = env.unwrapped._pulls  # type: ignore[attr-defined]
    assert_array_equal(pulls, np.array(case["B"]) * (users // capacity))
    np.testing.assert_allclose(info["expected_user_returns"], case["user_totals"], rtol=1e-12)
    assert info["optimal_return"] == pytest.approx(case["benchmark_TCmustar_over_U"], rel=1e-12)
    assert info["policy_regret"] == pytest.approx(case["regret"], rel=1e-12)
    assert info["realized_regret"] == pytest.approx(case["regret"], rel=1e-12)


# --- Algorithm 1 in floats equals Algorithm 1 in exact rationals --------------------------------


def lower_bound_exactly(num_arms: int, steps: int, late: int, printing: str) -> list[Any]:
    k = Fraction(num_arms)
    sweep = Fraction(math.ceil(steps / k)) if printing == "main" else steps / k
    curves = [exact_cap(1 / k, sweep)] * num_arms
    curves[late] = exact_cap(Fraction(1), k * sweep)
    return curves


@pytest.mark.parametrize(
    ("num_arms", "steps", "late", "printing"),
    [
        (3, 300, 2, "main"),
        (3, 301, 0, "appendix"),
        (3, 2000, 1, "appendix"),
        (5, 997, 4, "main"),
        (7, 700, 0, "main"),
        (7, 1234, 3, "appendix"),
        (10, 1000, 9, "main"),
        (11, 2000, 5, "main"),
        (11, 2000, 5, "appendix"),
        (19, 1500, 18, "main"),
        (29, 2000, 13, "appendix"),
        (37, 2000, 36, "main"),
        (37, 1000, 0, "appendix"),
    ],
)
def test_algorithm_1_keeps_the_exact_ties_of_the_lower_bound_family(
    num_arms: int, steps: int, late: int, printing: str
) -> None:
    instance = {"name": "lower_bound", "late": late, "printing": printing}
    env = gym.make(IMPROVING, instance=instance, num_arms=num_arms, horizon=steps)
    sequence, _, _ = episode(env, AnytimeImproving())
    exact = lower_bound_exactly(num_arms, steps, late, printing)
    assert sequence == exact_algorithm1(exact, steps)


def test_without_a_tolerance_rounding_breaks_those_ties() -> None:
    differs = 0
    for num_arms, steps in ((3, 301), (7, 1234), (11, 2000)):
        instance = {"name": "lower_bound", "late": 0, "printing": "appendix"}
        env = gym.make(IMPROVING, instance=instance, num_arms=num_arms, horizon=steps)
        sequence, _, _ = episode(env, AnytimeImproving(tolerance=0))
        exact = lower_bound_exactly(num_arms, steps, 0, "appendix")
        differs += sequence != exact_algorithm1(exact, steps)
    assert differs


SLOW_LINEAR = [
    # constant value, ramp of the equal linear arms, number of these
    (Fraction(1, 10), 20_000, 4),
    (Fraction(3, 10), 12_345, 6),
    (Fraction(1, 100), 65_537, 9),
    (Fraction(1, 1000), 1_000_003, 3),
]


def constant_and_linear(value: Fraction, ramp: int, others: int, steps: int) -> None:
    curves = [Constant(float(value)), *[LinearCap(1.0, ramp)] * others]
    env = gym.make(IMPROVING, instance=curves, horizon=steps)
    sequence, _, _ = episode(env, AnytimeImproving())
    linear = exact_cap(Fraction(1), ramp)
    exact = exact_algorithm1([lambda n: value, *[linear] * others], steps)
    assert sequence == exact
    assert len(set(exact[2 * (others + 1) :])) > 1  # the linear arms do return


@pytest.mark.slow
@pytest.mark.parametrize(("value", "ramp", "others"), SLOW_LINEAR)
def test_algorithm_1_is_exact_over_long_gaps(value: Fraction, ramp: int, others: int) -> None:
    constant_and_linear(value, ramp, others, 20_000)


@pytest.mark.parametrize(("value", "ramp", "others"), [(Fraction(1, 20), 1_999, 3)])
def test_algorithm_1_is_exact_over_gaps(value: Fraction, ramp: int, others: int) -> None:
    constant_and_linear(value, ramp, others, 2_000)


@pytest.mark.parametrize("seed", range(20))
def test_algorithm_1_is_exact_on_random_caps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    num_arms, steps = int(rng.integers(2, 8)), int(rng.integers(20, 300))
    caps = random_caps(rng, num_arms)
    env = gym.make(IMPROVING, instance=float_caps(caps), horizon=steps)
    sequence, _, _ = episode(env, AnytimeImproving())
    assert sequence == exact_algorithm1([exact_cap(*cap) for cap in caps], steps)


@pytest.mark.parametrize("seed", range(20))
def test_algorithm_1_is_exact_on_random_concave_tables(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    num_arms, steps = int(rng.integers(2, 6)), int(rng.integers(20, 120))
    rises = -np.sort(-rng.integers(0, 30, (num_arms, steps)), axis=1)
    rises = np.where(rng.random((num_arms, 1)) < 0.3, np.minimum(rises, 2), rises)
    levels = rises.cumsum(axis=1)
    scale = int(levels.max()) + 1
    curves = [Tabulated(tuple((values / scale).tolist())) for values in levels]
    rows: list[list[int]] = levels.tolist()
    exact = [lambda n, values=values: Fraction(values[n - 1], scale) for values in rows]
    env = gym.make(IMPROVING, instance=curves, horizon=steps)
    sequence, _, _ = episode(env, AnytimeImproving())
    assert sequence == exact_algorithm1(exact, steps)


# --- Hand-worked choices ------------------------------------------------------------------------


def seen(pulls: Sequence[int], **sums: Sequence[float]) -> Observation:
    arrays = {name: np.array(values, dtype=np.float64) for name, values in sums.items()}
    return {"pulls": np.array(pulls, dtype=np.int64), **arrays}


def improving_seen(
    pulls: Sequence[int],
    reward_sum: Sequence[float],
    last_reward: Sequence[float],
    last_increment: Sequence[float],
) -> Observation:
    return seen(
        pulls, reward_sum=reward_sum, last_reward=last_reward, last_increment=last_increment
    )


def test_algorithm_1_sweeps_twice_whatever_the_rewards() -> None:
    agent = AnytimeImproving()
    for pulls, arm in (([0, 0, 0], 0), ([1, 0, 0], 1), ([1, 1, 1], 0), ([2, 1, 1], 1)):
        rich = [9.0, 0.0, 0.0]
        assert agent.act(improving_seen(pulls, rich, rich, [0.0] * 3)) == arm


def test_algorithm_1_prefers_the_rising_arm_that_would_have_caught_up() -> None:
    # N* = 6; arm 0: p = 3. Arm 1, with 2 pulls: 0.3 + 4 * 0.2 + 0.1 * 4 * 5 / 2 = 2.1, and with
    # increments of 0.2: 0.3 + 0.8 + 2 = 3.1.
    agent = AnytimeImproving()
    assert agent.act(improving_seen([6, 2], [3.0, 0.3], [0.5, 0.2], [0.0, 0.1])) == 0
    assert agent.act(improving_seen([6, 2], [3.0, 0.3], [0.5, 0.2], [0.0, 0.2])) == 1


@pytest.mark.parametrize(("excess", "arm"), [(0.0, 2), (1e-10, 2), (1e-8, 0)])
def test_near_ties_go_to_the_fewest_pulls_then_the_lowest_index(excess: float, arm: int) -> None:
    # Constant arms of 0.5: every estimate is 0.5 N*. Arms 2 and 3 have the fewest pulls.
    sums = [2.0 + excess, 1.5, 1.0, 1.0]
    observation = improving_seen([4, 3, 2, 2], sums, [0.5] * 4, [0.0] * 4)
    assert AnytimeImproving().act(observation) == arm


def test_greedy_follows_the_last_reward_not_the_mean() -> None:
    observation = improving_seen([3, 2, 1], [2.7, 1.1, 0.6], [0.5, 0.8, 0.6], [0.0] * 3)
    assert Greedy().act(observation) == 1
    observation["pulls"] = np.array([3, 2, 0])
    assert Greedy().act(observation) == 2
    tied = improving_seen([3, 2, 2], [1.5, 1.0, 1.0], [0.5, 0.5, 0.5], [0.0] * 3)
    assert Greedy().act(tied) == 1


def test_egal_ucb_rotates_its_set_to_the_right() -> None:
    observation = seen([0] * 4, reward_sum=[0] * 4, user_reward_sum=[0] * 3)
    agent = EgalUCB()
    assigned = []
    for step in range(4):
        assigned.append(agent.act(observation).tolist())
        observation["pulls"][assigned[-1]] += 1
        observation["reward_sum"] = observation["pulls"] * [0.2, 0.9, 0.5, 0.0]
        assert observation["pulls"].sum() == 3 * (step + 1)
    # User u plays A[(u - i) mod 3]; then the arm never played comes first, then 1 and 2.
    assert assigned == [[0, 1, 2], [2, 0, 1], [1, 2, 0], [3, 1, 2]]


@pytest.mark.parametrize(("sigma", "first"), [(1.0, 1), (0.1, 0)])
def test_sigma_scales_the_bonus(sigma: float, first: int) -> None:
    # One user after 8 steps: bonus sqrt(6 ln 8 / n) = 1.44 for n = 6 and 2.50 for n = 2.
    observation = seen([6, 2], reward_sum=[5.4, 0.6], user_reward_sum=[6.0])
    assert EgalUCB(sigma=sigma).act(observation).tolist() == [first]


def test_the_bonus_vanishes_at_one_step_and_is_infinite_without_plays() -> None:
    index = ucb_index(np.array([[0.7, 0.0]]), np.array([[1, 0]]), np.array([1]), 6, 1.0)
    assert index.tolist() == [[0.7, math.inf]]


# --- One row, many rows -------------------------------------------------------------------------


def phases(
    env_id: str, **kwargs: Any
) -> Generator[tuple[Any, list[Any], list[Observation]], Any, None]:
    """Yield a native vector env, its scalar twins, and observations as an agent's turn comes.

    Rows are reset at different times, so that they are in different phases of their episodes; the
    consumer sends the batched action that both then play.
    """
    envs = gym.make_vec(env_id, num_envs=4, autoreset_mode="Disabled", **kwargs)
    singles = [gym.make(env_id, **kwargs) for _ in range(4)]
    batch, _ = envs.reset(seed=11)
    own = [env.reset(seed=11 + i)[0] for i, env in enumerate(singles)]
    for step in range(60):
        action = yield envs, singles, [batch, *own]
        batch, _, terminations, truncations, _ = envs.step(action)
        done = terminations | truncations
        for i, env in enumerate(singles):
            own[i], *_ = env.step(action[i])
        mask = done | (step == np.array([2, 7, 18, 40]))
        if mask.any():
            batch, _ = envs.reset(options={"reset_mask": mask})
            for i in np.flatnonzero(mask).tolist():
                own[i], _ = singles[i].reset()


@pytest.mark.parametrize("known", [False, True])
@every_agent
def test_batched_act_is_the_act_of_each_row(env_id: str, name: str, known: bool) -> None:
    stream = phases(env_id, **SMALL[env_id], horizon_known=known)
    envs, singles, observations = next(stream)
    together = build(env_id, name, envs)
    alone = [build(env_id, name, env) for env in singles]
    together.reset(seed=5)
    for i, agent in enumerate(alone):
        agent.reset(seed=5 + i)
    started = set()
    try:
        while True:
            batch, *own = observations
            started.add(tuple(batch["pulls"].sum(axis=1).tolist()))
            for i in range(4):
                for key, values in row(batch, i).items():
                    assert_array_equal(values, own[i][key], err_msg=key)
            actions = together.act(batch)
            assert actions.dtype == np.int64
            separate = [agent.act(seen_by) for agent, seen_by in zip(alone, own, strict=True)]
            assert_array_equal(actions, np.array(separate))
            _, _, observations = stream.send(actions)
    except StopIteration:
        pass
    assert sum(len(set(steps)) > 1 for steps in started) > 30  # rows were out of step


@every_agent
def test_a_batch_of_one_is_the_single_environment(env_id: str, name: str) -> None:
    single, batch = gym.make(env_id, **SMALL[env_id]), gym.make_vec(env_id, 1, **SMALL[env_id])
    one, many = build(env_id, name, single), build(env_id, name, batch)
    one.reset(seed=3)
    many.reset(seed=3)
    alone, _ = single.reset(seed=8)
    together, _ = batch.reset(seed=8)
    for _ in range(23):
        action, actions = one.act(alone), many.act(together)
        assert actions.shape == (1, *np.shape(action))
        assert_array_equal(actions[0], action)
        alone, *_ = single.step(action)
        together, *_ = batch.step(actions)


@every_agent
def test_actions_are_legal_fresh_and_of_the_stated_type(env_id: str, name: str) -> None:
    env = gym.make(env_id, **SMALL[env_id])
    agent = build(env_id, name, env)
    observation, _ = env.reset(seed=0)
    for _ in range(7):
        before = copy.deepcopy(observation)
        action = agent.act(observation)
        for key, values in before.items():  # the agent has not touched it
            assert_array_equal(observation[key], values)
        if env_id == IMPROVING:
            assert type(action) is int
            assert 0 <= action < 4
        else:
            assert action.dtype == np.int64
            assert env.action_space.contains(action)
        observation, *_ = env.step(copy.copy(action))
        if env_id == EGAL:
            action[:] = -1  # must not reach into the agent


@every_agent
def test_overwriting_batched_actions_changes_no_later_ones(env_id: str, name: str) -> None:
    envs = gym.make_vec(env_id, 2, **SMALL[env_id])
    careful, careless = build(env_id, name, envs), build(env_id, name, envs)
    for agent in (careful, careless):
        agent.reset(seed=0)
    observation, _ = envs.reset(seed=0)
    for _ in range(10):
        actions, overwritten = careful.act(observation), careless.act(observation)
        assert_array_equal(actions, overwritten)
        overwritten[:] = 0
        observation, *_ = envs.step(actions)


@every_deterministic_agent
def test_asked_again_a_deterministic_agent_repeats_itself(env_id: str, name: str) -> None:
    env, twin = gym.make(env_id, **SMALL[env_id]), gym.make(env_id, **SMALL[env_id])
    asked_once = build(env_id, name, twin)
    agent = build(env_id, name, env)
    for seed in (0, 1):
        expected, _, _ = episode(twin, asked_once, seed)
        observation, _ = env.reset(seed=seed)
        for action in expected:
            answers = [np.asarray(agent.act(observation)).tolist() for _ in range(3)]
            assert answers == [action] * 3
            observation, *_ = env.step(agent.act(observation))


class RandomSets(RotatingAgent):
    """Rotates over a random set of arms."""

    def _choose(self, observation: Any, steps: Ints, rows: Ints, count: int) -> Ints:
        num_arms = observation["pulls"].shape[1]
        return np.array([self._generator(i).permutation(num_arms)[:count] for i in rows.tolist()])


def test_a_set_chosen_at_random_stands_until_its_block_is_over() -> None:
    env = gym.make(EGAL, num_users=3, num_arms=30, horizon=30)
    agent = RandomSets()
    agent.reset(seed=0)
    observation, _ = env.reset(seed=0)
    sets = []
    for step in range(30):
        action = agent.act(observation)
        if step:
            assert_array_equal(agent.act(observation), action)
        sets.append(tuple(sorted(action.tolist())))
        observation, *_ = env.step(action)
    assert sets[::3] == sets[1::3] == sets[2::3]
    assert len(set(sets)) == 10


@every_deterministic_agent
def test_a_copy_of_an_agent_goes_on_as_the_agent_would(env_id: str, name: str) -> None:
    env = gym.make(env_id, **SMALL[env_id])
    agent = build(env_id, name, env)
    observation, _ = env.reset(seed=0)
    for _ in range(10):  # within a block
        observation, *_ = env.step(agent.act(observation))
    copied = copy.deepcopy(agent)
    pickled = pickle.loads(pickle.dumps(agent))
    for _ in range(13):
        action = agent.act(observation)
        assert_array_equal(copied.act(observation), action)
        assert_array_equal(pickled.act(observation), action)
        observation, *_ = env.step(action)


@every_deterministic_agent
def test_a_new_episode_is_noticed_without_a_reset(env_id: str, name: str) -> None:
    env, twin = gym.make(env_id, **SMALL[env_id]), gym.make(env_id, **SMALL[env_id])
    agent = build(env_id, name, env)
    for seed in range(4):
        actions, _, _ = episode(env, agent, seed)
        expected, _, _ = episode(twin, build(env_id, name, twin), seed)
        assert actions == expected


@every_deterministic_agent
def test_a_new_episode_is_noticed_after_one_that_was_broken_off(env_id: str, name: str) -> None:
    env = gym.make(env_id, **SMALL[env_id])
    agent = build(env_id, name, env)
    whole, _, _ = episode(env, build(env_id, name, env), seed=2)
    for length in (1, 2, 3, 7):
        observation, _ = env.reset(seed=1)
        for _ in range(length):
            observation, *_ = env.step(agent.act(observation))
        assert episode(env, agent, seed=2)[0] == whole


@every_deterministic_agent
def test_reset_makes_an_agent_as_good_as_new(env_id: str, name: str) -> None:
    env = gym.make(env_id, **SMALL[env_id])
    agent = build(env_id, name, env)
    whole, _, _ = episode(env, agent, seed=2)
    for seed in (None, 4):
        agent.reset(seed=seed)
        assert episode(env, agent, seed=2)[0] == whole


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        (env_id, name)
        for env_id in SMALL
        for name in factories(env_id, oracles=False)
        if name not in HORIZON_AWARE
    ],
)
def test_no_plain_agent_looks_at_the_horizon(env_id: str, name: str) -> None:
    short, known, long = (
        gym.make(env_id, **SMALL[env_id] | {"horizon": horizon, "horizon_known": is_known})
        for horizon, is_known in ((31, False), (31, True), (90, False))
    )
    sequences = []
    for env in (short, known, long):
        agent = build(env_id, name, env)
        agent.reset(seed=0)
        sequences.append(episode(env, agent, seed=6)[0][:31])
    assert sequences[0] == sequences[1] == sequences[2]


def test_an_agent_serves_environments_of_other_sizes_in_turn() -> None:
    agent = EgalUCB()
    for users, arms in ((2, 4), (3, 4), (3, 6), (1, 2), (2, 4)):
        env = gym.make(EGAL, num_users=users, num_arms=arms, horizon=20)
        expected, _, _ = episode(env, EgalUCB(), seed=0)
        assert episode(env, agent, seed=0)[0] == expected


@pytest.mark.parametrize(
    "sizes", [[(4, 1), (8, 1), (4, 1)], [(3, 1), (3, 2), (5, 1)], [(1, 1), (4, 1), (16, 1)]]
)
def test_a_random_agent_serves_environments_of_other_sizes_in_turn(
    sizes: list[tuple[int, int]],
) -> None:
    agents = {capacity: UniformRandom(capacity) for capacity in (1, 2)}
    for arms, capacity in sizes:
        improving = gym.make(IMPROVING, num_arms=arms, horizon=101)
        drawn, _, _ = episode(improving, agents[capacity], seed=0)
        assert set(drawn) <= set(range(arms))
        egal = gym.make(EGAL, num_users=arms, num_arms=arms, capacity=capacity, horizon=101)
        for assigned in episode(egal, agents[capacity], seed=0)[0]:
            assert egal.action_space.contains(np.array(assigned))


@every_agent
def test_lists_serve_as_the_observation_of_one_environment(env_id: str, name: str) -> None:
    env = gym.make(env_id, **SMALL[env_id])
    agent, twin = build(env_id, name, env), build(env_id, name, env)
    for each in (agent, twin):
        each.reset(seed=0)
    observation, _ = env.reset(seed=0)
    for _ in range(10):
        action = agent.act(observation)
        lists: Any = {name: values.tolist() for name, values in observation.items()}
        assert_array_equal(twin.act(lists), action)
        observation, *_ = env.step(action)


# --- predict ------------------------------------------------------------------------------------


def test_predict_has_the_parameters_of_stable_baselines() -> None:
    parameters = inspect.signature(Agent.predict).parameters
    assert list(parameters) == ["self", "observation", "state", "episode_start", "deterministic"]
    defaults = [parameters[name].default for name in list(parameters)[2:]]
    assert defaults == [None, None, True]


@every_agent
def test_predict_is_act_as_an_array_and_passes_the_state_on(env_id: str, name: str) -> None:
    env, envs = gym.make(env_id, **SMALL[env_id]), gym.make_vec(env_id, 3, **SMALL[env_id])
    for where in (env, envs):
        observation: Observation = where.reset(seed=0)[0]
        acting, predicting = build(env_id, name, where), build(env_id, name, where)
        for agent in (acting, predicting):
            agent.reset(seed=0)
        state = object()
        for deterministic in (True, False):
            action, passed = predicting.predict(
                observation, state, np.ones(3, dtype=np.bool_), deterministic
            )
            assert isinstance(action, np.ndarray)
            assert action.dtype == np.int64
            assert action.shape == where.action_space.shape
            assert passed is state
            assert_array_equal(action, acting.act(observation))
        assert predicting.predict(observation)[1] is None


# --- Random agents ------------------------------------------------------------------------------

random_envs = pytest.mark.parametrize("env_id", list(SMALL))


def draws(agent: Agent, observation: Observation, count: int = 12) -> list[Any]:
    return [np.asarray(agent.act(observation)).tolist() for _ in range(count)]


def first_batch(env_id: str, num_envs: int = 3) -> Observation:
    observation: Observation = gym.make_vec(env_id, num_envs, **SMALL[env_id]).reset(seed=0)[0]
    return observation


def by_row(drawn: list[Any]) -> list[list[Any]]:
    return [[step[i] for step in drawn] for i in range(len(drawn[0]))]


@random_envs
def test_a_seed_repeats_the_draws_and_none_lets_them_run_on(env_id: str) -> None:
    observation = first_batch(env_id)
    agent = UniformRandom()
    agent.reset(seed=4)
    both = draws(agent, observation, 24)
    agent.reset(seed=4)
    assert draws(agent, observation) == both[:12]
    agent.reset()
    assert draws(agent, observation) == both[12:]
    agent.reset(seed=5)
    assert draws(agent, observation) != both[:12]


@random_envs
def test_rows_have_the_streams_of_consecutive_seeds(env_id: str) -> None:
    observation = first_batch(env_id)
    agent, single = UniformRandom(), UniformRandom()
    agent.reset(seed=4)
    rows = by_row(draws(agent, observation))
    for i in range(3):
        single.reset(seed=4 + i)
        assert draws(single, row(observation, i)) == rows[i]
    assert rows[0] != rows[1]


@random_envs
@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_a_sequence_seeds_each_row_and_none_leaves_a_row_alone(env_id: str, kind: Any) -> None:
    observation = first_batch(env_id)
    agent = UniformRandom()
    agent.reset(seed=0)
    running_on = by_row(draws(agent, observation, 24))[1][12:]
    agent.reset(seed=0)
    draws(agent, observation)
    seeds = [9, 9, 2] if kind is np.array else [9, None, 2]
    agent.reset(seed=kind(seeds))
    rows = by_row(draws(agent, observation))
    single = UniformRandom()
    for i, seed in enumerate(seeds):
        if seed is None:
            assert rows[i] == running_on
        else:
            single.reset(seed=seed)
            assert draws(single, row(observation, i)) == rows[i]


@random_envs
def test_a_mask_reseeds_its_rows_only(env_id: str) -> None:
    observation = first_batch(env_id)
    agent = UniformRandom()
    agent.reset(seed=0)
    undisturbed = by_row(draws(agent, observation, 24))
    single = UniformRandom()
    for seed, expected in ((7, {1: 8, 2: 9}), ([20, 30, 40], {1: 30, 2: 40}), (None, {})):
        agent.reset(seed=0)
        draws(agent, observation)
        agent.reset(seed=seed, mask=np.array([False, True, True]))
        rows = by_row(draws(agent, observation))
        for i in range(3):
            if i in expected:
                single.reset(seed=expected[i])
                assert rows[i] == draws(single, row(observation, i))
            else:
                assert rows[i] == undisturbed[i][12:]


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        (-1, ValueError, "`seed` must be at least 0, got -1"),
        (1.5, TypeError, "`seed` must be an integer, got 1.5"),
        (True, TypeError, "`seed` must be an integer, got True"),
        ("12", TypeError, "`seed` must be an integer, got '1'"),
        ([7, -1, 7], ValueError, "`seed` must be at least 0, got -1"),
        ([7, 2.0, 7], TypeError, "`seed` must be an integer, got 2.0"),
    ],
)
def test_a_wrong_seed_is_named_and_changes_no_stream(
    seed: Any, error: type[Exception], message: str
) -> None:
    observation = first_batch(IMPROVING)
    agent = UniformRandom()
    agent.reset(seed=0)
    undisturbed = draws(agent, observation, 40)
    agent.reset(seed=0)
    assert draws(agent, observation, 20) == undisturbed[:20]
    with pytest.raises(error, match=message):
        agent.reset(seed=seed)
    assert draws(agent, observation, 20) == undisturbed[20:]


def test_seeds_and_mask_of_different_lengths_are_refused() -> None:
    observation = first_batch(IMPROVING)
    agent = UniformRandom()
    agent.reset(seed=0)
    undisturbed = draws(agent, observation)
    agent.reset(seed=0)
    with pytest.raises(ValueError, match="`seed` must have an entry per row of `mask`, 3, got 2"):
        agent.reset(seed=[1, 2], mask=np.ones(3, dtype=np.bool_))
    assert draws(agent, observation) == undisturbed


def test_a_mask_forgets_the_running_block_of_its_rows_only() -> None:
    # Arm 3 is the best by far, but the running block does not have it.
    pulls = np.array([[2, 2, 0, 0]] * 2)
    observation = {
        "pulls": pulls,
        "reward_sum": np.zeros((2, 4)),
        "user_reward_sum": np.zeros((2, 2)),
    }
    agent = EgalUCB()
    assert agent.act(observation).tolist() == [[2, 3]] * 2
    observation["pulls"] = pulls + np.array([0, 0, 1, 1])
    observation["reward_sum"] = np.array([[50.0, 0.0, 0.0, 0.0]] * 2)
    agent.reset(mask=np.array([True, False]))
    assert agent.act(observation).tolist() == [[2, 0], [3, 2]]


@pytest.mark.parametrize("num_arms", [2, 7])
def test_random_arms_are_uniform(num_arms: int) -> None:
    env = gym.make(IMPROVING, num_arms=num_arms, horizon=4000)
    agent = UniformRandom()
    agent.reset(seed=1)
    arms, _, _ = episode(env, agent, seed=0)
    assert chisquare(np.bincount(arms, minlength=num_arms)).pvalue > 1e-3


def test_random_assignments_are_uniform_at_capacity_1() -> None:
    observation = seen([0] * 4, reward_sum=[0] * 4, user_reward_sum=[0] * 3)
    agent = UniformRandom()
    agent.reset(seed=1)
    counted = Counter(tuple(drawn) for drawn in draws(agent, observation, 4800))
    assert set(counted) == set(permutations(range(4), 3))
    assert chisquare(list(counted.values())).pvalue > 1e-3


def test_random_assignments_at_capacity_2_are_legal_and_reach_every_legal_one() -> None:
    env = gym.make(EGAL, num_users=3, num_arms=3, capacity=2)
    observation, _ = env.reset(seed=0)
    agent = UniformRandom(capacity=2)
    agent.reset(seed=1)
    counted = Counter(tuple(drawn) for drawn in draws(agent, observation, 3000))
    assert all(env.action_space.contains(np.array(drawn)) for drawn in counted)
    assert len(counted) == 3**3 - 3  # all but those with three users on one arm


# --- Errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("construct", "error", "message"),
    [
        (lambda: AnytimeImproving(-1e-9), ValueError, "`tolerance` must be at least 0"),
        (lambda: AnytimeImproving(math.nan), ValueError, "`tolerance` must be finite, got nan"),
        (lambda: FixedArm(-1), ValueError, "`arm` must be at least 0, got -1"),
        (lambda: FixedArm(1.0), TypeError, "`arm` must be an integer, got 1.0"),  # type: ignore[arg-type]
        (lambda: UniformRandom(0), ValueError, "`capacity` must be at least 1, got 0"),
        (lambda: EgalUCB(capacity=0), ValueError, "`capacity` must be at least 1, got 0"),
        (lambda: EgalUCB(c=-1), ValueError, "`c` must be at least 0, got -1"),
        (lambda: EgalUCB(c="6"), TypeError, "`c` must be a real number, got '6'"),  # type: ignore[arg-type]
        (lambda: EgalUCB(sigma=math.inf), ValueError, "`sigma` must be finite, got inf"),
        (lambda: EgalUCB(update="some"), ValueError, "`update` must be one of 'all', 'played'"),
        (lambda: EgalUCB(loop="while"), ValueError, "`loop` must be one of 'fixed', 'printed'"),
    ],
)
def test_wrong_parameters_are_named(
    construct: Callable[[], Agent], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        construct()


@every_agent
@pytest.mark.parametrize("wrong", [np.zeros(5), {}, {"counts": np.zeros(5)}, None])
def test_what_is_no_observation_is_refused(env_id: str, name: str, wrong: Any) -> None:
    env = gym.make(env_id, **SMALL[env_id])
    agent = build(env_id, name, env)
    message = "`observation` must be the environment's Dict observation with `pulls`, got"
    with pytest.raises(TypeError, match=message):
        agent.act(wrong)


def test_a_fixed_arm_out_of_range_is_named() -> None:
    observation, _ = gym.make(IMPROVING, num_arms=3).reset(seed=0)
    assert FixedArm(2).act(observation) == 2
    with pytest.raises(ValueError, match="`arm` must be below the number of arms, 3, got 3"):
        FixedArm(3).act(observation)


def test_a_capacity_that_does_not_divide_the_users_is_named() -> None:
    observation, _ = gym.make(EGAL, num_users=5, capacity=2).reset(seed=0)
    agent = EgalUCB(capacity=2)
    for ask in (lambda: agent.act(observation), lambda: agent.num_steps(10, 5)):
        with pytest.raises(
            ValueError, match="`capacity` must divide the number of users, 5, got 2"
        ):
            ask()


WRONG_ENVS: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "cartpole": (lambda: gym.make("CartPole-v1"), [OracleArm, OracleRotation, StaticOracle]),
    "cartpole_vector": (
        lambda: gym.make_vec("CartPole-v1", num_envs=2),
        [OracleArm, OracleRotation, StaticOracle],
    ),
    "cartpole_sync": (
        lambda: SyncVectorEnv([lambda: gym.make("CartPole-v1")]),
        [OracleArm, OracleRotation, StaticOracle],
    ),
    "no_env": (lambda: "ImprovingBandit-v0", [OracleArm, OracleRotation, StaticOracle]),
    "improving": (lambda: gym.make(IMPROVING), [OracleRotation, StaticOracle]),
    "egal": (lambda: gym.make(EGAL), [OracleArm]),
    "egal_native": (lambda: gym.make_vec(EGAL, 2), [OracleArm]),
    "improving_native": (lambda: gym.make_vec(IMPROVING, 2), [OracleRotation, StaticOracle]),
}


@pytest.mark.parametrize("which", WRONG_ENVS)
def test_oracles_refuse_environments_that_cannot_answer(which: str) -> None:
    make, oracles = WRONG_ENVS[which]
    env = make()
    for oracle in oracles:
        with pytest.raises(TypeError, match="`env` must be an environment that has `"):
            oracle(env)


def test_an_oracle_for_a_negative_number_of_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="`steps` must be at least 0, got -1"):
        OracleArm(gym.make(IMPROVING), steps=-1)


@pytest.mark.parametrize(
    ("agent", "shown"),
    [
        (EgalUCB(), "EgalUCB(capacity=1, c=6.0, sigma=1.0, update='all', loop='fixed')"),
        (FixedArm(3), "FixedArm(arm=3)"),
        (RoundRobin(), "RoundRobin()"),
        (UniformRandom(2), "UniformRandom(capacity=2)"),
    ],
)
def test_repr_shows_the_parameters(agent: Agent, shown: str) -> None:
    agent.reset(seed=3)
    assert repr(agent) == shown


# --- Oracles ------------------------------------------------------------------------------------

# Random instances all: the oracle must read each episode's own. U divides every length.
ORACLE_CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "arm": (IMPROVING, "OracleArm", {"num_arms": 5, "horizon": 40}),
    "arm_noisy": (IMPROVING, "OracleArm", {"num_arms": 5, "horizon": 40, "noise_std": 0.3}),
    "arm_known": (IMPROVING, "OracleArm", {"num_arms": 5, "horizon": 40, "horizon_known": True}),
    "arm_limited": (
        IMPROVING,
        "OracleArm",
        {"num_arms": 8, "horizon": 4000, "max_episode_steps": 24},
    ),
    "rotation": (EGAL, "OracleRotation", {"num_users": 4, "num_arms": 7, "horizon": 24}),
    "rotation_limited": (
        EGAL,
        "OracleRotation",
        {"num_users": 4, "num_arms": 7, "horizon": 60, "max_episode_steps": 24},
    ),
    "rotation_gaussian": (
        EGAL,
        "OracleRotation",
        {"instance": "gaussian", "num_users": 3, "num_arms": 4, "horizon": 24},
    ),
    "rotation_shared": (
        EGAL,
        "OracleRotation",
        {"num_users": 6, "num_arms": 5, "capacity": 2, "horizon": 24},
    ),
    "rotation_shared_unevenly": (
        EGAL,
        "OracleRotation",
        {"num_users": 4, "num_arms": 5, "capacity": 3, "horizon": 24},
    ),
    "rotation_in_one_arm": (
        EGAL,
        "OracleRotation",
        {"num_users": 3, "num_arms": 5, "capacity": 4, "horizon": 24},
    ),
    "static": (EGAL, "StaticOracle", {"num_users": 4, "num_arms": 7, "horizon": 24}),
    "static_shared": (
        EGAL,
        "StaticOracle",
        {"num_users": 5, "num_arms": 4, "capacity": 2, "horizon": 24},
    ),
}
EPISODES = 4
oracle_cases = pytest.mark.parametrize("case", ORACLE_CASES)


def static_regret(means: Any, steps: int, capacity: int, num_users: int) -> float:
    """Return T (mu* / U - mu_U): user u stays on the u-th best slot."""
    slots: list[float] = sorted(np.repeat(means, capacity).tolist(), reverse=True)[:num_users]
    return steps * (math.fsum(slots) / num_users - slots[-1])


def check_oracle(case: str, metrics: dict[str, Any], means: Any) -> None:
    _, name, kwargs = ORACLE_CASES[case]
    expected = 0.0
    if name == "StaticOracle":
        expected = static_regret(means, 24, kwargs.get("capacity", 1), kwargs["num_users"])
        assert expected > 0.1
    tolerance = 1e-12 * max(1.0, metrics["optimal_return"])
    assert metrics["policy_regret"] == pytest.approx(expected, abs=tolerance)
    assert metrics["optimal_return"] > 0


@pytest.mark.parametrize("wrapped", [True, False])
@oracle_cases
def test_oracles_in_a_single_environment(case: str, wrapped: bool) -> None:
    env_id, name, kwargs = ORACLE_CASES[case]
    env = gym.make(env_id, **kwargs)
    oracle = build(env_id, name, PolicyRegret(env) if wrapped else env)
    watched = PolicyRegret(env)
    best = set()
    for number in range(EPISODES):
        actions, _, info = episode(watched, oracle, seed=3 if number == 0 else None)
        check_oracle(case, info, getattr(env.unwrapped, "arms", Bernoulli([0])).means)
        best.add(str(actions[0]))
    assert len(best) > 1 or case == "rotation_in_one_arm"  # the instances do differ


def test_the_oracle_of_an_unwrapped_environment() -> None:
    env = ImprovingBanditEnv(horizon=30)
    for seed in range(3):
        _, rewards, _ = episode(env, OracleArm(env), seed)
        assert math.fsum(rewards) == pytest.approx(env.optimal_return(30), rel=1e-12)


def crossing() -> list[LinearCap]:
    """Return arms of which the first is best up to 38 steps."""
    return [LinearCap(0.5, 2), LinearCap(1.0, 40)]


@pytest.mark.parametrize(
    "limited",
    [
        lambda: gym.make(IMPROVING, instance=crossing(), max_episode_steps=20),
        lambda: TimeLimit(gym.make(IMPROVING, instance=crossing()), 20),
        lambda: PolicyRegret(TimeLimit(gym.make(IMPROVING, instance=crossing()), 20)),
        lambda: TimeLimit(ImprovingBanditEnv(instance=crossing()), 20),
        lambda: gym.make(IMPROVING, instance=crossing(), horizon=20, max_episode_steps=1000),
        lambda: gym.make(IMPROVING, instance=crossing(), horizon=20),
    ],
    ids=["make", "outer", "inner", "unregistered", "horizon_first", "horizon"],
)
def test_the_oracle_is_best_for_the_length_that_ends_the_episode(
    limited: Callable[[], Any],
) -> None:
    env = limited()
    actions, _, _ = episode(env, OracleArm(env), seed=0)
    assert actions == [0] * 20


def test_the_oracle_arm_changes_with_the_steps_it_is_told() -> None:
    env = gym.make(IMPROVING, instance=crossing())
    observation, _ = env.reset(seed=0)
    # Rew_1(38) = 38 * 39 / 80 = 18.525 < Rew_0(38) = 18.75; Rew_1(39) = 19.5 > 19.25.
    assert OracleArm(env, steps=38).act(observation) == 0
    assert OracleArm(env, steps=39).act(observation) == 1
    assert OracleArm(env).act(observation) == 1


def test_oracles_read_an_instance_that_a_reset_pins() -> None:
    env = gym.make(IMPROVING, instance=crossing(), horizon=20)
    oracle = OracleArm(env)
    assert set(episode(env, oracle, seed=0)[0]) == {0}
    pinned = {"instance": crossing()[::-1]}
    assert set(episode(env, oracle, options=pinned)[0]) == {1}
    assert set(episode(env, oracle)[0]) == {0}
    egal = gym.make(EGAL, instance=fixed([0.9, 0.1, 0.5]), num_users=2, horizon=4)
    static = StaticOracle(egal)
    assert episode(egal, static, seed=0)[0][0] == [0, 2]
    assert episode(egal, static, options={"instance": fixed([0.1, 0.2, 0.3])})[0][0] == [2, 1]


def play_vector(envs: Any, agent: Agent, episodes: int) -> Iterator[tuple[int, Any, Any]]:
    """Yield ``(row, info, means)`` of every ended episode of a vector env, from its infos."""
    mode = envs.metadata["autoreset_mode"]
    observation, _ = envs.reset(seed=3)
    ended = np.zeros(envs.num_envs, dtype=np.int64)
    while ended.min() < episodes:
        means = [arms.means.copy() for arms in of_rows(envs, "arms")]
        observation, _, terminations, truncations, infos = envs.step(agent.act(observation))
        done = terminations | truncations
        final = infos.get("final_info", infos)
        if "policy_regret" not in final:
            final = infos
        for i in np.flatnonzero(done).tolist():
            names = ("policy_regret", "optimal_return")
            yield i, {name: float(final[name][i]) for name in names}, (means or [None] * 9)[i]
        ended += done
        if mode == AutoresetMode.DISABLED and done.any():
            observation, _ = envs.reset(options={"reset_mask": done})


def of_rows(envs: Any, name: str) -> list[Any]:
    """Return an attribute of each environment of a vector env, [] if it has none."""
    if isinstance(envs.unwrapped, SyncVectorEnv):
        return [getattr(env.unwrapped, name) for env in envs.envs if hasattr(env.unwrapped, name)]
    return list(getattr(envs.unwrapped, name, []))


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: str(mode.value))
@oracle_cases
def test_oracles_in_native_vector_environments(case: str, mode: AutoresetMode) -> None:
    env_id, name, kwargs = ORACLE_CASES[case]
    envs = VectorPolicyRegret(gym.make_vec(env_id, num_envs=3, autoreset_mode=mode, **kwargs))
    counted = 0
    for _, metrics, means in play_vector(envs, build(env_id, name, envs), EPISODES):
        check_oracle(case, metrics, means)
        counted += 1
    assert counted == 3 * EPISODES


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: str(mode.value))
@oracle_cases
def test_oracles_in_sync_vector_environments(case: str, mode: AutoresetMode) -> None:
    env_id, name, kwargs = ORACLE_CASES[case]
    envs = SyncVectorEnv(
        [lambda: PolicyRegret(gym.make(env_id, **kwargs))] * 3, autoreset_mode=mode
    )
    counted = 0
    for _, metrics, means in play_vector(envs, build(env_id, name, envs), EPISODES):
        check_oracle(case, metrics, means)
        counted += 1
    assert counted == 3 * EPISODES


@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize("case", ["arm", "arm_limited", "rotation", "static"])
def test_oracles_in_environments_that_make_vec_builds(case: str, vectorization: str) -> None:
    env_id, name, kwargs = ORACLE_CASES[case]
    envs: Any = gym.make_vec(
        env_id,
        num_envs=2,
        vectorization_mode=vectorization,
        wrappers=[PolicyRegret],
        **kwargs,
    )
    try:
        oracle = build(env_id, name, envs)
        observation, _ = envs.reset(seed=3)
        for step in range(kwargs.get("max_episode_steps", kwargs["horizon"])):
            assert (observation["pulls"].sum(axis=1) > 0).all() == (step > 0)
            observation, _, terminations, truncations, infos = envs.step(oracle.act(observation))
        assert (terminations | truncations).all()
        for i in range(2):
            info = {key: float(infos[key][i]) for key in ("policy_regret", "optimal_return")}
            if name != "StaticOracle":
                check_oracle(case, info, None)
            else:
                assert info["policy_regret"] > 0.1
    finally:
        envs.close()


def test_oracle_arm_in_an_async_environment_of_the_users_own() -> None:
    envs = AsyncVectorEnv(
        [lambda: PolicyRegret(gym.make(IMPROVING, instance=crossing(), max_episode_steps=20))] * 2
    )
    try:
        observation, _ = envs.reset(seed=0)
        assert OracleArm(envs).act(observation).tolist() == [0, 0]
    finally:
        envs.close()


@oracle_cases
def test_oracles_in_stable_baselines_dummy_vec_env(case: str) -> None:
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    env_id, name, kwargs = ORACLE_CASES[case]
    envs = vec_env.DummyVecEnv([lambda: PolicyRegret(gym.make(env_id, **kwargs))] * 3)
    oracle = build(env_id, name, envs)
    envs.seed(3)
    observation = envs.reset()
    counted = 0
    while counted < 3 * EPISODES:
        means = [getattr(env.unwrapped, "arms", Bernoulli([0])).means for env in envs.envs]
        observation, _, dones, infos = envs.step(oracle.act(observation))
        for i in np.flatnonzero(dones).tolist():
            check_oracle(case, infos[i], means[i])
            counted += 1


def test_the_rotation_oracle_loses_little_when_its_last_round_is_cut_short() -> None:
    # U = 3 and T = 2, means 1, 3/4, 1/2: users get 1.5, 1.75 and 1.25 of the benchmark 1.5.
    env = PolicyRegret(gym.make(EGAL, instance=fixed([1, 0.5, 0.75]), num_users=3, horizon=2))
    actions, _, info = episode(env, OracleRotation(env), seed=0)
    assert actions == [[0, 2, 1], [1, 0, 2]]
    assert info["expected_user_returns"].tolist() == [1.5, 1.75, 1.25]
    assert info["policy_regret"] == pytest.approx(0.25, rel=1e-12)
