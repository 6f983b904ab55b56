"""The command line: ``python -m gym_fairbandits --help``."""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from gym_fairbandits import __version__, agents, instances
from gym_fairbandits.agents.registry import describe
from gym_fairbandits.evaluation import Entry, EvaluationError, compare
from gym_fairbandits.experiments import runner
from gym_fairbandits.experiments._settings import split_names
from gym_fairbandits.experiments.catalogue import EXPERIMENTS
from gym_fairbandits.wrappers import FairnessMetrics, PolicyRegret

ENVIRONMENTS = {
    "ImprovingBandit-v0": "pull one of k arms whose reward rises with its pulls (Patil et al.)",
    "EgalAssign-v0": "assign users to arms; the worst-off user counts (Lim, Tan, Soh)",
}
INSTANCES: dict[str, Mapping[str, Any]] = {
    "ImprovingBandit-v0": instances.IMPROVING,
    "EgalAssign-v0": instances.EGALITARIAN,
}
_PROGRAM = "python -m gym_fairbandits"
PAPERS = "P is the paper of Patil et al., L that of Lim, Tan, Soh."
FAILURES = (EvaluationError, runner.ExperimentError)
EXAMPLES = """\
examples:
  python -m gym_fairbandits agents EgalAssign-v0
  python -m gym_fairbandits play ImprovingBandit-v0 --agent greedy instance=early_vs_late
  python -m gym_fairbandits compare EgalAssign-v0 --agents egal-ucb,uniform-random horizon=2000
  python -m gym_fairbandits experiments run egal-saturation
"""
ARGUMENTS_HELP = (
    "arguments of the environment, such as horizon=500 or "
    """'instance={"name": "gaussian", "variance": 0.1}'"""
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code: 0, 2 after a mistake, told in one line, or 130.

    The last if it was stopped with Ctrl-C.
    """
    parser = _parser()
    # `env_kwargs` may stand anywhere; argparse finds them only beside the environment.
    options, rest = parser.parse_known_args(arguments)
    if rest and (not hasattr(options, "env_kwargs") or any(word.startswith("-") for word in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        if rest:
            options.env_kwargs = [*options.env_kwargs, *rest]
        options.run(options)
    except (*FAILURES, ImportError, OSError, TypeError, ValueError, gym.error.Error) as error:
        told = " ".join(str(error).split())
        print(f"{parser.prog} {options.command}: error: {told}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{parser.prog} {options.command}: stopped", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Fair bandits: list what there is, watch an agent play, compare agents.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gym_fairbandits {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    command = commands.add_parser("envs", help="list the environments")
    command.set_defaults(run=_envs)

    for name, run in (("agents", _agents), ("instances", _instances)):
        command = commands.add_parser(name, help=f"list the {name} by name")
        command.add_argument("env", nargs="?", choices=ENVIRONMENTS, help="of this one; all")
        command.set_defaults(run=run)
        if name == "agents":
            command.add_argument(
                "--markdown", action="store_true", help="as the tables of docs/agents.md"
            )

    command = commands.add_parser("play", help="watch an agent play an episode")
    command.add_argument("env", choices=ENVIRONMENTS)
    command.add_argument(
        "--agent", required=True, help="its name; see `agents`; your own: module:name"
    )
    command.add_argument(
        "--with",
        dest="parameters",
        action="append",
        default=[],
        metavar="name=value",
        help="a parameter of the agent; may be repeated",
    )
    command.add_argument("--render", choices=("human", "ansi", "none"), default="ansi")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument(
        "--fps", type=float, default=10.0, help="frames per second (ansi, in a terminal); 10"
    )
    command.add_argument("--every", type=int, default=1, help="draw every n-th step (ansi); 1")
    command.add_argument("env_kwargs", nargs="*", metavar="name=value", help=ARGUMENTS_HELP)
    command.set_defaults(run=_play)

    command = commands.add_parser("compare", help="play several agents on the same episodes")
    command.add_argument("env", choices=ENVIRONMENTS)
    command.add_argument(
        "--agents", help="names with commas between, your own as module:name; all that are ready"
    )
    command.add_argument("--num-episodes", type=int, default=100)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--jobs", type=int, default=None, help="processes; 1")
    command.add_argument("--csv", type=Path, help="write all episodes to this file")
    command.add_argument("--no-progress", action="store_true", help="show no progress bar")
    command.add_argument("env_kwargs", nargs="*", metavar="name=value", help=ARGUMENTS_HELP)
    command.set_defaults(run=_compare)

    _add_experiments(commands.add_parser("experiments", help="run the papers' experiments"))
    return parser


def _add_experiments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")
    command = actions.add_parser("list", help="list the experiments")
    command.set_defaults(run=_list_experiments)

    command = actions.add_parser("run", help="run one, or go on with it where it was stopped")
    command.add_argument("name", choices=[*EXPERIMENTS, "all"], metavar="name", help="or `all`")
    command.add_argument(
        "--preset", choices=runner.PRESETS, default="quick", help="about a minute, or the paper's"
    )
    command.add_argument("--output", type=Path, help="folder; results/NAME-PRESET by default")
    command.add_argument("--jobs", type=int, help="processes; 1, or all that a cluster has")
    command.add_argument("--backend", choices=runner.BACKENDS, help="of joblib; loky")
    command.add_argument("--seed", type=int, help="0 by default")
    command.add_argument("--agents", help="names with commas between, your own as module:name")
    command.add_argument("--config", type=Path, help="settings as JSON, or a run's config.json")
    command.add_argument("--no-progress", action="store_true", help="show no progress bar")
    command.add_argument(
        "env_kwargs",
        nargs="*",
        metavar="name=value",
        help="settings, such as horizon=5000 or 'users=[2,20]'",
    )
    command.set_defaults(run=_run_experiments)


def _envs(options: argparse.Namespace) -> None:
    _list(ENVIRONMENTS)


def _agents(options: argparse.Namespace) -> None:
    env_ids = [options.env] if options.env else ENVIRONMENTS
    if options.markdown:
        print("\n\n".join(f"## {env_id}\n\n{_agents_table(env_id)}" for env_id in env_ids))
        return
    print("In brackets: what an agent is told that the papers' learners are not.")
    for env_id in env_ids:
        print(f"{env_id}:")
        lines = {}
        for name, told in agents.available(env_id).items():
            known = ", ".join(agents.knowledge(agents.agent_class(name, env_id)))
            lines[name] = f"{told} [{known}]" if known else told
        _list(lines)


def _agents_table(env_id: str) -> str:
    rows = []
    for name, told in agents.available(env_id).items():
        kind = agents.agent_class(name, env_id)
        known = ", ".join(agents.knowledge(kind))
        rows.append([f"`{name}`", f"`agents.{kind.__name__}`", told, known])
    return runner.markdown(["name", "class", "what it is", "told of"], rows)


def _instances(options: argparse.Namespace) -> None:
    print(PAPERS)
    for env_id in [options.env] if options.env else ENVIRONMENTS:
        print(f"{env_id}:")
        _list({name: describe(build) for name, build in INSTANCES[env_id].items()})


def _list(lines: dict[str, str]) -> None:
    width = max(map(len, lines))
    for name, told in lines.items():
        print(f"  {name:<{width}}  {told}")


def _play(options: argparse.Namespace) -> None:
    agents.agent_class(options.agent, options.env)  # an unknown name fails before a window opens
    if not options.fps > 0:
        raise ValueError(f"`--fps` must be above 0, got {options.fps:g}")
    mode = None if options.render == "none" else options.render
    every = max(1, options.every)
    made: Any = gym.make(options.env, render_mode=mode, **_env_kwargs(options))
    env = FairnessMetrics(PolicyRegret(made))
    try:
        agent = agents.make(options.agent, env=env, **_named(options.parameters))
        agent.reset(seed=options.seed)
        observation, info = env.reset(seed=options.seed)
        ended, step = False, 0
        while not ended:
            observation, _, terminated, truncated, info = env.step(agent.act(observation))
            ended, step = terminated or truncated, step + 1
            if mode == "ansi" and (ended or step % every == 0):
                print(env.render(), flush=True)
                if sys.stdout.isatty():
                    time.sleep(1 / options.fps)
        print(f"{options.agent}, {step} steps")
        for name, value in info.items():
            if isinstance(value, float):
                print(f"  {name.replace('_', ' ')}: {value:.4g}")
    finally:
        env.close()


def _compare(options: argparse.Namespace) -> None:
    names = agents.ready(options.env)
    if options.agents:
        names = split_names(options.agents)
    for name in names:
        agents.agent_class(name, options.env)  # an unknown name fails before anything is played
    if options.csv:
        _check_csv(options.csv)
    comparison = compare(
        {name: Entry(factory=partial(agents.make, name)) for name in names},
        options.env,
        num_episodes=options.num_episodes,
        seed=options.seed,
        n_jobs=options.jobs,
        progress=not options.no_progress,
        **_env_kwargs(options),
    )
    print(comparison)
    print(
        "\nMeans over episodes (of the competitive ratio the median) and, in brackets, 95 % "
        "intervals; docs/evaluation.md."
    )
    if options.csv:
        comparison.to_csv(options.csv)


def _check_csv(path: Path) -> None:
    """Refuse before anything is played what could not be written afterwards."""
    import pandas  # noqa: F401 - `Comparison.to_csv` needs it

    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"`--csv` must be a file in a folder that exists, got {path}")


def _list_experiments(options: argparse.Namespace) -> None:
    print(PAPERS)
    _list({name: experiment.title for name, experiment in EXPERIMENTS.items()})


def _run_experiments(options: argparse.Namespace) -> None:
    given = {"seed": options.seed, "agents": options.agents}
    settings = {name: value for name, value in given.items() if value is not None}
    settings.update(_named(options.env_kwargs))
    every = options.name == "all"
    if every and (options.config or set(settings) - {"seed"}):
        raise ValueError("settings other than the seed must be given to one experiment, not to all")
    if options.config:
        settings = {**runner.load_settings(options.config, options.name), **settings}
    names = _without_unmet(options.preset) if every else [options.name]
    experiments = [  # all of them before one is run: a mistake must not show after hours
        EXPERIMENTS[name].from_settings(options.preset, **settings) for name in names
    ]
    for experiment in experiments:
        folder = Path("results") / f"{experiment.name}-{options.preset}"
        if options.output:
            folder = options.output / experiment.name if every else options.output
        try:
            rows = runner.run(
                experiment,
                folder,
                jobs=options.jobs,
                backend=options.backend,
                progress=not options.no_progress,
            )
            print(f"{experiment.title}\n\n{experiment.summary(rows)}\n\n{folder}")
        except KeyboardInterrupt:
            print(f"stopped; the same command goes on with {folder}", file=sys.stderr)
            sys.exit(130)


def _without_unmet(preset: str) -> list[str]:
    """Return the experiments that run without a setting of their own; name the others."""
    names = []
    for name, experiment in EXPERIMENTS.items():
        unmet = experiment.unmet(preset)
        if unmet:
            given = " ".join(f"{setting}={setting.upper()}" for setting in unmet)
            print(
                f"{name} is left out, as its data must be given: "
                f"{_PROGRAM} experiments run {name} --preset {preset} {given}",
                file=sys.stderr,
            )
        else:
            names.append(name)
    return names


def _env_kwargs(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of the environment.

    Raises:
        ValueError: If one is none that the environment has.
    """
    kwargs = _named(options.env_kwargs)
    creator = load_env_creator(str(gym.spec(options.env).entry_point))
    takes = {*inspect.signature(creator).parameters, "max_episode_steps"}
    takes -= {"render_mode"}  # an option of `play`
    unknown = sorted(set(kwargs) - takes)
    if unknown:
        raise ValueError(f"{options.env} takes the arguments {sorted(takes)}, got {unknown}")
    return kwargs


def _named(pairs: Sequence[str]) -> dict[str, Any]:
    """Return ``{"horizon": 500}`` for ``["horizon=500"]``; a value is JSON, else a string."""
    kwargs = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"arguments must be name=value, got {pair!r}")
        try:
            kwargs[name] = json.loads(
                {"True": "true", "False": "false", "None": "null"}.get(text, text)
            )
        except json.JSONDecodeError:
            kwargs[name] = text
    return kwargs


if __name__ == "__main__":
    sys.exit(main())
