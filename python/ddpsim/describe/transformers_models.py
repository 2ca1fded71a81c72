"""Models of the transformers library, as they train."""
import contextlib
import inspect
import sys


def is_one(model):
    return any(kind.__module__.startswith('transformers.') for kind in type(model).__mro__)


@contextlib.contextmanager
def as_in_training(model, notes):
    """No cache of keys and values, which only generation needs; and no masks that only say what
    `is_causal` says: an attention function of our own name gets none (masking_utils.py)."""
    if not is_one(model):
        yield
        return
    configs = list({id(config): config for config in map(_config, model.modules())
                    if config is not None}.values())
    kept = [(config, getattr(config, 'use_cache', None), config._attn_implementation)
            for config in configs]
    _register_attention()
    asks = _asks_for_sdpa(model)
    if any(use_cache for _, use_cache, _ in kept):
        notes.append('transformers: use_cache is off, as training has it')
    with _values_not_looked_at():
        try:
            for config, use_cache, implementation in kept:
                if use_cache:
                    config.use_cache = False
                if implementation == 'sdpa' and not asks:
                    config._attn_implementation_internal = OURS
            yield
        finally:
            for config, use_cache, implementation in kept:
                if use_cache:
                    config.use_cache = True
                config._attn_implementation_internal = implementation


OURS = 'ddpsim'


def _asks_for_sdpa(model):
    """Does the code of a model's class compare the attention's name, which then has to stay?"""
    for name in {type(module).__module__ for module in model.modules()}:
        if name.startswith('transformers.') and name in sys.modules:
            with contextlib.suppress(OSError, TypeError):
                if '_attn_implementation == "sdpa"' in inspect.getsource(sys.modules[name]):
                    return True
    return False


def _config(module):
    config = getattr(module, 'config', None)
    return config if hasattr(config, '_attn_implementation_internal') else None


def _register_attention():
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    AttentionInterface.register(OURS, sdpa_attention_forward)


@contextlib.contextmanager
def _replaced(place, name, made):
    """What is called `name` there, made anew from what it was; where there is none nothing is."""
    found = getattr(place, name, None)
    if found:
        setattr(place, name, made(found))
    try:
        yield
    finally:
        if found:
            setattr(place, name, found)


def _says_nothing(found):
    return lambda *args, **kwargs: None


def _of_no_padding(found):
    def asked(padding_mask=None, *args, **kwargs):
        return found(None, *args, **kwargs)
    return asked


@contextlib.contextmanager
def _values_not_looked_at():
    """The library looks at values to find out what none of a description's tensors has: whether
    position ids are those of packed sequences; whether there is padding, in masks that models make
    themselves, and, to warn, in indices that have no mask (without_padding has taken the user's
    out). Nothing is packed, and no mask hides anything."""
    from transformers import PreTrainedModel, masking_utils
    with contextlib.ExitStack() as replaced:
        for place, name, made in (
                (masking_utils, 'find_packed_sequence_indices', _says_nothing),
                (masking_utils, '_ignore_causal_mask_sdpa', _of_no_padding),
                (masking_utils, '_ignore_bidirectional_mask_sdpa', _of_no_padding),
                (PreTrainedModel, 'warn_if_padding_and_no_attention_mask', _says_nothing)):
            replaced.enter_context(_replaced(place, name, made))
        yield


def without_padding(model, batch, notes):
    """Masks of padding, whose values decide what is computed, are taken to hide nothing."""
    if not is_one(model) or not isinstance(batch, dict):
        return batch
    masks = [key for key, value in batch.items()
             if key.endswith('attention_mask') and getattr(value, 'dim', lambda: 0)() == 2]
    if masks:
        notes.append(f'{", ".join(masks)} taken as all ones: no padding, and no mask is made')
    return {key: value for key, value in batch.items() if key not in masks}
