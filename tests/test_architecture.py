"""The walls of the house: one-way imports, unit types without names outside, small pieces."""

import ast
import functools
import graphlib
import importlib.util
import inspect
import pkgutil
import re
from collections import Counter
from pathlib import Path

import pytest

import skrbm
from skrbm.core.training.part import Part
from skrbm.core.units import Units

ROOT = Path(skrbm.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
# A module imports from its own floor and from those before it.
FLOORS = (
    {"_version", "core.numerics", "core.draws", "core.parallel", "core.interrupts"},
    {"core.units"},
    {"core.machine", "core.centering"},
    {"core.chains"},
    {
        "core.likelihood",
        "core.labels",
        "core.couplings",
        "core.diagnostics",
        "core.hidden_unit_reports",
    },
    {"core.training"},
    {"estimators", "testing"},
    {"sequences", "display"},
)
# Rooms of the two largest floors, by the same rule; "" are the files that are not named.
ROOMS = {
    "core.training": ("start", "", "parts", "loop"),
    "estimators": ("input", "inference", "tables", "fitting", "labels", ""),
}
# Files of these folders know the folder's base alone, never each other.
SIBLINGS = {
    "core.units": ("base", "columns", "linear", "shifts", "support", "value_table"),
    "core.training.parts": (),
}
ESTIMATORS_WORDS = ("components_", "n_components", "noise_variance_", "method=", "sklearn")
FREE = {"skrbm", "skrbm.core"}  # namespaces without logic
# Parts of core/ whose arrays are on the host; `numerics` and `draws` know both places.
ON_HOST = (
    "numerics",
    "draws",
    "couplings",
    "diagnostics",
    "labels",
    "likelihood.conditional",
    "likelihood.pseudo",
    "training.discriminative",
    "training.parts.missing",
    "training.start",
)
OPTIONAL = {"cupy", "matplotlib", "tqdm", "dask", "torch", "pandas", "polars"}
MAX_BODY_LINES = 60


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


def inner(module):
    """Name of a module within the package."""
    return module.removeprefix("skrbm").removeprefix(".")


def is_in(module, folder):
    """True if a module is a folder or file, or lies in it."""
    return f"{inner(module)}.".startswith(f"{folder}.")


def height(module):
    """Floor of a module, and its room there."""
    found = [row for row, names in enumerate(FLOORS) if any(is_in(module, n) for n in names)]
    assert len(found) == 1, f"{module} belongs to floors {found}"
    room = 0
    for floor, rooms in ROOMS.items():
        if is_in(module, floor):
            own = [name for name in rooms if name and is_in(module, f"{floor}.{name}")]
            room = rooms.index(own[0] if own else "")
    return found[0], room


def package_imports(module, tree):
    """Modules of the package that a module imports."""
    return {name for name in imported(tree) if name.startswith("skrbm.")} - FREE - {module}


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
    for target in package_imports(module, tree):
        assert height(target) <= height(module), f"{module} imports {target}"


def test_imports_have_no_circle():
    graph = {module: package_imports(module, tree) for module, tree in (p.values for p in trees())}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError


@pytest.mark.parametrize(("module", "tree"), trees())
def test_siblings_do_not_know_each_other(module, tree):
    for folder, bases in SIBLINGS.items():
        is_base = inner(module) in {folder, *(f"{folder}.{name}" for name in bases)}
        if is_in(module, folder) and not is_base:
            others = {t for t in package_imports(module, tree) if is_in(t, folder)}
            assert {inner(other).removeprefix(f"{folder}.") for other in others} <= set(bases)


def test_file_names_are_unique():
    names = Counter(path.name for path in FILES if path.name != "__init__.py")
    assert [name for name, count in names.items() if count > 1] == []


def test_a_constant_stands_once():
    names = Counter(
        name.id
        for _, tree in (p.values for p in trees())
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for name in getattr(target, "elts", [target])
        if isinstance(name, ast.Name) and name.id.isupper() and len(name.id) > 1  # T is a type
    )
    assert [name for name, count in names.items() if count > 1] == []


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
def test_arrays_of_a_layer_stay_on_their_device(module, tree):
    """No conversion to a NumPy array in passing, no question for one: `to_host` and `is_on_host`."""
    if not is_in(module, "core") or any(is_in(module, f"core.{name}") for name in ON_HOST):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            call = ast.unparse(node.func), {keyword.arg for keyword in node.keywords}
            assert call[0] not in ("np.asarray", "np.ascontiguousarray") or "like" in call[1]
            assert call[0] != "isinstance" or "np.ndarray" not in ast.unparse(node.args[1])


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


@pytest.mark.parametrize(("module", "tree"), trees())
def test_functions_fit_on_a_screen(module, tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if body:
                length = node.end_lineno - body[0].lineno + 1
                assert length <= MAX_BODY_LINES, f"{node.name} has {length} lines"


RELATIVE = re.compile(r"(What|Where|How|Which|Whether|Of|Those|That)\b")


@pytest.mark.parametrize(("module", "tree"), trees())
def test_docstrings_open_with_a_noun_or_a_verb(module, tree):
    nodes = (
        n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.FunctionDef | ast.ClassDef)
    )
    openings = (ast.get_docstring(node) or "" for node in nodes)
    assert [text.splitlines()[0] for text in openings if RELATIVE.match(text)] == []


def modules_in(tree):
    """Names that a file binds to modules of the package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skrbm"):
            for alias in node.names:
                if importlib.util.find_spec(node.module).submodule_search_locations and (
                    importlib.util.find_spec(f"{node.module}.{alias.name}")
                ):
                    yield alias.asname or alias.name
        elif isinstance(node, ast.Import):
            names = [alias for alias in node.names if alias.name.split(".")[0] == "skrbm"]
            yield from (alias.asname or alias.name for alias in names)


@pytest.mark.parametrize(
    "path", sorted(Path(__file__).parent.rglob("test_*.py")), ids=lambda p: p.stem
)
def test_no_test_replaces_a_name_of_a_module(path):
    # Slip: monkeypatch.setattr(pseudo, "MAX_ELEMENTS", 20) in place of an argument.
    tree = ast.parse(path.read_text())
    modules = set(modules_in(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "monkeypatch.setattr":
            target = ast.unparse(node.args[0])
            assert target not in modules, target
            assert not target.startswith(("'skrbm", "sys.modules")), target


def test_unit_types_are_found():
    types = {"Bernoulli", "Spin", "Gaussian", "Categorical", "Interval", "Mixture", "Composite"}
    types |= {"StandardGaussian", "ReLU", "DReLU"}
    assert types | {"LinearUnits", "TwoStateUnits", "WideUnits", "RealUnits"} == unit_types()


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
    if issubclass(cls, Units | Part):  # defaults that check_units compares, hooks that do nothing
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
