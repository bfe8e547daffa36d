"""The module that is traced for export: encoder, projection and decoding."""

from collections.abc import Sequence
from copy import deepcopy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linearcore._torch import scan
from linearcore.tagging._composition import plain_copy
from linearcore.tagging._model import TaggingModel
from linearcore.tagging.export._decoding import make_decoder


class TaggerGraph(nn.Module):
    """From the integers of a batch to tags, for torch.export with dynamic sizes; a copy of the model on the CPU.

    Args:
        model: the model of a tagger.
        names: the inputs of its encoder, in the order of the arguments of `forward` after `mask`.
    """

    def __init__(self, model: TaggingModel, names: Sequence[str]) -> None:
        super().__init__()
        self.names = tuple(names)
        self.encoder = with_traceable_lstms(deepcopy(model.encoder))
        self.projection = plain_copy(model.projection)
        self.decoder = make_decoder(model)
        self.float().cpu().eval().requires_grad_(False)

    def forward(self, mask: Tensor, *inputs: Tensor) -> Tensor:
        """Returns the tags (B, L), −100 where `mask` is False."""
        hidden = self.encoder(mask, **dict(zip(self.names, inputs, strict=True)))
        tags: Tensor = self.decoder(self.projection(hidden), mask)
        return tags


class TraceableLSTM(nn.Module):
    """An `nn.LSTM` whose number of steps is dynamic in torch.export; that of torch is unrolled there.

    Args:
        lstm: one layer, one direction, batch first.
    """

    def __init__(self, lstm: nn.LSTM) -> None:
        super().__init__()
        assert lstm.batch_first and lstm.num_layers == 1 and not lstm.bidirectional and not lstm.proj_size
        self.hidden_size = lstm.hidden_size
        input_weight, recurrent_weight, input_bias, recurrent_bias = lstm.all_weights[0]
        self.projection = nn.Linear(lstm.input_size, 4 * lstm.hidden_size)
        self.recurrent = nn.Parameter(recurrent_weight.detach().t().contiguous())
        with torch.no_grad():
            self.projection.weight.copy_(input_weight)
            self.projection.bias.copy_(input_bias + recurrent_bias)

    def forward(self, states: Tensor) -> tuple[Tensor]:
        """Returns a tuple with the hidden states (B, L, hidden), like `nn.LSTM`, but without the last state."""
        recurrent = self.recurrent

        def step(carry: tuple[Tensor, ...], now: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
            hidden, cell = carry
            write, keep, candidate, read = (now[0] + hidden @ recurrent).chunk(4, -1)
            cell = F.sigmoid(keep) * cell + F.sigmoid(write) * torch.tanh(candidate)
            hidden = F.sigmoid(read) * torch.tanh(cell)
            return (hidden, cell), (hidden.clone(),)

        zeros = states.new_zeros(states.shape[0], self.hidden_size)
        _, (hidden,) = scan(step, (zeros, zeros.clone()), (self.projection(states.transpose(0, 1)),))
        return (hidden.transpose(0, 1),)


def with_traceable_lstms(module: nn.Module) -> nn.Module:
    """Replaces every `nn.LSTM` inside `module`, in place, and returns it."""
    for name, child in module.named_children():
        if isinstance(child, nn.LSTM):
            setattr(module, name, TraceableLSTM(child))
        else:
            with_traceable_lstms(child)
    return module
