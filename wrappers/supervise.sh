# shellcheck shell=bash disable=SC2034,SC2154
# Runs a command, hands signals on to it and waits: for the wrappers and application.sh, which source it. Needs bash 4.2.

# Runs a command in a process group of its own, hands signals on, waits: nsl_code is its exit code.
# $1: a file that will name the process to signal (the application below the profiler); empty: the command itself.
# $2: a file to write this process's own id to, once signals are handled; empty: none.
nsl_supervise() {
  local nsl_announce=$2 nsl_signal nsl_again=0
  nsl_target_file=$1 nsl_child='' nsl_pending='' nsl_signalled=''
  shift 2
  for nsl_signal in TERM INT HUP USR1 USR2; do
    # shellcheck disable=SC2064
    trap "nsl_pending+=' $nsl_signal'; nsl_deliver" "$nsl_signal"
  done
  set -m   # else bash would start it with SIGINT ignored
  "$@" <&0 &
  nsl_child=$!
  set +m
  [[ -z $nsl_announce ]] || { echo "$$" >"$nsl_announce.new" && mv "$nsl_announce.new" "$nsl_announce"; }
  nsl_deliver
  while :; do
    nsl_code=0
    wait "$nsl_child" || nsl_code=$?
    kill -0 "$nsl_child" 2>/dev/null || break
  done
  wait "$nsl_child" 2>/dev/null || nsl_again=$?   # the one before may have ended by a signal to this shell
  ((nsl_again == 127)) || nsl_code=$nsl_again
}

# Sends what came in to the application's process group. While the profiler is still starting it, waits for it.
nsl_deliver() {
  local target=$nsl_child signals=$nsl_pending nsl_signal tries=100
  [[ -n $nsl_child && -n $signals ]] || return 0
  nsl_pending='' nsl_signalled=$signals
  if [[ -n $nsl_target_file ]]; then
    while [[ ! -s $nsl_target_file ]] && kill -0 "$nsl_child" 2>/dev/null && ((tries--)); do sleep 0.1; done
    { read -r target <"$nsl_target_file"; } 2>/dev/null || target=$nsl_child
  fi
  for nsl_signal in $signals; do
    nsl_say "SIG$nsl_signal passed on to the application"
    kill "-$nsl_signal" -- "-$target" 2>/dev/null || kill "-$nsl_signal" "$target" 2>/dev/null || :
  done
}

# Runs the profiler, with the application behind application.sh, which keeps its process id and exit code. Sets nsl_code.
nsl_profile() {
  nsl_supervise "$nsl_scratch/pid" '' "$@"
  trap '' TERM INT HUP USR1 USR2   # what follows is quick, and the report is worth more
  nsl_tool_code=$nsl_code
  { read -r nsl_code <"$nsl_scratch/exit"; } 2>/dev/null || nsl_code=$nsl_tool_code
}
