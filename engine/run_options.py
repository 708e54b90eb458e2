"""The options of `python -m engine.training`, and the run that they describe.

Every setting of `ModelConfig` and `TrainConfig` has an option of its name, taken from the dataclasses.
"""

import argparse
import difflib
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NoReturn, get_args, get_origin, get_type_hints

from engine import corpus
from engine.config import ModelConfig, TrainConfig
from engine.corpus import Corpus
from engine.plan import LEARNING_RATES, OPTIMIZER, SIZES, STORY_PROMPT, make_plan, make_tokenizer, rhythm
from engine.run_spec import RunSpec
from engine.start_options import OPTIONS, check_options, read_pairs_of, tuned
from engine.tokenizers import Tokenizer, load_vocabulary
from engine.vocabularies import VOCABULARIES

USAGE = "python -m engine.training RUN_FOLDER | --text TEXT [settings] | --start MODEL [--text | --pairs] …"
OWN = ("bpe", "characters", "bytes")
MODEL_SETTINGS = {
    "n_layer": "blocks",
    "n_head": "query heads in a block",
    "d_model": "width of the residual stream",
    "context_length": "most tokens that it sees at once",
    "n_kv_head": "key/value heads (default: as many as query heads)",
    "d_ff": "width of the MLP (default: 4 · d_model)",
    "objective": "clm guesses the next token, mlm hidden ones",
    "positions": "how it knows where a token stands (default: rotary)",
    "norm": "how vectors are normalised",
    "activation": "the bend in the MLP",
    "norm_place": "before (pre) or after (post) each half of a block",
    "bias": "whether layers have biases",
    "tie_head": "whether the output matrix is the embedding",
    "qk_norm": "whether queries and keys are normalised",
    "dropout": "share of numbers dropped in training",
    "mix_previous": "whether a position also gets the vector of the token before it",
}
TRAIN_SETTINGS = {
    "steps": "optimizer steps in all (default: 600); with RUN_FOLDER, a new total",
    "batch_size": "rows in a step, over all processes together",
    "optimizer": "what turns gradients into new weights (default: muon)",
    "learning_rate": "highest rate (default: 0.01 with muon, 0.004 with adamw)",
    "min_lr_share": "share of it at the end",
    "warmup_steps": "steps in which it rises",
    "schedule": "how it falls after that",
    "weight_decay": "pull of the matrices towards 0",
    "grad_clip": "longest gradient; 0 is off",
    "eval_every": "steps between two evaluations (default: a 24th of all)",
    "eval_rows": "validation rows scored each time",
    "checkpoint_every": "steps between two checkpoints (default: a fifth of all)",
    "moments": "further checkpoints, denser early, for the time machine (default: 24)",
    "mask_prob": "share of the tokens that mlm hides",
    "aligned_share": "share of the rows that begin at a line (default: 0.5 for the stories)",
    "precision": "bfloat16 or float32 matrix products; auto is bfloat16 on a GPU that gains from it",
    "seed": "of the first weights, the order of the data, masks and dropout",
    "aim": "what the loss is of: every token of a text, the answers of pairs, or preferences (DPO)",
    "last_blocks": "only so many blocks at the end learn, with the final norm (default: the whole model)",
    "beta": "how strongly preferences hold the model to its start",
    "framing": "how a prompt and its answer become a row: plain, or the model's own chat form",
    "row_length": "most tokens of a training row (default: the context length)",
}


class _Parser(argparse.ArgumentParser):
    """Says in one sentence what it does not understand."""

    def error(self, message: str) -> NoReturn:
        """End the program with that sentence."""
        end = "" if message[-1] in ".?" else "."
        sys.exit(f"{message[:1].upper()}{message[1:]}{end} {self.prog} --help lists all settings.")


def parser() -> argparse.ArgumentParser:
    """All options; those that were not given are None."""
    found = _Parser(
        prog="python -m engine.training",
        usage=USAGE,
        description="Train a language model from the shell: the run in RUN_FOLDER, or a new one.",
        epilog="Several processes: torchrun --nproc-per-node=N -m engine.training … (the same arguments). "
        "Ctrl-C stops with a checkpoint; the same command with the run's folder goes on from there.",
        allow_abbrev=False,
    )
    found.add_argument("folder", nargs="?", type=Path, metavar="RUN_FOLDER", help="go on with this run")
    about = found.add_argument_group("a new run")
    about.add_argument("--text", help="stories, python-docs, or a text file (default: stories)")
    about.add_argument("--encoding", help="of the text file, if it is not UTF-8, such as cp1252")
    about.add_argument("--val-share", type=float, help="end of the text kept to check with (default: 0.1)")
    about.add_argument("--tokenizer", help=f"{', '.join((*OWN, *VOCABULARIES))} (default: bpe)")
    about.add_argument("--vocab-size", type=int, help="ids of the vocabulary that bpe learns (default: 512)")
    about.add_argument("--size", choices=[s.name for s in SIZES], help="a shape (default: small)")
    about.add_argument("--name", help="what the run is called")
    about.add_argument("--device", choices=["auto", "cpu", "cuda"], help="where it is trained")
    about.add_argument("--sample-prompt", help="what the samples on the way continue")
    for name, help_text in OPTIONS.items():
        about.add_argument(f"--{name}", help=help_text)
    about.add_argument("--home", type=Path, help="data folder (default: $LOUPE_HOME, or .loupe)")
    for title, settings, which in (
        ("the model", MODEL_SETTINGS, ModelConfig),
        ("how it learns", TRAIN_SETTINGS, TrainConfig),
    ):
        group, hints = found.add_argument_group(title), get_type_hints(which)
        defaults = {f.name: f.default for f in fields(which)}
        for name, help_text in settings.items():
            if "default:" not in help_text and name not in ("n_layer", "n_head", "d_model", "context_length"):
                help_text = f"{help_text} (default: {defaults[name]})"
            _add(group, name, hints[name], help_text.replace("%", "%%"))
    return found


def _add(group: Any, name: str, hint: Any, help_text: str) -> None:
    """An option for one setting, of the type that its dataclass says."""
    option, kinds = "--" + name.replace("_", "-"), [k for k in get_args(hint) if k is not NoneType]
    if hint is bool:
        group.add_argument(option, action=argparse.BooleanOptionalAction, default=None, help=help_text)
    elif get_origin(hint) is Literal:
        group.add_argument(option, choices=kinds, help=help_text)
    else:
        group.add_argument(option, type=kinds[0] if kinds else hint, metavar="N", help=help_text)


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """The options that were given.

    Raises:
        SystemExit: with one sentence, if there is something unknown among them.
    """
    options = parser()
    given, unknown = options.parse_known_args(arguments)
    if unknown:
        known = [o for action in options._actions for o in action.option_strings]
        near = difflib.get_close_matches(unknown[0].partition("=")[0], known, n=1)
        options.error(f"there is no setting {unknown[0]}." + (f" Did you mean {near[0]}?" if near else ""))
    settings = {name: value for name, value in vars(given).items() if value is not None}
    if not settings:
        options.error("name a run's folder, or a text with --text, or a model with --start")
    others = sorted(set(settings) - {"folder", "steps"})
    if given.folder is not None and others:
        names = ", ".join("--" + name.replace("_", "-") for name in others)
        options.error(f"the run in {given.folder} has its settings already: leave out {names}")
    return given


def read_text(options: argparse.Namespace) -> Corpus:
    """The text of a new run.

    Raises:
        ValueError: if the file is missing or no text.
    """
    wanted = options.text or "stories"
    if wanted == "stories":
        return corpus.stories()
    if wanted == "python-docs":
        return corpus.python_docs()
    path = Path(wanted)
    if not path.is_file():
        raise ValueError(f"There is no text file {wanted}. Give stories, python-docs or the path of a file.")
    text = corpus.decode_upload(path.read_bytes(), options.encoding)
    return corpus.own_text(text, name=path.name, kind="uploaded")


def choose_tokenizer(options: argparse.Namespace, text: Corpus) -> Tokenizer:
    """The vocabulary of a new run.

    Raises:
        ValueError: if it is unknown, not on this machine, or `vocab_size` doesn't go with it.
    """
    kind = options.tokenizer or "bpe"
    if kind not in (*OWN, *VOCABULARIES):
        raise ValueError(f"No tokenizer is called {kind}. Known: {', '.join((*OWN, *VOCABULARIES))}.")
    if options.vocab_size is not None and kind != "bpe":
        raise ValueError(f"--vocab-size is for bpe, which learns its ids; {kind} has a fixed number of them.")
    if kind in VOCABULARIES:
        return load_vocabulary(kind)
    return make_tokenizer(kind, text, 512 if options.vocab_size is None else options.vocab_size)


def make_spec(options: argparse.Namespace) -> tuple[RunSpec, str]:
    """The run that the options describe, and a sentence about its text, or "".

    Raises:
        ValueError: one sentence, if there can't be such a run.
    """
    check_options(options, MODEL_SETTINGS)
    pairs = options.aim in ("answers", "preferences")
    text = read_pairs_of(options, options.aim) if pairs else read_text(options)
    if options.start is not None:
        spec = tuned(options, text, _given(options, TRAIN_SETTINGS))
        share, notice = spec.val_share, ""
        if not pairs:
            share, notice = _share(text, spec.tokenizer, spec.model, spec.train, share)
        return replace(spec, val_share=share), notice
    tokenizer = choose_tokenizer(options, text)
    stories = text.kind == "stories"
    size = next(s for s in SIZES if s.name == (options.size or "small"))
    objective = options.objective or "clm"
    shape = {name: getattr(size, name) for name in ("n_layer", "n_head", "d_model", "context_length")}
    model = ModelConfig.from_json(
        {"vocab_size": tokenizer.model_vocab_size(objective), "positions": "rotary", **shape}
        | _given(options, MODEL_SETTINGS)
    )
    steps = 600 if options.steps is None else options.steps
    optimizer = options.optimizer or OPTIMIZER
    rate = LEARNING_RATES[optimizer]
    train = TrainConfig.from_json(
        {"steps": steps, "batch_size": size.batch_size, **rhythm(steps)}
        | {"optimizer": optimizer, "learning_rate": rate}
        | {"aligned_share": 0.5 if stories else 0.0}
        | _given(options, TRAIN_SETTINGS)
    )
    share = 0.1 if options.val_share is None else options.val_share
    share, notice = (share, "") if pairs else _share(text, tokenizer, model, train, share)
    prompt = STORY_PROMPT if stories and objective == "clm" else None
    spec = RunSpec(
        name=options.name or f"{text.name}, {size.name}",
        corpus=text,
        tokenizer=tokenizer,
        model=model,
        train=train,
        val_share=share,
        sample_prompt=options.sample_prompt or prompt,
        device=options.device or "auto",
    )
    return spec, notice


def _share(
    text: Corpus, tokenizer: Tokenizer, model: ModelConfig, train: TrainConfig, share: float
) -> tuple[float, str]:
    """The held-out part, 0 where it would be too short for a row, and the sentence that says so."""
    plan = make_plan(text, tokenizer, train.longest_row(model.context_length), share)
    return plan.val_share, plan.notice


def _given(options: argparse.Namespace, names: dict[str, str]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(options, name)) is not None}
