"""The packages: those of vmdpotential/, the tables of data/, and the viewers and methods of plugins/."""

from setuptools import find_packages, setup

PLUGINS = find_packages("plugins")

setup(
    packages=[*find_packages(include=["vmdpotential", "vmdpotential.*"]), "vmdpotential.data", "vmdpotential.plugins",
              *(f"vmdpotential.plugins.{name}" for name in PLUGINS)],
    package_dir={"vmdpotential": "vmdpotential", "vmdpotential.data": "data", "vmdpotential.plugins": "plugins",
                 **{f"vmdpotential.plugins.{name}": f"plugins/{name.replace('.', '/')}" for name in PLUGINS}},
)
