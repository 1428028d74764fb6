"""A llama model of random weights for tests of an OpenAI-compatible server: it babbles, always the same.

`python tests/servers/tiny_gguf.py FILE`; about 0.5 MB. Its vocabulary is the printable ASCII characters, with
single bytes for all the rest, so that it reads any text. Most of what it says is printable.
"""

from __future__ import annotations

import sys

import gguf
import numpy as np

WIDTH, HEADS, LAYERS, INNER, CONTEXT = 64, 4, 2, 128, 2048
SEED = 20260101
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: "
_SPECIAL = (b"<unk>", b"<s>", b"</s>")
_END = 2


def vocabulary() -> tuple[list[bytes], list[int]]:
    """Tokens and their types."""
    kinds = gguf.TokenType
    # A space is written so in vocabularies of this type.
    shown = [bytes([code]) if code != 0x20 else "\u2581".encode() for code in range(0x20, 0x7F)]
    tokens = [*_SPECIAL, *(b"<0x%02X>" % code for code in range(256)), *shown]
    types = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL, *[kinds.BYTE] * 256, *[kinds.NORMAL] * len(shown)]
    return tokens, [int(kind) for kind in types]


def weights(words: int) -> dict[str, np.ndarray]:
    """Every tensor by its name, seeded."""
    random = np.random.default_rng(SEED)

    def matrix(rows: int, columns: int, scale: float = 1.0) -> np.ndarray:
        return (random.standard_normal((rows, columns)) * scale / np.sqrt(columns)).astype(np.float32)

    ones = np.ones(WIDTH, np.float32)
    # The rows of single bytes are zeros: their logits are below those of the best.
    head = matrix(words, WIDTH, 3.0)
    head[:_END] = head[_END + 1 : len(_SPECIAL) + 256] = 0.0
    tensors = {
        "token_embd.weight": matrix(words, WIDTH, 8.0),
        "output_norm.weight": ones,
        "output.weight": head,
    }
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors[f"{block}{name}.weight"] = matrix(WIDTH, WIDTH)
        tensors[f"{block}ffn_gate.weight"] = matrix(INNER, WIDTH)
        tensors[f"{block}ffn_up.weight"] = matrix(INNER, WIDTH)
        tensors[f"{block}ffn_down.weight"] = matrix(WIDTH, INNER)
        tensors[f"{block}attn_norm.weight"] = tensors[f"{block}ffn_norm.weight"] = ones
    return tensors


def main(path: str) -> None:
    """Write the model to `path`."""
    tokens, types = vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(_END)
    writer.add_chat_template(TEMPLATE)
    for name, tensor in weights(len(tokens)).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1])
