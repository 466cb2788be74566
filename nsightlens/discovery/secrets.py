"""Text without its secrets, for all that prints, logs or stores what people and programs wrote: docs/store.md says where.

A secret is what is assigned to a name that names one, in any syntax (`--token x`, `HF_TOKEN=x`, `"token":"x"`, `Cookie: x`,
`setenv("HF_TOKEN","x")`), the password option of a program, what stands before the @ of a URL, or a word of a well-known shape.
The wrappers strike the same before they write a sidecar, and import nothing of ours: what follows the imports here stands in
wrappers/nsl_launch.py as well, and in the words of bash in wrappers/secrets.sh. tests/discovery/planted.py holds all three to
one table. Every pattern goes over a text once: what may repeat is followed by nothing that can fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

MARK = "***"
_KEYS = ("(?:api|access|account|auth|private|signing|encryption|shared|storage|subscription|master|service|deploy|license|ssh)"
         "%skey")
NAMED = ("secret|passw|passphrase|credential|authorization|sess(?:ion)?id|" + _KEYS % "[_.+-]?"
         + "|(?:pass|pwd?|sig(?:nature)?|tokens?|cookies?|auth|bearer|jwt|otp)(?:[^a-z]|$|value|read|write|prod|dev|test)"
         "|sshpass|curl|login|redis-cli|mysql|mariadb|mongo|ldap|twine")
SHAPED = (r"@|hooks\.slack|webhook|api\.telegram|hf_|gh[opsu]_|github_pat_|glpat-|nvapi-|npm_|pypi-|dop_v1_|xapp-|tskey-"
          r"|gsk_|r8_|sk-|k_live_|xox|a[ks]ia|aiza|ya29\.|eyj|private key")
"""A text without NAMED, in lower case, assigns no secret; one without SHAPED shows none by itself: nearly all names of kernels
leave by these. They are written for every kind of regular expression."""
_NAMED, _SHAPED = re.compile(NAMED), re.compile(SHAPED)
INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
ENCODED = re.compile(r"%(?:25)*(?:2[de]|3[0-9]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])", re.IGNORECASE)
"""Letters, digits and -._~ in percent codes, which mean the same (RFC 3986): `%74oken=x`."""

# Names, in lower case, their parts joined by _: a name names what its last part does (a password-file is a file).
_ALWAYS = re.compile(rf"secret(?!ar)|passw|passphrase|credential|authorization|{_KEYS % '_?'}|(?:^|_)(?:jwt|otp)$|sess(?:ion)?id$"
                     r"|(?:db|pg|sql|user|root|admin|proxy|smtp|ftp|ssh|my)_?pass$")
_NO_COUNT = re.compile(r"token$|(?:^|(?:^|_)(?:hf|api|auth|access|secret|refresh)_?)tokens$|cookies?$"
                       r"|(?:^|_)(?:auth|bearer|pw)$|_pwd$")
_IF_RANDOM = re.compile(r"(?:^|_)(?:pass|pwd|sig|signature)$")
_OTHER = re.compile(r"(?:file|path|dir)s?$"
                    r"|_(?:directory|folder|name|type|length|len|count|size|limit|policy|provider|helper|stdin)$"
                    r"|(?:^|_)(?:bos|eos|pad|unk|sep|cls|mask|stop|start|end|image|special)_?tokens?$")
"""Names of what is about a secret, and of what language models call the words they are fed."""
_STEM = re.compile(r"secret|pass|credential|key|auth|token|cookie|bearer|sig|pw|jwt|otp|sess", re.IGNORECASE)
"""What each of these names has in it: most words of a text have none."""
_VARIANT = re.compile(r"(?:_(?:value|read|write|prod|dev|test))+\Z")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SWITCH = re.compile(r"true|false|yes|no|on|off|none|null|auto|bearer|basic|digest|negotiate", re.IGNORECASE)
_COUNT = re.compile(r"[-+]?\d{1,9}(?:\.\d*)?[kmgb]?|\w[\w.]*[(\[].*", re.IGNORECASE | re.DOTALL)
"""Values of names that mean numbers and objects of a program as well: `--max-token 512`, `token=tokens[i]`."""
_RANDOM = re.compile(r"(?=\D*\d)(?:[\w%+=-][\w%+/=-]{15,}|(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[\w%+=-][\w%+/=!#@$^*-]{7,})")

_GAP = r"(?:\\?[\s\0])"
"""Between the words of a text: white space, a line that goes on; between the words of a command that was put together: NUL."""
_PAIRED = r",?\s*\\*['\"]?value\\*['\"]?\s*[:=](?![:=])"
"""Between a name and a value that are members of one thing: `name: HF_TOKEN, value: x`."""
_NAME = re.compile(
    rf"(?P<name>[\w.+-]+)(?P<quote>\\*['\"]|%22)?[\])]?(?P<before>{_GAP}*)"
    rf"(?P<sign>[:+?]?=(?!=)>?|:-|: ?(?:str|bytes|string|SecretStr) ?=(?!=)|:(?!:)|{_PAIRED}|,|%(?:25)*3[ad]|)(?P<after>{_GAP}*)",
    re.IGNORECASE)
_SCHEME = r"(?:(?:bearer|basic|digest|token|negotiate|apikey|!!\w{1,20})(?:\\?\s)+)?"
_CHUNK = r"(?:\\[^\0]|[^\s;&|'\"\\\0])+"
_QUOTED = (r"(?:\$|[rbuf]{1,2})?(?:\\+\"[^\"\0]*\"?|\\+'[^'\0]*'?|\"(?:[^\"\\\0]|\\[^\0])*\"?|'(?:[^'\\\0]|\\[^\0])*'?)"
           r"(?:[\w$/+=-]+|'[^'\s\0]*'|\"[^\"\s\0]*\")*")
_GROUP = r"(?:\([^)\0]*\)?|\[[^\]\0]*\]?|\{[^}\0]*\}?)"
_ONE = rf"(?:{_QUOTED}|{_GROUP}(?:{_CHUNK})?|{_CHUNK}(?:'[^'\s\0]*'|\"[^\"\s\0]*\"|{_CHUNK})*)"
_VALUE = re.compile(rf"{_SCHEME}{_ONE}", re.IGNORECASE)
_HEADER = re.compile(rf"(?:[a-z][\w-]*(?:\\?\s)+)?{_ONE}(?:(?:[;,]|(?<=,))\s*[\w.-]+={_ONE})*", re.IGNORECASE)
"""The value of a header that is not quoted: `Cookie: a=x; b=y`, `Authorization: Digest a="x", b="y"`."""
_TO_NUL = re.compile(rf"{_SCHEME}[^\0]*", re.IGNORECASE)
_TO_CLOSING = {"\0": _TO_NUL, "'": re.compile(r"[^'\0]*(?=')"), '"': re.compile(r"[^\"\0]*(?=\")")}
"""The value of a name that stands right behind a quote or at the start of a word of a command: all up to the end of that."""
_STRUCK = re.compile(r"\*{3}[,;)}\]/>]*(?:<.*)?", re.DOTALL)
_AFTER_WORD = re.compile(r"\w[^\S\n]\Z")
_JUDGED = 100
"""So many characters of a value say whether it is a secret; one that is is struck to its end."""
_SETTER = re.compile(r"(?:(?<![\w-])--?g?env|setenv|config[\s\0]+set|set[\s\0]+-\w+"
                     r"|\b(?:default(?=[\s\0]+login)|machine[\s\0]+[^\s\0]+)(?:[\s\0]+(?:login|account)[\s\0]+[^\s\0]+)*"
                     r")[\s\0]+\Z")
"""What stands before a name whose value is the next word; the last are lines of a .netrc."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_KNOWN = frozenset((
    "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "WANDB_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN",
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "NGC_API_KEY",
    "NVIDIA_API_KEY", "COMET_API_KEY", "NEPTUNE_API_TOKEN", "CLEARML_API_SECRET_KEY", "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_TRACKING_TOKEN", "SLACK_BOT_TOKEN", "TELEGRAM_BOT_TOKEN", "NPM_TOKEN", "TWINE_PASSWORD", "DOCKER_PASSWORD",
    "MYSQL_PWD"))
"""Variables that mean one secret wherever they stand: the word behind them is one, but for those that go on with a sentence."""
_GOES_ON = re.compile(
    r"(?:is|are|was|were|be|been|and|or|but|nor|not|in|into|on|at|to|of|for|from|by|with|within|without|as|if|when|where|while|via"
    r"|before|after|until|since|unless|then|than|that|this|which|the|an?|your|its|must|may|might|can|cannot|could|should|would|will"
    r"|has|have|had|does|did|do|isn|wasn|here|there|instead|again|first|only|also|too|environment|env|variables?|vars?|values?"
    r"|secrets?|tokens?|keys?|passwords?|set|unset|given|found|missing|needed|required|invalid|expired|expires|empty|undefined"
    r"|exported|provided|struck)(?:'\w+)?\W*", re.IGNORECASE)
_BEHIND_OPTION = re.compile(r"\0--?\w[^\0=]*\0\Z|(?:\A|\s)--?\w[^\s\0=]*\s+\Z")
_LINE_BEGINS = re.compile(r"(?:\A|[\n\0;])[^\S\n]*\Z")
_REST_OF_LINE = re.compile(r"(?=[^\s\0\d]*\d)(?=[^\s\0]*[^\s\0\d])[^\s\0]+(?=[^\S\n]{0,20}(?:[\n\0;]|\Z))")
_CALL = re.compile(r"\w\(\s*\\*['\"]\Z")
_NEXT_COMMAND = re.compile(r"[;&|]\s|(?<!\\)\n")

_PASSWORD_OPTIONS = {
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mariadb", "mongo", "mongosh", "mongodump",
                     "mongorestore", "sshpass", "login", "twine"), ("-p",)),
    **dict.fromkeys(("ldapsearch", "ldapadd", "ldapmodify"), ("-w",)), "redis-cli": ("-a",),
    **dict.fromkeys(("wandb", "vault"), ("login",)), "curl": ("-u", "-U", "-b", "--user", "--proxy-user")}
"""A program, or a word of one (`docker login`), and the options by which it takes a password, or the word that one follows."""
_OPTIONS = re.compile(r"(?:(?:-|https?:)[^\s\0]*[\s\0]+)*")
"""What may stand between such a word and the password: `wandb login --relogin KEY`."""
_FLAGS = re.compile(r"(?<=-)(?<!--)[#0-46aBfgGiIjJklLMnNOpqRsSvVZ]+(?=[uUb])")
"""What may stand before an option of curl that takes one: `-sSu`."""

_TAG = re.compile(
    r"(?P<before>(?:<(?:name|key|string)>\s*(?P<key>[\w.+-]+)\s*</(?:name|key|string)>\s*)?<(?:[\w.-]+:)?(?P<tag>[\w.-]+))"
    r"(?P<attributes>(?:\s[^<>\0]*)?)>(?:(?P<content>(?:<!\[CDATA\[)?[^<\0]*)(?=</))?")
_NAMING = re.compile(r"\s(?:key|name|id)\s*=\s*['\"]([^'\"]*)", re.IGNORECASE)
_VALUED = re.compile(r"(\svalue\s*=\s*)(\"[^\"]*\"|'[^']*')", re.IGNORECASE)
"""`<password>x</password>`, `<add value="x" key="ApiToken"/>`, `<name>password</name><value>x</value>`."""

_WORD = re.compile(r"[^\s'\"\0]+")
_BARE = re.compile(r"[^\s'\"\0;&|]+")
_URL = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]{0,20}:/{1,2}|(?<![:/])//)"
                  r"(?P<user>[^/@:]*:(?!\d{1,5}(?:[/?#]|$)).*@|[^/@:]+@)", re.IGNORECASE)
_SLASH = r"(?:\\*/|%2f)"
_HOOK = re.compile(
    rf"((?:hooks\.slack\.com{_SLASH}(?:services|workflows|triggers)|discord(?:app)?\.com{_SLASH}api{_SLASH}(?:v\d\d?{_SLASH})?webhooks"
    rf"|webhook\.office\.com{_SLASH}webhookb2){_SLASH}|api\.telegram\.org{_SLASH}bot)[^\s'\"<>\0]+", re.IGNORECASE)
"""URLs that let whoever has them write: their path is the secret."""
_USER_ALONE = ("//", *(f"{scheme}://" for scheme in ("abfs", "abfss", "wasb", "wasbs", "ssh", "git+ssh", "sftp", "rsync")))
"""Schemes in which a name alone before the @ is a container or an account."""
_SHAPE = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{12,}|gh[opsu]_[A-Za-z0-9]{12,}|(?:github_pat_|glpat-|nvapi-|npm_|pypi-|dop_v1_|xapp-|tskey-)[\w-]{12,}"
    r"|(?:gsk|r8)_[A-Za-z0-9]{16,}|sk-[A-Za-z_-]{0,40}\d[\w-]{12,}|[rs]k_live_\w{12,}|xox[abeprs]-[\w-]{10,}|A[KS]IA[A-Z0-9]{12,}"
    r"|AIza[\w-]{30,}|ya29\.[\w-]{12,}|eyJ[\w-]{8,}(?:\.[\w.-]+)?)(?!\w)"
    r"|-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[^\0]*?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|(?=\0)|\Z)")


def without_secrets(value: object, name: str = "") -> object:
    """Return a text, the words of a command, or a mapping with these in it, with *** for the secrets; other things as is.

    name: what the value is assigned to, which may say that all texts in it are secrets.
    """
    if isinstance(value, str):
        return MARK if hides(name, value) else struck(value)
    if isinstance(value, Mapping):
        return {key: without_secrets(each, str(key) if _strictness(str(key)) else name) for key, each in value.items()}
    if isinstance(value, list | tuple):
        are_words = not name and all(isinstance(word, str) for word in value)
        return words_struck(value) if are_words else [without_secrets(each, name) for each in value]
    return value


def words_struck(words: Sequence[str]) -> list[str]:
    """Return the words of a command with *** for the secrets in them."""
    return struck("".join("\0" + word.replace("\0", "\ufffd") for word in words) + "\0").split("\0")[1:-1]


def struck(text: str) -> str:
    """Return a text with *** for the secrets in it; then without invisible characters and needless percent codes as well."""
    plain = visible = INVISIBLE.sub("", ENCODED.sub(lambda code: chr(int(code[0][-2:], 16)), text) if "%" in text else text)
    lower = visible.lower()
    is_named = _NAMED.search(lower)
    if not is_named and not _SHAPED.search(lower):
        return text
    if is_named and "<" in visible:
        visible = _TAG.sub(_element_struck, visible)
    shown, end = [], 0
    for begin, stop in _assigned(visible) if is_named else ():
        shown += [visible[end:begin], MARK]
        end = stop
    without = without_tokens("".join(shown) + visible[end:])
    return text if without == plain else without


def without_tokens(text: str) -> str:
    """Return a text with *** for what shows without a name to be a secret: for names of runs, which other names may stand in."""
    return _SHAPE.sub(MARK, _HOOK.sub(rf"\1{MARK}", _WORD.sub(_user_struck, text) if "@" in text else text))


def hides(name: str, value: str, *, is_vague: bool = False) -> bool:
    """Return whether a value is a secret, by its name. is_vague: the name may be a word of a sentence."""
    strictness, bare = _strictness(name), value.strip("'\"\\,)}]")
    if not strictness or not bare or _SWITCH.fullmatch(bare):
        return False
    if strictness is _NO_COUNT and not is_vague:
        return not _COUNT.fullmatch(bare)
    return strictness is _ALWAYS or name.lower().startswith("x-") or _RANDOM.fullmatch(bare) is not None


def _strictness(name: str) -> re.Pattern[str] | None:
    """Return what kind of name of a secret it is, None where it is none."""
    if not _STEM.search(name):
        return None
    noun = re.sub(r"[.+-]", "_", _CAMEL.sub("_", name)).lower().strip("_0123456789")
    noun = _VARIANT.sub("", noun)
    return None if _OTHER.search(noun) else next((kind for kind in (_ALWAYS, _NO_COUNT, _IF_RANDOM) if kind.search(noun)), None)


def _assigned(text: str) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each value in a text that is a secret by what it is assigned to."""
    at = end = 0
    options: Sequence[str] = ()
    while found := _NAME.search(text, at):
        name = found["name"]
        if _NEXT_COMMAND.search(text, end, found.start()):
            options = ()
        options = options if name in options else _PASSWORD_OPTIONS.get(name, options)
        span = _password(text, found, options) or _value(text, found)
        at, end = found.end(), found.end("name")
        if span:
            if not _STRUCK.fullmatch(text, *span):
                yield span
            at = end = span[1]
        if span or name in options:
            options = [option for option in options if not name.startswith(option)]


def _password(text: str, found: re.Match[str], options: Sequence[str]) -> tuple[int, int] | None:
    """Return where the password is that an option of a program gives."""
    name, begin = found["name"], found.end()
    name = _FLAGS.sub("", name) if "-u" in options and name[0] == "-" else name
    if name not in options:
        if name[:2] not in options:
            return None
        begin = found.end("name") - len(name) + 2   # mysql -pPASSWORD
    elif name[0] != "-":
        return _behind_word(text, found)
    elif text.startswith("-", begin) or found.end("name") == begin:
        return None
    value = (_TO_NUL if text[begin - 1] == "\0" else _VALUE).match(text, begin)
    is_file = name.startswith("-b") and value is not None and "=" not in value[0]   # curl -b cookies.txt
    return value.span() if value and value[0] and not is_file else None


def _behind_word(text: str, found: re.Match[str]) -> tuple[int, int] | None:
    """Return where the word of a command is that follows a word; in a text it looks random."""
    between = _OPTIONS.match(text, found.end())
    value = (_TO_NUL if "\0" in found["before"] else _BARE).match(text, between.end() if between else found.end())
    is_secret = value and value[0] and found["before"] and ("\0" in found["before"] or _RANDOM.fullmatch(value[0]))
    return value.span() if value and is_secret else None


def _value(text: str, found: re.Match[str]) -> tuple[int, int] | None:
    """Return where the value is that a name is assigned, if that is a secret."""
    name, sign, begin = found["name"], found["sign"], found.end()
    if not _strictness(name) or not (_is_assignment(found) if sign not in ("", ",") else _takes_next_word(text, found)):
        return None
    opening = text[max(found.start() - 1, 0):found.start()]
    is_header = sign == ":" and name.lower().endswith(("cookie", "authorization"))
    pattern = _TO_NUL if "\0" in found["before"] + found["after"] else _HEADER if is_header else _VALUE
    value = pattern.match(text, begin, begin + _JUDGED)
    if value is None or not _is_secret(text, found, opening, value[0], is_header):
        return None
    whole = _TO_CLOSING[opening].match(text, begin) if sign and not found["quote"] and opening in _TO_CLOSING else None
    return (whole if whole and whole[0] else pattern.match(text, begin) or value).span()


def _is_assignment(found: re.Match[str]) -> bool:
    """Return whether a name and a sign take what stands next: `--password = x` does, and `--password= x` does not."""
    ends_word = "\0" in found["after"] or (found["after"] and found["name"][0] == "-")
    return not ends_word or bool(found["before"]) or found["sign"] == ":"


def _takes_next_word(text: str, found: re.Match[str]) -> bool:
    """Return whether the value of a name may be the next word, without a sign or behind a comma."""
    name, begin, start = found["name"], found.end(), found.start()
    if text.startswith(("--", "'--", '"--'), begin):
        return False
    if found["sign"]:
        return bool(found["quote"]) and text[begin:begin + 1] in "'\"\\" and (
            name.startswith("-") or _CALL.search(text, max(start - 20, 0), start) is not None)
    return bool(found["before"]) and (name.startswith("-") or name.lower() == "bearer"
                                      or _SETTER.search(text, max(start - 200, 0), start) is not None
                                      or _is_variable(text, found))


def _is_variable(text: str, found: re.Match[str]) -> bool:
    """Return whether a name is a variable's, and the next word its value: in a command, alone in a line, or like no word."""
    begin, start = found.end(), found.start()
    value = _WORD.match(text, begin, begin + _JUDGED)
    if not _VARIABLE.fullmatch(found["name"]) or not value or _VARIABLE.fullmatch(value[0]):
        return False
    is_passed_on = _BEHIND_OPTION.search(text, max(start - 60, 0), start) is not None   # mpirun -x HF_TOKEN program
    if "\0" in found["before"]:
        return not is_passed_on
    if found["name"] in _KNOWN and not is_passed_on and not _GOES_ON.fullmatch(value[0]):
        return value[0][0] not in "-([{|<>=&;"
    has_line = _LINE_BEGINS.search(text[max(start - 20, 0):start]) and _REST_OF_LINE.match(text, begin)
    return has_line is not None or _RANDOM.fullmatch(value[0]) is not None


def _is_secret(text: str, found: re.Match[str], opening: str, value: str, is_header: bool) -> bool:
    name, sign = found["name"], found["sign"]
    if opening and opening in "?&;" and not (value[0] in "/~." and name.lower() == "pwd"):
        return True   # a part of a URL, or of a connection string; and PWD is where a program ran
    follows_word = found["after"] in ("", "\0") or _AFTER_WORD.search(text, max(found.start() - 2, 0), found.start()) is not None
    is_word = found["quote"] is None and name[0] != "-" and not is_header
    return hides(name, value, is_vague=is_word and ((sign == ":" and follows_word) or (not sign and name == "bearer")))


def _element_struck(found: re.Match[str]) -> str:
    """Return an element of XML without the value that is a secret by the name of it, or by a name that it holds."""
    names = [name for name in (found["key"], found["tag"], *_NAMING.findall(found["attributes"])) if name and _strictness(name)]
    if not names:
        return found[0]
    content = found["content"] or ""
    if content.strip() and any(hides(name, content.strip()) for name in names):
        content = MARK
    attributes = _VALUED.sub(lambda value: f"{value[1]}{MARK}" if any(hides(name, value[2]) for name in names) else value[0],
                             found["attributes"])
    return f"{found['before']}{attributes}>{content}"


def _user_struck(found: re.Match[str]) -> str:
    user, at, host = found[0].rpartition("@")
    return _URL.sub(lambda url: url[0] if url["scheme"].lower() in _USER_ALONE and ":" not in url["user"]
                    else f"{url['scheme']}{MARK}@", user + at) + host
