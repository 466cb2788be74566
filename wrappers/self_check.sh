# shellcheck shell=bash disable=SC2154
# --self-check of nsys_wrapper.sh and ncu_wrapper.sh, which source it: whether this rank can record, and if not, what to do.

# Records one kernel as the wrapper itself would, reads it back with nsightlens where that is on PATH, deletes it, and ends: with
# 0 where all went well. Prints one line per rank. $1: the tool; the rest: options that the user gave for the recording.
nsl_self_check() {
  local tool=$1 folder log said='' python code=0 stem kernels
  shift
  nsl_find_rank
  nsl_host=${HOSTNAME:-$(hostname 2>/dev/null || echo unknown)}
  folder=${nsl_run_dir:-${NSIGHTLENS_RUN_DIR:-.}}/self-check-$tool-$nsl_host-$$
  printf -v stem '%s/%s/rank%04d' "$folder" "$tool" "$nsl_rank"
  log=$folder/log
  python=$(type -P python3 || type -P python) || nsl_check_failed "there is no python on PATH" "load or activate one"
  (umask 077 && mkdir -p "$folder") 2>/dev/null || nsl_check_failed "cannot create $folder" "choose a writable --run-dir"
  # shellcheck disable=SC2064
  trap "rm -rf -- $(printf '%q' "$folder")" EXIT
  NSIGHTLENS_RUN_DIR='' "$nsl_here/$nsl_name" --ranks all --run-dir "$folder" --run-id self-check --execution-id self-check "$@" \
    "$python" "$nsl_here/workloads/one_kernel.py" >"$log" 2>&1 || code=$?
  said=$(nsl_why_not <"$log")
  case $code in
    0) ;;
    3) nsl_check_failed "$said" "ask for a GPU (batch system: --gpus; docker: --gpus all; apptainer: --nv), and see CUDA_VISIBLE_DEVICES" ;;
    *) nsl_check_failed "${said:-the recording ended with code $code}" "$(nsl_remedy <"$log")" ;;
  esac
  [[ -s $stem.nsys-rep || -s $stem.ncu-rep ]] || nsl_check_failed "${said:-$tool left no report}" "$(nsl_remedy <"$log")"
  [[ $tool != nsys || -s $stem.sqlite ]] || nsl_check_failed "${said:-nsys could not export its report}" "$(nsl_remedy <"$log")"
  if ! type -P nsightlens >/dev/null; then
    echo "rank $nsl_rank on $nsl_host: $tool: ok: recorded and exported (not read back: nsightlens is not on PATH)"
    exit 0
  fi
  nsightlens ingest "$folder" --store "$folder/store" --no-answers >>"$log" 2>&1 || :
  kernels=$(nsightlens sql "SELECT count(*) AS n FROM kernels" --store "$folder/store" --format csv 2>>"$log") || kernels=
  kernels=${kernels##*[!0-9]}
  [[ ${kernels:-0} != 0 ]] || nsl_check_failed "the report holds no kernel: ${said:-$(tail -n 1 "$log")}" "$(nsl_remedy <"$log")"
  echo "rank $nsl_rank on $nsl_host: $tool: ok: recorded, exported and read back ($kernels kernel)"
  exit 0
}

# Prints what a log says of what went wrong: the wrapper's last word, without its name; the tool's own where the wrapper only says that
# there is no report. Standard input: the log.
nsl_why_not() {
  local line last='' tools=''
  while IFS= read -r line; do
    case $line in
      *': error: '*) last=${line#*: error: } ;;
      *'one_kernel.py: '* | *==ERROR==* | *nrecogni[sz]ed*) [[ -n $tools ]] || tools=${line#one_kernel.py: } ;;
    esac
  done
  [[ -n $last && ( -z $tools || $last != *' left no report'* ) ]] || last=$tools
  echo "$last"
}

# Prints what helps against what a log says. Standard input: the log.
nsl_remedy() {
  local text
  text=$(tail -c 65536 | tr -d '\0')
  case $text in
    *ERR_NVGPUCTRPERM*) echo "ask the administrator for NVreg_RestrictProfilingToAdminUsers=0, or for a job with access to the counters" ;;
    *[Dd]'river resource was unavailable'*) echo "dcgmi profile --pause before, and --resume after: --pause-dcgm does both" ;;
    *'No space left'* | *'KiB are free'*) echo "free space, or choose another --run-dir and TMPDIR" ;;
    *TMPDIR*) echo "export TMPDIR to a writable folder on a local disk" ;;
    *nrecogni[sz]ed* | *'has no option'*) echo "leave that option out, or load a version that has it" ;;
    *'not on PATH'*) echo "load its module (cuda, nvhpc, nsight-...), or install it" ;;
    *) echo "the recording itself says more: leave out --self-check, with the same --run-dir, and any short program" ;;
  esac
}

# Prints the line of a rank that cannot record, and ends. $1: why; $2: what to do.
nsl_check_failed() {
  local why=${1%; its messages are above.}   # which nobody sees
  echo "rank $nsl_rank on $nsl_host: ${nsl_tool}: FAILED: ${why%.}. What to do: $2"
  exit 1
}
