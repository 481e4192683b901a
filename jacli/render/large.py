"""A large result for people: a summary that says how large it is, what it looks like and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jacli.render.numbers import show, show_exact
from jacli.render.sections import TITLES, Facts, Section, Table, Verdict

if TYPE_CHECKING:
    from jacli.render.options import Options
    from jacli.sparse.result import LargeResult, Quantity

#: Entries, shapes of equations and lines of the picture that a summary shows.
MOST_LISTED, MOST_SHAPES, PICTURE_WIDTH, PICTURE_HEIGHT = 20, 12, 60, 20

#: The longest equation that stands for its shape, in characters.
LONGEST_EQUATION = 60


def sections(result: LargeResult, options: Options) -> list[Section]:
    """Everything that a summary of ``result`` says."""
    drawn: list[Section] = [Facts(tuple(_facts(result)))]
    drawn += _shapes(result)
    for found in result.quantities:
        if found.entries is not None:
            drawn.append(_picture(result, found))
        drawn += _listed(result, found, options)
    return [*drawn, Verdict(_style(result.verdict), _words(result))]


def _style(verdict: str) -> str:
    return "rounding" if verdict == "unchecked" else verdict


def _words(result: LargeResult) -> str:
    if result.command == "sparsity":
        return "nothing was computed: these are the entries that can differ from zero"
    counts = ", ".join(f"{count:,} {kind}" for kind, count in result.counts.items()) or "no entries"
    how = {"none": "nothing was checked", "all": "every entry proved"}.get(
        result.check, f"{_second(result)}, {result.proved:,} proved"
    )
    return f"verdict: {result.verdict} ({counts}; {how}; relative tolerance {result.rtol:g})"


def _second(result: LargeResult) -> str:
    """What entries are compared with."""
    if result.system.families:
        return "every entry compared with the formulas' derivatives"
    return "nothing compared" if result.command == "hvp" else "every entry compared with a second reading"


def _facts(result: LargeResult) -> Iterator[tuple[str, str]]:
    from jacli.sparse.pattern import Pattern

    rows, columns = result.shape
    yield "size", f"{rows:,} output{'s' * (rows != 1)} × {columns:,} variable{'s' * (columns != 1)}"
    for found in result.quantities:
        if found.entries is None:
            continue
        pattern = Pattern(result.shape, found.entries.rows, found.entries.columns)
        zeros = int((found.values == 0).sum())
        more = f", of which {zeros:,} happen to be zero at the point" if zeros else ""
        yield "non-zeros", f"{len(pattern):,}{more}"
        if rows:
            least, most = int(pattern.per_row.min()), int(pattern.per_row.max())
            yield "per row", f"{least} to {most}, {len(pattern) / rows:.3g} on average"
        below, above = pattern.bandwidth
        yield "bandwidth", f"{below:,} below the diagonal, {above:,} above"
        forward, reverse = pattern.forward_colours, pattern.reverse_colours
        if forward is not None and reverse is not None:
            yield "colours", f"{forward} forward (JVPs), {reverse} reverse (VJPs), by a greedy colouring"
    if products := result.system.products:
        yield "computed", f"by {products}"


def _shapes(result: LargeResult) -> Iterator[Table]:
    """What the rows have in common: one line a formula. A program differentiated as a whole has none."""
    if not result.system.families:
        return
    families = sorted(result.system.families, key=len, reverse=True)
    rows = [(f"{len(family):,}", _shortened(family.formula.text)) for family in families[:MOST_SHAPES]]
    rest = len(families) - len(rows)
    if rest:
        rows.append((f"{sum(map(len, families[MOST_SHAPES:])):,}", f"… of {rest:,} further shapes"))
    count = len(families)
    yield Table(
        f"{count:,} shape{'s' * (count != 1)} of equations", ("rows", "such as"), tuple(rows), words=frozenset({1})
    )


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_EQUATION else line[: LONGEST_EQUATION - 1] + "…"


def _picture(result: LargeResult, found: Quantity) -> Facts:
    from jacli.sparse.pattern import Pattern

    if found.entries is None:
        raise ValueError("a vector has no picture")
    pattern = Pattern(result.shape, found.entries.rows, found.entries.columns)
    lines = pattern.picture(PICTURE_WIDTH, PICTURE_HEIGHT)
    return Facts(tuple(("pattern" if k == 0 else "", line) for k, line in enumerate(lines)))


def _listed(result: LargeResult, found: Quantity, options: Options) -> Iterator[Table]:
    """The entries that do not agree; of a vector that is all well, its first and last."""
    from jacli.sparse.check import KINDS

    order = found.order
    kinds = found.verdicts.kinds[order]
    bad = order[(kinds != KINDS.index("agree")) & (kinds != KINDS.index("unchecked"))].tolist()
    title = TITLES.get(found.key, found.key)
    if bad:
        more = f", the first {MOST_LISTED}" if len(bad) > MOST_LISTED else ""
        yield _entries(result, found, bad[:MOST_LISTED], f"{title}: {len(bad):,} entries do not agree{more}", options)
    elif found.entries is None:
        ends = [*range(min(4, len(order))), *range(max(4, len(order) - 2), len(order))]
        yield _entries(result, found, ends, f"{title}, the first and the last entries", options)


def _entries(result: LargeResult, found: Quantity, places: list[int], title: str, options: Options) -> Table:
    from jacli.sparse.check import KINDS

    verdicts = found.verdicts
    rows = tuple(
        (
            _name(result, found, k),
            show(float(found.values[k]), options.digits),
            show_exact(verdicts.exact.get(k), options.digits),
            KINDS[verdicts.kinds[k]],
            verdicts.reasons.get(k, ""),
        )
        for k in places
    )
    return Table(title, ("entry", "torch", "exact", "verdict", "why"), rows, words=frozenset({0, 3, 4}), formula=4)


def _name(result: LargeResult, found: Quantity, place: int) -> str:
    if found.entries is None:
        return (result.row_names if found.over == "outputs" else result.column_names)[place]
    row, column = int(found.entries.rows[place]), int(found.entries.columns[place])
    return f"∂{result.row_names[row]}/∂{result.column_names[column]}"


# ---- data


def render_csv(result: LargeResult, _: Options) -> str:
    """One entry a line, by name."""
    return _delimited(result, ",")


def render_tsv(result: LargeResult, _: Options) -> str:
    """One entry a line, by name."""
    return _delimited(result, "\t")


def _delimited(result: LargeResult, delimiter: str) -> str:
    from jacli.render.delimited import write_rows

    return write_rows(_rows(result), delimiter)


def _rows(result: LargeResult) -> Iterator[tuple[Any, ...]]:
    from jacli.sparse.check import KINDS

    yield ("quantity", "row", "column", "value", "exact", "status", "reason")
    rows, columns = result.row_names, result.column_names
    for found in result.quantities:
        values, kinds, verdicts = found.values.tolist(), found.verdicts.kinds.tolist(), found.verdicts
        where = found.entries
        for k in found.order.tolist():
            if where is None:
                names = found.key, rows[k] if found.over == "outputs" else columns[k]
            else:
                names = rows[where.rows[k]], columns[where.columns[k]]
            yield (found.key, *names, values[k], verdicts.exact.get(k), KINDS[kinds[k]], verdicts.reasons.get(k))


def render_npy(result: LargeResult, _: Options) -> bytes:
    """A vector. Raises JacliError for a matrix, which would be written with all its zeros."""
    import io

    import numpy as np

    from jacli.errors import JacliError

    found = result.quantities[-1]
    if found.entries is not None:
        raise JacliError("npy would hold every zero of a sparse matrix", None, "use --format npz", kind="option")
    buffer = io.BytesIO()
    np.save(buffer, found.values, allow_pickle=False)
    return buffer.getvalue()


def render_mtx(result: LargeResult, _: Options) -> str:
    """Matrix Market."""
    from jacli.sparse import formats

    return formats.mtx(result)


def render_npz(result: LargeResult, _: Options) -> bytes:
    """What ``scipy.sparse.load_npz`` reads."""
    from jacli.sparse import formats

    return formats.npz(result)


def render_coo(result: LargeResult, _: Options) -> str:
    """Coordinates, one entry a line."""
    from jacli.sparse import formats

    return formats.coo(result)
