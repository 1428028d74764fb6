"""What the commands of roles share."""

from __future__ import annotations

import argparse
import contextlib
import errno
import logging
import os
import socket
import time

from edgeway import logs
from edgeway.cli.arguments import read_settings
from edgeway.errors import HostUnusable, PortTaken
from streams.settings import Settings

log = logging.getLogger(__name__)

PORT_S = 30


def start(args: argparse.Namespace) -> Settings:
    """The settings of a role, its logging set up, its port known to be free.

    Raises:
        SettingsError: wrong settings.
        PortTaken, HostUnusable: the HTTP port is in use, or the address is none of this machine.
    """
    settings = read_settings(args)
    logs.configure(settings)
    if settings.port is not None:
        _require_port(settings.host, settings.port)
    return settings


def _require_port(host: str, port: int) -> None:
    """A worker that starts itself again waits for the port, which was its own until a moment ago."""
    try:
        require_free(host, port)
    except PortTaken as error:
        from edgeway.roles.restart import is_restart

        if not is_restart(os.environ):
            raise
        log.warning("%s; waiting for it", error)
        for _ in range(PORT_S):
            time.sleep(1.0)
            with contextlib.suppress(PortTaken):
                return require_free(host, port)
        raise


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
