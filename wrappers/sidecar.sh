# shellcheck shell=bash disable=SC2154
# Writes the sidecar beside a capture (rank0003.run.json), for the wrappers, which source it after launch.sh.
# No environment goes into it, and what looks like a secret in the command line or an option is replaced by ***.

# shellcheck source-path=SCRIPTDIR source=secrets.sh
source "${BASH_SOURCE[0]%/*}/secrets.sh"

# Sets nsl_json to $1 as a JSON string, or to null where it is empty. Bytes that are no UTF-8 become U+FFFD.
nsl_json_text() { nsl_json_bytes "$1"; } 2>/dev/null   # where the user's locale is not installed, bash complains at each return to it

nsl_json_bytes() {
  local LC_ALL=C text=$1 out='' char code i=0 need
  [[ -n $text ]] || { nsl_json=null; return 0; }
  if [[ $text == *[!\ -~]* ]]; then
    while ((i < ${#text})); do
      char=${text:i:1}
      i=$((i + 1))
      printf -v code '%d' "'$char"
      code=$((code & 255))
      if ((code >= 32 && code < 127)); then
        case $char in '"' | \\) out+="\\$char" ;; *) out+=$char ;; esac
        continue
      elif ((code < 128)); then
        printf -v char '\\u%04x' "$code"
        out+=$char
        continue
      fi
      need=$(nsl_utf8_tail "${text:i-1:4}")
      if ((need)); then
        out+=${text:i-1:need+1}
        i=$((i + need))
      else
        out+='\ufffd'
      fi
    done
  else
    out=${text//\\/\\\\}
    out=${out//\"/\\\"}
  fi
  nsl_json="\"$out\""
}

# Prints how many bytes follow the first of a valid UTF-8 character; 0 where it is none.
nsl_utf8_tail() {
  local LC_ALL=C text=$1
  case $text in
    [$'\xc2'-$'\xdf'][$'\x80'-$'\xbf']*) echo 1 ;;
    $'\xe0'[$'\xa0'-$'\xbf'][$'\x80'-$'\xbf']* | [$'\xe1'-$'\xec'$'\xee'$'\xef'][$'\x80'-$'\xbf'][$'\x80'-$'\xbf']*) echo 2 ;;
    $'\xed'[$'\x80'-$'\x9f'][$'\x80'-$'\xbf']*) echo 2 ;;
    $'\xf0'[$'\x90'-$'\xbf'][$'\x80'-$'\xbf'][$'\x80'-$'\xbf']*) echo 3 ;;
    [$'\xf1'-$'\xf3'][$'\x80'-$'\xbf'][$'\x80'-$'\xbf'][$'\x80'-$'\xbf']*) echo 3 ;;
    $'\xf4'[$'\x80'-$'\x8f'][$'\x80'-$'\xbf'][$'\x80'-$'\xbf']*) echo 3 ;;
    *) echo 0 ;;
  esac
}

# Sets nsl_json to $1 where that is a number, else to null (empty, [N/A], [Not Supported]).
nsl_json_number() {
  nsl_json=null
  [[ ! $1 =~ ^(0|[1-9][0-9]*)(\.[0-9]+)?$ ]] || nsl_json=$1
}

# Sets nsl_json to the command line as a JSON array without secrets: at most 500 words of at most 1000 characters.
nsl_json_command() {
  local word out='' before=$'\1' count=0 nsl_takes=''
  for word in "$@"; do
    if ((${#word} > 1000)); then word=${word:0:1000}...; fi
    count=$((count + 1))
    ((count <= 500)) || { out+=',"..."'; break; }
    if nsl_word_is_secret "$before" "$word"; then nsl_text='***'; else nsl_redact_text "$word" word; fi
    nsl_json_text "$nsl_text"
    nsl_make_plain "$word"
    before=${before:${#before} > 200 ? ${#before} - 200 : 0}$nsl_text$'\1'
    [[ $nsl_json != null ]] || nsl_json='""'
    out+=${out:+,}$nsl_json
  done
  nsl_json="[$out]"
} 2>/dev/null

# --- versions ----------------------------------------------------------------------------------------------------------

# Prints what a command says, and gives up after 30 s (a driver that hangs must not hold the job).
nsl_ask() { nsl_run_watched 30 "$@" </dev/null 2>/dev/null || :; }

nsl_epoch_ns() {
  nsl_now=$(date +%s%N 2>/dev/null || :)
  [[ $nsl_now =~ ^[0-9]{19}$ ]] || nsl_now=
}

# Sets nsl_gpus (a JSON array, or null), nsl_driver and nsl_cuda from nvidia-smi, where that is installed.
nsl_find_gpus() {
  local line fields out='' item number
  nsl_gpus=null nsl_driver='' nsl_cuda=''
  type -P nvidia-smi >/dev/null || return 0
  while IFS= read -r line; do
    line=${line//, /,}
    IFS=, read -r -a fields <<<"$line"
    [[ ${#fields[@]} == 9 && ${fields[0]} =~ ^[0-9]+$ ]] || continue
    nsl_driver=${fields[3]}
    nsl_json_text "${fields[1]}"; item="{\"index\":$((10#${fields[0]})),\"name\":$nsl_json"
    nsl_json_text "${fields[2]}"; item+=",\"uuid\":$nsl_json"
    for number in 4:sm_clock_mhz 5:max_sm_clock_mhz 6:memory_clock_mhz 7:max_memory_clock_mhz 8:power_limit_w; do
      nsl_json_number "${fields[${number%%:*}]}"
      item+=",\"${number#*:}\":$nsl_json"
    done
    out+=${out:+,}$item'}'
  done < <(nsl_ask nvidia-smi --format=csv,noheader,nounits \
    --query-gpu=index,name,uuid,driver_version,clocks.current.sm,clocks.max.sm,clocks.current.memory,clocks.max.memory,power.limit)
  [[ -z $out ]] || nsl_gpus="[$out]"
  line=$(nsl_ask nvidia-smi)
  [[ ! $line =~ CUDA\ Version:\ *([0-9.]+) ]] || nsl_cuda=${BASH_REMATCH[1]}
}

# Sets nsl_torch and nsl_torch_cuda: as the command's own Python would import it, but read from its version file (an import takes
# seconds, and opens the GPU). $@: the command.
nsl_find_torch() {
  local found
  nsl_torch='' nsl_torch_cuda=''
  [[ ${1##*/} == python* ]] || return 0
  found=$(nsl_ask "$1" -c 'if True:
    import importlib.util, os, re
    spec = importlib.util.find_spec("torch")
    path = os.path.join(os.path.dirname(spec.origin), "version.py") if spec and spec.origin else None
    text = open(path).read() if path and os.path.exists(path) else ""
    for name in ("__version__", "cuda"):
        match = re.search(name + r"[^=\n]*=\s*[\x27\"]([^\x27\"]+)", text)
        print(match[1] if match else "")')
  { read -r nsl_torch || :; read -r nsl_torch_cuda || :; } <<<"$found"
}

# Looks once, before the start, for everything that does not change. $1: the profiler, or empty; the rest: the command.
nsl_find_facts() {
  local said
  nsl_tool_version=
  if [[ -n $1 ]]; then
    said=$(nsl_ask "$1" --version)
    [[ ! $said =~ ([0-9]+(\.[0-9]+)+[-.0-9A-Za-z]*) ]] || nsl_tool_version=${BASH_REMATCH[1]}
  fi
  shift
  nsl_find_gpus
  nsl_find_torch "$@"
  nsl_commit=
  ! type -P git >/dev/null || nsl_commit=$(nsl_ask git rev-parse HEAD)
  [[ $nsl_commit =~ ^[0-9a-f]{40,64}$ ]] || nsl_commit=
  nsl_json_command "$@"
  nsl_command=$nsl_json
}

# --- the file ----------------------------------------------------------------------------------------------------------

nsl_options=()   # name value name value ...: what the wrapper was told, or took for granted

# Writes the sidecar. $1: the report that lies beside it, or empty. The exit code is null until the application has ended.
nsl_write_sidecar() {
  local file=$nsl_stem.run.json hidden=${nsl_stem%/*}/.${nsl_stem##*/}.run.json.$$ out='' i item
  nsl_member() { out+="${out:+,}"$'\n'"  \"$1\": $2"; }
  nsl_text_member() { nsl_json_text "$2"; nsl_member "$1" "$nsl_json"; }
  nsl_number_member() { nsl_json_number "$2"; nsl_member "$1" "$nsl_json"; }
  nsl_text_member run "$nsl_run"
  nsl_text_member execution_id "$nsl_execution"
  nsl_number_member rank "$nsl_rank"
  nsl_number_member world_size "$nsl_world_size"
  nsl_number_member local_rank "$nsl_local_rank"
  nsl_text_member host "$nsl_host"
  nsl_text_member launcher "$nsl_launcher"
  nsl_text_member tool "$nsl_tool"
  nsl_text_member tool_version "$nsl_tool_version"
  nsl_member command "$nsl_command"
  nsl_text_member working_directory "$PWD"
  nsl_text_member git_commit "$nsl_commit"
  nsl_text_member driver_version "$nsl_driver"
  nsl_text_member cuda_version "$nsl_cuda"
  nsl_text_member torch_version "$nsl_torch"
  nsl_text_member torch_cuda_version "$nsl_torch_cuda"
  nsl_text_member cuda_visible_devices "${CUDA_VISIBLE_DEVICES-}"
  nsl_member gpus "$nsl_gpus"
  item=
  for ((i = 0; i < ${#nsl_options[@]}; i += 2)); do
    nsl_json_text "${nsl_options[i]}"; item+="${item:+, }$nsl_json"
    nsl_takes='' nsl_redact_text "${nsl_options[i + 1]}" 2>/dev/null
    nsl_json_text "$nsl_text"; item+=": $nsl_json"
  done
  nsl_member options "{$item}"
  nsl_number_member started_epoch_ns "${nsl_started-}"
  nsl_number_member ended_epoch_ns "${nsl_ended-}"
  nsl_number_member exit_code "${nsl_code-}"
  nsl_text_member report "${1##*/}"
  { printf '{%s\n}\n' "$out" >"$hidden" && mv -f "$hidden" "$file"; } 2>/dev/null || { rm -f "$hidden"; return 1; }
}

# Runs the profiler on the application, with the sidecar written before and after. $@: what to run; nsl_code: the exit code.
nsl_record() {
  nsl_code='' nsl_ended=''
  nsl_launcher_lives || nsl_die 1 "the launcher has ended meanwhile. Nothing was started."
  nsl_epoch_ns; nsl_started=$nsl_now
  nsl_claim
  nsl_write_sidecar '' || { rm -f "$nsl_stem.run.json"; nsl_die 1 "cannot write $nsl_stem.run.json: a full disk or quota. Nothing was started."; }
  nsl_profile "$@"
  nsl_epoch_ns; nsl_ended=$nsl_now
}

# Writes the last word into the sidecar and ends as the application did. $1: the report, or empty; $2: a last line, or empty.
nsl_finish() {
  nsl_write_sidecar "$1" || nsl_say "error: cannot write $nsl_stem.run.json: a full disk or quota"
  [[ -z $2 ]] || nsl_say "$2"
  exit "$nsl_code"
}
