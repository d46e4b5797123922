"""A real Ray cluster on loopback, each node a set of processes of this machine. Obeys lines on its standard input.

    add NAME      start a node that may measure      →  the line `done`
    remove NAME   kill its processes                 →  the line `done`

The first line that it prints is its address, the second one that of its server for `ray://`. It ends all nodes at the
end of its input, and so with whoever started it.
"""

from __future__ import annotations

import os
import random
import socket
import sys
from contextlib import suppress

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

from ray.cluster_utils import Cluster

LOOPBACK = "127.0.0.1"
PORTS = range(20_000, 30_000)
"""For the server. Ray keeps the ports from 10002 to 19999 for workers, and refuses a server there."""
COMMON = {"num_cpus": 0, "node_ip_address": LOOPBACK, "object_store_memory": 80 << 20}


def free_port() -> int:
    """A port that nobody has. It is below those that the kernel gives away while the cluster's processes start."""
    for port in random.sample(PORTS, len(PORTS)):
        with suppress(OSError), socket.create_server((LOOPBACK, port)):
            return port
    raise OSError("no port is free")


def main() -> None:
    client_port = free_port()
    head = {**COMMON, "node_name": "head", "ray_client_server_port": client_port, "include_dashboard": False}
    head |= {"min_worker_port": 0, "max_worker_port": 0}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = {}
    try:
        print(cluster.address, flush=True)
        print(f"ray://{LOOPBACK}:{client_port}", flush=True)
        for line in sys.stdin:
            command, name = line.split()
            if command == "add":
                resources = {"measure": 1, f"only_{name}": 1}
                nodes[name] = cluster.add_node(**COMMON, node_name=name, resources=resources)
            else:
                cluster.remove_node(nodes.pop(name), allow_graceful=False)
            print("done", flush=True)
    finally:
        with suppress(Exception):
            cluster.shutdown()


if __name__ == "__main__":
    main()
