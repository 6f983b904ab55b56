"""The data sets of Lim, Tan, Soh's experiments as assignment arms: MovieLens, Google's cluster.

Users bring the files: nothing is downloaded, and this package ships none. Each arm resamples what
was recorded of one movie or machine (:class:`gym_fairbandits.arms.Empirical`)::

    instance = datasets.movielens("ml-25m.zip")
    env = gym.make("EgalAssign-v0", instance=instance, num_users=50)

``synthetic_*`` are stand-ins of the same shape, drawn at random, for tests and quick trials: what
comes of them says nothing about the real data. All this needs the extra ``experiments``.
"""

from gym_fairbandits.datasets._cluster import google_cluster, synthetic_cluster
from gym_fairbandits.datasets._movielens import movielens, synthetic_movielens
from gym_fairbandits.datasets._recorded import Recorded

__all__ = [
    "Recorded",
    "google_cluster",
    "movielens",
    "synthetic_cluster",
    "synthetic_movielens",
]
