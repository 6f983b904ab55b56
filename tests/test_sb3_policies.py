"""Policies that know the symmetry, and the adapter for quick training, with the real trainers."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import gymnasium as gym
import numpy as np
import pytest
from helpers_names import EGAL, IMPROVING

th = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")
pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO  # noqa: E402
from stable_baselines3 import A2C, PPO  # noqa: E402
from stable_baselines3.common.callbacks import EvalCallback  # noqa: E402
from stable_baselines3.common.evaluation import evaluate_policy  # noqa: E402
from stable_baselines3.common.monitor import Monitor  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor, VecNormalize  # noqa: E402

from gym_fairbandits.agents import Greedy, OracleArm, RoundRobin  # noqa: E402
from gym_fairbandits.agents.sb3 import (  # noqa: E402
    ArmEquivariantPolicy,
    BanditVecEnv,
    MaskableArmEquivariantPolicy,
)
from gym_fairbandits.curves import LinearCap  # noqa: E402
from gym_fairbandits.evaluation import compare, evaluate  # noqa: E402
from gym_fairbandits.experiments.learning import Recipe, train  # noqa: E402
from gym_fairbandits.wrappers import (  # noqa: E402
    PolicyRegret,
    RankedAssignment,
    RotatedAssignment,
    SequentialAssignment,
)
from gym_fairbandits.wrappers.vector import (  # noqa: E402
    EnumeratedAssignment,
    LehmerAssignment,
)
from gym_fairbandits.wrappers.vector import PolicyRegret as VectorPolicyRegret  # noqa: E402
from gym_fairbandits.wrappers.vector import RankedAssignment as VectorRanked  # noqa: E402

EGAL_SIZE: dict[str, Any] = {"num_users": 3, "num_arms": 5, "horizon": 12}
MAKERS: dict[str, Callable[[], Any]] = {
    "bandit": lambda: gym.make(IMPROVING, num_arms=5, horizon=12),
    "bandit known": lambda: gym.make(IMPROVING, num_arms=5, horizon=12, horizon_known=True),
    "ranked": lambda: RankedAssignment(gym.make(EGAL, **EGAL_SIZE)),
    "ranked shared": lambda: RankedAssignment(gym.make(EGAL, capacity=2, **EGAL_SIZE)),
    "rotated": lambda: RotatedAssignment(gym.make(EGAL, horizon_known=True, **EGAL_SIZE)),
    "sequential": lambda: SequentialAssignment(gym.make(EGAL, **EGAL_SIZE)),
    "sequential shared": lambda: SequentialAssignment(gym.make(EGAL, capacity=2, **EGAL_SIZE)),
}
ARM_KEYS = ("pulls", "reward_sum", "last_reward", "last_increment", "taken")
QUICK: dict[str, Any] = {"n_steps": 24, "batch_size": 24, "n_epochs": 1, "seed": 0, "device": "cpu"}


def observations(env: Any, count: int) -> dict[str, Any]:
    """Return observations of a random run, stacked."""
    env.action_space.seed(0)
    seen = [env.reset(seed=0)[0]]
    while len(seen) < count:
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        seen.append(env.reset()[0] if terminated or truncated else observation)
    return {name: np.stack([one[name] for one in seen]) for name in seen[0]}


def policy_of(env: Any) -> Any:
    masked = env.has_wrapper_attr("action_masks")
    if masked:
        return MaskablePPO(MaskableArmEquivariantPolicy, env, **QUICK)
    return PPO(ArmEquivariantPolicy, env, **QUICK)


def outputs(model: Any, batch: dict[str, Any]) -> tuple[Any, Any]:
    """Return the logits or mean scores, and the values."""
    tensors, _ = model.policy.obs_to_tensor(batch)
    with th.no_grad():
        distribution = model.policy.get_distribution(tensors).distribution
        scores = distribution.logits if hasattr(distribution, "logits") else distribution.mean
        return scores.numpy(), model.policy.predict_values(tensors).numpy()


@pytest.mark.parametrize("name", MAKERS)
def test_permuting_the_arms_permutes_the_scores_and_leaves_the_value(name: str) -> None:
    env = MAKERS[name]()
    model = policy_of(env)
    batch = observations(env, 40)
    order = np.random.default_rng(1).permutation(5)
    moved = {key: part[:, order] if key in ARM_KEYS else part for key, part in batch.items()}
    scores, values = outputs(model, batch)
    moved_scores, moved_values = outputs(model, moved)
    slots = scores.shape[1] // 5
    places = (order[:, None] * slots + np.arange(slots)).ravel()
    np.testing.assert_allclose(moved_scores, scores[:, places], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(moved_values, values, rtol=1e-5, atol=1e-6)
    assert np.ptp(scores, axis=1).max() > 1e-3  # arms that differ do get different scores


@pytest.mark.parametrize("name", ["ranked", "rotated"])
def test_permuting_the_users_changes_nothing(name: str) -> None:
    env = MAKERS[name]()
    model = policy_of(env)
    batch = observations(env, 20)
    moved = {**batch, "user_reward_sum": batch["user_reward_sum"][:, [2, 0, 1]]}
    for before, after in zip(outputs(model, batch), outputs(model, moved), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MAKERS)
def test_deterministic_actions_do_not_depend_on_the_batch(name: str) -> None:
    env = MAKERS[name]()
    model = policy_of(env)
    batch = observations(env, 64)
    together, _ = model.predict(batch, deterministic=True)
    for row in range(64):
        alone, _ = model.predict(
            {key: part[row] for key, part in batch.items()}, deterministic=True
        )
        np.testing.assert_allclose(alone, together[row], atol=2e-5)
        assert (
            np.argsort(-alone, kind="stable").tolist()
            == np.argsort(-together[row], kind="stable").tolist()
        )


def test_all_arms_alike_tie_and_the_first_is_chosen() -> None:
    model = policy_of(MAKERS["bandit"]())
    start, _ = MAKERS["bandit"]().reset(seed=0)
    assert model.predict(start, deterministic=True)[0] == 0


def test_the_weights_serve_other_sizes() -> None:
    small, large = policy_of(MAKERS["bandit"]()), policy_of(gym.make(IMPROVING, num_arms=9))
    large.policy.load_state_dict(small.policy.state_dict())
    batch = observations(gym.make(IMPROVING, num_arms=9), 10)
    assert outputs(large, batch)[0].shape == (10, 9)


@pytest.mark.parametrize("name", MAKERS)
def test_training_saving_loading_and_pickling(name: str, tmp_path: Path) -> None:
    env = MAKERS[name]()
    model = policy_of(env)
    before = [parameter.detach().clone() for parameter in model.policy.parameters()]
    model.learn(48)
    assert any(
        not th.equal(old, new) for old, new in zip(before, model.policy.parameters(), strict=True)
    )
    batch = observations(env, 16)
    expected = model.predict(batch, deterministic=True)[0]
    model.save(tmp_path / "model.zip")
    loaded = type(model).load(tmp_path / "model.zip", device="cpu")
    np.testing.assert_array_equal(loaded.predict(batch, deterministic=True)[0], expected)
    policy = pickle.loads(pickle.dumps(model.policy))
    np.testing.assert_array_equal(policy.predict(batch, deterministic=True)[0], expected)
    model.policy.save(tmp_path / "policy.pt")
    again = type(model.policy).load(tmp_path / "policy.pt", device="cpu")
    np.testing.assert_array_equal(again.predict(batch, deterministic=True)[0], expected)


@pytest.mark.parametrize("policy", [ArmEquivariantPolicy, MaskableArmEquivariantPolicy])
def test_saved_models_name_the_module_that_users_import(policy: type[Any]) -> None:
    assert f"cgym_fairbandits.agents.sb3\n{policy.__name__}\n".encode() in pickle.dumps(policy, 0)


def test_other_trainers_and_sizes() -> None:
    A2C(ArmEquivariantPolicy, MAKERS["bandit"](), n_steps=6, seed=0, device="cpu").learn(12)
    sizes: dict[str, Any] = {"policy_kwargs": {"hidden": (16, 8)}}
    PPO(ArmEquivariantPolicy, MAKERS["rotated"](), **QUICK, **sizes).learn(24)


def test_flattened_observations_and_wrong_sizes_are_refused() -> None:
    flat = gym.wrappers.FlattenObservation(MAKERS["bandit"]())
    with pytest.raises(TypeError, match="must be the Dict of an environment of gym_fairbandits"):
        PPO(ArmEquivariantPolicy, flat, device="cpu")
    with pytest.raises(ValueError, match="`hidden` must be at least 1, got 0"):
        PPO(ArmEquivariantPolicy, MAKERS["bandit"](), policy_kwargs={"hidden": 0}, device="cpu")


def test_masked_training_never_collides() -> None:
    env = SequentialAssignment(gym.make(EGAL, **EGAL_SIZE), strict=True)
    assert policy_of(env).learn(72).num_timesteps == 72  # strict: a collision would raise


# --- The adapter --------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("settings", [{}, {"noise_std": 0.25}, {"max_episode_steps": 5}])
def test_the_adapter_equals_a_dummy_vec_env(known: bool, settings: dict[str, Any]) -> None:
    shared: dict[str, Any] = {"num_arms": 4, "horizon": 7, "horizon_known": known, **settings}
    keys = ("policy_regret", "competitive_ratio")

    def make() -> Any:
        return Monitor(PolicyRegret(gym.make(IMPROVING, **shared)), info_keywords=keys)

    dummy = DummyVecEnv([make] * 3)
    native = BanditVecEnv(
        VectorPolicyRegret(gym.make_vec(IMPROVING, num_envs=3, autoreset_mode="SameStep", **shared))
    )
    dummy.seed(11)
    native.seed(11)
    first: Any = native.reset()
    first_2: Any = dummy.reset()
    assert first.keys() == first_2.keys()
    for name, part in first.items():
        np.testing.assert_array_equal(part, first_2[name])
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(20):
        actions = rng.integers(0, 4, 3)
        seen, rewards, ended, infos = native.step(actions)
        other, rewards_2, ended_2, infos_2 = dummy.step(actions)
        mine, theirs = cast("dict[str, Any]", seen), cast("dict[str, Any]", other)
        for name, part in mine.items():
            np.testing.assert_array_equal(part, theirs[name])
        np.testing.assert_array_equal(rewards, rewards_2)
        assert rewards.dtype == rewards_2.dtype
        np.testing.assert_array_equal(ended, ended_2)
        for info, info_2 in zip(infos, infos_2, strict=True):
            assert info["TimeLimit.truncated"] == info_2["TimeLimit.truncated"]
            assert ("episode" in info) == ("episode" in info_2)
            if "episode" in info:
                ends += 1
                assert info["episode"]["r"] == pytest.approx(info_2["episode"]["r"], abs=1e-5)
                assert info["episode"]["l"] == info_2["episode"]["l"]
                assert {key: info[key] for key in keys} == {key: info_2[key] for key in keys}
                for name, part in info["terminal_observation"].items():
                    np.testing.assert_array_equal(part, info_2["terminal_observation"][name])
    assert ends >= 6


def test_the_adapter_refuses_other_resets_and_answers_oracles() -> None:
    with pytest.raises(ValueError, match="must be made with autoreset_mode='SameStep', got"):
        BanditVecEnv(gym.make_vec(IMPROVING, num_envs=2))
    envs = BanditVecEnv(gym.make_vec(IMPROVING, num_envs=3, horizon=6, autoreset_mode="SameStep"))
    envs.seed(0)
    seen = envs.reset()
    assert OracleArm(envs).act(seen).tolist() == envs.env_method("optimal_arm")
    assert envs.get_attr("horizon", [0, 2]) == [6, 6]
    assert envs.env_is_wrapped(Monitor) == [False] * 3
    with pytest.raises(NotImplementedError, match="no own attributes"):
        envs.set_attr("horizon", 3)
    envs.close()


def test_the_adapter_takes_assignments_in_a_wrapper_that_can_be_learned_only() -> None:
    native = gym.make_vec(EGAL, num_envs=2, autoreset_mode="SameStep", **EGAL_SIZE)
    with pytest.raises(TypeError, match=r"got Assignment\(3, 5\); put RankedAssignment, .*Rotated"):
        BanditVecEnv(native)
    for wrapper in (VectorRanked, LehmerAssignment, EnumeratedAssignment):
        wrapped = wrapper(native)
        assert BanditVecEnv(wrapped).action_space == wrapped.single_action_space
        PPO("MultiInputPolicy", BanditVecEnv(wrapped), **QUICK).learn(48)


def test_vec_monitor_around_the_adapter_logs_the_regret_without_a_warning(tmp_path: Path) -> None:
    native = gym.make_vec(IMPROVING, num_envs=2, num_arms=3, horizon=6, autoreset_mode="SameStep")
    adapted = BanditVecEnv(VectorPolicyRegret(native))
    envs = VecMonitor(adapted, str(tmp_path / "run"), info_keywords=("policy_regret",))
    model = PPO(ArmEquivariantPolicy, envs, n_steps=6, batch_size=12, seed=0, device="cpu")
    model.learn(24)
    assert model.ep_info_buffer is not None
    regrets = [episode["policy_regret"] for episode in model.ep_info_buffer]
    assert len(regrets) == 4
    lines = (tmp_path / "run.monitor.csv").read_text(encoding="utf-8").splitlines()
    assert lines[1] == "r,l,t,policy_regret"
    assert [float(line.split(",")[3]) for line in lines[2:]] == regrets
    evaluate_policy(model, envs, n_eval_episodes=2)
    envs.close()


def test_vec_normalize_and_eval_callback_run_around_it(tmp_path: Path) -> None:
    envs = BanditVecEnv(
        gym.make_vec(IMPROVING, num_envs=4, num_arms=3, horizon=6, autoreset_mode="SameStep")
    )
    normalized = VecNormalize(envs, norm_obs=False, norm_reward=True, gamma=0.99)
    held_out = Monitor(gym.make(IMPROVING, num_arms=3, horizon=6))
    # Of the same kind as the training's, as the callback wants.
    held_out_envs = VecNormalize(
        DummyVecEnv([lambda: held_out]), norm_obs=False, norm_reward=False, training=False
    )
    callback = EvalCallback(
        held_out_envs,
        n_eval_episodes=2,
        eval_freq=6,
        log_path=str(tmp_path),
        verbose=0,
        warn=False,
    )
    model = PPO(ArmEquivariantPolicy, normalized, n_steps=6, batch_size=24, seed=0, device="cpu")
    model.learn(48, callback=callback)
    assert model.ep_info_buffer is not None
    assert len(model.ep_info_buffer) == 8
    assert (tmp_path / "evaluations.npz").exists()
    result = evaluate(model, IMPROVING, num_episodes=4, num_arms=3, horizon=6)
    assert np.isfinite(result.episodes["policy_regret"]).all()


def test_the_bar_of_a_training_ends_where_the_training_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = {"n_steps": 4, "batch_size": 8, "n_epochs": 1, "learning_rate": 1e-3}
    recipe = Recipe(IMPROVING, total_steps=10, num_envs=2, settings=settings)
    assert train(recipe, 0, num_arms=3, horizon=4).num_timesteps == 16
    assert "16.0/16.0" in capsys.readouterr().err


@pytest.mark.slow
def test_a_short_training_on_assignment_learns() -> None:
    shared: dict[str, Any] = {"num_arms": 10, "num_users": 5, "horizon": 200}

    def make() -> Any:
        return RotatedAssignment(gym.make(EGAL, **shared))

    th.set_num_threads(1)
    model = PPO(
        ArmEquivariantPolicy,
        DummyVecEnv([make] * 16),
        n_steps=40,
        batch_size=320,
        n_epochs=5,
        learning_rate=1e-3,
        gamma=0.999,
        seed=0,
        device="cpu",
    )
    before = evaluate(model, EGAL, wrappers=[RotatedAssignment], seed=10**6, **shared)
    model.learn(15_000)
    after = evaluate(
        model, EGAL, wrappers=[RotatedAssignment], num_episodes=300, seed=10**6, **shared
    )
    assert after.interval("policy_regret")[1] < before.interval("policy_regret")[0]


def linear_caps(rng: np.random.Generator, num_arms: int) -> list[LinearCap]:
    """Return arms with ramps log-uniform on [1, 100] and asymptotes uniform on (0, 1)."""
    return [
        LinearCap(rng.uniform(0.001, 1), float(np.exp(rng.uniform(0, np.log(100)))))
        for _ in range(num_arms)
    ]


@pytest.mark.slow
def test_a_short_training_on_improving_arms_ends_below_round_robin_and_greedy() -> None:
    shared: dict[str, Any] = {"instance": linear_caps, "num_arms": 5, "horizon": 100}
    envs = VecNormalize(
        BanditVecEnv(gym.make_vec(IMPROVING, num_envs=64, autoreset_mode="SameStep", **shared)),
        norm_obs=False,
        gamma=0.98,
    )
    th.set_num_threads(1)
    model = PPO(
        ArmEquivariantPolicy,
        envs,
        n_steps=100,
        batch_size=640,
        n_epochs=10,
        learning_rate=2e-3,
        gamma=0.98,
        seed=0,
        device="cpu",
    )
    model.learn(100_000)
    results = compare(
        {"ppo": model, "round robin": RoundRobin(), "greedy": Greedy()},
        IMPROVING,
        num_episodes=300,
        seed=10**6,
        **shared,
    )
    for other in ("round robin", "greedy"):
        low = results[other].interval("policy_regret")[0]
        assert results["ppo"].interval("policy_regret")[1] < low
