from protocol.columns.transactions.transaction_batch import TransactionBatch

class TransactionCounts(TransactionBatch):
    def __init__(self, capacity: int, count_rows: bool) -> None: ...
