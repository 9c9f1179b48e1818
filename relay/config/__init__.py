"""The relay's configuration: relay.toml, its sections as data, and the problems in it."""

from relay.config.http_section import HttpSection
from relay.config.loading import load_config
from relay.config.replica_section import ReplicaSection
from relay.config.sections import (
    Account,
    ArchiveSection,
    Config,
    DirectorySource,
    FailoverMode,
    FailoverSection,
    ListenSection,
    ServerSource,
    StartGtid,
    StartPosition,
    ViewSection,
    ViewStartPlace,
)
from relay.config.server_security import ServerSecurity, SslMode
from relay.config.text.problems import ConfigError, Problem
from relay.config.view_settings import settings_as_written, settings_of_view, view_settings

__all__ = [
    "Account",
    "ArchiveSection",
    "Config",
    "ConfigError",
    "DirectorySource",
    "FailoverMode",
    "FailoverSection",
    "HttpSection",
    "ListenSection",
    "Problem",
    "ReplicaSection",
    "ServerSecurity",
    "ServerSource",
    "SslMode",
    "StartGtid",
    "StartPosition",
    "ViewSection",
    "ViewStartPlace",
    "load_config",
    "settings_as_written",
    "settings_of_view",
    "view_settings",
]
