"""Names that most tests use: the environments' ids, and arrays and keywords as types."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import gym_fairbandits  # noqa: F401  (registers the environments)

IMPROVING, EGAL = "ImprovingBandit-v0", "EgalAssign-v0"

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Kwargs = dict[str, Any]
