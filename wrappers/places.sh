# shellcheck shell=bash disable=SC2034,SC2154
# Looks after the folders of a capture before anything starts: for launch.sh, which sources it. Needs bash 4.2 and coreutils.

# Dies unless captures can be written: writes one byte, and asks for the space that is left.
nsl_check_places() {
  local folder=${nsl_stem%/*} probe
  printf -v probe '%s/.write-%s-%d-%d' "$folder" "$nsl_host" "$$" "$nsl_rank"
  mkdir -p "$folder" 2>/dev/null || nsl_die 1 "cannot create $folder: choose a writable --run-dir. Nothing was started."
  { echo >"$probe"; } 2>/dev/null ||
    nsl_die 1 "cannot write into $folder (permissions, a full disk or quota): choose another --run-dir. Nothing was started."
  rm -f "$probe"
  nsl_check_space "$folder" --run-dir
}

# Dies where a capture of this rank is there already. A launcher's own restart replaces what the broken start left.
nsl_check_earlier() {
  local old restarted
  nsl_number TORCHELASTIC_RESTART_COUNT; restarted=$((nsl_value + 0))
  nsl_number SLURM_RESTART_COUNT; restarted=$((restarted + nsl_value))
  shopt -s nullglob
  old=("$nsl_stem".*)
  shopt -u nullglob
  ((${#old[@]})) || return 0
  [[ -n $nsl_overwrite ]] || ((restarted)) ||
    nsl_die 1 "${old[0]} exists already, from an earlier start: choose another --run-dir, or use --overwrite. Nothing was started."
  rm -f "${old[@]}"
}

# Takes this rank's place; dies where another process has done so at the same time: on every rank, where their launcher is unknown.
nsl_claim() {
  (set -C; : >"$nsl_stem.run.json") 2>/dev/null || [[ ! -e $nsl_stem.run.json ]] ||
    nsl_die 1 "another process records as rank $nsl_rank into ${nsl_stem%/*} right now: a second start with the same --run-dir, or a" \
      "launcher that is not known here. Give each rank NSIGHTLENS_RANK, NSIGHTLENS_LOCAL_RANK and NSIGHTLENS_WORLD_SIZE. Nothing was started."
}

# Makes the folder of this rank for temporary files: nsl<user>-<pid>-r<rank> below TMPDIR; a short name, as sockets go there.
nsl_make_scratch() {
  local place=$nsl_scratch try=0
  nsl_check_space "${nsl_scratch%/*}" TMPDIR
  until mkdir -m 700 "$nsl_scratch" 2>/dev/null; do   # one of the same name: left by a start that was killed, or another container's
    if [[ ! -e $nsl_scratch ]] || ((++try == 10)); then nsl_die 1 "cannot create $nsl_scratch: set TMPDIR to a writable folder. Nothing was started."; fi
    nsl_scratch=$place-$try
  done
  trap 'nsl_resume_dcgm; rm -rf "$nsl_scratch"' EXIT
}

# Sets nsl_output to the stem as the tools are given it: they take %h and the like in it for macros, so that a run directory with a %
# is reached by a link.
nsl_find_output() {
  nsl_output=$nsl_stem
  [[ $nsl_stem == *%* ]] || return 0
  [[ $nsl_scratch != *%* ]] || nsl_die 1 "neither the run directory nor TMPDIR is without a %, which the tools take for a macro: choose another. Nothing was started."
  nsl_output=$nsl_scratch/out/${nsl_stem##*/}
  [[ -n $nsl_dry_run ]] || ln -s -- "${nsl_stem%/*}" "$nsl_scratch/out"
}

# Lets DCGM go on that --pause-dcgm has paused.
nsl_resume_dcgm() {
  [[ -n ${nsl_dcgm_paused-} ]] || return 0
  nsl_dcgm_paused=
  dcgmi profile --resume >/dev/null 2>&1 || nsl_say "error: dcgmi profile --resume failed: DCGM's counters are paused still. Run it by hand"
}

# Dies where one of the wrapper's own options is not in the tool's help; one of the user's is only warned of.
# $1: tool; $2: its help, which is not asked where it does not list $3; $4: how many of the words are the wrapper's own; the words.
nsl_check_options() {
  local tool=$1 help=$2 own=$4 word count=0
  [[ $help == *"$3"* ]] || return 0
  shift 4
  for word; do
    count=$((count + 1))
    [[ $word == --* ]] || continue
    [[ ! $help =~ ${word%%=*}([^a-zA-Z-]|$) ]] || continue
    ((count <= own)) && nsl_die 2 "this $tool has no option ${word%%=*}: leave it out, or load a version that has it. Nothing was started."
    nsl_say "warning: ${word%%=*} is not in the help of this $tool, which may refuse it"
  done
}

nsl_check_space() {
  local free
  { read -r _ && read -r _ _ _ free _; } < <(df -Pk "$1" 2>/dev/null) || return 0
  [[ $free =~ ^[0-9]+$ ]] || return 0
  ((free >= 65536)) || nsl_die 1 "only $free KiB are free in $1: a capture needs more. Free space, or choose another $2. Nothing was started."
}
