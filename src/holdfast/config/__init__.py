"""The configuration: one frozen object, from `holdfast.toml` and `HOLDFAST_*`, passed down."""

from holdfast.config.loading import Loaded, Source, load_config, load_settings
from holdfast.config.settings import DEFAULT_PARTITIONS, FILE_NAME, LOG_LEVELS, Config

__all__ = [
    "DEFAULT_PARTITIONS",
    "FILE_NAME",
    "LOG_LEVELS",
    "Config",
    "Loaded",
    "Source",
    "load_config",
    "load_settings",
]
