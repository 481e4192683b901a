"""A user's own function of torch tensors, judged: its autograd, custom backward passes included.

The file is loaded, and its code runs, because ``--torch`` asked for exactly that; nothing else in jacli runs code.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import io
import linecache
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from traceback import extract_tb
from typing import Any

from jacli import calculus, verify
from jacli.autograd import Floats
from jacli.calculus import Exact
from jacli.checks import differences, witnesses
from jacli.checks.differences import Slope
from jacli.errors import JacliError, Span
from jacli.findings import Findings, Witness
from jacli.language.points import read_names, read_point
from jacli.problem import Problem, Tolerance, doubles, prepare, row_names, shape_of, too_long
from jacli.readings import floats
from jacli.result import Block, Entry, Named, Result, entry_names

#: Without an expression a derivative agrees with differences that are as near as this, or as this many of their errors.
OWN_RTOL, OWN_ERRORS = 1e-7, 10

#: Differences that are no better than this are no judge.
_TOO_COARSE = 1e-3


# ---- loading and calling


@dataclass(frozen=True, slots=True)
class Function:
    """A function of tensors, as ``FILE.py:NAME`` or ``MODULE:NAME`` names it."""

    name: str
    path: str
    call: Callable[..., Any]

    def __call__(self, tensors: Sequence[Any], *, again: bool = False) -> tuple[Any, ...]:
        """The tensors it returns. Raises JacliError when it fails, or returns something else.

        What it prints goes to standard error, unless it is called again.
        """
        with self.guarded(), redirect_stdout(io.StringIO() if again else sys.stderr):
            returned = self.call(*tensors)
        outputs = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
        for output in outputs:
            self._check(output)
        if not outputs:
            raise JacliError(f"{self.name} returns nothing", kind="torch")
        return outputs

    def _check(self, output: object) -> None:
        t = floats.torch()
        if not isinstance(output, t.Tensor):
            found = type(output).__name__
            hint = "it must return a tensor, or a tuple of tensors"
            raise JacliError(f"{self.name} returns {_a(found)}, not a torch tensor", None, hint, kind="torch")
        if not output.is_floating_point():
            dtype = str(output.dtype).removeprefix("torch.")
            raise JacliError(f"{self.name} returns a tensor of {dtype}, not of real numbers", kind="torch")

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Errors of the function's own code, told plainly."""
        try:
            yield
        except (JacliError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever their code raises
            raise _told(error, f"{self.name} failed", self.path) from None


def _a(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _told(error: BaseException, what: str, path: str) -> JacliError:
    """Their exception: its type, its message and the line of their file that it came from."""
    line: int | None = error.lineno if isinstance(error, SyntaxError) else None
    for frame in extract_tb(error.__traceback__):
        if path and Path(frame.filename) == Path(path):
            line = frame.lineno
    said = error.msg if isinstance(error, SyntaxError) else " ".join(str(error).split())
    where = f", line {line} of {Path(path).name}" if line else ""
    message = f"{what}: {type(error).__name__}{f': {said}' if said else ''}{where}"
    text = linecache.getline(path, line).rstrip() if line else ""
    span = Span(len(text) - len(text.lstrip()), len(text)) if text.strip() else None
    return JacliError(message, span, text=text or None, kind="torch")


def load(spec: str) -> Function:
    """The function that ``FILE.py:NAME`` or ``MODULE:NAME`` names. This runs the file.

    Raises:
        JacliError: when there is none, or the file fails.
    """
    place, colon, name = spec.rpartition(":")
    if not colon or not place or not name.isidentifier():
        hint = "type --torch FILE.py:FUNCTION"
        raise JacliError(f"{spec or 'nothing'} names no function", None, hint, kind="option")
    module = _from_file(place) if place.endswith(".py") else _from_module(place)
    path = str(getattr(module, "__file__", None) or "")
    function = getattr(module, name, None)
    if not callable(function):
        known = sorted(key for key, value in vars(module).items() if inspect.isfunction(value))
        listed = f"its functions are {', '.join(known[:12])}" if known else None
        raise JacliError(f"{place} has no function {name}", None, listed, kind="torch")
    return Function(name, path, function)


def _from_file(place: str) -> Any:
    if not Path(place).is_file():
        raise JacliError(f"there is no file {place}", kind="file")
    path = str(Path(place).resolve())
    spec = importlib.util.spec_from_file_location("jacli_foreign", path)
    if spec is None or spec.loader is None:
        raise JacliError(f"{place} cannot be loaded", kind="file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(Path(path).parent))  # it may import its neighbours
    _run(place, path, lambda: spec.loader.exec_module(module))  # type: ignore[union-attr]
    return module


def _from_module(place: str) -> Any:
    sys.path.insert(0, "")
    return _run(place, "", lambda: importlib.import_module(place))


def _run(place: str, path: str, load: Callable[[], Any]) -> Any:
    try:
        with redirect_stdout(sys.stderr):
            return load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever their code raises
        raise _told(error, f"{place} cannot be loaded", path) from None


# ---- at a point


@dataclass(frozen=True, slots=True)
class Inputs:
    """The point as the function takes it: one tensor a value, in the order typed.

    ``chosen`` are the positions of those differentiated by, in column order.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    values: tuple[tuple[float, ...], ...]
    chosen: tuple[int, ...]

    def tensors(self) -> list[Any]:
        """Leaf tensors; those differentiated by require gradients."""
        t = floats.torch()
        made = [
            t.tensor(values, dtype=t.float64).reshape(shape)
            for values, shape in zip(self.values, self.shapes, strict=True)
        ]
        for index in self.chosen:
            made[index].requires_grad_()
        return made

    def named(self, index: int) -> Named:
        """One of them, for the result."""
        name, shape = self.names[index], self.shapes[index]
        return Named(name, shape, entry_names(name, shape), self.values[index])

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the entries differentiated by."""
        return tuple(entry for index in self.chosen for entry in self.named(index).entries)

    @property
    def flat(self) -> list[float]:
        """The values of the entries differentiated by."""
        return [x for index in self.chosen for x in self.values[index]]

    def moved(self, flat: Sequence[float]) -> list[Any]:
        """Tensors at another point."""
        t = floats.torch()
        made, start = [tensor.detach() for tensor in self.tensors()], 0
        for index in self.chosen:
            size = len(self.values[index])
            made[index] = t.tensor(flat[start : start + size], dtype=t.float64).reshape(self.shapes[index])
            start += size
        return made


@dataclass(frozen=True, slots=True)
class Seen:
    """A function's derivatives by reverse mode, by forward mode (None: it has none) and by differences."""

    computed: Floats
    rows: list[list[float]]
    forward: list[list[float | None]]
    slopes: list[list[Slope]]


def look(function: Function, inputs: Inputs) -> Seen:
    """Differentiate a function in every way that needs no expression. Raises JacliError when it fails."""
    tensors = inputs.tensors()
    outputs = function(tensors)
    computed = Floats(tuple(tensors[index] for index in inputs.chosen), outputs)
    values = computed.values()

    def plain(point: Sequence[float]) -> list[float]:
        with floats.torch().no_grad():
            return Floats.flat(function(inputs.moved(point), again=True))

    if not _alike(plain(inputs.flat), values):
        hint = "switch off what is random in it (dropout, sampling), or set a seed inside"
        raise JacliError(f"{function.name} gives other values when it is called again", None, hint, kind="torch")
    with function.guarded(), redirect_stdout(sys.stderr):
        rows = computed.rows()
    count = len(inputs.flat)
    forward = [_forward(function, inputs, tensors, place) for place in range(count)]
    slopes = [differences.column(plain, inputs.flat, index) for index in range(count)]
    return Seen(computed, rows, _transposed(forward, len(values)), _transposed(slopes, len(values)))


def _forward(function: Function, inputs: Inputs, tensors: Sequence[Any], place: int) -> Sequence[float | None] | None:
    """One column by forward mode, the others of the point held fixed."""
    places = [(k, entry) for k, index in enumerate(inputs.chosen) for entry in range(len(inputs.values[index]))]

    def of_chosen(duals: Sequence[Any]) -> Sequence[Any]:
        given = [tensor.detach() for tensor in tensors]
        for k, index in enumerate(inputs.chosen):
            given[index] = duals[k]
        with redirect_stdout(io.StringIO()):
            returned = function.call(*given)
        return tuple(returned) if isinstance(returned, tuple | list) else (returned,)

    return witnesses.forward_column(of_chosen, [tensors[index] for index in inputs.chosen], places[place])


def _transposed(columns: Sequence[Sequence[Any] | None], height: int) -> list[list[Any]]:
    return [[None if column is None else column[i] for column in columns] for i in range(height)]


def _alike(a: Sequence[float], b: Sequence[float]) -> bool:
    return len(a) == len(b) and all(x == y or (math.isnan(x) and math.isnan(y)) for x, y in zip(a, b, strict=True))


# ---- against an expression, or against itself


def check(
    spec: str, text: str | None, at: Any, tolerance: Tolerance, *, vars: Any, wrt: Any, claim: Any, weights: Any
) -> Result:
    """Judge a function against an expression, or without one against its own differences.

    Raises:
        JacliError: when the request is wrong or the function fails.
    """
    for option, value in (("--claim", claim), ("--weights", weights)):
        if value is not None:
            raise JacliError(f"{option} does not go with --torch", None, "ask for one after the other", kind="option")
    if text is None:
        point = read_point(at)
        function = load(spec)
        return _against_itself(spec, function, _inputs(function, point, wrt), tolerance)
    problem = prepare(text, at, vars=vars, wrt=wrt)
    if problem.lowered is None:
        raise too_long()
    return _against(problem, load(spec), _inputs_of(problem, at, vars), tolerance)


def _inputs_of(problem: Problem, at: Any, vars: Any) -> Inputs:
    """The variables of an expression in the order typed."""
    order = read_point(at).names or (read_names(vars, "--vars") if vars is not None else problem.program.variables)
    known = {variable.name: variable for variable in problem.variables}
    names = tuple(name for name in order if name in known)
    chosen = tuple(names.index(variable.name) for variable in problem.wrt)
    shapes = tuple(known[name].shape for name in names)
    return Inputs(names, shapes, tuple(known[name].doubles for name in names), chosen)


def _inputs(function: Function, point: Any, wrt: Any) -> Inputs:
    values = [item.value for item in point.items]
    names = point.names or _parameters(function.call, len(values))
    asked = names if wrt is None else read_names(wrt, "--wrt")
    for name in asked:
        if name not in names:
            raise JacliError(f"--wrt names {name}, which has no value", None, f"known: {', '.join(names)}", kind="name")
    shapes = tuple(shape_of(value) for value in values)
    return Inputs(names, shapes, tuple(tuple(doubles(v)) for v in values), tuple(map(names.index, asked)))


def _parameters(function: Callable[..., Any], count: int) -> tuple[str, ...]:
    """The function's own names for its arguments, or x0, x1, …"""
    try:
        names = tuple(
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        )
    except (TypeError, ValueError):
        names = ()
    return names[:count] if len(names) >= count else tuple(f"x{k}" for k in range(count))


def _against(problem: Problem, function: Function, inputs: Inputs, tolerance: Tolerance) -> Result:
    """The verdict of an expression on a function."""
    seen, exact = look(function, inputs), Exact(problem)
    if len(seen.rows) != problem.output_size:
        message = f"{function.name} returns {len(seen.rows)} numbers, but the expression has {problem.output_size}"
        raise JacliError(message, kind="shape")
    names = {
        "reverse": f"the backward pass of {function.name}",
        "forward": f"the forward mode of {function.name}",
        "sympy": "SymPy's formula",
        "differences": f"differences of {function.name}",
    }
    entries = calculus.judged_rows(exact, seen.rows, tolerance)
    heard = witnesses.weigh(exact, entries, seen.forward, seen.slopes, tolerance, (), names, function.name)
    block = Block("jacobian", row_names(problem), problem.columns, heard.entries)
    result = calculus.assembled("check", problem, seen.computed, exact, [block], tolerance=tolerance)
    remarks = (*result.remarks, *_other_values(exact, function, seen, block.row_names))
    return replace(result, remarks=remarks, findings=Findings(heard.witnesses))


def _other_values(exact: Exact, function: Function, seen: Seen, names: Sequence[str]) -> Iterator[str]:
    """Where the function's value is not the expression's: then their derivatives need not be the same either."""
    for name, value, node in zip(names, seen.computed.values(), exact.outputs, strict=True):
        proof = verify.prove_value(exact.tape, node)
        if proof.exact is not None and verify.judge(value, proof)[0] == "disagree":
            yield f"{function.name} returns {value!r} for {name}, where the expression is {proof.exact}"


def _against_itself(spec: str, function: Function, inputs: Inputs, tolerance: Tolerance) -> Result:
    """The verdict of a function's own differences on its autograd."""
    seen = look(function, inputs)
    values = seen.computed.values()
    rtol = max(tolerance.rtol, OWN_RTOL)
    graded = [
        [
            _graded(value, seen.rows[i][j], seen.forward[i][j], slope, rtol, tolerance.atol)
            for j, slope in enumerate(seen.slopes[i])
        ]
        for i, value in enumerate(values)
    ]
    outputs = _outputs(seen.computed)
    block = Block(
        "jacobian",
        tuple(name for output in outputs for name in output.entries),
        inputs.columns,
        tuple(tuple(entry for entry, _ in row) for row in graded),
    )
    fixed = [k for k in range(len(inputs.names)) if k not in inputs.chosen]
    note = (
        f"judged by {function.name}'s own central differences, for want of an expression: it agrees within {rtol:g} "
        f"relative or {OWN_ERRORS} times their estimated error, whichever is larger"
    )
    return Result(
        "check",
        spec,
        outputs,
        tuple(map(inputs.named, inputs.chosen)),
        tuple(map(inputs.named, fixed)),
        (block,),
        rtol=rtol,
        atol=tolerance.atol,
        notes=(note,),
        findings=Findings(tuple(tuple(witness for _, witness in row) for row in graded)),
    )


def _outputs(computed: Floats) -> tuple[Named, ...]:
    named = []
    for k, output in enumerate(computed.outputs):
        shape = tuple(output.shape)
        named.append(Named(f"f{k}", shape, entry_names(f"f{k}", shape), tuple(Floats.flat([output]))))
    return tuple(named)


def _graded(
    value: float, reverse: float, forward: float | None, slope: Slope, rtol: float, atol: float
) -> tuple[Entry, Witness]:
    """One entry's verdict by differences, and its witnesses."""
    known = math.isfinite(slope.value)
    status, reason, blamed = _verdict(value, reverse, forward, slope, rtol, atol)
    sides = (repr(slope.sides[0]), repr(slope.sides[1])) if slope.sides and status == "kink" else None
    entry = Entry(reverse, None, None, status, None, sides, reason)
    witness = Witness(reverse, forward, blamed=blamed)
    if known:
        witness = replace(witness, difference=slope.value, error=slope.error, step=slope.step)
    return entry, witness


def _verdict(
    value: float, reverse: float, forward: float | None, slope: Slope, rtol: float, atol: float
) -> tuple[str, str | None, tuple[str, ...]]:
    """Status, reason, and who is to blame."""
    if not math.isfinite(value):
        return "undefined", f"the function returns {value} here; its backward pass returned {reverse}", ()
    if not math.isfinite(slope.value):
        return "undefined", f"no differences: the function has no values around here; autograd returned {reverse}", ()
    if slope.sides is not None:
        left, right = slope.sides
        word = f"differences to the left give {left!r}, to the right {right!r}; autograd returned {reverse!r}"
        return "kink", word, ()
    allowed = max(rtol * abs(slope.value) + atol, OWN_ERRORS * slope.error)
    returned = {"reverse": reverse, "forward": forward}
    off = tuple(name for name, told in returned.items() if told is not None and not abs(told - slope.value) <= allowed)
    if off:
        words = [f"its {name} mode returned {returned[name]!r}" for name in off]
        return "disagree", f"{' and '.join(words)}; differences give {slope.value!r} ± {slope.error:.1e}", off
    if slope.error > _TOO_COARSE * max(abs(slope.value), abs(reverse), abs(value)):
        return "rounding", f"differences are only good to ± {slope.error:.1e} here: no sharper verdict", ()
    return "agree", None, ()
