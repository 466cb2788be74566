#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Records the same workload four times into one RUN_DIR under one run id: unprofiled (for the true step time), with
# torch.profiler, with nsys and with ncu. What is not installed is skipped, and said.
#   capture_all.sh --run-dir runs/base -- python train.py --epochs 1
#   capture_all.sh --run-dir runs/ddp --launcher 'torchrun --standalone --no-python --nproc-per-node 4' -- python train.py
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
# shellcheck source=launch.sh
source "$here/launch.sh"
# shellcheck source=supervise.sh
source "$here/supervise.sh"

usage() {
  cat <<USAGE
Usage: capture_all.sh [options] [--] COMMAND...
Runs COMMAND unprofiled, under torch.profiler, nsys and ncu, and writes DIR/plain, DIR/torch, DIR/nsys and DIR/ncu.

  --run-dir DIR        where to write (NSIGHTLENS_RUN_DIR; default nsightlens-runs/<run id>)
  --run-id NAME        the workload and its configuration (NSIGHTLENS_RUN_ID; default: the id of the job, else DIR's name)
  --launcher 'WORDS'   what starts the ranks, such as 'mpiexec -n 4', 'srun' or
                       'torchrun --standalone --no-python --nproc-per-node 4' (default: none, one process)
  --tools LIST         of plain,torch,nsys,ncu (default: all of them, in this order)
  --torch-options, --nsys-options, --ncu-options 'WORDS'   options of torch_profiler.py, nsys_wrapper.sh, ncu_wrapper.sh
  --overwrite          replace earlier captures in DIR
  --dry-run            print what would run, and do nothing
  -h, --help           this text
USAGE
}

launcher=() torch_options=() nsys_options=() ncu_options=() tools=plain,torch,nsys,ncu
while (($#)); do
  [[ $1 == -* && $1 != -- ]] || break
  nsl_common_option "$@"
  [[ ! $1 =~ ^--(ranks|max-ranks|execution-id)(=|$) ]] || nsl_die 2 "$1 belongs into --nsys-options or --ncu-options"
  if ((!nsl_taken)); then
    nsl_value_option "$@"
    case $nsl_option in
      --launcher) read -r -a launcher <<<"$nsl_value" ;;
      --tools) tools=$nsl_value ;;
      --torch-options) read -r -a torch_options <<<"$nsl_value" ;;
      --nsys-options) read -r -a nsys_options <<<"$nsl_value" ;;
      --ncu-options) read -r -a ncu_options <<<"$nsl_value" ;;
      *) nsl_die 2 "no such option: $1 (see --help)" ;;
    esac
  fi
  ((nsl_taken <= $#)) || nsl_die 2 "$1 needs a value (see --help)"
  shift "$nsl_taken"
done
[[ ${1-} != -- ]] || shift
(($#)) || nsl_die 2 "no command to run: capture_all.sh --run-dir DIR -- python train.py ... (see --help)"
for tool in ${tools//,/ }; do nsl_one_of --tools "$tool" plain torch nsys ncu; done
((!${#launcher[@]})) || type -P "${launcher[0]}" >/dev/null || nsl_die 127 "${launcher[0]} is not on PATH. Nothing was started."

# One process starts all four, so that this clock is everyone's.
nsl_single=1 nsl_launcher=none nsl_world_size=1 nsl_rank=0
nsl_find_places "$@"
common=(--run-dir "$nsl_run_dir" --run-id "$nsl_run")
wrapper=(${nsl_overwrite:+--overwrite})
start=$nsl_host-$$-$(date +%s)
# Sets call to the command below torch_profiler.py, or returns 1, having said why not. $@: the command.
choose_torch() {
  local python=() where
  where=$here/torch_profiler.py
  [[ -e $where ]] || { nsl_say "torch skipped: $where is not there"; return 1; }
  [[ ${1##*/} == python* ]] || { nsl_say "torch skipped: torch.profiler needs a command of the form: python [options] script.py ..."; return 1; }
  python=("$1")
  shift
  while [[ ${1-} == -* ]]; do
    case $1 in
      -c | -m) nsl_say "torch skipped: torch.profiler needs a script.py, not python $1"; return 1 ;;
      -X | -W) python+=("$1" "${2-}"); shift 2 || return 1 ;;
      *) python+=("$1"); shift ;;
    esac
  done
  "${python[0]}" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)' 2>/dev/null ||
    { nsl_say "torch skipped: ${python[0]} has no torch"; return 1; }
  call=(env NSIGHTLENS_TOOL=torch "NSIGHTLENS_RUN_DIR=$nsl_run_dir" "NSIGHTLENS_RUN_ID=$nsl_run" "NSIGHTLENS_EXECUTION_ID=$start-torch"
    "${python[@]}" "$where" --run-dir "$nsl_run_dir" ${torch_options[@]+"${torch_options[@]}"} "$@")
}

# Sets call to what runs the command under a tool, or returns 1. $1: the tool; the rest: the command.
choose_call() {
  local tool=$1 options=()
  shift
  case $tool in
    torch) choose_torch "$@"; return ;;
    nsys) options=(${nsys_options[@]+"${nsys_options[@]}"}) ;;
    ncu) options=(${ncu_options[@]+"${ncu_options[@]}"}) ;;
  esac
  [[ $tool == plain ]] || type -P "$tool" >/dev/null || { nsl_say "$tool skipped: it is not on PATH"; return 1; }
  call=("$here/${tool}_wrapper.sh" "${common[@]}" --execution-id "$start-$tool" ${wrapper[@]+"${wrapper[@]}"}
    ${options[@]+"${options[@]}"} -- "$@")
}

# Dies where DIR/<tool> cannot be written, or holds an earlier start's captures.
check_folder() {
  nsl_stem=${nsl_run_dir%/}/$1/rank
  nsl_check_places
  [[ -n $(find "${nsl_stem%/*}" -name 'rank*' -print -quit) ]] || return 0
  [[ -n $nsl_overwrite ]] ||
    nsl_die 1 "${nsl_stem%/*} holds captures of an earlier start: choose another --run-dir, or say --overwrite. Nothing was started."
  rm -f "$nsl_stem"*
}

ready='' summary='' code=0 nsl_code=0
for tool in ${tools//,/ }; do
  if ! choose_call "$tool" "$@"; then summary+=" $tool skipped;"; continue; fi
  ready+=" $tool"
  [[ -n $nsl_dry_run ]] || check_folder "$tool"
done
for tool in $ready; do
  choose_call "$tool" "$@"
  call=(${launcher[@]+"${launcher[@]}"} "${call[@]}")
  if [[ -n $nsl_dry_run ]]; then nsl_print "${call[@]}"; continue; fi
  nsl_say "$tool: recording"
  nsl_supervise '' '' "${call[@]}"
  if ((nsl_code)); then summary+=" $tool ended with code $nsl_code;"; else summary+=" $tool recorded;"; fi
  ((code)) || code=$nsl_code
  [[ -z $nsl_signalled ]] || { summary+=" stopped by SIG${nsl_signalled# };"; break; }
done
[[ -z $nsl_dry_run ]] || exit 0
nsl_say "run $nsl_run:$summary"
nsl_say "next: nsightlens ingest $(printf '%q' "$nsl_run_dir")"
exit "$code"
