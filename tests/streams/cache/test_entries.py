from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.codec import encode
from schemas.messages import (
    Claim,
    Decision,
    Failure,
    Model,
    Partial,
    RequestInfo,
    Result,
    Timings,
    Verdict,
)
from streams.cache import (
    MAX_ENTRY_BYTES,
    NOTHING,
    answer_entry,
    answer_of,
    kept_at,
    stamped,
    step_entry,
    step_of,
)
from tests.schemas.strategies import VALUES, structs

NORMAL = Verdict()
HIGH = Verdict(level="high", reasons=("email",))


def result(**fields: Any) -> Result:
    return Result(id="r", status="ok", **{"rules": "v1", "privacy": NORMAL, "output": 1, **fields})


def info(**fields: Any) -> RequestInfo:
    return RequestInfo(id="other", accepted=5, deadline=9, **{"digest": "d", "task": "t", **fields})


@given(VALUES, st.none() | st.floats(0, 1))
def test_an_answer_comes_back_as_it_was(output: Any, confidence: float | None):
    given_ = result(
        output=output,
        confidence=confidence,
        warnings=("w",),
        models={"s": Model(name="m", version="1")},
        sides={"s": "cloud"},
        decisions=(Decision(step="s", rule="score", side="cloud", reserved=0.5),),
        cost=0.5,
        timings={"s": Timings(total_ms=5)},
        tenant="x",
        task="t",
    )
    entry = answer_entry(given_)
    assert entry is not None
    kept = stamped(entry, 7)
    assert kept_at(kept) == 7
    found = answer_of(kept, info(tenant="x"), "v1")
    assert found is not None
    same = ("output", "confidence", "warnings", "models", "sides", "tenant", "task", "rules")
    assert found == Result(
        id="other",
        status="ok",
        digest="d",
        privacy=NORMAL,
        cached=True,
        decisions=(Decision(step="s", rule="score", side="cloud"),),
        **{name: getattr(given_, name) for name in same},
    )
    assert encode(result(output=found.output)) == encode(result(output=output))


@given(structs(Result, VALUES))
def test_only_a_whole_exact_answer_to_what_is_not_sensitive_is_kept(found: Result):
    may = (
        found.status == "ok"
        and not found.approximate
        and not found.missing
        and not found.cached
        and found.error is None
        and found.claim is None
        and found.rules is not None
        and found.privacy is not None
        and found.privacy.level == "normal"
        and not found.privacy.masked
    )
    assert (answer_entry(found) is not None) == may


@pytest.mark.parametrize(
    "fields",
    [
        {"privacy": HIGH},
        {"privacy": msgspec.structs.replace(HIGH, masked=True)},
        {"privacy": None},
        {"approximate": True},
        {"missing": ("s",)},
        {"cached": True},
        {"error": Failure(code="internal", message="no")},
        {"claim": Claim(dataref="s3://b/k", sha256="0", size=1)},
        {"rules": None},
        {"output": "x" * MAX_ENTRY_BYTES},
        {"output": object()},
        {"output": {1: 2**70}},
    ],
)
def test_what_gives_no_entry(fields: dict[str, Any]):
    assert answer_entry(result()) is not None
    assert answer_entry(result(**fields)) is None


@pytest.mark.parametrize("status", ["partial", "error"])
def test_no_partial_result_and_no_error_is_kept(status: Any):
    assert answer_entry(msgspec.structs.replace(result(), status=status)) is None


def test_an_entry_is_of_one_tenant_and_one_version_of_the_rules():
    plain = answer_entry(result(tenant="x"))
    assert plain is not None
    entry = stamped(plain, 7)
    assert answer_of(entry, info(tenant="x"), "v1") is not None
    assert answer_of(entry, info(tenant="y"), "v1") is None
    assert answer_of(entry, info(), "v1") is None
    assert answer_of(entry, info(tenant="x"), "v2") is None


@given(st.binary(max_size=60) | st.just(NOTHING))
def test_what_is_no_entry_gives_no_answer(raw: bytes):
    assert answer_of(raw, info(), "v1") is None
    assert answer_of(stamped(raw, 7), info(), "v1") is None
    assert step_of(raw, "r/s/local/0", 9) is None


@given(VALUES, st.sampled_from(["local", "cloud"]))
def test_a_step_comes_back_from_the_side_that_gave_it(output: Any, side: str):
    model = Model(name="m", version="2")
    given_ = Partial(
        subtask=f"r/s/{side}/1",
        deadline=5,
        output=output,
        confidence=0.5,
        model=model,
        cost=3,
        usage={"t": 1},
    )
    entry = step_entry(given_)
    assert entry is not None
    assert answer_of(entry, info(), "v1") is None
    found = step_of(entry, "\x1fx\x1fother/s/local/0", 77)
    wanted = Partial(
        subtask=f"\x1fx\x1fother/s/{side}/0",
        deadline=77,
        output=output,
        confidence=0.5,
        model=model,
        cached=True,
    )
    assert found is not None
    assert encode(found) == encode(wanted)


@pytest.mark.parametrize(
    "fields",
    [
        {"error": Failure(code="internal", message="no")},
        {"cached": True},
        {"claim": Claim(dataref="s3://b/k", sha256="0", size=1)},
        {"output": ["x" * 1024] * 300},
    ],
)
def test_what_gives_no_entry_of_a_step(fields: dict[str, Any]):
    good = Partial(subtask="r/s/local/0", deadline=5, output=1)
    assert step_entry(good) is not None
    assert step_entry(msgspec.structs.replace(good, **fields)) is None


def test_an_entry_of_another_format_is_none():
    """Caches outlive releases: an older one has no time before it."""
    plain = answer_entry(result())
    assert plain is not None
    assert plain.count(b"\xa6format\x02") == 1
    for old in (plain, plain.replace(b"\xa6format\x02", b"\xa6format\x01")):
        assert kept_at(old) is None
        assert answer_of(old, info(), "v1") is None
    assert answer_of(stamped(plain.replace(b"\xa6format\x02", b"\xa6format\x03"), 1), info(), "v1") is None
    assert answer_of(stamped(plain, 1), info(), "v1") is not None
    assert (kept_at(NOTHING), kept_at(b""), kept_at(stamped(b"", 1))) == (None, None, None)
