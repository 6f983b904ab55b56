"""Every claim of both papers, run: what it says, what came of it, and whether it holds.

P is Patil et al., L is Lim, Tan, Soh. Each check plays the agents of this package on instances
that are hard for them, random ones or those of the proofs, and holds what was measured against
:mod:`gym_fairbandits.bounds`. Of many instances the worst is reported. Where a claim fails as
printed, a row shows it, and another one the corrected claim::

    python -m gym_fairbandits experiments run theorems
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gym_fairbandits._checks import checked_choice
from gym_fairbandits.experiments import _egal_claims, _improving_claims, _improving_lemmas
from gym_fairbandits.experiments._claims import Check, ClaimRow, Settings
from gym_fairbandits.experiments.against import late_bloomer_against, lower_bound_pair_against
from gym_fairbandits.experiments.runner import markdown

__all__ = [
    "CHECKS",
    "ClaimRow",
    "Settings",
    "late_bloomer_against",
    "lower_bound_pair_against",
    "run",
    "table",
]

CHECKS: dict[str, Check] = {
    **_improving_claims.CHECKS,
    **_improving_lemmas.CHECKS,
    **_egal_claims.CHECKS,
}


def run(
    preset: str = "quick", seed: int = 0, checks: Iterable[str] | None = None
) -> list[ClaimRow]:
    """Run the checks.

    Args:
        preset: ``"quick"``, about a minute on one core, or ``"paper"``: longer episodes, more of
            them.
        seed: Of the first episode of each check: the same seed gives the same rows.
        checks: Names in ``CHECKS``; all by default.

    Returns:
        The rows, check by check.

    Raises:
        TypeError: If ``seed`` is not an integer.
        ValueError: If ``preset`` or a check is unknown, or ``seed`` is negative.
    """
    settings = Settings(preset, seed)
    names = [
        checked_choice("checks", name, tuple(CHECKS))
        for name in (CHECKS if checks is None else checks)
    ]
    return [row for name in names for row in CHECKS[name](settings)]


def table(rows: Sequence[ClaimRow]) -> str:
    """Return rows as a Markdown table."""
    header = ["claim", "instance", "quantity", "measured", "bound", "verdict"]
    lines = [
        (
            f"{row.paper}, {row.claim}",
            row.instance,
            row.quantity,
            f"{row.measured:.5g}",
            f"{row.relation} {row.bound:.5g}",
            row.verdict,
        )
        for row in rows
    ]
    return markdown(header, lines)
