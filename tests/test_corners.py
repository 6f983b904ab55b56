"""What seldom happens: draws at the edge, batches that change size, tools that are absent."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction
from helpers_agents import EGAL_AGENTS, IMPROVING_AGENTS, fixed
from helpers_envs import Root
from helpers_names import EGAL, IMPROVING
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

import gym_fairbandits.__main__ as cli
from gym_fairbandits import _max_min, agents, optimum, wrappers
from gym_fairbandits.agents.history import HistoryAgent
from gym_fairbandits.arms import Adversarial
from gym_fairbandits.curves import Constant, LinearCap, NoveltyDecay, Scaled, Sum, UnshiftedPowerLaw
from gym_fairbandits.envs import EgalAssignVectorEnv, ImprovingBanditVectorEnv
from gym_fairbandits.envs.rendering.text import _listed
from gym_fairbandits.evaluation import Entry, EvaluationError, compare, evaluate, mean_interval
from gym_fairbandits.experiments import anytime_improving, runner, simulate
from gym_fairbandits.experiments._egal_claims import regret_in
from gym_fairbandits.experiments.catalogue import EXPERIMENTS
from gym_fairbandits.spaces import check_assignments

# --- Agents ---------------------------------------------------------------------------------------


class Learned(HistoryAgent):
    """Notes what it is told to learn."""

    def _allocate(self, rows: int, num_arms: int) -> None:
        self.learned: list[tuple[int, int, float]] = []

    def _clear(self, rows: NDArray[np.int64]) -> None:
        pass

    def _learn(
        self, rows: NDArray[np.int64], arms: NDArray[np.int64], rewards: NDArray[np.float64]
    ) -> None:
        self.learned += zip(rows.tolist(), arms.tolist(), rewards.tolist(), strict=True)

    def _choose(self, observation: Any) -> NDArray[np.int64]:
        return np.zeros(len(observation["pulls"]), dtype=np.int64)


def test_of_steps_that_an_agent_did_not_see_it_learns_the_mean_once_per_pull() -> None:
    agent = Learned()
    seen = {
        "pulls": np.zeros((2, 3), dtype=np.int64),
        "reward_sum": np.zeros((2, 3)),
        "last_reward": np.zeros((2, 3)),
    }
    agent.act(seen)
    seen["pulls"] = np.array([[2, 0, 1], [0, 1, 0]])
    seen["reward_sum"] = np.array([[1.5, 0.0, 0.25], [0.0, 0.5, 0.0]])
    seen["last_reward"] = np.array([[1.0, 0.0, 0.25], [0.0, 0.5, 0.0]])
    agent.act(seen)
    assert sorted(agent.learned) == [(0, 0, 0.75), (0, 0, 0.75), (0, 2, 0.25), (1, 1, 0.5)]


@pytest.mark.parametrize(
    ("env_id", "name"),
    [(IMPROVING, name) for name in IMPROVING_AGENTS] + [(EGAL, name) for name in EGAL_AGENTS],
)
def test_an_agent_reset_for_a_batch_of_another_size_starts_afresh_in_it(
    env_id: str, name: str
) -> None:
    make = (IMPROVING_AGENTS if env_id == IMPROVING else EGAL_AGENTS)[name]
    vector: Any = ImprovingBanditVectorEnv if env_id == IMPROVING else EgalAssignVectorEnv
    sizes = {"num_users": 2} if env_id == EGAL else {}

    def actions(agent: Any, num_envs: int) -> NDArray[np.int64]:
        envs = vector(num_envs=num_envs, num_arms=4, horizon=6, **sizes)
        observation, _ = envs.reset(seed=5)
        taken = []
        for _ in range(5):
            taken.append(agent.act(observation))
            observation = envs.step(taken[-1])[0]
        return np.array(taken)

    agent = make()
    agent.reset(seed=1)
    actions(agent, 3)
    agent.reset(seed=7, mask=np.ones(2, dtype=np.bool_))
    fresh = make()
    fresh.reset(seed=7)
    assert_array_equal(actions(agent, 2), actions(fresh, 2))


def test_too_many_users_for_the_capacity_are_told() -> None:
    env: Any = gym.make(EGAL, num_users=4, num_arms=2, capacity=2)
    observation, _ = env.reset(seed=0)
    agents.UniformRandom(capacity=2).act(observation)
    with pytest.raises(ValueError, match=r"`capacity` must be at least the users per arm, 4 / 2"):
        agents.UniformRandom(capacity=1).act(observation)


class Last(np.random.Generator):
    """Draws the largest number below 1."""

    def random(self, *_: Any, **__: Any) -> Any:
        return np.nextafter(1.0, 0.0)


def test_a_draw_that_the_permutations_do_not_reach_takes_the_last_of_them() -> None:
    agent = agents.PermELearn()
    # Doubly stochastic but for rounding; the permutations weigh 0.999 together.
    agent._matrices = np.array([[[0.333, 0.666], [0.666, 0.333]]])
    drawn = agent._draw(0, 2, Last(np.random.PCG64(0)))
    assert sorted(drawn.tolist()) == [0, 1]


# --- Curves, optimum, environments ----------------------------------------------------------------


def test_curves_outside_the_model_are_scanned_for_a_fall() -> None:
    falling = NoveltyDecay(0.2, 0.5, 0.9, 0.1)  # rises with its novelty, then falls
    assert not Scaled(2.0, falling).nondecreasing(200)
    assert not Sum((falling, Constant(0.1))).nondecreasing(200)
    rising = Root(1.0, 3.0)
    assert Sum((rising, Scaled(-0.1, rising))).nondecreasing(200)
    assert not Scaled(-1.0, rising).nondecreasing(200)
    assert UnshiftedPowerLaw(0.5, 1.0).nondecreasing(10)
    assert not UnshiftedPowerLaw(-0.5, 1.0).nondecreasing(10)


def test_without_adaptation_novelty_never_fades_from_the_sum() -> None:
    # 0.2 + 0.5 sum_i 0.5^i: the lift adds up to 0.5 * 0.5 / (1 - 0.5).
    assert NoveltyDecay(0.2, 0.5, 0.5, 0.0).asymptote == pytest.approx(0.5)
    assert NoveltyDecay(0.2, 0.5, 0.5, 0.3).asymptote == 0.2


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Forget the optima that are known, before and after."""
    optimum._max_min.cache_clear()
    yield
    optimum._max_min.cache_clear()


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize("nodes", [0, 5])
def test_a_search_that_is_given_up_leaves_true_bounds(
    nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    means, num_users, steps = [0.1, 0.3, 0.7, 0.93, 0.2, 0.35], 4, 7
    exact = optimum.max_min_assignment(means, num_users, steps)
    assert exact.exact
    optimum._max_min.cache_clear()
    monkeypatch.setattr(_max_min, "MOST_NODES", nodes)
    bounds = optimum.max_min_assignment(means, num_users, steps)
    # Equal shares of the four best arms would give 7 (0.93 + 0.7 + 0.35 + 0.3) / 4.
    assert bounds.lower <= exact.lower <= bounds.upper <= 3.99 + 1e-12
    assert (bounds.counts @ means).min() == pytest.approx(bounds.lower, rel=1e-12)
    assert_array_equal(bounds.counts.sum(axis=1), [steps] * num_users)


def test_an_instance_that_is_one_curve_is_refused() -> None:
    with pytest.raises(TypeError, match="`instance` must be a sequence of curves, got one"):
        gym.make(IMPROVING, instance=LinearCap(0.1, 1.0).to_dict())


def test_streams_of_rows_exist_before_a_seed() -> None:
    envs = ImprovingBanditVectorEnv(num_envs=2)
    assert envs.np_random[1] is envs.np_random[1]
    assert envs.np_random[0] is not envs.np_random[1]
    seeds = envs.np_random_seed
    assert seeds == envs.np_random_seed
    assert seeds[0] != seeds[1]
    # They are the streams that the first episode draws from.
    envs.reset()
    again = ImprovingBanditVectorEnv(num_envs=2)
    again.reset(seed=list(seeds))
    assert envs.np_random_seed == seeds
    assert envs.curves == again.curves


def test_the_exact_benchmark_answers_for_any_number_of_steps() -> None:
    envs = EgalAssignVectorEnv(num_envs=2, instance=fixed([0.9, 0.5, 0.1]), num_users=2, horizon=3)
    envs.reset(seed=0)
    for steps, best in ((0, 0.0), (1, 0.5), (2, 1.4), (3, 1.9)):  # the users take turns
        assert_allclose(envs.exact_optimal_return(steps), [best] * 2, rtol=1e-12)


def test_of_illegal_rows_the_first_that_counts_is_named() -> None:
    actions = np.array([[0, 0], [1, 2], [0, 3]])
    with pytest.raises(InvalidAction, match="in sub-environment 2"):
        check_assignments(actions, 3, 2, 3, 1, rows=np.array([False, True, True]))


# --- Wrappers -------------------------------------------------------------------------------------


class NoUserRewards(gym.Wrapper[Any, Any, Any, Any]):
    def step(self, action: Any) -> Any:
        *rest, info = self.env.step(action)
        return (*rest, {key: info[key] for key in info if key != "user_rewards"})


def test_a_rotation_adds_no_rewards_of_users_that_nobody_tells() -> None:
    made = gym.make(EGAL, instance=fixed([0.75, 0.5, 0.25]), num_users=2, horizon=4)
    env: Any = wrappers.RotatedAssignment(NoUserRewards(made))
    env.reset(seed=0)
    _, reward, _, _, info = env.step(np.array([3.0, 2.0, 1.0]))
    assert reward == 1.25  # two steps in which the users share the arms of 0.75 and 0.5
    assert "user_rewards" not in info


def test_frames_show_no_regret_where_it_is_not_known_yet() -> None:
    table = Adversarial(np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [1.0, 1.0]]))
    env: Any = wrappers.PolicyRegret(
        gym.make(EGAL, instance=table, num_users=1, horizon=4, render_mode="ansi"),
        benchmark="exact",
    )
    env.reset(seed=0)
    env.step(np.array([0]))
    with pytest.raises(ValueError, match="benchmark"):
        env.regret()
    assert "policy regret" in env.render()


def test_frames_of_a_batch_show_none_either() -> None:
    varying = Adversarial(np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [1.0, 1.0]]))
    inner = EgalAssignVectorEnv(
        num_envs=2, instance=varying, num_users=1, horizon=4, render_mode="ansi"
    )
    envs = wrappers.vector.PolicyRegret(inner, benchmark="exact")
    envs.reset(seed=0)
    envs.step(np.array([[0], [1]]))
    with pytest.raises(ValueError, match="benchmark"):
        envs.regret()
    frames: Any = envs.render()
    assert all("policy regret" in frame for frame in frames)


def test_a_list_of_users_ends_where_the_room_does() -> None:
    assert _listed(range(4)) == "0 1 2 3"
    assert _listed(range(20)) == "0 1 2 +17"


# --- Evaluation -----------------------------------------------------------------------------------


def test_wrappers_go_into_the_entry_and_policies_into_a_mapping() -> None:
    entry = Entry(agents.EgalUCB())
    with pytest.raises(TypeError, match="`wrappers` and `normalize` must be given to the `Entry`"):
        evaluate(entry, EGAL, wrappers=[wrappers.RankedAssignment])
    wrongs: list[Any] = [{}, [agents.EgalUCB()]]
    for wrong in wrongs:
        with pytest.raises(TypeError, match="`policies` must be a mapping of names to policies"):
            compare(wrong, EGAL)


def test_tables_refuse_what_was_not_measured_and_intervals_odd_levels() -> None:
    played = compare({"ucb": agents.EgalUCB()}, EGAL, num_episodes=2, horizon=5)
    with pytest.raises(ValueError, match=re.escape("`metrics` must be among") + ".*got .'speed'"):
        played.table(["speed"])
    with pytest.raises(ValueError, match=r"`confidence` must lie between 0 and 1, got 1\.0"):
        mean_interval(np.array([1.0, 2.0]), 1.0)


class StuckError(RuntimeError):
    def __reduce__(self) -> Any:
        raise TypeError("no")


def test_an_error_that_cannot_travel_is_told_as_text() -> None:
    def policy(observation: Any) -> int:
        raise StuckError("worn out")

    with pytest.raises(EvaluationError, match="episode 0: StuckError: worn out"):
        evaluate(policy, IMPROVING, num_episodes=1, horizon=3)


# --- Experiments ----------------------------------------------------------------------------------


def test_a_run_goes_on_after_the_last_checkpoint() -> None:
    kwargs: dict[str, Any] = {"instance": [LinearCap(0.1, 1.0), Constant(0.4)]}
    kwargs |= {"num_users": None, "horizon": 9, "num_runs": 1}
    part = simulate(agents.RoundRobin(), **kwargs, checkpoints=[4])
    whole = simulate(agents.RoundRobin(), **kwargs, checkpoints=[4, 9])
    assert_array_equal(part.policy_regret[:, 0], whole.policy_regret[:, 0])
    assert_array_equal(part.pulls, whole.pulls)
    assert whole.pulls.tolist() == [[5, 4]]


def test_kinetic_pulls_end_within_the_first_two_of_every_arm() -> None:
    curves = [LinearCap(0.1, 1.0), Constant(0.4)]
    assert anytime_improving(curves, 3).tolist() == [0, 1, 0]


def test_no_slope_is_fitted_to_one_number_of_users() -> None:
    pytest.importorskip("matplotlib")
    experiment: Any = EXPERIMENTS["egal-users"].from_settings(
        "quick", horizon=64, num_runs=2, users=[2], num_arms=4
    )
    (task,) = experiment.tasks()
    rows = experiment.perform(task)
    assert experiment.slopes(rows) == {}
    (axis,) = experiment.figure(rows).axes
    assert "slope" not in "".join(text.get_text() for text in axis.get_legend().get_texts())


def test_one_regret_for_instances_drawn_anew_is_refused() -> None:
    played = evaluate(agents.EgalUCB(), EGAL, num_episodes=2, horizon=5)
    with pytest.raises(ValueError, match="`evaluation` must be of one instance, got one per epis"):
        regret_in(played)


def test_what_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_VERSIONS", ("numpy", "gym-fairbandits-of-nowhere"))
    versions = runner._versions()
    assert versions["numpy"] == np.__version__
    assert versions["gym-fairbandits-of-nowhere"] is None


# --- The command line -----------------------------------------------------------------------------


def test_in_a_terminal_frames_come_at_their_pace() -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    words = ["play", IMPROVING, "--agent", "greedy", "--fps", "1000", "horizon=2"]
    command = [sys.executable, "-m", "gym_fairbandits", *words]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, check=False)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "greedy, 2 steps" in shown


def test_a_comparison_needs_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", EGAL, "--agents", "egal-ucb", "--num-episodes", "2", "--no-progress"]
    assert cli.main([*words, "horizon=5"]) == 0
    assert "| egal-ucb |" in capsys.readouterr().out
