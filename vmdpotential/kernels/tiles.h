// Nodes of a lattice as elements of kernels, in an order in which those that a GPU computes together are next to each
// other: planes of constant x, in tiles of 4 along y by 8 along z; launch.py counts the elements of a plane.
#pragma once

#define TILE_Y 4
#define TILE_Z 8

// Find the node of an element; return false if it is beyond the lattice.
DEVICE bool find_node(const index_t *shape, index_t plane, index_t at, int *node)
{
    const int tiles = (int)(shape[2] + TILE_Z - 1) / TILE_Z, tile = (int)(at % plane) / (TILE_Y * TILE_Z);
    const int lane = (int)(at % (TILE_Y * TILE_Z));
    node[0] = (int)(at / plane);
    node[1] = tile / tiles * TILE_Y + lane / TILE_Z;
    node[2] = tile % tiles * TILE_Z + lane % TILE_Z;
    return node[1] < shape[1] && node[2] < shape[2];
}
