"""The spaces of assignments in Gymnasium's functions of spaces, which look them up by type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from gymnasium.spaces import Box, MultiDiscrete
from gymnasium.spaces.utils import (
    flatdim,
    flatten,
    flatten_space,
    is_space_dtype_shape_equiv,
    unflatten,
)
from gymnasium.vector.utils import (
    batch_differing_spaces,
    batch_space,
    concatenate,
    create_empty_array,
    create_shared_memory,
    iterate,
    read_from_shared_memory,
    write_to_shared_memory,
)
from gymnasium.wrappers.utils import create_zero_array
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gym_fairbandits.spaces import Assignment, BatchedAssignment

__all__ = ["register"]


def _lowest(space: Assignment | BatchedAssignment) -> NDArray[np.int64]:
    """Return the member nearest to zero."""
    row = np.arange(space.num_users, dtype=np.int64) // space.capacity
    member: NDArray[np.int64] = np.broadcast_to(row, space.shape).copy()
    return member


def _is_equivalent(space_1: Assignment | BatchedAssignment, space_2: Any) -> bool:
    return bool(space_1 == space_2)


def _create_empty_array(
    space: Assignment | BatchedAssignment,
    n: int = 1,
    fn: Callable[..., NDArray[np.int64]] = np.zeros,
) -> NDArray[np.int64]:
    # `fn` allocates; zeros would put all users on one arm, outside the batched space.
    array = fn((n, *space.shape), dtype=space.dtype)
    array[...] = _lowest(space)
    return array


def _flatdim(space: Assignment | BatchedAssignment) -> int:
    return prod(space.shape) * space.num_arms


def _flatten_space(space: Assignment | BatchedAssignment) -> Box:
    return Box(low=0, high=1, shape=(_flatdim(space),), dtype=np.int64)


def _flatten(space: Assignment | BatchedAssignment, x: Any) -> NDArray[np.int64]:
    if not space.contains(x):
        raise ValueError(f"`x` must be a member of {space}, got {x!r}")
    one_hot = np.asarray(x)[..., None] == np.arange(space.num_arms)
    flat: NDArray[np.int64] = one_hot.astype(np.int64).ravel()
    return flat


def _unflatten(space: Assignment | BatchedAssignment, x: Any) -> NDArray[np.int64]:
    flat = np.asarray(x)
    if flat.shape == (_flatdim(space),):
        one_hot = flat.reshape(*space.shape, space.num_arms)
        arms: NDArray[np.int64] = one_hot.argmax(axis=-1).astype(np.int64)
        # Boxes and concatenations turn the zeros and ones into floats; their values count.
        if space.contains(arms) and np.array_equal(_flatten(space, arms), flat):
            return arms
    raise ValueError(f"`x` must be what `flatten` makes of a member of {space}, got {x!r}")


def _iterate_single(space: Assignment, items: Any) -> NoReturn:
    raise TypeError(f"Unable to iterate over {space}: it is not a batch")


def _iterate_batch(space: BatchedAssignment, items: Any) -> Iterator[Any]:
    return iter(items)


def register(single: type[Assignment], batched: type[BatchedAssignment]) -> None:
    """Register the space of one assignment and that of a batch of them."""

    def batch(space: Assignment | BatchedAssignment, n: int = 1) -> BatchedAssignment:
        return batched(space, n, seed=deepcopy(space.np_random))

    def batch_equal(spaces: Sequence[Assignment | BatchedAssignment]) -> BatchedAssignment:
        for space in spaces:
            if space != spaces[0]:
                raise ValueError(
                    "`spaces` must be equal to be batched: assignments of different sizes have no "
                    f"common batch, got {spaces[0]} and {space}"
                )
        return batch(spaces[0], len(spaces))

    iterate.register(single, _iterate_single)
    iterate.register(batched, _iterate_batch)
    # These need only a shape and a dtype, so what serves MultiDiscrete serves here.
    array_functions: tuple[Any, ...] = (
        concatenate,
        create_shared_memory,
        read_from_shared_memory,
        write_to_shared_memory,
    )
    # Gymnasium looks some types up without regard to inheritance: both must be registered.
    for kind in (single, batched):
        batch_space.register(kind, batch)
        batch_differing_spaces.register(kind, batch_equal)
        create_empty_array.register(kind, _create_empty_array)
        create_zero_array.register(kind, _lowest)
        is_space_dtype_shape_equiv.register(kind, _is_equivalent)
        flatdim.register(kind, _flatdim)
        flatten.register(kind, _flatten)
        flatten_space.register(kind, _flatten_space)
        unflatten.register(kind, _unflatten)
        for function in array_functions:
            function.register(kind, function.dispatch(MultiDiscrete))
