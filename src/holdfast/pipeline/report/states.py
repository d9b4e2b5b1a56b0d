"""How many rows of a file of a table are in which state: what changes first while tables fill."""

import pyarrow.parquet as pq

States = dict[str, int]  # how many rows are in which state


def states_in(path: str) -> States:
    """Counts one file; of a table with a column of states."""
    counts = pq.read_table(path, columns=["state"])["state"].value_counts().to_pylist()
    return {each["values"]: each["counts"] for each in counts}
