"""What the commands of roles share."""

from __future__ import annotations

import argparse
import errno
import socket

from edgeway import logs
from edgeway.cli.arguments import read_settings
from edgeway.errors import HostUnusable, PortTaken
from streams.settings import Settings


def start(args: argparse.Namespace) -> Settings:
    """The settings of a role, its logging set up, its port known to be free.

    Raises:
        SettingsError: wrong settings.
        PortTaken, HostUnusable: the HTTP port is in use, or the address is none of this machine.
    """
    settings = read_settings(args)
    logs.configure(settings)
    if settings.port is not None:
        require_free(settings.host, settings.port)
    return settings


def require_free(host: str, port: int) -> None:
    """Found out before Kafka is asked for anything.

    Raises:
        PortTaken: another process listens there.
        HostUnusable: the address is none of this machine, or the port not allowed.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, UnicodeError) as exc:
        if isinstance(exc, OSError) and exc.errno == errno.EADDRINUSE:
            raise PortTaken(host, port) from exc
        raise HostUnusable(host, port, getattr(exc, "strerror", None) or str(exc)) from exc
