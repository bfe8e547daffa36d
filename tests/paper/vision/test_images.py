import pytest
import torch

from linearcore_paper.vision import Images, hold_out
from tests.paper.vision.toy_images import CLASSES, toy


def test_the_digest_names_pixels_and_labels_and_not_the_memory_order():
    data = toy(10)
    assert len(data.digest) == 16 and int(data.digest, 16) >= 0
    assert data.to("cpu").digest == toy(10).digest == data.digest
    assert data.to("cpu").images.is_contiguous(memory_format=torch.channels_last)
    assert data.with_labels((data.labels + 1) % 3).digest != data.digest
    changed = data.images.clone()
    changed[3, 1, 2, 2] += 1
    assert Images(changed, data.labels, CLASSES).digest != data.digest


def test_moving_to_where_it_is_copies_nothing():
    there = toy(10).to("cpu")
    assert there.to("cpu").images.data_ptr() == there.images.data_ptr()


def test_holding_out_parts_without_loss():
    data = toy(20)
    rest, held = hold_out(data, 6, seed=1)
    assert (len(rest), len(held)) == (14, 6)
    pixels = torch.cat([rest.images, held.images]).flatten(1).sum(1).sort().values
    assert torch.equal(pixels, data.images.flatten(1).sum(1).sort().values)
    assert hold_out(data, 6, seed=1)[1].digest == held.digest != hold_out(data, 6, seed=2)[1].digest
    places = [int((data.images == image).flatten(1).all(1).nonzero()) for image in held.images]
    assert places == sorted(places) and [int(data.labels[place]) for place in places] == held.labels.tolist()


@pytest.mark.parametrize("count", [0, 20])
def test_holding_out_nothing_or_everything_is_refused(count):
    with pytest.raises(ValueError, match=r"`count` must be in \[1, 19\], got"):
        hold_out(toy(20), count, seed=0)


BYTES, NUMBERS = torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.tensor([0, 2])


@pytest.mark.parametrize(
    "images, labels, error, message",
    [
        (BYTES.float(), NUMBERS, TypeError, r"must be torch.uint8, got torch.float32; .* `\(255 \* images\)"),
        (BYTES, NUMBERS.int(), TypeError, "`labels` must be torch.int64, got torch.int32"),
        ([1], NUMBERS, TypeError, "`images` must be a torch tensor, got list"),
        (BYTES[0], NUMBERS, ValueError, "`images` must have shape"),
        (BYTES[:0], NUMBERS[:0], ValueError, "`images` must have shape"),
        (
            BYTES[..., :3].permute(0, 2, 3, 1),
            NUMBERS,
            ValueError,
            r"got \(2, 4, 3, 3\); move .* `images.permute\(0, 3, 1, 2\)`",
        ),
        (
            BYTES[:, :1].permute(0, 2, 3, 1),
            NUMBERS,
            ValueError,
            r"got \(2, 4, 4, 1\); move .* `images.permute\(0, 3, 1, 2\)`",
        ),
        (BYTES, NUMBERS[:1], ValueError, r"`labels` must have shape \(2,\)"),
        (BYTES, NUMBERS + 1, ValueError, r"`labels` must be in \[0, 3\), got 1 to 3"),
        (BYTES, NUMBERS - 1, ValueError, r"`labels` must be in \[0, 3\), got -1 to 1"),
    ],
)
def test_what_does_not_fit_is_refused(images, labels, error, message):
    with pytest.raises(error, match=message):
        Images(images, labels, CLASSES)


def test_a_set_is_shown_in_a_line():
    assert repr(toy(10)) == "Images(10 of 3×8×8, 3 classes, cpu)"
