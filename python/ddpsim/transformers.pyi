import os
from typing import Any

from transformers import TrainerCallback as _Base

class Callback(_Base):
    def __init__(self, *, steps: int = ..., warmup: int = ..., output: str | os.PathLike[str] = ...,
                 cluster: Any = ..., nodes: int | None = ..., seconds: float = ...) -> None: ...
    @property
    def report(self) -> dict[str, Any] | None: ...
