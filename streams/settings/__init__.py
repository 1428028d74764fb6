"""Settings: one table of them, read from flags, variables and a TOML file, checked at start."""

from streams.settings.connection import client_options
from streams.settings.errors import SettingsError
from streams.settings.kinds import Secret, duration_ms
from streams.settings.model import Settings, flag_of, variable_of
from streams.settings.sources import find_config, resolve, strange_variables

__all__ = [
    "Secret",
    "Settings",
    "SettingsError",
    "client_options",
    "duration_ms",
    "find_config",
    "flag_of",
    "resolve",
    "strange_variables",
    "variable_of",
]
