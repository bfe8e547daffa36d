"""The names and signatures that users may rely on. A change here is a change of the interface: say so in the changelog."""

import inspect
import runpy
import sys

import pytest

import linearcore as lc
from linearcore import cleaning, noise, runtime, structured, structures, tables, tagging
from linearcore.tagging import encoders, readers
from linearcore_paper import vision
from linearcore_paper.vision import networks
from tests.fresh_python import fresh_python

SURROGATES = {
    "Surrogate", "LinearCore",
    "Hinge", "SquaredHinge", "SmoothedHinge", "Logistic", "Exponential", "ConvolutionalFenchelYoung",
}  # fmt: skip
FORMS = {"Form", "Pairwise", "Centered", "LogOdds"}
LOSSES = {
    "binary_loss", "linear_multiclass_loss", "multiclass_loss", "sampled_multiclass_loss",
    "BinaryLinearCoreLoss", "LinearCoreLoss", "RobustLinearCoreLoss",
}  # fmt: skip
HEADS = {"LinearCoreChain", "ChainCRF", "ChainSSVM", "NormedScores"}

#: The documented arguments with their defaults, in order; an ellipsis marks one that must be given or is checked elsewhere.
SIGNATURES = {
    "LinearCore": {"base": "logistic", "tau": 1.0, "sides": 1, "sharpness": 1.0},
    "binary_loss": {
        "scores": ...,
        "target": ...,
        "surrogate": lc.LinearCore(),
        "pos_weight": None,
        "sample_weight": None,
        "reduction": "mean",
        "validate": False,
    },
    "multiclass_loss": {
        "scores": ...,
        "target": ...,
        "surrogate": lc.LinearCore(),
        "form": "logodds",
        "normalize": None,
        "weight": None,
        "sample_weight": None,
        "class_margin": None,
        "ignore_index": -100,
        "label_smoothing": 0.0,
        "reduction": "mean",
        "backend": "auto",
        "validate": False,
    },
    "linear_multiclass_loss": {
        "hidden": ...,
        "linear_weight": ...,
        "target": ...,
        "linear_bias": None,
        "surrogate": lc.LinearCore(),
        "form": "logodds",
        "normalize": None,
        "weight": None,
        "sample_weight": None,
        "class_margin": None,
        "ignore_index": -100,
        "label_smoothing": 0.0,
        "reduction": "mean",
        "backend": "auto",
        "validate": False,
        "chunk_bytes": None,
    },
    "RobustLinearCoreLoss": {
        "weight": None,
        "radius": 1.0,
        "surrogate": lc.LinearCore(tau=2.0),
        "scale": 1.0,
        "ignore_index": -100,
        "label_smoothing": 0.0,
        "reduction": "mean",
        "backend": "auto",
        "validate": False,
    },
    "LinearCoreChain": {
        "num_tags": ...,
        "batch_first": False,
        "surrogate": lc.LinearCore(),
        "form": "logodds",
        "rank": None,
        "constraints": None,
    },
    "ChainCRF": {"num_tags": ..., "batch_first": False},
    "ChainSSVM": {"num_tags": ..., "batch_first": False},
    "NormedScores": {"num_classes": ...},
}


def test_public_names_are_these():
    assert set(lc.__all__) == SURROGATES | FORMS | LOSSES | HEADS
    assert set(noise.__all__) == {
        "CIFAR10_PAIRS", "LAWS", "LabelDraw", "Law", "NoisyLabels", "boundary", "class_conditional", "draw", "human_cifar10",
        "human_cifar100", "instance_dependent", "linear_posterior", "pair_flip", "symmetric",
    }  # fmt: skip
    assert set(cleaning.__all__) == {
        "ADDED_COLUMNS", "LOSSES", "MEASURES", "MODELS", "ClassSummary", "Findings", "Model", "ModelScores", "NamedLoss",
        "NetworkSettings", "OutOfFoldScores", "Suspect", "Suspects", "TableError", "WrongLabels", "find_wrong_labels",
        "flagging_auc", "flagging_precision", "model_scores", "out_of_fold_scores", "read_table", "suspects",
    }  # fmt: skip
    assert set(tables.__all__) == {
        "MAX_CATEGORIES", "ArrayTable", "Classes", "ColumnKinds", "CsvTable", "EncodedTable", "FrameTable", "Matrix",
        "ParquetTable", "Repeats", "Table", "TableError", "as_matrix", "as_values", "classes_of", "encode", "encode_labels",
        "is_frame", "is_parquet", "is_series", "is_sparse", "label_values", "nonfinite_entry", "read_csv", "read_table",
        "repeats", "row_index",
    }  # fmt: skip
    assert set(tagging.__all__) == {
        "HEADS", "ChainSettings", "Evaluation", "ExportedTagger", "Head", "HeadSettings", "Prediction", "ScoredTags",
        "StoppedError", "TaggedSentence", "Tagger", "Training", "TrainingResult", "comparison_table",
        "evaluation_report", "split_dev", "train",
        "Batch", "Bucket", "Corpus", "Stepper", "TaggingModel", "Vocabulary", "digest", "make_optimizer",
        "lr_at",
    }  # fmt: skip
    assert set(runtime.__all__) == {
        "RECORD_FORMAT", "check_committed", "environment", "has_uncommitted_changes", "package_version", "read_record",
        "write_record", "write_atomically",
        "Progress", "ProgressBar", "track", "Interrupt", "StoppedError",
        "StoreContents", "StoreError", "group_tensors", "is_store", "read_store", "store_digest", "write_store",
        "Checkpoint", "differences",
        "FolderLock", "GraphStepper", "autocast_dtype", "one_thread", "stream_for",
        "MissingExtraError", "between", "complaint", "one_of", "positive", "require", "shape",
    }  # fmt: skip
    assert set(structured.__all__) == {
        "OBJECTIVES", "STRUCTURED_FORMS", "Draws", "PathDistribution", "Paths", "RunningSlope", "StructuredEstimate",
        "StructuredForm",
        "centered_estimate", "centered_log_weight", "controlled_estimate", "log_similarity_mass", "mean_score",
        "pair_estimate", "pair_log_weight", "sequence_scores", "structured_estimate", "structured_loss",
    }  # fmt: skip
    assert {"Automaton", "Expansion", "chain_arc_scores", "read_att", "write_att"} <= set(structures.__all__)
    assert set(encoders.__all__) == {
        "ENCODERS", "BiLSTM", "Encoder", "Schedule", "WordFeatures", "TransformerEncoder", "copy_leading_rows",
        "cut_into_rows", "encoder_class", "spelling",
    }  # fmt: skip
    assert set(readers.__all__) == {
        "FORMATS", "OUTPUT_FORMATS", "Details", "Format", "Layout", "ReaderError", "Sentence", "SentenceWriter",
        "TagColumns", "make_writer", "output_format", "read_sentences",
    }  # fmt: skip
    assert set(vision.__all__) == {
        "DownloadError", "ImageSets", "Images", "Loss", "Recipe", "Run", "StoppedError", "Trained", "cifar10",
        "fashion_mnist", "hold_out", "mnist", "train", "train_many",
    }  # fmt: skip
    assert set(networks.__all__) == {"NETWORKS", "resnet18", "small_network"}


def test_version_is_that_of_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["linearcore", "--version"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module("linearcore", run_name="__main__")
    assert (stopped.value.code, capsys.readouterr().out) == (0, f"linearcore {lc.__version__}\n")
    with pytest.raises(AttributeError, match="module 'linearcore' has no attribute 'nope'"):
        lc.nope  # noqa: B018


def test_submodules_are_imported_on_first_access():
    """Without `import linearcore.noise`, and listed for completion; `import linearcore` alone loads none of them."""
    names = ["analysis", "cleaning", "noise", "optim", "runtime", "tagging"]
    code = f"""
import sys, linearcore as lc
assert "linearcore.losses.baselines" not in sys.modules and lc.losses.baselines.generalized_cross_entropy
for name in {names}:
    assert "linearcore." + name not in sys.modules and name in dir(lc), name
assert lc.noise.symmetric and lc.analysis.certify and lc.tagging.Tagger and lc.cleaning.suspects
assert lc.optim.SparseAdamW and lc.runtime.write_record
"""
    run = fresh_python("-c", code)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("name", sorted(lc.__all__))
def test_every_public_name_exists_and_is_explained(name):
    thing = getattr(lc, name)
    assert inspect.getdoc(thing) and inspect.getdoc(thing) != inspect.getdoc(type(thing))


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_documented_arguments(name):
    found = inspect.signature(getattr(lc, name)).parameters
    documented = SIGNATURES[name]
    assert [argument for argument in found if argument in documented] == list(documented), "missing, or in another order"
    for argument, default in documented.items():
        expected = inspect.Parameter.empty if default is ... else default
        assert found[argument].default == expected, argument


@pytest.mark.parametrize("name", ["binary_loss", "multiclass_loss"])
def test_only_prediction_and_target_are_positional(name):
    parameters = inspect.signature(getattr(lc, name)).parameters.values()
    positional = [item.name for item in parameters if item.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert positional == ["scores", "target"]


@pytest.mark.parametrize(
    "fact", ["lipschitz", "smoothness", "is_convex", "is_c1", "is_c2", "is_monotone", "bounds_zero_one", "knots"]
)
@pytest.mark.parametrize("name", sorted(SURROGATES - {"Surrogate"}))
def test_surrogates_declare_their_facts(name, fact):
    assert getattr(getattr(lc, name)(), fact) is not None
