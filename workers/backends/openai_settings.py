"""The options of an OpenAI-compatible backend, and the card that follows from them: pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx
import msgspec

from schemas.cards import Card
from workers.backends.openai_prices import PER, TEMPLATE_TOKENS, Prices, Tokens
from workers.backends.openai_prompts import IMAGES, Prompting, Template
from workers.backends.remote_keys import Key, Keys, bearer, is_header
from workers.backends.remote_options import Options, url_without_key
from workers.backends.remote_wire import Limits
from workers.errors import LoadError

LIMITS = Limits(answer_bytes=8 * 1024 * 1024)
PATHS = {"chat": "chat/completions", "embeddings": "embeddings"}
MAX_TOKENS = 512
MAX_PROMPT_BYTES = 32 * 1024
_SECRET = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)
_JSON = ("off", "object", "schema")
_TOKEN_FIELDS = ("max_tokens", "max_completion_tokens")
_OWN = frozenset({"messages", "input", "model", "stream", "n", "response_format", "logprobs", *_TOKEN_FIELDS})
"""What `extra` must not touch: it is Edgeway's to say, or would break the bound of the cost."""


class Settings(NamedTuple):
    """What a backend does with a row. `models` is where the service lists its models, for free."""

    url: httpx.URL
    models: httpx.URL
    model: str
    mode: str
    prompting: Prompting
    tokens: Tokens
    image_tokens: int
    prices: Prices | None
    keys: Keys
    headers: dict[str, str]
    limits: Limits
    json: str
    output: str
    logprobs: bool
    token_field: str
    pass_params: tuple[str, ...]
    extra: dict[str, Any]
    dimensions: int | None
    max_prompt_bytes: int


def settings_of(card: Card, options: Mapping[str, Any]) -> Settings:
    """The settings that the options make; docs/backends.md lists them.

    Raises:
        LoadError: one that is missing, unknown, or makes no sense.
    """
    read = Options(card.capability, "openai", options)
    try:
        made = _read(card, read)
    except LoadError as error:
        name = card.capability
        raise error if str(error).startswith(name) else LoadError(f"{name}: {error}") from error
    read.end()
    return made


def bounded(card: Card, settings: Settings) -> Card:
    """The card with the upper bound of a call's cost.

    Raises:
        LoadError: the card states a lower one than the options allow a call to cost.
    """
    bound = prices_of(card, settings).most(settings.tokens)
    if card.max_cost is None:
        return msgspec.structs.replace(card, max_cost=bound)
    if card.max_cost < bound * (1 - 1e-9):
        raise LoadError(
            f"{card.capability}: max_cost is {card.max_cost:g} and a call may cost {bound:g}; raise it, or "
            "lower max_tokens, max_prompt_bytes or max_images"
        )
    return card


def prices_of(card: Card, settings: Settings) -> Prices:
    """The options' prices, else the card's: its price of a token is that of either kind."""
    if settings.prices is not None:
        return settings.prices
    return Prices(card.cost_per_call, card.cost_per_token, card.cost_per_token)


def _read(card: Card, read: Options) -> Settings:
    mode, model, url = read.text("mode") or "chat", read.text("model") or card.model, read.text("url")
    if mode not in PATHS:
        raise LoadError(f"the option mode is {mode!r}; give chat or embeddings")
    if url is None:
        raise LoadError("an openai backend needs the option url, such as https://HOST/v1")
    if not model:
        raise LoadError("an openai backend needs the option model")
    base = url_without_key(card.capability, url)
    as_json = _one_of("json", read.text("json") or "off", _JSON)
    if as_json == "schema" and not card.output_schema:
        raise LoadError("json is schema, and the card has no output_schema")
    prompt_bytes = read.count("max_prompt_bytes", MAX_PROMPT_BYTES, 1, 16 * 1024 * 1024)
    images, image_tokens = read.count("max_images", 0, 0, 64), read.count("image_tokens", 0, 0, 10**6)
    prices = _prices(card, read)
    if images and not image_tokens and (card.cost_per_token if prices is None else prices.per_prompt):
        raise LoadError("tokens cost something and images are taken: give image_tokens, the most of an image")
    answer = read.count("max_tokens", MAX_TOKENS, 1, 10**6) if mode == "chat" else 0
    return Settings(
        url=_under(base, PATHS[mode]),
        models=_under(base, "models"),
        model=model,
        mode=mode,
        prompting=_prompting(read, images),
        tokens=Tokens(prompt_bytes + TEMPLATE_TOKENS + images * image_tokens, answer),
        image_tokens=image_tokens,
        prices=prices,
        keys=_keys(read),
        headers=_plain(read.texts_by_name("headers")),
        limits=read.limits(LIMITS),
        json=as_json,
        output=read.text("output") or "text",
        logprobs=read.flag("logprobs"),
        token_field=_one_of("token_field", read.text("token_field") or "max_tokens", _TOKEN_FIELDS),
        pass_params=_passed(read),
        extra=_extra(read),
        dimensions=read.count("dimensions", 0, 0, 10**6) or None,
        max_prompt_bytes=prompt_bytes,
    )


def _under(base: httpx.URL, path: str) -> httpx.URL:
    return base.copy_with(path=f"{base.path.rstrip('/')}/{path}")


def _prompting(read: Options, images: int) -> Prompting:
    system, prompt = read.text("system"), read.text("prompt")
    return Prompting(
        None if system is None else Template(system, "system"),
        None if prompt is None else Template(prompt),
        read.texts("images") or IMAGES,
        read.text("messages") or "messages",
        images,
    )


def _prices(card: Card, read: Options) -> Prices | None:
    prompt = read.number("input_per_1m_tokens", -1.0, 0.0, 1e9)
    answer = read.number("output_per_1m_tokens", -1.0, 0.0, 1e9)
    if prompt < 0 and answer < 0:
        return None
    return Prices(card.cost_per_call, max(0.0, prompt) / PER, max(0.0, answer) / PER)


def _keys(read: Options) -> Keys:
    key_env, key_file = read.text("key_env"), read.text("key_file")
    named = {name: Key(env=variable) for name, variable in read.texts_by_name("headers_env").items()}
    return Keys({**bearer(key_env or "", key_file or "").keys, **named})


def _plain(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not is_header(name, value):
            raise LoadError(f"the option headers holds {name!r}, which is no header of one line of ASCII")
        if _SECRET.search(name):
            raise LoadError(f"the option headers holds {name}; keys go into key_env or headers_env")
    return headers


def _extra(read: Options) -> dict[str, Any]:
    extra = read.mapping("extra")
    temperature = read.number("temperature", -1.0, 0.0, 2.0)
    if temperature >= 0:
        extra.setdefault("temperature", temperature)
    return _untouched("extra", extra)


def _passed(read: Options) -> tuple[str, ...]:
    passed = read.texts("pass_params")
    _untouched("pass_params", dict.fromkeys(name for name in passed if name != "max_tokens"))
    return passed


def _untouched(option: str, given: dict[str, Any]) -> dict[str, Any]:
    if taken := sorted(_OWN & set(given)):
        raise LoadError(f"the option {option} must not hold {', '.join(taken)}")
    return given


def _one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise LoadError(f"the option {name} is {value!r}; give {', '.join(known)}")
    return value
