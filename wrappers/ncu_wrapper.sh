#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Measures kernels of a rank with Nsight Compute: put it between the launcher and the command.
#   srun -n 1 ncu_wrapper.sh -k regex:gemm --set roofline python app.py
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
Usage: ncu_wrapper.sh [options] COMMAND...
Measures kernels with Nsight Compute into DIR/ncu/rank0003.ncu-rep, .raw.csv, .details.csv and .run.json. Its exit code is the
command's. Collective kernels are never measured: each would wait for ranks that wait for it.

$nsl_usage_common
                       default here: --ranks 0, as the others wait while one is measured
  --set roofline|detailed|full|basic|minimal   what to measure (default roofline; minimal: the counters of a roofline, few passes)
  -k, --kernel-name NAME|regex:EXPR   which kernels: exact base name, or an expression found in it; a name with < ( :: or cutlass
                       is looked for in the full (demangled) name, as every CUTLASS kernel's base name is Kernel or Kernel2
                       (default: every kernel whose base name does not begin like a collective's)
  --kernel-name-base auto|function|demangled|mangled   what NAME is compared with (default auto, see above)
  -s, --launch-skip N  launches that match and are passed over (default 0)
  -c, --launch-count N launches that are measured (default 50; each is replayed up to dozens of times)
  --clock-control base|none   base: clocks locked low, comparable; none: the clocks as they are (default base)
  --cache-control all|none    all: caches are flushed before each pass; none: as they are (default all)
  --replay-mode kernel|application|range|app-range   how the passes are repeated (default kernel)
  --self-check[=S]     measure one kernel on each rank, read it back, delete it, and say what fails and what helps; what takes
                       longer than S seconds (default 10) is ended, and counts as failed
  --pause-dcgm         pause DCGM's own use of the counters (dcgmi profile --pause), and resume it at the end, whatever happens
  --ncu-option OPTION  one more option for ncu, such as --ncu-option=--call-stack; may be repeated
USAGE
}

nsl_tool=ncu nsl_what=roofline nsl_kernel='' nsl_base=auto nsl_skip=0 nsl_count=50 nsl_clocks=base nsl_caches=all nsl_replay=kernel nsl_pause='' nsl_checking='' nsl_more=()
while (($#)); do
  [[ $1 == -* && $1 != -- ]] || break
  nsl_common_option "$@"
  if [[ $1 == --pause-dcgm ]]; then nsl_pause=1 nsl_taken=1
  elif nsl_takes_self_check "$1"; then :
  elif ((!nsl_taken)); then
    nsl_value_option "$@"
    case $nsl_option in
      --set) nsl_what=$nsl_value; nsl_one_of "$nsl_option" "$nsl_what" roofline detailed full basic minimal ;;
      -k | --kernel-name) nsl_kernel=$nsl_value ;;
      --kernel-name-base) nsl_base=$nsl_value; nsl_one_of "$nsl_option" "$nsl_base" auto function demangled mangled ;;
      -s | --launch-skip) nsl_skip=$nsl_value ;;
      -c | --launch-count) nsl_count=$nsl_value ;;
      --clock-control) nsl_clocks=$nsl_value; nsl_one_of "$nsl_option" "$nsl_clocks" base none ;;
      --cache-control) nsl_caches=$nsl_value; nsl_one_of "$nsl_option" "$nsl_caches" all none ;;
      --replay-mode) nsl_replay=$nsl_value; nsl_one_of "$nsl_option" "$nsl_replay" kernel application range app-range ;;
      --ncu-option) nsl_more+=("$nsl_value") ;;
      *) nsl_die 2 "no such option: $1 (see --help)" ;;
    esac
    [[ -n $nsl_value ]] || nsl_die 2 "$nsl_option needs a value (see --help)"
  fi
  ((nsl_taken <= $#)) || nsl_die 2 "$1 needs a value (see --help)"
  shift "$nsl_taken"
done
[[ ${1-} != -- ]] || shift
[[ $nsl_skip =~ ^[0-9]{1,9}$ ]] || nsl_die 2 "--launch-skip $nsl_skip: give a number"
[[ $nsl_count =~ ^[1-9][0-9]{0,8}$ ]] || nsl_die 2 "--launch-count $nsl_count: give a number from 1"

# The counters that a roofline needs. A name that a GPU does not have is answered by n/a, so that one list serves all.
minimal_metrics() {
  local op path list
  list=gpu__time_duration.sum,sm__cycles_elapsed.avg.per_second,smsp__cycles_elapsed.avg.per_second
  list+=,dram__bytes.sum,dram__bytes.sum.per_second,dram__bytes.sum.peak_sustained,dram__cycles_elapsed.avg.per_second
  list+=,lts__t_bytes.sum,lts__lts2xbar_cycles_active.sum,lts__lts2xbar_cycles_active.sum.per_second
  list+=,lts__lts2xbar_cycles_active.sum.peak_sustained,lts__cycles_elapsed.avg.per_second
  list+=,l1tex__cycles_elapsed.avg.per_second,launch__registers_per_thread
  for op in fadd fmul ffma dadd dmul dfma hadd hmul hfma; do list+=,smsp__sass_thread_inst_executed_op_${op}_pred_on.sum; done
  for op in ffma dfma hfma; do list+=,sm__sass_thread_inst_executed_op_${op}_pred_on.sum.peak_sustained; done
  for path in '' _mem_lg _mem_lgds; do
    list+=,l1tex__lsu_writeback_active$path.sum,l1tex__lsu_writeback_active$path.sum.per_second
    list+=,l1tex__lsu_writeback_active$path.sum.peak_sustained
  done
  list+=,sm__inst_executed_pipe_tensor.sum,sm__inst_executed_pipe_tensor.sum.peak_sustained
  for path in fp16_bf16_tf32_dst_fp32 bf16_dst_fp32 fp16_dst_fp32 fp16_dst_fp16 fp16 tf32_dst_fp32 fp64 int8 int4 int1 \
    bf16_dst_fp32_sparsity_off fp16_dst_fp32_sparsity_off fp16_dst_fp16_sparsity_off tf32_dst_fp32_sparsity_off \
    bf16_dst_fp32_sparsity_on fp16_dst_fp32_sparsity_on fp16_dst_fp16_sparsity_on tf32_dst_fp32_sparsity_on \
    int8_sparsity_off int8_sparsity_on fp8_sparsity_off fp8_sparsity_on \
    fp4_dst_fp32 fp4_fp6_fp8_dst_fp16 fp4_fp6_fp8_dst_fp32; do
    list+=,sm__ops_path_tensor_src_$path.sum,sm__ops_path_tensor_src_$path.sum.peak_sustained
  done
  echo "$list"
}

# How the base names of collective kernels begin: of NCCL, NVSHMEM and frameworks.
nsl_collectives=(nccl nvshmem multimem_ cross_device_reduce one_shot_all two_shot_all oneShotAll twoShotAll userbuffers_ wait_signal
  allreduce all_reduce allgather all_gather alltoall all_to_all reducescatter reduce_scatter)
# Names that an expression of the user must not find.
nsl_samples=('ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)' ncclDevKernel_AllGather_RING_LL
  ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL ncclDevKernel_Broadcast_RING_LL ncclDevKernel_SendRecv
  'ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)' nvshmemi_transfer_rma_kernel)

# Appends to expression: what follows begins with none of the words. Nothing but ^ $ ( | ) [^...] is used, which every kind of
# regular expression has: ncu does not document its own, so that (?!...) might be refused there.
append_other_than() {
  local word letter letters='' rest whole i
  for word; do
    letter=${word:0:1}
    [[ $letters == *"$letter"* ]] || letters+=$letter
  done
  expression+="(\$|[^$letters]"
  for ((i = 0; i < ${#letters}; i++)); do
    letter=${letters:i:1} rest=() whole=''
    for word; do
      [[ $word == "$letter"* ]] || continue
      rest+=("${word:1}")
      [[ $word != "$letter" ]] || whole=1
    done
    [[ -z $whole ]] || continue
    expression+="|$letter"
    append_other_than "${rest[@]}"
  done
  expression+=')'
}

# Ends with 0 where the expression ($2) is found in $1, with 1 where not, with 2 where bash has no such expressions.
finds() { [[ $1 =~ $2 ]]; }

# Dies where what is asked for names a collective, or is an expression that finds one.
refuse_collectives() {
  local name why="a collective kernel cannot be measured. It waits for the other ranks, and ncu replays it alone. nsys shows its time." found=0
  if [[ $1 != regex:* ]]; then
    for name in "${nsl_collectives[@]}"; do [[ $1 != "$name"* && $1 != *::"$name"* ]] || nsl_die 2 "-k $1: $why"; done
    return 0
  fi
  for name in "${nsl_samples[@]}"; do
    found=0
    [[ $nsl_base != function ]] || name=${name%%(*}
    finds "$name" "${1#regex:}" 2>/dev/null || found=$?
    ((found != 0)) || nsl_die 2 "-k $1 finds ${name%%(*} too, and $why Give more of the name, or anchor it: regex:^gemm"
    ((found == 1)) || break
  done
  ((found == 1)) || nsl_say "warning: -k $1 cannot be checked here: make sure that it matches no collective kernel"
}

# Sets nsl_filter, the kernel filter as ncu's options: what is asked for, and never a collective.
choose_filter() {
  local expression escaped special
  if [[ -z $nsl_kernel ]]; then
    expression='regex:^'
    append_other_than "${nsl_collectives[@]}"
    nsl_base=function
    nsl_filter=(--kernel-name-base function --kernel-name "$expression.*")
    return 0
  fi
  if [[ $nsl_base == auto ]]; then
    nsl_base=function
    case $nsl_kernel in
      *'<'* | *::* | *cutlass* | *'\('*) nsl_base=demangled ;;
      regex:*) ;;   # there ( only groups
      *'('*) nsl_base=demangled ;;
    esac
  fi
  refuse_collectives "$nsl_kernel"
  case ${nsl_kernel#regex:} in
    Kernel | Kernel2 | '^Kernel' | '^Kernel2' | '^Kernel$' | '^Kernel2$')
      nsl_say "warning: $nsl_kernel is the base name of every CUTLASS kernel: name one with -k 'regex:cutlass_80_...'" ;;
  esac
  if [[ $nsl_kernel != regex:* && $nsl_base == demangled ]]; then
    escaped=${nsl_kernel//\\/\\\\}
    for special in '.' '[' ']' '(' ')' '{' '}' '*' '+' '?' '^' '$' '|'; do escaped=${escaped//"$special"/\\$special}; done
    nsl_filter=(--kernel-name-base demangled --kernel-name "regex:$escaped")
  else
    nsl_filter=(--kernel-name-base "$nsl_base" --kernel-name "$nsl_kernel")
  fi
}
choose_filter
if [[ -n $nsl_checking ]]; then   # not --set: the few counters of minimal show as well whether there is access
  nsl_self_check ncu --set minimal --clock-control "$nsl_clocks" ${nsl_pause:+--pause-dcgm} ${nsl_more[@]+"${nsl_more[@]/#/--ncu-option=}"}
fi
nsl_begin ncu 0 "$@"
if [[ $nsl_world_size != 1 ]]; then
  nsl_say "warning: the other ranks wait (MPI or NCCL) while kernels of rank $nsl_rank are replayed, and may run into a time-out. Measure a" \
    "job of one rank if you can; with PyTorch else a long time-out (init_process_group(timeout=timedelta(hours=2)), TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=7200), -k and a small --launch-count"
fi

if [[ $nsl_what == minimal ]]; then nsl_collect=(--metrics "$(minimal_metrics)"); else nsl_collect=(--set "$nsl_what"); fi
nsl_help=$(nsl_ask ncu --help)
nsl_names=() nsl_details=(--print-details all) nsl_ranges=(--nvtx)   # steps and layers: what says which launch was measured
[[ ($nsl_help != *--export* || $nsl_help == *--nvtx*) && " ${nsl_more[*]-} " != *" --nvtx "* ]] || nsl_ranges=()
[[ $nsl_help != *--rename-kernels* ]] || nsl_names=(--rename-kernels off)
[[ $nsl_help != *--details-all* || $nsl_help == *--print-details* ]] || nsl_details=(--details-all)

nsl_profile=(ncu "${nsl_collect[@]}" "${nsl_filter[@]}" ${nsl_ranges[@]+"${nsl_ranges[@]}"} --launch-skip "$nsl_skip" --launch-count "$nsl_count" --clock-control "$nsl_clocks"
  --cache-control "$nsl_caches" --replay-mode "$nsl_replay" --target-processes all --export "$nsl_output" --force-overwrite
  --log-file "$nsl_output.ncu.log")
nsl_check_options ncu "$nsl_help" --export "${#nsl_profile[@]}" "${nsl_profile[@]}" ${nsl_more[@]+"${nsl_more[@]}"}
nsl_profile+=(${nsl_more[@]+"${nsl_more[@]}"} bash "$nsl_here/application.sh" "$nsl_scratch" "${TMPDIR-}" "$@")
nsl_import=(env LC_ALL=C ncu --import "$nsl_stem.ncu-rep" --csv --print-units base ${nsl_names[@]+"${nsl_names[@]}"})
nsl_check_options ncu "$nsl_help" --export 99 "${nsl_import[@]}" --page raw "${nsl_details[@]}"

# Prints the command that writes one page of the report.
print_page() { printf '%s > %q\n' "$(nsl_print "${nsl_import[@]}" --page "$@")" "$nsl_stem.$1.csv"; }

if [[ -n $nsl_dry_run ]]; then
  nsl_print_head
  [[ -z $nsl_pause ]] || nsl_print dcgmi profile --pause
  nsl_print "${nsl_profile[@]}"
  [[ -z $nsl_pause ]] || nsl_print dcgmi profile --resume
  print_page raw
  print_page details "${nsl_details[@]}"
  exit 0
fi

nsl_options=(ranks "$nsl_ranks" max_ranks "$nsl_max_ranks" rank_cutoff "$nsl_cutoff" set "$nsl_what" kernel_name "$nsl_kernel" kernel_name_base "$nsl_base"
  kernel_filter "${nsl_filter[3]}" launch_skip "$nsl_skip" launch_count "$nsl_count" clock_control "$nsl_clocks" cache_control "$nsl_caches"
  replay_mode "$nsl_replay" ncu_options "${nsl_more[*]-}")
nsl_find_facts ncu "$@"
if [[ -n $nsl_pause ]]; then
  nsl_dcgm_paused=1   # before the command: whatever comes, it is resumed
  dcgmi profile --pause >/dev/null 2>&1 ||
    nsl_say "warning: dcgmi profile --pause failed: is DCGM here, and may you? Where it holds the counters, ncu says so at its end"
fi
nsl_record "${nsl_profile[@]}"

# Writes one page of the report: whole, or not at all.
write_page() {
  local file=$nsl_stem.$1.csv hidden=${nsl_stem%/*}/.${nsl_stem##*/}.$1.csv.$$
  if { nsl_run_watched '' "${nsl_import[@]}" --page "$1" "${@:2}" </dev/null >"$hidden"; } && [[ -s $hidden ]] && mv -f "$hidden" "$file"; then return 0; fi
  rm -f "$hidden"
  return 1
}

# Prints the last line for a start that left no report: the reason, as far as ncu's log says, and the fix.
why_nothing() {
  local log=
  log=$(tail -c 65536 "$nsl_stem.ncu.log" 2>/dev/null | tr -d '\0' || :)
  case $log in
    *ERR_NVGPUCTRPERM*)
      echo "error: the GPU's counters are restricted to administrators here (ERR_NVGPUCTRPERM). The administrator sets the module option" \
        "NVreg_RestrictProfilingToAdminUsers=0 of nvidia and reloads it; in a container, start it with --cap-add=SYS_ADMIN; on a cluster, ask for its profiling constraint" ;;
    *[Dd]"river resource was unavailable"*)
      echo "error: another program holds the GPU's counters (a driver resource was unavailable), most often DCGM: --pause-dcgm pauses it" \
        "(dcgmi profile --pause, and --resume afterwards); on a cluster, use its job option for that" ;;
    *"No kernels were profiled"* | *"No metrics to collect"*)
      echo "error: no kernel was profiled: none matched ${nsl_kernel:+-k $nsl_kernel }after --launch-skip $nsl_skip. List the names with nsys, then correct -k" \
        "(a base name has neither namespace nor < >; regex:PART finds a part of it) or lower --launch-skip" ;;
    *) echo "error: ncu left no report (its exit code: $nsl_tool_code); see $nsl_stem.ncu.log" ;;
  esac
}

nsl_report=$nsl_stem.ncu-rep
if [[ ! -s $nsl_report ]]; then
  [[ ! -s $nsl_stem.ncu.log ]] || tail -n 5 "$nsl_stem.ncu.log" >&2
  nsl_finish '' "$(why_nothing)"
fi
nsl_last=
write_page raw && write_page details "${nsl_details[@]}" ||
  nsl_last="error: the report is there, but ncu could not print it (a full disk?). Later: $(print_page raw)"
nsl_finish "$nsl_report" "$nsl_last"
