"""Text without its secrets, for all that prints, logs or stores what people and programs wrote: docs/store.md says where.

A secret is the value of a name that says so (`--token x`, `HF_TOKEN=x`, `Cookie: x`, `?sig=x`), what stands before the @ of a
URL, or a word of a well-known shape. The wrappers strike the same before they write a sidecar, and import nothing of ours: what
follows the imports here stands in wrappers/nsl_launch.py as well, and in the words of bash in wrappers/sidecar.sh.
tests/discovery/planted.py holds all three to one table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

MARK = "***"
_KEYS = r"(?:api|access|account|private|signing|encryption)[-_.]?key"
_NAME = (rf"[\w.+-]*(?:secret|passw|passphrase|credential|{_KEYS}|authorization)[\w.-]*"
         r"|[\w.+-]*(?:token|cookies?|signature)(?![\w.-])|-{0,2}(?:(?:hf|api|auth|access)[-_.])?tokens(?![\w.-])"
         r"|(?:[\w.+-]*[_.+-])?(?:auth|pwd|pw|pass|key|bearer|sig)(?![\w.-])")
_QUIET = re.compile(r"(?:.*[_.+-])?(?:tokens?|auth|pass|key|sig|cookies?|signature)", re.IGNORECASE | re.DOTALL)
"""Names that hold secrets, and counts and switches as well: `--max-token 512`, `key=3`, `--cookie auto`."""
_COUNT = re.compile(r"['\"]?(?:[-+]?\d{1,9}(?:\.\d*)?[kmgb]?|true|false|yes|no|on|off|none|null|auto)?['\"]?,?", re.IGNORECASE)
_PUBLIC = re.compile(r"-{0,2}(?:.*[_.+-])?(?:(?:kernel|sort|primary|foreign|partition|cache|group)[-_.]key"
                     r"|(?:bos|eos|pad|unk|sep|cls|mask|stop|start|end|image|special)[-_.]token)", re.IGNORECASE | re.DOTALL)
"""Names that only look so: columns of tables, and what language models call the words they are fed."""
_WORD = re.compile(r"key|pass|auth|sig", re.IGNORECASE)
"""Names that are words of a sentence where a colon follows: "key: value"."""
_SIGNATURE = re.compile(r"(?=['\"]?[^\d\s]*\d)['\"]?[\w%+/=-]{16,}['\"]?")

_VALUE = r"'[^']*'|\"[^\"]*\"|[^\s;&|'\"]+(?:'[^'\s]*'|\"[^\"\s]*\")*"
_NAMED = re.compile(rf"(?<![\w.+-])(?P<name>{_NAME})(?P<between>['\"]?(?:=|[^\S\n]=[^\S\n](?!=)|:\s{{1,4}}))"
                    rf"(?P<value>(?:(?:bearer|basic|digest|token)\s+)?(?:{_VALUE}))", re.IGNORECASE)
_OPTION = re.compile(rf"(?<![\w.+-])(?P<name>-(?:{_NAME}))(?P<between>['\"]?,?[\s\\]+)(?!--)(?P<value>{_VALUE})", re.IGNORECASE)
_WHOLE = re.compile(rf"(?P<name>{_NAME})=(?P<value>.+)", re.IGNORECASE | re.DOTALL)
_OPTION_NAME = re.compile(rf"-(?:{_NAME})", re.IGNORECASE)
_MORE_COOKIES = re.compile(rf"(?<=cookie: \*\*\*)(?:;\s*[\w.-]+=(?:{_VALUE}))+", re.IGNORECASE)

_PASSWORD_OPTIONS = {"mysql": "-p", "mysqldump": "-p", "mysqladmin": "-p", "mariadb": "-p", "sshpass": "-p", "redis-cli": "-a",
                     "curl": "-u"}
_PROGRAMS = "|".join(rf"{program}\s(?:[^;&|\n]{{0,300}}?\s)??{option}" for program, option in _PASSWORD_OPTIONS.items())
_PASSWORD = re.compile(rf"(?<![\w.-])((?:{_PROGRAMS})\s*)(?!-)(?:{_VALUE})")
_USER = r"[^\s/@:'\"]{0,500}:(?!\d{1,5}(?:[/?#]|$))[^\s'\"]{0,500}@|[^\s/@:'\"]{1,500}@"
_URL = re.compile(rf"\b(?P<scheme>[a-z][a-z0-9+.-]{{0,20}})(?P<slashes>:/{{1,2}})(?P<user>{_USER})", re.IGNORECASE)
_USER_ALONE = ("abfs", "abfss", "wasb", "wasbs", "ssh", "git+ssh", "sftp", "rsync")
"""Schemes in which a name alone before the @ is a container or an account."""
_SHAPE = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{12,}|gh[opsu]_[A-Za-z0-9]{12,}|(?:github_pat_|glpat-|nvapi-|npm_|pypi-|dop_v1_)[\w-]{12,}"
    r"|sk-[A-Za-z_-]*\d[\w-]{12,}|[rs]k_live_\w{12,}|xox[abeprs]-[\w-]{10,}|A[KS]IA[A-Z0-9]{12,}|AIza[\w-]{30,}|ya29\.[\w-]{12,}"
    r"|eyJ[\w-]{8,}\.[\w.-]+)(?!\w)"
    r"|-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|\Z)", re.DOTALL)


def without_secrets(value: object) -> object:
    """Return a text, the words of a command, or a mapping with these in it, with *** for the secrets; other things as is."""
    if isinstance(value, str):
        return struck(value)
    if isinstance(value, Mapping):
        return {name: MARK if hides(str(name), str(each)) and isinstance(each, str) else without_secrets(each)
                for name, each in value.items()}
    if isinstance(value, list | tuple):
        return words_struck(value) if all(isinstance(word, str) for word in value) else [without_secrets(each) for each in value]
    return value


def struck(text: str) -> str:
    """Return a text with *** for the secrets in it."""
    for pattern in (_NAMED, _OPTION):
        text = pattern.sub(_value_struck, text)
    return without_tokens(_PASSWORD.sub(rf"\1{MARK}", _MORE_COOKIES.sub("", text)))


def without_tokens(text: str) -> str:
    """Return a text with *** for what shows without a name to be a secret: for names of runs, which other names may stand in."""
    return _SHAPE.sub(MARK, _URL.sub(_user_struck, text))


def hides(name: str, value: str) -> bool:
    """Return whether a value is a secret, by its name."""
    if not _OPTION_NAME.fullmatch(f"-{name}") or _PUBLIC.fullmatch(name) or value in ("", "None", "null"):
        return False
    if name.lower().endswith("signature") and not name.lower().startswith("x-"):
        return _SIGNATURE.fullmatch(value) is not None
    return not (_QUIET.fullmatch(name) and _COUNT.fullmatch(value))


def _value_struck(found: re.Match[str]) -> str:
    name, between = found["name"], found["between"]
    is_sentence = between[0] == ":" and _WORD.fullmatch(name)
    is_code = between[0].isspace() and "=" in between and _QUIET.fullmatch(name)
    is_struck = found["value"].startswith(MARK)
    if is_sentence or is_code or is_struck or not hides(name, found["value"]):
        return found[0]
    return f"{name}{between}{MARK}"


def _user_struck(found: re.Match[str]) -> str:
    if ":" not in found["user"] and found["scheme"].lower() in _USER_ALONE:
        return found[0]
    return f"{found['scheme']}{found['slashes']}{MARK}@"


def words_struck(words: Sequence[str]) -> list[str]:
    """Return the words of a command with *** for the secrets in them."""
    shown: list[str] = []
    before = password = ""
    for word in words:
        whole = _WHOLE.fullmatch(word)
        if before and not word.startswith("--") and (before == password or hides(before, word)):
            shown.append(MARK)
            before, password = "", "" if before == password else password
            continue
        if password and word.startswith(password) and word != password:
            shown.append(f"{password}{MARK}")
            password = ""
        else:
            shown.append(f"{whole['name']}={MARK}" if whole and hides(whole["name"], whole["value"]) else struck(word))
        before = word if word == password or _OPTION_NAME.fullmatch(word) else ""
        password = _PASSWORD_OPTIONS.get(word.rpartition("/")[2], password)
    return shown
