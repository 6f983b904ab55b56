"""The agents made for adversaries: their pseudocode, their rows, their bounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from helpers_adversarial import final_metrics, make
from helpers_names import EGAL, Floats

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits import agents
from gym_fairbandits.arms import Adversarial, Arms, Gaussian, Switching
from gym_fairbandits.wrappers import PolicyRegret
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret

LEARNERS: dict[str, Callable[..., agents.RotatingAgent]] = {
    "ComponentHedge": agents.ComponentHedge,
    "PermELearn": agents.PermELearn,
}
each_learner = pytest.mark.parametrize("name", list(LEARNERS))


@each_learner
def test_learners_leave_an_arm_that_pays_nothing(name: str) -> None:
    """At a huge rate one block of the bad arm is enough; the others pay 1 and lose nothing."""
    first = []
    for seed in range(20):
        agent = LEARNERS[name](eta=1e6)
        agent.reset(seed=seed)
        env = make(Gaussian([1.0, 1.0, 0.0], 0.0), num_users=2, horizon=40)
        played: list[bool] = []

        def act(observation: Any, agent: Any = agent, played: Any = played) -> Any:
            action = agent.act(observation)
            played.append(2 in action.tolist())
            return action

        info = final_metrics(env, act)
        first.append(played[0])
        bad = sum(played)
        assert bad in (0, 2) if name == "ComponentHedge" else bad <= 4
        assert info["policy_regret"] == pytest.approx(bad / 2)
    assert 5 <= sum(first) <= 20  # the chance is 2/3


def test_component_hedge_is_its_pseudocode() -> None:
    """The same draws, and weights kept by the loops of the pseudocode."""
    horizon, num_users, num_arms = 60, 2, 5
    rate = np.sqrt(2 * num_users * np.log(num_arms / num_users) / (num_arms * 30))
    rng = np.random.default_rng(8)
    table = rng.random((7, num_arms))
    env = make(Adversarial(table, periodic=True), num_users, horizon)
    agent = agents.ComponentHedge(horizon=horizon)
    agent.reset(seed=8)
    observation, _ = env.reset(seed=0)
    draws = np.random.default_rng(8)
    weights = [num_users / num_arms] * num_arms
    for block in range(horizon // num_users):
        order = draws.permutation(num_arms).tolist()
        point = draws.random()
        chosen, end = [], 0.0
        for arm in order:
            before, end = end, end + weights[arm]
            if int(np.ceil(end - point)) > int(np.ceil(before - point)):
                chosen.append(arm)
        slots = draws.permutation(chosen).tolist()
        rewards = dict.fromkeys(chosen, 0.0)
        for place in range(num_users):
            action = agent.act(observation).tolist()
            assert action == [slots[(user - place) % num_users] for user in range(num_users)]
            for arm in chosen:
                rewards[arm] += float(table[(block * num_users + place) % 7, arm])
            observation = env.step(action)[0]
        for arm in chosen:
            weights[arm] *= np.exp(-rate * (1 - rewards[arm] / num_users) / weights[arm])
        capped: set[int] = set()
        while True:
            free = [arm for arm in range(num_arms) if arm not in capped]
            scale = (num_users - len(capped)) / sum(weights[arm] for arm in free)
            over = [arm for arm in free if weights[arm] * scale > 1]
            if not over:
                break
            capped |= set(over)
        weights = [1.0 if arm in capped else weights[arm] * scale for arm in range(num_arms)]


@each_learner
@pytest.mark.parametrize("known", [False, True])
def test_batched_act_is_the_act_of_each_row(name: str, known: bool) -> None:
    """Rows of which some begin anew in between; seeds s, s + 1, s + 2 for single agents."""
    build = partial(LEARNERS[name], horizon=None if known else 12)
    settings: dict[str, Any] = {
        "num_users": 3,
        "num_arms": 5,
        "horizon": 12,
        "horizon_known": known,
        "autoreset_mode": AutoresetMode.DISABLED,
    }
    envs: Any = gym.make_vec(EGAL, num_envs=3, **settings)
    batch = build()
    batch.reset(seed=20)
    singles = [build() for _ in range(3)]
    for row, single in enumerate(singles):
        single.reset(seed=20 + row)
    observations, _ = envs.reset(seed=3)
    for step in range(12):
        if step == 7:  # in the middle of a block
            mask = np.array([False, True, False])
            observations, _ = envs.reset(options={"reset_mask": mask})
        actions = batch.act(observations)
        for row, single in enumerate(singles):
            alone = single.act({key: value[row] for key, value in observations.items()})
            assert actions[row].tolist() == alone.tolist()
        observations = envs.step(actions)[0]


@each_learner
def test_a_new_episode_is_noticed(name: str) -> None:
    """The second episode equals the first of an agent whose generator has come as far."""
    agent = LEARNERS[name](eta=0.5)
    agent.reset(seed=1)
    twin = LEARNERS[name](eta=0.5)
    env = make("bernoulli", num_users=2, num_arms=4, horizon=31)
    final_metrics(env, agent.act, seed=0)
    twin.reset(seed=1)
    final_metrics(env, twin.act, seed=0)
    twin.reset()  # forgets all, and lets the generator run on
    actions: list[list[Any]] = [[], []]
    for player, log in zip((agent, twin), actions, strict=True):

        def act(observation: Any, player: Any = player, log: list[Any] = log) -> Any:
            log.append(player.act(observation).tolist())
            return log[-1]

        final_metrics(env, act, seed=9)
    assert actions[0] == actions[1]


@each_learner
def test_asked_twice_within_a_block_the_answer_stands(name: str) -> None:
    env = make("bernoulli", num_users=3, num_arms=6, horizon=30)
    agent, twin = (LEARNERS[name](horizon=30) for _ in range(2))
    for player in (agent, twin):
        player.reset(seed=2)
    observation, _ = env.reset(seed=2)
    for step in range(30):
        action = agent.act(observation)
        if step:  # at step 0 an episode is new each time
            assert agent.act(observation).tolist() == action.tolist()
        assert twin.act(observation).tolist() == action.tolist()
        observation = env.step(action)[0]


@each_learner
def test_the_horizon_is_observed_or_told_or_not_needed(name: str) -> None:
    build = LEARNERS[name]
    settings: dict[str, Any] = {"num_users": 2, "num_arms": 4, "horizon": 20}
    blind, seeing = gym.make(EGAL, **settings), gym.make(EGAL, horizon_known=True, **settings)
    unseen, _ = blind.reset(seed=0)
    with pytest.raises(ValueError, match="`horizon` must be given where the observation"):
        build().act(unseen)
    assert sorted(build(eta=0.1).act(unseen).tolist())[0] >= 0
    actions: list[list[Any]] = []
    for env, agent in [(blind, build(horizon=20)), (seeing, build())]:
        agent.reset(seed=4)
        log: list[Any] = []

        def act(observation: Any, agent: Any = agent, log: list[Any] = log) -> Any:
            log.append(agent.act(observation).tolist())
            return log[-1]

        final_metrics(PolicyRegret(env), act, seed=4)
        actions.append(log)
    assert actions[0] == actions[1]


@each_learner
def test_wrong_agent_parameters_are_refused(name: str) -> None:
    build = LEARNERS[name]
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"eta": -0.1}, ValueError, "`eta` must be at least 0"),
        ({"eta": "1"}, TypeError, "`eta` must be a real number"),
        ({"horizon": 0}, ValueError, "`horizon` must be at least 1"),
        ({"horizon": 2.0}, TypeError, "`horizon` must be an integer"),
        ({"capacity": 0}, ValueError, "`capacity` must be at least 1"),
    ]
    for kwargs, error, message in cases:
        with pytest.raises(error, match=message):
            build(**kwargs)


@each_learner
def test_all_arms_and_one_arm_are_played_too(name: str) -> None:
    for num_arms, num_users, capacity in [(3, 3, 1), (1, 1, 1), (2, 4, 2), (5, 4, 2)]:
        env = make(
            "bernoulli", num_users=num_users, num_arms=num_arms, capacity=capacity, horizon=13
        )
        agent = LEARNERS[name](horizon=13, capacity=capacity)
        agent.reset(seed=0)
        info = final_metrics(env, agent.act)
        assert info["policy_regret"] > -1e-9
        assert env.unwrapped.pulls.sum() == 13 * num_users // capacity


@each_learner
def test_rewards_of_any_size_do_no_harm(name: str) -> None:
    """Huge gains and losses; warnings, such as of an overflow, are errors."""
    agent = LEARNERS[name](eta=10.0)
    agent.reset(seed=0)
    env = make(Gaussian([1e9, -1e9, 0.0, 3.0], 1e8), num_users=2, horizon=60)
    assert np.isfinite(final_metrics(env, agent.act)["policy_regret"])


def regrets(agent: agents.Agent, law: Arms, num_users: int, horizon: int, rows: int) -> Floats:
    envs: Any = VectorPolicyRegret(
        gym.make_vec(EGAL, num_envs=rows, instance=law, num_users=num_users, horizon=horizon)
    )
    agent.reset(seed=0)
    observations, infos = envs.reset(seed=0)
    for _ in range(horizon):
        observations, _, _, _, infos = envs.step(agent.act(observations))
    values: Floats = infos["policy_regret"]
    return values


@each_learner
def test_learners_beat_uniform_random_on_a_biased_table(name: str) -> None:
    """An adversary in blocks of 40 steps: two good arms of six, which the others outdo at times."""
    rng = np.random.default_rng(5)
    table = np.repeat(rng.random((10, 6)) * [1, 1, 0.5, 0.5, 0.5, 0.5], 40, axis=0)
    table[:, :2] = np.minimum(table[:, :2] + 0.35, 1)
    law = Adversarial(table, periodic=True)
    learned = regrets(LEARNERS[name](horizon=1200), law, 2, 1200, 4)
    random = regrets(agents.UniformRandom(), law, 2, 1200, 4)
    assert learned.max() < 0.6 * random.min()
    bound = np.sqrt(2 * 6 * 1200 * np.log(3)) if name == "ComponentHedge" else np.inf
    assert learned.mean() < bound


@each_learner
def test_no_user_is_better_off_even_against_a_table_with_the_blocks_rhythm(name: str) -> None:
    """Only every second step pays, and one arm more than the other.

    Rotation in a fixed order always has the same user on that arm then. In a random order both
    users expect the same.
    """
    law = Adversarial([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], periodic=True)
    rows, horizon = 400, 16
    envs: Any = gym.make_vec(EGAL, num_envs=rows, instance=law, num_users=2, horizon=horizon)
    agent = LEARNERS[name](horizon=horizon)
    agent.reset(seed=0)
    observations, _ = envs.reset(seed=0)
    for _ in range(horizon):
        observations = envs.step(agent.act(observations))[0]
    totals = envs.expected_user_returns()
    gaps = totals[:, 0] - totals[:, 1]
    assert abs(gaps.mean()) < 4 * gaps.std() / np.sqrt(rows)
    assert totals.mean() > 2  # of 4, the benchmark; a random set of two has 8 * 2/3 / 2 = 2.67
    env = make(law, num_users=2, horizon=horizon)
    info = final_metrics(env, agents.OracleRotation(env).act)
    assert info["expected_user_returns"].tolist() == [8.0, 0.0]


@pytest.mark.slow
def test_component_hedge_keeps_its_bound_where_the_good_arms_switch() -> None:
    """Regret against the best fixed set stays below sqrt(2 K T ln(K / U)) per user."""
    means = np.full((4, 8), 0.3)
    for segment in range(4):
        means[segment, [segment, (segment + 1) % 4, 7]] = 0.8
    law = Switching(means, [1000, 2000, 3000])
    learned = regrets(agents.ComponentHedge(horizon=4000), law, 2, 4000, 6)
    random = regrets(agents.UniformRandom(), law, 2, 4000, 6)
    assert learned.mean() < np.sqrt(2 * 8 * 4000 * np.log(4))
    assert learned.mean() < 0.7 * random.mean()
