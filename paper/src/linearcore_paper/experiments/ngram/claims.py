"""Claims of `ngram`: the sentences of the appendix, then our own questions."""

from typing import Any

from linearcore_paper.experiments._numbers import format_range
from linearcore_paper.experiments.ngram.table import Case, case_of, difference
from linearcore_paper.runner import Claim, Verdict, verdict

#: Correction: F1 and BLEU are not additive.
ADDITIVE = "w"
#: Largest loss of span F1 of minimum-risk decoding.
MARK = 0.1
NEW = "not in the paper"


def judge_claims(data: dict[str, Any], *, is_paper: bool) -> list[Claim]:
    """Returns all claims; those about training are judged at paper scale only."""
    return [
        _ngrams(data["additivity"]),
        _f1_and_bleu(data["additivity"]),
        _estimator(data["expectation"]),
        _sampling(data["variance"]),
        _rate(data["rate"]),
        _step(data["times"]),
        _advantages(data, is_paper),
        _compared(data, is_paper, "lc", "Training against candidates, weighted by a metric, beats LinearCoreChain.loss"),
        *_equal_time(data),
        _compared(data, is_paper, "risk", "The linear core trained for a metric beats minimum-risk training"),
        _compared(data, is_paper, "crf", "The linear core trained for a metric beats a CRF"),
        _decoding(data, is_paper),
        _mark(data, is_paper),
    ]


def _ngrams(additivity: dict[str, list[float]]) -> Claim:
    aligned, clipped = max(additivity["aligned pairs"]), additivity["clipped pairs"][0]
    return Claim(
        claim="N-gram overlap is additive over states that hold the last n − 1 tags",
        paper="strictly additively factorizable over the transitions",
        ours=f"holds for n-grams at the same place: largest mixed difference {aligned:.3f}. The counts of BLEU ignore the "
        f"place and are clipped: {clipped:.3f}",
        verdict=verdict(aligned == 0 and clipped > 0, ADDITIVE),
        correction=ADDITIVE,
    )


def _f1_and_bleu(additivity: dict[str, list[float]]) -> Claim:
    found = {name: additivity[name] for name in ("token F1", "span F1", "BLEU")}
    texts = [f"{name} {', '.join(f'{value:.3f}' for value in values)}" for name, values in found.items()]
    return Claim(
        claim="F1 and BLEU become additive as rational kernels",
        paper="extend to exact F1-score and BLEU",
        ours=f"mixed differences with windows of 2, 3 and 4 tags, 0 if additive: {'; '.join(texts)}",
        verdict=verdict(all(max(values) == 0 for values in found.values())),
        correction=ADDITIVE,
    )


def _estimator(expectation: dict[str, dict[str, float]]) -> Claim:
    aligned, mixed = ([found[name] for found in expectation.values()] for name in ("aligned", "with uniform"))
    texts = [f"{cost} {value:.3g}" for cost, value in zip(expectation, aligned, strict=True)]
    return Claim(
        claim="The unbiased estimator generalises to proposals over n-gram paths",
        paper="our unbiased stochastic gradient estimator generalizes directly",
        ours="expected estimate / structured sum with samples that share an aligned pair of tags with the truth: "
        f"{', '.join(texts)}. Mixed with uniform samples it is 1 for all three",
        verdict=verdict(min(mixed) == max(mixed) == aligned[0] == 1, ADDITIVE),
        correction=ADDITIVE,
    )


def _sampling(variance: dict[str, dict[str, float]]) -> Claim:
    best = {cost: max(found["aligned"], found["moved"]) for cost, found in variance.items()}
    texts = [f"{cost} {value:.3g} times" for cost, value in best.items()]
    return Claim(
        claim="Proposals over n-gram paths avoid high-variance sampling of whole sequences",
        paper="no need for high-variance strategies like REINFORCE",
        ours=f"fewer samples than uniform ones for the same variance with the better n-gram proposal: {', '.join(texts)}. "
        "Aligned n-grams gain; F1 and BLEU, which the section is about, need more samples",
        verdict=verdict(min(best.values()) > 1),
        correction=ADDITIVE,
    )


def _rate(rate: dict[str, list[float]]) -> Claim:
    pairs = [f"{ratio:.3f} at δ = {delta:g}" for delta, ratio in zip(rate["deltas"], rate["ratios"], strict=True)][::-1]
    return Claim(
        claim="The linear rate is preserved for n-gram targets",
        paper="the optimal O(ΔL) linear transfer rate is rigorously preserved",
        ours=f"surrogate regret / target regret of the sum loss for aligned pairs: {', '.join(pairs)}. It goes to 0, so "
        "there is no linear bound, even where the cost is additive",
        verdict=verdict(min(rate["ratios"]) >= 1),
        correction="a",
    )


def _step(times: list[dict[str, float]]) -> Claim:
    samples, steps = ([row[key] for row in times] for key in ("sample", "step"))
    tags = f"{times[0]['tags']:,} to {times[-1]['tags']:,} tags"
    return Claim(
        claim="A step costs O(1) in the number of outputs",
        paper="the O(1) per-step computational efficiency is preserved",
        ours=f"{tags}: a sample takes {format_range(samples, '.2f')} µs whatever the number. A step with dense gradients "
        f"takes {steps[0]:.1f} to {steps[-1]:.1f} µs per sample",
        verdict=verdict(max(samples) <= 2 * min(samples), "p"),
        correction="p",
    )


def _advantages(data: dict[str, Any], is_paper: bool) -> Claim:
    """Against the same candidates with Hamming cost: what the metric itself gains."""
    what = "training for the metric against training for Hamming with the same candidates"
    paper = "extend elegantly to non-decomposable metrics"
    return _comparison(data, is_paper, "lc-hamming", "The advantages extend to F1 and n-gram metrics", paper, what)


def _compared(data: dict[str, Any], is_paper: bool, other: str, claim: str) -> Claim:
    return _comparison(data, is_paper, other, claim, NEW, f"against {data['labels'][other]}")


def _comparison(data: dict[str, Any], is_paper: bool, other: str, claim: str, paper: str, what: str) -> Claim:
    """Compares LC trained for the metric with another method: it wins if every Viterbi interval is above 0."""
    rows = {(case_of(row), row["method"]): row for row in data["rows"]}
    cases = dict.fromkeys(case for case, method in rows if method == "lc-metric")
    found = {case: difference(rows[case, "lc-metric"], rows[case, other]) for case in cases}
    return Claim(
        claim=claim,
        paper=paper,
        ours=f"difference in points, {what}, mean and 95 % interval over seeds: {_listed(data, found)}",
        verdict=_judged(all(each["mean"] > each["half_width"] for each in found.values()), is_paper),
    )


def _equal_time(data: dict[str, Any]) -> list[Claim]:
    """Compares LC trained for the metric with LinearCoreChain.loss that has more steps, where there are such runs."""
    rows = {(case_of(row), row["method"]): row for row in data["rows"]}
    found = {
        (task, metric, steps): difference(rows[(task, metric, steps), "lc-metric"], rows[(task, metric, more), "lc"])
        for task, metric, steps in dict.fromkeys(case for case, method in rows if method == "lc-metric")
        for more in {row["steps"] for row in data["rows"] if (row["task"], row["metric"]) == (task, metric)}
        if more > steps
    }
    if not found:
        return []
    return [
        Claim(
            claim="It also beats LinearCoreChain.loss with twice as many steps",
            paper=NEW,
            ours=f"difference in points, mean and 95 % interval over seeds: {_listed(data, found)}",
            verdict=verdict(all(each["mean"] > each["half_width"] for each in found.values())),
        )
    ]


def _listed(data: dict[str, Any], found: dict[Case, dict[str, Any]]) -> str:
    return "; ".join(f"{_case(data, case)} {signed(each)}" for case, each in found.items())


def _decoding(data: dict[str, Any], is_paper: bool) -> Claim:
    texts = []
    for case in dict.fromkeys(case_of(row) for row in data["rows"]):
        gains = [row["gain"] for row in data["rows"] if case_of(row) == case]
        clear = sum(gain["mean"] > gain["half_width"] for gain in gains)
        means = format_range([gain["mean"] for gain in gains], "+.2f").replace("-", "−")
        texts.append(f"{_case(data, case)} {means}, clearly above 0 for {clear} of {len(gains)} ways to train")
    wins = all(row["gain"]["mean"] > row["gain"]["half_width"] for row in data["rows"])
    return Claim(
        claim="Decoding for the metric beats Viterbi on that metric",
        paper=NEW,
        ours=f"mean gain in points over Viterbi: {'; '.join(texts)}",
        verdict=_judged(wins, is_paper),
    )


def _mark(data: dict[str, Any], is_paper: bool) -> Claim:
    rows = [row for row in data["rows"] if row["task"] == "chunks"] or data["rows"]
    gains = {f"{row['label']}, {row['steps']} steps": row["gain"]["mean"] for row in rows}
    worst = min(gains, key=lambda label: gains[label])
    single = min(value for row in rows for value in row["gain"]["values"])
    smallest, alone = (f"{gain:+.2f}".replace("-", "−") for gain in (gains[worst], single))
    times, viterbi = (
        format_range([row[key] for row in rows], form) for key, form in (("risk_ms", ".2f"), ("viterbi_ms", ".3f"))
    )
    return Claim(
        claim=f"In the mean over seeds, decoding noun phrases for span F1 loses at most {MARK:g} points to Viterbi",
        paper=NEW,
        ours=f"smallest mean gain {smallest} ({worst}), smallest of a single run {alone}; {times} ms a sentence, Viterbi "
        f"{viterbi} ms",
        verdict=_judged(gains[worst] >= -MARK, is_paper),
    )


def signed(each: dict[str, Any]) -> str:
    """Returns a difference with its interval."""
    return f"{each['mean']:+.2f} ± {each['half_width']:.2f}".replace("-", "−")


def _case(data: dict[str, Any], case: Case) -> str:
    task, metric, steps = case
    return f"{data['tasks'][task]}, {data['metrics'][metric]}, {steps} steps"


def _judged(holds: bool, is_paper: bool) -> Verdict:
    return verdict(holds) if is_paper else "not judged"
