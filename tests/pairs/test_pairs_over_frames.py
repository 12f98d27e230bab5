"""Values of every frame, and profiles: the same bits for any number of workers, and after a stop."""

import pickle

import MDAnalysis
import numpy as np
import pytest
from helpers import TOOLS

from vmdpotential import progress, registry
from vmdpotential.errors import StoppedError, UsageError
from vmdpotential.execution import blocks, pools
from vmdpotential.io import read_structure

WATER = TOOLS / "alanine-dipeptide-explicit"
FILES = WATER / "alanine-dipeptide.crd", WATER / "alanine-dipeptide.prmtop"

COMMANDS = {
    "energy": ("energy", {"between": ("protein", "water"), "by": "residue", "electrostatics": "pme"}),
    "totals": ("energy", {"between": ("protein", "water", "//*/2", "water"), "electrostatics": "rf"}),
    "born": ("energy", {"between": ("(ACE)", "(NME)"), "solvent": "gb", "gb_model": "gbn2"}),
    "born residues": ("energy", {"between": ("(ACE)", "(NME)"), "solvent": "gb", "by": "residue"}),
    "poisson": ("energy", {"between": ("(ACE)", "(NME)"), "solvent": "pb", "spacing": 1.5, "surface_tension": 0.005}),
    "forces": ("forces", {"between": ("protein", "water"), "electrostatics": "pme"}),
    "rdf": ("rdf", {"between": ("//*/(WAT,HOH)/O", "//*/(WAT,HOH)/O"), "range": 8.0}),
    "field": ("field", {"at": "protein"}),
    "profile": ("profile", {"spacing": 1.0}),
}


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """20 frames, three blocks, whose cells grow."""
    path = tmp_path_factory.mktemp("frames") / "frames.dcd"
    structure = read_structure(*FILES)
    universe = MDAnalysis.Universe.empty(len(structure), trajectory=True)
    rng = np.random.default_rng(3)
    with MDAnalysis.Writer(str(path), len(structure)) as writer:
        for number in range(20):
            universe.atoms.positions = structure.positions + rng.normal(0, 0.05, (len(structure), 3))
            universe.dimensions = np.array(structure.cell.parameters) * [*[1 + 0.001 * (number // 3)] * 3, 1, 1, 1]
            writer.write(universe.atoms)
    return path


def run(name, frames, output, **more):
    command, options = COMMANDS[name]
    return registry.get("command", command)(
        structure=FILES[0], topology=FILES[1], trajectory=frames, output=output, **options, **more)


def stop(label, fraction):
    if label == "20 frames" and fraction > 0.6:
        raise KeyboardInterrupt


def same(actual, expected):
    if actual.suffix == ".csv":
        return actual.read_bytes() == expected.read_bytes()
    with np.load(actual) as first, np.load(expected) as second:
        assert first["forces"].shape[0] == 20
        return all(first[key].tobytes() == second[key].tobytes() for key in first.files)


# each command once; further ways to compute energies use the same task
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.nightly if name in (
    "totals", "born residues", "poisson") else pytest.mark.slow) for name in COMMANDS])
def test_same_bits_with_workers_and_after_a_stop(name, frames, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "DISK", 1e12)  # blocks are kept that are soon computed again
    suffix = ".npz" if name == "forces" else ".csv"
    whole, parallel, stopped = (tmp_path / f"{called}{suffix}" for called in ("whole", "parallel", "stopped"))
    run(name, frames, whole)
    if name in ("energy", "field"):  # a start of processes takes longer than the frames
        run(name, frames, parallel, workers=2)
        assert same(whole, parallel)
    with pytest.raises(KeyboardInterrupt), progress.listen_to_progress(stop):
        run(name, frames, stopped)
    kept = stopped.with_name(f"{stopped.name}.blocks")
    assert not stopped.exists()
    assert list(kept.glob("block-*.npz"))
    computed, timed = [], pools.timed_result
    monkeypatch.setattr(pools, "timed_result", lambda work, block: (
        computed.append(block) or timed(pickle.loads(pickle.dumps(work)), block)))  # as another process would
    run(name, frames, stopped, resume=True)
    assert 0 < sum(map(len, computed)) < 20
    assert same(whole, stopped)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


@pytest.mark.parametrize("name", ["totals", "rdf", "field", "profile"])
def test_a_stopped_run_writes_what_is_done_where_it_is_asked_to(name, frames, tmp_path):
    output = tmp_path / "table.csv"
    with pytest.raises(StoppedError) as stopped, progress.listen_to_progress(stop):
        run(name, frames, output, partial=True)
    assert stopped.value.exit_code == 130
    done = stopped.value.report.data["frames"]
    assert 0 < done < 20
    command, options = COMMANDS[name]
    expected = registry.get("command", command)(structure=FILES[0], topology=FILES[1], trajectory=frames,
                                                frames=slice(done), output=tmp_path / "first.csv", **options)
    assert expected.data["frames"] == done
    assert same(tmp_path / "first.csv", output)


def test_a_structure_alone_is_not_resumed(tmp_path):
    (tmp_path / "table.csv.blocks").mkdir()
    with pytest.raises(UsageError) as caught:
        run("rdf", None, tmp_path / "table.csv", resume=True)
    assert caught.value.parameter == "resume"
