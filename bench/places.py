"""Where the benchmarks keep things: all under `build/`, on the repository's own disk."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
PEERS = BUILD / "peers"
SCRATCH = BUILD / "bench"
SPARK = BUILD / "spark"
