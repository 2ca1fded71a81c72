#!/usr/bin/env python3
"""What a link of tests/links/hosts lets through, in Gbit/s: run as each rank of it.

    tests/links/hosts 2 1gbit tests/links/goodput.py stop

Every rank sends 16 MiB to each of the others in turn, until rank 0 has seen --enough Gbit/s, or
--seconds are over, and makes the file STOP for the others to see, or all have done so --times.
Rank 0 prints its best. A machine that is busy for seconds slows most of its transfers, but not all.
Of Ethernet frames of 1514 bytes 1448 are payload: 0.956 of the rate is all there is.

A rank that dies, or 16 MiB that take more than a minute (below 3 Mbit/s), end the others with a
line that says so.
"""
import argparse
import math
import os
import socket
import sys
import time

PORT = 7000
SIZE = 16 << 20  # bytes
MOST_SECONDS = 60  # for one transfer; less than hosts gives the others when a rank fails


def receive(server):
    with server.accept()[0] as peer:
        peer.settimeout(MOST_SECONDS)
        left, buffer = SIZE, bytearray(1 << 20)
        while left:
            received = peer.recv_into(buffer, min(left, len(buffer)))
            if not received:
                sys.exit(f'goodput: {left} of {SIZE} bytes did not come')
            left -= received
        peer.sendall(b'.')


def send(to, data):
    """Seconds until all of it had arrived."""
    for _ in range(200):
        try:
            peer = socket.create_connection((f'10.77.0.{to + 1}', PORT), timeout=MOST_SECONDS)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    else:
        sys.exit(f'goodput: rank {to} does not listen')
    with peer:
        start = time.perf_counter()
        peer.sendall(data)
        if peer.recv(1) != b'.':
            sys.exit(f'goodput: rank {to} ended before everything had arrived')
        return time.perf_counter() - start


def best_of(arguments, rank, ranks):
    """Gbit/s of this rank's fastest transfer."""
    data, best, end = bytes(SIZE), 0.0, time.perf_counter() + arguments.seconds
    with socket.create_server(('', PORT)) as server:
        server.settimeout(MOST_SECONDS)
        for _ in range(arguments.times):
            if os.path.exists(arguments.stop):
                break
            for source in range(ranks):
                for target in range(ranks):
                    if rank == source != target:
                        best = max(best, 8 * SIZE / send(target, data) / 1e9)
                    elif rank == target != source:
                        receive(server)
                # Before the others send to it, and so before any of them asks again.
                if rank == source == 0 and (best >= arguments.enough or time.perf_counter() >= end):
                    open(arguments.stop, 'w').close()
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('stop', help='a file that is not there')
    parser.add_argument('--times', type=int, default=100)
    parser.add_argument('--enough', type=float, default=math.inf, help='Gbit/s')
    parser.add_argument('--seconds', type=float, default=math.inf)
    arguments = parser.parse_args()
    if 'RANK' not in os.environ or 'WORLD_SIZE' not in os.environ:
        parser.error('no rank: run it under tests/links/hosts')
    rank = int(os.environ['RANK'])
    try:
        best = best_of(arguments, rank, int(os.environ['WORLD_SIZE']))
    except OSError as error:
        sys.exit(f'goodput: rank {rank}: {error}')
    if rank == 0:
        print(best)


if __name__ == '__main__':
    main()
