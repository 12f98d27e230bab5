"""Large arrays go to a GPU and back in pieces: every byte arrives, however late the GPU copies."""

from types import SimpleNamespace

import numpy as np
import pytest

from vmdpotential.engines.cuda import copies


class Late:
    """A driver that copies when somebody waits for it, and keeps what is copied in an array."""

    def __init__(self, size):
        self.memory, self.queue, self.most = np.zeros(size, np.uint8), [], 0

    def memcpy_htod(self, address, array):
        self.memory[address : address + array.nbytes] = array.reshape(-1).view(np.uint8)

    def memcpy_dtoh(self, array, address):
        array.reshape(-1).view(np.uint8)[:] = self.memory[address : address + array.nbytes]

    def memcpy_htod_async(self, address, array, stream):
        self._wait(lambda: self.memcpy_htod(address, array))

    def memcpy_dtoh_async(self, array, address, stream):
        self._wait(lambda: self.memcpy_dtoh(array, address))

    def _wait(self, call):
        self.queue.append(call)
        self.most = max(self.most, len(self.queue))

    def event(self):
        event = SimpleNamespace(last=None)

        def record():
            event.last = self.queue[-1]

        def synchronize():
            while event.last in self.queue:
                self.queue.pop(0)()

        event.record, event.synchronize = record, synchronize
        return event


@pytest.mark.parametrize("size", [1, 64, 65, 500, 512, 513, 2000])
def test_arrays_arrive_whole_at_the_gpu_and_back(monkeypatch, size):
    driver = Late(8 * size + 16)
    driver.Event = driver.event
    monkeypatch.setattr(copies, "PIECE", 64)
    monkeypatch.setattr(copies, "driver", lambda: driver)
    monkeypatch.setattr(copies.pinned, "empty", lambda shape, dtype: np.zeros(shape, dtype))
    values = np.random.default_rng(size).normal(size=size)
    copies.put((16, values[: size // 3]), (16 + 8 * (size // 3), values[size // 3 :]))
    assert not driver.queue
    assert driver.memory[16:].tobytes() == values.tobytes()
    back = np.zeros(size)
    copies.get(back, 16)
    assert back.tobytes() == values.tobytes()
    assert driver.most <= copies.PIECES
