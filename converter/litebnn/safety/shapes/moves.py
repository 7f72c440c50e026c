"""The output shapes of elementwise ops, reductions, and ops that move values."""

from __future__ import annotations

import math
from itertools import zip_longest

import numpy as np

from litebnn.safety.shapes.call import Call, Shape, axis_of


def first(call: Call) -> Shape:
    return call.shape(0)


def second(call: Call) -> Shape:
    return call.shape(1)


def broadcast(call: Call) -> Shape:
    shapes = [call.shape(index)[::-1] for index in range(len(call.op.inputs))]
    sizes = [[size for size in column if size != 1] for column in zip_longest(*shapes, fillvalue=1)]
    return tuple(found[0] if found else 1 for found in sizes)[::-1]


def concatenate(call: Call) -> Shape:
    shapes = [call.shape(index) for index in range(len(call.op.inputs))]
    axis = axis_of(call.option("axis"), len(shapes[0]))
    return *shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :]


def stack(call: Call) -> Shape:
    shape = call.shape(0)
    axis = axis_of(call.option("axis"), len(shape) + 1)
    return *shape[:axis], len(call.op.inputs), *shape[axis:]


def unstack(call: Call) -> list[Shape]:
    axis = axis_of(call.option("axis"), len(call.shape(0)))
    return [without(call.shape(0), [axis])] * len(call.op.outputs)


def split(call: Call) -> list[Shape]:
    [axis] = call.axes(0, len(call.shape(1)))
    shape, parts = call.shape(1), len(call.op.outputs)
    return [(*shape[:axis], shape[axis] // parts, *shape[axis + 1 :])] * parts


def split_sizes(call: Call) -> list[Shape]:
    shape, sizes = call.shape(0), call.numbers(1)
    [axis] = call.axes(2, len(shape))
    left = shape[axis] - sum(size for size in sizes if size >= 0)
    return [(*shape[:axis], left if size < 0 else size, *shape[axis + 1 :]) for size in sizes]


def reshape(call: Call) -> Shape:
    count = math.prod(call.shape(0))
    sizes = call.numbers(1) if call.op.optional(1) is not None else [int(size) for size in call.op.options.new_shape]
    known = math.prod(size for size in sizes if size != -1)
    return tuple(count // known if size == -1 else size for size in sizes)


def squeeze(call: Call) -> Shape:
    shape, listed = call.shape(0), getattr(call.op.options, "squeeze_dims", None)
    axes = [] if listed is None else [axis_of(int(axis), len(shape)) for axis in listed]
    return without(shape, axes or [axis for axis, size in enumerate(shape) if size == 1])


def without(shape: Shape, axes: list[int]) -> Shape:
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def expanded(call: Call) -> Shape:
    shape = call.shape(0)
    [axis] = call.axes(1, len(shape) + 1)
    return *shape[:axis], 1, *shape[axis:]


def transpose(call: Call) -> Shape:
    return tuple(call.shape(0)[axis] for axis in call.numbers(1))


def padded(call: Call) -> Shape:
    amounts = np.reshape(call.numbers(1), (-1, 2)).tolist()
    return tuple(size + sum(around) for size, around in zip(call.shape(0), amounts, strict=True))


def sliced(call: Call) -> Shape:
    triples = zip(call.shape(0), call.numbers(1), call.numbers(2), strict=True)
    return tuple(whole - begin if size < 0 else size for whole, begin, size in triples)


def tiled(call: Call) -> Shape:
    return tuple(size * times for size, times in zip(call.shape(0), call.numbers(1), strict=True))


def broadcast_to(call: Call) -> Shape:
    return tuple(call.numbers(1))


def filled(call: Call) -> Shape:
    return tuple(call.numbers(0))


def gather(call: Call) -> Shape:
    data, indices = call.shape(0), call.shape(1)
    axis = axis_of(call.option("axis"), len(data))
    return *data[:axis], *indices[call.option("batch_dims") :], *data[axis + 1 :]


def gather_nd(call: Call) -> Shape:
    data, (*lead, depth) = call.shape(0), call.shape(1)
    return *lead, *data[depth:]


def lookup(call: Call) -> Shape:
    return *call.shape(0), *call.shape(1)[1:]


def reduced(call: Call) -> Shape:
    shape = call.shape(0)
    axes = call.axes(1, len(shape))
    if call.option("keep_dims"):
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return without(shape, axes)


def best(call: Call) -> Shape:
    return without(call.shape(0), call.axes(1, len(call.shape(0))))


def resize(call: Call) -> Shape:
    batch, _, _, channels = call.shape(0)
    height, width = call.numbers(1)
    return batch, height, width, channels


def to_space(call: Call) -> Shape:
    (batch, height, width, channels), size = call.shape(0), call.option("block_size")
    return batch, height * size, width * size, channels // size**2


def to_depth(call: Call) -> Shape:
    (batch, height, width, channels), size = call.shape(0), call.option("block_size")
    return batch, height // size, width // size, channels * size**2


def one_hot(call: Call) -> Shape:
    shape, [depth] = call.shape(0), call.numbers(1)
    axis = axis_of(call.option("axis"), len(shape) + 1)
    return *shape[:axis], depth, *shape[axis:]


def largest(call: Call) -> list[Shape]:
    return [(*call.shape(0)[:-1], *call.numbers(1))] * 2


def strided_slice(call: Call) -> Shape:
    options, sizes = call.op.options, []
    if options.ellipsis_mask or options.new_axis_mask:
        raise LookupError
    begins, ends, strides = (call.numbers(index) for index in (1, 2, 3))
    for axis, size in enumerate(call.shape(0)):
        if axis >= len(begins):
            sizes.append(size)
            continue
        if options.shrink_axis_mask >> axis & 1:
            continue
        begin = None if options.begin_mask >> axis & 1 else begins[axis]
        end = None if options.end_mask >> axis & 1 else ends[axis]
        if options.offset and begin is not None and end is not None:
            end += begin
        sizes.append(len(range(size)[begin : end : strides[axis]]))
    return tuple(sizes)


def to_batch(call: Call) -> Shape:
    (batch, *sizes), blocks = call.shape(0), call.numbers(1)
    around = np.reshape(call.numbers(2), (-1, 2)).tolist()
    spatial = [(size + sum(amounts)) // block for size, amounts, block in zip(sizes, around, blocks, strict=False)]
    return batch * math.prod(blocks), *spatial, *sizes[len(blocks) :]


def from_batch(call: Call) -> Shape:
    (batch, *sizes), blocks = call.shape(0), call.numbers(1)
    crops = np.reshape(call.numbers(2), (-1, 2)).tolist()
    spatial = [size * block - sum(amounts) for size, amounts, block in zip(sizes, crops, blocks, strict=False)]
    return batch // math.prod(blocks), *spatial, *sizes[len(blocks) :]


def segments(call: Call) -> Shape:
    return *call.numbers(2), *call.shape(0)[len(call.shape(1)) :]


def scattered(call: Call) -> Shape:
    return tuple(call.numbers(2))


def diagonal(call: Call) -> Shape:
    return *call.shape(0), call.shape(0)[-1]


def shape_of(call: Call) -> Shape:
    return (len(call.shape(0)),)
