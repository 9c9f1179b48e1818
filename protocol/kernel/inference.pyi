class Inference:
    state: int
    opener: int
    recovering: bool
    from_state: int
    definition: bool

    def __init__(self) -> None: ...
    def reset(self) -> None: ...
