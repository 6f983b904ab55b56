"""External regret: against the best of each step, which forgives what policy regret does not."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeLimit
from helpers_agents import exact_cap, fixed, float_caps, random_caps
from helpers_envs import IMPROVING_CASES, Root
from helpers_external import KEY, improving
from helpers_names import EGAL, IMPROVING
from helpers_regret import EARLY_LATE, play
from numpy.testing import assert_allclose, assert_array_equal

from gym_fairbandits.agents import FixedArm, Greedy, OracleRotation, StaticOracle
from gym_fairbandits.arms import Adversarial
from gym_fairbandits.curves import Constant
from gym_fairbandits.evaluation import compare, evaluate
from gym_fairbandits.wrappers import ExternalRegret
from gym_fairbandits.wrappers.vector import ExternalRegret as VectorExternalRegret

# --- Worked by hand -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actions", "regret"),
    [
        ([0], 0.0),
        ([1], 0.25 - 0.025),
        ([0, 0], 0.0),
        ([0, 1, 1], (0.5 - 0.025) + (0.5 - 0.05)),
        ([1, 0, 0], 0.225),
        ([0] * 30, 0.0),
        # 1/4 while the early arm is unpulled and the late one pays less, which it does up to its
        # tenth pull; from then on the late arm is the best of each step.
        ([1] * 30, 10 * 0.25 - 55 / 40),
    ],
)
def test_improving_episodes_worked_by_hand(actions: list[int], regret: float) -> None:
    infos = play(improving(horizon=len(actions)), actions)
    assert all(not info for info in infos[:-1])
    assert set(infos[-1]) == {KEY}
    assert type(infos[-1][KEY]) is float
    assert infos[-1][KEY] == pytest.approx(regret, rel=1e-12, abs=1e-14)


def test_random_episodes_equal_the_definition_in_exact_arithmetic() -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        caps = random_caps(rng, 4)
        actions = rng.integers(0, 4, 60).tolist()
        pulls, expected = [0] * 4, Fraction(0)
        for arm in actions:
            following = [exact_cap(*cap)(n + 1) for cap, n in zip(caps, pulls, strict=True)]
            expected += max(following) - following[arm]
            pulls[arm] += 1
        info = play(improving(instance=float_caps(caps), horizon=60), actions)[-1]
        assert info[KEY] == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("horizon", [10, 100, 1000])
def test_example_a2_has_no_external_regret_and_linear_policy_regret(horizon: int) -> None:
    # Always pull the constant 0.1 of Patil et al., Example A.2, beside min(n/10, 1): whenever one
    # looks, the next pull of either pays 0.1.
    run = evaluate(
        FixedArm(1),
        IMPROVING,
        instance="policy_vs_external",
        horizon=horizon,
        num_episodes=1,
        metrics="external_regret",
    )
    assert run.episodes[KEY] == pytest.approx(0.0, abs=1e-14 * horizon)
    assert run.episodes["policy_regret"] == pytest.approx(0.9 * horizon - 4.5, rel=1e-12)
    best = evaluate(
        FixedArm(0),
        IMPROVING,
        instance="policy_vs_external",
        horizon=horizon,
        num_episodes=1,
        metrics="external_regret",
    )
    assert best.episodes[KEY] == pytest.approx(0.0, abs=1e-14 * horizon)
    assert best.episodes["policy_regret"] == pytest.approx(0.0, abs=1e-12)


def test_no_external_regret_stays_exact_over_many_steps() -> None:
    envs = VectorExternalRegret(
        gym.make_vec(IMPROVING, 1, instance="policy_vs_external", horizon=4000)
    )
    envs.reset(seed=0)
    for _ in range(4000):
        infos = envs.step(np.array([1]))[4]
    # A plain sum of as many 0.1 is off by 2e-11.
    assert infos[KEY] == pytest.approx(0.0, abs=1e-12)


def test_greed_has_no_external_regret_where_it_never_explores() -> None:
    # Constant arms, the best first: what the last pull paid is what the next one pays.
    run = evaluate(
        Greedy(),
        IMPROVING,
        instance=[Constant(0.75), Constant(0.5)],
        horizon=20,
        num_episodes=2,
        metrics=["external_regret"],
    )
    assert run.episodes[KEY].tolist() == [0.25] * 2  # the first look at the worse arm


def test_noise_does_not_reach_external_regret() -> None:
    actions = [0, 1, 1, 0, 1, 0]
    quiet, noisy = (play(improving(horizon=6, noise_std=std), actions)[-1] for std in (0.0, 2.0))
    assert noisy == quiet


# --- Assignment -----------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["egalitarian", "utilitarian"])
@pytest.mark.parametrize(
    ("num_users", "capacity", "actions", "regret"),
    [
        (2, 1, [[0, 1], [1, 0]], 0.0),
        (2, 1, [[0, 1], [0, 1]], 0.0),  # held by the same users: forgiven
        (2, 1, [[0, 2], [2, 1]], (0.25 + 0.75) / 2),
        (3, 1, [[0, 1, 2]], 0.0),
        (3, 2, [[0, 0, 1], [1, 0, 2]], (2.5 - 1.75) / 3),
        (3, 4, [[0, 0, 0], [0, 0, 1]], 0.5 / 3),
    ],
)
def test_assignment_episodes_worked_by_hand(
    num_users: int, capacity: int, actions: list[Any], regret: float, objective: str
) -> None:
    env = ExternalRegret(
        gym.make(
            EGAL,
            instance=fixed([1, 0.5, 0.25]),
            num_users=num_users,
            capacity=capacity,
            objective=objective,
            horizon=len(actions),
        )
    )
    infos = play(env, actions)
    assert all(set(info) == {"user_rewards"} for info in infos[:-1])
    assert infos[-1][KEY] == pytest.approx(regret, abs=1e-14)


def test_the_best_assignment_is_that_of_a_brute_force() -> None:
    means = [0.125, 0.75, 0.5, 0.25]
    rng = np.random.default_rng(0)
    for num_users, capacity in product((1, 2, 3), (1, 2)):
        slots = [arm for arm in range(4) for _ in range(capacity)]
        legal = sorted(set(permutations(slots, num_users)))
        worth = [np.mean([means[arm] for arm in choice]) for choice in legal]
        actions = [legal[place] for place in rng.integers(0, len(legal), 5)]
        expected = sum(max(worth) - worth[legal.index(action)] for action in actions)
        env = ExternalRegret(
            gym.make(EGAL, instance=fixed(means), num_users=num_users, capacity=capacity, horizon=5)
        )
        assert play(env, actions)[-1][KEY] == pytest.approx(expected, abs=1e-14)


def test_the_static_oracle_has_no_external_regret_and_linear_policy_regret() -> None:
    # The egalitarian counterpart of Example A.2: the best arms, never shared.
    comparison = compare(
        {"static": StaticOracle, "rotation": OracleRotation},
        EGAL,
        instance=fixed([0.75, 0.25, 0.125]),
        num_users=2,
        horizon=40,
        num_episodes=2,
        metrics="external_regret",
    )
    for name, policy_regret in (("static", 40 * (0.5 - 0.25)), ("rotation", 0.0)):
        assert comparison[name].episodes[KEY] == pytest.approx(0.0, abs=1e-12)
        assert comparison[name].episodes["policy_regret"] == pytest.approx(policy_regret, abs=1e-12)


@pytest.mark.parametrize("mode", [None, *AutoresetMode], ids=str)
def test_the_best_arms_of_each_step_are_those_of_that_step(mode: AutoresetMode | None) -> None:
    # The best two of three pay 1.5, 0.75 and 1.25 together; the first two 1, 0.5 and 1.25.
    table = Adversarial([[0.5, 0.5, 1.0], [0.25, 0.25, 0.5], [1.0, 0.25, 0.125]])
    settings: dict[str, Any] = {"instance": table, "num_users": 2, "horizon": 3}
    if mode is None:
        info = play(ExternalRegret(gym.make(EGAL, **settings)), [[0, 1], [1, 0], [0, 1]])[-1]
        assert info[KEY] == pytest.approx((0.5 + 0.25) / 2, rel=1e-12)
        return
    envs = VectorExternalRegret(gym.make_vec(EGAL, 2, autoreset_mode=mode, **settings))
    envs.reset(seed=0)
    seen = 0
    for _ in range(7):
        infos = envs.step(np.array([[0, 1], [2, 0]]))[4]
        if KEY in infos:  # row 1 misses what only the last step's second best pays more
            assert_allclose(infos[KEY], [0.375, 0.0625], rtol=1e-12)
            seen += 1
            if mode == AutoresetMode.DISABLED:
                envs.reset(options={"reset_mask": np.array([True, True])})
    assert seen == 2


# --- What the environments tell -------------------------------------------------------------------


def test_next_expected_rewards_are_those_of_the_next_pull() -> None:
    env: Any = gym.make(IMPROVING, instance=[*EARLY_LATE, Root(0.5, 3.0)], horizon=50).unwrapped
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    for arm in rng.integers(0, 3, 50).tolist():
        following = env.next_expected_rewards()
        assert following.shape == (3,)
        assert following.dtype == np.float64
        curves, pulls = env.curves, env.pulls
        assert following.tolist() == [curve(n + 1) for curve, n in zip(curves, pulls, strict=True)]
        assert env.step(arm)[1] == following[arm]


@pytest.mark.parametrize("case", IMPROVING_CASES)
def test_next_expected_rewards_of_a_batch_are_those_of_its_rows(case: str) -> None:
    kwargs = {**IMPROVING_CASES[case], "horizon": 6}
    envs: Any = gym.make_vec(IMPROVING, 3, **kwargs)
    rows: list[Any] = [gym.make(IMPROVING, **kwargs).unwrapped for _ in range(3)]
    envs.reset(seed=5)
    for number, row in enumerate(rows):
        row.reset(seed=5 + number)
    envs.action_space.seed(0)
    for _ in range(6):
        assert_array_equal(
            envs.next_expected_rewards(), [row.next_expected_rewards() for row in rows], strict=True
        )
        actions = envs.action_space.sample()
        envs.step(actions)
        for row, action in zip(rows, actions, strict=True):
            row.step(action)


@pytest.mark.parametrize("vector", [False, True])
def test_next_expected_rewards_of_assignment_arms_are_a_copy_of_their_means(vector: bool) -> None:
    settings: dict[str, Any] = {"instance": fixed([0.5, 0.25]), "num_users": 1, "horizon": 9}
    env: Any = gym.make_vec(EGAL, 2, **settings) if vector else gym.make(EGAL, **settings).unwrapped
    with pytest.raises(ResetNeeded, match="no episode has begun"):
        env.next_expected_rewards()
    env.reset(seed=0)
    for _ in range(2):
        means = env.next_expected_rewards()
        assert means.tolist() == ([[0.5, 0.25]] * 2 if vector else [0.5, 0.25])
        means[:] = 7


def test_asking_changes_no_reward() -> None:
    asked, silent = (gym.make(IMPROVING, num_arms=3, noise_std=0.5, horizon=300) for _ in range(2))
    asked = ExternalRegret(asked)
    asked.reset(seed=3)
    silent.reset(seed=3)
    for arm in np.random.default_rng(0).integers(0, 3, 300).tolist():
        assert asked.step(arm)[1] == silent.step(arm)[1]


# --- When an episode ends -------------------------------------------------------------------------


@pytest.mark.parametrize(("horizon", "limit", "length"), [(5, None, 5), (5, 3, 3), (3, 5, 3)])
def test_the_key_comes_with_the_end_and_each_episode_has_its_own_account(
    horizon: int, limit: int | None, length: int
) -> None:
    extra = {} if limit is None else {"max_episode_steps": limit}
    env = improving(horizon=horizon, **extra)
    for number in range(3):
        assert env.reset(seed=number)[1] == {}
        for step in range(1, length + 1):
            info = env.step(int(step == 1))[4]
            assert set(info) == ({KEY} if step == length else set())
        assert info[KEY] == pytest.approx(0.225, rel=1e-12)


def test_an_abandoned_episode_leaves_no_trace() -> None:
    env = improving(horizon=2)
    env.reset(seed=0)
    env.step(1)
    assert play(env, [0, 0])[-1][KEY] == pytest.approx(0.0, abs=1e-15)


def test_an_illegal_action_or_reset_changes_nothing() -> None:
    env: Any = ExternalRegret(gym.make(IMPROVING, instance=EARLY_LATE, horizon=3).unwrapped)
    env.reset(seed=0)
    env.step(1)
    before = env.metrics()
    with pytest.raises(InvalidAction, match="`action` must be an integer from 0 to 1, got 2"):
        env.step(2)
    with pytest.raises(ValueError, match="early"):
        env.reset(options={"instance": "early"})
    assert env.metrics() == before
    env.step(0)
    env.step(0)
    with pytest.raises(ResetNeeded, match="the episode has ended"):
        env.step(0)
    assert env.metrics()[KEY] == pytest.approx(0.225, rel=1e-12)


def test_metrics_answer_at_any_time() -> None:
    env = improving(horizon=3)
    env.reset(seed=0)
    assert env.metrics() == {KEY: 0.0}
    for arm, regret in ((1, 0.225), (0, 0.225), (1, 0.675)):
        info = env.step(arm)[4]
        assert env.metrics()[KEY] == pytest.approx(regret, rel=1e-12)
    assert env.metrics() == info
    env.reset()
    assert env.metrics() == {KEY: 0.0}
    cut = TimeLimit(improving(horizon=100), 1)
    assert play(cut, [1]) == [{}]
    assert cut.get_wrapper_attr("metrics")()[KEY] == pytest.approx(0.225, rel=1e-12)


@pytest.mark.parametrize("env_id", [IMPROVING, EGAL])
def test_there_is_no_regret_before_the_first_reset(env_id: str) -> None:
    scalar, vector = gym.make(env_id), gym.make_vec(env_id, 2)
    for env in (ExternalRegret(scalar), VectorExternalRegret(vector)):
        with pytest.raises(ResetNeeded, match="call `reset` first: no episode has begun"):
            env.metrics()
        with pytest.raises(ResetNeeded, match="reset"):
            env.step(env.action_space.sample())
