"""The features of both intent models: those of the library's, which is the demo's local one."""

from workers.library.nlp.hashed import (
    ORDERED,
    PAIRED,
    SPECS,
    FeatureSpec,
    counts,
    features,
    grams,
    specs_of,
    tokens,
)

__all__ = ["ORDERED", "PAIRED", "SPECS", "FeatureSpec", "counts", "features", "grams", "specs_of", "tokens"]
