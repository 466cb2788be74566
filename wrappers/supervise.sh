# shellcheck shell=bash disable=SC2034,SC2154
# Runs a command, hands signals on to it and waits: for the wrappers and application.sh, which source it. Needs bash 4.2.

# Runs a command in a process group of its own, hands signals on, waits: nsl_code is its exit code.
# $1: a file that will name the process to signal (the application below the profiler); empty: the command itself.
# $2: a file to write this process's own id to, once signals are handled; empty: none.
# $3: a file for the exit code.
nsl_supervise() {
  local nsl_announce=$2 nsl_code_file=$3 nsl_signal
  nsl_target_file=$1 nsl_child='' nsl_pending='' nsl_signalled=''
  shift 3
  for nsl_signal in TERM INT HUP USR1 USR2; do
    # shellcheck disable=SC2064
    trap "nsl_pending+=' $nsl_signal'; nsl_deliver" "$nsl_signal"
  done
  trap : PIPE   # should the watcher be gone
  set -m   # else bash would start it with SIGINT ignored
  coproc nsl_watcher { nsl_watch "$$" "$nsl_target_file" >/dev/null 2>&1; }   # in a process group of its own, too
  nsl_watcher_id=$! nsl_watcher_input=${nsl_watcher[1]}
  nsl_keep_code "$nsl_code_file" "$@" <&0 &
  nsl_child=$!
  set +m
  { echo "$nsl_child" >&"$nsl_watcher_input"; } 2>/dev/null || :
  [[ -z $nsl_announce ]] || echo "$$" >"$nsl_announce"
  nsl_deliver
  while :; do
    nsl_code=0
    wait "$nsl_child" || nsl_code=$?
    kill -0 "$nsl_child" 2>/dev/null || break
  done
  { read -r nsl_code <"$nsl_code_file"; } 2>/dev/null || :   # where there is none, it was killed itself
  { kill -KILL "$nsl_watcher_id" || :; wait "$nsl_watcher_id" || :; } 2>/dev/null   # a word through the pipe was lost at times
}

# Ends what this shell started where the shell cannot do so, within four seconds: it was killed, or its launcher is gone, whose
# ranks must not run on. It reads the process group to end; when all is well the shell kills it. $1: this shell; $2: the file with
# the process to signal below the profiler, or empty.
nsl_watch() {
  local line='' group='' parent='' code target=
  trap '' TERM INT HUP USR1 USR2
  case ${nsl_launcher-none} in none | environment | nsightlens) ;; *) parent=$PPID ;; esac
  while :; do
    code=0
    read -r ${parent:+-t 1} line || code=$?
    if ((!code)); then
      group=$line
    elif ((code <= 128)); then   # nobody can write any more
      break
    elif ! nsl_has_parent "$1" "$parent"; then
      break
    fi
  done
  [[ -z $2 ]] || { read -r target <"$2"; } || :
  kill -TERM "$1" || kill -TERM -- "-$group" ${target:+"$target"}
  code=0
  read -r -t 2 line || code=$?   # until the shell has ended all, and this, or is gone itself
  ((code > 128)) || sleep 1
  kill -KILL -- "-$group"
  [[ -z $target ]] || kill -KILL "$target"
  kill -0 "$1" || [[ -z ${nsl_dcgm_paused-} ]] || nsl_resume_dcgm   # that shell can no longer do so
}

# Whether process $1 still has the parent $2. (A parent that has ended may still be there by its number, not asked for yet.)
nsl_has_parent() {
  local stat=
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
  stat=${stat##*) ? }
  [[ ${stat%% *} == "$2" ]]
}

# Runs a command and writes its exit code to $1. The code that `wait` gives is not always its own: a signal that comes while the
# shell waits ends the wait, and the next one may find nothing any more. A command in the foreground is waited for to its end.
nsl_keep_code() {
  local file=$1 code=0
  trap : TERM INT HUP USR1 USR2   # not '': the command would inherit that
  shift
  "$@" || code=$?
  echo "$code" >"$file"   # by the shell alone: a signal would end any other program
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
  nsl_supervise "$nsl_scratch/pid" '' "$nsl_scratch/tool" "$@"
  nsl_outlast
  trap '' TERM INT HUP USR1 USR2   # what follows is quick, and the report is worth more
  nsl_tool_code=$nsl_code
  { read -r nsl_code <"$nsl_scratch/exit"; } 2>/dev/null || nsl_code=$nsl_tool_code
}

# Waits for the application where the profiler ended before it: killed by the same signal, or told to stop after a window.
nsl_outlast() {
  local pid line
  { read -r pid <"$nsl_scratch/pid"; } 2>/dev/null || return 0
  while [[ ! -s $nsl_scratch/exit ]] && kill -0 "$pid" 2>/dev/null; do
    { read -r line <"/proc/$pid/stat"; } 2>/dev/null || line=
    [[ $line != *') Z '* ]] || break   # ended, and nobody above asked for its code
    sleep 0.1
  done
}
