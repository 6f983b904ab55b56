"""Stable-Baselines3 evaluates every agent, trains on the environments, and finds no fault."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import FlattenObservation
from helpers_agents import ALL_AGENTS, build, episode
from helpers_names import EGAL, IMPROVING
from numpy.testing import assert_array_equal

from gym_fairbandits.agents import Agent, OracleArm, OracleRotation, UniformRandom
from gym_fairbandits.arms import Arms, Bernoulli
from gym_fairbandits.curves import Curve, LinearCap
from gym_fairbandits.wrappers import PolicyRegret

sb3: Any = pytest.importorskip("stable_baselines3")
env_checker: Any = pytest.importorskip("stable_baselines3.common.env_checker")
vec_envs: Any = pytest.importorskip("stable_baselines3.common.vec_env")
monitors: Any = pytest.importorskip("stable_baselines3.common.monitor")
evaluate_policy: Any = pytest.importorskip("stable_baselines3.common.evaluation").evaluate_policy

KWARGS: dict[str, dict[str, Any]] = {
    IMPROVING: {"num_arms": 4, "horizon": 25, "noise_std": 0.1},
    EGAL: {"num_users": 3, "num_arms": 5, "horizon": 23},
}
KEYWORDS = ("policy_regret", "competitive_ratio")
every_agent = pytest.mark.parametrize(("env_id", "name"), ALL_AGENTS)
EPISODES = 4


def maker(env_id: str, **kwargs: Any) -> Callable[[], gym.Env[Any, Any]]:
    """Return what makes an environment with regret, monitored outside."""

    def make() -> gym.Env[Any, Any]:
        env = PolicyRegret(gym.make(env_id, **{**KWARGS[env_id], **kwargs}))
        monitored: gym.Env[Any, Any] = monitors.Monitor(env, info_keywords=KEYWORDS)
        return monitored

    return make


def by_hand(env_id: str, name: str, env_seed: int, agent_seed: int) -> list[tuple[float, float]]:
    """Return return and policy regret of some episodes played by a loop."""
    env = PolicyRegret(gym.make(env_id, **KWARGS[env_id]))
    agent = build(env_id, name, env)
    agent.reset(seed=agent_seed)
    results = []
    for number in range(EPISODES):
        _, rewards, info = episode(env, agent, seed=None if number else env_seed)
        results.append((math.fsum(rewards), info["policy_regret"]))
    return results


class Recorder:
    """A callback of evaluate_policy that keeps what Monitor logged of each episode."""

    def __init__(self) -> None:
        self.regrets: list[float] = []

    def __call__(self, local: dict[str, Any], _: dict[str, Any]) -> None:
        if local["done"]:
            self.regrets.append(local["info"]["episode"]["policy_regret"])


@every_agent
def test_evaluate_policy_equals_a_loop_by_hand(env_id: str, name: str) -> None:
    expected = by_hand(env_id, name, env_seed=7, agent_seed=0)
    env = maker(env_id)()
    agent = build(env_id, name, env)
    agent.reset(seed=0)
    venv = vec_envs.DummyVecEnv([lambda: env])
    venv.seed(7)
    recorder = Recorder()
    returns, lengths = evaluate_policy(
        agent, venv, n_eval_episodes=EPISODES, return_episode_rewards=True, callback=recorder
    )
    # Monitor rounds returns to six decimals, and float32 rewards come from the VecEnv.
    assert returns == pytest.approx([total for total, _ in expected], abs=1e-4)
    assert recorder.regrets == [regret for _, regret in expected]
    assert lengths == [KWARGS[env_id]["horizon"]] * EPISODES


@every_agent
def test_evaluate_policy_takes_the_single_environment(env_id: str, name: str) -> None:
    env = maker(env_id)()
    env.reset(seed=7)
    agent = build(env_id, name, env)
    agent.reset(seed=0)
    mean, deviation = evaluate_policy(agent, env, n_eval_episodes=EPISODES)
    # evaluate_policy resets again before it plays: the second episode of the seed comes first.
    twin = gym.make(env_id, **KWARGS[env_id])
    twin.reset(seed=7)
    hand = build(env_id, name, twin)
    hand.reset(seed=0)
    returns = [math.fsum(episode(twin, hand)[1]) for _ in range(EPISODES)]
    assert mean == pytest.approx(np.mean(returns), abs=1e-4)
    assert deviation == pytest.approx(np.std(returns), abs=1e-4)


@every_agent
def test_evaluate_policy_on_three_environments_equals_three_loops(env_id: str, name: str) -> None:
    expected = [by_hand(env_id, name, env_seed=7 + i, agent_seed=3 + i) for i in range(3)]
    venv = vec_envs.DummyVecEnv([maker(env_id)] * 3)
    agent = build(env_id, name, venv)
    agent.reset(seed=3)
    venv.seed(7)
    recorder = Recorder()
    returns, _ = evaluate_policy(
        agent, venv, n_eval_episodes=3 * EPISODES, return_episode_rewards=True, callback=recorder
    )
    # Episodes are of one length: they end in the order of the environments, again and again.
    in_order = [expected[i][number] for number in range(EPISODES) for i in range(3)]
    assert returns == pytest.approx([total for total, _ in in_order], abs=1e-4)
    assert recorder.regrets == [regret for _, regret in in_order]


@pytest.mark.parametrize("deterministic", [True, False])
def test_randomisation_belongs_to_the_agent(deterministic: bool) -> None:
    venv = vec_envs.DummyVecEnv([maker(IMPROVING)])
    found = []
    for _ in range(2):
        agent = UniformRandom()
        agent.reset(seed=0)
        venv.seed(7)
        found.append(evaluate_policy(agent, venv, 3, deterministic=deterministic))
    assert found[0] == found[1]
    assert found[0][1] > 0


def test_an_oracle_has_no_regret_under_evaluate_policy() -> None:
    for env_id, oracle, extra in (
        (IMPROVING, OracleArm, {}),
        (IMPROVING, OracleArm, {"horizon": 500, "max_episode_steps": 10}),
        (EGAL, OracleRotation, {"horizon": 24}),
    ):
        venv = vec_envs.DummyVecEnv([maker(env_id, **extra)] * 3)
        venv.seed(1)
        recorder = Recorder()
        evaluate_policy(oracle(venv), venv, n_eval_episodes=9, callback=recorder)
        assert recorder.regrets == pytest.approx([0.0] * 9, abs=1e-10)


def test_truncated_ends_are_marked_and_terminated_ones_are_not() -> None:
    for known in (False, True):
        venv = vec_envs.DummyVecEnv([maker(IMPROVING, horizon=2, horizon_known=known)])
        venv.reset()
        venv.step(np.array([0]))
        _, _, dones, infos = venv.step(np.array([1]))
        assert dones.all()
        assert infos[0]["TimeLimit.truncated"] == (not known)
        assert infos[0]["terminal_observation"]["pulls"].tolist() == [1, 1, 0, 0]


# --- Subprocesses -------------------------------------------------------------------------------


def trace(venv: Any, agent: Agent) -> list[Any]:
    """Return actions, rewards and regrets of two episodes in each environment."""
    agent.reset(seed=0)
    venv.seed(4)
    observation = venv.reset()
    traced: list[Any] = []
    for _ in range(50):
        actions = agent.act(observation)
        observation, rewards, _, infos = venv.step(actions)
        regrets = [info.get("policy_regret") for info in infos]
        traced.append((actions.tolist(), rewards.astype(np.float32).tolist(), regrets))
    return traced


def locally(env_id: str) -> Any:
    """Return an instance that pickle cannot carry, as cloudpickle can."""
    scale = 0.9

    def draw_means(rng: np.random.Generator, num_users: int, num_arms: int) -> Arms:
        return Bernoulli(scale * rng.random(num_arms))

    def draw_caps(rng: np.random.Generator, num_arms: int) -> list[Curve]:
        ramps = rng.integers(1, 40, num_arms).tolist()
        return [LinearCap(scale * float(rng.random()), ramp) for ramp in ramps]

    return draw_caps if env_id == IMPROVING else draw_means


@pytest.mark.slow
@pytest.mark.parametrize("env_id", [IMPROVING, EGAL])
@pytest.mark.parametrize("local", [False, True], ids=["named", "local"])
def test_subprocesses_play_what_one_process_plays(env_id: str, local: bool) -> None:
    extra = {"instance": locally(env_id)} if local else {}
    here = vec_envs.DummyVecEnv([maker(env_id, **extra)] * 2)
    there = vec_envs.SubprocVecEnv([maker(env_id, **extra)] * 2)
    try:
        for name in (name for its_env, name in ALL_AGENTS if its_env == env_id):
            expected = trace(here, build(env_id, name, here))
            assert any(None not in regrets for _, _, regrets in expected)
            assert trace(there, build(env_id, name, there)) == expected, name
    finally:
        with contextlib.suppress(BrokenPipeError, EOFError):  # hides a subprocess's own error
            there.close()


# --- Training -----------------------------------------------------------------------------------


@pytest.mark.parametrize("flat", [False, True], ids=["dict", "flat"])
def test_ppo_trains_saves_and_is_evaluated(flat: bool, tmp_path: Any) -> None:
    def make() -> gym.Env[Any, Any]:
        env: Any = PolicyRegret(gym.make(IMPROVING, **KWARGS[IMPROVING]))
        env = FlattenObservation(env) if flat else env
        monitored: gym.Env[Any, Any] = monitors.Monitor(env, info_keywords=KEYWORDS)
        return monitored

    venv = vec_envs.DummyVecEnv([make] * 2)
    policy = "MlpPolicy" if flat else "MultiInputPolicy"
    model = sb3.PPO(policy, venv, n_steps=32, batch_size=32, n_epochs=2, seed=0, device="cpu")
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    model.learn(128)
    after = model.policy.state_dict()
    assert any(not before[name].equal(after[name]) for name in before)
    assert all(bool(value.isfinite().all()) for value in after.values())
    # Episodes of 25 steps in two environments of 64 steps each.
    assert [entry["l"] for entry in model.ep_info_buffer] == [25] * 4
    assert all(entry["policy_regret"] >= -1e-9 for entry in model.ep_info_buffer)
    model.save(tmp_path / "model")
    loaded = sb3.PPO.load(tmp_path / "model", device="cpu")
    results = []
    for each in (model, loaded):
        venv.seed(3)
        results.append(evaluate_policy(each, venv, n_eval_episodes=4))
    assert results[0] == results[1]


def test_dqn_takes_the_discrete_action() -> None:
    env = FlattenObservation(gym.make(IMPROVING, **KWARGS[IMPROVING]))
    model = sb3.DQN("MlpPolicy", env, learning_starts=8, buffer_size=100, seed=0, device="cpu")
    model.learn(40)
    assert model.num_timesteps == 40


def test_ppo_refuses_assignments_and_says_which_spaces_it_takes() -> None:
    with pytest.raises(AssertionError, match="Assignment"):
        sb3.PPO("MultiInputPolicy", gym.make(EGAL, **KWARGS[EGAL]), device="cpu")


# --- The checker --------------------------------------------------------------------------------

CHECKED: dict[str, tuple[str, dict[str, Any]]] = {
    "improving": (IMPROVING, {}),
    "improving_known": (IMPROVING, {"horizon_known": True, "noise_std": 0.1}),
    "improving_short": (IMPROVING, {"horizon": 3}),
    "egal": (EGAL, {}),
    "egal_known": (EGAL, {"horizon_known": True, "instance": "gaussian"}),
    "egal_shared": (EGAL, {"num_users": 6, "num_arms": 4, "capacity": 2}),
}


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("case", CHECKED)
def test_the_checker_of_stable_baselines_is_silent(
    case: str, wrapped: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    env_id, kwargs = CHECKED[case]
    env: Any = gym.make(env_id, **kwargs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env_checker.check_env(PolicyRegret(env) if wrapped else env)
    assert capsys.readouterr() == ("", "")


def test_observations_of_a_vec_env_are_those_of_the_environment() -> None:
    venv = vec_envs.DummyVecEnv([maker(EGAL)] * 2)
    venv.seed(5)
    observation = venv.reset()
    singles = [gym.make(EGAL, **KWARGS[EGAL]) for _ in range(2)]
    own = [env.reset(seed=5 + i)[0] for i, env in enumerate(singles)]
    for step in range(5):
        for name, values in observation.items():
            for i in range(2):
                assert values.dtype == own[i][name].dtype
                assert_array_equal(values[i], own[i][name])
        action = (np.arange(3) + step) % 5
        observation, rewards, _, infos = venv.step(np.array([action, action]))
        for i, env in enumerate(singles):
            own[i], reward, _, _, info = env.step(action)
            assert rewards[i] == np.float32(reward)
            assert_array_equal(infos[i]["user_rewards"], info["user_rewards"])
