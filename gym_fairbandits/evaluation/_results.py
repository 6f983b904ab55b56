"""What policies did in their episodes: numbers, tables, files and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gym_fairbandits._rollout import Episodes
from gym_fairbandits.evaluation._intervals import bracketed, mean_interval, median_interval

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Comparison", "Evaluation", "joined"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_TABLED = (  # what tables show by default, where it is known
    "policy_regret",
    "competitive_ratio",
    "external_regret",
    "max_potential_gap",
    "mean_potential_gap",
    "pull_gini",
    "min_pull_share",
    "min_user_return",
    "expected_user_gap",
    "expected_jain_index",
    "expected_user_gini",
    "realized_min_user_return",
    "user_gap",
    "jain_index",
    "user_gini",
)
# What comes both as earned and in expectation: which of them the name alone means. Headings say it.
_FORMS = {
    "return": "realized",
    "min_user_return": "expected",
    "user_gap": "realized",
    "jain_index": "realized",
    "user_gini": "realized",
}
# Tables show the median: one episode that earned next to nothing would carry the mean of a ratio.
_MEDIANS = {"competitive_ratio"}


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What one policy did in a number of episodes.

    Attributes:
        episodes: Per metric, a value per episode; float64 arrays of shape ``(num_episodes,)``:
            ``return``, ``length``, ``policy_regret``, ``optimal_return``, ``expected_return``,
            ``competitive_ratio``, ``realized_regret``, and ``max_potential_gap`` (improving arms)
            or ``min_user_return`` (assignment: the worst-off user's expected total). If asked
            for: the keys of ``wrappers.FairnessMetrics``, of which that for what the worst-off
            user earned is ``realized_min_user_return`` here; ``external_regret``.
        checkpoints: Steps at which the regret so far was taken.
        regret_curves: That regret; float64 array of shape ``(num_episodes, num_checkpoints)``,
            NaN where an episode had ended before.
        pulls: How often each arm was played; int64 array of shape ``(num_episodes, num_arms)``.
        user_returns: Assignment: the users' expected totals; float64 array of shape
            ``(num_episodes, num_users)``; else ``None``.
        redrawn: Whether each episode had an instance of its own.
        played: What was played, in a line: environment, arguments, number of episodes, seed.
    """

    episodes: dict[str, Floats]
    checkpoints: tuple[int, ...]
    regret_curves: Floats
    pulls: Ints
    user_returns: Floats | None
    redrawn: bool = False
    played: str = ""

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over the episodes."""
        return float(self.episodes[metric].mean())

    def interval(self, metric: str) -> tuple[float, float]:
        """Return a 95 % bootstrap interval of that mean; NaN for a single episode.

        A bit too short for few episodes: see :func:`mean_interval`.
        """
        return mean_interval(self.episodes[metric])

    @property
    def min_of_expectations_regret(self) -> float | None:
        """The regret of Lim, Tan, Soh: T mu* / U - min_u E[S_u], the expectation over episodes.

        The mean of ``policy_regret`` is another number: the mean over episodes of T mu* / U minus
        the worst-off user's expected total *in that episode*, a mean of minima and so never
        below under the egalitarian objective. ``None`` where there are no users, and where
        instances are redrawn: then there is no one expectation.
        """
        if self.user_returns is None or self.redrawn:
            return None
        return float(self.episodes["optimal_return"].mean() - self.user_returns.mean(axis=0).min())

    def table(self, metrics: Sequence[str] | None = None) -> str:
        """Return the table of :meth:`Comparison.table` with this one policy."""
        return Comparison({"policy": self}).table(metrics)

    def __repr__(self) -> str:
        """Show what was played."""
        return f"<Evaluation of {self.played or f'{len(self.pulls)} episodes'}>"

    def __str__(self) -> str:
        """Show what was played, and the table."""
        return str(Comparison({"policy": self}))


@dataclass(frozen=True, repr=False)
class Comparison:
    """Evaluations of several policies on the same episodes.

    Attributes:
        evaluations: By the policy's name, in the order given.
    """

    evaluations: dict[str, Evaluation]

    def __getitem__(self, name: str) -> Evaluation:
        """Return the evaluation of a policy."""
        return self.evaluations[name]

    def __repr__(self) -> str:
        """Show who played; the arrays are in the evaluations."""
        return f"<Comparison of {', '.join(map(repr, self.evaluations))}>"

    def __str__(self) -> str:
        """Show what was played, and the table."""
        played: dict[str, list[str]] = {}
        for name, run in self.evaluations.items():
            played.setdefault(run.played, []).append(name)
        lines = [
            f"{', '.join(names)}: {told}" if len(played) > 1 else told
            for told, names in played.items()
            if told
        ]
        return "\n".join([*lines, *([""] if lines else []), self.table()])

    def difference(
        self, name: str, other: str, metric: str = "policy_regret"
    ) -> tuple[float, tuple[float, float]]:
        """Return the mean of ``name - other`` over episodes, paired, and its 95 % interval."""
        values = self[name].episodes[metric] - self[other].episodes[metric]
        return float(values.mean()), mean_interval(values)

    def table(self, metrics: Sequence[str] | None = None) -> str:
        """Return a Markdown table: per policy, means and 95 % bootstrap intervals.

        Of the competitive ratio it shows the median and an interval of that, as the header says:
        one episode that earned next to nothing would carry the mean. What comes both as earned and
        in expectation is headed "realized" or "expected". A column without any value is left out.

        Args:
            metrics: Names in ``Evaluation.episodes``, or ``"min_of_expectations_regret"`` (no
                interval; empty where it is not defined). By default the policy regret, the
                competitive ratio, and what more is known.
        """
        metrics = (
            [metrics] if isinstance(metrics, str) else list(metrics or self._default_metrics())
        )
        runs = self.evaluations.values()
        known = set.intersection(*(set(run.episodes) for run in runs)) if runs else set(metrics)
        unknown = set(metrics) - known - {"min_of_expectations_regret"}
        if unknown:
            raise ValueError(f"`metrics` must be among {sorted(known)}, got {sorted(unknown)}")
        columns = [["policy", "---", *(_escaped(name) for name in self.evaluations)]]
        for metric in metrics:
            cells = [_cell(run, metric) for run in runs]
            if any(cells) or not cells:
                columns.append([_heading(metric), "---:", *cells])
        return "\n".join(f"| {' | '.join(line)} |" for line in zip(*columns, strict=True))

    def _default_metrics(self) -> list[str]:
        runs = self.evaluations.values()
        if not runs:
            return []
        metrics = [metric for metric in _TABLED if all(metric in run.episodes for run in runs)]
        if any(run.min_of_expectations_regret is not None for run in runs):
            metrics.append("min_of_expectations_regret")
        return metrics

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per policy and episode (needs the extra ``eval``)."""
        import pandas as pd

        frames = [pd.DataFrame({"policy": [], "episode": []})] if not self.evaluations else []
        for name, run in self.evaluations.items():
            columns: dict[str, Any] = {"policy": name, "episode": np.arange(len(run.regret_curves))}
            columns.update(run.episodes)
            columns.update({f"pulls_{arm}": run.pulls[:, arm] for arm in range(run.pulls.shape[1])})
            if run.user_returns is not None:
                users = range(run.user_returns.shape[1])
                columns.update({f"user_return_{user}": run.user_returns[:, user] for user in users})
            frames.append(pd.DataFrame(columns))
        return pd.concat(frames, ignore_index=True)

    def curves_to_pandas(self) -> pd.DataFrame:
        """Return a row per policy, episode and checkpoint: the regret so far (needs ``eval``).

        The columns are ``policy``, ``episode``, ``step`` and ``regret``, which is NaN after an
        episode's end. There are no rows without ``checkpoints``.
        """
        import pandas as pd

        frames = [pd.DataFrame({"policy": [], "episode": [], "step": [], "regret": []})]
        for name, run in self.evaluations.items():
            episodes, moments = run.regret_curves.shape
            columns: dict[str, Any] = {
                "policy": name,
                "episode": np.repeat(np.arange(episodes), moments),
                "step": np.tile(np.array(run.checkpoints, dtype=np.int64), episodes),
                "regret": run.regret_curves.ravel(),
            }
            frames.append(pd.DataFrame(columns))
        rows = [frame for frame in frames if len(frame)]  # pandas warns of empty ones
        return pd.concat(rows, ignore_index=True) if rows else frames[0]

    def to_csv(self, path: str | Path) -> None:
        """Write :meth:`to_pandas` to a file."""
        self.to_pandas().to_csv(path, index=False)

    def plot(self, axis: Any = None) -> Figure:
        """Draw the regret over time with 95 % bands (needs ``checkpoints`` and ``eval``).

        Args:
            axis: The axes of matplotlib to draw on; a new figure by default.

        Raises:
            ValueError: If nothing was taken at checkpoints, or no policy has finished.
        """
        if not self.evaluations:
            raise ValueError("`evaluations` must hold at least one policy for a plot, got none")
        if not all(run.checkpoints for run in self.evaluations.values()):
            raise ValueError("`checkpoints` must hold at least one step for a plot, got none")
        import matplotlib.pyplot as plt

        if axis is None:
            axis = plt.subplots(figsize=(5, 4), layout="constrained")[1]
        styles = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1))]  # told apart without colour too
        for number, (name, run) in enumerate(self.evaluations.items()):
            low, high = np.array([mean_interval(values) for values in run.regret_curves.T]).T
            style = styles[(number + number // 10) % len(styles)]  # colours repeat after ten
            means = run.regret_curves.mean(axis=0)
            (line,) = axis.plot(run.checkpoints, means, linestyle=style, label=name)
            color = line.get_color()
            axis.fill_between(run.checkpoints, low, high, alpha=0.2, color=color, linewidth=0)
        axis.set(xlabel="steps", ylabel="policy regret", yscale="symlog")
        axis.set_ylim(bottom=0)
        axis.legend(fontsize="small")
        figure: Figure = axis.figure
        return figure


def joined(
    finished: dict[str, list[Episodes]],
    checkpoints: tuple[int, ...],
    num_episodes: int,
    played: Mapping[str, str],
) -> Comparison:
    """Put the chunks of the policies that played all their episodes together."""
    evaluations = {}
    for name, chunks in finished.items():
        if sum(len(chunk.regret_curves) for chunk in chunks) == num_episodes:
            evaluations[name] = Evaluation(
                {
                    metric: np.concatenate([chunk.metrics[metric] for chunk in chunks])
                    for metric in chunks[0].metrics
                },
                checkpoints,
                np.concatenate([chunk.regret_curves for chunk in chunks]),
                np.concatenate([chunk.pulls for chunk in chunks]),
                None
                if chunks[0].user_returns is None
                else np.concatenate([np.asarray(chunk.user_returns) for chunk in chunks]),
                chunks[0].redrawn,
                played[name],
            )
    return Comparison(evaluations)


def _escaped(name: str) -> str:
    """Return a policy's name as a cell of a Markdown table."""
    return " ".join(str(name).split()).replace("|", "\\|")


def _heading(metric: str) -> str:
    named = f"{_FORMS[metric]}_{metric}" if metric in _FORMS else metric
    return named.replace("_", " ") + " (median)" * (metric in _MEDIANS)


def _cell(run: Evaluation, metric: str) -> str:
    if metric == "min_of_expectations_regret":
        value = run.min_of_expectations_regret
        return "" if value is None else _number(value)
    values = run.episodes[metric]
    if metric in _MEDIANS:
        middle, interval = float(np.median(values)), median_interval(values)
    else:
        middle, interval = run.mean(metric), run.interval(metric)
    return _number(middle) + bracketed(interval, _number)


def _number(value: float) -> str:
    """Return a number as tables show it: a decimal from 10 on, else two."""
    rounded = round(value, 2) + 0.0  # + 0.0 turns -0.0 into 0.0
    return f"{value:.1f}" if abs(rounded) >= 10 else f"{rounded:.2f}"
