"""Policies for rewards that an adversary chooses: sets or permutations drawn by learned weights.

Both rest on one reduction. A user's reward depends on its arm alone, so what an assignment earns
in all depends only on the *set* of arms, and if the U users take the places of a set in a
uniformly random order, each of them expects 1/U of what the set pays, whatever the adversary has
fixed. So the egalitarian problem is the one of learning sets: regret against the best fixed set,
divided by U, is the regret of every user in expectation, and which user is where need not be
learned. A matrix of users by arms, as :class:`PermELearn` keeps it, then buys nothing over the
weights of :class:`ComponentHedge`; it is there because Lim, Tan, Soh name it.

Both choose a set per *block* of U steps and rotate the users over it, as :class:`RotatingAgent`
does, in an order drawn anew for each block. At each step of a block every user is then equally
likely to be at each place, as above. Fresh permutations at every step would learn from U times
as many draws, and their bound on regret would be sqrt(U) times smaller; blocks are what Lim, Tan,
Soh use, and make the users' totals equal but for changes within a block, not only on average.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from gym_fairbandits._checks import checked_float

from .base import Observation, checked_horizon, total_steps
from .egalitarian import RotatingAgent

__all__ = [
    "ComponentHedge",
    "PermELearn",
    "birkhoff",
    "capped_simplex",
    "sinkhorn",
    "systematic_sample",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SINKHORN_TOLERANCE = 1e-9  # of every row and column sum
_TURNS_PER_NEWTON_STEP = 10
_LONGEST_STEP = 2.0  # of a logarithm: far from the solution Newton's steps are too long
_SMALLEST = 1e-12  # weights are kept above it, relative to the largest, so that none becomes 0
_NOTHING = 1e-13  # what is less than this of a decomposed matrix is rounding


def capped_simplex(weights: Floats, total: int) -> Floats:
    """Return the point of ``{w : sum w = total, w <= 1}`` that is nearest in relative entropy.

    Cap and rescale (Warmuth and Kuzmin 2008, for sets of a fixed size): as long as a weight
    exceeds 1 it becomes 1 and the others are scaled to what is left. O(K log K), in one pass
    over the sorted weights.

    Args:
        weights: Positive; float64 array of shape ``(..., K)``. Their scale does not matter.
        total: From 1 to K.

    Returns:
        float64 array of the shape of ``weights``.
    """
    descending = -np.sort(-weights, axis=-1)
    # Entry m: the sum of all but the m largest, the smallest ones added first.
    rest = np.cumsum(descending[..., ::-1], axis=-1)[..., ::-1]
    left = total - np.arange(total)
    # The fewest caps under which the largest of the others stays at most 1.
    capped = (left * descending[..., :total] <= rest[..., :total]).argmax(axis=-1)[..., None]
    scale = (total - capped) / np.take_along_axis(rest, capped, axis=-1)
    projected: Floats = np.minimum(weights * scale, 1.0)
    return projected


def systematic_sample(chances: Floats, count: int, point: float) -> Ints:
    """Return ``count`` distinct places, each with exactly its chance if ``point`` is uniform.

    The chances lie end to end on a line of length ``count``; those places are drawn that cover
    ``point``, ``point + 1``, and so on (Madow 1949).

    Args:
        chances: In [0, 1], with sum ``count``; float64 array of shape ``(K,)``.
        count: How many to draw.
        point: In [0, 1).

    Returns:
        Places, ascending; int64 array of shape ``(count,)``.
    """
    numbers = np.arange(count)
    places = np.searchsorted(np.cumsum(chances), point + numbers, side="right")
    # Rounding of the sums must neither draw a place twice nor leave the line.
    distinct: Ints = np.minimum(np.maximum.accumulate(places - numbers), len(chances) - count)
    return distinct + numbers


def sinkhorn(matrix: Floats, tolerance: float = SINKHORN_TOLERANCE) -> Floats:
    """Return the doubly stochastic matrix ``diag(a) matrix diag(b)`` (Sinkhorn 1964).

    It is also the doubly stochastic matrix nearest to ``matrix`` in relative entropy. Rows and
    columns are scaled in turn until all their sums are 1 to within ``tolerance``. O(K^2) per turn.
    Near a permutation that alone can take millions of turns, so every tenth one is a step of
    Newton's method on log b, O(K^3), if it is a better one: b minimises the convex function
    ``sum log(matrix b) - sum log b``. About a hundred turns then do for ratios of 10^12.

    Args:
        matrix: Positive; float64 array of shape ``(K, K)``.
        tolerance: Largest deviation of a sum from 1.
    """
    of_columns = np.ones(len(matrix))
    for turn in itertools.count(1):
        row_sums = matrix @ of_columns
        column_sums = (1 / row_sums) @ matrix
        sums = of_columns * column_sums
        if np.abs(sums - 1).max() <= tolerance:
            break
        stepped = of_columns
        if turn % _TURNS_PER_NEWTON_STEP == 0:
            scaled = matrix * of_columns / row_sums[:, None]
            # Adding a constant to all of log b changes nothing: 1 / K makes the Hessian regular.
            hessian = np.diag(sums) - scaled.T @ scaled + 1 / len(matrix)
            step = np.linalg.solve(hessian, 1 - sums)
            stepped = of_columns * np.exp(step * min(1.0, _LONGEST_STEP / np.abs(step).max()))
        gain = np.log(row_sums / (matrix @ stepped)).sum() + np.log(stepped / of_columns).sum()
        of_columns = stepped if gain > 0 else 1 / column_sums
    return matrix * of_columns / row_sums[:, None]


def birkhoff(matrix: Floats) -> Iterator[tuple[float, Ints]]:
    """Yield weights and permutations whose weighted sum is ``matrix`` (Birkhoff 1946).

    Each is a perfect matching on what is left of the matrix, with the least entry that it meets
    as its weight, so that an entry vanishes with each: at most K^2 - 2 K + 2 of them, at O(K^3),
    with high entries first. They are found when asked for.

    Args:
        matrix: Doubly stochastic to within rounding and the tolerance of :func:`sinkhorn`, to
            within which the sum then is ``matrix``; float64 array of shape ``(K, K)``.

    Yields:
        A weight, and the column of each row as an int64 array of shape ``(K,)``.
    """
    left = matrix.copy()
    rows = np.arange(len(left))
    while True:
        left[left < _NOTHING] = 0.0
        with np.errstate(divide="ignore"):
            cost = -np.log(left)  # infinite, and so forbidden, off the support
        try:
            columns = linear_sum_assignment(cost)[1]
        except ValueError:  # no perfect matching: what is left is the matrix's own inexactness
            return
        weight = left[rows, columns].min()
        left[rows, columns] -= weight
        yield float(weight), columns.astype(np.int64)


class _BlockLearner(RotatingAgent):
    """Draws each block's arms by weights that it learns from what the blocks before earned.

    Subclasses write :meth:`_allocate`, :meth:`_clear`, :meth:`_default_eta`, :meth:`_learn` and
    :meth:`_draw`. G = U / C is the number of arms of a set.
    """

    def __init__(
        self, eta: float | None = None, horizon: int | None = None, capacity: int = 1
    ) -> None:
        """Create the agent.

        Raises:
            TypeError: If a parameter has the wrong type.
            ValueError: If a parameter breaks its rule.
        """
        super().__init__(capacity)
        self.eta = None if eta is None else checked_float("eta", eta, at_least=0)
        self.horizon = checked_horizon(horizon)
        self._drawn: Ints = np.zeros((0, 0), dtype=np.int64)  # the running block's arms, as drawn
        self._pulls: Ints = np.zeros((0, 0), dtype=np.int64)  # when it began
        self._reward_sum: Floats = np.zeros((0, 0))

    @abstractmethod
    def _allocate(self, rows: int, num_arms: int) -> None:
        """Make room for the weights of ``rows`` rows; they are cleared next."""

    @abstractmethod
    def _clear(self, rows: Ints, count: int) -> None:
        """Give ``rows`` the weights of an episode that begins; ``count`` is G."""

    @abstractmethod
    def _default_eta(self, blocks: Floats, num_arms: int, count: int) -> Floats:
        """Return the learning rate for ``blocks`` blocks; float64 arrays of shape ``(n,)``."""

    @abstractmethod
    def _learn(self, row: int, arms: Ints, losses: Floats, eta: float) -> None:
        """Learn that the block of ``arms``, as drawn, cost ``losses``; both of shape ``(G,)``."""

    @abstractmethod
    def _draw(self, row: int, count: int, generator: np.random.Generator) -> Ints:
        """Draw the arms of a block; int64 array of shape ``(count,)``."""

    def _choose(self, observation: Observation, steps: Ints, rows: Ints, count: int) -> Ints:
        pulls, reward_sum = observation["pulls"], observation["reward_sum"]
        etas = self._etas(observation, steps, count)
        if self._pulls.shape != (len(self._sets), pulls.shape[1]):
            self._pulls = np.zeros((len(self._sets), pulls.shape[1]), dtype=np.int64)
            self._reward_sum = np.zeros(self._pulls.shape)
            self._allocate(*self._pulls.shape)
        if self._drawn.shape != self._sets.shape:
            self._drawn = np.zeros_like(self._sets)
        plays, earned = pulls - self._pulls[rows], reward_sum - self._reward_sum[rows]
        new = (self._chosen_at[rows] < 0) | (steps == 0) | (plays < 0).any(axis=1)
        self._clear(rows[new], count)
        self._pulls[rows], self._reward_sum[rows] = pulls, reward_sum
        sets = np.zeros((len(rows), count), dtype=np.int64)
        for place, row in enumerate(rows.tolist()):
            if not new[place]:
                arms = self._drawn[row]
                times = plays[place, arms]  # G each, unless the block was not played to its end
                losses = np.where(times > 0, 1 - earned[place, arms] / np.maximum(times, 1), 0.0)
                self._learn(row, arms, losses, float(etas[place]))
            generator = self._generator(row)
            self._drawn[row] = self._draw(row, count, generator)
            sets[place] = generator.permutation(self._drawn[row])
        return sets

    def _etas(self, observation: Observation, steps: Ints, count: int) -> Floats:
        if self.eta is not None:
            return np.full(len(steps), self.eta)
        blocks = np.ceil(total_steps(observation, steps, self.horizon) / count)
        return self._default_eta(np.maximum(blocks, 1), observation["pulls"].shape[1], count)


class ComponentHedge(_BlockLearner):
    """Component Hedge on sets of arms: per block, U arms drawn by a weight for each arm.

    Koolen, Warmuth, Kivinen (2010) for full information; here with semi-bandit feedback, as
    online stochastic mirror descent over U-sets (Audibert, Bubeck, Lugosi 2014). Lim, Tan, Soh
    name it for adversarial rewards. The weights w are the chances of the arms, U / K at first. A
    block's set is drawn with exactly these chances (:func:`systematic_sample` in a random
    order), and the users rotate over it in a random order. An arm that earned x per play in the
    block has the loss ``(1 - x) / w`` in the estimate, others 0; then ``w exp(-eta loss)`` is
    projected onto the chances of U-sets (:func:`capped_simplex`). Why sets suffice:
    :mod:`gym_fairbandits.agents.adversarial`.

    It knows the horizon, and that rewards lie in [0, 1]: others are taken as they are, but then
    ``eta`` should be given. Nothing is assumed about how they come about. O(K log K) per block.
    At capacity C, U / C takes the place of U.

    Guarantee: against a table fixed beforehand, the set's regret per step of a block, summed over
    B = ceil(T / U) blocks, is at most sqrt(2 U K B ln(K / U)) in expectation; so every user's is
    at most sqrt(2 K T ln(K / U)) for T a multiple of U.

    Attributes:
        eta: The learning rate; ``None`` for ``sqrt(2 U ln(K / U) / (K B))``.
        horizon: T; ``None`` where the observation tells what is ``remaining`` or ``eta`` is given.
        capacity: C, users per arm; must divide the number of users.
    """

    _weights: Floats  # chances of each row's arms

    def _allocate(self, rows: int, num_arms: int) -> None:
        self._weights = np.zeros((rows, num_arms))

    def _clear(self, rows: Ints, count: int) -> None:
        self._weights[rows] = count / self._weights.shape[1]

    def _default_eta(self, blocks: Floats, num_arms: int, count: int) -> Floats:
        etas: Floats = np.sqrt(2 * count * np.log(num_arms / count) / (num_arms * blocks))
        return etas

    def _learn(self, row: int, arms: Ints, losses: Floats, eta: float) -> None:
        weights = self._weights[row]
        exponents = np.zeros(len(weights))
        exponents[arms] = -eta * losses / weights[arms]
        self._weights[row] = capped_simplex(_reweighted(weights, exponents), len(arms))

    def _draw(self, row: int, count: int, generator: np.random.Generator) -> Ints:
        order = generator.permutation(self._weights.shape[1])
        places = systematic_sample(self._weights[row, order], count, generator.random())
        arms: Ints = order[places]
        return arms


class PermELearn(_BlockLearner):
    """PermELearn on assignments: per block, a permutation drawn by a doubly stochastic matrix.

    Helmbold and Warmuth (2009) for full information; here with importance-weighted losses, since
    only what was played is seen. Lim, Tan, Soh name it for adversarial rewards. The K x K matrix
    W holds the chance of each arm (column) for each place (row): U places for users and K - U
    where an arm rests at no loss. W is 1 / K at first. A block's permutation is drawn from W's
    decomposition into permutations (:func:`birkhoff`), as far as the draw needs it, and the users
    take the U places in a random order and rotate. An entry that was played and earned x per play
    is multiplied by ``exp(-eta (1 - x) / W)``; then W is made doubly stochastic again
    (:func:`sinkhorn`, sums within 1e-9 of 1).

    Since rewards depend on arms only, this learns which arm suits which place although all places
    are alike, and its bound is above that of :class:`ComponentHedge` by the factor
    sqrt(K ln K / ln(K / U)); see :mod:`gym_fairbandits.agents.adversarial`.

    It knows the horizon, and that rewards lie in [0, 1]: others are taken as they are, but then
    ``eta`` should be given. Nothing is assumed about how they come about. Per block, O(K^2) for
    each turn of Sinkhorn's and O(K^3) for each permutation of the decomposition, up to K^2 of
    them. At capacity C, U / C takes the place of U.

    Guarantee: against a table fixed beforehand, the usual analysis of mirror descent bounds the
    set's regret per step of a block, summed over B = ceil(T / U) blocks, by
    K sqrt(2 U B ln K) in expectation; so every user's by K sqrt(2 T ln K) for T a multiple of U.
    With full information it is sqrt(2 L n ln n) + n ln n, L the best permutation's loss.

    Attributes:
        eta: The learning rate; ``None`` for ``sqrt(2 ln K / (U B))``, which minimises the bound.
        horizon: T; ``None`` where the observation tells what is ``remaining`` or ``eta`` is given.
        capacity: C, users per arm; must divide the number of users.
    """

    _matrices: Floats  # W of each row

    def _allocate(self, rows: int, num_arms: int) -> None:
        self._matrices = np.zeros((rows, num_arms, num_arms))

    def _clear(self, rows: Ints, count: int) -> None:
        self._matrices[rows] = 1 / self._matrices.shape[1]

    def _default_eta(self, blocks: Floats, num_arms: int, count: int) -> Floats:
        etas: Floats = np.sqrt(2 * np.log(num_arms) / (count * blocks))
        return etas

    def _learn(self, row: int, arms: Ints, losses: Floats, eta: float) -> None:
        matrix, places = self._matrices[row], np.arange(len(arms))
        exponents = np.zeros(matrix.shape)
        exponents[places, arms] = -eta * losses / matrix[places, arms]
        self._matrices[row] = sinkhorn(_reweighted(matrix, exponents))

    def _draw(self, row: int, count: int, generator: np.random.Generator) -> Ints:
        point = generator.random()
        permutation = np.zeros(0, dtype=np.int64)
        for weight, columns in birkhoff(self._matrices[row]):
            permutation = columns
            point -= weight
            if point < 0:  # never so if the draw falls into the tolerance: the last one stands
                break
        return permutation[:count]


def _reweighted(weights: Floats, exponents: Floats) -> Floats:
    """Return ``weights * exp(exponents)`` up to scale, without overflow and without zeros."""
    product = weights * np.exp(exponents - exponents.max())
    kept: Floats = np.maximum(product / product.max(), _SMALLEST)
    return kept
