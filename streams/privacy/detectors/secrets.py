"""Keys to other systems: tokens with known beginnings, private keys, passwords and user names."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from streams.privacy.finding import Detector, Finding

NAME = "secrets"
_KNOWN = re.compile(
    r"(?a)\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_\w{30,}|\bglpat-[\w-]{20,}"
    r"|\bsk-(?:[a-z]+-)?[\w-]{20,}|\b[sr]k_(?:live|test)_\w{16,}|\bxox[abeoprs]-[\w-]{10,}|\bAIza[\w-]{30,}"
    r"|\bya29\.[\w-]{20,}|\bSG\.[\w-]{16,}\.[\w-]{16,}|\bhf_[A-Za-z]{30,}|\bnpm_\w{30,}|\bpypi-[\w-]{30,}"
    r"|\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*|-----BEGIN [A-Z ]*PRIVATE KEY-----|\bssh-(?:rsa"
    r"|ed25519) AAAA[\w+/]{20,}"
    r"|\bBearer [\w.~+/-]{16,}|://[^\s/:@]{1,64}:[^\s/@]{1,64}@"
)
_SAID = re.compile(
    r"(?i)(?:password|passwort|passphrase|passcode|pass ?word|\bpwd|\bpasswd|contraseña|mot de passe"
    r"|wachtwoord|密码|口令"
    r"|api[ _-]?key|secret(?:[ _-]?key)?|access[ _-]?(?:key|token)|auth[ _-]?token|\btoken|\bpin\b"
    r"|\bcvv2?|\bcvc)"
    r"(?:\s+(?:code|number))?\s*(?:is|ist|est|es|=|:|：|是|为)\s*[\"'“]?([^\s\"'”,，。]{3,})"
)
_CVV = re.compile(r"(?i)\b(?:cvv2?|cvc2?)\s?(?:code|number)?\s?:?\s?(\d{3,4})\b")
_USER = re.compile(
    r"(?i)(?:user ?name|user ?id|login|screen ?name|nick ?name|handle|benutzername|用户名|账号|微信号?|QQ号?)"
    r"\s*(?:is|ist|=|:|：|是|为)\s*[\"'“]?([^\s\"'”,，。]{3,})"
)
_HANDLE = re.compile(r"(?<![\w@.])@[A-Za-z]\w{2,30}\b(?!\.\w)")
_RANDOM = re.compile(r"(?a)(?<![\w+/=-])[A-Za-z0-9_+/-]{24,128}={0,2}(?![\w+/=-])")
_PARTS = tuple(map(re.compile, ("[0-9]", "[A-Z]", "[a-z]")))
_LEAST_BITS = 3.6
"""Shannon entropy a character, in bits; words and paths run together stay below."""


class Secrets:
    """Secrets and user names."""

    name = NAME

    def find(self, text: str, /) -> Iterator[Finding]:
        if len(text) < 6:
            return
        for match in _KNOWN.finditer(text):
            yield Finding("secret", match[0], 1.0, NAME)
        for match in _SAID.finditer(text):
            if re.search(r"[\d!#$%&*@^]", match[1]) or re.search(
                r"[=:：]", match[0][: match.start(1) - match.start()]
            ):
                yield Finding("secret", match[1], 0.9, NAME)
        yield from (Finding("secret", match[1], 0.9, NAME) for match in _CVV.finditer(text))
        for match in _USER.finditer(text):
            yield Finding("username", match[1], 0.9, NAME)
        if "@" in text:
            yield from (Finding("username", one, 0.9, NAME) for one in _HANDLE.findall(text))
        if len(text) >= 24:
            for match in _RANDOM.finditer(text):
                if all(part.search(match[0]) for part in _PARTS) and _bits(match[0]) >= _LEAST_BITS:
                    yield Finding("secret", match[0], 0.7, NAME)


def _bits(text: str) -> float:
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def detector() -> Detector:
    """The detector `secrets`."""
    return Secrets()
