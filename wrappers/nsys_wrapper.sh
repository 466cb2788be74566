#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Records each rank with Nsight Systems: put it between the launcher and the command.
#   mpiexec -n 8 nsys_wrapper.sh python app.py      srun nsys_wrapper.sh python app.py
#   torchrun --standalone --no-python --nproc-per-node 4 nsys_wrapper.sh python app.py
set -euo pipefail
nsl_here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
# shellcheck source=launch.sh
source "$nsl_here/launch.sh"
# shellcheck source=supervise.sh
source "$nsl_here/supervise.sh"
# shellcheck source=sidecar.sh
source "$nsl_here/sidecar.sh"
# shellcheck source=self_check.sh
source "$nsl_here/self_check.sh"

usage() {
  cat <<USAGE
Usage: nsys_wrapper.sh [options] COMMAND...
Records the ranks with Nsight Systems into DIR/nsys/rank0003.nsys-rep, .sqlite and .run.json. Its exit code is the command's.

$nsl_usage_common
  --trace LIST         what to trace (default: cuda,nvtx,osrt,cudnn,cublas, and mpi and nccl where launcher and nsys have them)
  --cuda-graph-trace graph|node   node: the kernels inside CUDA graphs, at a cost
  --capture-range none|cudaProfilerApi|nvtx   record only there
  --nvtx-capture NAME  the NVTX range to record (implies --capture-range nvtx)
  --sample none|process-tree|system-wide   sample the CPUs' call stacks (default none: it costs time, and needs rights)
  --pytorch LIST       nsys annotates PyTorch itself, as far as it can: autograd-nvtx, autograd-shapes-nvtx (operators, with shapes),
                       functions-trace (modules); it costs time
  --stats true|false   nsys prints its summary tables (default false)
  --show-output true|false   the application's output is shown (default true)
  --self-check[=S]     record one kernel on each rank, read it back, delete it, and say what fails and what helps; what takes
                       longer than S seconds (default 10) is ended, and counts as failed
  --nsys-option OPTION one more option for nsys profile, such as --nsys-option=--cuda-memory-usage=true; may be repeated
USAGE
}

nsl_tool=nsys nsl_trace='' nsl_sample='' nsl_pytorch='' nsl_graph='' nsl_range='' nsl_range_name='' nsl_stats=false nsl_show=true nsl_checking='' nsl_more=()
while (($#)); do
  [[ $1 == -* && $1 != -- ]] || break
  nsl_common_option "$@"
  if nsl_takes_self_check "$1"; then :
  elif ((!nsl_taken)); then
    nsl_value_option "$@"
    case $nsl_option in
      -t | --trace) nsl_trace=$nsl_value ;;
      --cuda-graph-trace) nsl_graph=$nsl_value; nsl_one_of "$nsl_option" "${nsl_graph%%:*}" graph node ;;
      -c | --capture-range) nsl_range=$nsl_value; nsl_one_of "$nsl_option" "$nsl_range" none cudaProfilerApi nvtx ;;
      -p | --nvtx-capture) nsl_range_name=$nsl_value nsl_range=${nsl_range:-nvtx} ;;
      -s | --sample) nsl_sample=$nsl_value ;;
      --pytorch) nsl_pytorch=$nsl_value ;;
      --stats) nsl_stats=$nsl_value; nsl_one_of "$nsl_option" "$nsl_stats" true false ;;
      -w | --show-output) nsl_show=$nsl_value; nsl_one_of "$nsl_option" "$nsl_show" true false ;;
      --nsys-option) nsl_more+=("$nsl_value") ;;
      *) nsl_die 2 "no such option: $1 (see --help)" ;;
    esac
    [[ -n $nsl_value ]] || nsl_die 2 "$nsl_option needs a value (see --help)"
  fi
  ((nsl_taken <= $#)) || nsl_die 2 "$1 needs a value (see --help)"
  shift "$nsl_taken"
done
[[ ${1-} != -- ]] || shift
if [[ -n $nsl_checking ]]; then
  nsl_self_check nsys ${nsl_trace:+--trace "$nsl_trace"} ${nsl_graph:+--cuda-graph-trace "$nsl_graph"} \
    ${nsl_sample:+--sample "$nsl_sample"} ${nsl_more[@]+"${nsl_more[@]/#/--nsys-option=}"}
fi
[[ $nsl_range != nvtx || -n $nsl_range_name ]] || nsl_die 2 "--capture-range nvtx needs --nvtx-capture NAME: which range"
[[ -z $nsl_range_name || $nsl_range == nvtx ]] || nsl_die 2 "--nvtx-capture does not go with --capture-range $nsl_range"

# Sets listed to the words below an option in nsys's help, up to the next option. $1: the option.
list_values() {
  local line on=''
  listed=' '
  while IFS= read -r line; do
    if [[ $line =~ ^[[:space:]]*(-[a-z], )?$1= ]]; then on=1
    elif [[ -n $on && $line =~ ^[[:space:]]*- ]]; then on=
    elif [[ -n $on ]]; then listed+="${line//[^a-z0-9-]/ } "
    fi
  done <<<"$nsl_help"
}

# Dies where this nsys lists --pytorch without a value that was asked for; without the option nsl_check_options does.
check_pytorch() {
  local listed name
  list_values --pytorch
  [[ $listed != ' ' ]] || return 0
  for name in ${nsl_pytorch//,/ }; do
    [[ $listed == *" $name "* ]] || nsl_die 2 "--pytorch $nsl_pytorch: this nsys does not list $name. Nothing was started."
  done
}

# Sets sample to none, unless one of the user's own options for nsys says what to sample.
choose_sample() {
  local word
  for word in ${nsl_more[@]+"${nsl_more[@]}"}; do
    case $word in --sample | --sample=* | -s*) return 0 ;; esac
  done
  nsl_sample=none
}

# Sets trace to the default, less what this nsys does not list: an unknown name would end the job.
choose_trace() {
  local listed name wanted=cuda,nvtx,osrt,cudnn,cublas,nccl
  case $nsl_launcher in openmpi | pals | mpich | pmix | mvapich) wanted+=,mpi ;; esac
  list_values --trace
  for name in ${wanted//,/ }; do [[ $listed != *" $name "* ]] || nsl_trace+=${nsl_trace:+,}$name; done
  nsl_trace=${nsl_trace:-cuda,nvtx,osrt,cudnn,cublas}   # a help that reads otherwise
}

nsl_begin nsys all "$@"
nsl_help=$(nsl_ask nsys profile --help)
[[ -n $nsl_trace ]] || choose_trace
[[ -n $nsl_sample ]] || choose_sample
[[ -z $nsl_pytorch ]] || check_pytorch

nsl_profile=(nsys profile "--trace=$nsl_trace" "--output=$nsl_output" --force-overwrite=true "--stats=$nsl_stats" "--show-output=$nsl_show")
[[ -z $nsl_sample ]] || nsl_profile+=("--sample=$nsl_sample")
[[ -z $nsl_pytorch ]] || nsl_profile+=("--pytorch=$nsl_pytorch")
[[ -z $nsl_graph ]] || nsl_profile+=("--cuda-graph-trace=$nsl_graph")
if [[ -n $nsl_range && $nsl_range != none ]]; then
  nsl_profile+=("--capture-range=$nsl_range" --capture-range-end=stop)   # stop: the application goes on to its end
fi
if [[ -n $nsl_range_name ]]; then
  nsl_profile+=("--nvtx-capture=$nsl_range_name")
  export NSYS_NVTX_PROFILER_REGISTER_ONLY=0   # PyTorch's ranges are not registered strings
fi
nsl_check_options nsys "$nsl_help" --output $((${#nsl_profile[@]})) "${nsl_profile[@]}" ${nsl_more[@]+"${nsl_more[@]}"}
nsl_profile+=(${nsl_more[@]+"${nsl_more[@]}"} bash "$nsl_here/application.sh" "$nsl_scratch" "${TMPDIR-}" "$@")
nsl_part=${nsl_stem%/*}/.${nsl_stem##*/}.sqlite   # half of it must not be taken for the export
nsl_export=(nsys export --type=sqlite --force-overwrite=true "--output=$nsl_part" "$nsl_stem.nsys-rep")
nsl_check_options "nsys export" "$(nsl_ask nsys export --help)" --output "${#nsl_export[@]}" "${nsl_export[@]}"

if [[ -n $nsl_dry_run ]]; then
  nsl_print_head
  [[ -z $nsl_range_name ]] || nsl_print export NSYS_NVTX_PROFILER_REGISTER_ONLY=0
  nsl_print env "TMPDIR=$nsl_scratch" "${nsl_profile[@]}"
  nsl_print "${nsl_export[@]}"
  nsl_print mv -f "$nsl_part" "$nsl_stem.sqlite"
  exit 0
fi

nsl_options=(ranks "$nsl_ranks" max_ranks "$nsl_max_ranks" rank_cutoff "$nsl_cutoff" trace "$nsl_trace" sample "$nsl_sample" pytorch "$nsl_pytorch" stats "$nsl_stats" show_output "$nsl_show"
  cuda_graph_trace "$nsl_graph" capture_range "$nsl_range" nvtx_capture "$nsl_range_name" nsys_options "${nsl_more[*]-}")
nsl_find_facts nsys "$@"
nsl_record env "TMPDIR=$nsl_scratch" "${nsl_profile[@]}"

nsl_report=$nsl_stem.nsys-rep
[[ -e $nsl_report || ! -e $nsl_stem.qdrep ]] || nsl_report=$nsl_stem.qdrep   # before 2021.4
if [[ ! -s $nsl_report ]]; then
  nsl_why="error: nsys left no report (its exit code: $nsl_tool_code); its messages are above."
  [[ -z $nsl_range || $nsl_range == none ]] || nsl_why+=" Did the capture range ever start? ($nsl_range${nsl_range_name:+ $nsl_range_name})"
  nsl_finish '' "$nsl_why"
fi
nsl_export[5]=$nsl_report
nsl_last=
if ! { nsl_run_watched '' "${nsl_export[@]}" </dev/null >&2 && mv -f "$nsl_part" "$nsl_stem.sqlite"; }; then
  rm -f "$nsl_part"
  nsl_export[4]=--output=$nsl_stem.sqlite
  nsl_last="error: the report is there, but nsys could not export it (a full disk?). Later (for all ranks: nsightlens export-reports RUN_DIR): $(nsl_print "${nsl_export[@]}")"
fi
nsl_finish "$nsl_report" "$nsl_last"
