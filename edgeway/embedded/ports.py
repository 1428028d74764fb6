"""Free and taken TCP ports of the loopback interface."""

import random
import socket

from edgeway.embedded.errors import BrokerPortTaken, EmbeddedKafkaError
from edgeway.embedded.properties import HOST, Node

# Below the range from which the kernel takes ports for outgoing connections (32768 on Linux): the port of
# a killed broker is still free when it comes back.
CHOICE = range(15000, 32000)
TRIES = 400


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def free_ports(count: int, chance: random.Random, avoid: frozenset[int] = frozenset()) -> list[int]:
    """`count` different free ports, drawn by `chance`.

    Raises:
        EmbeddedKafkaError: too few were found in `TRIES` draws.
    """
    found: list[int] = []
    for _ in range(TRIES):
        if len(found) == count:
            return found
        port = chance.choice(CHOICE)
        if port not in avoid and port not in found and is_free(port):
            found.append(port)
    raise EmbeddedKafkaError(
        f"found no {count} free ports between {CHOICE.start} and {CHOICE.stop} on {HOST}"
    )


def choose_nodes(brokers: int, port: int | None, chance: random.Random) -> list[Node]:
    """Nodes 1 to `brokers`: client ports `port`, `port`+1, ... or free ones; controller ports are free ones.

    Raises:
        BrokerPortTaken: a port that was asked for.
        EmbeddedKafkaError: there are no free ones.
    """
    if port is None:
        ports = free_ports(2 * brokers, chance)
        clients, controllers = ports[:brokers], ports[brokers:]
    else:
        clients = list(range(port, port + brokers))
        for client in clients:
            if not is_free(client):
                raise BrokerPortTaken(
                    f"port {client} on {HOST} is taken (or not allowed): stop what listens there "
                    f"(`ss -ltnp 'sport = :{client}'` names it) or choose another port"
                )
        controllers = free_ports(brokers, chance, frozenset(clients))
    return [Node(i + 1, clients[i], controllers[i]) for i in range(brokers)]
