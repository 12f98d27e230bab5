"""pKa values and titration curves of a protein, and protonation states by them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from measured_pka import PROTEINS, differences

import vmdpotential as vp
from vmdpotential.engines import get_engine
from vmdpotential.errors import InputError, UsageError
from vmdpotential.frontend import cli
from vmdpotential.plugins.preparation.prepare import prepare_structure
from vmdpotential.plugins.titration.energies import SiteEnergies, Solvent, changes_of
from vmdpotential.plugins.titration.options import ph_values
from vmdpotential.plugins.titration.sites import titrated_structure
from vmdpotential.plugins.titration.titration import TitrationCurves

ENTRY = Path(__file__).resolve().parents[2] / "data" / "1aki.pdb.gz"


@pytest.fixture(scope="module")
def lysozyme():
    return vp.titrate(ENTRY)


@pytest.mark.slow
def test_lysozyme_is_closer_to_measured_values_than_model_compounds(lysozyme):
    # 7 ASP, 2 GLU, 1 HIS, 3 TYR, 6 LYS, 11 ARG, two ends; all CYS are in disulfides
    assert len({*lysozyme.labels}) == 32
    protein = PROTEINS["lysozyme"]
    computed, model = (differences(protein, lysozyme, name) for name in ("pka", "model_pka"))
    error, without = (np.sqrt(np.mean(each**2)) for each in (computed, model))
    assert error < 0.9 * without
    assert np.median(np.abs(computed)) < 0.5
    assert lysozyme.isoelectric == pytest.approx(11.35, abs=0.3)  # L. R. Wetter, H. F. Deutsch, 1951
    assert np.corrcoef(computed - model, -model)[0, 1] > 0.5  # the shifts


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ratio"), [
    ("T4 lysozyme", 0.7), ("trypsin inhibitor", 0.9), ("villin headpiece", 0.9), ("ubiquitin", 2.3)])
def test_other_proteins_against_measured_values(name, ratio):
    """Their errors relative to those of model compounds, which ubiquitin's values differ little from."""
    made = vp.titrate(PROTEINS[name].structure())
    computed, without = (np.sqrt(np.mean(differences(PROTEINS[name], made, column)**2))
                         for column in ("pka", "model_pka"))
    assert computed < ratio * without


@pytest.mark.slow
def test_curves_and_charges_of_lysozyme_agree(lysozyme):
    net, dipole = lysozyme.moments
    assert (np.diff(net) < 1e-3).all()
    assert (np.diff(lysozyme.protonated, axis=0) < 0.02).all()  # Monte Carlo has errors
    protons = lysozyme.protonated.sum(1)
    assert net == pytest.approx(protons - protons[0] + net[0], abs=1e-6)  # a proton is a charge
    assert (dipole > 0).all()
    middle = np.array([np.interp(value, lysozyme.ph, curve) for value, curve in zip(
        lysozyme.pka, lysozyme.protonated.T, strict=True) if 0 < value < 14])
    assert middle == pytest.approx(0.5, abs=0.05)  # of straight lines between the values of pH
    assert lysozyme.entries()["asymmetry"] < 0.02
    assert max(lysozyme.table()["error"]) < 0.3


@pytest.fixture(scope="module", params=["charmm36", "amber14"])
def titrated(request):
    return titrated_structure(vp.read_structure(ENTRY), force_field=request.param)


def test_charges_of_states_add_up(titrated):
    """Also of those without a template: neutral ARG, charged TYR, and in Amber neutral ends."""
    assert len(titrated.sites) == 32
    assert titrated.neutral.sum() == pytest.approx(0, abs=1e-3)
    for site in titrated.sites:
        assert titrated.neutral[site.atoms].sum() == pytest.approx(0, abs=1e-3)
        charged = [state for state in site.states if state.protons]
        assert [state.charges.sum() for state in charged] == pytest.approx([1.0 if site.is_base else -1.0], abs=1e-3)
        assert set(site.atoms) < set(site.model)
        for state in site.states:
            assert np.isfinite(state.charges).all()
            assert np.abs(state.charges).max() < 1.01
    acids = [site for site in titrated.sites if site.group in ("ASP", "GLU", "C-")]
    for site in acids:  # the proton is on both oxygens
        names = titrated.structure.atom_names[site.atoms].tolist()
        pair = [n for n, name in enumerate(names) if name in ("OD1", "OD2", "OE1", "OE2", "OXT") or (
            name == "O" and site.group == "C-")]
        assert len(set(titrated.neutral[site.atoms[pair]].round(6))) == 1


def test_sites_without_interactions_have_the_values_of_model_compounds(titrated):
    """Histidine by both of its tautomers."""
    count = len(changes_of(titrated))
    none = SiteEnergies(np.zeros(count), np.zeros(count), np.zeros((count, count)), np.zeros(count), 0.0)
    curves = TitrationCurves(titrated, none, Solvent(), get_engine("cpu"))
    model = [site.model_pka for site in titrated.sites]
    assert curves.intrinsic == pytest.approx(model, abs=1e-9)
    assert curves.pka[0] == pytest.approx(model, abs=0.01)
    assert curves.pka[1] == pytest.approx(1.0, abs=0.02)


def test_hydrogens_and_names_of_states_do_not_matter():
    structure = vp.read_structure(ENTRY)
    acid = prepare_structure(structure, ph=1.0).structure
    names = np.where(acid.residue_names == "ASP", "ASH", acid.residue_names)
    found = titrated_structure(replace(acid, residue_names=names, charges=None, topology=None))
    expected = titrated_structure(structure)
    assert [site.label for site in found.sites] == [site.label for site in expected.sites]
    assert found.neutral == pytest.approx(expected.neutral)
    assert acid.elements[found.rows].tolist() == structure.elements[expected.rows].tolist()  # without hydrogens


@pytest.mark.slow
def test_prepare_uses_computed_values(lysozyme):
    """At a pH between those of sites, whose states follow."""
    prepared = prepare_structure(vp.read_structure(ENTRY), ph=3.0, pka="pb")
    rows = {row.label: row for row in prepared.rows}
    values = dict(zip(lysozyme.labels, lysozyme.pka, strict=True))
    assert values["ASP18 A"] < 3.0 < values["ASP52 A"]
    states = {"ASP": ("ASH", "ASP"), "GLU": ("GLH", "GLU")}
    for label, value in values.items():
        if label[:3] in states and len(label.split()) == 2:
            assert rows[label].state == states[label[:3]][int(value < 3.0)]
            assert rows[label].pka == pytest.approx(value)


def test_maps_without_a_file_are_refused_before_the_work(capsys):
    assert cli.main(["titrate", str(ENTRY), "--map-ph", "4,7"]) == 2
    assert "--maps" in capsys.readouterr().err


def test_structures_without_sites_and_wrong_values_are_refused():
    with pytest.raises(InputError):
        titrated_structure(vp.read_structure(ENTRY.parents[1] / "tests" / "data" / "dna.pdb"))
    for text in ("x", "1:2:3:4", "5:3", "0:14:0", "-9:3", "nan", ""):
        with pytest.raises(UsageError) as caught:
            ph_values(text)
        assert caught.value.parameter == "ph"
    assert ph_values("7").tolist() == [7.0]
    assert ph_values("4:6:0.5").tolist() == [4.0, 4.5, 5.0, 5.5, 6.0]
    assert ph_values("4:5").tolist() == [4.0, 4.5, 5.0]
