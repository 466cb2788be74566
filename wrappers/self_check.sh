# shellcheck shell=bash disable=SC2034,SC2154
# --self-check of nsys_wrapper.sh and ncu_wrapper.sh, which source it: whether this rank can record, and if not, what to do.

# Takes --self-check and --self-check=SECONDS: sets nsl_checking and nsl_taken, or returns 1. $1: the option.
nsl_takes_self_check() {
  case $1 in
    --self-check) nsl_checking=10 ;;
    --self-check=*) nsl_checking=${1#*=} ;;
    *) return 1 ;;
  esac
  [[ $nsl_checking =~ ^[1-9][0-9]{0,3}$ ]] || nsl_die 2 "--self-check=$nsl_checking: give seconds, from 1 to 9999"
  nsl_taken=1
}

# Records one kernel as the wrapper itself would, reads it back with nsightlens where that is on PATH, deletes it, and ends: with
# 0 where all went well. Prints one line per rank. What is not done after nsl_checking seconds is ended. $1: the tool; the rest:
# options that the user gave for the recording.
nsl_self_check() {
  local tool=$1 folder log said='' python code=0 stem
  shift
  SECONDS=0
  nsl_find_rank
  nsl_find_ancestry
  nsl_host=${HOSTNAME:-$(hostname 2>/dev/null || echo unknown)}
  folder=${nsl_run_dir:-${NSIGHTLENS_RUN_DIR:-.}}/self-check-$tool-$nsl_host-$$
  printf -v stem '%s/%s/rank%04d' "$folder" "$tool" "$nsl_rank"
  log=$folder/log
  python=$(type -P python3 || type -P python) || nsl_check_failed "there is no python on PATH" "load or activate one"
  (umask 077 && mkdir -p "$folder") 2>/dev/null || nsl_check_failed "cannot create $folder" "choose a writable --run-dir"
  nsl_make_check_scratch "$folder"
  NSIGHTLENS_RUN_DIR='' nsl_run_watched "$nsl_checking" "$nsl_here/$nsl_name" --ranks all --run-dir "$folder" --run-id self-check \
    --execution-id self-check "$@" "$python" "$nsl_here/workloads/one_kernel.py" >"$log" 2>&1 || code=$?
  said=$(nsl_why_not <"$log")
  case $code in
    0) ;;
    3) nsl_check_failed "$said" "ask for a GPU (batch system: --gpus; docker: --gpus all; apptainer: --nv), and see CUDA_VISIBLE_DEVICES" ;;
    124) nsl_check_ended "$stem" ;;
    *) nsl_check_failed "${said:-the recording ended with code $code}" "$(nsl_remedy <"$log")" ;;
  esac
  [[ -s $stem.nsys-rep || -s $stem.ncu-rep ]] || nsl_check_failed "${said:-$tool left no report}" "$(nsl_remedy <"$log")"
  [[ $tool != nsys || -s $stem.sqlite ]] || nsl_check_failed "${said:-nsys could not export its report}" "$(nsl_remedy <"$log")"
  nsl_read_back "$folder" "$log"
}

# Gives the check a folder for temporary files below TMPDIR, where one can be made, and has both folders deleted at the end, also of a
# wrapper that was killed. $1: the folder of the capture.
nsl_make_check_scratch() {
  local scratch=${TMPDIR:-/tmp}
  scratch=${scratch%/}/nsl$UID-check-$$
  # shellcheck disable=SC2064
  trap "rm -rf -- $(printf '%q ' "$1" "$scratch")" EXIT
  ! mkdir -m 700 "$scratch" 2>/dev/null || export TMPDIR=$scratch
}

# Says what hung, from how far the recording got. $1: the stem of its files.
nsl_check_ended() {
  local more="where it is only slow, give it longer: --self-check=60"
  sleep 2   # until the watcher of the wrapper has ended what that left
  if [[ ! -e $1.run.json ]]; then
    nsl_check_failed "nothing had begun after $nsl_checking s: $nsl_tool --help, $nsl_tool --version or nvidia-smi hangs" "try them by hand; $more"
  elif [[ ! -s $1.nsys-rep && ! -s $1.ncu-rep ]]; then
    nsl_check_failed "$nsl_tool had not ended after $nsl_checking s" "$more; else try nvidia-smi: a driver that hangs is the administrator's"
  fi
  nsl_check_failed "$nsl_tool had not exported its report after $nsl_checking s" "$more"
}

# Reads the capture back, as far as there is time, and ends. $1: its folder; $2: the log.
nsl_read_back() {
  local left=$((nsl_checking - SECONDS)) code=0 kernels
  type -P nsightlens >/dev/null || nsl_check_passed "recorded and exported (not read back: nsightlens is not on PATH)"
  ((left > 0)) || nsl_check_passed "recorded and exported (not read back: the $nsl_checking s were over)"
  # shellcheck disable=SC2016
  kernels=$(nsl_run_watched "$left" bash -c 'nsightlens ingest "$1" --store "$1/store" --no-answers >>"$2" 2>&1 || :
    nsightlens sql "SELECT count(*) AS n FROM kernels" --store "$1/store" --format csv 2>>"$2"' - "$1" "$2") || code=$?
  ((code != 124)) || nsl_check_passed "recorded and exported (not read back: the $nsl_checking s were over)"
  kernels=${kernels##*[!0-9]}
  [[ ${kernels:-0} != 0 ]] || nsl_check_failed "the report holds no kernel: $(tail -n 1 "$2")" "$(nsl_remedy <"$2")"
  nsl_check_passed "recorded, exported and read back ($kernels kernel)"
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

# Prints the line of a rank that can record, and ends. $1: what was seen.
nsl_check_passed() {
  nsl_check_answer "$1"
  echo "rank $nsl_rank on $nsl_host: $nsl_tool: ok: $1"
  exit 0
}

# Prints the line of a rank that cannot record, and ends. $1: why; $2: what to do.
nsl_check_failed() {
  local why=${1%; its messages are above.}   # which nobody sees
  why=${why%.}
  nsl_check_answer "$why" "$2"
  echo "rank $nsl_rank on $nsl_host: ${nsl_tool}: FAILED: $why. What to do: $2"
  exit 1
}

# Writes what was seen, and what to do, each ended by NUL, to NSIGHTLENS_SELF_CHECK_ANSWER where a program asks for it so.
nsl_check_answer() {
  [[ -z ${NSIGHTLENS_SELF_CHECK_ANSWER-} ]] || printf '%s\0' "$@" >"$NSIGHTLENS_SELF_CHECK_ANSWER"
}
