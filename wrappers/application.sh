#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR
# application.sh FOLDER TMPDIR COMMAND...: runs the command below a profiler, with the TMPDIR that it had (empty: none),
# and keeps its process id and exit code in FOLDER, whatever the profiler makes of them.
set -euo pipefail
# shellcheck source=supervise.sh
source "${BASH_SOURCE[0]%/*}/supervise.sh"

nsl_folder=$1
if [[ -n $2 ]]; then export TMPDIR=$2; else unset TMPDIR; fi
shift 2

# shellcheck disable=SC2329
nsl_say() { :; }
nsl_supervise '' "$nsl_folder/pid" "$nsl_folder/exit" "$@"
exit "$nsl_code"
