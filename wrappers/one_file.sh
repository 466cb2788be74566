#!/usr/bin/env bash
# Records each rank with Nsight Systems, or kernels of rank 0 with Nsight Compute; goes between the launcher and the command:
#   mpiexec -n 8 ./nsl.sh ./app    srun ./nsl.sh python train.py    torchrun --no-python --nproc-per-node 4 ./nsl.sh ./app
# Then: nsightlens ingest RUN_DIR. It needs nothing else of nsightlens; the wrappers of a folder check and forward more.
# RUN_DIR: folder of the run. RANKCUTOFF=N: ranks below N only (ncu: 1). ARGS: more options of the profiler.
# TRACE (nsys): cuda,nvtx,osrt. SET (ncu): roofline, detailed, full. KERNEL (ncu): a regular expression of the kernel's name.
set -euo pipefail
tool=nsys
run=${RUN_DIR:-run} me=${0##*/}
(($#)) || { echo "usage: LAUNCHER ... $me COMMAND..." >&2; exit 2; }
command -v "$tool" >/dev/null || { echo "$me: $tool is not on PATH: load its module" >&2; exit 127; }

# Prints the first of these variables that holds a number.
first() {
  local name
  for name; do [[ ! ${!name-} =~ ^[0-9]+$ ]] || { echo "$((10#${!name}))"; return; }; done
}
ranks=(OMPI_COMM_WORLD_RANK PMIX_RANK PALS_RANKID PMI_RANK MV2_COMM_WORLD_RANK)
sizes=(OMPI_COMM_WORLD_SIZE PMI_SIZE MV2_COMM_WORLD_SIZE)
# torchrun may run below srun or mpiexec, once on each node; a batch script has SLURM_PROCID=0, but is no step of its own.
[[ -z ${TORCHELASTIC_RUN_ID-}${RANK:+${LOCAL_RANK-}} ]] || ranks=(RANK "${ranks[@]}") sizes=(WORLD_SIZE "${sizes[@]}")
[[ ! ${SLURM_STEP_ID-} =~ ^[0-9]{1,9}$ ]] || { ranks+=(SLURM_PROCID); sizes+=(SLURM_STEP_NUM_TASKS); }
rank=$(first "${ranks[@]}") size=$(first "${sizes[@]}")
node=$(first LOCAL_RANK OMPI_COMM_WORLD_LOCAL_RANK PALS_LOCAL_RANKID MPI_LOCALRANKID MV2_COMM_WORLD_LOCAL_RANK SLURM_LOCALID)
[[ -n $rank || ${size:-1} -eq 1 ]] || { echo "$me: $size ranks, and no variable says which is this one" >&2; exit 2; }
[[ $tool == nsys ]] && most=1000000000 || most=1
((${rank:-0} < ${RANKCUTOFF:-$most})) || exec "$@"

start=${NSIGHTLENS_EXECUTION_ID:-${TORCHELASTIC_RUN_ID:-${SLURM_JOB_ID:+$SLURM_JOB_ID.${SLURM_STEP_ID-}}}}
start=${start:-${PALS_APID:-${PMIX_NAMESPACE-}}}   # the same for all ranks of a start: without it, ranks are not compared
printf -v stem '%s/%s/rank%04d' "$run" "$tool" "${rank:-0}"
mkdir -p "$run/$tool" || exit 1
[[ ! -e $stem.$tool-rep ]] || { echo "$me: $stem.$tool-rep is there already: give another RUN_DIR" >&2; exit 2; }

# Writes the facts that nsightlens reads beside a capture. $1: the exit code, or null. Texts keep letters, digits and ._:@- only.
sidecar() {
  printf '{"run": "%s", "execution_id": "%s", "tool": "%s", "host": "%s",\n "rank": %d, "world_size": %s, "local_rank": %s, "exit_code": %s}\n' \
    "$(basename -- "$run" | tr -c 'a-zA-Z0-9._:@\n-' _)" "${start//[^a-zA-Z0-9._:@-]/_}" "$tool" "$(uname -n)" "${rank:-0}" \
    "${size:-null}" "${node:-null}" "$1" >"$stem.run.json"
}

sidecar null
code=0
trap : TERM INT HUP   # the launcher signals the application as well: this shell outlives it
# shellcheck disable=SC2086
if [[ $tool == nsys ]]; then
  nsys profile --trace="${TRACE:-cuda,nvtx,osrt}" --sample=none --output="$stem" ${ARGS-} "$@" || code=$?
  nsys export --type=sqlite --force-overwrite=true --output="$stem.sqlite" "$stem.nsys-rep" >&2 || rm -f "$stem.sqlite"
else
  ncu --set "${SET:-roofline}" ${KERNEL:+--kernel-name "regex:$KERNEL"} --target-processes all --export "$stem" ${ARGS-} "$@" || code=$?
fi
sidecar "$code"
exit "$code"
