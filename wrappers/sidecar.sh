# shellcheck shell=bash disable=SC2154
# Writes the sidecar beside a capture (rank0003.run.json), for the wrappers, which source it after launch.sh.
# No environment goes into it, and what looks like a secret in the command line or an option is replaced by ***.

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

# --- secrets: what nsightlens/discovery/secrets.py strikes; the regular expressions have its names ------------------------

nsl_assignment='([A-Za-z0-9_.+-]+)(\\*["'\'']|%22)?[])]?((\\?[[:space:]])*)([:+?]?=>?|:-|: ?str ?=|: ?bytes ?=|: ?string ?=|: ?SecretStr ?=|:|,|%(25)*3[AaDd])?((\\?[[:space:]])*)'
nsl_scheme='((bearer|basic|digest|token|negotiate|apikey|!![a-z0-9_]{1,20})(\\?[[:space:]])+)?'
nsl_chunk='(\\.|[^[:space:];&|"'\''\])+'
nsl_quoted='([$]|[rbuf]{1,2})?(\\+"[^"]*"?|\\+'\''[^'\'']*'\''?|"([^"\]|\\.)*"?|'\''([^'\''\]|\\.)*'\''?)'
nsl_quoted+='([a-z0-9_$/+=-]+|'\''[^'\''[:space:]]*'\''|"[^"[:space:]]*")*'
nsl_group='(\([^)]*\)?|\[[^]]*\]?|\{[^}]*\}?)'
nsl_one="($nsl_quoted|$nsl_group($nsl_chunk)?|$nsl_chunk('[^'[:space:]]*'|\"[^\"[:space:]]*\"|$nsl_chunk)*)"
nsl_header="([a-z][a-z0-9_-]*(\\\\?[[:space:]])+)?$nsl_one([;,]?[[:space:]]*[a-z0-9_.-]+=$nsl_one)*"

# Sets nsl_strictness to the kind of secret that $1 names: always, no_count, if_random, or nothing.
nsl_name_kind() {
  local LC_ALL=C noun=$1 keys='(api|access|account|auth|private|signing|encryption|shared|storage|subscription|master|service|deploy|license|ssh)_?key'
  nsl_strictness=
  while [[ $noun =~ ^(.*[a-z0-9])([A-Z].*)$ ]]; do noun=${BASH_REMATCH[1]}_${BASH_REMATCH[2]}; done
  noun=${noun,,} noun=${noun//[.+-]/_}
  [[ $noun =~ ^[_0-9]*(.*[^_0-9])[_0-9]*$ ]] || return 0
  noun=${BASH_REMATCH[1]}
  while [[ $noun =~ ^(.*)_(value|read|write|prod|dev|test)$ ]]; do noun=${BASH_REMATCH[1]}; done
  if [[ $noun =~ (file|path|dir)s?$|_(directory|folder|name|type|length|len|count|size|limit|policy|provider|helper|stdin)$ ||
    $noun =~ (^|_)(bos|eos|pad|unk|sep|cls|mask|stop|start|end|image|special)_?tokens?$ ]]; then
    return 0
  elif [[ $noun =~ secret($|[^a]|a[^r])|passw|passphrase|credential|authorization|$keys|(^|_)(jwt|otp)$|sess(ion)?id$ ||
    $noun =~ (db|pg|sql|user|root|admin|proxy|smtp|ftp|ssh|my)_?pass$ ]]; then
    nsl_strictness=always
  elif [[ $noun =~ token$|(^|(^|_)(hf|api|auth|access|secret|refresh)_?)tokens$|cookies?$|(^|_)(auth|bearer|pw)$|_pwd$ ]]; then
    nsl_strictness=no_count
  elif [[ $noun =~ (^|_)(pass|pwd|sig|signature)$ ]]; then
    nsl_strictness=if_random
  fi
}

# Whether $2 is a secret where it is the value of the name $1. $3: not empty where that may be a word of a sentence.
nsl_hides() {
  local LC_ALL=C value=$2 number='^([-+]?[0-9]{1,9}(\.[0-9]*)?[kmgb]?|[a-z0-9_][a-z0-9_.]*[[(].*)$'
  nsl_name_kind "$1"
  while [[ $value == ["'\"\\,)}]"]* ]]; do value=${value#?}; done
  while [[ $value == *["'\"\\,)}]"] ]]; do value=${value%?}; done
  [[ -n $nsl_strictness && -n $value ]] || return 1
  case ${value,,} in true | false | yes | no | on | off | none | null | auto | bearer | basic | digest | negotiate) return 1 ;; esac
  if [[ $nsl_strictness == no_count && -z $3 ]]; then
    [[ ! ${value,,} =~ $number ]]
  else
    [[ $nsl_strictness == always || ${1,,} == x-* ]] || nsl_is_random "$value"
  fi
}

nsl_is_random() {
  local long='^[A-Za-z0-9_%+=-][A-Za-z0-9_%+/=-]{15,}$' mixed='^[A-Za-z0-9_%+=-][A-Za-z0-9_%+/=!#@$^*-]{7,}$'
  [[ $1 == *[0-9]* && ( $1 =~ $long || ( $1 == *[a-z]* && $1 == *[A-Z]* && $1 =~ $mixed ) ) ]]
}

# Sets nsl_takes to the options by which the program $1 takes a password; leaves it for any other word.
nsl_password_options() {
  case $1 in
    mysql | mysqldump | mysqladmin | mariadb | sshpass | login) nsl_takes=' -p ' ;;
    redis-cli) nsl_takes=' -a ' ;;
    curl) nsl_takes=' -u -U -b --user --proxy-user ' ;;
  esac
}

# Sets nsl_text to $1 without the secrets in it. $2: not empty for a word of a command, where NAME=VALUE goes to its end.
nsl_redact_text() {
  local LC_ALL=C low visible triggers='secret|pass|credential|key|auth|token|cookie|bearer|sig|pw|jwt|otp|sess(ion)?id|curl|login|redis-cli|mysql|mariadb'
  nsl_drop_invisible "$1"
  visible=$nsl_text low=${nsl_text,,}
  [[ ! $low =~ $triggers && -z ${nsl_takes// /} ]] || nsl_redact_named "${2:+$'\1'}"
  [[ $nsl_text != *//*@* && $nsl_text != *:/*@* ]] || nsl_redact_urls
  nsl_redact_shapes
  [[ $nsl_text != "$visible" ]] || nsl_text=$1
}

nsl_drop_invisible() {
  nsl_text=$1
  [[ $nsl_text == *[!\ -~]* ]] || return 0
  nsl_text=${nsl_text//$'\xe2\x80'[$'\x8b'-$'\x8f'$'\xaa'-$'\xae']/}
  nsl_text=${nsl_text//$'\xe2\x81'[$'\xa0'-$'\xa9']/}
  nsl_text=${nsl_text//$'\xef\xb8'[$'\x80'-$'\x8f']/} nsl_text=${nsl_text//$'\xef\xbb\xbf'/}
  nsl_text=${nsl_text//$'\xc2\xad'/} nsl_text=${nsl_text//$'\xe1\xa0\x8e'/}
}

nsl_redact_named() {
  local rest=$nsl_text out='' opening=$1 gap='' shown name quote before sign after
  while [[ $rest =~ $nsl_assignment ]]; do
    shown=${BASH_REMATCH[0]} name=${BASH_REMATCH[1]} quote=${BASH_REMATCH[2]} before=${BASH_REMATCH[3]} sign=${BASH_REMATCH[5]} after=${BASH_REMATCH[7]}
    gap+=${rest%%[A-Za-z0-9_.+-]*}
    out+=${rest%%[A-Za-z0-9_.+-]*}
    [[ -z $out ]] || opening=${out: -1}
    rest=${rest#"${rest%%[A-Za-z0-9_.+-]*}$shown"}
    [[ -n $after || $sign$rest != ==* && $sign$rest != ::* ]] || sign=
    [[ ! ${gap//\\$'\n'/} =~ [\;\&\|][[:space:]]|$'\n' ]] || nsl_takes=
    gap=${shown#"$name"}
    nsl_password_options "$name"
    if nsl_takes_password || nsl_takes_value; then
      shown+='***' rest=${rest:${#nsl_value}} gap='' nsl_takes=${nsl_takes/" $name "/ }
    fi
    out+=$shown
  done
  nsl_text=$out$rest
}

# Whether a password stands behind the name that was found: then nsl_value is that.
nsl_takes_password() {
  if [[ -n $nsl_takes && $nsl_takes == *" ${name:0:2} "* && ${#name} -gt 2 ]]; then
    rest=${shown:2}$rest shown=${name:0:2}   # mysql -pPASSWORD
    name=$shown
    if [[ $opening == $'\1' ]]; then nsl_value=$rest; return; fi
  elif [[ -z $nsl_takes || $nsl_takes != *" $name "* || $rest == -* || $shown == "$name" ]]; then
    return 1
  fi
  nsl_find_value && [[ $name != -b || $nsl_value == *=* ]]
}

# Whether a secret is assigned to the name that was found: then nsl_value is that.
nsl_takes_value() {
  local vague='' header='' call='[A-Za-z0-9_]\([[:space:]]*\\*["'\'']$'
  local setter='((^|[^A-Za-z0-9_-])--?g?env|setenv|config[[:space:]]+set|set[[:space:]]+-[a-z]+)[[:space:]]+$'
  nsl_name_kind "$name"
  [[ -n $nsl_strictness ]] || return 1
  case $sign in
    '')
      [[ -n $before$after && $rest != --* && $rest != ["'\""]--* ]] && [[ $name == -* || ${name,,} == bearer || $out =~ $setter ]] || return 1
      [[ $name != bearer || -n $quote ]] || vague=1
      ;;
    ,) [[ -n $quote && $rest == ["'\"\\"]* && $rest != ["'\""]--* ]] && [[ $name == -* || $out =~ $call ]] || return 1 ;;
    :*)
      [[ $sign != : || ! ${name,,} =~ (cookie|authorization)$ ]] || header=1
      [[ -z $quote && $sign == : && $name != -* && -z $header ]] && [[ -z $after || $out == *[A-Za-z0-9_][[:blank:]] ]] && vague=1
      ;;
    *) [[ $name != -* || -z $after || -n $before ]] || return 1 ;;
  esac
  nsl_find_value "$header" || return 1
  [[ $opening == [\?\&\;] && ! ( ${name,,} == pwd && $nsl_value == [/~.]* ) ]] || nsl_hides "$name" "$nsl_value" "$vague" || return 1
  [[ -n $sign && -z $quote ]] || return 0
  case $opening in
    $'\1') nsl_value=$rest ;;
    [\'\"]) [[ $rest != *"$opening"* || $rest == "$opening"* ]] || nsl_value=${rest%%"$opening"*} ;;
  esac
}

# Sets nsl_value to the value at the start of the rest. $1: not empty for that of a header.
nsl_find_value() {
  local low=${rest,,}
  if [[ -n ${1-} ]]; then [[ $low =~ ^$nsl_header ]]; else [[ $low =~ ^$nsl_scheme$nsl_quoted || $low =~ ^$nsl_scheme$nsl_one ]]; fi || return 1
  nsl_value=${rest:0:${#BASH_REMATCH[0]}}
}

nsl_redact_urls() {
  local rest=$nsl_text out='' scheme start user
  local url='((([A-Za-z][A-Za-z0-9+.-]*):/{1,2})|//)([^/@:"'\''[:space:]]*:[^"'\''[:space:]]*@|[^/@:"'\''[:space:]]+@)'
  while [[ $rest =~ $url ]]; do
    start=${BASH_REMATCH[1]} scheme=${BASH_REMATCH[3],,} user=${BASH_REMATCH[4]}
    out+=${rest%%"${BASH_REMATCH[0]}"*}$start
    rest=${rest#*"${BASH_REMATCH[0]}"}
    if [[ ( $user != *:* && $scheme =~ ^(abfss?|wasbs?|ssh|git\+ssh|sftp|rsync)?$ ) || $user =~ ^[^:]*:[0-9]{1,5}[/?#] ]]; then
      out+=$user
    else
      out+='***@'
    fi
  done
  nsl_text=$out$rest
}

nsl_redact_shapes() {
  local rest=$nsl_text out='' word=A-Za-z0-9_- shape
  shape="hf_[A-Za-z0-9]{12,}|gh[opsu]_[A-Za-z0-9]{12,}|(github_pat_|glpat-|nvapi-|npm_|pypi-|dop_v1_|xapp-|tskey-)[$word]{12,}"
  shape+="|(gsk|r8)_[A-Za-z0-9]{16,}|sk-[A-Za-z_-]{0,40}[0-9][$word]{12,}|[rs]k_live_[A-Za-z0-9_]{12,}|xox[abeprs]-[$word]{10,}"
  shape+="|A[KS]IA[A-Z0-9]{12,}|AIza[$word]{30,}|ya29\.[$word]{12,}|eyJ[$word]{8,}(\.[A-Za-z0-9_.-]+)?"
  while [[ $rest =~ (^|[^A-Za-z0-9_])($shape)($|[^A-Za-z0-9_]) ]]; do
    out+=${rest%%"${BASH_REMATCH[2]}"*}'***'
    rest=${rest#*"${BASH_REMATCH[2]}"}
  done
  rest=$out$rest
  [[ $rest != *'-----BEGIN '*'PRIVATE KEY-----'* ]] || rest=${rest%%-----BEGIN *}'***'
  nsl_text=$rest
}

# Whether the word $2 is a secret for what stands before it. $1: the words before, each with a \1 before and behind it.
nsl_word_is_secret() {
  local LC_ALL=C before=$1 word=$2 end=$'\1' name='[A-Za-z0-9_.+-]+' last
  last=${before%"$end"} last=${last##*"$end"}
  if [[ $word != -* && $nsl_takes == *" $last "* && -n $last ]] && [[ $last != -b || $word == *=* ]]; then
    nsl_takes=${nsl_takes/" $last "/ }
  elif [[ $before =~ [^A-Za-z0-9_.+-]([Bb]earer)$end$ ]]; then
    last=${BASH_REMATCH[1]}
    nsl_hides bearer "$word" "${last#Bearer}"
  elif [[ $before =~ $end($name)$end=$end$ || $before =~ $end(-$name)$end$ ||
    $before =~ $end(-?-g?env|-?-?setenv|config${end}set|set$end-[a-z]+)$end$name$end$ ]]; then
    [[ $before != *"$end=$end" ]] || last=${before%"$end=$end"} last=${last##*"$end"}
    [[ $word != --* && $word != = ]] && nsl_hides "$last" "$word" ''
  else
    [[ $before =~ $end($name):$end$ ]] && nsl_hides "${BASH_REMATCH[1]}" "$word" 1
  fi
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
    nsl_drop_invisible "$word"
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
