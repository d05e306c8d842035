"""Decodes Arrow arrays: dictionaries, runs and views, which only store values differently, become plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

_VIEWS: Mapping[pa.DataType, pa.DataType] = {
    pa.string_view(): pa.large_string(),
    pa.binary_view(): pa.large_binary(),
}
_EXTENSIONS: Mapping[str, Callable[[pa.ExtensionArray], pa.Array]] = {
    "arrow.uuid": lambda array: pa.array([None if each is None else str(each) for each in array.to_pylist()]),
    "arrow.json": lambda array: array.storage,
    "arrow.bool8": lambda array: pc.not_equal(array.storage, 0),
}
"""The extension types whose values have a plain form: UUIDs and JSON become strings."""


def plain(array: pa.Array) -> pa.Array:
    """Returns the array with the same values and no encoding, at any depth; an unknown extension type is kept.

    Raises:
        pa.ArrowException: if an array is too large for the plain form.
    """
    kind = array.type
    if not _is_encoded(kind):
        return array
    if kind in _VIEWS:
        return pc.cast(array, _VIEWS[kind])
    if pa.types.is_dictionary(kind):
        return plain(array.dictionary).take(array.indices)
    if pa.types.is_run_end_encoded(kind):
        return plain(_runs_decoded(array))
    if isinstance(kind, pa.BaseExtensionType):
        known = _EXTENSIONS.get(kind.extension_name)
        return array if known is None else plain(known(array))
    return _nested(array)


def _nested(array: pa.Array) -> pa.Array:
    kind = array.type
    types = pa.types
    if types.is_struct(kind):
        members = [plain(array.field(at)) for at in range(kind.num_fields)]
        names = [kind.field(at).name for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(members, names, mask=array.is_null())
    if types.is_map(kind):
        parts = (_offsets(array), plain(array.keys), plain(array.items))
        return pa.MapArray.from_arrays(*parts, mask=array.is_null())
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        return _without_view(array)
    if types.is_fixed_size_list(kind):
        return plain(pc.cast(array, pa.list_(kind.value_field)))
    of = pa.LargeListArray if types.is_large_list(kind) else pa.ListArray
    return of.from_arrays(_offsets(array), plain(array.values), mask=array.is_null())


def _without_view(array: pa.Array) -> pa.Array:
    """Converts a list view to a list array; Arrow's own cast returns an invalid array for some list views."""
    sizes = pc.if_else(array.is_null(), pa.scalar(0, array.sizes.type), array.sizes)
    ends = pc.cumulative_sum(sizes)
    offsets = pa.concat_arrays([pa.array([0], ends.type), ends])
    of = pa.LargeListArray if pa.types.is_large_list_view(array.type) else pa.ListArray
    return of.from_arrays(offsets, plain(array.flatten()), mask=array.is_null())


def _offsets(array: pa.Array) -> pa.Array:
    """Returns a copy of the offsets: the offsets of a slice cannot be combined with a mask."""
    return pc.add(array.offsets, 0).cast(array.offsets.type)


def _runs_decoded(array: pa.Array) -> pa.Array:
    """Returns an array that repeats the value of each run; Arrow's own function supports few types."""
    runs = pa.array(range(len(array.values)), pa.int64())
    whole = pa.RunEndEncodedArray.from_arrays(array.run_ends, runs)
    positions = pc.run_end_decode(whole).slice(array.offset, len(array))
    return plain(array.values).take(positions)


def _is_encoded(kind: pa.DataType) -> bool:
    types = pa.types
    if kind in _VIEWS or types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return True
    if isinstance(kind, pa.BaseExtensionType) or types.is_list_view(kind) or types.is_large_list_view(kind):
        return True
    return any(_is_encoded(kind.field(at).type) for at in range(kind.num_fields)) and not types.is_union(kind)
