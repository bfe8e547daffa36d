import pytest
import torch

from linearcore_paper.vision._views import Normal, as_pixels, crop
from tests.paper.vision.toy_images import toy


def slowly(image, down, right, flip):
    """Pad with zeros, cut out, mirror: one pixel after the other."""
    _, height, width = image.shape
    seen = torch.zeros_like(image)
    for row in range(height):
        for column in range(width):
            from_row = row + down
            from_column = (width - 1 - column if flip else column) + right
            if 0 <= from_row < height and 0 <= from_column < width:
                seen[:, row, column] = image[:, from_row, from_column]
    return seen


def test_windows_are_those_of_a_slow_loop():
    stream = torch.Generator().manual_seed(0)
    images = torch.randint(1, 256, (6, 3, 7, 9), generator=stream).to(torch.uint8)
    index = torch.randint(0, 6, (40,), generator=stream)
    down, right = torch.randint(-4, 5, (2, 40), generator=stream)
    flip = torch.randint(0, 2, (40,), generator=stream)
    seen = crop(as_pixels(images), index, down, right, flip).permute(0, 3, 1, 2)
    expected = [slowly(images[i], *how) for i, *how in zip(*(x.tolist() for x in (index, down, right, flip)), strict=True)]
    assert torch.equal(seen, torch.stack(expected)) and seen.dtype == torch.uint8
    assert bool(flip.any()) and not bool(flip.all()) and int(down.min()) == -4 and int(right.max()) == 4


def test_inputs_have_mean_zero_and_deviation_one_and_their_memory_order_is_kept():
    data = toy(50).to("cpu")
    normal = Normal.of(data.images)
    inputs = normal(as_pixels(data.images))
    assert inputs.shape == data.images.shape and inputs.is_contiguous(memory_format=torch.channels_last)
    values = inputs.double().transpose(0, 1).flatten(1)
    assert values.mean(1).tolist() == pytest.approx([0.0] * 3, abs=1e-5)
    assert values.std(1, correction=0).tolist() == pytest.approx([1.0] * 3, abs=1e-5)
    floats = data.images.double().transpose(0, 1).flatten(1)
    assert normal.mean.tolist() == pytest.approx(floats.mean(1).tolist())


def test_a_channel_of_one_shade_becomes_zero():
    images = torch.full((2, 1, 4, 4), 7, dtype=torch.uint8)
    assert torch.equal(Normal.of(images)(as_pixels(images)), torch.zeros(2, 1, 4, 4))
