"""Networks trained side by side are what they would be each alone."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linearcore.runtime import one_thread
from linearcore_paper.demo._networks import Networks, train

SEEDS, COPIES, COUNT = (4, 9), 3, 50


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(len(SEEDS), COUNT, 6, generator=generator)
    return inputs, torch.randint(3, (len(SEEDS), COPIES, COUNT), generator=generator)


def cross_entropy(scores: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(scores, target, reduction="none")


def trained_alone(start: list[Tensor], inputs: Tensor, labels: Tensor, seed: int) -> nn.Module:
    first, first_bias, second, second_bias = start
    network = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    with torch.no_grad():
        for parameter, value in zip(network.parameters(), (first.T, first_bias[0], second.T, second_bias[0]), strict=True):
            parameter.copy_(value)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(3):
        for rows in torch.randperm(COUNT, generator=generator).split(16):
            optimizer.zero_grad()
            F.cross_entropy(network(inputs[rows]), labels[rows]).backward()
            optimizer.step()
    return network


def test_side_by_side_is_one_by_one():
    inputs, labels = data()
    networks = Networks(SEEDS, COPIES, (6, 5, 3))
    starts = [parameter.detach().clone() for parameter in networks.parameters]
    assert list(train(networks, inputs, labels, cross_entropy, learning_rate=0.01, epochs=3, batch_size=16)) == [1, 2, 3]
    together = networks.scores(inputs.repeat_interleave(COPIES, 0))
    for row, seed in enumerate(SEEDS):
        for copy in range(COPIES):
            index = row * COPIES + copy
            alone = trained_alone([start[index] for start in starts], inputs[row], labels[row, copy], seed)
            torch.testing.assert_close(together[index], alone(inputs[row]), rtol=1e-3, atol=1e-4)


def test_copies_start_alike_and_seeds_do_not():
    for parameter in Networks(SEEDS, 2, (6, 5, 3)).parameters:
        assert torch.equal(parameter[0], parameter[1]) and torch.equal(parameter[2], parameter[3])
        assert not torch.equal(parameter[0], parameter[2])


def test_accuracy_is_the_share_of_right_answers():
    inputs, labels = data()
    networks = Networks(SEEDS, COPIES, (6, 5, 3))
    answers = networks.scores(inputs.repeat_interleave(COPIES, 0)).argmax(-1).reshape(len(SEEDS), COPIES, COUNT)
    assert (networks.accuracy(inputs, answers) == 1).all()
    assert torch.equal(networks.accuracy(inputs, labels), (answers == labels).double().mean(-1))
    assert networks.accuracy(inputs, labels[:, :1]).shape == (len(SEEDS), COPIES)


def test_threads_are_given_back():
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_normed_scores_use_the_batch_in_training_and_running_statistics_in_evaluation():
    inputs, labels = data()
    networks = Networks(SEEDS, COPIES, (6, 5, 3), is_normed=True)
    assert list(train(networks, inputs, labels, cross_entropy, learning_rate=0.01, epochs=1, batch_size=25)) == [1]
    assert (networks.norm.variance != 1).all()
    copies = inputs.repeat_interleave(COPIES, 0)
    evaluated = networks.scores(copies)
    torch.testing.assert_close(networks.scores(copies[:, :1]), evaluated[:, :1])
    in_training = networks.scores(copies, is_training=True)
    assert in_training.mean(1).abs().max() < 1e-5 < evaluated.mean(1).abs().max()
