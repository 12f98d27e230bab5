"""Kernels that are compiled when the package is built: their arguments, libraries, threads, and those of others."""

import os
import subprocess
import sys

import numpy as np
import pytest
from messages import naming

from vmdpotential.errors import BackendError, UsageError
from vmdpotential.kernels import build, launch, threads
from vmdpotential.kernels.launch import KernelFile

SOURCE = """
#include "kernel.h"
#include "vectors.h"

struct Row {
    const float *x, *y;   // (count,)
    double *sums;         // (count,)
    double factors[2][2];
    int offset; bool squared;
};

KERNEL(add_rows, Row, i)
{
    const double value = args.factors[0][1] * args.x[i] + args.factors[1][0] * args.y[i] + args.offset;
    args.sums[i] = args.squared ? value * value : value;
}

struct Rounds { index_t *visits; index_t rounds, count; };

// In each round every element grows by its neighbour's value of the round before.
TEAM_KERNEL(add_neighbours, Rounds, team)
{
    index_t first, last;
    team.part(args.count, first, last);
    for (index_t round = 0; round < args.rounds; round++) {
        const index_t *from = args.visits + round % 2 * args.count;
        index_t *to = args.visits + (round + 1) % 2 * args.count;
        for (index_t i = first; i < last; i++)
            to[i] = (from[i] + from[(i + 1) % args.count]) % 1000003;
        team.meet();
    }
}

struct Roots { const float *x; float *y; index_t count; };

RANGE_KERNEL(inverse_roots, Roots, first, last)
{
    for (index_t i = first; i < last; i++) {
        const floats all_equal = all(args.x[i]);
        args.y[i] = sum(inverse_root(all_equal)) / FLOATS;
    }
}
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The kernels of another package, built by it."""
    folder = tmp_path_factory.mktemp("package")
    path = folder / "rows.cu"
    path.write_text(SOURCE)
    build.build_libraries([path], folder / "libraries")
    return KernelFile(path, folder / "libraries")


def rows(count):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, count)).astype(np.float32)
    return {"x": x, "y": y, "sums": np.zeros(count), "factors": [[0, 2], [3, 0]], "offset": 4, "squared": True}


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_kernels_of_another_package_run_on_all_threads(own, count, monkeypatch):
    values = rows(count)
    x, y = (values[name].astype(float) for name in "xy")
    expected = (2 * x + 3 * y + 4) ** 2
    for number in (1, 3):
        monkeypatch.setenv("VMDPOTENTIAL_THREADS", str(number))
        values["sums"][:] = 0
        launch.launch_kernel(own["add_rows"], count, "rows", 7, **values)
        np.testing.assert_allclose(values["sums"], expected, rtol=1e-12)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_threads_of_a_team_meet(own, workers):
    count, rounds = 11, 200
    visits = np.zeros((2, count), np.int64)
    visits[0] = np.arange(count)
    expected = visits[0].copy()
    for _ in range(rounds):
        expected = (expected + np.roll(expected, -1)) % 1000003
    launch.launch_team(own["add_neighbours"], workers, visits=visits, rounds=rounds, count=count)
    assert (visits[rounds % 2] == expected).all()


@pytest.mark.parametrize(("change", "word"), [
    ({"x": np.zeros(5)}, "float64"), ({"y": np.zeros((10, 2), np.float32)[:, 0]}, "contiguous"), ({"z": 1}, "z"),
    ({"offset": 2.5}, "offset"), ({"offset": 2**31}, "offset"),
])
def test_arguments_are_checked_against_the_source(own, change, word):
    with pytest.raises(TypeError, match=word):
        launch.launch_kernel(own["add_rows"], 5, "rows", **rows(5) | change)


@pytest.mark.parametrize("scale", [(2.0, 3), [2, 3.5], np.float64([2, 3]), 4, np.float32(5), np.array(6)])
def test_rows_of_numbers_are_packed_whatever_they_are_in_or_as_one_number_for_all(scale):
    arguments = launch.parse_arguments("struct Rows { int count, shape[3]; float scale[2]; };\nKERNEL(scaled, Rows)")
    expected = np.zeros((), arguments["scaled"].record)
    expected["count"], expected["shape"], expected["scale"] = 7, (1, 2, 3), scale
    packed = arguments["scaled"].pack({"count": 7, "shape": (1, 2, np.int64(3)), "scale": scale}, launch.address_of)
    assert packed == expected.tobytes()
    with pytest.raises(TypeError):
        arguments["scaled"].pack({"count": 7, "shape": (1, 2), "scale": scale}, launch.address_of)


def test_a_struct_is_packed_as_numpy_lays_it_out(own):
    arguments, values = own["add_rows"].arguments, rows(3)
    values["x"].flags.writeable, values["y"] = False, None
    expected = np.zeros((), arguments.record)
    for name, value in values.items():
        if value is not None:
            expected[name] = value.ctypes.data if name in arguments.arrays else value
    fixed = {name: values.pop(name) for name in ("x", "factors", "squared")}
    assert arguments.pack(fixed | values, launch.address_of) == expected.tobytes()
    assert arguments.packer(fixed, launch.address_of)(values) == expected.tobytes()


def test_each_instruction_set_of_this_processor_computes_the_same(own):
    names = list(build.INSTRUCTION_SETS[build.PROCESSORS[os.uname().machine]])
    supported = names[: launch.load_library().supported_instruction_set() + 1]
    code = ("import sys, numpy as np\nfrom pathlib import Path\nfrom vmdpotential.kernels import launch\n"
            "file = launch.KernelFile(Path(sys.argv[1]), Path(sys.argv[2]))\n"
            "x = np.geomspace(1e-6, 1e6, 1001).astype(np.float32)\ny = np.zeros_like(x)\n"
            "launch.launch_kernel(file['inverse_roots'], len(x), 'roots', x=x, y=y, count=len(x))\n"
            "print(launch.describe_vectors(), float(abs(y * np.sqrt(x.astype(float)) - 1).max()))")
    for name in supported:
        output = subprocess.run([sys.executable, "-c", code, own.path, own.libraries], check=True, text=True,
                                capture_output=True, env=os.environ | {launch.VARIABLE: name}).stdout.split()
        assert output[0] == name
        assert float(output[-1]) < 5e-7


def test_an_instruction_set_that_does_not_exist_is_refused(monkeypatch):
    monkeypatch.setenv(launch.VARIABLE, "avx1024")
    with pytest.raises(UsageError) as caught:
        launch.load_library.__wrapped__()
    assert caught.value.parameter == launch.VARIABLE


def test_missing_libraries_are_named(tmp_path):
    with naming(BackendError, tmp_path):
        launch.load_library(tmp_path)


@pytest.mark.nightly
def test_a_file_that_was_changed_after_it_was_compiled_is_refused(own, tmp_path):
    """Its kernels would read other arguments than they get, and end the process."""
    (tmp_path / own.path.name).write_text(SOURCE.replace("int offset;", "index_t offset;"))
    changed = KernelFile(tmp_path / own.path.name, own.libraries)
    x = np.ones(3, np.float32)
    with pytest.raises(BackendError, match=own.path.name):
        launch.launch_kernel(changed["add_rows"], 3, "", x=x, y=x, sums=np.zeros(3), factors=np.eye(2), offset=0,
                             squared=False)


def test_libraries_are_built_again_only_when_a_source_changes(own, tmp_path):
    path = tmp_path / "rows.cu"
    path.write_text(SOURCE)

    def date():
        (library,) = build.build_libraries([path], tmp_path / "libraries", only=0)
        return library.stat().st_mtime_ns

    dates = [date(), date()]
    assert dates[0] == dates[1]
    (tmp_path / "limits.h").write_text("#define LIMIT 3")
    for changed, content in ((path, f'#include "own.h"\n{SOURCE}'),
                             (tmp_path / "limits.h", "#define LIMIT 4")):  # included by another header
        (tmp_path / "own.h").write_text('#include "limits.h"')
        changed.write_text(content)
        dates.append(date())
        assert dates[-1] > dates[-2]


def test_building_one_instruction_set_keeps_others_unless_they_are_out_of_date(tmp_path):
    path = tmp_path / "rows.cu"
    path.write_text(SOURCE)
    libraries = build.build_libraries([path], tmp_path / "libraries")
    assert build.build_libraries([path], tmp_path / "libraries", only=0) == libraries[:1]
    assert all(library.exists() for library in libraries)
    path.write_text(SOURCE + "\n// changed")
    assert build.build_libraries([path], tmp_path / "libraries", only=0) == libraries[:1]
    assert [library.exists() for library in libraries] == [True] + [False] * (len(libraries) - 1)
    assert build.build_libraries([path], tmp_path / "libraries") == libraries
    assert all(library.exists() for library in libraries)


@pytest.mark.parametrize(("source", "compiler", "word"), [
    ('#include "kernel.h"\nnonsense', (), "nonsense"), (SOURCE, ("no-such-compiler",), "no-such-compiler"),
])
def test_a_failing_compiler_is_reported_and_leaves_nothing(tmp_path, source, compiler, word):
    path = tmp_path / "rows.cu"
    path.write_text(source)
    with pytest.raises(build.CompilerError, match=word):
        build.build_libraries([path], tmp_path / "libraries", compiler)
    assert not [each for each in (tmp_path / "libraries").rglob("*") if each.is_file()]


@pytest.mark.nightly
def test_every_struct_of_this_package_can_be_read_and_has_the_compilers_size(tmp_path):
    """Python's layout of arguments is that of the compiler."""
    for path in build.package_sources():
        arguments = KernelFile(path).arguments
        if not arguments:
            continue
        text = path.read_text()
        names = dict(launch._KERNEL.findall(text))  # a kernel that differs on GPUs is there twice
        checks = "".join(f"static_assert(sizeof({names[kernel]}) == {each.record.itemsize});\n"
                         for kernel, each in arguments.items())
        checked = tmp_path / path.name
        checked.write_text(text + "\n#ifndef __CUDACC__\n" + checks + "#endif\n")
        subprocess.run([*build.find_compiler(), *build.OPTIONS, f"-I{build.HEADER_FOLDER}", "-fsyntax-only", checked],
                       check=True)


def test_an_interrupted_team_ends(own, monkeypatch):
    def fail(worker, shared):
        if worker:
            raise KeyboardInterrupt
        kernel = own["add_neighbours"]
        packed = kernel.arguments.pack({"visits": visits, "rounds": 1000, "count": 3}, launch.address_of)
        kernel.on_team(packed, 0, 2, launch.address_of(shared))

    visits = np.zeros((2, 3), np.int64)
    with pytest.raises(KeyboardInterrupt):
        threads.together(fail, 2)


def test_zig_gets_its_own_names_of_processors(tmp_path):
    """Its compiler refuses -march=x86-64-v3; the stand-in writes the options that it gets."""
    (tmp_path / "nothing.cu").write_text('#include "kernel.h"\n')
    compiler = tmp_path / "compiler"
    compiler.write_text(f"#!{sys.executable}\nimport sys\nopen(sys.argv[-1], 'w').write(' '.join(sys.argv))\n")
    compiler.chmod(0o755)
    folder = tmp_path / "libraries"
    command = (str(compiler), "-m", "ziglang", "c++")
    build.build_libraries([tmp_path / "nothing.cu"], folder, command, "x86_64-linux-gnu")
    names = {option for path in (folder / "objects").iterdir() for option in path.read_text().split()
             if option.startswith("-march=")}
    assert names == {"-march=x86_64", "-march=x86_64_v3", "-march=x86_64_v4"}
