"""The number of floating-point operations of a traced function, without dead code.

JAX traces the function, and its own dead-code elimination removes what no output needs. What is
left is counted: matrix products by their shapes, arithmetic per element, the body of a loop once
per pass. A test compares the sum with XLA's cost analysis of the compiled program.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
from jax.interpreters.partial_eval import dce_jaxpr

_ARITHMETIC = frozenset(
    [
        "add",
        "add_any",
        "sub",
        "mul",
        "div",
        "neg",
        "abs",
        "sign",
        "max",
        "min",
        "square",
        "integer_pow",
        "sqrt",
        "rsqrt",
        "select_n",
        "clamp",
        "eq",
        "ne",
        "gt",
        "ge",
        "lt",
        "le",
        "and",
        "or",
        "not",
        "convert_element_type",
        "reduce_sum",
        "reduce_max",
        "reduce_min",
        "reduce_and",
        "reduce_or",
        "argmax",
        "argmin",
        "cumsum",
    ]
)


class Operations(NamedTuple):
    """Floating-point operations; a multiply-add counts as two.

    Attributes:
      products: of matrix products.
      elementwise: of arithmetic per element, comparisons and sums.
    """

    products: int = 0
    elementwise: int = 0

    @property
    def total(self) -> int:
        """Returns the sum of both kinds."""
        return self.products + self.elementwise

    def plus(self, other: "Operations", times: int = 1) -> "Operations":
        """Returns the sum with another count taken `times` times."""
        products = self.products + times * other.products
        return Operations(products, self.elementwise + times * other.elementwise)


def count_operations(function: Callable[..., Any], *arguments: Any) -> Operations:
    """Returns the operations of one call, which is traced and not made.

    Raises:
      ValueError: a matrix product is in a loop whose number of passes is not known.
    """
    jaxpr = jax.make_jaxpr(function)(*arguments).jaxpr
    live, _ = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    return _operations(live)


def _operations(jaxpr: Any) -> Operations:
    total = Operations()
    for equation in jaxpr.eqns:
        inner = [_operations(body) for body in _bodies(equation.params)]
        name = equation.primitive.name
        if name == "dot_general":
            total = total.plus(Operations(products=_product(equation)))
        elif name == "while" and any(count.products for count in inner):
            raise ValueError("a matrix product in a loop of unknown length cannot be counted")
        elif name == "cond":
            total = total.plus(max(inner, key=lambda count: count.total))
        elif name in _ARITHMETIC:
            total = total.plus(Operations(elementwise=_largest(equation)))
        for count in inner if name != "cond" else ():
            total = total.plus(count, equation.params.get("length", 1))
    return total


def _bodies(parameters: dict[str, Any]) -> Iterator[Any]:
    """Yields the programs inside an equation: of a loop, a branch, or a compiled function."""
    for value in parameters.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if hasattr(item, "eqns"):
                yield getattr(item, "jaxpr", item)


def _product(equation: Any) -> int:
    """Returns 2 · (elements of the result) · (length of the contracted axes)."""
    (contracted, _), _ = equation.params["dimension_numbers"]
    shape = equation.invars[0].aval.shape
    result = math.prod(equation.outvars[0].aval.shape)
    return 2 * result * math.prod(shape[axis] for axis in contracted)


def _largest(equation: Any) -> int:
    return max(math.prod(v.aval.shape) for v in (*equation.invars, *equation.outvars))
