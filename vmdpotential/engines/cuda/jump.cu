// The potential of charges on the edges that a molecule's surface cuts; formulas as in
// continuum/jump.cu. A thread computes one edge. Distances are in double, so that the same charges
// are near as on the CPU and large coordinates cost no digits; the terms of near charges are in float.

#define THREADS 128  // number of threads of a block, as in jump.py
#define CORE 1e-4f   // as in engines/jump.py

template <class T> struct Known { T value, slope, bend, flow; };

// What is known of a potential at t between the middle two of four nodes in line, by its values there.
template <class T> __device__ __forceinline__ Known<T> along(T a, T b, T c, T d, T t)
{
    const T third = d - 3 * c + 3 * b - a, second = (T)0.5 * (a - b - c + d), middle = t - (T)0.5;
    const T first = c - b - third / 24, mean = (T)0.5 * (b + c) - second / 8;
    Known<T> known;
    known.value = mean + middle * (first + middle * (second / 2 + middle * third / 6));
    known.slope = first + middle * (second + middle * third / 2);
    known.bend = second + middle * third;
    known.flow = c - b - third / 12;
    return known;
}

// The solid angle of a rectangle, whose sides are twice 1 and twice half_z, seen from a point: its centre is at
// (height, y, z), negative if height < 0.
__device__ __forceinline__ float solid_angle(float height, float y, float z, float half_z)
{
    float real = 1, imaginary = 0;
#pragma unroll
    for (int a = -1; a < 2; a += 2) {
        const float p = y + a;
#pragma unroll
        for (int b = -1; b < 2; b += 2) {
            const float q = z + b * half_z, r = fabsf(height) * sqrtf(p * p + q * q + height * height);
            const float i = a * b * p * q, before = real;
            real = real * r - imaginary * i;
            imaginary = before * i + imaginary * r;
        }
    }
    float angle = atan2f(imaginary, real);
    // from 0 to 2 pi under the rectangle; elsewhere at most pi, and rounding may make it slightly negative
    if (angle < (fabsf(y) < 1 && fabsf(z) < half_z ? 0.0f : -1.0f))
        angle += 6.2831853f;
    return height > 0 ? angle : -angle;
}

extern "C" __global__ void __launch_bounds__(THREADS) known(const EdgeTask task)
{
    const size_t e = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (e >= task.edges)
        return;
    const long long inner = task.inner[e], step = task.outer[e] - inner, far = step < 0 ? -step : step;
    const int axis = far == 1 ? 2 : far == task.shape[2] ? 1 : 0;
    const float sign = step < 0 ? -1 : 1, t = task.share[e];
    const float4 line = task.line[e];
    const Known<double> whole = along<double>(line.x, line.y, line.z, line.w, task.share[e]);
    const int k = inner % task.shape[2], j = inner / task.shape[2] % task.shape[1];
    const int i = inner / ((long long)task.shape[2] * task.shape[1]);
    const double x = task.origin[0] + task.spacing[0] * i, y = task.origin[1] + task.spacing[1] * j;
    const double z = task.origin[2] + task.spacing[2] * k, near2 = task.near * task.near;
    const int cube_x = floor((x - task.low[0]) / task.side), cube_y = floor((y - task.low[1]) / task.side);
    const int cube_z = floor((z - task.low[2]) / task.side);
    const int begin = max(0, cube_z - 1), end = min(task.counts[2], cube_z + 2);
    const float h = task.spacing[axis], half_y = 0.5 * task.spacing[axis == 2 ? 0 : axis + 1];
    const float half_z = 0.5 * task.spacing[axis == 0 ? 2 : axis - 1], per_area = h / (4 * half_y * half_z);
    const float unit = 1 / half_y;
    Known<float> sum = {0, 0, 0, 0};
    for (int a = max(0, cube_x - 1); a < min(task.counts[0], cube_x + 2); a++)
        for (int b = max(0, cube_y - 1); begin < end && b < min(task.counts[1], cube_y + 2); b++) {
            const long long row = ((long long)a * task.counts[1] + b) * task.counts[2];
            for (long long n = task.starts[row + begin]; n < task.starts[row + end]; n++) {
                const double4_t charge = task.charges[n];
                const double dx = x - charge.x, dy = y - charge.y, dz = z - charge.z;
                if (dx * dx + dy * dy + dz * dz > near2)
                    continue;
                const float shift = sign * (float)(axis == 0 ? dx : axis == 1 ? dy : dz), q = charge.w;
                const float v = axis == 0 ? dy : axis == 1 ? dz : dx, w = axis == 0 ? dz : axis == 1 ? dx : dy;
                const float off = fmaxf(v * v + w * w, CORE), next = shift + h, last = next + h, before = shift - h;
                const Known<float> fitted = along<float>(
                    inverse_root(before * before + off), inverse_root(shift * shift + off),
                    inverse_root(next * next + off), inverse_root(last * last + off), t);
                const float at = shift + t * h, inverse = inverse_root(at * at + off);
                const float squared = inverse * inverse, cubed = squared * inverse;
                float middle = shift + h / 2;
                if (middle == 0)  // a charge exactly in the face counts as inside
                    middle = 1e-9f;
                const float angle = solid_angle(middle * unit, v * unit, w * unit, half_z * unit);
                sum.value += q * (inverse - fitted.value);
                sum.slope += q * (-at * h * cubed - fitted.slope);
                sum.bend += q * (h * h * (3 * at * at * squared - 1) * cubed - fitted.bend);
                sum.flow += q * (-angle * per_area - fitted.flow);
            }
        }
    task.values[e] = whole.value + sum.value;
    task.values[task.edges + e] = whole.slope + sum.slope;
    task.values[2 * task.edges + e] = whole.bend + sum.bend;
    task.values[3 * task.edges + e] = whole.flow + sum.flow;
}
