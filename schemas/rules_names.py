"""Names of a rules file that lead out of it: hosts, URLs, modules, detectors and kinds of findings."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Final

from schemas.places import Path
from schemas.rules_structs import RulesFile, TaskRule
from schemas.rules_text import RulesText

_LABEL: Final = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST: Final = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*\.?(:(?P<port>\d{{1,5}}))?")
_IPV6: Final = re.compile(r"\[([0-9A-Fa-f:.]+)\](:(?P<port>\d{1,5}))?")
_MODULE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_KIND: Final = re.compile(r"[a-z][a-z0-9_]*")
_PORTS: Final = range(1, 65536)


def check_hosts(text: RulesText, hosts: tuple[str, ...]) -> None:
    """Raises:
    RulesError: what is no HOST, HOST:PORT or *.DOMAIN.
    """
    seen: set[str] = set()
    for index, host in enumerate(hosts):
        if why := _wrong_host(host):
            text.refuse(("hosts", index), f"{why}; give HOST, HOST:PORT, or *.DOMAIN for all hosts below one")
        if host.lower() in seen:
            text.refuse(("hosts", index), f"the host {host!r} stands twice; give it once")
        seen.add(host.lower())


def _wrong_host(host: str) -> str:
    if "://" in host or "/" in host:
        return f"{host!r} is a URL or a path; only its host is compared"
    if host.startswith("["):
        return "" if _is_ipv6(host) else f"{host!r} is no address; an IPv6 address stands in brackets"
    if not host.isascii():
        return f"{host!r} is not ASCII; write the name as xn--..."
    found = _HOST.fullmatch(host)
    if found is None or len(host) > 253 + 6:
        star = " (a star stands for the first labels only)" if "*" in host else ""
        return f"{host!r} is no host name{star}"
    if found["port"] is not None and int(found["port"]) not in _PORTS:
        return f"{host!r} has no port of 1 to 65535"
    return ""


def _is_ipv6(host: str) -> bool:
    found = _IPV6.fullmatch(host)
    if found is None:
        return False
    try:
        ipaddress.IPv6Address(found[1])
    except ValueError:
        return False
    return int(found["port"] or 1) in _PORTS


def check_url(text: RulesText, task: TaskRule, path: Path) -> None:
    """Raises:
    RulesError: a `fallback_url` that leads nowhere, or that holds a password; headers without one.
    """
    if task.fallback_url is None:
        if task.fallback_headers:
            text.refuse((*path, "fallback_headers"), "headers without a `fallback_url`; give one")
        return
    place = (*path, "fallback_url")
    authority = re.split(r"[/?#]", task.fallback_url.partition("://")[2], maxsplit=1)[0]
    user, _, host = authority.rpartition("@")
    if user:
        text.refuse(place, "a user or password in a URL is seen by all who read the rules; leave it out")
    if not (_is_ipv6(host) if host.startswith("[") else _leads_somewhere(host)):
        why = f"no URL: {host!r} is no host, with or without a port of 1 to 65535"
        text.refuse(place, f"{why}; give http://HOST... or https://HOST...")


def _leads_somewhere(authority: str) -> bool:
    host, colon, port = authority.partition(":")
    good_port = port.isdecimal() and port.isascii() and len(port) <= 5 and int(port) in _PORTS
    return bool(host) and not re.search(r"[\s\[\]\\]", host) and (good_port or not colon)


def check_modules(text: RulesText, file: RulesFile) -> None:
    """Raises:
    RulesError: an app, decomposer or merge that is neither a module nor a Python file, or stands twice.
    """
    named = (("apps", file.apps), ("decomposers", file.decomposers), ("merges", file.merges))
    for key, names in named:
        for index, name in enumerate(names):
            if not name.endswith(".py") and not _MODULE.fullmatch(name):
                why = f"{name!r} is no module; give PACKAGE.MODULE, or FILE.py beside the rules file"
                text.refuse((key, index), why)
            if name in names[:index]:
                text.refuse((key, index), f"{name!r} stands twice; give it once")


def check_examination(
    text: RulesText, path: Path, detectors: Sequence[str] | None, kinds: Mapping[str, Sequence[str]]
) -> None:
    """Raises:
    RulesError: detectors without a name or named twice, or kinds (by key) that are no words.
    """
    names = detectors or ()
    for index, name in enumerate(names):
        place = (*path, "detectors", index)
        if not name.strip() or name != name.strip():
            text.refuse(place, f"{name!r} is no name of a detector; mind the spaces")
        if name in names[:index]:
            text.refuse(place, f"the detector {name!r} stands twice; give it once")
    for key, words in kinds.items():
        for index, kind in enumerate(words):
            if not _KIND.fullmatch(kind):
                text.refuse((*path, key, index), f"{kind!r} is no kind of finding; write a word as `person`")


def check_privacy(text: RulesText, file: RulesFile) -> None:
    """Raises:
    RulesError: kinds that are no words, a kind that is both masked and ignored, a mask of what nobody
    finds. Whether the detectors exist is known where they are installed.
    """
    rule = file.privacy
    check_examination(text, ("privacy",), rule.detectors, {"mask": rule.mask, "ignore": rule.ignore})
    for index, kind in enumerate(rule.mask):
        if kind in rule.ignore:
            why = f"{kind!r} is ignored as well, so that nothing of it is masked; leave it out of one"
            text.refuse(("privacy", "mask", index), why)
    if rule.mask and rule.detectors == ():
        text.refuse(
            ("privacy", "mask"), "`detectors` is empty: nothing would be found to mask; leave one out"
        )
