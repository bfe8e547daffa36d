"""Decoding with thousands of tags: tokens per second and accuracy of exact and beam search, on a trained tagger.

A tagger is trained first: hashed embeddings of a word and its four neighbours, one hidden layer, and a LinearCoreChain with
low-rank transitions. The transitions are multiplied out once, so that every decoder gets the same dense scores. Decoding
starts from computed emissions, 8 sentences per batch, sorted by length. Padding does not count as tokens.

    torchcrf              torchcrf.CRF.decode
    exact, dense          LinearCoreChain.viterbi without its bound: every transition is evaluated
    exact                 LinearCoreChain.viterbi: on a CPU a bound skips tags that cannot be optimal; on a GPU fused kernels
                          evaluate every transition, so there is no separate "dense"
    beam W                LinearCoreChain.beam
    5 best                LinearCoreChain.kbest
    argmax                the best emission per token, of the same model, which was not trained for it

First, the scores of torchcrf and of the best of the 5 best must equal the exact score, and on a CPU both exact decoders must
return the same tags; they share one accuracy. The chosen width is the smallest whose accuracy on the dev sentences is within
0.05 points of exact decoding, including two standard errors; it is reported on the test sentences. The standard error is
over sentences, for this one model. torchcrf and the 5 best are timed once over the same batches as the others, and on a CPU
also both exact decoders without a model; all other times are medians of interleaved rounds.

The last table uses no model: emissions and transitions are N(0, 1). This is the worst case for the bound and for a beam.

Datasets:

    latin       LASLA, 3,499 tags of part of speech and features, 1.06 million training words; needs
                tagging/la_lasla-{train,dev,test}.conllu.xz in --data or LINEARCORE_DATA
    generated   a hidden Markov chain of 4000 tags with 12 successors each and ambiguous words
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torchcrf
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import linearcore as lc
from _harness import Contender, data_folder, interleaved_medians, milliseconds, parsed
from _tagger import Recipe, Sentence, Tagger, UsageError, encode, generated, latin, multiplied_out, padded, trained
from linearcore.kernels import dense_search
from linearcore.runtime import track, write_record
from linearcore.structures import Sites, path_score

RESULTS = Path(__file__).parent / "results"
BATCH = 8  # sentences per batch
NEAR = 0.05  # largest difference of a beam from exact decoding, in points
WANTED = 10  # target speed-up of a beam
TORCHCRF, DENSE, EXACT, FIVE_BEST, ARGMAX = "torchcrf", "exact, dense", "exact", "5 best", "argmax"

Decoder = Callable[[Tensor, Tensor], Tensor]
Emissions = tuple[Tensor, Tensor]  # (B, L, |Y|) and the mask (B, L)


@dataclass(frozen=True)
class Plan(Recipe):
    """Sizes of the benchmark."""

    sentences: int = 1000  # dev and test sentences for accuracy
    batches: int = 4  # timed batches
    beams: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    tags: int = 4000  # tags of the generated dataset
    length: int = 100  # sequence length without a model
    seconds: float = 15.0  # seconds per table


SMALL = {"steps": 40, "tokens": 200, "buckets": 2**10, "width": 16, "hidden": 32, "rank": 8}
QUICK = Plan(**SMALL, sentences=24, batches=1, beams=(1, 4), tags=300, length=8, seconds=0.05)


# ---- decoders ------------------------------------------------------------------------------------------------------------


def decoders(head: lc.LinearCoreChain, plan: Plan) -> dict[str, Decoder]:
    """Makes our decoders: functions from emissions (B, L, |Y|) and mask (B, L) to tags (B, L)."""

    def dense(emissions: Tensor, mask: Tensor) -> Tensor:
        with dense_search():
            return head.viterbi(emissions, mask)[0]

    ways: dict[str, Decoder] = {} if head.start_transitions.is_cuda else {DENSE: dense}
    ways[EXACT] = lambda emissions, mask: head.viterbi(emissions, mask)[0]
    for width in plan.beams:
        ways[beam_name(width)] = lambda emissions, mask, width=width: head.beam(emissions, mask, width=width)[0]
    ways[FIVE_BEST] = lambda emissions, mask: head.kbest(emissions, mask, k=5)[0][0]
    ways[ARGMAX] = lambda emissions, mask: emissions.argmax(-1)
    return ways


def beam_name(width: int) -> str:
    """Returns the name in the tables."""
    return f"beam {width}"


def peer(head: lc.LinearCoreChain) -> torchcrf.CRF:
    """Makes a torchcrf.CRF with the parameters of `head`."""
    with torch.random.fork_rng():
        crf = torchcrf.CRF(head.num_tags, batch_first=True)
    crf.load_state_dict(head.state_dict())
    return crf.to(head.start_transitions.device)


def check_exact(head: lc.LinearCoreChain, crf: torchcrf.CRF, batches: list[Emissions]) -> float:
    """Exits unless all exact decoders agree.

    The bound must not change a tag in any batch; torchcrf's sequences and the first of the k best must have our score, in
    the shortest one. Returns the largest relative difference in score to torchcrf, which is rounding.
    """
    ways = decoders(head, QUICK)
    for emissions, mask in batches if DENSE in ways else []:
        if not torch.equal(ways[DENSE](emissions, mask), ways[EXACT](emissions, mask)):
            raise SystemExit("the bound changed the result of exact decoding, so the results are invalid")
    emissions, mask = min(batches, key=lambda batch: batch[0].shape[1])
    found = [torch.tensor(row, device=mask.device) for row in crf.decode(emissions, mask)]
    theirs = nn.utils.rnn.pad_sequence(found, batch_first=True)
    ours, first = head.viterbi(emissions, mask)[0], head.kbest(emissions, mask, k=5)[0][0]
    exact, scores, sites = emissions.transpose(0, 1).double(), head.chain(emissions.double()), Sites.of(mask.t())
    with torch.no_grad():
        own, *others = (path_score(exact, scores, tags.clamp(min=0).t(), sites) for tags in (ours, theirs, first))
    off = [float(((other - own) / own.abs()).abs().max()) for other in others]
    if max(off) > 1e-5:
        raise SystemExit(f"the scores of exact decoders differ by {max(off):.2g} (relative), so the results are invalid")
    return off[0]


# ---- measuring -----------------------------------------------------------------------------------------------------------


def accuracies(tagger: Tagger, ways: dict[str, Decoder], sentences: list[Sentence]) -> dict[str, Any]:
    """Computes the accuracy of every decoder, its difference from exact, and the standard error over sentences."""
    ordered = sorted(sentences, key=lambda sentence: len(sentence[0]))
    right: dict[str, list[Tensor]] = {name: [] for name in ways}
    device = tagger.features.device
    for begin in track(range(0, len(ordered), BATCH), "decoding for accuracy"):
        forms, tags, mask = (tensor.to(device) for tensor in padded(ordered[begin : begin + BATCH]))
        with torch.no_grad():
            emissions = tagger(forms, mask)
        for name, way in ways.items():
            right[name].append(((way(emissions, mask) == tags) & mask).sum(1).cpu())
    sizes = torch.tensor([len(forms) for forms, _ in ordered])
    total, exact, rows = int(sizes.sum()), torch.cat(right[EXACT]), {}
    for name, found in right.items():
        gained = (torch.cat(found) - exact).double()
        mean = float(gained.sum()) / total
        rows[name] = {
            "accuracy": round(100 * float(torch.cat(found).sum()) / total, 3),
            "points_from_exact": round(100 * mean, 3),
            "error": round(100 * float((gained - mean * sizes).square().sum().sqrt()) / total, 3),
        }
    return rows


def sample(sentences: list[Sentence], count: int, seed: int) -> list[Sentence]:
    """Returns `count` sentences."""
    order = torch.randperm(len(sentences), generator=torch.Generator().manual_seed(seed)).tolist()
    return [sentences[index] for index in order[:count]]


def timed_batches(tagger: Tagger, sentences: list[Sentence], count: int) -> list[Emissions]:
    """Computes emissions and masks of `count` batches, evenly spaced in the order of length."""
    ordered = sorted(sentences, key=lambda sentence: len(sentence[0]))
    starts = [int((part + 0.5) / count * len(ordered)) // BATCH * BATCH for part in range(count)]
    device = tagger.features.device
    with torch.no_grad():
        batches = [[tensor.to(device) for tensor in padded(ordered[start : start + BATCH])] for start in starts]
        return [(tagger(forms, mask), mask) for forms, _, mask in batches]


def seconds_of(ways: dict[str, Decoder], batches: list[Emissions], *, once: set[str], seconds: float) -> dict[str, float]:
    """Times every decoder on all batches: the median of interleaved rounds, or a single run for those in `once`."""
    times, device = {}, batches[0][1].device.type
    for name in [name for name in ways if name in once]:
        ways[name](batches[0][0][:, :2], batches[0][1][:, :2])
        times[name] = milliseconds(Contender(partial(_all_of, ways[name], batches)), device) / 1e3
    field = {name: Contender(partial(_all_of, way, batches)) for name, way in ways.items() if name not in once}
    medians = interleaved_medians(field, device, seconds=seconds, least=3)
    return {name: times[name] if name in once else medians[name] / 1e3 for name in ways}


def _all_of(way: Decoder, batches: list[Emissions]) -> None:
    for emissions, mask in batches:
        way(emissions, mask)


def run_set(name: str, plan: Plan, args: argparse.Namespace) -> dict[str, Any]:
    """Trains on one dataset and measures all decoders."""
    sizes = {"train": plan.steps * plan.tokens // 40, "dev": plan.sentences, "test": plan.sentences}
    words = latin(data_folder(args.data)) if name == "latin" else generated(plan.tags, sizes, args.seed)
    corpus = encode(words, plan.buckets)
    begin = time.perf_counter()
    tagger = trained(corpus, plan, args.device, args.seed).to(args.device)
    training = time.perf_counter() - begin
    head = multiplied_out(tagger.chain).to(args.device)
    ways, crf = decoders(head, plan), peer(head)
    test, dev = (sample(corpus.parts[part], plan.sentences, args.seed) for part in ("test", "dev"))
    batches = timed_batches(tagger, test, plan.batches)
    off = check_exact(head, crf, batches)
    quick = {way: ways[way] for way in (ARGMAX, *map(beam_name, plan.beams), EXACT)}
    on_dev, on_test = accuracies(tagger, quick, dev), accuracies(tagger, quick, test)
    tokens = sum(int(mask.sum()) for _, mask in batches)
    times = seconds_of({TORCHCRF: crf.decode, **ways}, batches, once={TORCHCRF, FIVE_BEST}, seconds=plan.seconds)
    rows = {way: on_test.get(way, on_test[EXACT]) | speed(times, way, tokens) for way in times}
    near = [width for width in plan.beams if is_surely_near(on_dev[beam_name(width)])]
    gold = torch.cat([tags for _, tags in test])
    return {
        "num_tags": corpus.num_tags,
        "training": {"tokens": sum(len(tags) for _, tags in corpus.parts["train"]), "seconds": round(training, 1)},
        "test_tokens": len(gold),
        "test_tokens_of_unknown_tags": int((gold < 0).sum()),
        "timed": [[*mask.shape, int(mask.sum())] for _, mask in batches],
        "score_difference_to_torchcrf": off,
        "dev": on_dev,
        "methods": in_order(rows),
        "mark": mark(near[0], rows) if near else None,
    }


def in_order(rows: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Converts the rows to a list, because records sort keys."""
    return [{"method": name, **row} for name, row in rows.items()]


def speed(times: dict[str, float], name: str, tokens: int) -> dict[str, float]:
    """Computes tokens per second, and the ratios to the three exact decoders."""
    row = {"tokens_per_second": round(tokens / times[name], 1)}
    for other, key in ((TORCHCRF, "times_torchcrf"), (DENSE, "times_dense"), (EXACT, "times_exact")):
        if other in times:
            row[key] = round(times[other] / times[name], 3)
    return row


def is_surely_near(row: dict[str, float]) -> bool:
    """Whether the difference plus two standard errors is within `NEAR` points of exact."""
    return abs(row["points_from_exact"]) + 2 * row["error"] <= NEAR


def mark(width: int, rows: dict[str, Any]) -> dict[str, Any]:
    """Returns the width chosen on dev, and its results on test."""
    row = rows[beam_name(width)]
    keys = ("points_from_exact", "error", "times_torchcrf", "times_dense", "times_exact")
    fast = {f"fast_beside_{name}": row[f"times_{name}"] >= WANTED for name in ("dense", "exact") if f"times_{name}" in row}
    near = abs(row["points_from_exact"]) <= NEAR
    return {"width": width, **{key: row[key] for key in keys if key in row}, "near_on_test": near, **fast}


def without_a_model(plan: Plan, args: argparse.Namespace) -> dict[str, Any]:
    """Measures decoders on N(0, 1) scores: tokens per second, and the score of a beam relative to exact."""
    generator = torch.Generator().manual_seed(args.seed)
    with torch.random.fork_rng(), torch.no_grad():
        head = lc.LinearCoreChain(plan.tags, batch_first=True)
        for parameter in head.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    head = head.to(args.device)
    emissions = torch.randn(BATCH, plan.length, plan.tags, generator=generator).to(args.device)
    mask = torch.ones(emissions.shape[:2], dtype=torch.bool, device=args.device)
    ways = decoders(head, plan)
    ways = {name: ways[name] for name in (DENSE, EXACT, *map(beam_name, plan.beams)) if name in ways}
    times = seconds_of(
        ways, [(emissions, mask)], once={DENSE, EXACT} & set(ways) if DENSE in ways else set(), seconds=plan.seconds
    )
    best = head.viterbi(emissions, mask)[1]
    reached = {beam_name(width): float((head.beam(emissions, mask, width=width)[1] / best).mean()) for width in plan.beams}
    rows = {name: speed(times, name, mask.numel()) | {"score": round(reached.get(name, 1.0), 4)} for name in ways}
    return {"shape": list(emissions.shape), "methods": in_order(rows)}


# ---- the command ---------------------------------------------------------------------------------------------------------


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """Prints one table; missing values are empty cells."""
    columns = {
        "accuracy": ("accuracy %", "{:.2f}"),
        "points_from_exact": ("points from exact", "{:+.3f}"),
        "error": ("±", "{:.3f}"),
        "score": ("score / exact", "{:.4f}"),
        "tokens_per_second": ("tokens/s", "{:,.0f}"),
        "times_torchcrf": ("× torchcrf", "{:.2f}"),
        "times_dense": ("× exact, dense", "{:.2f}"),
        "times_exact": ("× exact", "{:.2f}"),
    }
    used = {key: column for key, column in columns.items() if any(key in row for row in rows)}
    table = Table(title=title)
    table.add_column("method")
    for head, _ in used.values():
        table.add_column(head, justify="right")
    for row in rows:
        table.add_row(row["method"], *(form.format(row[key]) if key in row else "" for key, (_, form) in used.items()))
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def verdict(found: dict[str, Any] | None) -> str:
    """Describes the target and the result in one sentence."""
    if found is None:
        return f"No width is surely within {NEAR} points of exact on the dev sentences."
    against = (("times_dense", DENSE), ("times_exact", f"{EXACT} as it comes"), ("times_torchcrf", TORCHCRF))
    ratios = ", ".join(
        f"{found[key]:.1f} times as fast as {name} ({'at least' if found[key] >= WANTED else 'below'} {WANTED})"
        for key, name in against
        if key in found
    )
    place = "within" if found["near_on_test"] else "not within"
    points = f"{found['points_from_exact']:+.3f} points from exact on test ({place} {NEAR})"
    return f"Width {found['width']}, chosen on dev: {points}, {ratios}."


def arguments() -> argparse.Namespace:
    """Parses the options."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Examples:\n"
        "  python benchmarks/decoding.py --data DIR                   the committed figures, five minutes on two cores\n"
        "  python benchmarks/decoding.py --data DIR --device cuda     on a GPU, where exact is dense\n"
        "  python benchmarks/decoding.py --sets generated             without files\n"
        "  python benchmarks/decoding.py --quick --sets generated     seconds: does it run?\n",
    )
    parser.add_argument("--data", type=Path, help="folder with tagging/ in it (default: variable LINEARCORE_DATA)")
    parser.add_argument("--sets", default="latin", help="latin, generated, or both, comma-separated (default: %(default)s)")
    parser.add_argument(
        "--device", default="cpu", choices=("cpu", "cuda"), help="device for training and decoding (default: %(default)s)"
    )
    parser.add_argument("--steps", type=int, help=f"training batches (default: {Plan.steps})")
    parser.add_argument("--sentences", type=int, help=f"dev and test sentences for accuracy (default: {Plan.sentences})")
    parser.add_argument("--seconds", type=float, help=f"seconds per table (default: {Plan.seconds:g})")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="smoke test with a toy size")
    parser.add_argument("--out", type=Path, help="JSON (default: benchmarks/results/decoding_DEVICE.json)")
    args = parsed(parser)
    args.out = args.out or RESULTS / f"decoding_{args.device}.json"
    return args


def main() -> None:
    """Runs the benchmark, prints the tables and writes the result file."""
    args = arguments()
    given = {key: value for key in ("steps", "sentences", "seconds") if (value := getattr(args, key)) is not None}
    plan = replace(QUICK if args.quick else Plan(), **given)
    results: dict[str, Any] = {"sets": {}}
    try:
        names = [name.strip() for name in args.sets.split(",")]
        for name in names:
            if name not in ("latin", "generated"):
                raise UsageError(f"--sets takes latin and generated, and {name!r} is neither")
        for name in names:
            found = results["sets"][name] = run_set(name, plan, args)
            show(f"{name}, {found['num_tags']} tags", found["methods"])
            print(verdict(found["mark"]))
    except (UsageError, OSError) as error:
        print(f"decoding.py: {error}", file=sys.stderr)
        sys.exit(2)
    results["without_a_model"] = without_a_model(plan, args)
    show(f"no model, {'×'.join(map(str, results['without_a_model']['shape']))}", results["without_a_model"]["methods"])
    command = "python benchmarks/decoding.py" + (" --data DIR" if "latin" in names else "")
    given = {"sets": args.sets, "device": args.device, "seed": args.seed} | given
    command += "".join(f" --{key} {value}" for key, value in given.items() if value not in ("latin", "cpu", 0))
    command += " --quick" if args.quick else ""
    write_record(args.out, command=command, settings=asdict(plan) | {"device": args.device}, results=results, seed=args.seed)
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
