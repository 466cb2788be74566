#!/bin/bash
# Records one workload on all GPUs of this node with nsys, started by torchrun.
# Lines marked SITE are yours to change. `nsightlens wrappers wrappers` puts this into the folder of your code. There:
#   bash wrappers/jobs/torchrun_standalone.sh
# Where the choices are from: https://docs.pytorch.org/docs/stable/elastic/run.html (--standalone, --no-python, --tee).
set -euo pipefail

wrappers=${NSIGHTLENS_WRAPPERS:-$PWD/wrappers}                   # SITE: where these wrappers lie
app=(python train.py)                                            # SITE: your command
gpus=${GPUS:-4}                                                  # SITE: GPUs of this node

export NSIGHTLENS_RUN_ID=train-${gpus}gpus                       # SITE: workload and configuration
start=$(date +%Y%m%d-%H%M%S)
export NSIGHTLENS_RUN_DIR=$PWD/runs/$NSIGHTLENS_RUN_ID-$start

# --standalone gives this start an id of its own; --no-python, as the command is the wrapper; --tee=3 puts the
# rank before each line of output.
torchrun --standalone --no-python --tee=3 --nproc-per-node "$gpus" "$wrappers/nsys_wrapper.sh" "${app[@]}"

nsightlens ingest "$NSIGHTLENS_RUN_DIR"                          # SITE: if it is not installed here, run it where it is
