// Cutoff sum: the sum over the atoms within the cutoff of every lattice point.
//
// A block of 4 warps sums a tile of 8^3 points. The rows of cells in range of it are contiguous ranges of the sorted
// atoms, which are read in chunks to shared memory, relative to the tile's centre. A warp has two adjacent cubes of 4^3
// points along x, one for each half of its lanes. Each cube has a list of the atoms whose distance to it is below the
// cutoff, with the squared distances to its 4 planes. A lane sums the 4 points of a column along x; at a typical cutoff
// of 24 spacings three quarters of its evaluations are in range. Lists have a fixed capacity: a full list is summed and
// filled again.
//
// Rows are visited with x fastest and with a stride, so that both lists of a warp fill at the same rate.

#define CHUNK 512
#define WARPS 4
#define MAX_ROWS 256
#define SPARE ((CAPACITY - 32) / 2 - 8 < 24 ? (CAPACITY - 32) / 2 - 8 : 24)  // most atoms that stay in a list

constexpr int unroll = UNROLL;  // macros are not expanded in pragmas
constexpr int maps = FIELD ? 4 : 1;

struct Lists { Four atom[WARPS][2][2 * CAPACITY + 1]; };  // padded by one, so that the two lists are in different banks

extern "C" __global__ void __launch_bounds__(128, BLOCKS) cutoff(const Task task)
{
    __shared__ Four chunk[CHUNK];
    __shared__ Lists lists;
    __shared__ unsigned near[CHUNK / 32];
    __shared__ int row_first[MAX_ROWS], row_base[MAX_ROWS + 1];
    __shared__ int warp_sums[WARPS];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, half_warp = lane >> 4;
    const int tile[3] = {(int)blockIdx.z * 8 + task.first_plane, (int)blockIdx.y * 8, (int)blockIdx.x * 8};
    double centre[3], half[3];
    for (int d = 0; d < 3; d++) {
        centre[d] = (tile[d] + 3.5) * task.spacing[d];
        half[d] = 3.5 * task.spacing[d];
    }

    // the rows in range, each clipped along z by its distance to the tile
    int low[2], size[2];
    for (int d = 0; d < 2; d++) {
        const double near_end = (centre[d] - half[d] - task.cutoff - task.low[d]) * task.inverse_cell[d];
        const double far_end = (centre[d] + half[d] + task.cutoff - task.low[d]) * task.inverse_cell[d];
        low[d] = max(0, (int)floor(near_end));
        size[d] = max(0, min(task.cells[d] - 1, (int)floor(far_end)) - low[d] + 1);
    }
    const int rows = min(MAX_ROWS, size[0] * size[1]);
    const int stride = size[0] % 5 ? 5 : 7;
    int length[MAX_ROWS / 128], sum = 0;
    for (int k = 0; k < MAX_ROWS / 128; k++) {
        const int r = threadIdx.x * (MAX_ROWS / 128) + k;
        length[k] = 0;
        if (r < rows) {
            const int x = low[0] + r % size[0] * stride % size[0], y = low[1] + r / size[0];
            const double wx = 0.5 * task.cell_size[0], wy = 0.5 * task.cell_size[1];
            const double gx = fmax(fabs(task.low[0] + (2 * x + 1) * wx - centre[0]) - wx - half[0], 0.0);
            const double gy = fmax(fabs(task.low[1] + (2 * y + 1) * wy - centre[1]) - wy - half[1], 0.0);
            const double reach2 = task.cutoff * task.cutoff - gx * gx - gy * gy;
            if (reach2 > 0) {
                const double reach = sqrt(reach2) + half[2], middle = centre[2] - task.low[2];
                const int first = max(0, (int)floor((middle - reach) * task.inverse_cell[2]));
                const int last = min(task.cells[2] - 1, (int)floor((middle + reach) * task.inverse_cell[2]));
                if (first <= last) {
                    const int row = x * task.cells[1] + y;
                    const int *starts = task.starts + (size_t)row * (task.cells[2] + 1);
                    row_first[r] = task.rows[row] + starts[first];
                    length[k] = starts[last + 1] - starts[first];
                }
            }
        }
        sum += length[k];
    }
    int before = sum;
    for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(~0u, before, step);
        before += lane >= step ? other : 0;
    }
    if (lane == 31)
        warp_sums[warp] = before;
    __syncthreads();
    before -= sum;
    int candidates = 0;
    for (int w = 0; w < WARPS; w++) {
        before += w < warp ? warp_sums[w] : 0;
        candidates += warp_sums[w];
    }
    for (int k = 0; k < MAX_ROWS / 128; k++) {
        row_base[threadIdx.x * (MAX_ROWS / 128) + k] = before;
        before += length[k];
    }

    const REAL hx = (REAL)task.spacing[0], hy = (REAL)task.spacing[1], hz = (REAL)task.spacing[2];
    const REAL cutoff2 = (REAL)(task.cutoff * task.cutoff), soft = (REAL)task.soft;
    // centres of this warp's two cubes (x: -2 h and 2 h) and this lane's column
    const REAL cube_y = (REAL)(4 * (warp >> 1) - 2) * hy, cube_z = (REAL)(4 * (warp & 1) - 2) * hz;
    const REAL point_x = (REAL)(4 * half_warp - 3.5) * hx;
    const REAL point_y = cube_y + (REAL)((lane >> 2 & 3) - 1.5) * hy, point_z = cube_z + (REAL)((lane & 3) - 1.5) * hz;
    const unsigned lanes_upto = ~0u >> (31 - lane);
    Four(&list)[2][2 * CAPACITY + 1] = lists.atom[warp];
    const Four *own_list = list[half_warp];
    int filled[2] = {0, 0};
    double total[maps][4] = {};
    REAL part[maps][4] = {};
    int terms = 0;  // number of terms in each part

    auto flush = [&]() {
#pragma unroll
        for (int k = 0; k < 4 * maps; k++) {
            total[k / 4][k % 4] += (double)part[k / 4][k % 4];
            part[k / 4][k % 4] = 0;
        }
        terms = 0;
    };
    auto sum_lists = [&](int count) {  // count is a multiple of the unrolling
        __syncwarp();
        const Four *next = own_list;
        while (count > 0) {
            int pass = min(count, FLUSH - terms);
            count -= pass;
            terms += pass;
#pragma unroll 1
            for (; pass > 0; pass -= unroll, next += 2 * unroll)
#pragma unroll
                for (int j = 0; j < unroll; j++) {
                    const Four a = next[2 * j], x2 = next[2 * j + 1];
                    const REAL dy = point_y - a.x, dz = point_z - a.y;
                    const REAL yz2 = dy * dy + dz * dz;
                    const REAL d2[4] = {x2.x, x2.y, x2.z, x2.w};
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        const REAL r2 = d2[k] + yz2;
                        const auto value = radial(r2, inverse_root(r2), task.UNIFORMS);
                        if (!MASKED || r2 < cutoff2)
                            add_pair(part, k, a.z, value, point_x + (REAL)k * hx - a.w, dy, dz);
                    }
                }
            if (terms == FLUSH)
                flush();
        }
        __syncwarp();
    };
    auto fill_up = [&](int count) {  // pads lists with atoms that do not count
        for (int c = 0; c < 2; c++)
            for (int j = filled[c] + lane; j < count; j += 32) {
                list[c][2 * j] = make_four(0, 0, 0, 0);
                list[c][2 * j + 1] = make_four(FAR, FAR, FAR, FAR);
            }
    };

    const REAL inverse_hx = 1 / hx, inverse_hy = 1 / hy, inverse_hz = 1 / hz;
    auto candidate = [&](int slot) {  // an atom relative to the tile's centre
        int r = 0;  // the last row that starts at or before this slot
        for (int step = MAX_ROWS / 2; step; step /= 2)
            if (row_base[r + step] <= slot)
                r += step;
        const double4_t atom = task.atoms[row_first[r] + slot - row_base[r]];
        return make_four((REAL)(atom.x - centre[0]), (REAL)(atom.y - centre[1]), (REAL)(atom.z - centre[2]),
                         (REAL)atom.w);
    };

    for (int base = 0; base < candidates; base += CHUNK) {
        __syncthreads();
        bool any_near = false;
        for (int s = threadIdx.x; s < CHUNK; s += 128) {
            bool is_near = false;
            Four a = make_four(FAR, FAR, FAR, 0);
            if (base + s < candidates) {
                a = candidate(base + s);
                is_near = fabs(a.x) < 4 * hx && fabs(a.y) < 4 * hy && fabs(a.z) < 4 * hz &&
                          on_lattice(a.x, hx, inverse_hx, soft) && on_lattice(a.y, hy, inverse_hy, soft) &&
                          on_lattice(a.z, hz, inverse_hz, soft);
                if (is_near)
                    a.x = FAR;
            }
            chunk[s] = a;
            const unsigned word = __ballot_sync(~0u, is_near);
            if (lane == 0)
                near[s / 32] = word;
            any_near = any_near || word;
        }
        any_near = __syncthreads_or(any_near);
        const int count = min(CHUNK, candidates - base);
        for (int first = 0; first < count; first += 32) {
            const Four a = chunk[first + lane];
            const REAL gy = fmax(fabs(a.y - cube_y) - (REAL)1.5 * hy, (REAL)0);
            const REAL gz = fmax(fabs(a.z - cube_z) - (REAL)1.5 * hz, (REAL)0);
            const REAL gap2 = gy * gy + gz * gz;
#pragma unroll
            for (int c = 0; c < 2; c++) {
                const REAL gx = fmax(fabs(a.x - (REAL)(4 * c - 2) * hx) - (REAL)1.5 * hx, (REAL)0);
                const bool in_reach = gap2 + gx * gx < cutoff2;
                const int upto = filled[c] + __popc(__ballot_sync(~0u, in_reach) & lanes_upto);
                if (in_reach) {
                    const int j = upto - 1;
                    REAL d2[4];
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        const REAL d = (REAL)(4 * c + k - 3.5) * hx - a.x;
                        d2[k] = d * d;
                    }
                    list[c][2 * j] = make_four(a.y, a.z, a.w, a.x);
                    list[c][2 * j + 1] = make_four(d2[0], d2[1], d2[2], d2[3]);
                }
                filled[c] = __shfl_sync(~0u, upto, 31);  // another __popc would use the unit of the inverse roots
            }
            const int most = max(filled[0], filled[1]), least = min(filled[0], filled[1]);
            if (most > CAPACITY - 32) {
                // the surplus of the longer list stays in it, unless it is larger than SPARE
                const bool even = most - least <= SPARE;
                const int done = even ? least & -unroll : (most + unroll - 1) & -unroll;
                if (!even)
                    fill_up(done);
                sum_lists(done);
                for (int c = 0; c < 2; c++) {
                    const int rest = max(0, filled[c] - done);
                    if (lane < rest) {
                        const Four yzq = list[c][2 * (done + lane)], d2 = list[c][2 * (done + lane) + 1];
                        list[c][2 * lane] = yzq;  // rest <= done: nothing is overwritten before it is read
                        list[c][2 * lane + 1] = d2;
                    }
                    filled[c] = rest;
                }
                __syncwarp();
            }
        }
        for (int w = 0; any_near && w < CHUNK / 32; w++)
            for (unsigned bits = near[w]; bits; bits &= bits - 1) {
                const Four a = candidate(base + 32 * w + __ffs(bits) - 1);
                const REAL dy = point_y - a.y, dz = point_z - a.z;
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    const REAL dx = point_x + (REAL)k * hx - a.x;
                    const REAL d2 = dx * dx + dy * dy + dz * dz, r2 = fmax(d2, soft * soft);
                    if (r2 < cutoff2)
                        add_pair(total, k, (double)a.w, radial(r2, 1 / sqrt(r2), task.UNIFORMS), dx, dy, dz, d2 == r2);
                }
            }
    }
    const int most = (max(filled[0], filled[1]) + unroll - 1) & -unroll;
    fill_up(most);
    sum_lists(most);
    flush();

    const int ix = tile[0] + 4 * half_warp, iy = tile[1] + 4 * (warp >> 1) + (lane >> 2 & 3);
    const int iz = tile[2] + 4 * (warp & 1) + (lane & 3);
    if (iy < task.shape[1] && iz < task.shape[2])
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (ix + k < task.shape[0]) {
                float *out = &task.out[((size_t)(ix - task.first_plane + k) * task.shape[1] + iy) * task.shape[2] + iz];
#pragma unroll
                for (int n = 0; n < maps; n++, out += task.map_size)
                    *out = (float)((ADD ? (double)*out : 0.0) + total[n][k] * (n ? task.field_factor : task.factor));
            }
}
