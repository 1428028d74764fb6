"""Renders the samples that `image/ocr` is measured on, and measures it.

    python -m training.vision_ocr render FONTS   # writes tests/data/vision/ocr_*.png and ocr.json
    python -m training.vision_ocr measure [FONTS] # the checked-in samples; with FONTS 60 more, not kept

FONTS is a folder with DejaVuSerif.ttf, LiberationSans-Regular.ttf, NotoSansCJK-Regular.ttc,
NotoSerifCJK-Regular.ttc and wqy-zenhei.ttc (Debian's fonts-dejavu-core, fonts-liberation, fonts-noto-cjk,
fonts-wqy-zenhei). The texts are our own. `scan.png` beside them is `page.png` of scikit-image, a photographed
page of its documentation (BSD-3-Clause).
"""

from __future__ import annotations

import asyncio
import io
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from workers.backends import Row
from workers.library.vision.ocr import OcrBackend

SAMPLES = Path(__file__).parent.parent / "tests" / "data" / "vision"
FONTS = {
    "en": ("DejaVuSerif.ttf", "LiberationSans-Regular.ttf"),
    "zh": ("NotoSansCJK-Regular.ttc", "NotoSerifCJK-Regular.ttc", "wqy-zenhei.ttc"),
}
SC = 2
"""Which face of a collection is simplified Chinese."""
LINES = {
    "en": (
        "Invoice 2024-0187 of 14 March 2024",
        "Total due: 1,284.50 EUR within 30 days",
        "The pump was replaced before the night shift.",
        "Keep the container closed and away from heat",
        "Platform 7, departs 09:42, coach 12",
        "Revenue grew by 8.4% to 31.2 million",
        "Please sign here and return both copies",
        "Serial no. QX-55A71, firmware 3.0.12",
        "Meeting moved to room B204 at 15:30",
        "Warning: do not open while the fan turns",
        "Net weight 250 g, best before 11/2026",
        "Our office is closed on public holidays.",
    ),
    "zh": (
        "发票号码：2024-0187",
        "合计金额：1284.50元",
        "请在三十天内付款",
        "水泵已在夜班之前更换",
        "请将容器密闭并远离热源",
        "第七站台，上午九点四十二分发车",
        "营业收入同比增长百分之八点四",
        "请在此处签名并寄回两份",
        "会议改到二楼会议室举行",
        "警告：风扇转动时请勿打开",
        "净含量二百五十克",
        "法定节假日本公司不营业",
    ),
}


def rendered(language: str, seed: int, fonts: Path) -> tuple[bytes, list[str]]:
    """A page of a few lines as PNG, and its lines: font, size, colour, slant, blur and noise by the seed."""
    rng = random.Random(f"{language}{seed}")
    lines = rng.sample(LINES[language], rng.randint(2, 5))
    file = next(iter(sorted(fonts.rglob(rng.choice(FONTS[language])))))
    size = rng.randint(15, 30)
    font = ImageFont.truetype(str(file), size, index=SC if file.name.startswith("Noto") else 0)
    paper, ink = rng.randint(200, 255), rng.randint(0, 90)
    image = Image.new("L", (round(size * 26), round(size * 1.9 * (len(lines) + 1))), paper)
    draw = ImageDraw.Draw(image)
    for at, line in enumerate(lines):
        draw.text((size, size * (0.8 + 1.9 * at)), line, fill=ink, font=font)
    image = image.rotate(rng.uniform(-1.5, 1.5), Image.Resampling.BICUBIC, fillcolor=paper)
    image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0, 0.8)))
    noise = np.random.default_rng(seed).normal(0, rng.uniform(0, 8), (image.height, image.width))
    values = (np.asarray(image, np.float32) + noise).clip(0, 255).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(values // 16 * 17).save(out, "PNG", optimize=True)
    return out.getvalue(), lines


def distance(one: str, other: str) -> int:
    """Levenshtein's."""
    last = list(range(len(other) + 1))
    for at, char in enumerate(one, 1):
        row = [at]
        for to, there in enumerate(other, 1):
            row.append(min(last[to] + 1, row[-1] + 1, last[to - 1] + (char != there)))
        last = row
    return last[-1]


def plain(text: str) -> str:
    """Without space, and with the ASCII forms of punctuation: their widths cannot be seen."""
    return "".join(text.translate(str.maketrans("：，。（）", ":,.()")).split())


def error_rate(backend: OcrBackend, samples: list[tuple[bytes, list[str]]]) -> tuple[float, float]:
    """Wrong characters per character, space aside, and milliseconds of processor an image."""
    wrong = whole = 0
    began = time.process_time()
    for image, lines in samples:
        (answer,) = backend.infer([Row({"image": image}, {})])
        wanted = plain("".join(lines))
        wrong += distance(plain(answer.output["text"]), wanted)
        whole += len(wanted)
    return wrong / whole, (time.process_time() - began) * 1000 / len(samples)


def kept() -> dict[str, list[tuple[bytes, list[str]]]]:
    """The checked-in samples by kind: `en`, `zh`, `scan`."""
    found: dict[str, list[tuple[bytes, list[str]]]] = {"en": [], "zh": [], "scan": []}
    told: dict[str, Any] = json.loads((SAMPLES / "ocr.json").read_text())
    for name, lines in told.items():
        kind = "scan" if name.startswith("scan") else name.split("_")[1]
        found[kind].append(((SAMPLES / name).read_bytes(), lines))
    return found


def ready() -> OcrBackend:
    backend = OcrBackend()
    asyncio.run(backend.load())
    return backend


def main(act: str, fonts: Path | None = None) -> None:
    if act == "render" and fonts is not None:
        told = json.loads((SAMPLES / "ocr.json").read_text()) if (SAMPLES / "ocr.json").exists() else {}
        for language in ("en", "zh"):
            for seed in range(4):
                image, told[f"ocr_{language}_{seed}.png"] = rendered(language, seed, fonts)
                (SAMPLES / f"ocr_{language}_{seed}.png").write_bytes(image)
        (SAMPLES / "ocr.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
        return
    backend = ready()
    for kind, samples in kept().items():
        print(kind, len(samples), "kept: error rate {:.4f}, {:.0f} ms".format(*error_rate(backend, samples)))
    for language in ("en", "zh") if fonts is not None else ():
        more = [rendered(language, seed, fonts) for seed in range(100, 130)]
        print(language, len(more), "more: error rate {:.4f}, {:.0f} ms".format(*error_rate(backend, more)))


if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:]))
