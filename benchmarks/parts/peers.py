"""Taproof and the bare ASGI app beside the peers and the floor, in the same rounds: see benchmarks/peers/."""

from benchmarks.outcome import PartOutcome, Plan, Table
from benchmarks.peers.catalog import FLOOR, PEERS, versions
from benchmarks.peers.measuring import measure_peers
from benchmarks.peers.run import figure_rows


def measure_all_peers(plan: Plan) -> PartOutcome:
    """Measure everybody in the same rounds."""
    peers = (*PEERS, FLOOR)
    directory = plan.directory / "peers"
    directory.mkdir()
    figures = measure_peers(peers, directory, sessions=plan.sessions, seconds=plan.seconds, repeat=plan.repeat)
    note = (
        f"Everybody ran in the same rounds, in alternating order. Taproof has {plan.sessions:,} stored sessions, and "
        "the databases of the peers start empty. `server µs` is the server's CPU time per request. `× Taproof` is that "
        "of this row divided by Taproof's in the same round: the median of these ratios."
    )
    outcome = PartOutcome(tables=[Table("Beside the peers", figure_rows(figures), note)])
    for each in figures:
        name = f"peers.{each.figure}.{each.contestant.kind}.{each.contestant.name}"
        outcome.values[f"{name}.cost"] = each.median("cost")
        outcome.values[f"{name}.rate"] = each.median("cycles_per_second" if each.figure == "cycle" else "per_second")
        outcome.values[f"{name}.ratio"] = each.ratio
    for peer in peers:
        outcome.versions |= {name: value for name, value in versions(peer).items() if name != "Python"}
    return outcome
