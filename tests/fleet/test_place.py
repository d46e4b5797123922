"""What `--on` and `--machine-class` may say, and what is told where nothing is there. No cluster is needed."""

from __future__ import annotations

import os
import socket
import sys
import threading
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest
from harness_command import run_command
from ray_nodes import CASE
from waiting import PATIENCE_S

from rnnbench.cases import load_case
from rnnbench.fleet import FleetError, Place, cluster, require_cluster
from rnnbench.optional import MissingExtraError
from rnnbench.plan import begin_run, parse_targets, resume_run
from rnnbench.results import Store


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tiny.yaml").write_text(CASE)
    return tmp_path


@pytest.fixture
def free_port():
    """A port at which nothing listens: it is held, so that nobody else can begin to."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""The first frame of a server of gRPC."""


class Server:
    """A server that sends the same answer to each client, and closes the connection, until it is closed itself."""

    def __init__(self, answer):
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, args=(answer,), daemon=True).start()

    def _serve(self, answer):
        with suppress(OSError):
            while True:
                with self._socket.accept()[0] as connection:
                    connection.sendall(answer)

    def close(self):
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # This wakes the thread.
        self._socket.close()


@contextmanager
def serving(answer):
    server = Server(answer)
    try:
        yield server
    finally:
        server.close()


class RpcError(Exception):
    """As gRPC has one: it is no RuntimeError."""


def use_ray(monkeypatch, **calls):
    """A Ray that answers these calls as they say, and gRPC with it."""
    exceptions = SimpleNamespace(RayError=RuntimeError)
    ray = SimpleNamespace(
        shutdown=lambda: None, remote=lambda _: None, exceptions=exceptions, RpcError=RpcError, **calls
    )
    monkeypatch.setattr(cluster, "require", lambda *_: ray)
    return ray


@pytest.fixture
def no_cluster(monkeypatch):
    """A Ray that finds no cluster on this machine."""

    def find_nothing(**_):
        raise ConnectionError("Could not find any running Ray instance. Please set `--address`")

    use_ray(monkeypatch, init=find_nothing)


@pytest.mark.parametrize("address", ["", "nonsense", "http://127.0.0.1:6379", "127.0.0.1:99999", "a b:1", "host:"])
def test_what_is_no_address_is_refused(address):
    pytest.importorskip("ray", reason="the extra `fleet` is not installed")
    with pytest.raises(FleetError, match=r"expected ray, HOST:PORT or ray://HOST:PORT"):
        require_cluster(Place(address))


def test_a_host_that_cannot_be_one_is_told():
    pytest.importorskip("ray", reason="the extra `fleet` is not installed")
    with pytest.raises(FleetError, match=r"--on a\.\.b:80: no cluster is there: "):
        require_cluster(Place("a..b:80"))


def test_where_nobody_listens_no_run_is_begun(folder, free_port):
    pytest.importorskip("ray", reason="the extra `fleet` is not installed")
    for address in (f"127.0.0.1:{free_port}", f"ray://127.0.0.1:{free_port}"):
        error = run_command(folder, "run", "tiny.yaml", "--backend=fake:honest", "--on", address, status=2).stderr
        assert f"--on {address}: no cluster is there: Connection refused" in error
    assert not (folder / "results").exists()


def test_what_accepts_a_connection_and_says_nothing_is_no_cluster(monkeypatch):
    """As the head does whose process was stopped."""
    monkeypatch.setattr(cluster, "ANSWER_LIMIT_S", 0.2)
    use_ray(monkeypatch, init=lambda **_: pytest.fail("Ray would wait for ever"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        told = pytest.raises(
            FleetError, match=f"--on {address}: no cluster is there: it accepts a connection, and sends n"
        )
        with told, cluster.join(Place(address)):
            pass


def test_a_web_server_is_no_cluster(monkeypatch):
    use_ray(monkeypatch)
    with (
        serving(b"HTTP/1.1 400 Bad Request\r\n\r\n") as server,
        pytest.raises(FleetError, match="no cluster is there: a web server, such as Ray's dashboard"),
    ):
        require_cluster(Place(server.address))


@pytest.mark.parametrize("answer", [SETTINGS, b"\x15\x03\x03", b""], ids=["gRPC", "TLS", "closed"])
def test_what_may_be_a_service_of_ray_is_left_to_ray(monkeypatch, answer):
    use_ray(monkeypatch)
    with serving(answer) as server:
        require_cluster(Place(server.address))


def test_a_cluster_that_never_lets_this_machine_join_is_told(monkeypatch):
    monkeypatch.setattr(cluster, "JOIN_LIMIT_S", 0.1)
    never = threading.Event()
    use_ray(monkeypatch, init=lambda **_: never.wait(PATIENCE_S))
    told = pytest.raises(
        FleetError, match=r"^--on ray: the cluster has not answered within 0\.1 s; see whether its head"
    )
    with told, cluster.join(Place("ray")):
        pass
    never.set()


def test_a_machine_in_no_cluster_is_told_how_to_make_one(no_cluster):
    told = pytest.raises(
        FleetError, match=r"^--on ray: this machine is in no cluster; start one with `ray start --head`"
    )
    with told, cluster.join(Place("ray")):
        pass


def test_a_run_without_a_cluster_leaves_no_folder_but_one_that_was_there(folder, no_cluster):
    for command in ("run", "check"):
        error = run_command(folder, command, "tiny.yaml", "--backend=fake:honest", "--on", "ray", status=2).stderr
        assert "this machine is in no cluster" in error
        assert "finished trial" not in error
        assert not list((folder / "results").iterdir())

    trials = load_case(folder / "tiny.yaml").trials(parse_targets(["fake:honest"]))
    begun = begin_run(trials, Store(folder / "results")).folder
    error = run_command(folder, "run", "--resume", "latest", "--on", "ray", status=2).stderr
    assert f"results/{begun.name} has 0 finished trials. To continue: " in error
    assert len(resume_run(begun).trials) == len(trials)


def test_a_head_that_has_gone_away_is_told_before_ray_is_asked(free_port, monkeypatch):
    """Ray waits for it for a minute, and then ends the process."""
    monkeypatch.setattr(cluster, "LOST_LOOK_S", 0.3)
    ray = use_ray(monkeypatch, nodes=lambda: pytest.fail("Ray was asked"))
    joined = cluster.Cluster(ray, Place("ray"), f"127.0.0.1:{free_port}")
    told = rf"^--on ray: the cluster has gone away: its head at 127\.0\.0\.1:{free_port} does not answer \(Connection"
    with pytest.raises(FleetError, match=told):
        joined.offering()


@pytest.mark.parametrize("call", ["offering", "start"])
def test_a_call_that_waits_for_a_head_that_goes_away_is_left(call, monkeypatch):
    monkeypatch.setattr(cluster, "LOST_LOOK_S", 0.1)
    monkeypatch.setattr(cluster, "HEAD_LOOK_S", 0.1)
    never = threading.Event()
    with serving(SETTINGS) as head:

        def go_away():
            head.close()
            never.wait(PATIENCE_S)

        ray = use_ray(monkeypatch, nodes=go_away)
        ray.remote = lambda _: SimpleNamespace(options=lambda **_: SimpleNamespace(remote=go_away))
        joined = cluster.Cluster(ray, Place("ray"), head.address)
        arguments = {"offering": (), "start": (b"work",)}[call]
        with pytest.raises(FleetError, match=r"^--on ray: the cluster has gone away"):
            getattr(joined, call)(*arguments)
    never.set()


def test_a_head_that_answers_no_more_holds_up_no_end(monkeypatch):
    """Neither a kill of a task nor leaving the cluster returns then."""
    monkeypatch.setattr(cluster, "END_LIMIT_S", 0.1)
    never = threading.Event()
    ray = use_ray(monkeypatch, init=lambda **_: None, kill=lambda *_, **__: never.wait(PATIENCE_S))
    monkeypatch.setattr(ray, "shutdown", lambda: never.wait(PATIENCE_S))
    with serving(SETTINGS) as head, cluster.join(Place(f"ray://{head.address}")) as joined:
        joined.end("task")
    never.set()


def test_a_connection_that_breaks_is_told(monkeypatch):
    def break_off():
        raise RpcError("Stream removed\n(Socket closed)")

    with serving(SETTINGS) as server:
        address = f"ray://{server.address}"
        use_ray(monkeypatch, init=lambda **_: None, nodes=break_off)
        told = rf"^--on {address}: cannot use the cluster: Stream removed \(Socket closed\)"
        with pytest.raises(FleetError, match=told), cluster.join(Place(address)) as joined:
            joined.offering()


def test_ray_joins_no_other_cluster_once_the_connection_is_lost(monkeypatch):
    pytest.importorskip("ray", reason="the extra `fleet` is not installed")
    monkeypatch.delenv("RAY_ENABLE_AUTO_CONNECT", raising=False)
    require_cluster(Place("ray"))
    assert os.environ["RAY_ENABLE_AUTO_CONNECT"] == "0"


@pytest.mark.parametrize("name", ["CPU", "measure", "1epyc", "a b", "--on"])
def test_a_machine_class_is_a_resource_of_the_users_own(name):
    with pytest.raises(FleetError, match=f"--machine-class {name}: expected the name of a resource of your own"):
        require_cluster(Place("ray", name))


def test_resources_are_listed_as_json():
    assert Place("ray", "epyc").listed == '"measure": 1, "epyc": 1'


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"--on ray needs ray, .* pip install 'rnnbench\[fleet\]'"):
        require_cluster(Place("ray"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["run", "--machine-class", "epyc"], "give the cluster with --on"),
        (["check", "--machine-class", "epyc"], "give the cluster with --on"),
    ],
)
def test_a_machine_class_needs_a_cluster(folder, options, words):
    command, *rest = options
    assert words in run_command(folder, command, "tiny.yaml", *rest, status=2).stderr


def test_a_cluster_at_an_ipv6_address_is_looked_for_without_the_brackets(monkeypatch):
    asked = []

    def connect(address, timeout):
        asked.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(cluster, "require", lambda *_: None)
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(FleetError, match="no cluster is there"):
        require_cluster(Place("ray://[::1]:10001"))
    assert asked == [("::1", 10001)]


SERVED = Place("ray://127.0.0.1:10001")


def joining(monkeypatch, failures):
    """A Ray whose side of the cluster fails to start that often, and what it was asked."""
    asked = []

    def init(**_):
        asked.append("init")
        if asked.count("init") <= failures:
            raise ConnectionAbortedError("no side")

    monkeypatch.setattr(cluster, "_require_listener", lambda place: None)
    ray = use_ray(monkeypatch, init=init)
    ray.shutdown = lambda: asked.append("shutdown")
    return asked


def test_a_cluster_that_fails_to_start_its_side_is_asked_again_and_left_at_the_end(monkeypatch):
    asked = joining(monkeypatch, cluster.JOIN_TRIES - 1)
    with cluster.join(SERVED):
        assert asked == ["init", "shutdown"] * (cluster.JOIN_TRIES - 1) + ["init"]
    assert asked[-2:] == ["init", "shutdown"], "it is left"


def test_a_cluster_that_never_starts_its_side_is_told(monkeypatch):
    asked = joining(monkeypatch, cluster.JOIN_TRIES)
    with pytest.raises(FleetError, match="no side"), cluster.join(SERVED):
        pass
    assert asked.count("init") == cluster.JOIN_TRIES


def test_ray_joins_in_a_thread_in_which_it_can_take_no_signal_for_itself(monkeypatch):
    """It would take SIGTERM in the main thread, and let no Ctrl-C through while it waits."""
    threads = []
    use_ray(monkeypatch, init=lambda **_: threads.append(threading.current_thread()))
    monkeypatch.setattr(cluster, "_require_listener", lambda place: None)
    with cluster.join(SERVED):
        assert threads not in ([], [threading.main_thread()])
