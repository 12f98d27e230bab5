"""The figures of reproduce_cutoff_paper, with the points of the papers and ours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import published

#: Colour and marker of each run, the same in every figure.
STYLES = {"1 CPU core": ("tab:gray", "o"), "CPU cores": ("black", "s"), "largebin": ("tab:red", "v"),
          "smallbin": ("tab:orange", "^"), "overlap": ("tab:green", "D"), "ours on the GPU": ("tab:blue", "o"),
          "direct on 1 CPU core": ("tab:gray", "x"), "direct on the GPU": ("tab:blue", "x")}

#: Colour and markers of the values in the papers.
PAPER = "tab:purple"
MARKERS = {"CPU-SSE3": "*", "LargeBin": "v", "SmallBin": "^", "SmallBin-Overlap": "D", "SmallBin-CompSum": "s"}


def style(name: str) -> dict:
    """Return the colour and the marker of a run."""
    colour, marker = STYLES[name if name in STYLES else "CPU cores"]
    return {"color": colour, "marker": marker, "markersize": 5}


def draw(tables: dict[str, list[dict]], folder: Path) -> None:
    """Draw the figures into a folder.

    Parameters
    ----------
    tables : dict
        Rows of the tables by name.
    folder : Path
    """
    from matplotlib.figure import Figure

    times = tables["times"]
    gpu = any(row["device_seconds"] for row in times)

    def figure(panels: int = 1, share: bool = True):
        result = Figure(figsize=(6.4 if panels == 1 else 10.5, 4.6), dpi=150, layout="constrained")
        return result, result.subplots(1, panels, squeeze=False, sharey=share)[0]

    def curves(axes, column: str, direct: bool = True):
        for name in dict.fromkeys(row["run"] for row in times):
            rows = [row for row in times if row["run"] == name and row["precision"] == "single"
                    and row[column] is not None]
            if rows and (direct or not name.startswith("direct")):
                axes.plot([row["volume"] for row in rows], [row[column] for row in rows], label=name,
                          linestyle=":" if name.startswith("direct") else "-", **style(name))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("volume of the box, Å$^3$")
        axes.grid(alpha=0.3)

    def points(axes, column: int):
        for name, row in published.TIMES.items():
            axes.plot([published.VOLUME], [row[column]], MARKERS[name], color=PAPER, fillstyle="none", markersize=8,
                      label=f"2008: {name}")

    def dots(axes, labels: list[str], values: list[float], unit: str):
        axes.scatter(values, range(len(labels)), color=[PAPER if ":" in label else "tab:blue" for label in labels])
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.set_xscale("log")
        axes.set_xlim(10 ** np.floor(np.log10(min(values))), 10 ** np.ceil(np.log10(max(values))))
        axes.set_xlabel(unit)
        axes.grid(alpha=0.3)

    def save(made, name: str) -> None:
        made.savefig(folder / f"{name}.png")

    made, axes = figure(2 if gpu else 1)
    curves(axes[0], "seconds")
    points(axes[0], 0)
    axes[0].set_ylabel("time, s")
    axes[0].set_title("from arrays to array")
    axes[0].legend(fontsize="small")
    if gpu:
        curves(axes[1], "device_seconds")
        axes[1].set_title("kernels on the GPU alone")
        axes[1].legend(fontsize="small")
    save(made, "figure4_time")

    made, (axes,) = figure()
    curves(axes, "pairs_per_second")
    axes.set_ylabel("pairs in range per second" + (" (GPU: kernels only)" if gpu else ""))
    axes.legend(fontsize="small")
    save(made, "figure5_rate")

    made, (axes,) = figure()
    curves(axes, "speedup", direct=False)
    points(axes, 1)
    axes.set_ylabel("speed-up over one CPU core of the same year")
    axes.legend(fontsize="small")
    save(made, "figure6_speedup")

    made, (axes,) = figure()
    for name in dict.fromkeys(row["run"] for row in tables["bins"]):
        rows = [row for row in tables["bins"] if row["run"] == name]
        axes.plot([row["atoms_in_bin"] for row in rows], [row["device_seconds"] or row["seconds"] for row in rows],
                  label=name, **style(name))
    axes.set_xlabel("atoms in each bin of 4 Å")
    axes.set_ylabel("time, s" + (" (GPU: kernels only)" if gpu else ""))
    axes.set_ylim(0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    save(made, "figure7_bins")

    made, axes = figure(2)
    rows = tables["table2"]
    names = [row["run"] + ("" if row.get("precision", "single") == "single" else ", compensated") for row in rows]
    dots(axes[0], names, [row["relative_percent"] for row in rows], "largest relative error where |V| > 10$^{-4}$, %")
    dots(axes[1], names, [row["absolute"] for row in rows], "largest absolute error there, e/Å")
    save(made, "table2_accuracy")

    made, (axes,) = figure()
    several = tables.get("gpus", [])
    names = [row["run"] for row in tables["direct"]] + [
        "lecture: " * (row["run"] in published.GPUS) + f"{row['gpus']} x {row['run']}" for row in several]
    dots(axes, names, [row["evaluations_per_second"] for row in [*tables["direct"], *several]],
         "evaluations of 1/r per second, direct sum")
    save(made, "direct")

    steps = [row for row in tables["multilevel"] if row["step"] != "total"]
    made, (axes,) = figure()
    columns = [column for column in steps[0] if column != "step"]
    height = 0.8 / len(columns)
    for n, column in enumerate(columns):
        total = next(row for row in tables["multilevel"] if row["step"] == "total")[column]
        shares = [100 * (row[column] or 0) / total for row in steps]
        paper = column in ("QX6700", "with GTX 280")
        axes.barh([k + (n - (len(columns) - 1) / 2) * height for k in range(len(steps))], shares, height,
                  label=f"{'lecture: ' * paper}{column}, {total:.3g} s",
                  color=PAPER if paper else "tab:blue" if n > 2 else "black", alpha=0.5 if n == 1 else 1.0)
    axes.set_yticks(range(len(steps)), [row["step"] for row in steps])
    axes.invert_yaxis()
    axes.set_xlabel("fraction of the total time, %")
    axes.grid(alpha=0.3, axis="x")
    axes.legend(fontsize="small", loc="lower right")
    save(made, "multilevel")
