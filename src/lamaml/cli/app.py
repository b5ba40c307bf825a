"""The command line application and its entry point.

Commands import heavy modules inside their functions, so that help appears at once.
"""

import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from lamaml.cli import (
    bench,
    compare,
    demo,
    panel,
    predict,
    report,
    reproduce,
    resume,
    run,
    serve,
    show,
    tune,
)
from lamaml.cli import list as listing
from lamaml.cli.shared import print_error
from lamaml.errors import LamamlError
from lamaml.experiments.storing.environment import package_version

COMMANDS: tuple[tuple[str, Callable[..., Any], Sequence[str]], ...] = (
    ("demo", demo.demo, demo.EXAMPLES),
    ("list", listing.list_, listing.EXAMPLES),
    ("show", show.show, show.EXAMPLES),
    ("run", run.run, run.EXAMPLES),
    ("resume", resume.resume, resume.EXAMPLES),
    ("report", report.report, report.EXAMPLES),
    ("tune", tune.tune, tune.EXAMPLES),
    ("compare", compare.compare, compare.EXAMPLES),
    ("predict", predict.predict, predict.EXAMPLES),
    ("reproduce", reproduce.reproduce, reproduce.EXAMPLES),
    ("panel", panel.panel, panel.EXAMPLES),
    ("serve", serve.serve, serve.EXAMPLES),
    ("bench", bench.bench, bench.EXAMPLES),
)
EXAMPLES = (
    "lamaml demo                                    compare four learners, offline",
    "lamaml list                                    list benchmarks and learners",
    "lamaml run mnist_rotations la_maml --seeds 5   a cell of the paper's Table 1",
    "lamaml resume runs/rotations                   continue an interrupted run",
)


def _epilog(examples: Sequence[str]) -> str:
    return "\n".join(["[bold]Examples[/]", *(f"  {line}" for line in examples)])


app = typer.Typer(
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _command, _examples in COMMANDS:
    app.command(_name, epilog=_epilog(_examples))(_command)


@app.callback(invoke_without_command=True, epilog=_epilog(EXAMPLES))
def lamaml(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Learning from a stream without forgetting: La-MAML, its variants and its baselines."""
    if version:
        typer.echo(f"lamaml {package_version('lamaml')}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a usage error is one line and exit code 2."""
    if os.getcwd() not in sys.path:  # last: a local file must not hide an installed module
        sys.path.append(os.getcwd())
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # not every terminal can print "±"
            stream.reconfigure(errors="replace")
    try:
        code = app(args=arguments, prog_name="lamaml", standalone_mode=False)
    except LamamlError as error:
        print_error(str(error))
        code = 2
    except typer.TyperException as error:
        print_error(error.format_message())
        code = 2
    except (KeyboardInterrupt, typer.Abort):
        print_error("stopped")
        code = 130
    except OSError as error:
        if error.filename is not None or error.strerror is None:
            raise
        print_error(f"standard output cannot be written ({error.strerror})")
        code = 2
    sys.exit(code or 0)
