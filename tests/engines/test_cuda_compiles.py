"""Every kernel for maps and points compiles for every generation of GPUs."""

import re

import pytest
from cuda_kernels import ARCHITECTURES, INTERACTIONS, compile_for_all, work
from helpers import EVERYTHING

from vmdpotential.engines.cuda import build, radial
from vmdpotential.kernels import build as build_kernels
from vmdpotential.sums.cuda import KERNEL_FOLDER, points, result

#: Every operation in each precision with and without the field, the others in two of these four, nightly: what is
#: traced of each is compiled for the host in every run (test_engine_cuda.py).
MAPS = [pytest.param(interaction, precision, field, marks=[] if interaction is EVERYTHING else pytest.mark.nightly)
        for n, interaction in enumerate(INTERACTIONS) for precision in ("single", "double") for field in (False, True)
        if interaction is EVERYTHING or (precision == "double") ^ field == n % 2]


@pytest.mark.slow
@pytest.mark.parametrize(("interaction", "precision", "field"), MAPS, ids=lambda value: getattr(value, "name", value))
def test_map_kernels_compile_with_every_interaction(interaction, precision, field, tmp_path):
    bound = interaction.bind()
    cases = [bound] if bound.cutoff is not None else [bound, bound.truncated(9.0)]
    turn = INTERACTIONS.index(interaction) + 2 * (precision == "double") + field
    for number, case in enumerate(cases):
        planned = work(case, precision, field=field)
        file = KERNEL_FOLDER / ("direct.cu" if planned.direct else "cutoff.cu")
        # the kernel that takes most registers for all, the others, which are made of the same, for each in turn
        everything = interaction is EVERYTHING
        largest = everything and number and field and precision == "double"
        architecture = ARCHITECTURES[(turn + number) % len(ARCHITECTURES)]
        compile_for_all(build.source(file, planned.macros, planned.radial), planned.macros, tmp_path,
                        64 if everything else 16, ARCHITECTURES if largest else (architecture,))


def test_other_kernels_compile(tmp_path):
    macros = {"REAL": "float"}
    compile_for_all(build.source(KERNEL_FOLDER / "sort.cu", macros), macros, tmp_path, architectures=ARCHITECTURES[:1])
    same = f"static_assert(PARTS == {result.PARTS});\n"  # structs have checks of their own, see build.declarations
    compile_for_all(build.source(KERNEL_FOLDER / "result.cu", macros) + same, macros, tmp_path,
                    architectures=ARCHITECTURES[1:2])
    scaled = EVERYTHING.bind().scaled()
    same = f"static_assert(sizeof(PointTask) == {points.TASK.itemsize});\n"
    for field in (False, True):
        macros = {"REAL": "double", "MASKED": 0, "FIELD": int(field)}
        text = build.source(KERNEL_FOLDER / "points.cu", macros, radial.radial_source(scaled, "double", field))
        compile_for_all(text + same, macros, tmp_path, architectures=ARCHITECTURES[2 * (not field):])


SHARED = [path for path in build_kernels.package_sources()
          if '#include "kernel.h"\n#ifndef __CUDACC__' not in path.read_text("utf-8")]

#: Bytes that may be spilled where a block's threads leave 64 registers to each.
SPILLED = {"multigrid.cu": 64, "nbody.cu": 64}


each_shared = pytest.mark.parametrize(
    "path", SHARED, ids=lambda path: path.relative_to(build_kernels.HEADER_FOLDER.parent.parent).as_posix())


@each_shared
def test_shared_kernels_compile(path, tmp_path):
    """Files that are compiled for CPUs too; without Gaussians of high orders, which take longer than all others."""
    text = re.sub(r"^KERNEL\(add_gaussians_([6-9]|10), .*\n", "", build.source(path, {}), flags=re.MULTILINE)
    compile_for_all(text, {}, tmp_path, SPILLED.get(path.name, 16), ARCHITECTURES[2:])


# the integrals of Gaussians of these orders are more than there are registers, of order 8 on the oldest
@pytest.mark.nightly
@pytest.mark.parametrize(("orders", "architectures"), [("9|10", ARCHITECTURES[2:]), ("8|9|10", ARCHITECTURES[:2])])
@each_shared
def test_shared_kernels_compile_for_all(path, orders, architectures, tmp_path):
    compile_for_all(build.source(path, {}), {}, tmp_path, SPILLED.get(path.name, 16), architectures,
                    large=f"add_gaussians_({orders})")


def test_a_kernel_that_does_not_compile_is_shown_with_line_numbers(tmp_path):
    error = build.failure("direct.cu", "int a;\nint b\n", 'direct.cu(2): error: expected a ";"\n', tmp_path)
    assert 'direct.cu does not compile: direct.cu(2): error: expected a ";"' in str(error)
    assert "\n" not in str(error)
    assert "   2  int b" in error.listing
    assert "   2  int b" in (tmp_path / "failed-direct.txt").read_text()
