"""Memory that gradients are put into: whether the C library keeps it from one step to the next.

A step drops its gradients, and the next one takes memory for them again. glibc gives the free end
of its heap back to the system once it is larger than twice the largest block that was ever freed
(mallopt(3), M_TRIM_THRESHOLD). Of a network whose gradients are small and many (40 of 1.4 MB), that
is most of them: each step's backward then writes to pages that the system has to fetch and clear
first, one fault for each 4 KiB, which made it half as long again or more. Where anything else lies
at the end of the heap, an optimizer's state or a second copy of the network, nothing is given back.
So the same network had both lengths, from one process to another and from step to step.
"""
import ctypes
import resource

MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1  # mallopt's, in malloc.h
LARGEST_KEPT = 32 << 20  # bytes: larger blocks always come from the system (mallopt(3))
PAGE = resource.getpagesize()


def mallopt(option, value):
    """Whether the C library took it."""
    try:
        return ctypes.CDLL(None).mallopt(option, value) == 1
    except (OSError, AttributeError):  # not glibc
        return False


def keep():
    """From now on freed memory stays with this process."""
    return mallopt(MMAP_THRESHOLD, LARGEST_KEPT) and mallopt(TRIM_THRESHOLD, -1)


def faults():
    """Pages that this process had to wait for so far, without reading them from a disk."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
