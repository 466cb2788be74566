# shellcheck shell=bash disable=SC2154
# Strikes secrets out of the words of a command and out of texts, for sidecar.sh: what nsightlens/discovery/secrets.py strikes, but
# for XML and lists of an environment; the regular expressions have its names.

nsl_assignment='([A-Za-z0-9_.+-]+)(\\*["'\'']|%22)?[])]?((\\?[[:space:]])*)([:+?]?=>?|:-|: ?str ?=|: ?bytes ?=|: ?string ?=|: ?SecretStr ?=|:|,|%(25)*3[AaDd])?((\\?[[:space:]])*)'
nsl_scheme='((bearer|basic|digest|token|negotiate|apikey|!![a-z0-9_]{1,20})(\\?[[:space:]])+)?'
nsl_variable='^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$'
nsl_slash='(\\*/|%2[Ff])'
nsl_hook="(hooks\.slack\.com$nsl_slash(services|workflows|triggers)|discord(app)?\.com${nsl_slash}api$nsl_slash(v[0-9]{1,2}$nsl_slash)?webhooks"
nsl_hook+="|webhook\.office\.com${nsl_slash}webhookb2)$nsl_slash|api\.telegram\.org${nsl_slash}bot"
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

# Sets nsl_takes to the options by which the program $1 takes a password, or the word that one follows; leaves it for any other word.
nsl_password_options() {
  case $1 in
    login) [[ $nsl_takes == ' login ' ]] || nsl_takes=' -p ' ;;
    mysql | mysqldump | mysqladmin | mysqlimport | mysqlshow | mariadb | mongo | mongosh | mongodump | mongorestore | sshpass | twine) nsl_takes=' -p ' ;;
    ldapsearch | ldapadd | ldapmodify) nsl_takes=' -w ' ;;
    wandb | vault) nsl_takes=' login ' ;;
    redis-cli) nsl_takes=' -a ' ;;
    curl) nsl_takes=' -u -U -b --user --proxy-user ' ;;
  esac
}

# Sets nsl_short to $1 without the flags before an option of curl that takes a password: -sSu is -u.
nsl_drop_flags() {
  nsl_short=$1
  [[ $nsl_takes != *' --proxy-user '* || ! $1 =~ ^-[#0-46aBfgGiIjJklLMnNOpqRsSvVZ]+([uUb].*)$ ]] || nsl_short=-${BASH_REMATCH[1]}
}

# Sets nsl_text to $1 without the secrets in it. $2: not empty for a word of a command, where NAME=VALUE goes to its end.
nsl_redact_text() {
  local LC_ALL=C low visible triggers='secret|pass|credential|key|auth|token|cookie|bearer|sig|pw|jwt|otp|sess(ion)?id|curl|login|redis-cli|mysql|mariadb|mongo|ldap|twine|wandb|vault'
  nsl_make_plain "$1"
  visible=$nsl_text low=${nsl_text,,}
  [[ ! $low =~ $triggers && -z ${nsl_takes// /} ]] || nsl_redact_named "${2:+$'\1'}"
  [[ $nsl_text != *//*@* && $nsl_text != *:/*@* ]] || nsl_redact_urls
  [[ ! $low =~ hook|telegram ]] || nsl_redact_hooks
  nsl_redact_shapes
  [[ $nsl_text != "$visible" ]] || nsl_text=$1
}

# Sets nsl_text to $1 as it reads: without invisible characters, and without percent codes of characters that need none.
nsl_make_plain() {
  local char code='%(25)*(2[DdEe]|3[0-9]|4[1-9A-Fa-f]|5[0-9AaFf]|6[1-9A-Fa-f]|7[0-9AaEe])'
  nsl_text=$1
  while [[ $nsl_text =~ $code ]]; do
    printf -v char '%b' "\\x${BASH_REMATCH[2]}"
    nsl_text=${nsl_text/"${BASH_REMATCH[0]}"/"$char"}
  done
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
  local flags all=$shown full=$name nsl_short
  nsl_drop_flags "$name"
  flags=${name:1:${#name}-${#nsl_short}}
  shown=${shown:0:1}${shown:1+${#flags}} name=$nsl_short
  if nsl_finds_password; then
    shown=${shown:0:1}$flags${shown:1}
  else
    shown=$all name=$full
    return 1
  fi
}

nsl_finds_password() {
  if [[ -n $nsl_takes && $nsl_takes == *" ${name:0:2} "* && ${#name} -gt 2 ]]; then
    rest=${shown:2}$rest shown=${name:0:2}   # mysql -pPASSWORD
    name=$shown
    if [[ $opening == $'\1' ]]; then nsl_value=$rest; return; fi
  elif [[ $nsl_takes == ' login ' && $name == login ]]; then
    nsl_finds_word
    return
  elif [[ -z $nsl_takes || $nsl_takes != *" $name "* || $rest == -* || $shown == "$name" ]]; then
    return 1
  fi
  nsl_find_value && [[ $name != -b || $nsl_value == *=* ]]
}

# Whether a word that looks random follows the one that was found, behind options: then these are shown, and nsl_value is that.
nsl_finds_word() {
  local word='^(((-|https?:)[^[:space:]]*[[:space:]]+)*)([^[:space:];&|"'\'']+)'
  if [[ ! $rest =~ $word ]] || ! nsl_is_random "${BASH_REMATCH[4]}"; then
    [[ -z $rest ]] || nsl_takes=   # that of another program is none of these
    return 1
  fi
  [[ $rest =~ $word ]]
  shown+=${BASH_REMATCH[1]} rest=${rest:${#BASH_REMATCH[1]}} nsl_value=${BASH_REMATCH[4]}
}

# Whether a secret is assigned to the name that was found: then nsl_value is that.
nsl_takes_value() {
  local vague='' header='' call='[A-Za-z0-9_]\([[:space:]]*\\*["'\'']$'
  local setter='((^|[^A-Za-z0-9_-])--?g?env|setenv|config[[:space:]]+set|set[[:space:]]+-[a-z]+)[[:space:]]+$'
  local netrc='(machine[[:space:]]+[^[:space:]]+|default[[:space:]]+login[[:space:]]+[^[:space:]]+)([[:space:]]+(login|account)[[:space:]]+[^[:space:]]+)*[[:space:]]+$'
  nsl_name_kind "$name"
  [[ -n $nsl_strictness ]] || return 1
  case $sign in
    '')
      [[ -n $before$after && $rest != --* && $rest != ["'\""]--* ]] && [[ $name == -* || ${name,,} == bearer || $out =~ $setter || $out =~ $netrc ]] || nsl_is_variable || return 1
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

# Whether the name that was found is a variable's, and the next word its value.
nsl_is_variable() {
  local first=${rest%%[[:space:]\"\']*}
  [[ $name =~ $nsl_variable && ! $first =~ $nsl_variable ]] && nsl_is_random "$first"
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

nsl_redact_hooks() {
  local rest=$nsl_text out=''
  while [[ $rest =~ ($nsl_hook)([^[:space:]\"\'<>]+) ]]; do
    out+=${rest%%"${BASH_REMATCH[0]}"*}${BASH_REMATCH[1]}'***'
    rest=${rest#*"${BASH_REMATCH[0]}"}
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
  local LC_ALL=C before=$1 word=$2 end=$'\1' name='[A-Za-z0-9_.+-]+' other=$'\1[^\1]+' last nsl_short
  last=${before%"$end"} last=${last##*"$end"}
  nsl_drop_flags "$last"
  if [[ $word != -* && $nsl_takes == *" $nsl_short "* && -n $last ]] && [[ $nsl_short != -b || $word == *=* ]]; then
    nsl_takes=${nsl_takes/" $nsl_short "/ }
  elif [[ $nsl_takes == ' login ' && $word != -* && $word != http* && $before =~ ${end}login$end((-|https?:)[^$end]*$end)*$ ]]; then
    nsl_takes=
  elif [[ $before =~ [^A-Za-z0-9_.+-]([Bb]earer)$end$ ]]; then
    last=${BASH_REMATCH[1]}
    nsl_hides bearer "$word" "${last#Bearer}"
  elif [[ $before =~ $end($name)$end=$end$ || $before =~ $end(-$name)$end$ ||
    $before =~ $end(-?-g?env|-?-?setenv|config${end}set|set$end-[a-z]+)$end$name$end$ ]]; then
    [[ $before != *"$end=$end" ]] || last=${before%"$end=$end"} last=${last##*"$end"}
    [[ $word != --* && $word != = ]] && nsl_hides "$last" "$word" ''
  elif [[ $before =~ (machine$other|default${end}login$other)($end(login|account)$other)*$end$name$end$ ]]; then
    nsl_hides "$last" "$word" ''
  elif [[ $last =~ $nsl_variable && ! $word =~ $nsl_variable && $word != --* && ! $before =~ $end--?[A-Za-z0-9_][^=$end]*$end$last$end$ ]]; then
    nsl_hides "$last" "$word" ''
  else
    [[ $before =~ $end($name):$end$ ]] && nsl_hides "${BASH_REMATCH[1]}" "$word" 1
  fi
}
