"""Our own words in reports, in English and Chinese, and how values are written."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

from schemas.claims import claim_of
from schemas.messages import Claim

Language = Literal["en", "zh"]
LONGEST = 20_000
"""Characters of one text that are shown."""
_LONGEST_CELL = 300
_BLOB = re.compile(r"[A-Za-z0-9+/=_-]{400,}")
# Of no use in a text, and some of them pretend an order of letters that is not there.
_UNSHOWN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef]"
)
_WORDS = {
    "report": ("Report", "报告"),
    "financial_report": ("Financial report", "财报分析"),
    "summary": ("Overview", "概要"),
    "figures": ("Figures", "财务数据"),
    "item": ("Item", "项目"),
    "growth": ("Growth", "增长"),
    "ratios": ("Ratios", "财务比率"),
    "indicators": ("Indicators", "指标"),
    "indicator": ("Indicator", "指标"),
    "value": ("Value", "数值"),
    "formula": ("Formula", "公式"),
    "period": ("Period", "期间"),
    "periods": ("Periods", "期间"),
    "chart": ("Chart", "图表"),
    "entities": ("Named in the text", "文中提及"),
    "companies": ("Companies", "公司"),
    "people": ("People", "人物"),
    "places": ("Places", "地点"),
    "more": ("Further", "其他"),
    "output": ("Answer", "结果"),
    "nothing": ("There is no output.", "没有结果。"),
    "answered": ("How it was answered", "处理过程"),
    "step": ("Step", "步骤"),
    "side": ("By", "位置"),
    "local": ("the edge", "边缘"),
    "cloud": ("the cloud", "云端"),
    "model": ("Model", "模型"),
    "waited": ("Waited", "等待"),
    "took": ("Took", "用时"),
    "cost": ("Cost", "费用"),
    "total": ("Total time", "总时间"),
    "confidence": ("Confidence", "置信度"),
    "request": ("Request", "请求"),
    "status": ("Status", "状态"),
    "privacy": ("Privacy", "隐私"),
    "missing": ("Without an answer", "未答复的步骤"),
    "ok": ("complete", "完成"),
    "partial": ("in part", "部分完成"),
    "error": ("failed", "失败"),
    "age": ("Age of the answer", "结果时间"),
    "degraded": ("Less than the best because", "降级原因"),
    "cloud_away": ("the cloud is away", "云端不可用"),
    "cloud_slow": ("the cloud is slow", "云端响应慢"),
    "cloud_failed": ("the cloud failed", "云端出错"),
    "cloud_refused": ("the cloud is closed to it", "云端被禁止"),
    "over_budget": ("the budget does not allow more", "超出预算"),
    "low_confidence": ("the answer is below its threshold", "低于阈值"),
    "stale_cache": ("it is an older answer to an equal request", "较早的缓存结果"),
    "parts_missing": ("some steps have no answer", "部分步骤缺失"),
    "claim": ("stored apart", "另行存放"),
    "left": ("more", "更多"),
    "yoy": ("growth on the year before", "同比"),
    "qoq": ("growth on the quarter before", "环比"),
    "ratio": ("ratio", "比率"),
    "amount": ("amount", "金额"),
}


def word(key: str, language: Language) -> str:
    """Our word for `key`; of a key that we have none for, itself."""
    found = _WORDS.get(key)
    return key if found is None else found[language == "zh"]


def clean(text: str) -> str:
    """`text` without characters that show nothing or turn the order of others round; line ends are `\\n`."""
    return _UNSHOWN.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def cut(text: str, most: int = LONGEST) -> str:
    """At most so many characters; data in letters (base64) as its length."""
    if _BLOB.fullmatch(text):
        return f"{text[:24]}… ({len(text):,} characters)"
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def number(value: int | float) -> str:
    """A number for people: ten digits, thousands apart in floats (an integer may be a year or an id)."""
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value) if abs(value) < 10**30 else f"{value:.6e}"
    return f"{value:,.10g}"


def percent(value: float) -> str:
    """A share in [0, 1] as it is read."""
    return f"{100 * value:.1f} %"


def milliseconds(value: float) -> str:
    """A time in ms as it is read, from 10 s on in seconds."""
    return (
        f"{value / 1000:,.1f} s"
        if value >= 10_000
        else f"{value:,.0f} ms"
        if value >= 10
        else f"{value:.1f} ms"
    )


def size(count: int) -> str:
    """A number of bytes as it is read."""
    for step, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= step:
            return f"{count / step:.1f} {name}"
    return f"{count} bytes"


def of_claim(claim: Claim, language: Language) -> str:
    """What is known of a payload without its content."""
    kind = f", {claim.content_type}" if claim.content_type else ""
    return f"{word('claim', language)}: {size(claim.size)}{kind}, SHA-256 {claim.sha256[:16]}…"


def shown(value: Any, language: Language = "en", most: int = _LONGEST_CELL) -> str:
    """`value` on one line; maps and lists as JSON."""
    if value is None or (isinstance(value, str | list | tuple | dict) and not value):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, str):
        return cut(value, most)
    if isinstance(value, bytes):
        return f"<{size(len(value))}>"
    claim = claim_of(value)
    if claim is not None:
        return of_claim(claim, language)
    return cut(_flat(value, most), most)


def _flat(value: Any, most: int) -> str:
    if isinstance(value, list | tuple) and all(isinstance(each, str | int | float) for each in value[:most]):
        return ", ".join(shown(each, most=most) for each in value[:most])
    return json.dumps(value, ensure_ascii=False, default=lambda one: f"<{size(len(one))}>")


def language_of(*texts: str) -> Language:
    """Chinese where a text has a character of it."""
    return "zh" if any("\u4e00" <= letter <= "\u9fff" for text in texts for letter in text) else "en"
