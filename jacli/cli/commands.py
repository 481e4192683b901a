"""The commands and their options: each fact once, as data."""

from __future__ import annotations

from dataclasses import dataclass

from jacli.render import FORMATS


@dataclass(frozen=True, slots=True)
class Option:
    """One option. ``metavar`` is empty for a flag; ``many`` may be given again and again; ``also`` are other words
    for it, which are not understood but answered with its name.
    """

    name: str
    help: str
    metavar: str = ""
    many: bool = False
    also: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The argument that it becomes: ``retain_graph``, ``gradients``."""
        return self.name.removeprefix("--").replace("-", "_") + ("s" if self.many else "")

    @property
    def default(self) -> str | bool | tuple[str, ...] | None:
        """Its value when it is not given."""
        return () if self.many else None if self.metavar else False


AT = Option(
    "--at",
    'The point: "2,4", "x=2,y=1/3", "a=[1,2]", or @FILE.',
    "POINT",
    also=("--point", "--values", "--value"),
)
VARS = Option("--vars", "The order in which --at binds the variables.", "NAMES")
WRT = Option("--wrt", "Differentiate by these only; the others are held fixed.", "NAMES")
WEIGHTS = Option(
    "--weights",
    "One number per output, a row times the Jacobian.",
    "NUMBERS",
    also=("--gradient", "--grad-output", "--grad-outputs", "--vector", "--v", "--cotangent", "--weight"),
)
TANGENT = Option(
    "--tangent",
    "One number per variable, a column the Jacobian multiplies.",
    "NUMBERS",
    also=("--weights", "--vector", "--v", "--direction", "--tangents"),
)
GRADIENT = Option(
    "--gradient",
    "The gradient of one call of backward; again for another call.",
    "NUMBERS",
    many=True,
    also=("--weights", "--grad-output", "--vector", "--v"),
)
RETAIN = Option("--retain-graph", "Keep the graph between calls of backward.")
ZERO = Option("--zero-grad", "Clear .grad before each call of backward.")
EXPLAIN = Option("--explain", "Tell the chain rule step by step, in the order of the backward pass.")
SHOW = Option("--show", "Show these named statements: their values, and the gradients that reach them.", "NAMES")
CLAIM = Option("--claim", 'A derivative to judge: "2*x0, 1; 2, 3*x1**2", @FILE, or - for standard input.', "MATRIX")
TRIALS = Option("--trials", "How many other points the claim's formulas are tried at (5).", "N")
TORCH = Option("--torch", "Run this file and judge its function of tensors.", "FILE.py:FUNCTION")
FILE = Option(
    "--file", "Read the expression from a file, or from standard input for -.", "FILE", also=("--input", "--script")
)
EXPR = Option("--expr", "The expression, as an option: --expr=TEXT.", "TEXT")
RTOL = Option(
    "--rtol", "Relative difference that still agrees (1e-9).", "NUMBER", also=("--tol", "--tolerance", "--eps")
)
ATOL = Option("--atol", "Absolute difference that still agrees (0).", "NUMBER")
FORMAT = Option("--format", f"{', '.join(FORMATS)} (table; JACLI_FORMAT sets another).", "FORMAT")
OUTPUT = Option("--output", "Write the result to a file, whole or not at all.", "FILE", also=("--out", "--save", "-o"))
DIGITS = Option(
    "--digits",
    "Significant digits to show in table, plain, markdown and latex.",
    "N",
    also=("--precision", "--decimals"),
)
COLOR = Option("--color", "auto, always or never.", "WHEN", also=("--no-color", "--no-colour", "--colour"))
QUIET = Option("--quiet", "Print nothing: the exit status tells.", also=("--silent", "-q"))

BACKGROUND = Option("--background", "Serve in the background, until --stop or the idle time-out.")
STOP = Option("--stop", "Stop the server; requests being answered are finished.")
STATUS = Option("--status", "Say whether a server is running: exit status 0 if so, 1 if not.")
IDLE = Option("--idle", "End after so many minutes without a request (60).", "MINUTES")

POINTS = Option("--points", "Many points: a csv, tsv, jsonl, npy or parquet file, or - for a stream.", "FILE")
STRICT = Option("--strict", "With --points: stop at the first line that is no point.")
RESUME = Option("--resume", "With --points: go on with the interrupted file of --output.")
CHECK = Option("--check", "Of many points or a large program: prove all, the suspect (suspect), or none.", "WHICH")
DEVICE = Option("--device", "With --points: cpu or cuda.", "NAME")
DTYPE = Option("--dtype", "With --points: float64 or float32.", "TYPE")
ENGINE = Option("--engine", "With --points: local, or dask for Parquet datasets on a cluster.", "NAME")
SCHEDULER = Option("--scheduler", "With --engine dask: the cluster; otherwise one is started here.", "ADDRESS")

MOST_DENSE = Option("--most-dense", "Entries of a Jacobian, zeros included, beyond which it is sparse (250000).", "N")

POINTS_ONLY = (STRICT, RESUME, CHECK, DEVICE, DTYPE, ENGINE, SCHEDULER)
SOURCE = (FILE, EXPR)
VIEW = (FORMAT, OUTPUT, DIGITS, COLOR, QUIET)
SERVE = (BACKGROUND, STOP, STATUS, IDLE)


@dataclass(frozen=True, slots=True)
class Command:
    """One command: the function of ``jacli.api`` of the same name, and the options that become its arguments."""

    name: str
    help: str
    arguments: tuple[Option, ...] = ()
    required: tuple[Option, ...] = ()
    example: str = ""
    points: tuple[Option, ...] = ()
    large: tuple[Option, ...] = ()
    own: tuple[Option, ...] = VIEW

    @property
    def options(self) -> tuple[Option, ...]:
        """All its options, in the order of the help."""
        if not self.arguments:
            return self.own
        return (*self.arguments, *self.points, *self.large, *SOURCE, *self.own)

    @property
    def takes_expression(self) -> bool:
        """Whether it computes something."""
        return bool(self.arguments)


CHOICE = (VARS, WRT)
TOLERANCE = (RTOL, ATOL)
MANY = (POINTS, *POINTS_ONLY)
LARGE = (MOST_DENSE,)  # and CHECK, which many points have as well

COMMANDS = {
    command.name: command
    for command in (
        Command(
            "jacobian",
            "The full Jacobian beside the symbolic one, entry by entry.",
            (AT, *CHOICE, WEIGHTS, SHOW, *TOLERANCE),
            (AT,),
            'jacli jacobian "x0**2+x1, x1**3+2*x0" --at 2,4',
            MANY,
            LARGE,
        ),
        Command(
            "vjp",
            "The vector-Jacobian product, with each output's share.",
            (AT, WEIGHTS, *CHOICE, SHOW, *TOLERANCE),
            (AT, WEIGHTS),
            'jacli vjp "x0**2+x1, x1**3+2*x0" --at 2,4 --weights 1,2',
            MANY,
            LARGE,
        ),
        Command(
            "jvp",
            "The Jacobian-vector product: the Jacobian times a tangent.",
            (AT, TANGENT, *CHOICE, *TOLERANCE),
            (AT, TANGENT),
            'jacli jvp "x*y, sin(x)" --at 1,2 --tangent 1,0',
            MANY,
            LARGE,
        ),
        Command(
            "grad",
            "The gradient of one scalar output.",
            (AT, *CHOICE, SHOW, *TOLERANCE),
            (AT,),
            'jacli grad "x*exp(-y)" --at x=1,y=0',
            MANY,
            LARGE,
        ),
        Command(
            "hessian",
            "The second derivatives of one scalar output.",
            (AT, *CHOICE, *TOLERANCE),
            (AT,),
            'jacli hessian "x**2*y" --at 1,2',
            MANY,
        ),
        Command(
            "hvp",
            "The Hessian of one scalar output times a tangent.",
            (AT, TANGENT, *CHOICE, *TOLERANCE),
            (AT, TANGENT),
            'jacli hvp "x**2*y" --at 1,2 --tangent 1,0',
            large=(CHECK, MOST_DENSE),
        ),
        Command(
            "check",
            "The verdict on a derivative, or on one derived by hand.",
            (AT, CLAIM, TRIALS, WEIGHTS, TORCH, *CHOICE, *TOLERANCE),
            (AT,),
            'jacli check "x0**2+x1, x1**3+2*x0" --at 2,4 --claim "2*x0, 1; 2, 3*x1**2"',
        ),
        Command(
            "sparsity",
            "Which entries of the Jacobian can be non-zero.",
            (AT, *CHOICE),
            (),
            'jacli sparsity "x0**2+x1, x1**3+2*x0"',
        ),
        Command(
            "backward",
            "What torch's backward would leave in .grad, call by call.",
            (AT, GRADIENT, RETAIN, ZERO, EXPLAIN, SHOW, *CHOICE, *TOLERANCE),
            (AT,),
            'jacli backward "x**2 + y" --at 3,1',
        ),
        Command("functions", "The table of functions that expressions may use.", example="jacli functions"),
        Command(
            "serve", "Keep jacli in memory: commands answer at once.", example="jacli serve --background", own=SERVE
        ),
    )
}
