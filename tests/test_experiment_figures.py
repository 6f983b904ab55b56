"""Figures of experiments draw a theorem's line only where the theorem holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers_experiments import tiny

from gym_fairbandits.experiments.runner import run

pytest.importorskip("matplotlib")
pytest.importorskip("polars")

UPPER = "32k (Theorem 4 as stated, Algorithm 1 at most)"
LOWER = {
    "late-bloomer": "k/2 (Theorem 2, any deterministic agent at least)",
    "trap": "$k^2/2$ (Theorem 3, round robin at least)",
}


def test_lower_bounds_on_ratios_are_drawn_on_the_instances_of_their_proofs(tmp_path: Path) -> None:
    experiment = tiny("improving-ratio", agents="greedy,round-robin")
    figure = experiment.figure(run(experiment, tmp_path, progress=False))
    drawn = [[str(line.get_label()) for line in axis.lines] for axis in figure.axes]
    assert drawn == [
        ["greedy", "round-robin", LOWER["late-bloomer"], UPPER],
        ["greedy", "round-robin", LOWER["trap"], UPPER],
        ["greedy", "round-robin", UPPER],
    ]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(legend) == sorted(["greedy", "round-robin", *LOWER.values(), UPPER])
