"""Arms that resample recorded rewards, made from tables of ids and values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gym_fairbandits.arms import Empirical
from gym_fairbandits.datasets._fields import Chunk, Fields
from gym_fairbandits.datasets._synthetic import LABEL

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "PathLike",
    "Recorded",
    "Table",
    "check_extra",
    "drawn_table",
    "existing",
    "is_synthetic",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PathLike: TypeAlias = str | os.PathLike[str]


class Recorded(Empirical):
    """Arms that resample recorded rewards, and where these come from.

    The dict form is that of :class:`gym_fairbandits.arms.Empirical`, without the origin.

    Attributes:
        ids: The movie or machine of each arm; int64 array of shape ``(num_arms,)``.
        rows: The rows that were read.
        skipped: Those among them that lack a value, and were left out.
        source: The file or folder that was read, or the call that drew the rewards.
        synthetic: Whether the rewards were drawn at random instead of recorded. Say so wherever
            results are shown.
    """

    def __init__(
        self,
        samples: Sequence[ArrayLike] | NDArray[np.float64],
        *,
        ids: Ints,
        rows: int,
        skipped: int,
        source: str,
        synthetic: bool = False,
    ) -> None:
        """Create the arms; see :class:`gym_fairbandits.arms.Empirical` for ``samples``."""
        super().__init__(samples)
        self.ids = ids
        self.rows, self.skipped = rows, skipped
        self.source, self.synthetic = source, synthetic

    def __repr__(self) -> str:
        """Show the origin instead of the samples, which may be millions."""
        kind = "synthetic arms" if self.synthetic else "arms"
        return f"<Recorded: {self.num_arms} {kind}, {self.rows} rows of {self.source}>"

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` resamples the same rewards, wherever they come from."""
        return isinstance(other, Empirical) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]


class Table:
    """The complete rows of a data set.

    Attributes:
        rows: All rows that were read.
        skipped: The incomplete ones among them.
        source: Where they come from.
    """

    def __init__(self, chunks: Iterable[Chunk], source: str, synthetic: bool) -> None:
        import polars as pl

        self.rows = 0
        frames = [pl.DataFrame(schema={"id": pl.Int64, "value": pl.Float64})]
        for ids, values, known in chunks:
            self.rows += len(ids)
            frames.append(pl.DataFrame({"id": ids[known], "value": values[known]}))
        self._frame = pl.concat(frames, rechunk=False)
        self.skipped = self.rows - self._frame.height
        self.source, self._synthetic = source, synthetic

    def counted(self) -> pl.DataFrame:
        """Return how many ``rows`` each ``id`` has, by ascending id."""
        import polars as pl

        return self._frame.lazy().group_by("id").agg(pl.len().alias("rows")).sort("id").collect()

    def recorded(self, ids: Ints, sign: float = 1.0) -> Recorded:
        """Return an arm per id, with its values in the order of the rows, times ``sign``."""
        import polars as pl

        picked = self._frame.lazy().filter(pl.col("id").is_in(ids.tolist())).collect()
        order = np.argsort(picked["id"].to_numpy(), kind="stable")
        values = sign * picked["value"].to_numpy()[order]
        starts = np.searchsorted(picked["id"].to_numpy()[order], np.sort(ids))
        samples = np.split(values, starts[1:])  # by ascending id
        return Recorded(
            [samples[place] for place in np.argsort(np.argsort(ids))],
            ids=ids.copy(),
            rows=self.rows,
            skipped=self.skipped,
            source=self.source,
            synthetic=self._synthetic,
        )


def drawn_table(drawn: pl.DataFrame, fields: Fields, source: str) -> Table:
    """Return the table of rows that were drawn at random."""
    values = drawn[fields.value]
    known = values.is_not_null().to_numpy()
    return Table([Chunk(drawn[fields.id].to_numpy(), values.to_numpy(), known)], source, True)


def existing(path: PathLike, source: str) -> Path:
    """Return the path, if it exists and can be read; raises as the loaders say."""
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(f"no file or folder {str(place)!r}. {source}")
    check_extra()
    return place


def check_extra() -> None:
    """Raise ``ImportError`` with the command to install what is missing, if anything is."""
    try:
        import polars  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"data sets need the extra `experiments` ({error}): "
            'pip install "gym-fairbandits[experiments]"'
        ) from error


def is_synthetic(*paths: Path) -> bool:
    """Return whether any of these files and folders lies beside, or holds, the generators' label.

    A link does not hide it: what it leads to counts too.
    """
    places = [place for path in paths for place in (path, path.resolve())]
    return any(((at if at.is_dir() else at.parent) / LABEL).exists() for at in places)
