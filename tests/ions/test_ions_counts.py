"""How many ions: by hand, and in closed form."""

import math

import pytest
from helpers import refused
from messages import Words, naming

from vmdpotential.errors import InputError, UsageError
from vmdpotential.plugins.ions.counts import IonSpecies, parse_list, water_molarity
from vmdpotential.plugins.ions.salts import plan_counts

SOD, CLA, MG, SO4 = IonSpecies("SOD", 1), IonSpecies("CLA", -1), IonSpecies("MG", 2), IonSpecies("SO4", -2)


def numbers(*arguments, **options):
    return {s.name: n for s, n in plan_counts(*arguments, **options).added}


@pytest.mark.parametrize(
    ("charge", "cation", "anion", "expected"),
    [
        (-11, SOD, CLA, {"SOD": 11}),
        (7, SOD, CLA, {"CLA": 7}),
        (0, SOD, CLA, {}),
        (-4, MG, CLA, {"MG": 2}),
        (-5, MG, CLA, {"MG": 3, "CLA": 1}),  # one more counter-ion, one monovalent co-ion
        (5, MG, CLA, {"CLA": 5}),
        (5, SOD, SO4, {"SO4": 3, "SOD": 1}),
        (-5, SOD, SO4, {"SOD": 5}),
        (-4, MG, SO4, {"MG": 2}),
        (-10.9996, SOD, CLA, {"SOD": 11}),
    ],
)
def test_neutralising_ions(charge, cation, anion, expected):
    counts = plan_counts(charge, 5000, cation, anion)
    assert {s.name: n for s, n in counts.added} == expected
    assert counts.added_charge == -round(charge)


@pytest.mark.parametrize(
    ("charge", "cation", "anion", "cations", "anions"),
    [
        (0, SOD, CLA, 27, 27),
        (-11, SOD, CLA, 38, 27),
        (6, MG, CLA, 27, 60),
        (-5, MG, CLA, 30, 55),
        (4, SOD, SO4, 54, 29),
        (-4, SOD, SO4, 58, 27),
        (-4, MG, SO4, 29, 27),
    ],
)
def test_salt_is_added_to_neutralising_ions(charge, cation, anion, cations, anions):
    # 0.15 mol/L in 10,000 molecules of 30.0 A^3, 3.0e-22 L: 27.1 formula units
    counts = numbers(charge, 10000, cation, anion, concentration=0.15)
    assert counts == {cation.name: cations, anion.name: anions}


def test_the_water_molarity_is_that_of_water_and_is_told():
    assert water_molarity() == pytest.approx(997.05 / 18.015, rel=2e-4)  # g/L at 25 C, g/mol
    counts = plan_counts(0, 7023, SOD, CLA, concentration=0.15)
    assert counts.data["added"] == {"SOD": 19, "CLA": 19}  # 20 where a molecule has 31.05 A^3
    assert counts.data["water_volume"] == 7023 * 30.0
    assert "19 SOD, 19 CLA for 0.15 mol/L in 210.7 nm^3 of water, 7023 molecules of 30 A^3" in counts.lines[2]


@pytest.mark.parametrize("charge", [-40, -11, -1, 0, 1, 12, 33])
def test_sltcap_is_the_donnan_equilibrium(charge):
    waters, concentration = 20000, 0.1
    pairs = waters * concentration / water_molarity()
    result = numbers(charge, waters, SOD, CLA, concentration=concentration, method="sltcap")
    assert result["SOD"] - result["CLA"] == -charge
    # closed form: the product of the concentrations equals that of the bulk, N+ N- = N0^2
    ideal = math.sqrt(pairs**2 + charge**2 / 4) - abs(charge) / 2
    assert abs(min(result.values()) - ideal) <= 0.5


def test_split_by_hand_and_where_it_is_not_valid():
    concentration = water_molarity() / 1000  # N0 = 50 in 50000 waters
    assert numbers(-30, 50000, SOD, CLA, concentration=concentration, method="split") == {"SOD": 65, "CLA": 35}
    assert numbers(8, 50000, SOD, CLA, concentration=concentration, method="split") == {"SOD": 46, "CLA": 54}
    with naming(UsageError, "-51 e"):
        plan_counts(-51, 50000, SOD, CLA, concentration=concentration, method="split")


def test_existing_ions_are_part_of_the_salt_unless_told_otherwise():
    options = {"concentration": 0.15, "existing": [(SOD, 11), (CLA, 4)]}
    # 27 pairs and 7 counter-ions are wanted around a solute of -7; 11 and 4 are there
    assert numbers(0, 10000, SOD, CLA, **options) == {"SOD": 23, "CLA": 23}
    assert numbers(0, 10000, SOD, CLA, count_existing=False, **options) == {"SOD": 27, "CLA": 27}
    assert numbers(0, 10000, SOD, CLA, neutralize=False, **options) == {"SOD": 23, "CLA": 23}
    # more is there than asked for: what remains is neutralised only
    many = {"concentration": 0.15, "existing": [(SOD, 60), (CLA, 50)]}
    assert numbers(3, 10000, SOD, CLA, **many) == {"CLA": 3}
    # divalent ions count by their charge
    assert numbers(0, 10000, SOD, CLA, concentration=0.15, existing=[(MG, 5), (CLA, 10)]) == {"SOD": 17, "CLA": 17}


@pytest.mark.parametrize("method", ["add", "sltcap", "split"])
@pytest.mark.parametrize("charge", range(-9, 10, 3))
@pytest.mark.parametrize("existing", [(0, 0), (5, 0), (0, 7), (40, 40)])
def test_every_count_neutralises(method, charge, existing):
    there = [(SOD, existing[0]), (CLA, existing[1])]
    added = plan_counts(charge, 10000, SOD, CLA, concentration=0.15, method=method, existing=there)
    assert added.added_charge == -charge
    assert all(n > 0 for _, n in added.added)


def test_a_charge_that_is_no_integer_is_stated_or_refused():
    assert "is rounded to -11" in plan_counts(-10.98, 5000, SOD, CLA).warnings[0]
    with naming(InputError, Words.NOT_INTEGER):
        plan_counts(-10.6, 5000, SOD, CLA)
    assert plan_counts(-10.6, 5000, SOD, CLA, neutralize=False).total == 0


def test_ion_lists():
    assert parse_list("SOD=11, CLA=2") == {"SOD": 11, "CLA": 2}
    for text in ("", "SOD", "SOD=", "=3", "SOD=1.5", "SOD=-1", "SOD=1,SOD=2", "11SOD", "SOD=1,,CLA=1"):
        with pytest.raises(ValueError):
            parse_list(text)


def test_odd_charge_with_divalent_ions_only_is_refused():
    with refused("cation"):
        plan_counts(-5, 5000, MG, SO4)
