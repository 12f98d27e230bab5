"""The values in the papers, which the scripts print above ours, each with its source."""

#: Tables 2 to 4 and section 5.3: one core of a Core 2 with SSE3 and a Tesla C870; 10^6 A^3 of water, 96,603 atoms,
#: lattice points 0.5 A apart, a cutoff of 12 A.
RODRIGUES = ("C. I. Rodrigues, D. J. Hardy, J. E. Stone, K. Schulten, W. W. Hwu, GPU acceleration of cutoff pair "
             "potentials for molecular modeling applications, Proc. 5th Conf. Computing Frontiers (2008) 273-282")

#: Direct sums on GeForce 8800 GTX and other GPUs and on a core of a QX6700, and the steps of multilevel summation.
STONE = ("J. E. Stone, lecture on GPU computing in molecular modeling; direct sums: J. E. Stone, J. C. Phillips, "
         "P. L. Freddolino, D. J. Hardy, L. G. Trabuco, K. Schulten, J. Comput. Chem. 28 (2007) 2618-2640; multilevel "
         "summation: D. J. Hardy, J. E. Stone, K. Schulten, Parallel Comput. 35 (2009) 164-177")

ATOMS, VOLUME, CUTOFF, SPACING = 96_603, 1e6, 12.0, 0.5

#: Table 2: the largest errors where the potential is above 1e-4, against double precision: relative, %, and absolute.
ACCURACY = {
    "CPU-SSE3": (0.4793, 0.0000939),
    "LargeBin": (0.7457, 0.0001561),
    "SmallBin": (0.8715, 0.0001985),
    "SmallBin-CompSum": (0.5710, 0.0001579),
}

#: Table 3: seconds of CPU-SSE3 and of SmallBin.
PARTS = {
    "spatial hashing": (0.008, 0.008),
    "cutoff summation": (19.444, 0.842),
    "copies between host and GPU": (None, 0.052),
    "overflow list": (None, 0.586),
    "transpose of the map": (None, 0.030),
    "total": (19.452, 1.518),
}

#: Table 4: seconds, and speed-up over the first row.
TIMES = {
    "CPU-SSE3": (19.452, 1.0),
    "LargeBin": (3.64, 5.3),
    "SmallBin": (1.51, 12.81),
    "SmallBin-Overlap": (1.07, 18.17),
    "SmallBin-CompSum": (1.15, 16.91),
}

#: Section 5.3, the kernel with a cutoff that excludes no pair: regions along an edge, bins of each, bytes of a bin;
#: GB/s of loads with full and with empty bins; seconds with loads and without.
BINS = {"regions": 26, "bins": 335, "bytes": 128, "full GB/s": 0.44, "empty GB/s": 4.1, "with loads": 1.712,
        "without": 1.709}

#: Direct sums on a GeForce 8800 GTX: GFLOPS, and 10^9 evaluations of 1/r per second.
DIRECT = {
    "constant": (187.0, 18.6),
    "the second of four": (259.0, 33.4),
    "unrolled": (268.0, 36.4),
    "coalesced": (291.5, 39.5),
}

#: The direct sum on several GPUs: their number, GFLOPS, 10^9 evaluations per second, speed-up over a core of a QX6700.
GPUS = {
    "GeForce 8800 GTX": (3, 863.0, 117.0, 131.0),
    "Quadroplex": (4, 1160.0, 157.0, None),
    "GeForce GTX 280": (4, 1780.0, 241.0, None),
}

#: Multilevel summation, 1.5 million atoms, points 0.5 A apart: seconds of a QX6700, and with a GTX 280 for the two
#: cutoff sums.
MULTILEVEL = {
    "short-range cutoff": (480.07, 14.87),
    "anterpolation": (0.18, None),
    "restriction": (0.16, None),
    "lattice cutoff": (49.47, 1.36),
    "prolongation": (0.17, None),
    "interpolation": (3.47, None),
    "total": (533.52, 20.21),
}

#: All pairs on a Radeon X1900XTX (Table 1): operations per pair, GFLOPS, 10^9 pairs per second, and N.
ELSEN = ("E. Elsen, V. Vishal, M. Houston, V. Pande, P. Hanrahan, E. Darve, N-body simulations on GPUs, "
         "arXiv:0706.3060 (2007)")
NBODY = {
    "GA": (19, 94.3, 4.97, 65_536),
    "GAJ": (42, 53.5, 1.27, 65_536),
    "LJC constant": (30, 77.6, 2.59, 4096),
    "LJC linear": (30, 79.5, 2.65, 4096),
    "LJC sigmoidal": (43, 90.3, 2.10, 4096),
}

#: Table 2 and figure 3: the lambda repressor, 1280 atoms; 10^6 pairs per second on the GPU and by GROMACS on one core.
REPRESSOR = {"LJC constant": (1327, 66), "LJC linear": (1327, 33), "LJC sigmoidal": (1203, 40)}

#: Figure 3: speed-up over one core of a CPU.
NBODY_SPEEDUP = {"GA": 35, "GAJ": 39, "LJC": 15}
