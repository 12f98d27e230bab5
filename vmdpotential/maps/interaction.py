"""The medium and the interaction that options mean, with its truncation."""

from __future__ import annotations

import logging
from dataclasses import fields

import numpy as np

from vmdpotential import registry
from vmdpotential.errors import UsageError, Words
from vmdpotential.interactions import Bound
from vmdpotential.interactions.screened_coulomb import WATER
from vmdpotential.maps.medium import Medium
from vmdpotential.maps.options import CUTOFF, LEAST_TOLERANCE, MediumOptions, MethodOptions, SumOptions
from vmdpotential.molecule.cell import Cell
from vmdpotential.units import DEFAULT_TEMPERATURE

log = logging.getLogger(__name__)


def medium_of(options: MediumOptions) -> Medium:
    """Return the medium that options describe, or the one among them.

    Raises
    ------
    UsageError
        For a medium, and options that it states itself.
    """
    medium = options.medium
    if medium is None:
        permittivity = 1.0 if options.screened is None else WATER
        return Medium(permittivity if options.dielectric is None else options.dielectric, options.temperature,
                      options.screened)
    for name in ("screened", "dielectric"):
        if getattr(options, name) is not None:
            raise UsageError("medium", f"has the parameter {name} itself", f"leave out {{{name}}}")
    if options.temperature != DEFAULT_TEMPERATURE:
        raise UsageError("medium", "states the temperature already", "leave out {temperature}")
    return medium


def medium_of_sum(options: MethodOptions) -> Medium:
    """Return the medium that the options of a sum describe: a continuum where its method has parameters of its own.

    Raises
    ------
    UsageError
        For options that do not fit together, as a screened potential of another interaction.
    """
    own, medium = options.own, medium_of(options)
    if own is not None and options.medium is None:
        salt = {} if options.screened is None else {"salt": options.screened}
        values = own.parameters({**salt, **(options.parameters or {})})
        return Medium(own.dielectric if options.dielectric is None else options.dielectric, options.temperature,
                      values.get("salt"), own.name, values)
    if medium.method != ("" if own is None else own.name):
        raise UsageError("medium", f"is not one of the method {options.summation}", "leave out {method}")
    if own is None and options.radii != "auto":
        raise UsageError("radii", "only the method pb uses radii", "use {method pb}", value=options.radii)
    if own is None and medium.salt is not None and isinstance(options, SumOptions) and (
            options.interaction != "auto" or options.smear or options.parameters):
        raise UsageError("screened", "chooses the interaction already", "leave out {interaction}, {set} and {smear}",
                         value=f"{medium.salt:g}")
    return medium


def bind(options: MediumOptions, cell: Cell | None) -> Bound:
    """Return the interaction that options mean, with its parameters.

    One without a cutoff of its own is ended at `cutoff` where the method asks for it, or where no method sums it
    whole.

    Raises
    ------
    UsageError
        For names and values that do not fit.
    """
    summed = options if isinstance(options, SumOptions) else _as_sum(options)
    medium = medium_of_sum(summed)
    methods, summation = summed.methods, summed.summation
    name = summed.interaction
    values = {} if summed.own else dict(summed.parameters or {})
    in_medium = medium.interaction()
    if in_medium is not None:
        name, values = in_medium.interaction.name, dict(in_medium.values)
    if summed.smear:
        if name not in ("auto", "gaussian"):
            raise UsageError("smear", f"makes the interaction gaussian, not {name}", "leave out {interaction}",
                             value=f"{summed.smear:g}")
        name, values["smear"] = "gaussian", summed.smear
        if not any(method.takes(registry.get("interaction", name)) for method in methods):
            raise UsageError("smear", f"the method {summation} sums point charges alone", "use {method auto}",
                             value=f"{summed.smear:g}")
    if name == "auto":
        name = "coulomb" if summation == "auto" else methods[0].interaction
    interaction = registry.get("interaction", name)
    has_cutoff = any(quantity.name == "cutoff" for quantity in interaction.quantities)
    if has_cutoff:
        values.setdefault("cutoff", summed.cutoff or CUTOFF)
    bound: Bound = interaction.bind(**values)
    boundary = "open" if cell is None else "periodic"
    whole = [method for method in methods if not method.cutoff and boundary in method.boundaries
             and method.takes(interaction)]
    truncated = not has_cutoff and not whole and any(method.cutoff for method in methods)
    truncated = truncated and (bound.decay is None or summed.cutoff is not None)  # else the tolerance shows where
    if truncated:
        bound = bound.truncated(summed.cutoff or CUTOFF)
    if bound.cutoff is None and summed.cutoff is not None:
        raise UsageError("cutoff", f"the method {summation} has no cutoff" if summation != "auto" else
                         f"the potential of {name} is summed without a cutoff", "leave it out, or use {method cutoff}",
                         value=f"{summed.cutoff:g}")
    if truncated and summed.cutoff is None:  # an end that was not requested
        rest = abs(float(bound(np.nextafter(CUTOFF, 0)))) * CUTOFF
        if rest > 0.01:
            log.warning(
                Words("%s is cut off at %g A, where it is still %.2g %% of q/r; {cutoff} sets another distance"),
                name, CUTOFF, 100 * rest)
    return bound


def _as_sum(options: MediumOptions) -> SumOptions:
    """Return the options of a sum whose method is named only where it solves for the solution around the charges."""
    continuum = isinstance(options, MethodOptions) and options.own is not None
    shared = fields(MethodOptions if continuum else MediumOptions)
    return SumOptions(**{item.name: getattr(options, item.name) for item in shared})


def check_tolerance(tolerance: float) -> float:
    """Return a tolerance that can be kept.

    Raises
    ------
    UsageError
    """
    if not LEAST_TOLERANCE <= tolerance <= 0.1:
        raise UsageError("tolerance", f"give {LEAST_TOLERANCE:g} to 0.1", value=f"{tolerance:g}")
    return tolerance
