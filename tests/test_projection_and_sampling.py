"""Projections, systematic samples and decompositions of matrices, by hand and by theorem."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers_names import Floats
from numpy.testing import assert_allclose

import gym_fairbandits  # noqa: F401  (registers the environments)
from gym_fairbandits.agents.adversarial import birkhoff, capped_simplex, sinkhorn, systematic_sample

DATA: Any = json.loads((Path(__file__).parent / "data" / "adversarial.json").read_text("utf-8"))


@pytest.mark.parametrize("case", DATA["capped_simplex_projection"], ids=str)
def test_projections_onto_the_capped_simplex(case: dict[str, Any]) -> None:
    weights = np.array(case["w"], dtype=np.float64)
    assert_allclose(capped_simplex(weights, case["U"]), case["out"], rtol=1e-15)
    assert_allclose(capped_simplex(weights / 7, case["U"]), case["out"], rtol=1e-14)


def test_the_projection_caps_and_rescales_until_nothing_exceeds_one() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        size = int(rng.integers(1, 9))
        total = int(rng.integers(1, size + 1))
        weights = np.exp(rng.normal(scale=rng.choice([0.1, 1, 5]), size=size))
        free = np.ones(size, dtype=np.bool_)
        expected = np.ones(size)
        while free.any():
            left = total - (size - free.sum())
            expected[free] = weights[free] * left / weights[free].sum()
            above = free & (expected > 1 + 1e-12)
            expected[above] = 1.0
            free &= ~above
            if not above.any():
                break
        projected = capped_simplex(weights, total)
        assert_allclose(projected, np.minimum(expected, 1), rtol=1e-10)
        assert projected.sum() == pytest.approx(total, rel=1e-13)
        assert projected.max() <= 1.0
        both = capped_simplex(np.stack([weights, weights[::-1]]), total)
        assert both[0].tolist() == projected.tolist()


def test_the_projection_is_the_nearest_point_in_relative_entropy() -> None:
    """No feasible point on a fine grid is nearer, K = 3 and U = 2."""
    weights = np.array([3.0, 0.9, 0.2])

    def divergence(point: Floats) -> Floats:
        total: Floats = (point * np.log(point / weights) - point + weights).sum(axis=-1)
        return total

    grid = np.linspace(0.005, 1, 200)
    first, second = np.meshgrid(grid, grid)
    points = np.stack([first, second, 2 - first - second], axis=-1).reshape(-1, 3)
    points = points[(points[:, 2] > 0) & (points[:, 2] <= 1)]
    assert divergence(capped_simplex(weights, 2)) <= divergence(points).min() + 1e-12


@pytest.mark.parametrize(
    ("chances", "count"),
    [
        ([0.5, 0.5, 0.5, 0.5], 2),
        ([1.0, 0.25, 0.5, 0.25], 2),
        ([0.125, 1.0, 0.75, 0.625, 0.5], 3),
        ([1.0, 1.0], 2),
        ([0.0625, 0.9375], 1),
    ],
)
def test_systematic_samples_have_exactly_their_chances(chances: list[float], count: int) -> None:
    """Integrated over the point: between two fractional ends of intervals nothing changes."""
    exact = [Fraction(chance) for chance in chances]
    breaks = sorted({total % 1 for total in itertools.accumulate(exact)} | {Fraction(0)})
    measured = [Fraction(0)] * len(chances)
    for low, high in itertools.pairwise([*breaks, Fraction(1)]):
        for point in (low, (low + high) / 2):  # the left end belongs to the interval
            drawn = systematic_sample(np.array(chances), count, float(point)).tolist()
            assert len(set(drawn)) == count
            assert drawn == sorted(drawn)
        for place in drawn:
            measured[place] += high - low
    assert measured == exact


def test_systematic_samples_are_distinct_and_complete_whatever_is_rounded() -> None:
    rng = np.random.default_rng(2)
    points = [0.0, np.nextafter(1.0, 0.0), *rng.random(20)]
    for _ in range(100):
        size = int(rng.integers(1, 30))
        count = int(rng.integers(1, size + 1))
        weights = np.exp(rng.normal(scale=rng.choice([1, 10]), size=size))
        chances = capped_simplex(weights, count)
        for point in points:
            drawn = systematic_sample(chances, count, float(point))
            assert len(set(drawn.tolist())) == count
            assert drawn.min() >= 0
            assert drawn.max() < size


@pytest.mark.parametrize("case", DATA["sinkhorn"], ids=["three", "two"])
def test_sinkhorn_scalings(case: dict[str, Any]) -> None:
    matrix = np.array(case["M"])
    scaled = sinkhorn(matrix)
    assert_allclose(scaled, case["out"], atol=1e-9)
    assert_allclose(sinkhorn(matrix, 1e-13), case["out"], atol=1e-13)
    # diag(a) matrix diag(b): the ratios to the matrix have rank one.
    ratios = scaled / matrix
    assert_allclose(ratios, np.outer(ratios[:, 0], ratios[0]) / ratios[0, 0], rtol=1e-12)


@pytest.mark.parametrize("spread", [0.1, 1.0, 3.0])
def test_sinkhorn_sums_are_within_the_tolerance(spread: float) -> None:
    rng = np.random.default_rng(4)
    for size in (1, 2, 5, 12):
        scaled = sinkhorn(np.exp(rng.normal(scale=spread, size=(size, size))))
        assert np.abs(scaled.sum(axis=0) - 1).max() <= 1.01e-9
        assert np.abs(scaled.sum(axis=1) - 1).max() <= 1.01e-9


def test_a_sinkhorn_scaling_of_two_by_two_is_known() -> None:
    """With a d / (b c) = r the diagonal is sqrt(r) / (1 + sqrt(r)), also for r = 10^12."""
    for ratio in (1.0, 4.0, 1e4, 1e8, 1e12):
        scaled = sinkhorn(np.array([[1.0, 1.0], [1 / ratio, 1.0]]))
        root = np.sqrt(ratio)
        assert_allclose(scaled[0], [root / (1 + root), 1 / (1 + root)], rtol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 3, 6, 10])
def test_a_birkhoff_decomposition_adds_up_to_the_matrix(size: int) -> None:
    rng = np.random.default_rng(size)
    mixture = np.zeros((size, size))
    for share in rng.dirichlet(np.ones(4)):
        mixture[np.arange(size), rng.permutation(size)] += share
    for matrix in (
        np.full((size, size), 1 / size),
        np.eye(size),
        mixture,
        sinkhorn(rng.random((size, size)) + 0.01),
    ):
        total, added, terms = 0.0, np.zeros((size, size)), 0
        for weight, columns in birkhoff(matrix):
            assert weight > 0
            assert sorted(columns.tolist()) == list(range(size))
            added[np.arange(size), columns] += weight
            total, terms = total + weight, terms + 1
        assert_allclose(added, matrix, atol=1e-8)
        assert total == pytest.approx(1, abs=1e-8)
        assert terms <= size**2 - 2 * size + 2
