"""Words that say little by themselves, English and Chinese; for summaries and search."""

from __future__ import annotations

from typing import Final

_ENGLISH = """
a about above after again all also am an and any are as at be because been before being below between
both but by can could did do does doing down during each few for from further had has have having he her
here hers him his how i if in into is it its itself just may me might more most must my no nor not now
of off on once only or other our out over own said same she should so some such than that the their them
then there these they this those through to too under until up very was we were what when where which
while who whom why will with would you your 's
"""
_CHINESE = """
的 了 和 是 在 也 就 都 而 及 与 或 一个 我 你 他 她 它 我们 你们 他们 这 那 这个 那个 这些 那些 之 其
此 于 把 被 让 给 从 向 对 对于 为 为了 以 以及 但 但是 并 并且 不 没有 有 等 着 过 地 得 上 中 下 里 将
又 还 很 最 更 因为 所以 如果 则 即 由 到 会 能 可以 要 说 去 来 吗 呢 吧 啊 什么 怎么 如何 哪 哪些 哪里
谁 几 多少 一 二 三 个 年 月 日 时
"""
STOPWORDS: Final = frozenset(_ENGLISH.split()) | frozenset(_CHINESE.split())
