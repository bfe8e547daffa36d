"""`--device`."""


def check_device(name: str) -> str:
    """The name of a device that is there.

    Raises:
        ValueError: if torch knows no such device, or the machine has none.
    """
    import torch

    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"`--device` must be a device of torch, got {name!r}; pass cpu or cuda") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"`--device` must be there, got {name!r} and {torch.cuda.device_count()} CUDA devices; pass cpu")
    return str(device)
