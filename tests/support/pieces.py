"""Connected pieces of a mesh."""

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components


def volumes(vertices, triangles):
    """Return the volume inside each piece; that of a cavity, whose normals point into it, is negative."""
    places, rows = np.unique(np.round(vertices, 4), axis=0, return_inverse=True)
    triangles = rows.reshape(-1)[triangles]
    edges = triangles[:, [0, 0]].ravel(), triangles[:, [1, 2]].ravel()
    graph = coo_matrix((np.ones(len(edges[0]), np.int8), edges), (len(places), len(places)))
    _, piece = connected_components(graph, directed=False)
    a, b, c = (places[triangles[:, n]] for n in range(3))
    return np.bincount(piece[triangles[:, 0]], np.einsum("ij,ij->i", np.cross(a, b), c) / 6)
