#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Makes the real recordings of fixtures/ on a machine with a GPU: record_fixtures.sh [DIR]. Each lies in a folder of its own, with the
# sidecar with its command, versions, GPU and date. Files over 1 MB stay in DIR/large. Needs torch; ncu for the counters.
#   gemm-*      the GEMM whose FLOPs and bytes are known: 2*M*N*K, for whole tiles and for one odd shape
#   hottest-*   the longest GEMM and convolution of a ResNet-18 step, in bf16 and fp32
#   torch-*     torch.profiler: eager, compiled, CUDA graph; with memory and shapes
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
out=${1:-$PWD/fixtures-recorded}
python=${PYTHON:-python3}
gemm=$here/workloads/gemm.py resnet=$here/workloads/training.py
say() { printf 'record_fixtures.sh: %s\n' "$*" >&2; }

"$python" -c 'import sys, torch; sys.exit(0 if torch.cuda.is_available() else "torch sees no GPU: nothing was recorded")' || exit 1
mkdir -p "$out"
failed=

# record NAME TOOL OPTIONS... -- COMMAND...: one capture under a wrapper, into DIR/NAME.
record() {
  local name=$1 tool=$2
  shift 2
  say "$name ($tool)"
  "$here/${tool}_wrapper.sh" --run-dir "$out/$name" --run-id "$name" --overwrite "$@" || failed+=" $name"
}

# trace NAME [RESNET OPTIONS...]: one capture by torch.profiler.
trace() {
  local name=$1
  shift
  say "$name (torch)"
  NSIGHTLENS_RUN_ID=$name NSIGHTLENS_TOOL=torch "$python" "$here/torch_profiler.py" --run-dir "$out/$name" --overwrite --record-shapes --profile-memory \
    "$resnet" --batch-size 8 --steps 12 "$@" || failed+=" $name"
}

# Prints the number of the launch whose name matches $2 and that took longest, from the raw page $1.
longest() {
  "$python" - "$1" "$2" <<'PY'
import csv, re, sys
rows = list(csv.reader(open(sys.argv[1], newline="")))
head = next(i for i, row in enumerate(rows) if row[:1] == ["ID"])
at = {name: i for i, name in enumerate(rows[head])}
found = [(float(row[at["gpu__time_duration.sum"]].replace(",", "")), int(row[at["ID"]])) for row in rows[head + 2:]
         if len(row) == len(rows[head]) and re.search(sys.argv[2], row[at["Kernel Name"]])]
print(max(found)[1] if found else "")
PY
}

# hottest PRECISION: measures a step's kernels for their time, then the longest GEMM and convolution again, in full.
hottest() {
  local precision=$1 skip=600 kind pattern launch
  local command=("$python" "$resnet" --batch-size 32 --steps 4 --precision "$precision")
  record "survey-$precision" ncu --set minimal --launch-skip "$skip" --launch-count 300 -- "${command[@]}"
  for kind in gemm conv; do
    pattern='gemm|nvjet|cutlass'
    [[ $kind == gemm ]] || pattern='conv|fprop|dgrad|wgrad|implicit'
    launch=$(longest "$out/survey-$precision/ncu/rank0000.raw.csv" "$pattern") || launch=
    [[ -n $launch ]] || { say "no $kind kernel in $precision"; failed+=" hottest-$kind-$precision"; continue; }
    for set in roofline detailed; do
      record "hottest-$kind-$precision-$set" ncu --set "$set" --launch-skip "$((skip + launch))" --launch-count 1 -- "${command[@]}"
    done
  done
}

if type -P ncu >/dev/null; then
  for shape in '4096 4096 4096' '1024 512 768' '1000 1001 1003'; do
    read -r m n k <<<"$shape"
    for set in roofline detailed minimal; do
      record "gemm-$m-$n-$k-$set" ncu --set "$set" -k 'regex:gemm|nvjet|cutlass' --launch-count 3 -- \
        "$python" "$gemm" --m "$m" --n "$n" --k "$k"
    done
  done
  hottest bf16
  hottest fp32
else
  say "ncu skipped: it is not on PATH"
fi
if type -P nsys >/dev/null; then
  record nsys-resnet18 nsys --cuda-graph-trace node -- "$python" "$resnet" --batch-size 8 --steps 12
else
  say "nsys skipped: it is not on PATH"
fi
trace torch-eager
trace torch-compiled --compile
trace torch-cuda-graph --cuda-graphs

find "$out" -path "$out/large" -prune -o -type f -size +1000k -print | while IFS= read -r file; do
  say "over 1 MB, set aside: ${file#"$out"/}"
  mkdir -p "$out/large/$(dirname "${file#"$out"/}")"
  mv "$file" "$out/large/${file#"$out"/}"
done
[[ -z $failed ]] || { say "not recorded:$failed"; exit 1; }
say "recorded into $out"
