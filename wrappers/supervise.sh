# shellcheck shell=bash disable=SC2034,SC2154
# Runs a command, hands signals on to it and waits: for the wrappers and application.sh, which source it. Needs bash 4.2.

nsl_ancestry=()   # see nsl_find_ancestry

# Runs a command in a process group of its own, hands signals on, waits: nsl_code is its exit code.
# $1: a file that will name the process to signal (the application below the profiler); empty: the command itself.
# $2: a file to write this process's own id and the command's group to, once signals are handled; empty: none.
# $3: a file for the exit code.
nsl_supervise() {
  local nsl_announce=$2 nsl_code_file=$3 nsl_signal kept=
  nsl_target_file=$1 nsl_deadline='' nsl_child='' nsl_pending='' nsl_signalled=''
  shift 3
  for nsl_signal in TERM INT HUP USR1 USR2; do
    # shellcheck disable=SC2064
    trap "nsl_pending+=' $nsl_signal'; nsl_deliver" "$nsl_signal"
  done
  nsl_start_watched nsl_keep_code "$nsl_code_file" "$@"
  [[ -z $nsl_announce ]] || { echo "$$ $nsl_child" >"$nsl_announce"; } 2>/dev/null || :
  nsl_deliver
  nsl_await
  { read -r kept <"$nsl_code_file"; } 2>/dev/null || :
  nsl_code=${kept:-$nsl_code}   # where there is none, it was killed itself, or the disk is full
  [[ -z $nsl_target_file ]] || nsl_outlast "$nsl_target_file" "${nsl_target_file%/*}/exit"
  nsl_end_watcher
}

# Runs a command to its end, or for $1 seconds (empty: any), but not past the end of the launcher, and ends with its code: 124 where
# its time was over, 1 where the launcher has ended. Signals to this shell are not handed on.
nsl_run_watched() {
  local nsl_code=0 nsl_child='' nsl_target_file='' nsl_deadline=${1:+$((SECONDS + $1))}
  shift
  nsl_launcher_lives || return 1
  nsl_start_watched nsl_call "$@"
  nsl_await
  nsl_end_watcher
  ((nsl_code <= 128)) || [[ -z $nsl_deadline ]] || ((SECONDS <= nsl_deadline)) || nsl_code=124
  return "$nsl_code"
}

# Runs a command below this shell, which can be ended where the command hangs in a driver.
nsl_call() {
  local code=0
  [[ $(trap -p TERM) == *"''"* ]] || trap : TERM INT HUP USR1 USR2   # what is ignored is to be ignored by the command, too
  "$@" || code=$?
  return "$code"
}

# Starts a command in a process group of its own, and the watcher with it. Sets nsl_child.
nsl_start_watched() {
  trap : PIPE   # should the watcher be gone
  set -m   # else bash would start it with SIGINT ignored
  coproc nsl_watcher { nsl_watch "$$" "$nsl_target_file" "$nsl_deadline" >/dev/null 2>&1; }   # in a process group of its own, too
  nsl_watcher_id=$! nsl_watcher_input=${nsl_watcher[1]}
  "$@" <&0 &
  nsl_child=$!
  set +m
  { echo "$nsl_child" >&"$nsl_watcher_input"; } 2>/dev/null || :
}

# Waits for that command, and sets nsl_code.
nsl_await() {
  while :; do
    nsl_code=0
    wait "$nsl_child" || nsl_code=$?
    kill -0 "$nsl_child" 2>/dev/null || break
  done
}

nsl_end_watcher() {
  { kill -KILL "$nsl_watcher_id" || :; wait "$nsl_watcher_id" || :; } 2>/dev/null   # a word through the pipe was lost at times
}

# Ends what this shell started where the shell cannot do so, within three seconds: it was killed, or its launcher is gone, whose
# ranks must not run on, or the time for it is over. It reads the process group to end; when all is well the shell kills it. $1: this
# shell; $2: the file with the process to signal below the profiler and the application's group, or empty; $3: when the time is over
# (SECONDS), or empty.
nsl_watch() {
  local line='' group='' code target='' below='' one late=
  trap '' TERM INT HUP USR1 USR2
  while :; do
    code=0
    read -r -t 0.5 line || code=$?
    if ((!code)); then
      group=$line
    elif ((code <= 128)) || ! kill -0 "$1" || ! nsl_launcher_lives; then   # nobody can write any more, or for anybody
      break
    elif [[ -n $3 ]] && ((SECONDS > $3)); then
      late=1
      break
    fi
  done
  [[ -z $2 ]] || { read -r target below <"$2"; } || :
  { [[ -z $late ]] && kill -TERM "$1"; } || kill -TERM -- "-$group" ${target:+"$target"}
  code=0
  read -r -t $((late ? 1 : 2)) line || code=$?   # until the shell has ended all, and this, or is gone itself
  ((code > 128)) || ! kill -0 -- "-$group" || sleep 1
  kill -STOP -- "-$group"   # a profiler that sees its application die may end with 0
  for one in ${below:+"-$below"} ${target:+"$target"} "-$group"; do kill -KILL -- "$one"; done   # the shell waits for the last
  kill -0 "$1" || [[ -z ${nsl_dcgm_paused-} ]] || nsl_resume_dcgm   # that shell can no longer do so
}

# Sets nsl_ancestry to what must stay so while the launcher lives, as pairs of a process and its parent: from this shell up to the
# first process that the launcher started, which may be a script around the wrapper. Empty without a launcher.
nsl_find_ancestry() {
  local process=$$ parent=$PPID
  nsl_ancestry=()
  case $nsl_launcher in none | environment | nsightlens) return 0 ;; esac
  # shellcheck disable=SC2086
  set -- $nsl_rank_variables
  [[ $nsl_launcher != torchrun ]] || set -- TORCHELASTIC_RUN_ID   # scripts export RANK, too
  while nsl_ancestry+=("$process" "$parent"); nsl_carries "$parent" "$@"; do
    process=$parent
    nsl_parent_of "$process" || return 0
  done
}

# Whether process $1 was started with one of the variables in its environment. $2...: their names.
nsl_carries() {
  local word name
  while IFS= read -r -d '' word; do
    for name in "${@:2}"; do [[ $word != "$name="* ]] || return 0; done
  done 2>/dev/null <"/proc/$1/environ"
  return 1
}

# Whether the launcher that started this shell is there still; without a launcher, always.
nsl_launcher_lives() {
  local i parent
  for ((i = 0; i < ${#nsl_ancestry[@]}; i += 2)); do
    nsl_parent_of "${nsl_ancestry[i]}" && [[ $parent == "${nsl_ancestry[i + 1]}" ]] || return 1
  done
}

# Sets parent to that of process $1; returns 1 where there is no such process. (The number of a parent that has ended may still be
# there, not asked for yet.)
nsl_parent_of() {
  local stat=
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  stat=${stat##*) ? }
  parent=${stat%% *}
}

# Runs a command and writes its exit code to $1. The code that `wait` gives is not always its own: a signal that comes while the
# shell waits ends the wait, and the next one may find nothing any more. The shell waits for a command in the foreground to its end.
nsl_keep_code() {
  local file=$1 code=0
  trap : TERM INT HUP USR1 USR2   # not '': the command would inherit that
  shift
  "$@" || code=$?
  { echo "$code" >"$file"; } 2>/dev/null || :   # by the shell alone: a signal would end any other program
  return "$code"
}

# Sends what came in to the application's process group. While the profiler is still starting it, waits for it.
nsl_deliver() {
  local target=$nsl_child signals=$nsl_pending nsl_signal tries=100
  [[ -n $nsl_child && -n $signals ]] || return 0
  nsl_pending='' nsl_signalled=$signals
  if [[ -n $nsl_target_file ]]; then
    while [[ ! -s $nsl_target_file ]] && kill -0 "$nsl_child" 2>/dev/null && ((tries--)); do sleep 0.1; done
    { read -r target _ <"$nsl_target_file"; } 2>/dev/null || target=$nsl_child
  fi
  for nsl_signal in $signals; do
    nsl_say "SIG$nsl_signal passed on to the application"
    kill "-$nsl_signal" -- "-$target" 2>/dev/null || kill "-$nsl_signal" "$target" 2>/dev/null || :
  done
}

# Runs the profiler, with the application behind application.sh, which keeps its process id and exit code. Sets nsl_code.
nsl_profile() {
  nsl_supervise "$nsl_scratch/pid" '' "$nsl_scratch/tool" "$@"
  trap '' TERM INT HUP USR1 USR2   # the export is quick, and worth more
  nsl_tool_code=$nsl_code
  { read -r nsl_code <"$nsl_scratch/exit"; } 2>/dev/null || nsl_code=$nsl_tool_code
}

# Waits for the application where the profiler ended before it: killed by the same signal, or told to stop after a window.
# $1, $2: the files with its process and its exit code.
nsl_outlast() {
  local pid line
  { read -r pid _ <"$1"; } 2>/dev/null || return 0
  while [[ ! -s $2 ]] && kill -0 "$pid" 2>/dev/null; do
    { read -r line <"/proc/$pid/stat"; } 2>/dev/null || line=
    [[ $line != *') Z '* ]] || break   # ended, and nobody above asked for its code
    sleep 0.1
  done
}
