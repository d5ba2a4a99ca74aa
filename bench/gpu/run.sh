#!/usr/bin/env bash
# Builds, checks and measures on a machine with a GPU. Needs PyTorch with CUDA, nvcc, cmake, ninja and a
# C++ compiler, but neither Node.js nor a network: the carried folder contains what prepare.cjs packed.
#
#   bash bench/gpu/run.sh <carried folder> <output folder> [--rehearse] [--limit <seconds>]
#
# TORCHFORMER_BENCH_PYTHON names the Python with PyTorch (default: python3). "GPU" in bench/README.md
# describes what is measured and the format of the results.
set -euo pipefail

usage='usage: bash bench/gpu/run.sh <carried folder> <output folder> [--rehearse] [--limit <seconds>]'

end() {
  echo "[gpu] failed: $1" >&2
  exit 1
}

[[ $# -ge 2 && $1 != -* && $2 != -* ]] || end "$usage"
carried=$1
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=${TORCHFORMER_BENCH_PYTHON:-python3}
# Ignored by git; nothing else in the checkout is changed, whatever is in node_modules or build.
tree=$repository/build/gpu

python=$(command -v "$python") ||
  end "$python was not found; install Python with PyTorch, or set TORCHFORMER_BENCH_PYTHON to it"
for part in node packages code batches; do
  [[ -f $carried/$part.tar.xz ]] ||
    end "$carried has no $part.tar.xz; create it with \`node bench/gpu/prepare.cjs\` on a machine with Node.js"
done

mkdir -p "$tree"
rm -rf "$tree"/{node,node_modules,dist,build,batches,package.json,bench}
# Python's own lzma: tar needs the program xz, which not every machine has.
"$python" - "$carried" "$tree" <<'UNPACK' || end "cannot unpack the archives of $carried (see above)"
import sys, tarfile
carried, tree = sys.argv[1:]
for part in ("node", "packages", "code", "batches"):
    with tarfile.open(f"{carried}/{part}.tar.xz", "r:xz") as archive:
        archive.extractall(tree)
UNPACK
# The peers are expected next to our compiled programs.
ln -s "$repository/bench" "$tree/bench"

"$tree/node/node" --version >/dev/null || end "$tree/node/node does not run on this machine (see above)"
exec "$tree/node/node" "$tree/build/bench/gpu/main.js" "$@" \
  --repository "$repository" --tree "$tree" --python "$python"
