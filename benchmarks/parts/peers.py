"""The peers and the floor, each started by the suite itself: see benchmarks/peers/."""

from benchmarks.machine import say
from benchmarks.measuring import CONNECTIONS
from benchmarks.outcome import PartOutcome, Plan, Table
from benchmarks.peers.catalog import FLOOR, PEERS, versions
from benchmarks.peers.measuring import measure_peers
from benchmarks.peers.run import figure_rows


def measure_all_peers(plan: Plan) -> PartOutcome:
    """Measure every peer and the floor in the same rounds."""
    peers = (*PEERS, FLOOR)
    directory = plan.directory / "peers"
    directory.mkdir()
    figures = measure_peers(
        peers, directory, seconds=plan.seconds, repeat=plan.repeat, connections=CONNECTIONS, tell=say
    )
    outcome = PartOutcome(tables=[Table("Peers and floor", figure_rows(figures))])
    for each in figures:
        value = each.cycles_per_second if each.figure == "cycle" else each.per_second
        kind = "floor" if each.peer is FLOOR else "durable" if each.peer.is_durable else "memory"
        outcome.values[f"peers.{each.figure}.{kind}.{each.peer.name}"] = value
    for peer in peers:
        outcome.versions |= {name: value for name, value in versions(peer).items() if name != "Python"}
    return outcome
