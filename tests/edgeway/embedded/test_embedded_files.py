"""Pure parts: configuration text, ports, Java versions, metadata bytes."""

import random
import socket
import struct
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeway.embedded import BrokerSettings, EmbeddedKafkaError
from edgeway.embedded.java import find_java, major_version
from edgeway.embedded.metadata import brokers, request
from edgeway.embedded.ports import choose_nodes, is_free
from edgeway.embedded.properties import Node, java_command, render, server_properties
from edgeway.embedded.resolve import binding, broken, without_secrets
from edgeway.embedded.storage import SWEEP_AGE, TEMPORARY, DataFolder, kafka_uuid, sweep

NODES = [Node(1, 19001, 19011), Node(2, 19002, 19012), Node(3, 19003, 19013)]


def test_one_broker_replicates_nothing() -> None:
    lines = server_properties(NODES[0], NODES[:1], "/d", BrokerSettings())
    assert lines["offsets.topic.replication.factor"] == lines["default.replication.factor"] == "1"
    assert lines["min.insync.replicas"] == lines["transaction.state.log.min.isr"] == "1"
    assert lines["auto.create.topics.enable"] == "false"
    assert lines["log.message.timestamp.type"] == "LogAppendTime"


def test_three_brokers_replicate_everything_and_name_each_other() -> None:
    lines = server_properties(NODES[1], NODES, "/d", BrokerSettings(brokers=3))
    assert lines["node.id"] == "2"
    assert lines["controller.quorum.voters"] == "1@127.0.0.1:19011,2@127.0.0.1:19012,3@127.0.0.1:19013"
    assert lines["listeners"] == "PLAINTEXT://127.0.0.1:19002,CONTROLLER://127.0.0.1:19012"
    factors = [value for key, value in lines.items() if key.endswith("replication.factor")]
    assert factors == ["3"] * 4
    assert lines["min.insync.replicas"] == "2"


def test_own_properties_win() -> None:
    settings = BrokerSettings(properties={"num.io.threads": "2", "message.max.bytes": "5"})
    lines = server_properties(NODES[0], NODES[:1], "/d", settings)
    assert (lines["num.io.threads"], lines["message.max.bytes"]) == ("2", "5")


def test_further_listeners_stand_beside_the_plain_one() -> None:
    settings = BrokerSettings(listeners={"SAFE": ("SASL_SSL", 19021)})
    lines = server_properties(NODES[0], NODES[:1], "/d", settings)
    assert lines["advertised.listeners"] == "PLAINTEXT://127.0.0.1:19001,SAFE://127.0.0.1:19021"
    assert lines["listeners"] == f"{lines['advertised.listeners']},CONTROLLER://127.0.0.1:19011"
    assert lines["listener.security.protocol.map"] == "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SAFE:SASL_SSL"
    with pytest.raises(EmbeddedKafkaError, match="single"):
        BrokerSettings(brokers=3, listeners={"SAFE": ("SSL", 19021)})


def test_values_are_escaped() -> None:
    assert render({"a": "C:\\x", "b": "1\n2"}) == "a=C:\\\\x\nb=1\\n2\n"


@pytest.mark.parametrize(
    "wrong", [{"brokers": 2}, {"port": 0}, {"port": 65535, "brokers": 3}, {"heap_mb": 8}]
)
def test_settings_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(EmbeddedKafkaError):
        BrokerSettings(**wrong)  # type: ignore[arg-type]


def test_ports_that_were_chosen_are_free_and_different() -> None:
    nodes = choose_nodes(3, None, random.Random(7))
    ports = [n.client_port for n in nodes] + [n.controller_port for n in nodes]
    assert len(set(ports)) == 6
    assert all(is_free(port) for port in ports)


def test_a_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EmbeddedKafkaError, match=f"port {port} on 127.0.0.1 is taken"):
            choose_nodes(1, port, random.Random(7))


@pytest.mark.parametrize(
    ("text", "major"), [("17.0.15", 17), ("25", 25), ("1.8.0_402", 8), ("21-ea", 21), ("none", None)]
)
def test_java_versions(text: str, major: int | None) -> None:
    assert major_version(text) == major


def test_an_old_java_home_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="11.0.2"\n')
    assert find_java(str(tmp_path)) != java
    (tmp_path / "release").write_text('JAVA_VERSION="21.0.2"\n')
    assert find_java(str(tmp_path)) == java


def _response(ids: list[int], correlation: int = 1) -> bytes:
    body = struct.pack(">ii", correlation, len(ids))
    for node in ids:
        body += struct.pack(">ih", node, 9) + b"127.0.0.1" + struct.pack(">ih", 9092, -1)
    return body + struct.pack(">ii", 1, 0)


@given(st.lists(st.integers(0, 2**31 - 1), max_size=5, unique=True))
def test_metadata_answers_are_read(ids: list[int]) -> None:
    assert brokers(_response(ids), 1) == frozenset(ids)


@given(st.binary(max_size=60))
def test_any_bytes_are_an_answer_or_a_value_error(data: bytes) -> None:
    try:
        brokers(data, 1)
    except ValueError:
        return
    assert data[:4] == b"\x00\x00\x00\x01"


def test_the_request_has_its_length_in_front() -> None:
    data = request(1)
    assert struct.unpack(">i", data[:4])[0] == len(data) - 4


def test_ids_are_sixteen_bytes_without_a_leading_dash() -> None:
    ids = {kafka_uuid() for _ in range(500)}
    assert len(ids) == 500
    assert all(len(text) == 22 and text[0] != "-" for text in ids)


def test_the_binding_follows_slf4j() -> None:
    assert binding({"log4j-core": "2.24.3", "slf4j-api": "1.7.36"}).endswith(":log4j-slf4j-impl:2.24.3")
    assert binding({"log4j-core": "2.25.0", "slf4j-api": "2.0.9"}).endswith(":log4j-slf4j2-impl:2.25.0")
    with pytest.raises(EmbeddedKafkaError, match="log4j-core None"):
        binding({"slf4j-api": "2.0.9"})


def test_errors_show_no_password_of_a_repository() -> None:
    assert (
        without_secrets("{'central': 'https://u:p@m.invalid/x'}") == "{'central': 'https://***@m.invalid/x'}"
    )


def test_a_truncated_jar_is_seen(tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("A.class", b"x" * 1000)
    assert not broken(jar)
    jar.write_bytes(jar.read_bytes()[:600])
    assert broken(jar)


def test_a_data_folder_keeps_its_cluster_and_knows_its_size(tmp_path: Path) -> None:
    first = DataFolder(tmp_path / "data", 1)
    first.format(1, b"features")
    meta = (first.node(1) / "meta.properties").read_text()
    assert f"cluster.id={first.cluster_id}\n" in meta
    first.close()
    second = DataFolder(tmp_path / "data", 1)
    second.format(1, b"features")
    assert second.cluster_id == first.cluster_id
    assert (second.node(1) / "meta.properties").read_text() == meta
    second.close()
    with pytest.raises(EmbeddedKafkaError, match="made for 1 broker"):
        DataFolder(tmp_path / "data", 3)


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(EmbeddedKafkaError, match=r"thesis\.txt"):
        DataFolder(tmp_path, 1)


def test_only_temporary_folders_that_nobody_holds_are_swept(tmp_path: Path) -> None:
    held = DataFolder(tmp_path / f"{TEMPORARY}held", 1)
    left = tmp_path / f"{TEMPORARY}left"
    DataFolder(left, 1).close()
    DataFolder(tmp_path / "other", 1).close()
    (tmp_path / f"{TEMPORARY}strange").mkdir()
    (tmp_path / f"{TEMPORARY}link").symlink_to(tmp_path / "other")
    now = (left / ".lock").stat().st_mtime
    assert sweep(tmp_path, now + 1.0) == [], "too young"
    assert sweep(tmp_path, now + SWEEP_AGE + 5.0) == [left]
    names = {path.name.removeprefix(TEMPORARY) for path in tmp_path.iterdir()}
    assert names == {"held", "other", "strange", "link"}
    held.close()


@pytest.mark.parametrize(("long_lived", "first_compiler_only"), [(False, True), (True, False)])
def test_a_broker_that_lives_long_is_compiled_fully(long_lived: bool, first_compiler_only: bool) -> None:
    command = java_command("java", ["kafka.jar"], 512, "log4j2", "properties", long_lived=long_lived)
    assert ("-XX:TieredStopAtLevel=1" in command) is first_compiler_only
