"""torch.autocast as CUDA has it, for meta tensors."""
import contextlib


@contextlib.contextmanager
def autocast_on_meta(count=None):
    yield
