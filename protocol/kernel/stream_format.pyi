class FormatDescription:
    binlog_version: int
    created: int
    server_id: int

    def __init__(self) -> None: ...
