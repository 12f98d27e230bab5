// Displacements in float64 to the nearest periodic image.
#pragma once

#include "functions.h"

// A cell from the members of a kernel's arguments: `basis`, lattice vectors as rows, and its inverse, zeros if it is not
// periodic; `shifts` (shift_count, 3), displacements to images that may be nearer than the one found by rounding.
struct Images {
    double basis[3][3], inverse[3][3];
    const double *shifts;
    int shift_count;
    enum Kind { NONE, ALONG_AXES, ANY } kind;

    template <class Arguments> explicit Images(const Arguments &args) : shifts(args.shifts), shift_count(args.shift_count)
    {
        memcpy(basis, args.basis, sizeof(basis));
        memcpy(inverse, args.inverse, sizeof(inverse));
        // an orthogonal cell that is rotated away from the axes has no shifts, but its basis is not diagonal
        kind = basis[0][0] == 0 && basis[0][1] == 0 && basis[0][2] == 0 ? NONE : ALONG_AXES;
        for (int n = 0; n < 9; n++)
            if (n % 4 && basis[n / 3][n % 3] != 0)
                kind = ANY;
    }

    // A row times a matrix.
    static MEMBER void multiply(const doubles *row, const double (&matrix)[3][3], doubles *result)
    {
        for (int d = 0; d < 3; d++)
            result[d] = row[0] * matrix[0][d] + row[1] * matrix[1][d] + row[2] * matrix[2][d];
    }

    static MEMBER doubles square(doubles x, doubles y, doubles z) { return x * x + y * y + z * z; }

    // The smallest square of a displacement and its shifted ones.
    MEMBER doubles smallest_square(const doubles *d) const
    {
        doubles least = square(d[0], d[1], d[2]);
        for (const double *s = shifts; s < shifts + 3 * shift_count; s += 3)
            least = traced::min(least, square(d[0] + s[0], d[1] + s[1], d[2] + s[2]));
        return least;
    }

    // The squared distance to the nearest image for a displacement d, which is changed.
    template <int KIND = ANY> MEMBER doubles nearest_square(doubles *d) const
    {
        if (KIND == NONE)
            return square(d[0], d[1], d[2]);
        if (KIND == ALONG_AXES) {
            for (int n = 0; n < 3; n++)
                d[n] -= traced::nearest(d[n] * inverse[n][n]) * basis[n][n];
            return square(d[0], d[1], d[2]);
        }
        doubles whole[3], moved[3];
        multiply(d, inverse, whole);
        for (int n = 0; n < 3; n++)
            whole[n] = traced::nearest(whole[n]);
        multiply(whole, basis, moved);
        for (int n = 0; n < 3; n++)
            d[n] -= moved[n];
        return smallest_square(d);
    }
};
