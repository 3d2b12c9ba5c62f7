"""The command line. Results go to standard output, everything else to standard error; exit codes are `failures.ExitCode`."""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import psycopg
import typer
from psycopg import sql

from dbext import __version__
from dbext.control import output
from dbext.control.database import api_schema, connect, query
from dbext.control.failures import ExitCode, report
from dbext.control.output import Format
from dbext.control.steps import step
from dbext.errors import DbextError

app = typer.Typer(
    name="dbext",
    help="Differentially private continual releases for PostgreSQL.",
    epilog="Exit codes: 0 done, 1 failed, 2 usage, 3 refused for privacy, 4 nothing to do, 5 cannot connect.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Dsn = Annotated[
    str,
    typer.Option("--dsn", envvar="DBEXT_DSN", metavar="CONNINFO", help="Connection string or URL; PG* variables supply the rest."),
]
ReleaseDsn = Annotated[
    str,
    typer.Option(
        "--release-dsn",
        envvar="DBEXT_RELEASE_DSN",
        metavar="CONNINFO",
        help="The database that releases of dp_publish_to are delivered to.",
    ),
]
WitnessFile = Annotated[
    Path | None,
    typer.Option(
        "--witness",
        envvar="DBEXT_WITNESS",
        metavar="FILE",
        help="A file outside the database server that holds what was charged, and stops us if the ledger does not.",
    ),
]
NewWitness = Annotated[bool, typer.Option("--new-witness", help="Begin the witness file anew: the ledger as it is counts as whole.")]
ResultFormat = Annotated[Format, typer.Option("--format", help="How results are written.")]
ReleaseName = Annotated[str, typer.Argument(metavar="RELEASE", help="Name of a declared release.")]


def main() -> None:
    """Run the command line and exit with its code; no error ever shows a traceback."""
    try:
        app(prog_name="dbext")
    except (DbextError, psycopg.Error, OSError) as error:
        sys.exit(report(error))
    except KeyboardInterrupt:
        sys.exit(130)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer hands over the flag
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")] = False,
) -> None:
    """Differentially private continual releases for PostgreSQL."""


@app.command()
def demo(
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the private server running until Ctrl-C, to look around.")] = False,
    synthetic: Annotated[bool, typer.Option("--synthetic", help="Use made-up tickets instead of the epidemic.")] = False,
    report_file: Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Where the HTML page goes.")] = None,
) -> None:
    """Replay real data on a private throw-away server and publish from it."""
    from dbext.control.showcase import show

    raise typer.Exit(show(keep=keep, synthetic=synthetic, report=report_file))


@app.command()
def install(
    *,
    dsn: Dsn = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print every step and do none.")] = False,
    folder: Annotated[Path | None, typer.Option("--folder", help="Where the server's Python packages go.")] = None,
    second_session: Annotated[
        str,
        typer.Option("--second-session", metavar="CONNINFO", help="How the server reaches itself, if not over its socket as its owner."),
    ] = "",
    files_only: Annotated[bool, typer.Option("--files-only", help="For a server that does not run: put its files in place.")] = False,
    pg_config: Annotated[Path | None, typer.Option("--pg-config", help="Which installation, with --files-only.")] = None,
) -> None:
    """Put the extension on an existing server and create it in a database of it. Run it on the server's machine."""
    from dbext.control.install import install as carry_out
    from dbext.control.install import install_files

    if files_only:
        install_files(pg_config, dry_run=dry_run, folder=folder, second_session=second_session)
    else:
        carry_out(dsn, dry_run=dry_run, folder=folder, second_session=second_session)


@app.command()
def publish(
    *,
    dsn: Dsn = "",
    release_dsn: ReleaseDsn = "",
    witness: WitnessFile = None,
    new_witness: NewWitness = False,
    form: ResultFormat = Format.TABLE,
) -> None:
    """Seal, then publish all that is due, and deliver what goes to a release target."""
    from dbext.control.outside import Places, outside
    from dbext.control.publishing import publish as carry_out

    with connect(dsn) as connection, outside(connection, Places(release_dsn, witness, new_witness), thorough=False) as found:
        done = carry_out(connection, found)
    changed = [asdict(one) for one in done.publications if one.periods or one.error]
    output.write(changed, ["release", "periods", "next_due", "error"], form)
    for warning in (*done.warnings, *(str(one) for one in done.deliveries)):
        step(warning)
    if done.failed:
        raise typer.Exit(ExitCode.FAILED)
    if not done.periods:
        step("nothing is due")
        raise typer.Exit(ExitCode.NOTHING_TO_DO)


@app.command()
def worker(
    *,
    dsn: Dsn = "",
    release_dsn: ReleaseDsn = "",
    witness: WitnessFile = None,
    new_witness: NewWitness = False,
    every: Annotated[
        float | None, typer.Option("--every", min=0.1, metavar="SECONDS", help="Publish at a fixed interval, not when releases are due.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Publish what is due now and return.")] = False,
) -> None:
    """Publish whatever falls due, until stopped. Of several workers of a database one leads, the others stand by."""
    from dbext.control.outside import Places
    from dbext.control.worker import run_worker

    raise typer.Exit(run_worker(dsn, Places(release_dsn, witness, new_witness), every, once=once))


@app.command()
def accept_restore(
    *,
    dsn: Dsn = "",
    release_dsn: ReleaseDsn = "",
    witness: WitnessFile = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what was lost and accept nothing.")] = False,
    form: ResultFormat = Format.TABLE,
) -> None:
    """Accept that a database was put back to an earlier state: what had left since is charged again. Connect as a superuser."""
    from dbext.control.accept import accept

    with connect(dsn) as connection:
        lost, said = accept(connection, release_dsn, witness, dry_run=dry_run)
    output.write(lost, ["number", "kind", "release", "table", "epsilon", "recorded_at"], form)
    step(said)
    if not lost:
        raise typer.Exit(ExitCode.NOTHING_TO_DO)


@app.command()
def explain(release: ReleaseName, dsn: Dsn = "", form: ResultFormat = Format.TABLE) -> None:
    """Show the plan of a release, the candidates with their predicted error, and the price per entry type. Spends nothing."""
    with connect(dsn) as connection:
        statement = sql.SQL("SELECT * FROM {}.dp_explain_release(%s)").format(api_schema(connection))
        output.write(*query(connection, statement, [release]), form)


@app.command()
def status(dsn: Dsn = "", form: ResultFormat = Format.TABLE) -> None:
    """Show every release: what was published, what comes next, what went wrong. Its text and origin are in json and csv only."""
    _write_view("release_status", dsn, form, but_in_tables=("created_by", "created_at", "declaration"))


@app.command()
def budget(dsn: Dsn = "", form: ResultFormat = Format.TABLE) -> None:
    """Show every budget: what is protected, spent and left."""
    _write_view("budget_status", dsn, form)


@app.command()
def audit(
    *,
    dsn: Dsn = "",
    form: ResultFormat = Format.TABLE,
    report_file: Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Also write an HTML page that can be filed.")] = None,
    experiments: Annotated[
        bool, typer.Option("--statistical", help="Attack releases of every kind on a private server; looks at no database of yours.")
    ] = False,
    runs: Annotated[int, typer.Option("--runs", min=20, max=50_000, help="Experiments of each kind, with --statistical.")] = 200,
) -> None:
    """Check what was published and charged, and what the claims rest on. Others than administrators see how the last audit ended."""
    from dbext.control import audit as one

    raise typer.Exit(one.statistical(form, runs) if experiments else one.audit(dsn, form, report_file))


@app.command()
def doctor(
    *,
    dsn: Dsn = "",
    reader_dsn: Annotated[
        str, typer.Option("--reader-dsn", metavar="CONNINFO", help="Look as this reader, not as one whose role is taken on.")
    ] = "",
    analyst_dsn: Annotated[str, typer.Option("--analyst-dsn", metavar="CONNINFO", help="Likewise as this analyst.")] = "",
    fix: Annotated[bool, typer.Option("--fix", help="Run the fixes that are marked safe, each shown before.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what --fix would run.")] = False,
    form: ResultFormat = Format.TABLE,
) -> None:
    """Look the installation over, as its superuser and through the eyes of readers and analysts. Exit code 1: errors or warnings."""
    from dbext.control.doctor import doctor as carry_out

    raise typer.Exit(carry_out(dsn, form, reader_dsn=reader_dsn, analyst_dsn=analyst_dsn, fix=fix, dry_run=dry_run))


@app.command()
def ageing(
    *,
    target: Annotated[float, typer.Option("--target", help="What nobody may learn more about a status than, at any time.")],
    dwell: Annotated[
        str, typer.Option("--dwell", metavar="TICKS,TICKS,...", help="How many ticks an entry stays in each state, on average.")
    ] = "",
    table: Annotated[str, typer.Option("--table", help="Take the model stated for a table in place of --dwell.")] = "",
    column: Annotated[str, typer.Option("--column", help="The column of that table, if several have a model.")] = "",
    spread: Annotated[float, typer.Option("--spread", help="How far the count drifts in one tick (standard deviation).")] = 1.0,
    longest: Annotated[int, typer.Option("--longest", help="Most ticks between two outputs.")] = 30,
    oldest: Annotated[int, typer.Option("--oldest", help="Most ticks that data may be old when it is published.")] = 90,
    dsn: Dsn = "",
    form: ResultFormat = Format.TABLE,
) -> None:
    """Find the age and noise of least error whose age-dependent loss never passes a target, and the two extremes. Spends nothing."""
    from dbext.control.ageing import Wish, plan

    plan(Wish(target, spread, longest, oldest), dwell, table, column or None, dsn, form)


@app.command()
def simulate(
    declaration_file: Annotated[Path, typer.Argument(metavar="FILE", help="Declaration, with lines '-- epsilon: 1' and so on before it.")],
    *,
    source: Annotated[
        str, typer.Option("--source", metavar="NAME", help="synthetic, dengue, tickets, or a CSV file: time, then a column per group.")
    ] = "synthetic",
    query_text: Annotated[
        str, typer.Option("--query", metavar="SQL", help="Read a private table instead, as an administrator; nothing is stored.")
    ] = "",
    dsn: Dsn = "",
    repetitions: Annotated[int, typer.Option("--repetitions", min=2, max=10_000, help="How often each method publishes.")] = 100,
    by_period: Annotated[bool, typer.Option("--by-period", help="Write the error of every period in place of the summary.")] = False,
    form: ResultFormat = Format.TABLE,
    report_file: Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Also write an HTML page with plots.")] = None,
) -> None:
    """Show what a declaration would publish, by every method, and how far from the truth. Stores and charges nothing."""
    from dbext.control.simulate import Data
    from dbext.control.simulate import simulate as carry_out

    data = Data(source, query_text, dsn)
    raise typer.Exit(carry_out(declaration_file, data, repetitions, form, by_period=by_period, report=report_file))


@app.command()
def tables(dsn: Dsn = "", form: ResultFormat = Format.TABLE) -> None:
    """Show every tracked table and what an entry of it is."""
    _write_view("tracked_table", dsn, form)


def _write_view(view: str, dsn: str, form: Format, but_in_tables: Collection[str] = ()) -> None:
    with connect(dsn) as connection:
        api_schema(connection)
        rows, columns = query(connection, sql.SQL("SELECT * FROM dbext.{}").format(sql.Identifier(view)))
    left_out = but_in_tables if form is Format.TABLE else ()
    output.write(rows, [column for column in columns if column not in left_out], form)
