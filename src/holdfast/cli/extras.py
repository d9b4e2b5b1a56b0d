"""What comes with an extra, and what is said where it is missing."""

PIPELINE = ("pyspark", "pyarrow", "deltalake", "duckdb", "matplotlib")


def check_installed() -> None:
    """The pipeline needs packages that are not installed by default: says so if one is missing."""
    from importlib.util import find_spec

    from holdfast.errors import Unavailable

    for name in PIPELINE:
        if find_spec(name) is None:
            raise Unavailable(f"{name} is not installed: pip install 'holdfast[pipeline]'")
