#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# Runs each rank without a profiler, for the true step time: only the sidecar is written, and the workload gets its folder and tool
# (NSIGHTLENS_RUN_DIR, NSIGHTLENS_TOOL), so that it can leave rank0003.steps.json there.
set -euo pipefail
nsl_here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
# shellcheck source=launch.sh
source "$nsl_here/launch.sh"
# shellcheck source=supervise.sh
source "$nsl_here/supervise.sh"
# shellcheck source=sidecar.sh
source "$nsl_here/sidecar.sh"

usage() {
  cat <<USAGE
Usage: plain_wrapper.sh [options] COMMAND...
Runs the command as it is, and writes DIR/plain/rank0003.run.json. Its exit code is the command's.

$nsl_usage_common
USAGE
}

nsl_tool=plain
while (($#)); do
  [[ $1 == -* && $1 != -- ]] || break
  nsl_common_option "$@"
  ((nsl_taken)) || nsl_die 2 "no such option: $1 (see --help)"
  ((nsl_taken <= $#)) || nsl_die 2 "$1 needs a value (see --help)"
  shift "$nsl_taken"
done
[[ ${1-} != -- ]] || shift

nsl_begin '' all "$@"
if [[ -n $nsl_dry_run ]]; then
  nsl_print_head
  nsl_print bash "$nsl_here/application.sh" "$nsl_scratch" "${TMPDIR-}" "$@"
  exit 0
fi
nsl_options=(ranks "$nsl_ranks" max_ranks "$nsl_max_ranks" rank_cutoff "$nsl_cutoff")
nsl_find_facts '' "$@"
nsl_record bash "$nsl_here/application.sh" "$nsl_scratch" "${TMPDIR-}" "$@"
nsl_finish '' ''
