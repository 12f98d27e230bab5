"""What of a sum is asked for by name, and the interaction that it means."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as field_

import numpy as np
from numpy.typing import NDArray

from vmdpotential import registry
from vmdpotential.errors import UsageError, Words
from vmdpotential.interactions import Bound
from vmdpotential.interactions.screened_coulomb import WATER, in_water
from vmdpotential.methods import Method
from vmdpotential.molecule.cell import Cell
from vmdpotential.molecule.selection import Selection, is_water
from vmdpotential.molecule.structure import Structure

log = logging.getLogger(__name__)

#: A, of interactions that have one, unless asked for otherwise.
CUTOFF = 12.0

#: Of methods that are not exact, unless another is asked for.
TOLERANCE = 1e-4

#: Below this the rounding of single precision values counts.
LEAST_TOLERANCE = 1e-6

@dataclass(frozen=True)
class Wanted:
    """What of a sum is asked for by name: method, algorithm, interaction with its parameters, cutoff and smear in A.

    `screened` is the molarity of a salt in water, in the place of an interaction (:func:`in_medium`); `radii` are a
    set's name, for methods that need them; `sources` are those of the atoms whose charges count, where others are part
    of the molecule in a continuum (all unless given).
    """

    method: str = "auto"
    algorithm: str = "pair"
    interaction: str = "auto"
    parameters: Mapping[str, float] = field_(default_factory=dict)
    cutoff: float | None = None
    smear: float = 0.0
    screened: float | None = None
    radii: str = "auto"
    sources: Selection | None = None

    @property
    def own(self) -> Method | None:
        """The method that is named, where it has parameters of its own."""
        method: Method | None = None if self.method == "auto" else registry.get("method", self.method)
        return method if method is not None and method.quantities else None

    @property
    def methods(self) -> list[Method]:
        """The methods there are to choose from: the one that is named, or all that sum charges."""
        if self.method != "auto":
            return [registry.get("method", self.method)]
        found: list[Method] = [registry.get("method", name) for name in registry.available("method")]
        return [method for method in found if method.superposes]


def in_medium(wanted: Wanted, dielectric: float | None, temperature: float) -> tuple[Wanted, float]:
    """Return what is wanted with the interaction of its medium, and the permittivity: 1, or water's, unless given.

    Raises
    ------
    UsageError
        For a screened potential of another interaction.
    """
    own = wanted.own
    if own is not None:
        salt = {} if wanted.screened is None else {"salt": wanted.screened}
        values = own.parameters({**salt, **wanted.parameters})
        return replace(wanted, parameters=values, screened=None), own.dielectric if dielectric is None else dielectric
    if wanted.radii != "auto":
        raise UsageError("radii", "are for a method that needs them", "use {method pb}", value=wanted.radii)
    if wanted.screened is None:
        return wanted, 1.0 if dielectric is None else dielectric
    if wanted.interaction != "auto" or wanted.smear or wanted.parameters:
        raise UsageError("screened", "is an interaction by itself", "leave out {interaction}, {set} and {smear}",
                         value=f"{wanted.screened:g}")
    dielectric = WATER if dielectric is None else dielectric
    bound = in_water(wanted.screened, temperature, dielectric)
    return replace(wanted, interaction=bound.interaction.name, parameters=bound.values, screened=None), dielectric


#: Share of the charged atoms above which waters are the medium, and no few waters of a crystal.
_FILLED = 0.2


def stated_medium(medium: str, structure: Structure, chosen: NDArray[np.bool_] | None = None) -> str:
    """Return the words for a medium: "explicit water" instead of "vacuum" where much of what is summed is water.

    Parameters
    ----------
    medium : str
        That of the interaction, such as "vacuum, no screening".
    structure : Structure
    chosen : (N,) bool, optional
        Atoms whose charges count; all unless given.
    """
    water = is_water(structure)
    summed = water if chosen is None else water[chosen]
    if not medium.startswith("vacuum") or not len(summed) or summed.mean() < _FILLED:
        return medium
    return "explicit water" + medium.removeprefix("vacuum").removesuffix(", no screening")


def bind(wanted: Wanted, cell: Cell | None) -> Bound:
    """Return the interaction that is wanted, with its parameters.

    One without a cutoff of its own is ended at `cutoff` where the method asks for it, or where no method sums it
    whole.

    Raises
    ------
    UsageError
        For names and values that do not fit.
    """
    methods = wanted.methods
    name = wanted.interaction
    values = {} if wanted.own else dict(wanted.parameters)
    if wanted.smear:
        if name not in ("auto", "gaussian"):
            raise UsageError("smear", f"makes the interaction gaussian, not {name}", "leave out {interaction}",
                             value=f"{wanted.smear:g}")
        name, values["smear"] = "gaussian", wanted.smear
        if all(method.interactions is not None and name not in method.interactions for method in methods):
            raise UsageError("smear", f"the method {wanted.method} sums point charges alone", "use {method auto}",
                             value=f"{wanted.smear:g}")
    if name == "auto":
        name = "coulomb" if wanted.method == "auto" else methods[0].interaction
    interaction = registry.get("interaction", name)
    has_cutoff = any(quantity.name == "cutoff" for quantity in interaction.quantities)
    if has_cutoff:
        values.setdefault("cutoff", wanted.cutoff or CUTOFF)
    bound: Bound = interaction.bind(**values)
    boundary = "open" if cell is None else "periodic"
    whole = [method for method in methods if not method.cutoff and boundary in method.boundaries
             and (method.interactions is None or name in method.interactions)]
    truncated = not has_cutoff and not whole and any(method.cutoff for method in methods)
    truncated = truncated and (bound.decay is None or wanted.cutoff is not None)  # else the tolerance tells where
    if truncated:
        bound = bound.truncated(wanted.cutoff or CUTOFF)
    if bound.cutoff is None and wanted.cutoff is not None:
        raise UsageError("cutoff", f"the method {wanted.method} has none" if wanted.method != "auto" else
                         f"the full potential of {name} has none", "use {method cutoff}", value=f"{wanted.cutoff:g}")
    if truncated and wanted.cutoff is None:  # an end that nobody asked for
        rest = abs(float(bound(np.nextafter(CUTOFF, 0)))) * CUTOFF
        if rest > 0.01:
            log.warning(
                Words("%s is cut off at %g A, where it is still %.2g %% of q/r; {cutoff} sets another distance"),
                name, CUTOFF, 100 * rest)
    return bound


def check_tolerance(tolerance: float) -> float:
    """Return a tolerance that can be kept.

    Raises
    ------
    UsageError
    """
    if not LEAST_TOLERANCE <= tolerance <= 0.1:
        raise UsageError("tolerance", f"give {LEAST_TOLERANCE:g} to 0.1", value=f"{tolerance:g}")
    return tolerance
