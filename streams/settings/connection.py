"""What a Kafka client is given of the settings."""

from __future__ import annotations

import ssl
from typing import Any

from streams.settings.errors import SettingsError
from streams.settings.model import Settings


def client_options(settings: Settings) -> dict[str, Any]:
    """Keyword arguments common to aiokafka's consumer, producer and admin client: addresses, TLS, SASL.

    Raises:
        SettingsError: a certificate or key cannot be used.
    """
    options: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap.split(","),
        "security_protocol": settings.security_protocol,
    }
    if settings.security_protocol.endswith("SSL"):
        options["ssl_context"] = _tls(settings)
    if settings.security_protocol.startswith("SASL"):
        options["sasl_mechanism"] = settings.sasl_mechanism
        options["sasl_plain_username"] = settings.sasl_username
        options["sasl_plain_password"] = settings.sasl_password.reveal() if settings.sasl_password else None
    return options


def _tls(settings: Settings) -> ssl.SSLContext:
    name = "ssl_cafile"
    try:
        context = ssl.create_default_context(cafile=settings.ssl_cafile)
        context.check_hostname = settings.ssl_check_hostname
        if settings.ssl_certfile is not None:
            name = "ssl_certfile"
            context.load_cert_chain(settings.ssl_certfile, settings.ssl_keyfile, password=_no_password)
    except (OSError, ValueError) as exc:
        given = getattr(settings, name)
        mend = "give PEM files, the key without a password and belonging to the certificate"
        raise SettingsError([f"{name} = {given}: {exc}; {mend}"]) from exc
    return context


def _no_password() -> str:
    # Without this OpenSSL asks on the terminal and the process hangs.
    return ""
