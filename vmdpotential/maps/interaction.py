"""The medium, and the interaction with its truncation, that options describe."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from vmdpotential import registry
from vmdpotential.errors import Message, UsageError
from vmdpotential.interactions import Bound
from vmdpotential.interactions.screened_coulomb import WATER_PERMITTIVITY
from vmdpotential.maps.medium import DEFAULT_SALT, Medium
from vmdpotential.maps.options import DEFAULT_CUTOFF, LEAST_TOLERANCE, MapOptions, MediumOptions, MethodOptions
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.selection import Selection, is_water, select
from vmdpotential.molecule.structure import Structure
from vmdpotential.units import DEFAULT_TEMPERATURE

log = logging.getLogger(__name__)


#: Options of a sum over charges, which no continuum has, and their values if they are not set.
_OF_SUMS = {"interaction": "auto", "smear": 0.0, "cutoff": None}

#: Selections that ask for water.
_WITH_WATER = ("all", "water", "waters")


def implied_medium(options: MapOptions, structure: Structure) -> tuple[str, str]:
    """Return the medium that the options of a map imply, and the name of the option that does; empty for the default.

    A method for a continuum implies water; a concentration of salt, screened; options of a sum over charges, and atoms
    that include water, explicit or vacuum.
    """
    if options.solver is not None:
        return "water", "method"
    if options.screened is not None:
        return "screened", "screened"
    water = is_water(structure)
    atoms = options.atoms
    word = atoms.strip().lower() if isinstance(atoms, str) else ""
    if word in _WITH_WATER or (atoms is not None and bool(water[select(structure, atoms)].any())):
        return "explicit", "atoms"
    if summed := _of_sum(options):
        return "explicit" if atoms is None and water.any() else "vacuum", summed
    if water.all():
        return "explicit", "structure"
    return options.default_medium, ""


def in_medium(options: MapOptions, structure: Structure) -> MapOptions:
    """Return the options of a map with the atoms, the method and the salt of their medium.

    Raises
    ------
    UsageError
        For an unknown medium, and for options that do not fit the medium.
    """
    medium = options.medium
    word = medium.kind if isinstance(medium, Medium) else medium or implied_medium(options, structure)[0]
    atoms: Selection = ("all" if word == "explicit" else "solute") if options.atoms is None else options.atoms
    if word != "explicit" and isinstance(atoms, str) and atoms.strip().lower() in _WITH_WATER and (
            waters := int((is_water(structure) & select(structure, atoms)).sum())):
        raise UsageError("atoms", f"{waters} of them are water, which the medium {word} replaces",
                         "choose {atoms solute}, or {medium explicit} for all charges", value=str(atoms))
    options = replace(options, atoms=atoms)
    if isinstance(medium, Medium):
        return options
    own = options.solver
    if word == "water":
        if name := _of_sum(options):
            raise UsageError(name, "the medium water is a continuum, which is not a sum over charges",
                             "leave it out, or choose {medium explicit}, {medium vacuum} or {medium screened}",
                             value=str(getattr(options, name)))
        return replace(options, medium=word, method=options.method if own else "pb")
    if own is not None:
        raise UsageError("method", f"{own.name} solves for a continuum, which is the medium water",
                         "leave out {medium}", value=own.name)
    if word == "screened":
        return replace(options, medium=word, screened=DEFAULT_SALT if options.screened is None else options.screened)
    if options.screened is not None:
        raise UsageError("screened", f"the salt screens the charges, and the medium {word} has none",
                         "leave one of them out", value=f"{options.screened:g}")
    return replace(options, medium=word)


def _of_sum(options: MapOptions) -> str:
    """Return the name of an option that was set and that only sums over charges have; empty if there is none."""
    if options.solver is None and options.method != "auto":
        return "method"
    if options.boundary == "periodic":
        return "boundary"
    return next((name for name, unset in _OF_SUMS.items() if getattr(options, name) != unset), "")


def medium_of(options: MediumOptions) -> Medium:
    """Return the `medium` of the options, or the one that the other options describe.

    Raises
    ------
    UsageError
        For a medium together with options that it replaces.
    """
    medium = options.medium
    if not isinstance(medium, Medium):
        if medium is not None and not options.takes_words:
            raise UsageError("medium", "words are for maps; other sums take a Medium", "such as Medium.screened(0.15)",
                             value=medium)
        permittivity = 1.0 if options.screened is None else WATER_PERMITTIVITY
        return Medium(medium or ("explicit" if options.screened is None else "screened"),
                      permittivity if options.dielectric is None else options.dielectric, options.temperature,
                      options.screened)
    for name in ("screened", "dielectric"):
        if getattr(options, name) is not None:
            raise UsageError("medium", f"the medium already defines {name}", f"leave out {{{name}}}")
    if options.temperature != DEFAULT_TEMPERATURE:
        raise UsageError("medium", "the medium already defines the temperature", "leave out {temperature}")
    return medium


def medium_of_sum(options: MethodOptions) -> Medium:
    """Return the medium that the options of a sum describe; for a method that has parameters, such as pb, a continuum.

    Raises
    ------
    UsageError
        For options that contradict each other, such as a screened potential with another interaction.
    """
    own, medium = options.solver, medium_of(options)
    if own is not None and not isinstance(options.medium, Medium):
        salt = {} if options.screened is None else {"salt": options.screened}
        values = own.parameters({**salt, **(options.parameters or {})})
        return Medium("water", own.dielectric if options.dielectric is None else options.dielectric,
                      options.temperature, values.get("salt"), own.name, values)
    if medium.method != ("" if own is None else own.name):
        raise UsageError("medium", f"this medium cannot be used with the method {options.summation}",
                         "leave out {method}")
    if own is None and options.radii != "auto":
        raise UsageError("radii", "only the method pb uses radii", "use {method pb}", value=options.radii)
    if own is None and medium.salt is not None and options.sets_interaction:
        raise UsageError("screened", "the salt already determines the interaction",
                         "leave out {interaction}, {set} and {smear}", value=f"{medium.salt:g}")
    return medium


def bind_interaction(options: MediumOptions, cell: Cell | None) -> Bound:
    """Return the interaction that options describe, with its parameters.

    An interaction without a cutoff parameter is truncated at `cutoff` if the method requires it, or if no method sums
    it without truncation.

    Raises
    ------
    UsageError
        For invalid names and values.
    """
    summed = options.as_sum()
    medium = medium_of_sum(summed)
    methods, summation = summed.methods, summed.summation
    name = summed.interaction
    values = {} if summed.solver else dict(summed.parameters or {})
    screened = medium.interaction()
    if screened is not None:
        name, values = screened.interaction.name, dict(screened.values)
    if summed.smear:
        if name not in ("auto", "gaussian"):
            raise UsageError("smear", f"Gaussian charges have the interaction gaussian, not {name}",
                             "leave out {interaction}", value=f"{summed.smear:g}")
        name, values["smear"] = "gaussian", summed.smear
        if not any(method.takes(registry.get("interaction", name)) for method in methods):
            raise UsageError("smear", f"the method {summation} sums point charges only", "use {method auto}",
                             value=f"{summed.smear:g}")
    if name == "auto":
        name = "coulomb" if summation == "auto" or not methods else methods[0].interaction
    interaction = registry.get("interaction", name)
    if interaction.cutoff:
        values.setdefault(interaction.cutoff, summed.cutoff or DEFAULT_CUTOFF)
    bound: Bound = interaction.bind(**values)
    boundary = "open" if cell is None else "periodic"
    untruncated = [method for method in methods if not method.cutoff and boundary in method.boundaries
                   and method.takes(interaction)]
    truncated = not interaction.cutoff and not untruncated and any(method.cutoff for method in methods)
    # a decaying interaction without a given cutoff is truncated by the tolerance
    truncated = truncated and (bound.decay is None or summed.cutoff is not None)
    if truncated:
        bound = bound.truncated(summed.cutoff or DEFAULT_CUTOFF)
    if bound.cutoff is None and summed.cutoff is not None:
        raise UsageError("cutoff", f"the method {summation} has no cutoff" if summation != "auto" else
                         f"the potential of {name} is summed without a cutoff", "leave it out, or use {method cutoff}",
                         value=f"{summed.cutoff:g}")
    if truncated and summed.cutoff is None:  # a truncation that was not requested
        residual = abs(float(bound(np.nextafter(DEFAULT_CUTOFF, 0)))) * DEFAULT_CUTOFF
        if residual > 0.01:
            log.warning(
                Message("%s is cut off at %g A, where it is still %.2g %% of q/r; {cutoff} sets another distance"),
                name, DEFAULT_CUTOFF, 100 * residual)
    return bound


def check_tolerance(tolerance: float) -> float:
    """Return a tolerance after checking it.

    Raises
    ------
    UsageError
        For a tolerance outside of 1e-6 to 0.1.
    """
    if not LEAST_TOLERANCE <= tolerance <= 0.1:
        raise UsageError("tolerance", f"give {LEAST_TOLERANCE:g} to 0.1", value=f"{tolerance:g}")
    return tolerance
