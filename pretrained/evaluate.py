"""`python -m pretrained.evaluate stories-clm`: a shipped model against the stories' true distribution."""

import argparse
from pathlib import Path

from engine.checkpoints import load_checkpoint
from engine.story_report import story_report

FOLDER = Path(__file__).parent


def main() -> None:
    """Print loss, floor and mean exact KL over held-out stories."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "model", nargs="?", default="stories-clm", help="folder in pretrained/, or a path to a checkpoint"
    )
    parser.add_argument("--rows", type=int, default=64, help="rows of held-out stories")
    parser.add_argument("--samples", type=int, default=20, help="stories that the model writes")
    parser.add_argument("--seed", type=int, default=777)
    arguments = parser.parse_args()
    folder = FOLDER / arguments.model
    checkpoint = load_checkpoint(folder if folder.exists() else Path(arguments.model))
    report = story_report(
        checkpoint.model,
        checkpoint.tokenizer,
        n_rows=arguments.rows,
        seed=arguments.seed,
        n_samples=arguments.samples,
    )
    for name, value in report.to_json().items():
        print(f"{name:14} {value:.4f}" if isinstance(value, float) else f"{name:14} {value}")


if __name__ == "__main__":
    main()
