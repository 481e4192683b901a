"""Derivatives of a problem, in every reading: rows by reverse mode, everything else from them.

Floats come from torch, one output entry at a time, so that one undefined output never spoils another; formulas from
SymPy; the truth from the prover. Entries that the program cannot depend on are zero in every reading.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from jacli import unproved, verify
from jacli.autograd import Floats
from jacli.errors import JacliError
from jacli.problem import Problem, Tolerance, Vector, row_names, too_long
from jacli.readings import symbols
from jacli.readings.tape import Tape
from jacli.result import Block, Entry, Named, Result, Share, entry_names
from jacli.sparse import MOST_DENSE, too_large

#: How many operations of derivative formulas one result holds: they are for reading, and SymPy takes its time.
MOST_FORMULAS = 12_000

#: What a formula costs beside its operations, in operations.
OPERATIONS_BESIDE = 20

#: Largest table of shares (outputs times variables).
MOST_SHARES = 2_500


class Exact:
    """The exact side of a problem: which entries can differ from zero, formulas, proofs."""

    def __init__(self, problem: Problem) -> None:
        if problem.lowered is None:
            raise too_long()
        self.problem = problem
        self.tape: Tape = problem.lowered.tape
        self.outputs = [node for nodes in problem.lowered.outputs for node in nodes]
        self.columns = problem.column_nodes

    @cached_property
    def formulas(self) -> list[Mapping[str, Any] | None]:
        """For each output entry, SymPy's derivatives by column name (absent: zero); None past the budget."""
        result: list[Mapping[str, Any] | None] = [None] * len(self.outputs)
        left = MOST_FORMULAS
        for index, node in enumerate(self.outputs):
            expression = self.expressions.of(node)
            if expression is not None:
                left -= symbols.derived_size(expression) + OPERATIONS_BESIDE
                result[index] = symbols.gradient(expression) if left > 0 else None
            if left <= 0:
                break
        return result

    @cached_property
    def expressions(self) -> symbols.Expressions:
        """The outputs in SymPy, each built when asked for."""
        return symbols.Expressions(self.tape, self.outputs)

    @cached_property
    def reached(self) -> list[set[int]]:
        """For each output entry, the column nodes that it can depend on."""
        columns = set(self.columns)
        return [columns.intersection(self.tape.needed([node])) for node in self.outputs]

    def formula(self, row: int, column: str) -> Any:
        """SymPy's ``∂output/∂column``; None where there is none."""
        found = self.formulas[row]
        return None if found is None else found.get(column, symbols.sympy().S.Zero)

    def read_as(self) -> list[str | None]:
        """The outputs as SymPy has them, as far as the budget for formulas goes."""
        return [
            None if found is None else symbols.text(self.expressions.of(node))
            for node, found in zip(self.outputs, self.formulas, strict=True)
        ]

    def notes(self) -> tuple[str, ...]:
        """What is missing among the formulas, if anything."""
        missing = sum(found is None for found in self.formulas)
        if not missing:
            return ()
        which = "the output" if len(self.outputs) == 1 else f"{missing} of {len(self.outputs)} outputs"
        return (f"no formula for {which}: too long to read, or SymPy has none",)

    def weighted(self, weights: Vector) -> int:
        """The node of the outputs' weighted sum, outputs of weight zero left out."""
        total: int | None = None
        for node, weight in zip(self.outputs, weights.nodes(self.tape), strict=True):
            if self.tape.ops[weight].op == "number" and self.tape.ops[weight].value == 0:
                continue
            term = self.tape.add("mul", weight, node)
            total = term if total is None else self.tape.add("add", total, term)
        return self.tape.number(0) if total is None else total


# ---- results


def jacobian(
    problem: Problem, tolerance: Tolerance, weights: Vector | None = None, exact: Exact | None = None
) -> Result:
    """The full Jacobian, entry by entry in every reading, and ``weights · J`` when weights are given.

    ``exact`` is the exact side of the problem, where the caller has it already.
    """
    size = problem.output_size, len(problem.columns)
    if size[0] * size[1] > MOST_DENSE:
        raise too_large("Jacobian", *size)
    computed, exact = Floats.of(problem), exact or Exact(problem)
    proofs = _row_proofs(exact)
    rows = _settled(problem, computed.rows(), proofs, Floats.rows)
    entries = (_row(exact, index, row, proofs[index], tolerance) for index, row in enumerate(rows))
    block = Block("jacobian", row_names(problem), problem.columns, tuple(entries))
    blocks = [block] if weights is None else [block, _vjp_block(problem, computed, exact, weights, tolerance)]
    return assembled("jacobian", problem, computed, exact, blocks, weights=weights, tolerance=tolerance, rows=rows)


def vjp(problem: Problem, weights: Vector, tolerance: Tolerance) -> Result:
    """``weights · J``: the row that torch calls ``grad_output`` times the Jacobian."""
    if problem.lowered is None:
        return unproved.vjp(problem, weights, tolerance)
    computed, exact = Floats.of(problem), Exact(problem)
    block = _vjp_block(problem, computed, exact, weights, tolerance)
    rows = computed.rows() if problem.output_size * len(problem.columns) <= MOST_SHARES else []
    return assembled("vjp", problem, computed, exact, [block], weights=weights, tolerance=tolerance, rows=rows)


def grad(problem: Problem, tolerance: Tolerance) -> Result:
    """The gradient of the one scalar output."""
    _check_scalar(problem, "gradient", "jacobian or vjp")
    if problem.lowered is None:
        return unproved.grad(problem, tolerance)
    computed, exact = Floats.of(problem), Exact(problem)
    proofs = _row_proofs(exact)
    values = _settled(problem, computed.rows(), proofs, Floats.rows)[0]
    row = _row(exact, 0, values, proofs[0], tolerance)
    block = Block("grad", row_names(problem), problem.columns, (row,), vector=True)
    return assembled("grad", problem, computed, exact, [block], tolerance=tolerance)


def jvp(problem: Problem, tangent: Vector, tolerance: Tolerance) -> Result:
    """``J · tangent``: the change of the outputs along a direction."""
    if problem.lowered is None:
        return unproved.jvp(problem, tangent, tolerance)
    computed, exact = Floats.of(problem), Exact(problem)
    nodes = tangent.nodes(exact.tape)
    direction = dict(zip(exact.columns, nodes, strict=True))
    proofs = [
        verify.prove_directional(exact.tape, node, {c: direction[c] for c in reached}) if reached else None
        for node, reached in zip(exact.outputs, exact.reached, strict=True)
    ]
    values = _settled(problem, [computed.jvp(tangent.doubles)], [proofs], lambda f: [f.jvp(tangent.doubles)])[0]
    entries = tuple(
        ZERO if proof is None else _entry(value, _row_product(exact, index, nodes), proof, tolerance)
        for index, (value, proof) in enumerate(zip(values, proofs, strict=True))
    )
    block = Block("jvp", ("jvp",), row_names(problem), (entries,), vector=True)
    rows = computed.rows() if problem.output_size * len(problem.columns) <= MOST_SHARES else []
    return assembled("jvp", problem, computed, exact, [block], tangent=tangent, tolerance=tolerance, rows=rows)


def hessian(problem: Problem, tolerance: Tolerance, exact: Exact | None = None) -> Result:
    """Second derivatives of the one scalar output. ``exact`` as for ``jacobian``."""
    _check_scalar(problem, "Hessian", "jacobian")
    count = len(problem.columns)
    if count * count > MOST_DENSE:
        raise too_large("Hessian", count, count)
    computed, exact = Floats.of(problem), exact or Exact(problem)
    proofs = verify.prove_hessian(exact.tape, exact.outputs[0], exact.columns)
    values = _settled(problem, computed.hessian(), proofs, Floats.hessian)
    formulas = _second_formulas(exact)
    rows = tuple(
        tuple(_entry(values[i][j], formulas[i][j], proofs[i][j], tolerance) for j in range(count)) for i in range(count)
    )
    block = Block("hessian", problem.columns, problem.columns, rows)
    return assembled("hessian", problem, computed, exact, [block], tolerance=tolerance)


def hvp(problem: Problem, tangent: Vector, tolerance: Tolerance) -> Result:
    """``H · tangent`` for the one scalar output."""
    _check_scalar(problem, "Hessian", "jvp")
    computed, exact = Floats.of(problem), Exact(problem)
    nodes = tangent.nodes(exact.tape)
    proofs = verify.prove_hvp(exact.tape, exact.outputs[0], exact.columns, dict(zip(exact.columns, nodes, strict=True)))
    values = _settled(problem, [computed.hvp(tangent.doubles)], [proofs], lambda f: [f.hvp(tangent.doubles)])[0]
    formulas = _second_formulas(exact) if len(exact.columns) ** 2 <= MOST_SHARES else None
    entries = [
        _entry(
            value, _product(exact, list(zip(formulas[i], nodes, strict=True))) if formulas else None, proof, tolerance
        )
        for i, (value, proof) in enumerate(zip(values, proofs, strict=True))
    ]
    block = Block("hvp", ("hvp",), problem.columns, (tuple(entries),), vector=True)
    return assembled("hvp", problem, computed, exact, [block], tangent=tangent, tolerance=tolerance)


# ---- entries


#: The proofs of one row, None where the program cannot depend on the column.
Proofs = Sequence[verify.Proof | None]


def _row_proofs(exact: Exact) -> list[Proofs]:
    """Every output entry's row, proved where it can depend on the column."""
    return _proofs(exact, exact.outputs, exact.reached)


def _proofs(exact: Exact, nodes: Sequence[int], reached: Sequence[set[int]]) -> list[Proofs]:
    rows = verify.prove_jacobian(exact.tape, nodes, exact.columns)
    return [
        [proof if column in columns else None for column, proof in zip(exact.columns, row, strict=True)]
        for columns, row in zip(reached, rows, strict=True)
    ]


#: What is proved of an entry that the program cannot depend on.
_NOTHING = verify.Proof("smooth", "0")


def judged_rows(exact: Exact, rows: Sequence[Sequence[float]], tolerance: Tolerance) -> tuple[tuple[Entry, ...], ...]:
    """The Jacobian's entries, the floats given: they need not come from the program itself."""
    return tuple(
        _row(exact, index, row, [proof or _NOTHING for proof in proofs], tolerance)
        for index, (row, proofs) in enumerate(zip(rows, _row_proofs(exact), strict=True))
    )


def _row(exact: Exact, index: int, values: Sequence[float], proofs: Proofs, tolerance: Tolerance) -> tuple[Entry, ...]:
    names = exact.problem.columns
    return tuple(
        ZERO if proof is None else _entry(value, exact.formula(index, name), proof, tolerance)
        for name, value, proof in zip(names, values, proofs, strict=True)
    )


def _settled(
    problem: Problem, rows: list[list[float]], proofs: Sequence[Proofs], again: Callable[[Floats], list[list[float]]]
) -> list[list[float]]:
    """``rows``, with entries recomputed in single numbers where whole arrays gave nan for a finite truth.

    An array operation multiplies a zero cotangent with every entry's derivative, and zero times infinity is nan.
    """
    doubtful = [
        (i, j)
        for i, row in enumerate(rows)
        for j, value in enumerate(row)
        if not math.isfinite(value) and (proof := proofs[i][j]) is not None and proof.exact is not None
    ]
    if not doubtful or not any(problem.shapes):
        return rows
    settled = again(Floats.by_entries(problem))
    for i, j in doubtful:
        rows[i][j] = settled[i][j]
    return rows


#: An entry that the program cannot depend on.
ZERO = Entry(0.0, "0", "0", "agree", 0.0)


def _entry(value: float, formula: Any, proof: verify.Proof, tolerance: Tolerance) -> Entry:
    status, reason = verify.judge(value, proof, tolerance.rtol, tolerance.atol)
    bound = None if proof.exact is None else proof.input_bound
    return Entry(value, symbols.text(formula), proof.exact, status, bound, proof.one_sided, reason)


def _vjp_block(problem: Problem, computed: Floats, exact: Exact, weights: Vector, tolerance: Tolerance) -> Block:
    def values(proofs: Proofs) -> list[float]:
        return _settled(problem, [computed.vjp(weights.doubles)], [proofs], lambda f: [f.vjp(weights.doubles)])[0]

    entries = weighted_entries(exact, [weights], values, tolerance)
    return Block("vjp", ("vjp",), problem.columns, (entries,), vector=True)


def weighted_entries(
    exact: Exact, rows: Sequence[Vector], values: Callable[[Proofs], Sequence[float]], tolerance: Tolerance
) -> tuple[Entry, ...]:
    """``weights · J``, added up over several rows of weights, an entry a column.

    ``values`` gives the floats, knowing the proofs; where the program cannot depend on a column they are 0.
    """
    total = _sum(exact.tape, [exact.weighted(weights) for weights in rows])
    proofs = _proofs(exact, [total], [set(exact.columns).intersection(exact.tape.needed([total]))])[0]
    parts = _column_parts(exact, [weights.nodes(exact.tape) for weights in rows])
    names = exact.problem.columns
    return tuple(
        ZERO if proof is None else _entry(value, _product(exact, parts.get(name, [])), proof, tolerance)
        for name, value, proof in zip(names, values(proofs), proofs, strict=True)
    )


def _sum(tape: Tape, nodes: Sequence[int]) -> int:
    total = nodes[0]
    for node in nodes[1:]:
        total = tape.add("add", total, node)
    return total


def _column_parts(exact: Exact, rows: Sequence[Sequence[int]]) -> dict[str, list[tuple[Any, int]]]:
    """For each column, the formulas of the outputs that depend on it, each with its weights (one a row)."""
    parts: dict[str, list[tuple[Any, int]]] = {}
    names = dict(zip(exact.columns, exact.problem.columns, strict=True))
    for weights in rows:
        for index, weight in enumerate(weights):
            for column in exact.reached[index]:
                parts.setdefault(names[column], []).append((exact.formula(index, names[column]), weight))
    return parts


def _product(exact: Exact, parts: Sequence[tuple[Any, int]]) -> Any:
    """The sum of formulas times constants, in SymPy; None where one has no formula."""
    if any(formula is None for formula, _ in parts):
        return None
    s = symbols.sympy()
    constants = [symbols.constant(exact.tape, node) for _, node in parts]
    if any(constant is None for constant in constants):
        return None
    return s.Add(*(constant * formula for constant, (formula, _) in zip(constants, parts, strict=True)))


def _row_product(exact: Exact, index: int, nodes: Sequence[int]) -> Any:
    """SymPy's ``J · tangent`` for one output."""
    names = exact.problem.columns
    parts = [
        (exact.formula(index, name), node)
        for column, name, node in zip(exact.columns, names, nodes, strict=True)
        if column in exact.reached[index]
    ]
    return _product(exact, parts)


def _second_formulas(exact: Exact) -> list[list[Any]]:
    """SymPy's second derivatives; None where there is none."""
    names = exact.problem.columns
    zero = symbols.sympy().S.Zero
    rows = []
    for name in names:
        first = exact.formula(0, name)
        second = None if first is None or len(names) ** 2 > MOST_SHARES else symbols.gradient(first)
        rows.append([None if second is None else second.get(other, zero) for other in names])
    return rows


# ---- the result


def assembled(
    command: str,
    problem: Problem,
    computed: Floats,
    exact: Exact,
    blocks: Sequence[Block],
    *,
    tolerance: Tolerance,
    weights: Vector | None = None,
    tangent: Vector | None = None,
    rows: Sequence[Sequence[float]] = (),
) -> Result:
    """The result of a command: what every command tells, and its own blocks."""
    return Result(
        command,
        problem.program.text,
        _outputs(problem, computed, exact),
        tuple(variable.named() for variable in problem.wrt),
        tuple(variable.named() for variable in problem.fixed),
        tuple(blocks),
        weights.doubles if weights else None,
        tangent.doubles if tangent else None,
        _shares(problem, rows, weights, tangent),
        tolerance.rtol,
        tolerance.atol,
        problem.remarks,
        (*problem.notes(), *exact.notes()),
    )


def _outputs(problem: Problem, computed: Floats, exact: Exact) -> tuple[Named, ...]:
    entries = list(
        zip(
            computed.values(),
            exact.read_as(),
            [verify.prove_value(exact.tape, node).exact for node in exact.outputs],
            strict=True,
        )
    )
    result, start = [], 0
    for name, shape in zip(problem.program.output_names(), problem.output_shapes, strict=True):
        own = entries[start : start + math.prod(shape)]
        start += len(own)
        values, texts, exacts = zip(*own, strict=True) if own else ((), (), ())
        result.append(Named(name, shape, entry_names(name, shape), values, _nested(texts, shape), exacts))
    return tuple(result)


def _nested(texts: Sequence[str | None], shape: tuple[int, ...]) -> str | None:
    """Formulas of an array's entries in brackets; None when one is missing or there are too many to read."""
    if any(text is None for text in texts) or len(texts) > 64:
        return None
    items = [text for text in texts if text is not None]
    for size in reversed(shape):
        items = ["[" + ", ".join(items[i : i + size]) + "]" for i in range(0, len(items), size)] if size else ["[]"]
    return items[0] if items else None


def _shares(
    problem: Problem, rows: Sequence[Sequence[float]], weights: Vector | None, tangent: Vector | None
) -> tuple[Share, ...]:
    """What each output adds to a VJP, or each variable to a JVP."""
    if not rows or len(rows) * len(problem.columns) > MOST_SHARES:
        return ()
    if weights is not None:
        return tuple(
            Share(name, weight, tuple(weight * slope if weight else 0.0 for slope in row))
            for name, weight, row in zip(row_names(problem), weights.doubles, rows, strict=True)
        )
    if tangent is not None:
        return tuple(
            Share(name, step, tuple(row[j] * step if step else 0.0 for row in rows))
            for j, (name, step) in enumerate(zip(problem.columns, tangent.doubles, strict=True))
        )
    return ()


def _check_scalar(problem: Problem, what: str, instead: str) -> None:
    if problem.output_size != 1 or len(problem.program.outputs) != 1:
        count = problem.output_size
        raise JacliError(
            f"a {what} is of one number, but this program has {count} output entries",
            None,
            f"use {instead}, or make one number of them: sum(…)",
            kind="shape",
        )
