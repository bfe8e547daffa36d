"""A snapshot of what the library computes: every loss, head, decoder, estimator and certificate on small fixed inputs.

    python -m tests.snapshot              compare the library with the recorded numbers; exit code 1 on a difference
    python -m tests.snapshot --write      record what the library computes now

It is a regression test: it shows every number that a change of the code changes, and says nothing about which number is
right. The laws, the golden values and the oracles do that. It uses public names only. `calls.py` holds each call that may
get another name, so that a new name is a change of one line.

The full cross of all options would be millions of numbers. What is crossed, and what is not:

* Surrogates: every base with one and two sides, τ and sharpness 1 and not 1, and all classical surrogates, on one grid.
* `multiclass_loss`: four surrogates × all forms × all kinds of targets × all reductions. The other surrogates × all forms
  have class indices, probabilities and one kind with all options at once.
* Gradients and Hessian-vector products are recorded for the reductions "mean" and "none", for surrogates outside the four
  for "mean" alone. For "mean" they cover every floating-point input (weights and target probabilities too), for "none" the
  scores. The other reductions have values.
* Chains: forms × rank × unary × masks are crossed; costs, constraints, layouts and surrogates vary one at a time.
* A few larger inputs go through code that small ones do not reach: rows in several blocks, decoding with bounds, the
  underflow fallback of the CRF. Of their gradients weighted sums are recorded.
* Everything differentiable is there in float64 and in float32. Backends, modules, NumPy inputs, sparse
  gradients, gradients that are differentiated again, and `batch_first` have no records of their own: they are compared with
  the record of the default call.
"""
