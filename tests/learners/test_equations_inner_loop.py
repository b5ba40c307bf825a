"""The look-ahead's gradients: closed forms, finite differences, and autograd over a plain loop."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import (
    BOWLS,
    assert_close,
    assert_same_bits,
    batch_of,
    bowl,
    bowl_slope,
    hessian,
    linear,
    network,
    network_batch,
    network_params,
    quadratic,
)

from lamaml.errors import InvalidArgument
from lamaml.learners.inner_loop import (
    META_LOSSES,
    check_inner_loop,
    chunks,
    fast_weights,
    meta_gradient,
    step_weights,
)

VARIANTS = list(itertools.product(META_LOSSES, (True, False)))  # of meta_loss and first_order


def all_variants(loss, params, rates, batch, meta_batch, **settings):
    """The meta-gradient of every variant, in one compilation."""

    @jax.jit
    def run(params, rates):
        return {
            f"{meta_loss}, first order {first_order}": meta_gradient(
                loss,
                params,
                rates,
                batch,
                meta_batch,
                meta_loss=meta_loss,
                first_order=first_order,
                **settings,
            )
            for meta_loss, first_order in VARIANTS
        }

    return dict(zip(VARIANTS, run(params, rates).values(), strict=True)) if False else run(
        params, rates
    )
