"""The published architectures that Loupe can load: for each, its settings and the names of its weights.

A family is a table. In the names on both sides a module stands for its weight and, where our model has one,
its bias; a name that ends with .weight or .bias stands for that tensor alone.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine import hub_shapes
from engine.config import ModelConfig
from engine.hub_layout import Layout, Shapes, Weight
from engine.hub_settings import Settings
from wording import words

say = words("engine.hub")

LONGEST = 2048  # tokens; rotary models could read more, but what they keep would not fit most machines


@dataclass(frozen=True)
class Family:
    """How a published architecture is told in ours.

    Attributes:
        config: settings -> the arguments of our `ModelConfig`.
        outer: names outside the blocks, theirs -> ours.
        block: what their names in block {} begin with.
        inner: names in a block, theirs -> ours; fused ones give several of ours, with spaces between.
        prefix: what the names begin with in a file that has a head, and don't in one that has none.
        fused: layout of the fused or transposed names.
        head: their matrix before the logits; a tied one may be in the file as a copy of the embedding.
        copies: other names of a tensor, name -> the one that is read where the head is tied.
        skipped: beginnings and endings of names of what plays no part in the logits.
        renamed: endings in old files -> endings now.
        extra: settings -> weights that the tables can't tell.
    """

    config: Callable[[Settings], dict[str, Any]]
    outer: Mapping[str, str]
    block: str
    inner: Mapping[str, str]
    prefix: str
    fused: Mapping[str, Layout] = field(default_factory=dict)
    head: str = "lm_head.weight"
    copies: Mapping[str, str] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    skips: Callable[[Settings], int] = lambda settings: 0
    extra: Callable[[Settings], list[Weight]] = lambda settings: []

    def weights(self, settings: Settings, config: ModelConfig, shapes: Shapes) -> Iterator[Weight]:
        """Every tensor that a file of this family must hold."""
        for theirs, ours in self.outer.items():
            yield from self._named(theirs, ours, theirs, shapes, settings)
        for i in range(config.n_layer):
            for theirs, ours in self.inner.items():
                names = " ".join(f"blocks.{i}.{name}" for name in ours.split())
                yield from self._named(self.block.format(i) + theirs, names, theirs, shapes, settings)
        yield from self.extra(settings)

    def _named(
        self, theirs: str, ours: str, key: str, shapes: Shapes, settings: Settings
    ) -> Iterator[Weight]:
        layout = self.fused.get(key, "plain")
        if ours.endswith((".weight", ".bias")):
            if ours in shapes:
                yield Weight(theirs, (ours,), layout)
            return
        for part in ("weight", "bias"):
            names = tuple(f"{name}.{part}" for name in ours.split())
            if names[0] in shapes:
                skip = self.skips(settings) if ours == "position" else 0
                yield Weight(f"{theirs}.{part}", names, layout, skip)

    def canonical(self, name: str) -> str:
        """A tensor's name as the tables have it."""
        for old, new in self.renamed.items():
            if name.endswith(old):
                name = name.removesuffix(old) + new
        return name.removeprefix(self.prefix)

    def plays_no_part(self, name: str) -> bool:
        """Whether the logits don't depend on this tensor: masks kept as tensors, pooling for other tasks."""
        return any(name.startswith(part) or name.endswith(part) for part in self.skipped)


def _first_type(s: Settings) -> list[Weight]:
    """A single text is of type 0 all along, so that type's vector is added to every position's."""
    rows = s.whole("type_vocab_size", 2)
    return [Weight("embeddings.token_type_embeddings.weight", ("position.weight",), "added", rows=rows)]


_GPT_OUTER = {
    "wte": "embedding", "wpe": "position", "ln_f": "final_norm", "lm_head": "head",
}  # fmt: skip
_LLAMA_OUTER = {"embed_tokens": "embedding", "norm": "final_norm", "lm_head": "head"}
_LLAMA_INNER = {
    "input_layernorm": "attention_norm",
    "self_attn.q_proj": "attention.q",
    "self_attn.k_proj": "attention.k",
    "self_attn.v_proj": "attention.v",
    "self_attn.o_proj": "attention.out",
    "self_attn.q_norm": "attention.q_norm",
    "self_attn.k_norm": "attention.k_norm",
    "post_attention_layernorm": "mlp_norm",
    "mlp.gate_proj": "mlp.gate",
    "mlp.up_proj": "mlp.up",
    "mlp.down_proj": "mlp.down",
}
_BERT_OUTER = {
    "embeddings.word_embeddings": "embedding",
    "embeddings.position_embeddings": "position",
    "embeddings.LayerNorm": "embedding_norm",
}
_BERT_INNER = {
    "attention.self.query": "attention.q",
    "attention.self.key": "attention.k",
    "attention.self.value": "attention.v",
    "attention.output.dense": "attention.out",
    "attention.output.LayerNorm": "attention_norm",
    "intermediate.dense": "mlp.up",
    "output.dense": "mlp.down",
    "output.LayerNorm": "mlp_norm",
}
_OLD_NORMS = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


def _llama_like(config: Callable[[Settings], dict[str, Any]]) -> Family:
    skipped = ("rotary_emb.inv_freq",)
    return Family(config, _LLAMA_OUTER, "layers.{}.", _LLAMA_INNER, prefix="model.", skipped=skipped)


FAMILIES: dict[str, Family] = {
    "gpt2": Family(
        hub_shapes.gpt2,
        _GPT_OUTER,
        "h.{}.",
        {
            "ln_1": "attention_norm",
            "attn.c_attn": "attention.q attention.k attention.v",
            "attn.c_proj": "attention.out",
            "ln_2": "mlp_norm",
            "mlp.c_fc": "mlp.up",
            "mlp.c_proj": "mlp.down",
        },
        prefix="transformer.",
        fused=dict.fromkeys(("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"), "columns"),
        skipped=(".attn.bias", ".attn.masked_bias"),
    ),
    "llama": _llama_like(hub_shapes.llama),
    "mistral": _llama_like(hub_shapes.mistral),
    "qwen2": _llama_like(hub_shapes.qwen2),
    "qwen3": _llama_like(hub_shapes.qwen3),
    "gpt_neox": Family(
        hub_shapes.gpt_neox,
        {"embed_in": "embedding", "final_layer_norm": "final_norm", "embed_out": "head"},
        "layers.{}.",
        {
            "input_layernorm": "attention_norm",
            "attention.query_key_value": "attention.q attention.k attention.v",
            "attention.dense": "attention.out",
            "post_attention_layernorm": "mlp_norm",
            "mlp.dense_h_to_4h": "mlp.up",
            "mlp.dense_4h_to_h": "mlp.down",
        },
        prefix="gpt_neox.",
        fused={"attention.query_key_value": "heads"},
        head="embed_out.weight",
        skipped=(".attention.bias", ".attention.masked_bias", ".rotary_emb.inv_freq"),
        renamed={"lm_head.weight": "embed_out.weight"},
    ),
    "gpt_neo": Family(
        hub_shapes.gpt_neo,
        _GPT_OUTER,
        "h.{}.",
        {
            "ln_1": "attention_norm",
            "attn.attention.q_proj": "attention.q",
            "attn.attention.k_proj": "attention.k",
            "attn.attention.v_proj": "attention.v",
            "attn.attention.out_proj": "attention.out",
            "ln_2": "mlp_norm",
            "mlp.c_fc": "mlp.up",
            "mlp.c_proj": "mlp.down",
        },
        prefix="transformer.",
        skipped=(".attn.attention.bias", ".attn.attention.masked_bias"),
    ),
    "bert": Family(
        hub_shapes.bert,
        {
            **_BERT_OUTER,
            "cls.predictions.transform.dense": "head_dense",
            "cls.predictions.transform.LayerNorm": "head_norm",
            "cls.predictions.bias": "head.bias",
            "cls.predictions.decoder.weight": "head.weight",
        },
        "encoder.layer.{}.",
        _BERT_INNER,
        prefix="bert.",
        head="cls.predictions.decoder.weight",
        copies={"cls.predictions.decoder.bias": "cls.predictions.bias"},
        skipped=("pooler.", "cls.seq_relationship.", "embeddings.position_ids"),
        renamed=_OLD_NORMS,
        extra=_first_type,
    ),
    "roberta": Family(
        hub_shapes.roberta,
        {
            **_BERT_OUTER,
            "lm_head.dense": "head_dense",
            "lm_head.layer_norm": "head_norm",
            "lm_head.bias": "head.bias",
            "lm_head.decoder.weight": "head.weight",
        },
        "encoder.layer.{}.",
        _BERT_INNER,
        prefix="roberta.",
        head="lm_head.decoder.weight",
        copies={"lm_head.decoder.bias": "lm_head.bias"},
        skipped=("pooler.", "embeddings.position_ids"),
        renamed=_OLD_NORMS,
        skips=hub_shapes.before_first,
        extra=_first_type,
    ),
    "distilbert": Family(
        hub_shapes.distilbert,
        {
            **_BERT_OUTER,
            "vocab_transform": "head_dense",
            "vocab_layer_norm": "head_norm",
            "vocab_projector": "head",
        },
        "transformer.layer.{}.",
        {
            "attention.q_lin": "attention.q",
            "attention.k_lin": "attention.k",
            "attention.v_lin": "attention.v",
            "attention.out_lin": "attention.out",
            "sa_layer_norm": "attention_norm",
            "ffn.lin1": "mlp.up",
            "ffn.lin2": "mlp.down",
            "output_layer_norm": "mlp_norm",
        },
        prefix="distilbert.",
        head="vocab_projector.weight",
        skipped=("embeddings.position_ids",),
    ),
}


def family_of(settings: Mapping[str, Any]) -> Family:
    """The family that a config.json names.

    Raises:
        ValueError: if Loupe can't load it, or the folder needs a program of its own or packed weights.
    """
    kind = settings.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ValueError(say("unknown_type", kind=repr(kind)[:80], known=", ".join(FAMILIES)))
    if settings.get("auto_map"):
        raise ValueError(say("own_program"))
    if settings.get("quantization_config"):
        raise ValueError(say("quantized"))
    return FAMILIES[kind]


def shape_of(settings: Mapping[str, Any], context_length: int | None = None) -> ModelConfig:
    """Our settings of a published model.

    Args:
        settings: its config.json.
        context_length: most tokens to read at once, no more than the model can; None: as many as it can, but
            at most `LONGEST` where positions are rotary and a shorter context costs nothing else.

    Raises:
        ValueError: one sentence, if a setting is missing, wrong, or beyond what our model can do.
    """
    shape = family_of(settings).config(Settings(settings))
    rotary = shape.get("positions") == "rotary"
    if rotary:
        shape["context_length"] = min(shape["context_length"], context_length or LONGEST)
    return ModelConfig(**shape)
