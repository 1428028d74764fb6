"""The items of financial statements, and what they are called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

TERMS: dict[str, tuple[str, ...]] = {
    "revenue": (
        "营业总收入", "主营业务收入", "营业收入", "总收入", "营收", "收入总额",
        "total net sales", "total revenues", "total revenue", "net revenues", "net revenue", "revenues",
        "revenue", "net sales", "total sales", "turnover",
    ),
    "cost": (
        "营业总成本", "营业成本", "销售成本", "total cost of sales", "cost of sales", "cost of revenues",
        "cost of revenue", "cost of goods sold",
    ),
    "gross_profit": ("毛利润", "毛利额", "毛利", "gross profit"),
    "operating_profit": (
        "营业利润", "经营利润", "operating profit", "operating income", "income from operations",
        "profit from operations",
    ),
    "net_profit": (
        "归属于上市公司股东的净利润", "归属于母公司股东的净利润", "归母净利润", "净利润", "net profit",
        "net income", "net earnings", "profit for the year", "profit for the period",
    ),
    "assets": ("总资产", "资产总额", "资产总计", "资产合计", "total assets"),
    "liabilities": ("总负债", "负债总额", "负债合计", "负债总计", "total liabilities"),
    "equity": (
        "所有者权益合计", "股东权益合计", "所有者权益", "股东权益", "净资产", "total shareholders' equity",
        "total stockholders' equity", "shareholders' equity", "stockholders' equity", "total equity",
    ),
    "current_assets": ("流动资产合计", "流动资产", "total current assets", "current assets"),
    "current_liabilities": ("流动负债合计", "流动负债", "total current liabilities", "current liabilities"),
    "eps": (
        "基本每股收益", "稀释每股收益", "每股收益", "每股盈利", "diluted earnings per share",
        "basic earnings per share", "earnings per diluted share", "earnings per basic share",
        "earnings per share", "net income per diluted share", "net income per basic share",
        "net income per share", "diluted eps", "eps",
    ),
    "shares": ("总股本", "股本总数", "weighted average shares", "shares outstanding"),
}  # fmt: skip
"""By item; the first Chinese and the first English name that fits are the ones charts show."""

LOSSES = {
    "net_profit": ("归母净亏损", "净亏损", "净损失", "net loss"),
    "operating_profit": ("经营亏损", "营业亏损", "operating loss", "loss from operations"),
    "eps": (
        "每股亏损",
        "net loss per share",
        "net loss per diluted share",
        "loss per share",
        "loss per diluted share",
    ),
}
STATED = {
    "gross_margin": ("毛利率", "gross margin"),
    "operating_margin": ("营业利润率", "经营利润率", "operating margin"),
    "net_margin": ("净利率", "净利润率", "net margin", "net profit margin"),
    "debt_ratio": ("资产负债率", "debt ratio"),
    "roe": ("净资产收益率", "return on equity", "roe"),
}  # fmt: skip
"""Ratios that a report itself may state."""
_OTHER = (
    "非流动资产", "非流动负债", "有息负债", "少数股东权益", "扣除非经常性损益", "扣非净利润", "扣非",
    "经营活动产生的现金流量净额", "现金流", "现金", "股息", "分红", "派息", "研发费用", "研发投入", "市值",
    "订单", "合同负债", "存款", "贷款", "拨备", "减值", "资本开支", "资本支出", "利润总额", "税前利润",
    "息税前利润", "利息净收入", "净利息收入", "手续费", "管理资产", "融资", "募资",
    "non-current assets", "non-current liabilities", "operating cash flow", "free cash flow",
    "cash flow", "cash equivalents", "cash", "dividends", "dividend", "backlog", "repurchases", "repurchased",
    "operating expenses", "capital expenditures", "research and development", "deferred revenue",
    "capital expenditure", "capex", "deposits", "loans", "provisions", "provision", "impairments",
    "impairment", "charges", "profit before tax", "pre-tax profit", "pretax profit", "income before taxes",
    "net interest income", "interest income", "assets under management", "market capitalization",
    "market capitalisation", "market value", "net debt", "debt", "inventories", "inventory", "goodwill",
    "cost savings", "marketable securities", "adjusted ebitda", "ebitda", "segment",
)  # fmt: skip
"""Amounts behind these are no figure of an item before them."""


class Mention(NamedTuple):
    """`item` is a key of TERMS or STATED, None of anything else whose amounts are its own."""

    item: str | None
    start: int
    end: int
    negative: bool = False


def _lexicon() -> dict[str, tuple[str | None, bool]]:
    found: dict[str, tuple[str | None, bool]] = dict.fromkeys(_OTHER, (None, False))
    for item, terms in (*TERMS.items(), *STATED.items()):
        found |= dict.fromkeys(terms, (item, False))
    for item, terms in LOSSES.items():
        found |= dict.fromkeys(terms, (item, True))
    return found


_LEXICON = _lexicon()
_LONGEST_FIRST = sorted(map(re.escape, _LEXICON), key=len, reverse=True)
_TERM = re.compile(
    rf"\b(?:{'|'.join(filter(str.isascii, _LONGEST_FIRST))})\b"
    rf"|{'|'.join(term for term in _LONGEST_FIRST if not term.isascii())}"
)
_QUALIFIERS = frozenset((
    "total", "consolidated", "net", "quarterly", "annual", "record", "overall", "group", "company", "its",
    "the", "their", "our", "of", "and", "in", "with", "year", "full-year", "fiscal", "quarter", "gaap", "had",
    "by", "a", "first", "second", "third", "fourth", "first-quarter", "second-quarter", "third-quarter",
    "fourth-quarter", "that", "while", "on", "was", "were", "expects", "from", "reports", "posts", "records",
    "generates", "has", "saw", "shows", "for", "to", "at", "as", "or", "but", "which", "this", "an", "full",
    "half-year", "interim", "global", "worldwide", "higher", "lower", "strong",
))  # fmt: skip
_WORD = re.compile(r"([A-Za-z][\w-]*|'s|\u2019s)\s+$")
_NO_AMOUNT = re.compile(
    r"\s(?:per|growth|ratio|multiple|target|tax)\b|(?:增长额|增幅|目标|占比)", re.IGNORECASE
)
"""Behind an item: what follows is not its amount."""
_PART = re.compile(r"(?:(?<!主营)业务|产品|分部|板块|地区|国内|海外|境外|境内|子公司|其他)$")


def find_items(text: str) -> Iterator[Mention]:
    """Every mention, in the order of the text. The revenue of a part ("Services revenue") is none of the
    whole's."""
    for match in _TERM.finditer(_lower(text)):
        item, negative = _LEXICON[match[0]]
        if item == "revenue" and _of_a_part(text[max(0, match.start() - 30) : match.start()]):
            item = None
        if _NO_AMOUNT.match(text, match.end()):
            item = None
        yield Mention(item, match.start(), match.end(), negative)


def _lower(text: str) -> str:
    """In small letters, every character in its place: a few letters become two when lowered."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)


def _of_a_part(before: str) -> bool:
    if _PART.search(before):
        return True
    word = _WORD.search(before)
    if word is None or word[1] in ("'s", "\u2019s"):
        return False
    return word[1].lower() not in _QUALIFIERS and not word[1].endswith("ed")


_LABEL_NOISE = re.compile(
    r"[（(][^（()）]{0,60}[）)]|[:：*\d\s]+$|^[\s一二三四五六七八九十、其中：:减加]+[、：:]"
)


def item_of(label: str) -> str | None:
    """The item of a table's row; None where the label is none of TERMS, whole."""
    plain = _plain(label)
    if plain in TERMS:
        return plain
    if plain == "gross margin":
        return "gross_profit"
    item, _negative = _LEXICON.get(plain, (None, False))
    return item if item in TERMS else None


def is_loss(label: str) -> bool:
    """Whether a row's amounts are losses, written without a sign."""
    return _LEXICON.get(_plain(label), (None, False))[1]


def _plain(label: str) -> str:
    """Without numbering and what stands in brackets: `四、净利润（净亏损以“-”号填列）` is `净利润`."""
    return " ".join(_LABEL_NOISE.sub("", label.strip()).replace("\u2019", "'").split()).lower()
