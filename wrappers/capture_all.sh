#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Records the same workload four times into one RUN_DIR under one run id: unprofiled (for the true step time), with
# torch.profiler, with nsys and with ncu. Tools that are not installed are skipped with a message.
#   capture_all.sh --run-dir runs/base -- python train.py --epochs 1
#   capture_all.sh --run-dir runs/ddp --launcher 'torchrun --standalone --no-python --nproc-per-node 4' -- python train.py
set -euo pipefail
nsl_here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
# shellcheck source=launch.sh
source "$nsl_here/launch.sh"
# shellcheck source=supervise.sh
source "$nsl_here/supervise.sh"

usage() {
  cat <<USAGE
Usage: capture_all.sh [options] [--] COMMAND...
Runs COMMAND unprofiled, under torch.profiler, nsys and ncu, and writes DIR/plain, DIR/torch, DIR/nsys and DIR/ncu.

  --run-dir DIR        where to write (NSIGHTLENS_RUN_DIR; default nsightlens-runs/<run id>)
  --run-id NAME        the workload and its configuration (NSIGHTLENS_RUN_ID; default: DIR's name, else the id of the job)
  --launcher 'WORDS'   what starts the ranks, such as 'mpiexec -n 4', 'srun' or
                       'torchrun --standalone --no-python --nproc-per-node 4' (default: none, one process)
  --tools LIST         of plain,torch,nsys,ncu (default: all of them, in this order)
  --torch-options, --nsys-options, --ncu-options 'WORDS'   options of torch_profiler.py, nsys_wrapper.sh, ncu_wrapper.sh
  --overwrite          replace earlier captures in DIR
  --dry-run            print what would run, and do nothing
  -h, --help           this text
USAGE
}

# Sets nsl_list to the words of nsl_value, which may have several lines.
split_words() { read -r -d '' -a nsl_list <<<"$nsl_value" || :; }

nsl_words=() nsl_torch_options=() nsl_nsys_options=() nsl_ncu_options=() nsl_tools=plain,torch,nsys,ncu
while (($#)); do
  [[ $1 == -* && $1 != -- ]] || break
  nsl_common_option "$@"
  [[ ! $1 =~ ^--(ranks|max-ranks|execution-id)(=|$) ]] || nsl_die 2 "$1 belongs in --nsys-options or --ncu-options"
  if ((!nsl_taken)); then
    nsl_value_option "$@"
    case $nsl_option in
      --launcher) split_words; nsl_words=(${nsl_list[@]+"${nsl_list[@]}"}) ;;
      --tools) nsl_tools=$nsl_value ;;
      --torch-options) split_words; nsl_torch_options=(${nsl_list[@]+"${nsl_list[@]}"}) ;;
      --nsys-options) split_words; nsl_nsys_options=(${nsl_list[@]+"${nsl_list[@]}"}) ;;
      --ncu-options) split_words; nsl_ncu_options=(${nsl_list[@]+"${nsl_list[@]}"}) ;;
      *) nsl_die 2 "no such option: $1 (see --help)" ;;
    esac
  fi
  ((nsl_taken <= $#)) || nsl_die 2 "$1 needs a value (see --help)"
  shift "$nsl_taken"
done
[[ ${1-} != -- ]] || shift
(($#)) || nsl_die 2 "no command to run: capture_all.sh --run-dir DIR -- python train.py ... (see --help)"
nsl_refuse_launcher "$@"
nsl_seen=,
for nsl_one_tool in ${nsl_tools//,/ }; do
  nsl_one_of --tools "$nsl_one_tool" plain torch nsys ncu
  [[ $nsl_seen != *",$nsl_one_tool,"* ]] || nsl_die 2 "--tools $nsl_tools: $nsl_one_tool is named twice"
  nsl_seen+=$nsl_one_tool,
done
((!${#nsl_words[@]})) || type -P "${nsl_words[0]}" >/dev/null || nsl_die 127 "${nsl_words[0]} is not on PATH. Nothing was started."

# One process starts all four, so that this clock is everyone's.
nsl_single=1 nsl_launcher=none nsl_world_size=1 nsl_rank=0
nsl_find_places "$@"
nsl_common=(--run-dir "$nsl_run_dir" --run-id "$nsl_run")
nsl_wrapper=(${nsl_overwrite:+--overwrite})
nsl_begun=${nsl_job:+$nsl_job-}$nsl_host-$$-$(date +%s)
# Sets call to the command below torch_profiler.py, or returns 1, after a message why not. $@: the command.
choose_torch() {
  local python=() where
  where=$nsl_here/torch_profiler.py
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
  nsl_call=(env NSIGHTLENS_TOOL=torch "NSIGHTLENS_RUN_DIR=$nsl_run_dir" "NSIGHTLENS_RUN_ID=$nsl_run" "NSIGHTLENS_EXECUTION_ID=$nsl_begun-torch"
    "${python[@]}" "$where" --run-dir "$nsl_run_dir" ${nsl_torch_options[@]+"${nsl_torch_options[@]}"} "$@")
}

# Sets call to what runs the command under a tool, or returns 1. $1: the tool; the rest: the command.
choose_call() {
  local nsl_one_tool=$1 options=()
  shift
  case $nsl_one_tool in
    torch) choose_torch "$@"; return ;;
    nsys) options=(${nsl_nsys_options[@]+"${nsl_nsys_options[@]}"}) ;;
    ncu) options=(${nsl_ncu_options[@]+"${nsl_ncu_options[@]}"}) ;;
  esac
  [[ $nsl_one_tool == plain ]] || type -P "$nsl_one_tool" >/dev/null || { nsl_say "$nsl_one_tool skipped: it is not on PATH"; return 1; }
  nsl_call=("$nsl_here/${nsl_one_tool}_wrapper.sh" "${nsl_common[@]}" --execution-id "$nsl_begun-$nsl_one_tool" ${nsl_wrapper[@]+"${nsl_wrapper[@]}"}
    ${options[@]+"${options[@]}"} -- "$@")
}

# Whether a tool left a capture: of the ranks that were to be profiled nothing but sidecars may be there.
left_capture() {
  local stem=${nsl_run_dir%/}/$1/rank found
  shopt -s nullglob
  case $1 in
    plain) found=("$stem"*.run.json) ;;
    torch) found=("$stem"*.pt.trace.json.gz) ;;
    nsys) found=("$stem"*.nsys-rep "$stem"*.qdrep) ;;
    ncu) found=("$stem"*.ncu-rep) ;;
  esac
  shopt -u nullglob
  ((${#found[@]}))
}

# Dies where DIR/<tool> cannot be written, or holds an earlier start's captures.
check_folder() {
  local found
  nsl_stem=${nsl_run_dir%/}/$1/rank
  nsl_check_places
  shopt -s nullglob
  found=("$nsl_stem"*)
  shopt -u nullglob
  ((${#found[@]})) || return 0
  [[ -n $nsl_overwrite ]] ||
    nsl_die 1 "${nsl_stem%/*} has captures of an earlier start: choose another --run-dir, or use --overwrite. Nothing was started."
  rm -f "$nsl_stem"*
}

nsl_ready='' nsl_summary='' nsl_first_code=0 nsl_code=0
for nsl_one_tool in ${nsl_tools//,/ }; do
  if ! choose_call "$nsl_one_tool" "$@"; then nsl_summary+=" $nsl_one_tool skipped;"; continue; fi
  nsl_ready+=" $nsl_one_tool"
  [[ -n $nsl_dry_run ]] || check_folder "$nsl_one_tool"
done
[[ -n $nsl_ready ]] || nsl_die 127 "no profiler is available: install one, or use --tools plain. Nothing was started."
[[ -n $nsl_dry_run ]] || nsl_make_scratch
for nsl_one_tool in $nsl_ready; do
  choose_call "$nsl_one_tool" "$@"
  nsl_call=(${nsl_words[@]+"${nsl_words[@]}"} "${nsl_call[@]}")
  if [[ -n $nsl_dry_run ]]; then nsl_print "${nsl_call[@]}"; continue; fi
  nsl_say "$nsl_one_tool: recording"
  nsl_supervise '' '' "$nsl_scratch/exit" "${nsl_call[@]}"
  nsl_left=
  left_capture "$nsl_one_tool" || nsl_left=' left no capture (why: above)'
  if ((nsl_code)); then nsl_summary+=" $nsl_one_tool ended with code $nsl_code${nsl_left:+ and$nsl_left};"
  elif [[ -n $nsl_left ]]; then nsl_summary+=" $nsl_one_tool$nsl_left;" nsl_code=1
  else nsl_summary+=" $nsl_one_tool recorded;"
  fi
  ((nsl_first_code)) || nsl_first_code=$nsl_code
  [[ -z $nsl_signalled ]] || { nsl_summary+=" stopped by SIG${nsl_signalled# };"; break; }
done
[[ -z $nsl_dry_run ]] || exit 0
nsl_say "run $nsl_run:$nsl_summary"
nsl_say "next: nsightlens ingest $(printf '%q' "$nsl_run_dir")"
exit "$nsl_first_code"
