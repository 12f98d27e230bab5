// Kernels for maps in a GPU's memory: values at points, mean squares, and sums over maps.

#define PARTS 256  // number of parts of a map whose squares are summed separately, as in result.py

// Copy values at given indices. A thread has one index of one map.
extern "C" __global__ void gather(const ResultTask task)
{
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < task.count)
        task.values[(size_t)blockIdx.y * task.count + i] = task.maps[blockIdx.y * task.size + task.places[i]];
}

// Sum the squares of a part of one map, always in the same order. Blocks of 256 threads.
extern "C" __global__ void __launch_bounds__(256) mean_squares(const ResultTask task)
{
    __shared__ double partial[256];
    const float *map = task.maps + blockIdx.y * task.size;
    double sum = 0;
    for (size_t i = (size_t)blockIdx.x * 256 + threadIdx.x; i < task.size; i += (size_t)PARTS * 256)
        sum += (double)map[i] * map[i];
    partial[threadIdx.x] = sum;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        task.values[blockIdx.y * PARTS + blockIdx.x] = partial[0];
}

// Add differences from the first maps, and their squares, because squares of the values themselves would lose digits. A
// thread has one value of one map, also in the kernels below.
extern "C" __global__ void __launch_bounds__(256) add(const ResultTask task)
{
    const size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (i >= task.size)
        return;
    const size_t place = blockIdx.y * task.size + i;
    const double difference = (double)task.maps[place] - (double)task.shift[place];
    task.sums[place] += difference;
    task.squares[place] += difference * difference;
}

// Compute the mean of the added maps, or without a shift the mean square deviation.
extern "C" __global__ void __launch_bounds__(256) moments(const ResultTask task)
{
    const size_t i = (size_t)blockIdx.x * 256 + threadIdx.x, place = blockIdx.y * task.size + i;
    if (i >= task.size)
        return;
    const double mean = task.sums[place] * task.share;
    task.values[place] = task.shift ? (double)task.shift[place] + mean : task.squares[place] * task.share - mean * mean;
}

// Add the maps of a frame to the sums.
extern "C" __global__ void __launch_bounds__(256) total(const ResultTask task)
{
    const size_t i = (size_t)blockIdx.x * 256 + threadIdx.x, place = blockIdx.y * task.size + i;
    if (i < task.size)
        task.sums[place] += task.maps[place];
}

// Add the mean of the sums to maps.
extern "C" __global__ void __launch_bounds__(256) add_mean(const ResultTask task)
{
    const size_t i = (size_t)blockIdx.x * 256 + threadIdx.x, place = blockIdx.y * task.size + i;
    if (i < task.size)
        task.mean[place] += (float)(task.sums[place] * task.share);
}
