"""All calls of Ray: joining a cluster, its nodes, tasks on them. Errors are sentences of `FleetError`."""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rnnbench.abandoned_calls import in_a_thread
from rnnbench.fleet.group_task import GroupTask
from rnnbench.optional import require
from rnnbench.outside_text import safe_text
from rnnbench.spelling import count

MEASURE = "measure"
"""The resource that a node offers once. A task takes it, so that only one task at a time measures on a node."""
CONNECT_LIMIT_S = 5.0
ANSWER_LIMIT_S = 20.0
"""Seconds in which a head that accepts a connection must send something. The kernel accepts for a stopped process."""
JOIN_LIMIT_S = 120.0
"""Seconds of one attempt to join. Ray itself asks a head that does not answer for ever."""
END_LIMIT_S = 10.0
"""Seconds in which a task must have been killed, or the cluster left. Without its head, Ray may return from neither."""
HEAD_LOOK_S = 1.0
"""Seconds between two checks that the head answers, while a call of Ray runs."""
LOST_LOOK_S = 3.0
"""Seconds in which a head that does not answer, or a node, is looked for before it counts as lost."""
JOIN_TRIES = 3
"""Attempts to join. A cluster starts a process for each client, and this start may fail by chance."""
_ADDRESS = re.compile(r"(?:ray://)?(?P<host>[^\s/:]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})")
_CLASS = re.compile(r"[A-Za-z_][\w.-]*")
_HTTP_2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""The beginning of every connection of gRPC: the preface of HTTP/2 and empty settings (RFC 9113, 3.4)."""
_HOW_TO_START = "start one with `ray start --head`, and nodes with `ray start --address=HOST:PORT` (docs/fleet.md)"
_NOT_A_CLASS = (MEASURE, "CPU", "GPU", "memory", "object_store_memory")


class FleetError(Exception):
    """A cluster or a node cannot be used. The message says which, why, and what to do."""


@dataclass(frozen=True)
class Place:
    """Where trials run: a cluster, and which of its nodes."""

    address: str
    """`ray` for the cluster that this machine is in, `HOST:PORT`, or `ray://HOST:PORT`."""
    machine_class: str = ""
    """The resource that its nodes offer; empty for any node."""

    @property
    def resources(self) -> dict[str, float]:
        """The resources that a task takes on its node."""
        return {MEASURE: 1, **({self.machine_class: 1} if self.machine_class else {})}

    def require_class(self) -> None:
        """Raise FleetError if the machine class cannot be the name of a user's resource."""
        name = self.machine_class
        if name and (not _CLASS.fullmatch(name) or name in _NOT_A_CLASS):
            raise FleetError(f"--machine-class {name}: expected the name of a resource of your own, such as epyc")

    @property
    def listed(self) -> str:
        """The resources, for people and as JSON."""
        return ", ".join(f'"{name}": {amount:g}' for name, amount in self.resources.items())


@dataclass(frozen=True)
class Node:
    """A node of the cluster, as Ray describes it."""

    id: str
    name: str
    is_alive: bool
    resources: Mapping[str, float]

    def offers(self, resources: Mapping[str, float]) -> bool:
        return self.is_alive and all(self.resources.get(name, 0) >= amount for name, amount in resources.items())


class Cluster:
    """A Ray cluster that this process has joined."""

    def __init__(self, ray: Any, place: Place, head: str) -> None:
        self._ray = ray
        self._place = place
        self._head = head
        """The HOST:PORT of the head's service, or of its server for clients."""
        self._task = ray.remote(GroupTask)

    def nodes(self) -> list[Node]:
        """All nodes, lost ones included. Nodes with the same name get a part of their id in the name.

        Raises FleetError if the head does not answer.
        """
        nodes = self._ask_head(self._ray.nodes)
        names = Counter(node["NodeName"] for node in nodes if node["Alive"])
        return [
            Node(node["NodeID"], _name(node, is_shared=names[node["NodeName"]] > 1), node["Alive"], node["Resources"])
            for node in nodes
        ]

    def offering(self) -> list[Node]:
        """The nodes that can take a task. Raises FleetError if one of them would measure two at once."""
        usable = [node for node in self.nodes() if node.offers(self._place.resources)]
        for node in usable:
            if node.resources[MEASURE] > 1:
                raise FleetError(
                    f"node {node.name} offers {MEASURE}: {node.resources[MEASURE]:g}, and trials that are measured at "
                    f"once disturb each other; start it with --resources='{{\"{MEASURE}\": 1}}'"
                )
        return usable

    def node(self, node_id: str) -> Node | None:
        return next((node for node in self.nodes() if node.id == node_id), None)

    def _ask_head(self, call: Callable[[], Any]) -> Any:
        """Make a call of Ray that needs the head. Raises FleetError if the head does not answer.

        Without its head, Ray waits for a minute and then ends this process without a message of the suite. So the call
        is abandoned in this case.
        """
        self._require_head()
        answer = in_a_thread(call)
        while not wait([answer], HEAD_LOOK_S).done:
            self._require_head()
        return answer.result()

    def _require_head(self) -> None:
        until = time.monotonic() + LOST_LOOK_S
        while reason := _refusal(*self._head.rsplit(":", 1)):
            if time.monotonic() > until:
                raise FleetError(
                    f"--on {self._place.address}: the cluster has gone away: its head at {self._head} does not answer "
                    f"({reason}); start it and its nodes again"
                )
            time.sleep(0.2)

    def start(self, work: bytes) -> tuple[Any, Any]:
        """Start a task on the next free node. Returns it, and the reference of its first reply (`begin`).

        Raises FleetError if the head does not answer.
        """
        task = self._ask_head(self._task.options(num_cpus=0, resources=self._place.resources, max_restarts=0).remote)
        return task, task.begin.remote(work)

    def ready(self, replies: Sequence[Any], timeout_s: float) -> list[Any]:
        """The references of replies that have come, and of those that will never come."""
        ready, _ = self._ray.wait(list(replies), num_returns=1, timeout=timeout_s)
        return list(ready)

    def get(self, reply: Any) -> Any:
        """The reply of a reference. Raises Ray's exception if the task or its node is gone: see `cause`."""
        return self._ray.get(reply)

    def cause(self, error: Exception, node: Node | None) -> str:
        """Why there is no reply. Raises FleetError if the reason holds for all nodes."""
        text = str(error)
        if "No module named 'rnnbench" in text:
            raise FleetError(
                f"a node of {self._place.address} has no rnnbench, or an older one; install this one on every node"
            ) from error
        if "node has died" in text or (node is not None and self._is_lost(node)):
            return f"node {node.name} was lost" if node is not None else "its node was lost"
        where = f" on node {node.name}" if node is not None else ""
        if isinstance(error, self._ray.exceptions.RayActorError):
            memory = ", by Ray: the node's memory was full" if "OutOfMemory" in text else ""
            return f"the task{where} was killed{memory}"
        lines = [line for line in text.splitlines() if line.strip()]
        return safe_text(f"the task{where} failed: {' '.join(lines[-1:])}")

    def _is_lost(self, node: Node) -> bool:
        """Whether a node is lost. Looks for some seconds, since Ray may report a task's end before its node's."""
        until = time.monotonic() + LOST_LOOK_S
        while True:
            now = self.node(node.id)
            if now is None or not now.is_alive:
                return True
            if time.monotonic() > until:
                return False
            time.sleep(0.2)

    def end(self, task: Any) -> None:
        """Kill a task. The processes that it has started end with it, and its resources become free."""
        wait([in_a_thread(lambda: self._ray.kill(task, no_restart=True))], END_LIMIT_S)

    def missing(self) -> str:
        """A sentence about the resources that no node offers, those that nodes offer, and how to start a node."""
        alive = [node for node in self.nodes() if node.is_alive]
        offers = "; ".join(f"{node.name}: {_own_resources(node)}" for node in alive)
        return (
            f"no node of the cluster {self._place.address} offers {self._place.listed}. "
            f"It has {count(len(alive), 'node')} ({offers or 'no resources'}). Start a node with: "
            f"ray start --address=HOST:PORT --num-cpus=0 --resources='{{{self._place.listed}}}'"
        )


@contextmanager
def join(place: Place) -> Iterator[Cluster]:
    """Join the cluster, and leave it at the end. Raises FleetError, and MissingExtraError if Ray is not installed."""
    ray = require_cluster(place)
    try:
        _initialise(ray, place)
        client = place.address.removeprefix("ray://")
        yield Cluster(ray, place, client if client != place.address else ray.get_runtime_context().gcs_address)
    except _refusals(ray, place) as error:
        if place.address == "ray" and isinstance(error, ConnectionError):
            raise FleetError(f"--on ray: this machine is in no cluster; {_HOW_TO_START}") from error
        lines = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
        raise FleetError(f"--on {place.address}: cannot use the cluster: {safe_text(lines, 600)}") from error
    finally:
        wait([in_a_thread(ray.shutdown)], END_LIMIT_S)


def _initialise(ray: Any, place: Place) -> None:
    """Connect to the cluster, with JOIN_TRIES attempts. Raises Ray's exceptions, and FleetError if none comes.

    Ray takes SIGTERM for itself in the main thread, and lets no signal through while it waits. So it has another one.
    """
    address = "auto" if place.address == "ray" else place.address
    options = {"address": address, "log_to_driver": False, "logging_level": logging.CRITICAL}
    for tries_left in reversed(range(JOIN_TRIES)):
        joined = in_a_thread(lambda: ray.init(**options))
        if not wait([joined], JOIN_LIMIT_S).done:
            raise FleetError(
                f"--on {place.address}: the cluster has not answered within {JOIN_LIMIT_S:g} s; see whether its head "
                f"runs, and whether this is the port of the head (6379) or, with ray://, of its clients (10001)"
            )
        try:
            joined.result()
        except ConnectionAbortedError:
            ray.shutdown()
            if not tries_left:
                raise
        else:
            return


def _refusals(ray: Any, place: Place) -> tuple[type[Exception], ...]:
    """The exceptions of Ray if there is no cluster, if it has other versions, and if it is lost."""
    rpc = require("grpc", "fleet", f"--on {place.address}")  # Ray's client passes on some errors of gRPC.
    return (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError, rpc.RpcError)


def require_cluster(place: Place) -> Any:
    """Import Ray, and check that something listens at the place's address. Ray itself would wait long.

    Raises FleetError, also for an impossible machine class, and MissingExtraError.
    """
    place.require_class()
    # Ray reads both variables when it is imported. Without the first, it prints the log of a lost node. Without the
    # second, a call after a lost connection would join any cluster of this machine, or start one.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "(?s).*")
    os.environ["RAY_ENABLE_AUTO_CONNECT"] = "0"
    ray = require("ray", "fleet", f"--on {place.address}")
    if place.address != "ray":
        _require_listener(place)
    return ray


def _require_listener(place: Place) -> None:
    match = _ADDRESS.fullmatch(place.address)
    if match is None or int(match["port"]) > 65535:
        raise FleetError(f"--on {place.address}: expected ray, HOST:PORT or ray://HOST:PORT")
    if reason := _refusal(match["host"], match["port"]):
        raise FleetError(f"--on {place.address}: no cluster is there: {reason}; {_HOW_TO_START}")


def _refusal(host: str, port: str) -> str:
    """Why no service of Ray answers at this address; empty if one does, or what closes the connection, as with TLS."""
    try:
        with socket.create_connection((host.strip("[]"), int(port)), CONNECT_LIMIT_S) as connection:
            return _no_service(connection)
    except (OSError, UnicodeError) as error:  # Encoding an impossible host name raises UnicodeError.
        message = str(error.strerror if isinstance(error, OSError) and error.strerror else error)
        return message or type(error).__name__


def _no_service(connection: socket.socket) -> str:
    """Why what accepted a connection is no service of Ray; empty if it may be one."""
    connection.settimeout(ANSWER_LIMIT_S)
    answer = b""
    try:
        connection.sendall(_HTTP_2)
        answer = connection.recv(len(b"HTTP/"))
    except TimeoutError:
        return f"it accepts a connection, and sends nothing within {ANSWER_LIMIT_S:g} s"
    except OSError:  # It is there.
        pass
    if answer == b"HTTP/":
        return "a web server, such as Ray's dashboard; the head has port 6379, and its server for ray:// has 10001"
    return ""


def _name(node: Mapping[str, Any], *, is_shared: bool) -> str:
    name = safe_text(str(node["NodeName"]), 100)
    return f"{name}-{node['NodeID'][:6]}" if is_shared else name


def _own_resources(node: Node) -> str:
    """A node's resources, without those that Ray gives every node."""
    of_ray = ("node:", "memory", "object_store_memory", "accelerator_type:")
    kept = {name: amount for name, amount in node.resources.items() if not name.startswith(of_ray)}
    return safe_text(", ".join(f'"{name}": {amount:g}' for name, amount in sorted(kept.items())) or "none", 300)
