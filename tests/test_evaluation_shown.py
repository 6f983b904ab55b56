"""What is shown of results: what was played, and the table, but no arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from helpers_evaluation import made
from helpers_names import EGAL, IMPROVING

from gym_fairbandits.agents import Greedy, RoundRobin, UniformRandom
from gym_fairbandits.arms import Bernoulli
from gym_fairbandits.curves import Constant
from gym_fairbandits.evaluation import Comparison, Entry, compare, evaluate


def drawn(rng: np.random.Generator, num_arms: int) -> list[Constant]:
    return [Constant(0.5)] * num_arms


def test_results_show_what_was_played_and_the_table_but_no_arrays() -> None:
    sizes: Any = {"num_arms": 3, "horizon": 7}
    comparison = compare(
        {"a": Greedy(), "b": RoundRobin()}, IMPROVING, num_episodes=2, seed=5, **sizes
    )
    played = "ImprovingBandit-v0, horizon=7, num_arms=3; 2 episodes, seed 5"
    assert str(comparison) == f"{played}\n\n{comparison.table()}"
    assert repr(comparison) == "<Comparison of 'a', 'b'>"
    run = comparison["a"]
    assert run.played == played
    assert repr(run) == f"<Evaluation of {played}>"
    assert run.table(["policy_regret"]) == Comparison({"policy": run}).table(["policy_regret"])
    assert str(run) == f"{played}\n\n{run.table()}"


def test_what_each_played_is_shown_where_it_differs() -> None:
    known = Entry(Greedy(), env_kwargs={"horizon_known": True})
    lines = str(compare({"a": Greedy(), "b": known, "c": Greedy()}, IMPROVING, num_episodes=1))
    assert lines.splitlines()[:3] == [
        "a, c: ImprovingBandit-v0, horizon=1000; 1 episode, seed 0",
        "b: ImprovingBandit-v0, horizon=1000, horizon_known=True; 1 episode, seed 0",
        "",
    ]


def test_a_long_argument_is_cut_and_a_function_named() -> None:
    run = evaluate(Greedy(), IMPROVING, num_episodes=1, horizon=3, instance=drawn)
    assert run.played == "ImprovingBandit-v0, horizon=3, instance=drawn; 1 episode, seed 0"
    many = [{"family": "constant", "value": 0.5}] * 100
    run = evaluate(Greedy(), IMPROVING, num_episodes=1, horizon=3, instance=many)
    assert len(run.played) < 400


def test_arms_and_curves_are_shown_by_their_family_and_nothing_of_what_they_hold_is_written() -> (
    None
):
    class Loud(Bernoulli):
        def __repr__(self) -> str:
            raise AssertionError("all that it holds")

    run = evaluate(
        UniformRandom(), EGAL, num_episodes=1, horizon=3, instance=Loud([0.5] * 3), num_users=2
    )
    assert run.played.startswith("EgalAssign-v0, horizon=3, instance=Loud(...), num_users=2;")
    run = evaluate(Greedy(), IMPROVING, num_episodes=1, horizon=3, instance=[Constant(0.5)] * 2)
    assert "instance=[Constant(...), Constant(...)]" in run.played


def test_results_made_by_hand_show_what_they_hold() -> None:
    run = made({"policy_regret": [1.0, 2.0]})
    assert repr(run) == "<Evaluation of 2 episodes>"
    assert str(Comparison({"a": run})) == Comparison({"a": run}).table()
