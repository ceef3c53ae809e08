"""The walls of the house: one-way imports, unit types without names outside, small pieces."""

import ast
import functools
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import skrbm
from skrbm.core.units import Units

ROOT = Path(skrbm.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
# A module may import those of earlier rows, and of its own entry where that is a folder.
ORDER = (
    {"skrbm._version"},
    {"skrbm.core.interrupts", "skrbm.core.numerics"},
    {"skrbm.core.parallel", "skrbm.core.draws"},
    {"skrbm.core.units.support"},
    {"skrbm.core.units.base"},
    {"skrbm.core.units.columns", "skrbm.core.units.linear", "skrbm.core.units.shifts"},
    {"skrbm.core.units.two_state"},
    {
        "skrbm.core.units.bernoulli",
        "skrbm.core.units.spin",
        "skrbm.core.units.categorical",
        "skrbm.core.units.interval",
        "skrbm.core.units.gaussian",
        "skrbm.core.units.composite",
    },
    {"skrbm.core.units"},
    {"skrbm.core.machine", "skrbm.core.jumps"},
    {"skrbm.core.labels"},
    {
        "skrbm.core.centering",
        "skrbm.core.couplings",
        "skrbm.core.tempering",
    },
    {"skrbm.core.sampling"},
    {"skrbm.core.diagnostics"},
    {"skrbm.core.likelihood"},
    {"skrbm.core.training.statistics"},
    {
        "skrbm.core.training.workspace",
        "skrbm.core.training.initialization",
        "skrbm.core.training.holes",
        "skrbm.core.training.modes",
    },
    {"skrbm.core.training.phases", "skrbm.core.training.pretraining"},
    {"skrbm.core.training.negative_phase"},
    {"skrbm.core.training.discriminative"},
    {"skrbm.core.training.optimizer"},
    {"skrbm.core.training.transforms", "skrbm.core.training.state"},
    {
        "skrbm.core.training.damping",
        "skrbm.core.training.jumps",
        "skrbm.core.training.monitoring",
        "skrbm.core.training.watch",
    },
    {"skrbm.core.training.loop"},
    {"skrbm.core.training"},
    {"skrbm.testing"},
    {
        "skrbm.estimators.validation",
        "skrbm.estimators.callbacks",
        "skrbm.estimators.settings",
        "skrbm.estimators.history",
    },
    {"skrbm.estimators.rows", "skrbm.estimators.plan"},
    {
        "skrbm.estimators.tables.encoded",
        "skrbm.estimators.tables.frames",
        "skrbm.estimators.tables.scores",
        "skrbm.estimators.formats",
    },
    {"skrbm.estimators.tables.kinds"},
    {"skrbm.estimators.tables.codec"},
    {"skrbm.estimators.tables.rows", "skrbm.estimators.tracking"},
    {"skrbm.estimators.model", "skrbm.estimators.recording"},
    {"skrbm.estimators.beginning"},
    {"skrbm.estimators.passes"},
    {"skrbm.estimators.labels.rows", "skrbm.estimators.labels.model"},
    {"skrbm.estimators.labels.recording"},
    {
        "skrbm.estimators.annealing",
        "skrbm.estimators.diagnostics",
        "skrbm.estimators.unknown",
    },
    {"skrbm.estimators.run", "skrbm.estimators.sampler", "skrbm.estimators.scoring"},
    {"skrbm.estimators.labels.run", "skrbm.estimators.labels.inference"},
    {"skrbm.estimators"},
    {"skrbm.display"},
)
ESTIMATORS_WORDS = ("components_", "n_components", "noise_variance_", "method=", "sklearn")
FREE = {"skrbm", "skrbm.core"}  # namespaces without logic
OPTIONAL = {"matplotlib", "tqdm", "dask", "torch", "pandas", "polars"}
MAX_FILE_LINES, MAX_BODY_LINES = 350, 60


def module_name(path):
    """Dotted name of a file."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def trees():
    """Each module's name with its syntax tree."""
    return [
        pytest.param(module_name(path), ast.parse(path.read_text()), id=module_name(path))
        for path in FILES
    ]


def imported(tree):
    """Absolute names of all that a piece of code imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            assert all(alias.name != "*" for alias in node.names)
            for alias in node.names:
                is_module = (ROOT.parent / node.module.replace(".", "/") / alias.name).is_dir()
                is_module |= (
                    ROOT.parent / node.module.replace(".", "/") / f"{alias.name}.py"
                ).exists()
                yield f"{node.module}.{alias.name}" if is_module else node.module


def place(module):
    """Row of ORDER and the entry in it that a module belongs to: the longest that fits."""
    fitting = [
        (len(entry), row, entry)
        for row, entries in enumerate(ORDER)
        for entry in entries
        if module == entry or module.startswith(entry + ".")
    ]
    assert fitting, f"{module} has no place in the order of imports"
    return max(fitting)[1:]


def classes():
    """All classes that the package defines."""
    modules = [importlib.import_module(m.name) for m in pkgutil.walk_packages([ROOT], "skrbm.")]
    found = {
        cls
        for module in modules
        for cls in vars(module).values()
        if inspect.isclass(cls) and cls.__module__ == module.__name__
    }
    return sorted(found, key=lambda cls: cls.__qualname__)


@functools.cache
def unit_types():
    """Names of all unit types: what inherits from Units."""
    names = {"Units"}
    definitions = [
        node
        for path in (ROOT / "core" / "units").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    for _ in definitions:
        names |= {
            node.name for node in definitions if names & {ast.unparse(base) for base in node.bases}
        }
    return names - {"Units"}


def names_in(tree):
    """Identifiers of a piece of code, docstrings and comments excluded."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name.rpartition(".")[2]
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module or "").split(".")


@pytest.mark.parametrize(("module", "tree"), trees())
def test_imports_run_one_way(module, tree):
    if module in FREE:
        return
    row, own = place(module)
    for target in imported(tree):
        if not target.startswith("skrbm") or target in FREE:
            continue
        target_row, entry = place(target)
        assert target_row < row or entry == own, f"{module} imports {target}"


@pytest.mark.parametrize(("module", "tree"), trees())
def test_core_never_imports_sklearn(module, tree):
    if module.startswith("skrbm.core"):
        assert not [name for name in imported(tree) if name.split(".")[0] == "sklearn"]


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_core_never_names_what_is_the_estimators(path):
    """Not even in a message: the estimators add the parameter to change."""
    if module_name(path).startswith("skrbm.core"):
        assert [word for word in ESTIMATORS_WORDS if word in path.read_text()] == []


@pytest.mark.parametrize(("module", "tree"), trees())
def test_optional_packages_are_imported_where_they_are_used(module, tree):
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    inside = {id(n) for f in functions for n in ast.walk(f)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in inside:
            assert not OPTIONAL & {name.split(".")[0] for name in imported(node)}


@pytest.mark.parametrize(("module", "tree"), trees())
def test_unit_types_are_not_named_outside_their_folder(module, tree):
    in_core = module.startswith("skrbm.core") and not module.startswith("skrbm.core.units")
    if in_core:
        assert not unit_types() & set(names_in(tree))


@pytest.mark.parametrize(("module", "tree"), trees())
def test_no_unit_is_asked_for_its_type(module, tree):
    for node in ast.walk(tree):
        question = ""
        if isinstance(node, ast.Call):
            question = ast.unparse(node.func)
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node):
            question = "type"
        if question in ("isinstance", "issubclass", "type"):
            assert not unit_types() & set(names_in(node)), ast.unparse(node)


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_files_are_short(path):
    assert len(path.read_text().splitlines()) <= MAX_FILE_LINES


@pytest.mark.parametrize(("module", "tree"), trees())
def test_functions_fit_on_a_screen(module, tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if body:
                length = node.end_lineno - body[0].lineno + 1
                assert length <= MAX_BODY_LINES, f"{node.name} has {length} lines"


def test_unit_types_are_found():
    types = {"Bernoulli", "Spin", "Gaussian", "Categorical", "Interval", "Composite"}
    assert types | {"LinearUnits", "TwoStateUnits", "WideUnits"} == unit_types()


def is_mixin(cls):
    """Whether a class has methods alone, its bases included."""
    return cls is object or (
        cls.__init__ is object.__init__ and all(is_mixin(base) for base in cls.__bases__)
    )


@pytest.mark.parametrize("cls", classes(), ids=lambda cls: cls.__qualname__)
def test_classes_with_subclasses_are_abstract_or_mixins(cls):
    if any(issubclass(other, cls) and other is not cls for other in classes()):
        assert inspect.isabstract(cls) or is_mixin(cls), f"{cls.__qualname__} is concrete"


@pytest.mark.parametrize("cls", classes(), ids=lambda cls: cls.__qualname__)
def test_concrete_methods_are_not_overridden(cls):
    if issubclass(cls, Units):  # its defaults may be, and check_units compares
        return
    for name, method in vars(cls).items():
        code = getattr(method, "__func__", getattr(method, "fget", method))
        is_method = inspect.isfunction(code) and not name.startswith("__")
        if not is_method or "super()" in inspect.getsource(code):  # cooperation
            continue
        for base in cls.__mro__[1:]:
            inherited = vars(base).get(name) if base.__module__.startswith("skrbm") else None
            overridden = getattr(inherited, "__qualname__", name)
            assert inherited is None or getattr(inherited, "__isabstractmethod__", False), (
                f"{cls.__qualname__} overrides {overridden} of {base.__qualname__}"
            )
