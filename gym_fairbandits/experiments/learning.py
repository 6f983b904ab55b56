"""How PPO learns the environments: a recipe for each, and the problems that it is tried on.

Training needs the extra ``sb3``, which is imported when something is trained, not before.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from gym_fairbandits.curves import Curve, LinearCap
from gym_fairbandits.evaluation import Entry
from gym_fairbandits.experiments.runner import check_extra, write_whole
from gym_fairbandits.wrappers import RotatedAssignment

if TYPE_CHECKING:
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecEnv

__all__ = [
    "EGAL",
    "HELD_OUT",
    "IMPROVING",
    "PROBLEMS",
    "TRAINED",
    "WORST",
    "Problem",
    "Recipe",
    "linear_caps",
    "train",
    "trained",
]

HELD_OUT = 1_000_000  # the first seed of evaluations; far from the seeds of the training
TRAINED = "as trained"  # the instances that a policy plays
WORST = "worst case"


def linear_caps(rng: np.random.Generator, num_arms: int) -> list[Curve]:
    """Return random linear caps: asymptotes uniform on (0, 1), ramps log-uniform on [1, 100]."""
    return [
        LinearCap(rng.uniform(2**-54, 1), math.exp(rng.uniform(0, math.log(100))))
        for _ in range(num_arms)
    ]


@dataclass(frozen=True)
class Recipe:
    """How PPO learns an environment.

    Attributes:
        env_id: The environment.
        total_steps: Decisions of the learner.
        wrappers: Around each scalar environment; none for the native vector environment.
        num_envs: How many run side by side.
        gamma: The discount where the horizon is known; close to 1, as returns are totals.
        gamma_unknown: The discount where it is not. Stable-Baselines3 then adds the value of what
            would come after the end, and without a discount that has no bound.
        settings: Further arguments of PPO.
    """

    env_id: str
    total_steps: int
    wrappers: Sequence[Callable[[Any], Any]] = ()
    num_envs: int = 64
    gamma: float = 0.9999
    gamma_unknown: float = 0.98
    settings: dict[str, Any] = field(default_factory=dict)

    def environments(self, **env_kwargs: Any) -> VecEnv:
        """Return the environments to learn in; rewards are scaled to unit variance of returns."""
        from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

        from gym_fairbandits.agents.sb3 import BanditVecEnv

        if self.wrappers:
            envs: VecEnv = DummyVecEnv([lambda: self._wrapped(env_kwargs)] * self.num_envs)
        else:
            native = gym.make_vec(
                self.env_id, num_envs=self.num_envs, autoreset_mode="SameStep", **env_kwargs
            )
            envs = BanditVecEnv(native)
        return VecNormalize(envs, norm_obs=False, gamma=self.discount(**env_kwargs))

    def discount(self, horizon_known: bool = False, **others: Any) -> float:
        """Return the discount for these arguments of the environment."""
        return self.gamma if horizon_known else self.gamma_unknown

    def _wrapped(self, env_kwargs: dict[str, Any]) -> Any:
        env: Any = gym.make(self.env_id, **env_kwargs)
        for wrapper in self.wrappers:
            env = wrapper(env)
        return env

    def entry(self, model: Any, **env_kwargs: Any) -> Entry:
        """Return a trained model as the evaluation takes it."""
        return Entry(model, wrappers=self.wrappers, env_kwargs=env_kwargs)


IMPROVING = Recipe(
    "ImprovingBandit-v0",
    total_steps=300_000,
    settings={
        "n_steps": 100,
        "batch_size": 640,
        "n_epochs": 10,
        "learning_rate": 2e-3,
        "gae_lambda": 0.95,
    },
)
EGAL = Recipe(
    "EgalAssign-v0",
    total_steps=100_000,
    wrappers=(RotatedAssignment,),
    num_envs=16,
    settings={
        "n_steps": 200,
        "batch_size": 800,
        "n_epochs": 5,
        "learning_rate": 1e-3,
        "gae_lambda": 0.95,
    },
)


@dataclass(frozen=True)
class Problem:
    """A distribution of instances, and how PPO learns it.

    Attributes:
        title: Its name in tables and figures.
        recipe: How PPO learns it.
        env_kwargs: Arguments of the environment, but for ``horizon_known``.
        worst_case: Those that differ on instances that nobody trained on, to show where learning
            fails.
    """

    title: str
    recipe: Recipe
    env_kwargs: Mapping[str, Any]
    worst_case: Mapping[str, Any] = field(default_factory=dict)

    def plays(self, **sizes: int) -> dict[str, dict[str, Any]]:
        """Return the arguments of the environments to play in, training's first."""
        shared = {**self.env_kwargs, **sizes}
        worst = {WORST: {**shared, **self.worst_case}} if self.worst_case else {}
        return {TRAINED: shared, **worst}

    def heading(self, instances: str) -> str:
        """Return the title of what is played."""
        if instances == TRAINED:
            return self.title
        return f"{self.title}: trained there, played on the lower bound of Patil et al. (Theorem 2)"


_FIVE_ARMS = {"num_arms": 5, "horizon": 100}
_TEN_ARMS = {"num_arms": 10, "num_users": 5, "horizon": 1000}
PROBLEMS: Mapping[str, Problem] = MappingProxyType(
    {
        "linear-caps": Problem(
            "improving, linear caps",
            IMPROVING,
            {"instance": linear_caps, **_FIVE_ARMS},
            {"instance": "lower_bound"},
        ),
        "random-concave": Problem(
            "improving, random_concave", IMPROVING, {"instance": "random_concave", **_FIVE_ARMS}
        ),
        "bernoulli": Problem(
            "egalitarian, bernoulli", EGAL, {"instance": "bernoulli", **_TEN_ARMS}
        ),
        "gaussian": Problem(
            "egalitarian, gaussian, variance 0.1",
            EGAL,
            {"instance": {"name": "gaussian", "variance": 0.1}, **_TEN_ARMS},
        ),
    }
)


def train(
    recipe: Recipe, seed: int, total_steps: int = 0, *, progress: bool = True, **env_kwargs: Any
) -> PPO:
    """Return a model trained by ``recipe``; the same seed gives the same model.

    From then on torch uses one thread in this process: the networks are small, and more threads
    only wait for each other.

    Args:
        recipe: How to learn.
        seed: Seeds networks, actions and environments.
        total_steps: Decisions of the learner; 0 for the recipe's own number. It learns from whole
            rollouts of ``num_envs * n_steps`` decisions, so it may take up to one more.
        progress: Whether to show a bar, on standard error.
        **env_kwargs: Arguments of the environment.

    Raises:
        ImportError: If the extra ``sb3`` is not installed.
    """
    check_extra("sb3")
    import torch
    from stable_baselines3 import PPO
    from tqdm import tqdm

    from gym_fairbandits.agents.sb3 import ArmEquivariantPolicy

    torch.set_num_threads(1)  # the networks are small: more threads only wait for each other
    steps = total_steps or recipe.total_steps
    rate = recipe.settings["learning_rate"]
    model = PPO(
        ArmEquivariantPolicy,
        recipe.environments(**env_kwargs),
        seed=seed,
        device="cpu",
        gamma=recipe.discount(**env_kwargs),
        # In the last rollout, which goes past the total, what is left falls below 0: by a hair
        # for the recipes' budgets, and the published models were trained so; far if the budget is
        # less than a rollout, from which nothing is then learned.
        **{**recipe.settings, "learning_rate": lambda left: rate * left if left > -0.05 else 0.0},
    )
    label = f"{recipe.env_id}, seed {seed}"
    rollout = recipe.num_envs * model.n_steps
    whole = -(-steps // rollout) * rollout
    with tqdm(total=whole, desc=label, unit="step", unit_scale=True, disable=not progress) as bar:

        def advance(_locals: dict[str, Any], _globals: dict[str, Any]) -> bool:
            bar.update(model.num_timesteps - bar.n)
            return True

        model.learn(steps, callback=advance)
    return model


def trained(
    recipe: Recipe, path: Path, seed: int, total_steps: int = 0, **env_kwargs: Any
) -> tuple[PPO, dict[str, Any]]:
    """Return the model at ``path``, trained and saved there first if it is missing.

    Args:
        recipe: How to learn.
        path: The file of the model, ``.zip``; beside it lies a ``.json`` that says of what and
            how it was trained, and what that took.
        seed: See :func:`train`.
        total_steps: See :func:`train`.
        **env_kwargs: Arguments of the environment.

    Returns:
        The model, and ``steps``, ``wall_seconds`` and ``cpu_seconds`` of its training.

    Raises:
        ImportError: If the extra ``sb3`` is not installed.
        ValueError: If the model at ``path`` was trained otherwise.
    """
    check_extra("sb3")
    import torch
    from stable_baselines3 import PPO

    torch.set_num_threads(1)  # for what the model plays, too; see `train`
    path = path if path.suffix else path.with_suffix(".zip")  # as Stable-Baselines3 saves it
    record = path.with_suffix(".json")
    wanted = _as_json(
        {
            "recipe": asdict(recipe),
            "seed": seed,
            "total_steps": total_steps or recipe.total_steps,
            "env_kwargs": env_kwargs,
        }
    )
    if path.exists() and record.exists():
        try:
            held = json.loads(record.read_text(encoding="utf-8"))
        except ValueError:
            held = None
        if not isinstance(held, dict) or not wanted.keys() <= held.keys():
            raise ValueError(
                f"{record} must tell how {path} was trained, and does not: delete both, or choose "
                "another path"
            )
        different = _differences(held, wanted)
        if different:
            raise ValueError(
                f"{path} must hold a model that was trained as asked, got one with "
                f"{', '.join(different)}: delete it, or choose another path"
            )
    else:
        wall, cpu = time.perf_counter(), time.process_time()
        model = train(recipe, seed, total_steps, **env_kwargs)
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path)
        details = {
            **wanted,
            "steps": int(model.num_timesteps),
            "wall_seconds": time.perf_counter() - wall,
            "cpu_seconds": time.process_time() - cpu,
        }
        write_whole(record, (json.dumps(details, indent=2) + "\n").encode())
    return PPO.load(path, device="cpu"), json.loads(record.read_text(encoding="utf-8"))


def _as_json(value: Any) -> Any:
    """Return what JSON makes of a value; of what it cannot hold, the dict form or the name.

    It must come out the same in every process.
    """

    def told(thing: Any) -> Any:
        if isinstance(thing, np.generic | np.ndarray):
            return thing.tolist()
        if hasattr(thing, "to_dict"):
            return thing.to_dict()
        if isinstance(thing, partial):
            return [thing.func, thing.args, thing.keywords]
        named = thing if hasattr(thing, "__qualname__") else type(thing)
        return f"{named.__module__}.{named.__qualname__}"

    return json.loads(json.dumps(value, default=told))


def _differences(held: Any, wanted: Any, name: str = "") -> list[str]:
    """Return where ``held`` is not as ``wanted``, which may lack some of its outermost names."""
    if not (isinstance(held, dict) and isinstance(wanted, dict)):
        return [] if held == wanted else [f"{name} {held!r}, not {wanted!r}"]
    names = [*wanted, *(key for key in held if name and key not in wanted)]
    return [
        difference
        for key in names
        for difference in _differences(
            held.get(key), wanted.get(key), f"{name}.{key}" if name else key
        )
    ]
