# shellcheck shell=bash disable=SC2034
# Ranks, run ids, signals and options for the wrappers beside this file, which source it. Needs bash 4.2 and coreutils.
# Every name begins with nsl_: an environment variable of the application must not be changed by accident.
# shellcheck source-path=SCRIPTDIR source=places.sh
source "${BASH_SOURCE[0]%/*}/places.sh"
set +fC   # what an exported SHELLOPTS may have set
export -n SHELLOPTS   # else set -e of the wrappers would reach the shell scripts of the application

nsl_say() { printf '%s: %s\n' "$nsl_name" "$*" >&2 || :; }   # a full disk under the job's log must not end the job

# nsl_die CODE TEXT: 1 failure, 2 usage error, 127 something is not installed.
nsl_die() { nsl_say "error: ${*:2}"; exit "$1"; }

# --- ranks -------------------------------------------------------------------------------------------------------------

# launcher | rank | its own local rank | local rank by another's word | world size | ranks on this node | number of the node
nsl_launchers=(
  'openmpi|OMPI_COMM_WORLD_RANK|OMPI_COMM_WORLD_LOCAL_RANK||OMPI_COMM_WORLD_SIZE|OMPI_COMM_WORLD_LOCAL_SIZE|'
  'mpich|PMI_RANK PALS_RANKID|PALS_LOCAL_RANKID PMI_LOCAL_RANK MPI_LOCALRANKID|OMPI_COMM_WORLD_LOCAL_RANK MV2_COMM_WORLD_LOCAL_RANK FLUX_TASK_LOCAL_ID|PMI_SIZE|PALS_LOCAL_SIZE PMI_LOCAL_SIZE MPI_LOCALNRANKS|PALS_NODEID'
  'pmix|PMIX_RANK||OMPI_COMM_WORLD_LOCAL_RANK PALS_LOCAL_RANKID PMI_LOCAL_RANK FLUX_TASK_LOCAL_ID|OMPI_COMM_WORLD_SIZE PMI_SIZE||PALS_NODEID'
  'mvapich|MV2_COMM_WORLD_RANK|MV2_COMM_WORLD_LOCAL_RANK||MV2_COMM_WORLD_SIZE|MV2_COMM_WORLD_LOCAL_SIZE|'
)
nsl_slurm='slurm|SLURM_PROCID|SLURM_LOCALID||||SLURM_NODEID'
nsl_torchrun='torchrun|RANK|LOCAL_RANK||WORLD_SIZE|LOCAL_WORLD_SIZE|GROUP_RANK'
nsl_environment='environment|RANK|LOCAL_RANK||WORLD_SIZE|LOCAL_WORLD_SIZE|GROUP_RANK NODE_RANK'
nsl_by_hand='nsightlens|NSIGHTLENS_RANK|NSIGHTLENS_LOCAL_RANK||NSIGHTLENS_WORLD_SIZE||'

# Sets nsl_value to the number in the first variable named that is not empty, else to nothing.
nsl_number() {
  local name
  nsl_value=
  for name in "$@"; do
    [[ -n ${!name-} ]] || continue
    [[ ${!name} =~ ^[0-9]{1,9}$ ]] || nsl_die 2 "$name is '${!name}', which is not a rank or size (a number from 0)"
    nsl_value=$((10#${!name}))
    return 0
  done
}

# Whether srun started this process: a batch script and an interactive shell carry SLURM_PROCID=0 too, but no step of their own.
nsl_in_slurm_step() {
  local step=${SLURM_STEP_ID:-${SLURM_STEPID:-}}
  [[ $step =~ ^[0-9]+$ ]] && ((step < 4294967280))
}

# Reads one row: sets nsl_is to none, half or full, and the nsl_got_... of it. A variable that is there but empty is half set.
nsl_probe() {
  local launcher ranks locals borrowed sizes local_sizes nodes name any=
  IFS='|' read -r launcher ranks locals borrowed sizes local_sizes nodes <<<"$1"
  nsl_got_launcher=$launcher nsl_got_variables=$ranks nsl_is=none
  local own="$ranks $locals"
  [[ $launcher == pmix ]] || own+=" $sizes"
  for name in $own; do [[ -z ${!name+set} ]] || any+="${any:+ }$name='${!name}'"; done
  nsl_told=$any
  [[ -n $any ]] || return 0
  nsl_is=half
  # shellcheck disable=SC2086
  { nsl_number $ranks; nsl_got_rank=$nsl_value
    nsl_number $locals $borrowed; nsl_got_local=$nsl_value
    nsl_number $sizes; nsl_got_size=$nsl_value
    nsl_number $local_sizes; nsl_got_local_size=$nsl_value
    nsl_number $nodes; nsl_got_node=$nsl_value; }
  nsl_needs="$ranks; $locals${locals:+; }$borrowed"
  if [[ $launcher == slurm ]]; then
    nsl_number SLURM_STEP_NUM_TASKS SLURM_NTASKS SLURM_NPROCS; nsl_got_size=$nsl_value
  elif [[ -z $nsl_got_local && -n $nsl_got_rank ]] && nsl_in_slurm_step && [[ ${SLURM_PROCID-} == "$nsl_got_rank" ]]; then
    nsl_number SLURM_LOCALID; nsl_got_local=$nsl_value   # srun --mpi=pmi2 or pmix: the same task in two words
    nsl_number SLURM_NODEID; nsl_got_node=${nsl_got_node:-$nsl_value}
    [[ -n $nsl_got_size ]] || { nsl_number SLURM_STEP_NUM_TASKS; nsl_got_size=$nsl_value; }
  fi
  [[ -n $nsl_got_rank && -n $nsl_got_local ]] || return 0
  case $launcher in torchrun | environment | nsightlens) nsl_needs+="; $sizes"; [[ -n $nsl_got_size ]] || return 0 ;; esac
  nsl_is=full
}

nsl_take() {
  nsl_launcher=$nsl_got_launcher nsl_rank=$nsl_got_rank nsl_local_rank=$nsl_got_local nsl_world_size=$nsl_got_size
  nsl_rank_variables=$nsl_got_variables nsl_local_size=$nsl_got_local_size nsl_node=$nsl_got_node nsl_single=
}

nsl_half_set() {
  nsl_die 2 "$nsl_got_launcher is only partly set: $nsl_told, but the rank, the local rank or the size is missing (looked at: $nsl_needs)." \
    "Running on would make every rank rank 0. Unset them, or set NSIGHTLENS_RANK, NSIGHTLENS_LOCAL_RANK and NSIGHTLENS_WORLD_SIZE."
}

nsl_disagree() {
  nsl_die 2 "$nsl_launcher says rank $nsl_rank, $nsl_got_launcher says rank $nsl_got_rank ($nsl_told)." \
    "Unset the stale one, or set NSIGHTLENS_RANK, NSIGHTLENS_LOCAL_RANK and NSIGHTLENS_WORLD_SIZE."
}

# Sets nsl_launcher, nsl_rank, nsl_local_rank, nsl_world_size (empty: not known), nsl_single (not empty: no launcher).
nsl_find_rank() {
  local row
  nsl_launcher=none nsl_rank=0 nsl_local_rank=0 nsl_world_size=1 nsl_local_size=1 nsl_node=0 nsl_single=1
  row=
  [[ -z ${TORCHELASTIC_RUN_ID-} ]] || row=$nsl_torchrun   # the innermost of all: torchrun under mpiexec or srun inherits their ranks
  [[ -z ${NSIGHTLENS_RANK+set} ]] || row=$nsl_by_hand
  if [[ -n $row ]]; then
    nsl_probe "$row"
    [[ $nsl_is == full ]] || nsl_half_set
    nsl_take
  else
    nsl_find_mpi
    nsl_find_slurm
    nsl_probe "$nsl_environment"
    if [[ -z $nsl_single ]]; then
      [[ $nsl_is != full || $nsl_got_rank == "$nsl_rank" ]] || nsl_disagree
    elif [[ $nsl_is == full ]]; then nsl_take
    elif [[ $nsl_is == half ]]; then nsl_half_set
    fi
  fi
  [[ -z $nsl_world_size ]] || ((nsl_rank < nsl_world_size)) ||
    nsl_die 2 "$nsl_launcher says rank $nsl_rank of $nsl_world_size: ranks count from 0"
}

nsl_find_mpi() {
  local row
  for row in "${nsl_launchers[@]}"; do
    nsl_probe "$row"
    case $nsl_is in
      half) nsl_half_set ;;
      full) if [[ -n $nsl_single ]]; then nsl_take; elif [[ $nsl_got_rank != "$nsl_rank" ]]; then nsl_disagree; fi ;;
    esac
  done
  [[ $nsl_launcher != mpich || -z ${PALS_RANKID-}${PALS_LOCAL_RANKID-} ]] || nsl_launcher=pals
  nsl_number PALS_RANKID
  if [[ -n ${PMI_RANK-} && -n $nsl_value ]] && ((nsl_value != 10#$PMI_RANK)); then
    nsl_die 2 "PMI_RANK is $PMI_RANK, but PALS_RANKID is $PALS_RANKID: unset the stale one"
  fi
}

# Under an MPI launcher Slurm's number may be that of its daemon, so that it only counts where no MPI launcher speaks.
nsl_find_slurm() {
  nsl_probe "$nsl_slurm"
  if [[ -z $nsl_single ]]; then
    nsl_number SLURM_STEP_NUM_TASKS
    if nsl_in_slurm_step && [[ -n $nsl_value && -n $nsl_world_size ]] && ((nsl_value >= nsl_world_size)); then
      ((nsl_value == nsl_world_size)) ||
        nsl_die 2 "$nsl_launcher says $nsl_world_size ranks, but the step of srun has $nsl_value tasks: $nsl_launcher's variables" \
          "are left over from outside. Unset them."
      [[ $nsl_is != full || $nsl_got_rank == "$nsl_rank" ]] || nsl_disagree   # as many of both, so that each task is a rank
    fi
  elif [[ $nsl_is == half ]]; then
    nsl_half_set
  elif [[ $nsl_is == full ]]; then
    local full=1
    nsl_in_slurm_step || ((nsl_got_rank)) || full=
    [[ -n ${RANK-} && -n ${LOCAL_RANK-} && -n ${WORLD_SIZE-} && -z $full ]] && return 0   # a launcher of Python, in a batch script
    nsl_take
    if [[ -z $full ]]; then
      nsl_single=1
      [[ $nsl_world_size == 1 ]] || nsl_world_size=
      nsl_say "in a Slurm job, but not started by srun: treated as a single process (SLURM_NTASKS=${SLURM_NTASKS-} is ignored)"
    fi
  fi
}

# --- which ranks -------------------------------------------------------------------------------------------------------

# Sets nsl_ranks and nsl_cutoff, a rank that is not profiled nor those above it, from the options, else from PROFRANK and
# RANKCUTOFF. $1: the default of --ranks.
nsl_settle_selection() {
  if [[ -z $nsl_ranks && -n ${PROFRANK-} ]]; then
    nsl_ranks=$PROFRANK
    [[ ! $PROFRANK =~ ^[0-9]+$ ]] || nsl_ranks=local$PROFRANK   # what it meant: a local rank of each node
    nsl_say "--ranks $nsl_ranks, from PROFRANK=$PROFRANK"
  fi
  if [[ -z $nsl_max_ranks && -n ${RANKCUTOFF-} ]]; then
    [[ $RANKCUTOFF =~ ^[0-9]{1,9}$ ]] || nsl_die 2 "RANKCUTOFF is $RANKCUTOFF: give a number, of the first rank that is not profiled"
    nsl_cutoff=$RANKCUTOFF
    nsl_say "ranks below $nsl_cutoff, from RANKCUTOFF"
  fi
  nsl_ranks=${nsl_ranks:-$1}
  [[ $nsl_ranks =~ ^(all|local[0-9]{1,6}|[0-9]{1,9}(,[0-9]{1,9})*)$ ]] ||
    nsl_die 2 "--ranks $nsl_ranks: give all, numbers as in 0,8, or local0 (the first rank of each node)"
  [[ -z $nsl_max_ranks || $nsl_max_ranks =~ ^[0-9]{1,9}$ ]] || nsl_die 2 "--max-ranks $nsl_max_ranks: give a number"
}

# Whether this rank is to be profiled.
nsl_selected() {
  local place=-1 one count=0
  [[ -z $nsl_cutoff ]] || ((nsl_rank < 10#$nsl_cutoff)) || return 1
  case $nsl_ranks in
    all) place=$nsl_rank ;;
    local*)
      ((10#${nsl_ranks#local} == nsl_local_rank)) || return 1
      place=0
      if [[ -n $nsl_max_ranks ]]; then
        if [[ -n $nsl_node ]]; then place=$nsl_node
        elif [[ -n $nsl_local_size ]]; then place=$((nsl_rank / nsl_local_size))
        else nsl_die 2 "--max-ranks with --ranks $nsl_ranks: $nsl_launcher does not say which node this is. Name the ranks: --ranks 0,8"
        fi
      fi ;;
    *)
      for one in ${nsl_ranks//,/ }; do
        ((10#$one != nsl_rank)) || { place=$count; break; }
        count=$((count + 1))
      done
      ((place >= 0)) || return 1 ;;
  esac
  [[ -z $nsl_max_ranks ]] || ((place < 10#$nsl_max_ranks))
}

# --- ids and places ----------------------------------------------------------------------------------------------------

# Sets nsl_run: common to all ranks, so never from a clock where there may be several. A run directory that was given names it
# before any id of the job: one job may run several configurations.
nsl_find_run() {
  local name program=${1##*/}
  nsl_find_job
  name=$(readlink -m -- "$nsl_run_dir" 2>/dev/null || echo "${nsl_run_dir%/}")   # of . and of links, as torch_profiler.py does
  nsl_run=${nsl_run_id:-${NSIGHTLENS_RUN_ID:-}}
  [[ -n $nsl_run || -z $nsl_run_dir ]] || nsl_run=${name##*/}
  nsl_run=${nsl_run:-$nsl_job}
  [[ -n $nsl_run ]] || { nsl_start_of_launcher; nsl_run=$nsl_start; }
  if [[ -z $nsl_run ]]; then
    [[ -n $nsl_single || $nsl_world_size == 1 ]] ||
      nsl_die 2 "no name for the run that all ranks share: set NSIGHTLENS_RUN_ID (and pass it to all ranks), or give --run-dir"
    nsl_run=$program-$(date +%Y%m%d-%H%M%S)-$$
  fi
}

# Sets nsl_job: the batch system's id of this job, or nothing.
nsl_find_job() { nsl_job=${SLURM_JOB_ID:-${SLURM_JOBID:-${PBS_JOBID:-${LSB_JOBID:-${FLUX_JOB_ID:-}}}}}; }

# Sets nsl_start: what the launcher calls this start of the job, on all ranks alike; empty where it has no name for it.
nsl_start_of_launcher() {
  local step=
  nsl_start=
  if nsl_in_slurm_step; then step=${SLURM_JOB_ID:-${SLURM_JOBID:-}}.${SLURM_STEP_ID:-${SLURM_STEPID:-}}; fi
  case $nsl_launcher in
    openmpi) nsl_start=${PMIX_NAMESPACE:-${OMPI_MCA_ess_base_jobid:-}} ;;
    slurm) nsl_start=$step ;;
    torchrun) [[ ${TORCHELASTIC_RUN_ID-} == none ]] || nsl_start=${TORCHELASTIC_RUN_ID-} ;;
  esac
  [[ -n $nsl_start || -z ${PALS_APID-} ]] || nsl_start=${PBS_JOBID:+$PBS_JOBID.}$PALS_APID
  nsl_start=${nsl_start:-${PMIX_NAMESPACE:-$step}}
}

# Sets nsl_execution: one per start of the job under a tool, the same on all its ranks, with the job's id in it; empty where it
# is unknown.
nsl_find_execution() {
  local restart=
  nsl_find_job
  nsl_execution=${nsl_execution_id:-${NSIGHTLENS_EXECUTION_ID:-}}
  [[ -z $nsl_execution ]] || return 0
  nsl_number TORCHELASTIC_RESTART_COUNT; ((nsl_value == 0)) || restart=-restart$nsl_value
  nsl_number SLURM_RESTART_COUNT; ((nsl_value == 0)) || restart+=-requeue$nsl_value
  if [[ -n $nsl_single || $nsl_world_size == 1 ]]; then
    nsl_execution=${nsl_job:+$nsl_job-}$nsl_host-$$-$(date +%s)-$nsl_tool
    return 0
  fi
  nsl_start_of_launcher
  if [[ -n $nsl_start ]]; then
    [[ -z $nsl_job || $nsl_start == *"$nsl_job"* ]] || nsl_start=$nsl_job.$nsl_start
    nsl_execution=$nsl_launcher-$nsl_start$restart-$nsl_tool
  else
    [[ $nsl_rank != 0 ]] || nsl_say "warning: export NSIGHTLENS_EXECUTION_ID=${nsl_job:-ID}-1 before $nsl_launcher starts the ranks" \
      "(torchrun: --standalone or --rdzv-id), else their times are not compared"
  fi
}

# Sets nsl_run_dir, nsl_stem: RUN_DIR/<tool>/rank0003. The folder of a name is made of its harmless characters.
nsl_find_places() {
  local name
  nsl_host=${HOSTNAME:-$(hostname 2>/dev/null || echo unknown)}
  nsl_run_dir=${nsl_run_dir:-${NSIGHTLENS_RUN_DIR:-}}
  [[ -z $nsl_run_dir || $nsl_run_dir == /* ]] || nsl_run_dir=$PWD/$nsl_run_dir
  nsl_find_run "$@"
  name=${nsl_run//[^A-Za-z0-9._-]/_}
  [[ -n ${name//./} ]] || nsl_die 2 "the run id '$nsl_run' is not a valid folder name: give --run-dir"
  nsl_run_dir=${nsl_run_dir:-$PWD/nsightlens-runs/$name}
  printf -v nsl_stem '%s/%s/rank%04d' "${nsl_run_dir%/}" "$nsl_tool" "$nsl_rank"
  nsl_scratch=${TMPDIR:-/tmp}
  printf -v nsl_scratch '%s/nsl%s-%d-r%04d' "${nsl_scratch%/}" "$UID" "$$" "$nsl_rank"
}

# --- options -----------------------------------------------------------------------------------------------------------

nsl_usage_common='  --ranks WHICH        all | 0 | 0,8 | local0, the first rank of each node (variable: PROFRANK, a number is a local rank)
  --max-ranks N        profile no more than N of them (else RANKCUTOFF=N: only ranks below N)
  --run-dir DIR        where to write: DIR/<tool>/rank0003.* (NSIGHTLENS_RUN_DIR; default nsightlens-runs/<run id>)
  --run-id NAME        the workload and its configuration (NSIGHTLENS_RUN_ID; default: the name of DIR, else the id of the job)
  --execution-id ID    this start of it (NSIGHTLENS_EXECUTION_ID; default: from the launcher)
  --overwrite          replace this rank'\''s earlier capture in DIR
  --dry-run            print what would run, and do nothing
  -h, --help           this text'

nsl_name=${0##*/} nsl_tool='' nsl_ranks='' nsl_max_ranks='' nsl_cutoff='' nsl_run_dir='' nsl_run_id='' nsl_execution_id='' nsl_overwrite='' nsl_dry_run=''

# Takes an option that all wrappers have: sets nsl_taken to the number of words used, 0 where it is none of them.
nsl_common_option() {
  nsl_taken=1
  case $1 in
    --dry-run) nsl_dry_run=1; return 0 ;;
    --overwrite) nsl_overwrite=1; return 0 ;;
    -h | --help) usage; exit 0 ;;
    --dry-run=* | --overwrite=*) nsl_die 2 "${1%%=*} takes no value" ;;
  esac
  nsl_value_option "$@"
  case $nsl_option in
    --ranks) nsl_ranks=$nsl_value ;;
    --max-ranks) nsl_max_ranks=$nsl_value ;;
    --run-dir) nsl_run_dir=$nsl_value ;;
    --run-id) nsl_run_id=$nsl_value ;;
    --execution-id) nsl_execution_id=$nsl_value ;;
    *) nsl_taken=0; return 0 ;;
  esac
  [[ -n $nsl_value ]] || nsl_die 2 "$nsl_option needs a value (see --help)"
}

# Splits "--name value" and "--name=value": sets nsl_option, nsl_value and nsl_taken.
nsl_value_option() {
  if [[ $1 == --*=* ]]; then
    nsl_option=${1%%=*} nsl_value=${1#*=} nsl_taken=1
  else
    nsl_option=$1 nsl_value=${2-} nsl_taken=2
  fi
}

nsl_one_of() {
  local word
  for word in "${@:3}"; do [[ $2 != "$word" ]] || return 0; done
  nsl_die 2 "$1 '$2': choose one of ${*:3}"
}

# --- running -----------------------------------------------------------------------------------------------------------

# Dies where the command is a launcher: behind the wrapper, all that it starts would be recorded as one rank. $@: the command.
nsl_refuse_launcher() {
  local launcher=${1##*/}
  case $launcher in
    torchrun | mpiexec | mpiexec.hydra | mpirun | srun | jsrun | aprun) ;;
    deepspeed) launcher+=' --no_python' ;;
    accelerate) launcher+=' launch --no_python' ;;
    python*) [[ " $* " =~ \ -m\ torch\.distributed\.(run|launch)\  ]] || return 0; launcher=torchrun ;;
    *) return 0 ;;
  esac
  [[ $launcher != torchrun ]] || launcher+=' --no-python'
  [[ -z ${NSIGHTLENS_RANK-} ]] || return 0
  local fix="Let it start the wrapper: $launcher ... $nsl_name ... python train.py"
  [[ $nsl_name != capture_all.sh ]] || fix="Give it as --launcher '$launcher ...'"
  nsl_die 2 "${1##*/} starts ranks, and all of them would be recorded as one. $fix"
}

# Dies where nsys or ncu would record what one of them records already: they cannot share the GPU's counters and callbacks.
nsl_refuse_nested() {
  [[ ! ${NSIGHTLENS_TOOL-}-$nsl_tool =~ ^(nsys|ncu)-(nsys|ncu)$ ]] ||
    nsl_die 2 "this runs under the $NSIGHTLENS_TOOL wrapper already (NSIGHTLENS_TOOL): record with one tool at a time, as capture_all.sh does"
}

# Starts nsl_tool's wrapper for this rank, or becomes the command itself where the rank is not to be profiled.
# $1: the program that must be there, empty for none; $2: default of --ranks; the rest: the command.
nsl_begin() {
  nsl_program=$1
  nsl_settle_selection "$2"
  shift 2
  (($#)) || nsl_die 2 "no command to run: $nsl_name [options] python app.py ... (see --help)"
  nsl_refuse_launcher "$@"
  nsl_refuse_nested
  nsl_find_rank
  nsl_find_ancestry
  nsl_find_places "$@"
  [[ -n $nsl_dry_run ]] || type -P -- "$1" >/dev/null ||
    nsl_die 127 "$1 cannot be run: it is not on PATH, or not executable (python $1?). Nothing was started."
  if [[ -n $nsl_program ]] && ! type -P "$nsl_program" >/dev/null; then
    [[ -n $nsl_dry_run ]] || nsl_die 127 "$nsl_program is not on PATH: load its module (module load cuda, nvhpc, nsight-...) or install it. Nothing was started."
    nsl_say "warning: $nsl_program is not on PATH"
  fi
  [[ -n $nsl_dry_run ]] || nsl_check_places
  if ! nsl_selected; then
    [[ -z $nsl_dry_run ]] || { echo "# rank $nsl_rank is not profiled (--ranks $nsl_ranks)"; nsl_print "$@"; exit 0; }
    exec -- "$@"
  fi
  nsl_find_execution
  [[ -z $nsl_single ]] || [[ $nsl_launcher != none ]] || nsl_say "no launcher detected: treated as a single process, rank 0 of 1"
  if [[ -z $nsl_dry_run ]]; then
    nsl_check_earlier
    nsl_make_scratch
  fi
  nsl_find_output
  export NSIGHTLENS_RUN_DIR=$nsl_run_dir NSIGHTLENS_RUN_ID=$nsl_run NSIGHTLENS_TOOL=$nsl_tool
  [[ -z $nsl_execution ]] || export NSIGHTLENS_EXECUTION_ID=$nsl_execution
}

# Prints a command that can be pasted into a shell.
nsl_print() {
  printf '%q' "$1"
  (($# == 1)) || printf ' %q' "${@:2}"
  printf '\n'
}

# Prints what is set up before the profiler runs.
nsl_print_head() {
  local name
  echo "# rank $nsl_rank of ${nsl_world_size:-?} ($nsl_launcher), run $nsl_run, execution ${nsl_execution:-unknown}"
  nsl_print mkdir -p "${nsl_stem%/*}"
  nsl_print mkdir -m 700 "$nsl_scratch"
  [[ $nsl_output == "$nsl_stem" ]] || nsl_print ln -s -- "${nsl_stem%/*}" "${nsl_output%/*}"
  for name in NSIGHTLENS_RUN_DIR NSIGHTLENS_RUN_ID NSIGHTLENS_TOOL NSIGHTLENS_EXECUTION_ID; do
    [[ -z ${!name-} ]] || nsl_print export "$name=${!name}"
  done
}
