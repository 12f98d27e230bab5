"""Summaries of the commands of this package, by their paths; written by scripts/make_task_types.

With each, whether the help lists it with the commands for structures and maps.
"""

COMMAND_SUMMARIES: dict[str, tuple[str, bool]] = {
    "vmdpotential.commands.map:command": (
        "Compute the electrostatic potential on a grid", True),
    "vmdpotential.commands.slice:command": (
        "Draw a picture of planes through maps, for a paper", True),
    "vmdpotential.commands.surface:command": (
        "Map a potential onto the surface of a molecule", True),
    "vmdpotential.commands.average:command": (
        "Average the potential over the frames of a trajectory", True),
    "vmdpotential.commands.devices:command": (
        "List the engines and the hardware of this machine, or why an engine does not work", False),
    "vmdpotential.frontend.plugins:command": (
        "List commands, methods, solvers, interactions and engines, and plugins that failed to load", False),
    "vmdpotential.frontend.completion:command": (
        "Print a script by which a shell completes commands, options, their values and files", False),
    "vmdpotential.commands.verify:command": (
        "Check every engine, method and interaction on this machine against a plain float64 sum", False),
    "vmdpotential.plugins.agents.command:command": (
        "Serve the commands as tools of the Model Context Protocol, for agents", False),
    "vmdpotential.plugins.batch.command:command": (
        "Run a command for each file of a folder or a list, or for each row of a table", False),
    "vmdpotential.plugins.benchmark.command:command": (
        "Time a map of a box of random water molecules on this machine", False),
    "vmdpotential.plugins.compare.command:command": (
        "Compare two maps: difference, correlation and Hodgkin index", True),
    "vmdpotential.plugins.complementarity.command:command": (
        "Compute the electrostatic complementarity of two molecules that touch", True),
    "vmdpotential.plugins.densities.command:command": (
        "Compute the density of atoms over the frames of a trajectory", True),
    "vmdpotential.plugins.fields.profile_command:command": (
        "Compute charge density (e/A^3), electric field (V/A) and potential along an axis of a periodic cell", True),
    "vmdpotential.plugins.fields.field_command:command": (
        "Compute electric field and potential at atoms, at bonds, or at points, in every frame of a trajectory", True),
    "vmdpotential.plugins.historical.timing:command": (
        "Time the forces of pairs in a box of random water molecules on this machine", False),
    "vmdpotential.plugins.ions.command:command": (
        "Replace waters of a solvated structure by neutralising ions and salt", True),
    "vmdpotential.plugins.live.command:command": (
        "Keep a map up to date in a viewer while frames are played, atoms are moved and selections changed", True),
    "vmdpotential.plugins.orbitals.command:command": (
        "Compute a molecular orbital, an electron density or the electrostatic potential on a grid", True),
    "vmdpotential.plugins.pairs.energy_command:command": (
        "Compute Coulomb and Lennard-Jones energies between selections, in kcal/mol", True),
    "vmdpotential.plugins.pairs.forces_command:command": (
        "Compute the forces on the atoms of one selection by another, in kcal/mol/A", True),
    "vmdpotential.plugins.pairs.rdf_command:command": (
        "Compute radial distribution functions g(r) and running coordination numbers", True),
    "vmdpotential.plugins.patches.command:command": (
        "Find charged patches of a surface in every frame, and how often each residue is in them", True),
    "vmdpotential.plugins.pores.command:command": (
        "Compute the free energy of an ion along a path through a membrane, a pore or a molecule", True),
    "vmdpotential.plugins.preparation.command:command": (
        "Complete a structure: hydrogens, missing atoms, protonation states, charges and radii", True),
    "vmdpotential.plugins.probes.command:command": (
        "Compute the energy of probe atoms, or the free energy of a small molecule, at every grid point", True),
    "vmdpotential.plugins.titration.command:command": (
        "Compute pKa values and titration curves of a protein by the Poisson-Boltzmann equation", True),
    "vmdpotential.plugins.viewers.install:command": (
        "Install the plugin for a viewer, and report how to load it", False),
    "vmdpotential.plugins.web.command:command": (
        "Make a web page of a structure, isosurfaces and slices of maps, and ions, or a scene of Mol*", True),
}
