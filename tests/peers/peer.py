#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program that knows nothing of dmaheap: ioctls through fcntl, as scripts do.

Run it under dmaheap-run. Exit status 0 when every step worked.
"""
import fcntl
import mmap
import os
import socket
import struct

ALLOC = 0xC0184800
SYNC = 0x40086200
SET_NAME_B = 0x40086201
LAYOUT = "=QIIQ"


def alloc(heap, size):
    arg = bytearray(struct.pack(LAYOUT, size, 0, os.O_RDWR | os.O_CLOEXEC, 0))
    fcntl.ioctl(heap, ALLOC, arg)
    return struct.unpack(LAYOUT, arg)[1]


def sync(fd, flags):
    fcntl.ioctl(fd, SYNC, struct.pack("=Q", flags))


def main():
    names = sorted(os.listdir("/dev/dma_heap"))
    assert "system" in names, names
    heap = os.open("/dev/dma_heap/system", os.O_RDONLY | os.O_CLOEXEC)
    for size in (1, 4096, 65536, 10 << 20):
        fd = alloc(heap, size)
        rounded = (size + 4095) & ~4095
        assert os.lseek(fd, 0, os.SEEK_END) == rounded
        with mmap.mmap(fd, rounded) as view:
            assert view[:] == bytes(rounded)
            sync(fd, 2 | 0)
            view[:5] = b"hello"
            sync(fd, 2 | 4)
        os.close(fd)

    fd = alloc(heap, 1 << 20)
    fcntl.ioctl(fd, SET_NAME_B, b"from python\0")
    assert os.readlink(f"/proc/self/fd/{fd}") == "/dmabuf:from python"

    # The same buffer in another process, through a socket.
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        _, fds, _, _ = socket.recv_fds(theirs, 1, 1)
        with mmap.mmap(fds[0], 1 << 20) as view:
            view[100:105] = b"child"
        os._exit(0)
    socket.send_fds(ours, [b"x"], [fd])
    assert os.waitpid(child, 0)[1] == 0
    with mmap.mmap(fd, 1 << 20) as view:
        assert view[100:105] == b"child"
    try:
        fcntl.ioctl(fd, SYNC, struct.pack("=Q", 8))
        raise AssertionError("sync with bad flags worked")
    except OSError as error:
        assert error.errno == 22, error
    os.close(fd)
    print(f"peer.py: ok, heaps {' '.join(names)}")


main()
