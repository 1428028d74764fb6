"""Words of Chinese: jieba's dictionary as rjieba has it, with terms of finance added."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import rjieba

_TERMS = """
营业收入 营业总收入 营业成本 营业利润 营业外收入 净利润 归母净利润 毛利率 净利率 毛利润 利润总额
总资产 总负债 净资产 资产总额 负债总额 资产负债率 现金流 经营现金流 应收账款 应付账款
同比 环比 每股收益 净资产收益率 研发费用 销售费用 管理费用 财务费用 主营业务 上年同期
前三季度 上半年 下半年 财务报告 财报 股东权益 派息 分红 市盈率 市净率
"""
_FREQUENCY = 20_000


@cache
def _words() -> rjieba.Jieba:
    """One of its own: words added to the package's would be added for the whole process. 26 MB and 0.3 s; the
    import, which reads the package's, takes as long.
    """
    import rjieba

    words = rjieba.Jieba()
    for term in _TERMS.split():
        words.add_word(term, _FREQUENCY, "n")
    return words


def cut(text: str) -> list[tuple[str, int, int]]:
    """(word, start, end) of each word."""
    found: list[tuple[str, int, int]] = _words().tokenize(text)
    return found
