"""Does `make test` notice a fault? Breaks the library in eighty places, one at a time, and runs the tests beside each.

    python -m tests.mutants                   all of them, a minute or so for four
    python -m tests.mutants forms/_logodds    those whose file has this in its path
    python -m tests.mutants --slow            with the tests that `make test` leaves out

The library is broken in a copy in a temporary folder. Prints a line for each place and exits with 1 if one went unnoticed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGETS = "laws/test_form_targets.py unit/losses/test_multiclass.py unit/losses/test_label_range.py unit/losses/baselines"
COMPILED = "unit/kernels/test_compiled*.py laws/test_form_backends.py laws/test_infinite_scores.py"
AUTOMATON = "unit/kernels/test_compiled_automaton.py"
BINARY = "unit/losses/test_binary.py laws/test_form_backends.py"
FORMS = "unit/forms laws/test_form_backends.py laws/test_form_targets.py laws/test_forms.py unit/losses/test_multiclass.py"
KERNELS, STRUCTURED = "unit/kernels laws/test_heads.py", "unit/structured"
SAMPLED = "unit/proposals laws/test_sampled.py unit/forms unit/losses/test_sampled.py unit/heads/test_sampled.py"
LINEAR = "unit/losses/test_linear.py unit/heads/test_linear.py"
CHAINS = "unit/heads/test_linear_core.py unit/heads/test_ssvm.py unit/heads/test_messages.py laws/test_heads.py"

#: (file in src/linearcore, what it says, what it is made to say, where in tests this should be noticed).
MUTANTS = (
    ("losses/_batch.py", "total / reduce_losses(row_weight,", "total / reduce_losses(target_weight,", TARGETS),
    ("losses/_batch.py", "nan_where(row_losses(rows, labels), rows.is_out_of_range)", "row_losses(rows, labels)", TARGETS),
    ("losses/_targets.py", "not low <= ignore_index <= high", "not low < ignore_index <= high", TARGETS),
    ("losses/_binary.py", "return (target + 1) / 2 if signed", "return target + 1 if signed", BINARY),
    ("losses/_sampled_batch.py", "scores + class_bias[rows:].view(candidates.shape)", "scores", SAMPLED),
    ("losses/_sampled.py", "num_samples / (num_samples - 1) if", "1.0 if", SAMPLED),
    ("forms/_logodds.py", "sum_exp.clamp(min=torch.finfo(sum_exp.dtype).tiny)", "sum_exp", FORMS),
    ("forms/_logodds.py", "* grad_output).masked_fill_(grad_output == 0, 0.0)", "* grad_output)", FORMS),
    ("forms/_logodds.py", "margins = margins - labels.margin", "margins = margins + labels.margin", FORMS),
    ("forms/_logodds.py", "margin.masked_fill(all_masked, math.inf)", "margin", SAMPLED),
    ("forms/_pairwise.py", "        total.masked_fill_(is_masked.squeeze(-1) & (total > 0), math.inf)\n", "", FORMS),
    ("forms/_pairwise.py", "(log_weight == -math.inf) | (scores == -math.inf)", "log_weight == -math.inf", SAMPLED),
    ("forms/_centered.py", "if is_masked is None else gradient.masked_fill_(is_masked, 0.0)", "", FORMS),
    ("forms/_competitors.py", "if is_masked is None else values.masked_fill_(is_masked, 0.0)", "", FORMS),
    ("forms/_competitors.py", "is_competitor.sum(-1).clamp(min=1)", "is_competitor.sum(-1)", FORMS),
    ("forms/_margins.py", "present & self.present", "present", FORMS),
    ("forms/_labels.py", "weights * (1 - self.smoothing) + self.smoothing", "weights + self.smoothing", FORMS),
    ("forms/_class_chunks.py", "missing = -self.sums[1].sum(0)", "missing = 0 * self.sums[1].sum(0)", LINEAR),
    ("forms/_class_chunks.py", "                raise MaskedScoresError", "                pass", LINEAR),
    ("losses/_linear_chunks.py", "invalid.fill(losses, math.inf), gradients", "losses, gradients", LINEAR),
    ("losses/_linear_chunks.py", "if rows.start == 0:", "if True:", LINEAR),
    ("heads/_linear.py", ".masked_fill(neighbours.is_first, 0.0)", "", LINEAR),
    ("forms/_rows.py", "overwrite = block.dtype != scores.dtype  # A cast", "overwrite = True  # A cast", FORMS),
    ("kernels/_binary.py", "surrogate._derivative, scores) - _product", "surrogate._derivative, scores) + _product", BINARY),
    ("kernels/compiled/rows.h", "PADDED(n);\n    s[y] = -INFINITY;", "PADDED(n);", COMPILED),
    ("kernels/compiled/rows.h", "-factor * slopes / (REAL)n : 0", "0 : 0", COMPILED),
    ("kernels/compiled/rows.h", "length < 0 ? 0 : slope * s[y]", "slope * s[y]", COMPILED),
    ("kernels/compiled/soft.h", "shared - share[v]", "shared", COMPILED),
    ("kernels/compiled/soft.h", "IS_FINITE(mean) ? (REAL)(average * loss) : (REAL)NAN", "(REAL)(average * loss)", COMPILED),
    ("kernels/compiled/surrogate.h", "x * (z > end ? 1 + (z - end) : 1)", "x", COMPILED),
    ("kernels/compiled/dense.c", "is_counted & ((uint64_t)", "0 & ((uint64_t)", COMPILED),
    ("kernels/compiled/elements.h", "negative.slope - t[i] * positive", "negative.slope + t[i] * positive", COMPILED),
    ("kernels/compiled/rows.h", "STORE(weight * row.label_gradient)", "STORE(row.label_gradient)", COMPILED),
    ("kernels/compiled/rows.h", "IS_FINITE(reference) ? total * average : (REAL)NAN", "total * average", COMPILED),
    ("kernels/compiled/dense.c", "label_weight_f32(a, i) * row_weight_f32(a, i)", "1", COMPILED),
    ("kernels/compiled/rows.h", "(is_soft ? 1 : ROWS(label_weight)(a, i))", "ROWS(label_weight)(a, i)", COMPILED),
    ("forms/_centered.py", "mean.masked_fill(mean.isinf(), math.nan)", "mean", COMPILED),
    ("kernels/compiled/_dense.py", "return scores.dtype == torch.float16 or torch", "return torch", COMPILED),
    ("kernels/compiled/_gradient.py", "elif grad_output.item() != 1:", "elif False:", COMPILED),
    ("kernels/compiled/_gradient.py", "target, *weights)\n        ctx.k", "target)\n        ctx.k", COMPILED),
    ("kernels/compiled/local.h", "gradient[v] += factor * more[v]", "gradient[v] += more[v]", KERNELS),
    ("kernels/compiled/local.c", "call.unary_gradient != NULL", "0", KERNELS),
    ("heads/_linear_core.py", " or dtype != emissions.dtype):", "):", KERNELS),
    ("kernels/compiled/sampled.h", "a->candidates[k] == label ? -INFINITY : x", "x", SAMPLED),
    ("kernels/compiled/sampled.h", "is_none = part ? is_first : is_last", "is_none = part ? is_last : is_first", SAMPLED),
    ("kernels/compiled/_sampled.py", "hidden if hidden.stride(1) == 1 else hidden.contiguous()", "hidden", SAMPLED),
    ("kernels/compiled/_dense.py", "compute_dtype(scores)).contiguous()", "compute_dtype(scores))", COMPILED),
    ("losses/_sampled_batch.py", "samples.index.long().contiguous()", "samples.index.long()", SAMPLED),
    ("heads/_sampled.py", "samples.index.long().contiguous().view(-1)", "samples.index.long().reshape(-1)", SAMPLED),
    ("kernels/compiled/automaton.h", "reached[call->source[i]] += slots", "reached[call->source[i]] = slots", AUTOMATON),
    ("kernels/compiled/adamw.h", "sum[j] += more[j]", "sum[j] = more[j]", "unit/optim"),
    ("kernels/compiled/adamw.c", "while (place > 0 && place", "while (0 && place", "unit/optim"),
    ("kernels/compiled/adamw.c", "shift += DIGIT_BITS", "shift += 63", "unit/optim"),
    ("kernels/compiled/_adamw.py", "index.contiguous(), values.contiguous()", "index, values", "unit/optim"),
    ("kernels/compiled/adamw.h", "(double)(a->step - a->last_step[row])", "1.0", "unit/optim"),
    ("kernels/_local.py", "ends.t(), alpha=-1)", "ends.t(), alpha=0)", KERNELS),
    ("kernels/_local.py", "target[sites.after(tags)].masked_fill(is_last, 0.0)", "target[sites.after(tags)]", KERNELS),
    ("kernels/_partition.py", "not is_captured and not bool(is_exact)", "False", KERNELS),
    ("kernels/_rescaled.py", "state.norm[1:]).masked_fill(is_masked, 0.0)", "state.norm[1:])", KERNELS),
    ("kernels/_viterbi.py", "max_product(alpha), incoming)", "max_product(alpha), max_product(alpha))", KERNELS),
    ("kernels/_max_product.py", "> bound.amin(-1, keepdim=True)", "> bound.amax(-1, keepdim=True)", KERNELS),
    ("kernels/_kbest.py", "values, position // width, tags", "values, position % width, tags", KERNELS),
    ("heads/_sampled_chain.py", "losses if sites.is_full else losses.masked_fill(~sites.mask, 0.0)", "losses", CHAINS),
    ("heads/_sampled.py", "(unary, num_tags, self.unary)", "(unary, number, self.unary)", SAMPLED),
    ("heads/_ssvm.py", "(cost + violator_score - true_score).clamp(min=0.0)", "cost + violator_score - true_score", CHAINS),
    ("heads/_ssvm.py", "viterbi(emissions + site_costs, chain", "viterbi(emissions, chain", CHAINS),
    ("heads/_sampled.py", "may_follow[candidates, after])", "may_follow[after, candidates])", SAMPLED),
    ("heads/_arguments.py", "if name not in kwargs:", "if False:", CHAINS),
    ("heads/_batch.py", "unmasked[:1] | (tags[:1] == IGNORED_TAG)", "unmasked[:1]", CHAINS),
    ("heads/_candidates.py", "scores[1:] + log_costs", "scores[1:]", "unit/heads/test_candidates.py"),
    ("structured/_estimates.py", "(outer.tags != inner.tags) & sites.mask", "outer.tags != inner.tags", STRUCTURED),
    ("structured/_loss.py", "if objective in MEANS else None", 'if objective == "normalised" else None', STRUCTURED),
    ("proposals/sequences/_similar.py", "rank - last_wrong >= width", "rank - last_wrong >= 1", SAMPLED),
    ("proposals/sequences/_edited.py", "place + 1, last", "place, last", SAMPLED),
    ("structured/_estimates.py", "logsumexp(0) - math.log(len(log_weight))", "logsumexp(0)", STRUCTURED),
    ("structured/_path_batch.py", " - outer.log_prob - inner.log_prob", " - outer.log_prob", STRUCTURED),
    ("tagging/_model.py", "if self.cost is None:", "if True:", "unit/tagging/test_train_for_cost.py"),
    ("structured/_control_variate.py", "alpha * (true_score - mean)", "alpha * (true_score - mean).detach()", STRUCTURED),
    ("proposals/_hard_negatives.py", "is_ignored = is_repeated | (hard", "is_ignored = (hard", SAMPLED),
    ("proposals/_in_batch.py", "= (classes == target.unsqueeze(-1)) |", "= (target < 0).unsqueeze(-1) |", SAMPLED),
    ("proposals/_unigram.py", "generator), right=True)", "generator))", SAMPLED),
    ("proposals/_mixture.py", "num_classes) + math.log(weight)", "num_classes)", SAMPLED),
    ("tagging/_batches.py", "max(1, tokens // length)", "tokens // length + 1", "unit/tagging/test_batches.py"),
    ("tagging/_entities.py", "tag if self._is_in_scheme(tag) else _OUTSIDE for", "tag for", "unit/tagging/test_entities.py"),
    ("tagging/_evaluation.py", "correct == len(words)", "correct >= len(words) - 1", "unit/tagging/test_evaluation.py"),
    ("tagging/_feature_scores.py", "if name not in wrong:", "if True:", "unit/tagging/test_feature_scores.py"),
    ("tagging/_vocabulary.py", "item: (-item[1], item[0])", "item: -item[1]", "unit/tagging/test_vocabulary.py"),
    ("tagging/_steps.py", "peak_lr * (step + 1) / warm", "peak_lr * step / warm", "unit/tagging/test_steps.py"),
)  # fmt: skip


def first_failure(tree: Path, where: str, *, slow: bool) -> str | None:
    """The first test that fails in `tree`, or None."""
    files = [str(path) for pattern in where.split() for path in sorted((tree / "tests").glob(pattern))]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", *files]
    path = os.pathsep.join(str(tree / part) for part in ("src", "paper/src", "."))
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *(["-m", ""] if slow else [])], cwd=tree, env=environment, capture_output=True, text=True
    )
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    assert (done.returncode == 0) == (not failed), done.stdout[-2000:] + done.stderr[-2000:]
    return failed[0].split(" ", 2)[1] if failed else None


def write(file: Path, text: str) -> None:
    """Writes a file of the library, and compiles it if it is C."""
    file.write_text(text, "utf-8")
    if file.suffix in (".c", ".h"):
        subprocess.run([sys.executable, str(file.with_name("build.py"))], check=True)


def main(words: list[str]) -> int:
    slow, wanted = "--slow" in words, [word for word in words if word != "--slow"]
    unnoticed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "linearcore"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*", "__pycache__", "test-artefacts"))
        chosen = [mutant for mutant in MUTANTS if not wanted or any(word in mutant[0] for word in wanted)]
        failed = first_failure(tree, " ".join(sorted({part for *_, where in chosen for part in where.split()})), slow=slow)
        if failed:
            print(f"{failed} fails without any change", flush=True)
            return 1
        for name, old, new, where in chosen:
            file = tree / "src" / "linearcore" / name
            text = file.read_text("utf-8")
            if old not in text:
                print(f"not there  {name}: {old}; put in what the file says now", flush=True)
                unnoticed += 1
                continue
            write(file, text.replace(old, new, 1))
            failed = first_failure(tree, where, slow=slow)
            write(file, text)
            unnoticed += failed is None
            print(f"{'noticed   ' if failed else 'UNNOTICED '} {name}: {old.strip()[:60]}  {failed or ''}", flush=True)
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
