#!/bin/bash
# Records one workload on a virtual machine of your own, on all its GPUs: without a profiler, with torch.profiler, nsys and ncu.
# Lines marked SITE are yours to change. `nsightlens wrappers wrappers` puts this into the folder of your code. There:
#   bash wrappers/jobs/cloud_vm.sh
# Where the choices are from: https://docs.pytorch.org/docs/stable/elastic/run.html (--standalone, --no-python, --tee).
# Before the first time, as root: counters are for administrators only until the driver is set otherwise
# (https://developer.nvidia.com/ERR_NVGPUCTRPERM), and a machine image may hold a DCGM that keeps them (--pause-dcgm).
#   echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' >/etc/modprobe.d/nsight.conf && reboot
#   wrappers/nsys_wrapper.sh --self-check && wrappers/ncu_wrapper.sh --self-check        says whether both can record now
set -euo pipefail

wrappers=${NSIGHTLENS_WRAPPERS:-$PWD/wrappers}                   # SITE: where these wrappers lie
app=(python train.py)                                            # SITE: your command
gpus=${GPUS:-$( (nvidia-smi -L 2>/dev/null || echo one) | wc -l)}   # SITE: GPUs of this machine
start=$(date +%Y%m%d-%H%M%S)
run_dir=$PWD/runs/train-${gpus}gpus-$start                       # SITE: a disk that outlives the machine

# --tee=3 puts the rank before each line of output. ncu replays the kernels of one rank while the others wait: NCCL's time-out must
# allow that.
"$wrappers/capture_all.sh" --run-dir "$run_dir" --run-id "train-${gpus}gpus" --launcher "torchrun --standalone --no-python --tee=3 --nproc-per-node $gpus" \
  --ncu-options '--ranks 0 --launch-skip 200 --launch-count 50' -- "${app[@]}"

nsightlens ingest "$run_dir"                                     # SITE: if it is not installed here, copy the folder to where it is
