"""Clients of a server that predict one row after the other: a script that imports nothing of ours.

    python _load_client.py PORT SECONDS CONNECTIONS < rows.json

Standard input is a JSON list of rows. Prints {"num_answers": ..., "p50_ms": ..., "p99_ms": ...}.
"""

import asyncio
import json
import sys
import time


async def client(port: int, bodies: list[bytes], until: float, times: list[float]) -> None:
    """Send requests over one connection, each after the answer to the one before."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    number = 0
    while time.perf_counter() < until:
        clock = time.perf_counter()
        writer.write(bodies[number % len(bodies)])
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        length = head.lower().split(b"content-length:")[1].split(b"\r\n")[0]
        await reader.readexactly(int(length))
        times.append(time.perf_counter() - clock)
        number += 1
    writer.close()


async def main(port: int, seconds: float, connections: int, rows: list[list[float]]) -> None:
    """Run all connections, and print their latencies."""
    bodies = [_request({"rows": [row]}) for row in rows]
    times: list[float] = []
    until = time.perf_counter() + seconds
    await asyncio.gather(*(client(port, bodies, until, times) for _ in range(connections)))
    times.sort()
    p50, p99 = (1e3 * times[int(len(times) * share)] for share in (0.5, 0.99))
    json.dump({"num_answers": len(times), "p50_ms": p50, "p99_ms": p99}, sys.stdout)


def _request(content: object) -> bytes:
    body = json.dumps(content).encode()
    head = "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


if __name__ == "__main__":
    given = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    asyncio.run(main(*given, json.load(sys.stdin)))
