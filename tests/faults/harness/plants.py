"""Personal data that was never anybody's, in formats that can be recognised, and what looks for it.

Nothing here is of the product: checksums are computed by their published rules.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from typing import Any

KINDS = ("email", "card", "iban", "resident_id", "mobile", "ip", "ssn")


def plant(kind: str, choose: random.Random) -> str:
    """One value of a kind of KINDS."""
    return {
        "email": _email,
        "card": _card,
        "iban": _iban,
        "resident_id": _resident_id,
        "mobile": _mobile,
        "ip": _ip,
        "ssn": _ssn,
    }[kind](choose)


def is_card(text: str) -> bool:
    """Luhn."""
    digits = [int(c) for c in text if c.isdigit()]
    doubled = [sum(divmod(2 * d, 10)) for d in digits[-2::-2]]
    return 13 <= len(digits) <= 19 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def is_iban(text: str) -> bool:
    """ISO 13616: mod 97."""
    plain = "".join(text.split()).upper()
    if not plain.isalnum() or not 15 <= len(plain) <= 34:
        return False
    return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


def leaves(value: Any) -> Iterator[str]:
    """Every text, number and key in a payload, as text."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner)
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif value is not None:
        yield str(value)


class Payload:
    """What was sent, to be searched."""

    def __init__(self, *parts: Any) -> None:
        self._whole = "\0".join(leaf for part in parts for leaf in leaves(part)).casefold()
        self._bare = _bare(self._whole)

    def has(self, planted: str) -> bool:
        """Whether it stands there, as it is or with other spaces and dashes."""
        bare = _bare(planted.casefold())
        return planted.casefold() in self._whole or (len(bare) >= 9 and bare in self._bare)


def _bare(text: str) -> str:
    return text.translate(str.maketrans("", "", " -.\n"))


def _email(choose: random.Random) -> str:
    name = "".join(choose.choices(string.ascii_lowercase, k=9))
    return (
        f"{name}{choose.randrange(1000)}@{choose.choice(('mail', 'post', 'web'))}-{choose.randrange(99)}.net"
    )


def _card(choose: random.Random) -> str:
    digits = "4" + "".join(choose.choices(string.digits, k=14))
    return next(digits + last for last in string.digits if is_card(digits + last))


def _iban(choose: random.Random) -> str:
    rest = "".join(choose.choices(string.digits, k=18))
    check = 98 - int(rest + str(int("D", 36)) + str(int("E", 36)) + "00") % 97
    return f"DE{check:02d}{rest}"


def _resident_id(choose: random.Random) -> str:
    """GB 11643: region, birth date, sequence, check character."""
    date = f"{choose.randrange(1955, 2004)}{choose.randrange(1, 13):02d}{choose.randrange(1, 29):02d}"
    digits = choose.choice(("110101", "310104", "440305")) + date + f"{choose.randrange(1, 999):03d}"
    total = sum(int(d) * pow(2, 17 - at, 11) for at, d in enumerate(digits))
    return digits + "10X98765432"[total % 11]


def _mobile(choose: random.Random) -> str:
    return choose.choice(("138", "139", "150", "186")) + "".join(choose.choices(string.digits, k=8))


def _ip(choose: random.Random) -> str:
    return ".".join(str(choose.randrange(80, 95) if at == 0 else choose.randrange(1, 254)) for at in range(4))


def _ssn(choose: random.Random) -> str:
    return f"{choose.randrange(100, 650)}-{choose.randrange(10, 99)}-{choose.randrange(1000, 9999)}"
