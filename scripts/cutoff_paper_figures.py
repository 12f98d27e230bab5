"""The figures of reproduce_cutoff_paper: time, speed-up, pairs a second and accuracy of cutoff sums."""

from __future__ import annotations

from pathlib import Path

#: Colours and markers that a run has in every figure.
STYLES = {"1 CPU core": ("tab:gray", "o"), "CPU cores": ("black", "s"), "largebin": ("tab:red", "v"),
          "smallbin": ("tab:orange", "^"), "overlap": ("tab:green", "D"), "ours on the GPU": ("tab:blue", "o")}


def style(name: str) -> dict:
    """Return the colour and the marker of a run."""
    colour, marker = STYLES[name if name in STYLES else "CPU cores"]
    return {"color": colour, "marker": marker, "markersize": 5}


def draw(table2: list[dict], table3: list[dict], published: dict, folder: Path) -> None:
    """Draw the figures into a folder.

    Parameters
    ----------
    table2, table3 : list of dict
        Rows of the tables; those of all boxes.
    published : dict
        What others measured.
    folder : Path
    """
    from matplotlib.figure import Figure

    def figure(panels: int = 1):
        made = Figure(figsize=(6.4 if panels == 1 else 10.5, 4.6), dpi=150, layout="constrained")
        return made, made.subplots(1, panels, squeeze=False, sharey=True)[0]

    def curves(axes, column: str):
        names = dict.fromkeys(row["run"] for row in table3)
        for name in names:
            rows = [row for row in table3 if row["run"] == name and row["precision"] == "single"
                    and row[column] is not None]
            if rows:
                axes.plot([row["volume"] for row in rows], [row[column] for row in rows], label=name, **style(name))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("volume of the box, Å$^3$")
        axes.grid(alpha=0.3)

    def save(made, name: str) -> None:
        made.savefig(folder / f"{name}.png")

    gpu = any(row["device_seconds"] for row in table3)
    made, axes = figure(2 if gpu else 1)
    curves(axes[0], "seconds")
    for name, label, marker in (("seconds, 96,603 atoms, one CPU core", "2008: 1 CPU core", "*"),
                                ("seconds, 96,603 atoms, Tesla C870", "2008: Tesla C870", "P")):
        axes[0].plot([1e6], [published[name]], marker, color="tab:purple", markersize=10, label=label)
    axes[0].set_ylabel("time, s")
    axes[0].set_title("from arrays to array")
    axes[0].legend(fontsize="small")
    if gpu:
        curves(axes[1], "device_seconds")
        axes[1].set_title("kernels on the GPU alone")
        axes[1].legend(fontsize="small")
    save(made, "figure4_time")

    made, (axes,) = figure()
    curves(axes, "speedup")
    axes.axhspan(*published["speed-up"], color="tab:purple", alpha=0.2, label="2008: C870 over CPU core")
    axes.set_ylabel("speed-up over one CPU core of this machine")
    axes.legend(fontsize="small")
    save(made, "figure5_speedup")

    made, (axes,) = figure()
    curves(axes, "pairs_per_second")
    axes.set_ylabel("pairs in range a second" + (" (GPU: of its kernels)" if gpu else ""))
    axes.legend(fontsize="small")
    save(made, "figure6_pairs")

    if not table2:
        return
    edges = sorted({row["edge"] for row in table2})
    sums = list(dict.fromkeys((row["run"], row["precision"]) for row in table2))
    made, axes = figure(2)
    for n, (name, precision) in enumerate(sums):
        rows = [row for row in table2 if (row["run"], row["precision"]) == (name, precision)]
        shift = 0.6 * ((n + 0.5) / len(sums) - 0.5)
        look = style(name) | {"linestyle": ""}
        if precision == "compensated":
            look["markerfacecolor"] = "none"
        for panel, column in zip(axes, ("maximum", "mean"), strict=True):
            panel.plot([edges.index(row["edge"]) + shift for row in rows], [row[column] for row in rows],
                       label=f"{name}, {precision}", **look)
    for panel, column in zip(axes, ("largest", "mean"), strict=True):
        panel.set_yscale("log")
        panel.set_xticks(range(len(edges)), [f"{edge:g} Å" for edge in edges])
        panel.set_xlim(-0.5, len(edges) - 0.5)
        panel.set_xlabel("edge of the box")
        panel.set_title(f"{column} relative error")
        panel.grid(alpha=0.3, axis="y")
    axes[0].set_ylabel("relative error where |V| > 10$^{-4}$ e/Å")
    made.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize="small")
    save(made, "figure7_accuracy")
