"""Errors of policies and wrong arguments of evaluations are named, and nothing is played."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction, NameNotFound
from helpers_checkout import run_python
from helpers_evaluation import TRAP, assert_all_same, made
from helpers_names import EGAL, IMPROVING, Kwargs
from numpy.typing import NDArray

from gym_fairbandits.agents import AnytimeImproving, OracleRotation, RoundRobin, UniformRandom
from gym_fairbandits.evaluation import Comparison, Entry, EvaluationError, compare, evaluate


class Fragile(RoundRobin):
    """Raises at the fourth step of the episode of one seed."""

    def __init__(self, bad_seed: int, error: Callable[[], Exception]) -> None:
        super().__init__()
        self.bad_seed, self.error = bad_seed, error
        self.seeds: list[int] = []

    def reset(self, seed: Any = None, mask: Any = None) -> None:
        super().reset(seed, mask)
        self.seeds = list(seed)

    def _act(self, observation: Any) -> NDArray[np.int64]:
        if self.bad_seed in self.seeds and observation["pulls"].sum(axis=1).max() == 3:
            raise self.error()
        return super()._act(observation)


class Awkward(Exception):  # noqa: N818
    """An exception that pickles, but does not unpickle: so do those of many libraries."""

    def __init__(self, part: str, number: int) -> None:
        super().__init__(f"{part} {number} broke")


def assert_error_is_told(
    error: Callable[[], Exception], shown: str, wrappers: Any = (), **how: Any
) -> None:
    """Play a policy that raises in episode 5 of 12 between two others."""
    kwargs: Kwargs = {"num_arms": 3, "horizon": 6, "seed": 100, "num_episodes": 12, "num_envs": 4}
    policies = {
        "before": UniformRandom(),
        "fragile": Entry(Fragile(105, error), wrappers=wrappers),
        "after": RoundRobin(),
    }
    message = f"^policy 'fragile' raised in episode 5: {shown}$"
    with pytest.raises(EvaluationError, match=message) as caught:
        compare(policies, IMPROVING, checkpoints=(2,), **how, **kwargs)
    assert (caught.value.policy, caught.value.episode) == ("fragile", 5)
    assert caught.value.__cause__ is not None
    expected = compare({"before": UniformRandom()}, IMPROVING, checkpoints=(2,), **kwargs)
    assert_all_same(caught.value.results, expected)


@pytest.mark.parametrize("wrappers", [(), (gym.Wrapper,)], ids=["native", "wrapped"])
def test_a_policy_that_raises_names_itself_and_the_episode(wrappers: Any) -> None:
    assert_error_is_told(partial(KeyError, 17), "KeyError: 17", wrappers)


@pytest.mark.slow
@pytest.mark.usefixtures("loky")
def test_a_policy_that_raises_in_another_process_names_itself_too() -> None:
    assert_error_is_told(partial(KeyError, 17), "KeyError: 17", n_jobs=2)


@pytest.mark.slow
@pytest.mark.usefixtures("loky")
def test_errors_that_do_not_unpickle_are_told_too() -> None:
    assert_error_is_told(partial(Awkward, "motor", 7), "Awkward: motor 7 broke", n_jobs=2)


def test_an_error_in_parallel_play_comes_without_warnings() -> None:
    pytest.importorskip("joblib")
    code = """
import joblib
from gym_fairbandits.agents import RoundRobin
from gym_fairbandits.evaluation import EvaluationError, compare
try:
    with joblib.parallel_config(backend="threading", n_jobs=2):
        policies = {"bad": lambda observation: 1 / 0, "good": RoundRobin}
        compare(policies, "ImprovingBandit-v0", num_envs=2)
except EvaluationError as error:
    print(error)
"""
    done = run_python(code)
    assert done.stdout == "policy 'bad' raised in episode 0: ZeroDivisionError: division by zero\n"
    assert done.stderr == ""


def test_the_first_policy_s_error_leaves_no_results() -> None:
    def broken(observation: Any) -> Any:
        raise ZeroDivisionError("no arms")

    with pytest.raises(
        EvaluationError, match="raised in episode 0: ZeroDivisionError: no arms"
    ) as e:
        evaluate(broken, IMPROVING, num_episodes=3, **TRAP)
    assert e.value.results.evaluations == {}
    assert isinstance(e.value.__cause__, ZeroDivisionError)


def test_evaluation_errors_survive_pickling() -> None:
    results = Comparison({"fine": made({"policy_regret": [1.0]})})
    error = EvaluationError("bad", 3, KeyError("arm"), results)
    back = pickle.loads(pickle.dumps(error))
    assert str(back) == str(error) == "policy 'bad' raised in episode 3: KeyError: 'arm'"
    assert (back.policy, back.episode) == ("bad", 3)
    assert_all_same(back.results, results)


def test_illegal_actions_are_the_policy_s_errors() -> None:
    with pytest.raises(EvaluationError, match=r"episode 0: InvalidAction: .*from 0 to 1") as caught:
        evaluate(lambda seen: np.full(len(seen["pulls"]), 2), IMPROVING, num_episodes=2, **TRAP)
    assert isinstance(caught.value.__cause__, InvalidAction)


def test_a_key_that_is_not_observed_is_told_with_those_that_are() -> None:
    told = (
        "KeyError: 'last_reward'; what is observed here is 'pulls', 'reward_sum', "
        r"'user_reward_sum': is the policy one for EgalAssign-v0\?$"
    )
    for policy in (AnytimeImproving(), lambda seen: seen["last_reward"]):
        with pytest.raises(EvaluationError, match=told):
            evaluate(policy, EGAL, num_episodes=1)
    with pytest.raises(EvaluationError, match=r"observed here .* 'remaining', .*: is the policy"):
        evaluate(lambda seen: seen["time"], EGAL, num_episodes=1, horizon_known=True)
    # What a policy of its own misses elsewhere has nothing to do with the observation.
    for key in ("pulls", 3):
        with pytest.raises(EvaluationError, match=rf"episode 0: KeyError: {key!r}$"):
            evaluate(lambda seen, key=key: {}[key], EGAL, num_episodes=1)


class Model:
    """Wants an observation of certain keys, as models of Stable-Baselines3 do."""

    def __init__(self, *keys: str) -> None:
        self.keys = keys

    def predict(self, observation: Any, state: Any = None, **others: Any) -> Any:
        for key in {*self.keys} ^ {*observation}:
            raise KeyError(key)
        return np.zeros((len(observation["pulls"]), 2), dtype=np.int64), state


@pytest.mark.parametrize(("more", "key"), [(["taken"], "taken"), (["remaining"], "remaining")])
def test_a_model_that_was_trained_elsewhere_is_told_of_entry(more: list[str], key: str) -> None:
    keys = ["pulls", "reward_sum", "user_reward_sum", *more]
    told = rf"KeyError: {key!r}; what is observed here .*: was the model .*`Entry\(model,"
    with pytest.raises(EvaluationError, match=told):
        evaluate(Model(*keys), EGAL, num_episodes=1)
    with pytest.raises(EvaluationError, match=r"KeyError: 'remaining'; .* 'remaining', .*`Entry"):
        evaluate(Model(*keys[:3]), EGAL, num_episodes=1, horizon_known=True)


def test_oracles_of_the_other_environment_are_refused() -> None:
    with pytest.raises(EvaluationError, match="episode 0: TypeError: `env` must be an environ"):
        evaluate(OracleRotation, IMPROVING, num_episodes=2, **TRAP)


@pytest.mark.parametrize("count", [1, 3])
def test_a_wrong_number_of_actions_is_an_error(count: int) -> None:
    calls: list[int] = []

    def policy(observation: Any) -> NDArray[np.int64]:
        calls.append(1)
        if len(calls) > 100:
            pytest.fail("played on without the rows that had no action")
        return np.zeros(count, dtype=np.int64)

    for wrappers in ([], [gym.Wrapper]):
        with pytest.raises(EvaluationError, match="raised in episode 0"):
            evaluate(policy, IMPROVING, num_episodes=2, wrappers=wrappers, **TRAP)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: evaluate(None, IMPROVING), "`policy` must have `predict` or be callable"),
        (
            lambda: evaluate("greedy", IMPROVING),
            r"`policy` must .*, got 'greedy'; .* is `agents.make\('greedy'\)`",
        ),
        (lambda: compare({"a": RoundRobin(), "b": None}, IMPROVING), "`policy` must have"),
        (lambda: compare({"a": 3}, IMPROVING), "`policy` must have .*, got 3"),
        (Entry, "an `Entry` must have either a `policy` or a `factory`"),
        (lambda: Entry(RoundRobin(), factory=RoundRobin), "either a `policy` or a `factory`"),
        (lambda: Entry(RoundRobin(), wrappers=3), "`wrappers` must be a sequence of callables"),  # type: ignore[arg-type]
        (lambda: Entry(factory=3), "`policy` must have `predict` or be callable, got 3"),  # type: ignore[arg-type]
        (lambda: Entry(RoundRobin(), normalize=3), "`normalize` must be a `VecNormalize` or"),
        (lambda: evaluate(RoundRobin(), IMPROVING, normalize="x"), "`normalize` must be"),
    ],
)
def test_what_is_no_policy_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_episodes": 0}, ValueError, "`num_episodes` must be at least 1, got 0"),
        ({"num_episodes": 2.0}, TypeError, "`num_episodes` must be an integer, got 2.0"),
        ({"num_envs": 0}, ValueError, "`num_envs` must be at least 1, got 0"),
        ({"num_envs": True}, TypeError, "`num_envs` must be an integer, got True"),
        ({"seed": -1}, ValueError, "`seed` must be at least 0, got -1"),
        ({"seed": None}, TypeError, "`seed` must be an integer, got None"),
        ({"checkpoints": [5, 0]}, ValueError, "`checkpoints` must be at least 1, got 0"),
        ({"checkpoints": [2.7]}, TypeError, "`checkpoints` must be an integer, got 2.7"),
        ({"checkpoints": ["3"]}, TypeError, "`checkpoints` must be an integer, got '3'"),
        # What the environment refuses is no fault of the policy.
        ({"horizon": 0}, ValueError, "`horizon` must be at least 1, got 0"),
        ({"horizon": "long"}, TypeError, "`horizon` must be an integer, got 'long'"),
        ({"env_id": "ImprovingBandits-v0"}, NameNotFound, "ImprovingBandits"),
    ],
)
def test_wrong_arguments_are_named_and_nothing_is_played(
    arguments: Kwargs, error: type[Exception], message: str
) -> None:
    asked: list[Any] = []
    arguments = {"env_id": IMPROVING, "num_episodes": 2, "horizon": 3, **arguments}
    with pytest.raises(error, match=message):
        evaluate(lambda seen: asked.append(seen), **arguments)
    assert asked == []
