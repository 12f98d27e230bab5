"""Mixtures of salts: whole numbers by hand, neutral whatever the charge and the ions that are there."""

import json

import golden
import numpy as np
import pytest
from helpers import refused

from vmdpotential.errors import UsageError
from vmdpotential.plugins.ions.command import command
from vmdpotential.plugins.ions.counts import IonSpecies
from vmdpotential.plugins.ions.salts import (
    Salt,
    apportion,
    find_salt,
    neutralising_ions,
    parse_salt,
    plan_counts,
    plan_mixture,
)

SOD, POT, MG, CLA = IonSpecies("SOD", 1), IonSpecies("POT", 1), IonSpecies("MG", 2), IonSpecies("CLA", -1)
MIXTURE = [Salt("NaCl", SOD, CLA, 0.7), Salt("KCl", POT, CLA, 0.2), Salt("MgCl2", MG, CLA, 0.1)]


# 0.15 mol/L in 10,000 waters of 30 A^3: 27 formula units
def mixture(charge, salts=MIXTURE, cation=SOD, anion=CLA, waters=10000, **options):
    return plan_mixture(charge, waters, salts, cation, anion, **{"concentration": 0.15, **options})


def numbers(counts):
    return {ion.name: number for ion, number in counts.added}


def test_formula_units_are_divided_by_largest_remainder():
    # 27 units: 18.9, 5.4 and 2.7; 18 + 5 + 2 leave two, which .9 and .7 get
    counts = mixture(0)
    assert [share.number for share in counts.mixture] == [19, 5, 3]
    assert numbers(counts) == {"SOD": 19, "POT": 5, "MG": 3, "CLA": 19 + 5 + 6}
    assert "mixture: 19 NaCl (0.7 of 27 is 18.9), 5 KCl (0.2 of 27 is 5.4), 3 MgCl2 (0.1 of 27 is 2.7)" in \
        "\n".join(counts.lines)
    assert numbers(mixture(-11)) == {"SOD": 30, "POT": 5, "MG": 3, "CLA": 30}
    assert mixture(-11).neutralizing == {"SOD": 11}
    assert numbers(mixture(4, cation=POT)) == {"SOD": 19, "POT": 5, "MG": 3, "CLA": 34}
    assert numbers(mixture(-4, cation=POT)) == {"SOD": 19, "POT": 9, "MG": 3, "CLA": 30}
    assert [share.number for share in apportion(1, ["a", "b", "c"], [1, 1, 1])] == [1, 0, 0]


def test_ions_that_are_there_count_kind_by_kind_and_the_sum_is_always_neutral():
    # the solute is -7: 7 + 19 sodiums wanted, 4 there; 30 chlorides wanted, 1 there
    assert numbers(mixture(-4, existing=[(SOD, 4), (CLA, 1)])) == {"SOD": 22, "POT": 5, "MG": 3, "CLA": 29}
    assert numbers(mixture(-4, existing=[(SOD, 4), (CLA, 1)], count_existing=False)) == numbers(mixture(-4))
    for charge in range(-20, 21, 5):
        for there in ([(POT, 40)], [(MG, 9), (CLA, 60)], [(IonSpecies("ZN2", 2), 3)], [(SOD, 2), (SOD, 3)]):
            for neutralize in (True, False):
                result = mixture(charge, existing=there, neutralize=neutralize)
                assert result.added_charge == (-charge if neutralize else 0)
                assert all(number > 0 for _, number in result.added)


@pytest.mark.parametrize("method", ["sltcap", "split"])
def test_methods_of_monovalent_salt_divide_each_sign(method):
    two = [Salt("NaCl", SOD, CLA, 0.75), Salt("KCl", POT, CLA, 0.25)]
    result = mixture(-8, two, method=method)
    single = plan_counts(-8, 10000, SOD, CLA, concentration=0.15, method=method)
    total = numbers(single)
    assert numbers(result)["CLA"] == total["CLA"]
    assert numbers(result)["SOD"] + numbers(result)["POT"] == total["SOD"]
    assert abs(numbers(result)["SOD"] - 0.75 * total["SOD"]) < 1
    with refused("count"):
        mixture(-8, method=method)


def test_formulas_are_neutral_and_tell_the_ion():
    assert find_salt("NaCl", {}) == ("SOD", "CLA")
    assert find_salt("MgCl2", {}) == ("MG", "CLA")
    assert (find_salt("FeCl2", {}), find_salt("FeCl3", {})) == (("FE2", "CLA"), ("FE", "CLA"))
    ions = {"NH4": 1, "SO4": -2}
    assert find_salt("(NH4)2SO4", ions) == ("NH4", "SO4")
    assert find_salt("Al2(SO4)3", ions) == ("AL", "SO4")
    for wrong in ("NaCl2", "nacl", "NH4Cl", "NaK", ""):
        with refused("salt"):
            find_salt(wrong, {})
    assert neutralising_ions(MIXTURE) == (SOD, CLA)
    assert neutralising_ions(MIXTURE[1:]) == (POT, CLA)
    assert neutralising_ions(MIXTURE[2:]) == (MG, CLA)


def test_texts_of_mixtures():
    assert parse_salt("NaCl:0.7, KCl:0.3") == {"NaCl": 0.7, "KCl": 0.3}
    assert parse_salt("MgCl2") == {"MgCl2": 1.0}
    assert parse_salt("NaCl:0.333,KCl:0.333,CsCl:0.333") == {"NaCl": 0.333, "KCl": 0.333, "CsCl": 0.333}
    for text in ("", "NaCl,KCl", "NaCl:x", "NaCl:-1,KCl:2", "NaCl:0.5,NaCl:0.5", "NaCl:70,KCl:30", "NaCl:0.7,KCl:0.2"):
        with pytest.raises(ValueError):
            parse_salt(text)


def test_the_command_reports_distances_and_distributions():
    report = command(structure=golden.structure(), concentration=0.4, salt="NaCl:0.5,KCl:0.5", site="random", seed=3,
                     from_solute=4)
    ions = report.objects["placement"].ions
    data = json.loads(json.dumps(report.data, allow_nan=False))
    assert [share["name"] for share in data["counts"]["mixture"]] == ["NaCl", "KCl"]
    assert min(each["ion"] for each in data["least_distances"].values()) == min(ion.ion_distance for ion in ions)
    assert data["least_distances"]["POT"]["solute"] == min(i.solute_distance for i in ions if i.name == "POT")
    assert any(line.startswith("minimum distances: ion to ion ") for line in report.lines)
    # around each chloride there are as many sodiums as pairs within the range, images too, by hand
    curve = data["distributions"]
    cell = golden.structure().cell
    shifts = [(a, b, c) for a in (-1, 0, 1) for b in (-1, 0, 1) for c in (-1, 0, 1)]
    sodium = np.array([ion.position for ion in ions if ion.name == "SOD"])
    chloride = np.array([ion.position for ion in ions if ion.name == "CLA"])
    apart = np.linalg.norm(sodium[:, None, None] - chloride[None, :, None] + np.array(shifts) @ cell.vectors, axis=-1)
    assert curve["count"]["SOD-CLA"][-1] * len(sodium) == pytest.approx((apart < 15).sum())
    for usage in ({"salt": "NaCl:0.5,KCl:0.5"}, {"salt": "NaCl", "ions": "SOD=3"}, {"salt": "XY", "concentration": 1}):
        with pytest.raises(UsageError):
            command(structure=golden.structure(), **usage)
