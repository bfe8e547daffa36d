"""Which variant of the local loss of a linear-core chain is most accurate? Neighbours, surrogates and transitions vary.

Every variant trains the tagger of `linearcore reproduce tagging` on Latin (3,499 tags) with the same encoder, order,
learning rate and steps. Accuracies are on the dev set with beam search, with the trained transitions and with scaled ones.
The baseline is token cross-entropy; ChainCRF, which takes several times as long, is part of `tagging`.
"""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from _chain_variants import VARIANTS, Variant, VariantModel
from _harness import command, data_folder, parsed
from _scaled_chain import scaled_accuracy
from _work import all_runs, complaint_about, parser_for
from linearcore.runtime import write_record
from linearcore.tagging import Corpus
from linearcore.tagging.encoders import BiLSTM
from linearcore_paper.experiments.tagging import training as training
from linearcore_paper.experiments.tagging.methods import METHODS
from linearcore_paper.experiments.tagging.text import SOURCES, check_data, read_text

OUT = Path(__file__).parent / "results" / "chain_variants.json"
#: Factors of the transitions in decoding; 1 is the trained model, 0 uses only emissions.
SCALES = (0.0, 0.5, 0.75, 1.0, 1.25)
PEERS = {"token cross-entropy": "ce"}
#: Some variants of every kind.
QUICK = [*list(VARIANTS)[::3], "pairs ½", "expected neighbours ½", "unary ½, chain rate 0.1"]


def one_run(name: str, source: str, rate: float, seed: int, data: Path | None, device: str) -> dict[str, Any]:
    """Trains one variant, or a baseline."""
    text = read_text(source, data)
    torch.manual_seed(seed)
    words, tags = text.vocabulary, len(text.vocabulary.tags)
    encoder = BiLSTM(words.words, words.counts, characters=False, hidden=_hidden(source), dropout=0.0)
    made = METHODS[PEERS[name]].make(encoder, tags) if name in PEERS else VariantModel(encoder, tags, VARIANTS[name])
    model = made.to(device).train()
    corpora = {part: Corpus.of(text.parts[part], words, encoder) for part in ("train", "dev")}
    generator = torch.Generator().manual_seed(seed)
    batches = training.make_batches(corpora["train"], training.ROWS, device, generator)
    chain_rate = VARIANTS[name].chain_rate if name in VARIANTS else None
    plan = training.Plan(source, "bilstm-adam", "lc", rate, seed)
    stepper, rates = training.make_stepper(model, plan, chain_rate=chain_rate)
    steps = SOURCES[source].epochs * len(batches)
    for _ in training.trained_steps(stepper, rates, batches, steps, generator):
        pass
    dev_batches = training.make_batches(corpora["dev"], training.DECODED, device)
    scales = SCALES if model.head is not None else (1.0,)
    found = {f"{scale:g}": round(scaled_accuracy(model, dev_batches, scale), 3) for scale in scales}
    return {"name": name, "seed": seed, "dev": found, "steps": steps}


def main() -> int:
    """Runs the benchmark."""
    args = arguments()
    source = "made" if args.quick else "latin"
    data = data_folder(args.data)
    names = [*PEERS, *(QUICK if args.quick else VARIANTS)]
    complaint = complaint_about(args, lambda: check_data(data, [source]))
    if complaint is not None:
        print(f"chain_variants.py: {complaint}", file=sys.stderr)
        return 2
    runs = [
        (_depends(name, source, args.rate, seed, data), one_run, (name, source, args.rate, seed, data, args.device))
        for seed in range(args.seeds)
        for name in names
    ]
    rows = all_runs(
        runs, args.workers, args.work, lambda row: f"{row['name']}, seed {row['seed']}: dev {row['dev']['1']:.2f} %"
    )
    settings = {
        "data": read_text(source, data).hash,
        "device": args.device,
        "rate": args.rate,
        "seeds": args.seeds,
        "source": source,
        "variants": {name: _describe(VARIANTS[name]) for name in names if name in VARIANTS},
        "workers": args.workers,
    }
    write_record(args.out, command=command("chain_variants.py"), settings=settings, results=rows, seed=0)
    for row in sorted(rows, key=lambda row: -row["dev"]["1"]):
        scaled = ", ".join(f"{scale}: {value:.2f}" for scale, value in row["dev"].items())
        print(f"{row['name']:32} seed {row['seed']}  dev {row['dev']['1']:.2f} %   (scaled {scaled})")
    return 0


def _depends(name: str, source: str, rate: float, seed: int, data: Path | None) -> dict[str, Any]:
    """Returns the settings of a run, without the device, which hardly changes the result."""
    plan = training.Plan(source, "bilstm-adam", PEERS.get(name, "lc"), rate, seed, hidden=_hidden(source))
    how = _describe(VARIANTS[name]) if name in VARIANTS else {}
    return plan.to_json(read_text(source, data)) | {"name": name, "how": how, "scales": SCALES}


def _hidden(source: str) -> int:
    return 16 if source == "made" else 256


def _describe(variant: Variant) -> dict[str, Any]:
    return asdict(variant) | {"surrogate": repr(variant.surrogate)}


def arguments() -> argparse.Namespace:
    """Parses the options."""
    example = "python benchmarks/chain_variants.py --data DIR --device cuda --workers 10"
    parser = parser_for(__doc__, example=example, data="tagging/la_lasla-*.conllu.xz", seeds=1, out=OUT)
    parser.add_argument("--device", default="cpu", help="torch device (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=0.01, help="learning rate of all variants (default: %(default)s)")
    return parsed(parser)


if __name__ == "__main__":
    sys.exit(main())
