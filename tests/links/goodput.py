#!/usr/bin/env python3
"""What a link of tests/links/hosts lets through, in Gbit/s: run as a rank of it.

    tests/links/hosts 2 1gbit tests/links/goodput.py TIMES [ENOUGH STOP]

Every rank sends 16 MiB to each of the others in turn, so many times, or until rank 0 has seen ENOUGH Gbit/s and made the
file STOP for the others to see. Rank 0 prints its best. A machine that is busy for seconds slows most of its transfers,
but not all. Of Ethernet frames of 1514 bytes 1448 are payload: 0.956 of the rate is all there is.
"""
import math
import os
import socket
import sys
import time

PORT = 7000
SIZE = 16 << 20  # bytes
MOST_SECONDS = 60  # for one piece to arrive: a rank that died does not hold up the others

rank, ranks = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])


def receive(server):
    with server.accept()[0] as peer:
        peer.settimeout(MOST_SECONDS)
        left, buffer = SIZE, bytearray(1 << 20)
        while left:
            received = peer.recv_into(buffer, min(left, len(buffer)))
            if not received:
                sys.exit(f'goodput: {left} bytes of {SIZE} did not come')
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
        peer.recv(1)
        return time.perf_counter() - start


def main():
    times, enough, stop = int(sys.argv[1]), *((float(sys.argv[2]), sys.argv[3]) if len(sys.argv) > 2 else (math.inf, ''))
    data, best = bytes(SIZE), 0.0
    with socket.create_server(('', PORT)) as server:
        server.settimeout(MOST_SECONDS)
        for _ in range(times):
            if os.path.exists(stop):
                break
            for source in range(ranks):
                for target in range(ranks):
                    if rank == source != target:
                        best = max(best, 8 * SIZE / send(target, data) / 1e9)
                    elif rank == target != source:
                        receive(server)
                # Before the others send to it, and so before any of them asks again.
                if rank == source == 0 and best >= enough:
                    open(stop, 'w').close()
    if rank == 0:
        print(best)


if __name__ == '__main__':
    main()
