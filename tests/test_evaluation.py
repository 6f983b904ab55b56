"""One evaluation for any policy: known answers, the same in any batch, and what it needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from helpers_agents import EGAL_AGENTS
from helpers_checkout import run_python
from helpers_evaluation import (
    DYADIC,
    FIXED,
    SETTINGS,
    TRAP,
    LowestFree,
    assert_same,
    baselines,
    made,
)
from helpers_names import EGAL, IMPROVING, Kwargs
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from gym_fairbandits.agents import FixedArm, OracleArm, RoundRobin, StaticOracle, UniformRandom
from gym_fairbandits.arms import Arms, Bernoulli, Gaussian
from gym_fairbandits.evaluation import Evaluation, compare, evaluate
from gym_fairbandits.wrappers import PolicyRegret, SequentialAssignment

every_baseline = pytest.mark.parametrize(
    ("setting", "name"),
    [(setting, name) for setting, (env_id, _) in SETTINGS.items() for name in baselines(env_id)],
)


def by_hand(
    env_id: str, policy: Any, seeds: Sequence[int], checkpoints: Sequence[int], kwargs: Kwargs
) -> Evaluation:
    """Play a baseline in one scalar environment, an episode after the other."""
    env: Any = PolicyRegret(gym.make(env_id, **kwargs))
    agent = policy(env) if isinstance(policy, type) else policy
    episodes: list[dict[str, Any]] = []
    curves, pulls = [], []
    for seed in seeds:
        agent.reset(seed=[seed])
        observation, _ = env.reset(seed=seed)
        total, length, regrets, done = 0.0, 0, dict.fromkeys(checkpoints, math.nan), False
        while not done:
            observation, reward, terminated, truncated, info = env.step(agent.act(observation))
            total += reward
            length += 1
            if length in regrets:
                regrets[length] = env.regret()
            done = terminated or truncated
        kept = {name: value for name, value in info.items() if name != "user_rewards"}
        episodes.append({"return": total, "length": float(length), **kept})
        if env_id == EGAL:
            episodes[-1]["min_user_return"] = float(min(kept["expected_user_returns"]))
        else:
            episodes[-1]["max_potential_gap"] = float(max(env.unwrapped.potential_gaps()))
        curves.append(list(regrets.values()))
        pulls.append(env.unwrapped.pulls)
    users = None
    if env_id == EGAL:
        users = np.array([one.pop("expected_user_returns") for one in episodes])
    metrics = {name: np.array([one[name] for one in episodes]) for name in episodes[0]}
    redrawn = kwargs.get("instance") != "early_vs_late"  # the one fixed instance of SETTINGS
    return Evaluation(
        metrics, tuple(checkpoints), np.array(curves), np.array(pulls), users, redrawn
    )


# --- The same episodes, however they are batched --------------------------------------------------


@every_baseline
def test_baselines_equal_a_loop_by_hand_in_every_batch_size(setting: str, name: str) -> None:
    env_id, kwargs = SETTINGS[setting]
    policy = baselines(env_id)[name]
    episodes, seed, moments = 67, 11, (1, 5, kwargs["horizon"], 40)
    expected = by_hand(env_id, policy, range(seed, seed + episodes), moments, kwargs)
    for num_envs in (1, 3, 64):  # the last chunks of 3 and 64 are not full
        assert_same(
            evaluate(
                policy,
                env_id,
                num_episodes=episodes,
                seed=seed,
                num_envs=num_envs,
                checkpoints=moments,
                **kwargs,
            ),
            expected,
        )


@every_baseline
def test_wrapped_rows_equal_native_rows(setting: str, name: str) -> None:
    env_id, kwargs = SETTINGS[setting]
    policy = baselines(env_id)[name]
    play = partial(evaluate, policy, env_id, num_episodes=7, checkpoints=(2, 9), **kwargs)
    assert_same(play(wrappers=[gym.Wrapper], num_envs=3), play())


def test_episode_i_is_seeded_with_seed_plus_i() -> None:
    play = partial(evaluate, UniformRandom(), IMPROVING, num_arms=3, noise_std=0.5, horizon=9)
    early, late = play(seed=3, num_episodes=8), play(seed=6, num_episodes=5)
    for metric, values in late.episodes.items():
        assert_array_equal(values, early.episodes[metric][3:])
    assert_array_equal(late.pulls, early.pulls[3:])
    assert len(np.unique(early.episodes["optimal_return"])) == 8


def test_every_policy_of_a_comparison_plays_the_same_episodes() -> None:
    policies = {"first": FixedArm(0), "random": UniformRandom(), "oracle": OracleArm}
    kwargs: Kwargs = {"num_arms": 3, "noise_std": 0.5, "horizon": 9, "num_episodes": 11}
    comparison = compare(policies, IMPROVING, num_envs=4, checkpoints=(3,), **kwargs)
    assert list(comparison.evaluations) == list(policies)
    for name, policy in policies.items():
        assert_array_equal(
            comparison[name].episodes["optimal_return"],
            comparison["first"].episodes["optimal_return"],
        )
        assert_same(comparison[name], evaluate(policy, IMPROVING, checkpoints=(3,), **kwargs))


def test_policies_meet_the_same_noise() -> None:
    twins = [{"family": "constant", "value": 0.5}] * 2
    comparison = compare(
        {"left": FixedArm(0), "right": FixedArm(1)},
        IMPROVING,
        instance=twins,
        noise_std=1.0,
        horizon=5,
        num_episodes=6,
    )
    left, right = (comparison[name].episodes["return"] for name in ("left", "right"))
    assert_array_equal(left, right)
    assert len(np.unique(left)) == 6


@pytest.mark.parametrize("wrappers", [(), (gym.Wrapper,)], ids=["native", "wrapped"])
def test_time_limits_hold_and_oracles_know_them(wrappers: Sequence[Any]) -> None:
    run = evaluate(
        OracleArm,
        IMPROVING,
        instance="early_vs_late",
        max_episode_steps=5,
        num_episodes=3,
        wrappers=wrappers,
    )
    assert run.episodes["length"].tolist() == [5.0] * 3
    assert run.pulls.tolist() == [[5, 0]] * 3  # 1/4 + 4/2 against 15/40
    assert run.episodes["optimal_return"].tolist() == [2.25] * 3
    assert run.episodes["policy_regret"].tolist() == [0.0] * 3


# --- Curves and ends ------------------------------------------------------------------------------


def trap_regret(steps: int) -> float:
    """Return the regret of the constant arm of Example A.2 after some steps."""
    rising = sum(min(n / 10, 1.0) for n in range(1, steps + 1))
    return max(rising, steps / 10) - steps / 10


class EndsEarly(gym.Wrapper[Any, Any, Any, Any]):
    """Ends the episode of seed s after 4 + 3 (s mod 3) steps."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        assert seed is not None
        self.left = 4 + 3 * (seed % 3)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.left -= 1
        return observation, reward, terminated, truncated or self.left == 0, info


class Twice(gym.Wrapper[Any, Any, Any, Any]):
    """Plays every action twice."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        first = self.env.step(action)
        if first[2] or first[3]:
            return first
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(first[1]) + float(reward), terminated, truncated, info


@pytest.mark.parametrize("wrappers", [(), (gym.Wrapper,)], ids=["native", "wrapped"])
def test_checkpoints_hold_the_regret_of_that_many_steps(wrappers: Sequence[Any]) -> None:
    run = evaluate(
        FixedArm(1),
        IMPROVING,
        num_episodes=2,
        checkpoints=[20, 1, 25, *np.array([10, 10], dtype=np.int32)],
        wrappers=wrappers,
        **TRAP,
    )
    assert run.checkpoints == (1, 10, 20, 25)
    assert run.regret_curves.shape == (2, 4)
    assert_allclose(run.regret_curves, [[0, 4.5, 13.5, math.nan]] * 2, rtol=1e-14, atol=1e-15)
    assert_array_equal(run.regret_curves[:, 2], run.episodes["policy_regret"])
    assert run.episodes["length"].tolist() == [20.0] * 2


def test_no_checkpoints_no_curves() -> None:
    run = evaluate(FixedArm(1), IMPROVING, num_episodes=3, **TRAP)
    assert run.checkpoints == ()
    assert run.regret_curves.shape == (3, 0)


@pytest.mark.parametrize("num_envs", [1, 3, 64])
def test_rows_that_end_apart_are_judged_by_their_own_steps(num_envs: int) -> None:
    run = evaluate(
        FixedArm(1), IMPROVING, num_episodes=7, num_envs=num_envs, wrappers=[EndsEarly], **TRAP
    )
    lengths = [4, 7, 10, 4, 7, 10, 4]
    assert run.episodes["length"].tolist() == lengths
    assert run.pulls.tolist() == [[0, length] for length in lengths]
    assert_allclose(run.episodes["return"], [length / 10 for length in lengths], rtol=1e-14)
    assert_allclose(run.episodes["policy_regret"], [trap_regret(k) for k in lengths], rtol=1e-13)


@pytest.mark.parametrize("num_envs", [1, 3, 64])
def test_rows_that_end_apart_have_curves_up_to_their_own_ends(num_envs: int) -> None:
    run = evaluate(
        FixedArm(1),
        IMPROVING,
        num_episodes=4,
        num_envs=num_envs,
        wrappers=[EndsEarly],
        checkpoints=(4, 5, 10),
        **TRAP,
    )
    four, five, ten = (trap_regret(steps) for steps in (4, 5, 10))
    nan = math.nan
    expected = [[four, nan, nan], [four, five, nan], [four, five, ten], [four, nan, nan]]
    assert_allclose(run.regret_curves, expected, rtol=1e-13)


def test_checkpoints_count_the_environment_s_steps_under_wrappers_that_skip() -> None:
    run = evaluate(
        FixedArm(1), IMPROVING, num_episodes=2, wrappers=[Twice], checkpoints=(5, 6, 20), **TRAP
    )
    expected = [[trap_regret(5), trap_regret(6), trap_regret(20)]] * 2
    assert_allclose(run.regret_curves, expected, rtol=1e-13)


def test_checkpoints_count_the_environment_s_steps_under_wrappers_that_wait() -> None:
    run = evaluate(
        LowestFree(),
        EGAL,
        instance=Gaussian(DYADIC, 1.0),
        num_users=2,
        horizon=6,
        num_episodes=2,
        wrappers=[SequentialAssignment],
        checkpoints=(1, 4, 6),
    )
    # User 1 always has arm 1: (1.25 / 2 - 0.5) a step.
    assert run.regret_curves.tolist() == [[0.125, 0.5, 0.75]] * 2


# --- Users ----------------------------------------------------------------------------------------


def test_user_returns_and_the_regret_of_the_paper_by_hand() -> None:
    means, agent, totals = np.array(DYADIC), UniformRandom(), []
    for seed in range(30, 50):
        agent.reset(seed=[seed])
        arms = [agent.act(played(step)) for step in range(12)]
        totals.append(means[np.array(arms)].sum(axis=0))
    run = evaluate(agent, EGAL, num_episodes=20, seed=30, **FIXED)
    assert run.user_returns is not None
    assert_array_equal(run.user_returns, totals)  # sums of eighths are exact
    # T mu* / U = 12 * 1.25 / 2
    assert run.episodes["policy_regret"].tolist() == [7.5 - min(total) for total in totals]
    worst = min(math.fsum(column) / 20 for column in np.transpose(totals))
    assert run.min_of_expectations_regret == pytest.approx(7.5 - worst, rel=1e-14)
    assert run.mean("policy_regret") > 7.5 - worst + 0.1


def played(step: int) -> dict[str, NDArray[Any]]:
    """Return an observation that tells only that steps were played, to a policy that ignores it."""
    return {"pulls": np.full(4, step), "user_reward_sum": np.zeros(2)}


def test_the_paper_s_regret_takes_the_minimum_after_the_mean() -> None:
    run = made({"policy_regret": [4.0, 4.0]}, users=[[6.0, 12.0], [10.0, 6.0]])
    assert run.min_of_expectations_regret == 2.0  # 10 - min(8, 9)


@pytest.mark.parametrize("name", EGAL_AGENTS)
@pytest.mark.parametrize("instance", [Bernoulli(DYADIC), Gaussian([1.0, 0.3, -0.5], 0.5)], ids=repr)
def test_a_mean_of_minima_is_never_below_a_minimum_of_means(name: str, instance: Arms) -> None:
    for seed in range(5):
        run = evaluate(
            EGAL_AGENTS[name](),
            EGAL,
            instance=instance,
            num_users=3,
            horizon=7,
            num_episodes=6,
            seed=100 * seed,
        )
        assert run.min_of_expectations_regret is not None
        assert run.mean("policy_regret") >= run.min_of_expectations_regret - 1e-12


def permuted(rng: np.random.Generator, num_users: int, num_arms: int) -> Arms:
    return Bernoulli(rng.permutation(DYADIC))


@pytest.mark.parametrize(
    ("instance", "num_episodes"),
    [("bernoulli", 5), ("bernoulli", 1), (permuted, 5)],
    ids=["other optima", "one episode", "equal optima"],
)
def test_redrawn_instances_have_no_one_expectation(instance: Any, num_episodes: int) -> None:
    run = evaluate(
        StaticOracle,
        EGAL,
        instance=instance,
        num_users=2,
        num_arms=4,
        horizon=4,
        num_episodes=num_episodes,
    )
    assert run.min_of_expectations_regret is None
    assert run.user_returns is not None
    assert run.user_returns.shape == (num_episodes, 2)


def test_improving_arms_have_no_users() -> None:
    run = evaluate(RoundRobin(), IMPROVING, num_episodes=2, **TRAP)
    assert run.user_returns is None
    assert run.min_of_expectations_regret is None


# --- What it needs --------------------------------------------------------------------------------


def test_importing_it_brings_none_of_the_extras() -> None:
    extras = ("dask", "joblib", "matplotlib", "pandas", "stable_baselines3", "torch", "tqdm")
    code = (
        "import sys, gym_fairbandits.evaluation\n"
        f"print([name for name in {extras!r} if name in sys.modules])"
    )
    assert run_python(code).stdout == "[]\n"


def test_it_plays_without_the_extras_in_one_process() -> None:
    code = """
import sys
for name in ("joblib", "matplotlib", "pandas", "tqdm"):
    sys.modules[name] = None
from gym_fairbandits.agents import FixedArm
from gym_fairbandits.evaluation import compare, evaluate
kwargs = dict(instance="policy_vs_external", horizon=20, num_episodes=3, num_envs=2)
print(compare({"fixed": FixedArm(1)}, "ImprovingBandit-v0", **kwargs).table(["policy_regret"]))
print(evaluate(FixedArm(1), "ImprovingBandit-v0", n_jobs=1, **kwargs).pulls.tolist())
try:
    evaluate(FixedArm(1), "ImprovingBandit-v0", n_jobs=2, **kwargs)
except ImportError as error:
    print("joblib" in str(error))
"""
    assert run_python(code).stdout.splitlines() == [
        "| policy | policy regret |",
        "| --- | ---: |",
        "| fixed | 13.5 [13.5, 13.5] |",
        "[[0, 20], [0, 20], [0, 20]]",
        "True",
    ]
