"""The shape of the code: who may import whom, what a module may reach, and how large things may grow."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dbext.control.packages import SERVER_PACKAGES, SERVER_REQUIREMENTS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "dbext"
#: From the ground up: a module imports from its own floor and those before it.
FLOORS = ("__init__", "errors", "privacy", "mechanisms", "query", "database", "service", "server", "control", "demo")
#: Packages from outside, and the only floors (or modules) that may import them.
OUTSIDE = {
    "plpy": {"server"},
    "sqlglot": {"query"},
    "numpy": {"privacy", "mechanisms", "service"},
    "psycopg": {"control", "demo"},
    "rich": {"control", "demo"},
    "typer": {"control"},
}
#: The one look upwards: the command line offers the demo, loaded when it is asked for.
LOOKS_UP = {("dbext.control.showcase", "dbext.demo.run"), ("dbext.control.simulate", "dbext.demo.public_changes")}
#: Sources of randomness other than the operating system's, and modules that hide imports.
FORBIDDEN = {"random", "secrets", "scipy", "dp_accounting", "pickle"}
MAY_USE_SEEDED_RANDOMNESS = {"demo"}
#: What runs before anything is installed.
BEFORE_INSTALLATION = ("bootstrap", "cluster", "distribution", "environment", "extension", "packages", "postgres", "state", "steps", "tree")
FILE_LIMIT, FUNCTION_LIMIT, SQL_FILE_LIMIT = 400, 40, 400

MODULES = sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def floor(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield the full name of everything imported below a node, lazily or not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                inside = PACKAGE.parent.joinpath(*node.module.split("."), alias.name)
                is_module = inside.with_suffix(".py").exists() or inside.is_dir()
                yield f"{node.module}.{alias.name}" if is_module else node.module


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def body_lines(function: ast.FunctionDef) -> int:
    """Lines of a function, its docstring not counted."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        lines -= function.body[0].end_lineno - function.body[0].lineno + 1
    return lines


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_run_downwards(path):
    here = module_name(path)
    inside = {name for name in imports(tree_of(path)) if name.split(".")[0] == "dbext" and (here, name) not in LOOKS_UP}
    assert not {name for name in inside if FLOORS.index(floor(name)) > FLOORS.index(floor(here))}


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_outside_packages_stay_on_their_floor(path):
    here = floor(module_name(path))
    for name in imports(tree_of(path)):
        top = name.split(".")[0]
        known = top == "dbext" or top in sys.stdlib_module_names or top in OUTSIDE
        assert known, f"{top} is no dependency"
        assert here in OUTSIDE.get(top, {here}), f"{top} must not be imported in {here}"


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_randomness_comes_from_the_operating_system(path):
    here = floor(module_name(path))
    names = {name.split(".")[0] for name in imports(tree_of(path))}
    assert here in MAY_USE_SEEDED_RANDOMNESS or not names & FORBIDDEN
    assert here in MAY_USE_SEEDED_RANDOMNESS or ("numpy.random" not in names and "np.random" not in path.read_text(encoding="utf-8"))


def test_no_module_imports_itself_through_others():
    graph = {module_name(path): set(imports(tree_of(path))) for path in MODULES}
    remaining = {name: {other for other in used if other in graph} - {name} for name, used in graph.items()}
    while free := {
        name for name, used in remaining.items() if not used & remaining.keys() or not any(name in one for one in remaining.values())
    }:
        remaining = {name: used - free for name, used in remaining.items() if name not in free}
    assert not remaining, f"import cycle among {sorted(remaining)}"


@pytest.mark.parametrize("name", BEFORE_INSTALLATION)
def test_set_up_needs_only_the_standard_library(name):
    seen, waiting = set(), [f"dbext.control.{name}"]
    while waiting:
        module = waiting.pop()
        seen.add(module)
        path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
        used = set(imports(tree_of(path if path.exists() else path.with_suffix("") / "__init__.py")))
        assert {one.split(".")[0] for one in used} <= sys.stdlib_module_names | {"dbext"}
        waiting += [one for one in used if one.startswith("dbext") and one not in seen]


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_files_and_functions_stay_small(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= FILE_LIMIT
    too_long = {one.name: body_lines(one) for one in functions(tree_of(path)) if body_lines(one) > FUNCTION_LIMIT}
    assert not too_long


@pytest.mark.parametrize("path", sorted([*PACKAGE.rglob("*.sql"), *(ROOT / "sql").rglob("*.sql")]), ids=lambda path: path.name)
def test_sql_files_stay_small(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= SQL_FILE_LIMIT


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_every_module_says_what_it_is(path):
    assert ast.get_docstring(tree_of(path))


def test_the_project_asks_for_what_a_server_is_given():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(f'"{requirement}"' in project for requirement in SERVER_REQUIREMENTS)
    assert {requirement.partition("=")[0].rstrip(">") for requirement in SERVER_REQUIREMENTS} <= set(SERVER_PACKAGES)


def test_every_sub_package_is_installed():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    packages = {module_name(path) for path in PACKAGE.rglob("__init__.py")}
    assert [name for name in packages if f'"{name}"' not in project] == []
