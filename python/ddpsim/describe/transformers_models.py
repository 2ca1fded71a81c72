"""Models of the transformers library, as they train."""
import contextlib


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
    if any(use_cache for _, use_cache, _ in kept):
        notes.append('transformers: use_cache is off, as training has it')
    with _unpacked_sequences(), _padding_not_looked_for():
        try:
            for config, use_cache, implementation in kept:
                if use_cache:
                    config.use_cache = False
                if implementation == 'sdpa':
                    config._attn_implementation_internal = OURS
            yield
        finally:
            for config, use_cache, implementation in kept:
                if use_cache:
                    config.use_cache = True
                config._attn_implementation_internal = implementation


OURS = 'ddpsim'


def _config(module):
    config = getattr(module, 'config', None)
    return config if hasattr(config, '_attn_implementation_internal') else None


def _register_attention():
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    AttentionInterface.register(OURS, sdpa_attention_forward)


@contextlib.contextmanager
def _unpacked_sequences():
    """Sequences are taken as not packed; the library looks at position ids to find out."""
    from transformers import masking_utils
    name = 'find_packed_sequence_indices'
    found = getattr(masking_utils, name, None)
    if found:
        setattr(masking_utils, name, lambda *args, **kwargs: None)
    try:
        yield
    finally:
        if found:
            setattr(masking_utils, name, found)


@contextlib.contextmanager
def _padding_not_looked_for():
    """Where a batch has no mask, the library looks into the indices whether there is padding, to
    warn. The user's mask was taken out here (without_padding), or there is none to see."""
    from transformers import PreTrainedModel
    name = 'warn_if_padding_and_no_attention_mask'
    found = getattr(PreTrainedModel, name, None)
    if found:
        setattr(PreTrainedModel, name, lambda *args, **kwargs: None)
    try:
        yield
    finally:
        if found:
            setattr(PreTrainedModel, name, found)


def without_padding(model, batch, notes):
    """Masks of padding, whose values decide what is computed, are taken to hide nothing."""
    if not is_one(model) or not isinstance(batch, dict):
        return batch
    masks = [key for key, value in batch.items()
             if key.endswith('attention_mask') and getattr(value, 'dim', lambda: 0)() == 2]
    if masks:
        notes.append(f'{", ".join(masks)} taken as all ones: no padding, and no mask is made')
    return {key: value for key, value in batch.items() if key not in masks}
