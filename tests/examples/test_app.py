import json
from pathlib import Path

import pytest

from examples.demo.classifiers import folder_of
from workers.catalogue import load_app

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"


@pytest.mark.parametrize("file", sorted(DEMO.glob("models/*/*/card.json")), ids=lambda file: file.parts[-3])
def test_a_capability_is_named_by_the_card_of_its_model(file):
    told = json.loads(file.read_text(encoding="utf-8"))
    cards = {f"{b.card.side}/{b.card.capability}": b.card for b in load_app(str(DEMO / "app.py"))}
    card = cards[f"{told['side']}/{told['capability']}"]
    assert (card.model, card.version) == (told["name"], told["version"])
    assert (file.parts[-3], file.parts[-2]) == (told["name"], told["version"])


@pytest.mark.parametrize("side", ["local", "cloud"])
def test_the_intent_models_state_their_calibration(side):
    cards = {f"{b.card.side}/{b.card.capability}": b.card for b in load_app(str(DEMO / "app.py"))}
    card = cards[f"{side}/nlp/intent"]
    told = json.loads((folder_of(card.model) / card.version / "card.json").read_text(encoding="utf-8"))
    assert card.calibrated
    assert card.calibration is not None
    assert card.calibration.ece == told["calibration"]["ece"] <= 0.02
    assert not cards["local/vision/image_class"].calibrated
