"""Where Maven artifacts come from on this machine: the same mirror and certificates as its other clients."""

import re
import ssl
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

from edgeway.embedded.errors import EmbeddedKafkaError

CENTRAL = "central"
DEBIAN_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


def covers_central(mirror_of: str) -> bool:
    """Whether a mirror with this ``mirrorOf`` serves Maven Central (Maven settings reference, mirrors)."""
    parts = [part.strip() for part in mirror_of.split(",")]
    if f"!{CENTRAL}" in parts:
        return False
    return any(part in ("*", "external:*", CENTRAL) for part in parts)


def mirror_url(settings_xml: str, environment: Mapping[str, str]) -> str | None:
    """URL of the first mirror of Central in a ``settings.xml``; ``${env.NAME}`` is filled in.

    Raises:
        EmbeddedKafkaError: the text is not XML.
    """
    try:
        root = ET.fromstring(settings_xml)
    except ET.ParseError as exc:
        raise EmbeddedKafkaError(f"Maven's settings.xml is not well-formed: {exc}") from exc
    for mirror in root.iterfind("{*}mirrors/{*}mirror"):
        url = (mirror.findtext("{*}url") or "").strip()
        blocked = (mirror.findtext("{*}blocked") or "").strip() == "true"
        if url and not blocked and covers_central(mirror.findtext("{*}mirrorOf") or ""):
            filled = re.sub(r"\$\{env\.(\w+)\}", lambda m: environment.get(m[1], ""), url)
            return filled.rstrip("/")
    return None


def repositories(
    environment: Mapping[str, str], settings_xml: Path, configured: Mapping[str, str], default: str
) -> dict[str, str]:
    """Remote repositories by name, Central first.

    Central is, in this order: ``EDGEWAY_MAVEN_URL``, ``central`` of jgo's own configuration, the mirror in
    the user's settings.xml, `default`. Further repositories of jgo's configuration follow. A mirror that
    wants a password is served from ``~/.netrc``.
    """
    central = environment.get("EDGEWAY_MAVEN_URL") or configured.get(CENTRAL)
    if not central and settings_xml.is_file():
        central = mirror_url(settings_xml.read_text(encoding="utf-8"), environment)
    others = {name: url for name, url in configured.items() if name != CENTRAL}
    return {CENTRAL: (central or default).rstrip("/"), **others}


def certificate_bundle(environment: Mapping[str, str]) -> str | None:
    """Bundle of certificates for requests, or None for its own.

    Requests brings its own certificates and knows nothing of the system's: behind a company's proxy pip
    works and jgo does not, unless it is told.
    """
    if environment.get("REQUESTS_CA_BUNDLE") or environment.get("CURL_CA_BUNDLE"):
        return None
    names = [environment.get("SSL_CERT_FILE"), environment.get("PIP_CERT")]
    names += [ssl.get_default_verify_paths().cafile, DEBIAN_BUNDLE]
    return next((name for name in names if name and Path(name).is_file()), None)
