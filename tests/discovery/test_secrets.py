"""Secrets are struck out of words and of texts, and nothing else is; the wrappers strike the same."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from random import Random
from string import ascii_letters, digits

import pyarrow as pa
import pytest

from nsightlens.discovery import secrets
from nsightlens.discovery.ranks import sidecar_of
from nsightlens.discovery.secrets import struck, without_secrets, without_tokens
from nsightlens.schema import TABLES
from nsightlens.store.secret_free_rows import without_secrets_in_prose
from tests.discovery.planted import COMMANDS, HARMLESS, HOSTILE, SYNTAXES, TEXTS, TOKEN
from tests.places import ROOT, sqlite_captures


@pytest.mark.parametrize("words", COMMANDS)
def test_the_words_of_a_command(words: tuple[str, ...]) -> None:
    assert without_secrets(list(words)) == COMMANDS[words]


@pytest.mark.parametrize("text", TEXTS)
def test_a_command_in_one_text(text: str) -> None:
    assert "planted" not in struck(text).lower()
    assert struck(struck(text)) == struck(text)


def test_what_is_no_secret_stays() -> None:
    assert without_secrets(HARMLESS) == HARMLESS
    assert struck(" ".join(HARMLESS)) == " ".join(HARMLESS)
    assert without_secrets({"a": 1, "b": ["x", 2], "key": 3}) == {"a": 1, "b": ["x", 2], "key": 3}


def test_the_whole_of_a_word_is_a_value() -> None:
    assert without_secrets(["TOKEN=a planted\nof two lines"]) == ["TOKEN=***"]


def test_a_name_in_a_mapping_tells_of_its_value() -> None:
    assert without_secrets({"HF_TOKEN": "planted", "more": [{"api_key": "planted"}]}) == {
        "HF_TOKEN": "***", "more": [{"api_key": "***"}]}


def test_a_key_is_struck_up_to_its_end() -> None:
    text = "x -----BEGIN RSA PRIVATE KEY-----\nplanted\nplanted\n-----END RSA PRIVATE KEY----- y"
    assert struck(text) == "x *** y"
    assert struck(text.partition("-----END")[0]) == "x ***"


def test_the_name_of_a_run_stays_unless_it_is_a_secret_itself() -> None:
    assert [without_tokens(name) for name in ("key=1", f"base-{TOKEN}", "s3://K:planted@b/run")] == [
        "key=1", "base-***", "s3://***@b/run"]


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_no_random_secret_in_any_syntax(syntax: str) -> None:
    """Alone, in a sentence, in a list of words; as short as a password and as long as a key."""
    random = Random(syntax)
    for length in (6, 12, 20, 43, 300):
        secret = "".join(random.choices(ascii_letters + digits + "_-+/.~!#*", k=length - 2)) + "x7"
        text = syntax.replace("SECRET", secret)
        for around in ("{}", "it said {} and ended", "a=b\n{}\n", "python x.py --lr 3 {} --max-tokens 5"):
            assert secret not in struck(around.replace("{}", text)), (around, text)
        assert secret not in repr(without_secrets(["python", text, "--lr", "3"]))
        if not set("'\"\\[") & set(syntax):
            assert secret not in repr(without_secrets(["python", *text.split(" "), "--lr", "3"]))


@pytest.mark.parametrize("text", HARMLESS)
def test_an_honest_text_stays_byte_for_byte(text: str) -> None:
    assert (struck(text), without_secrets([text]), without_secrets({"note": text})) == (text, [text], {"note": text})


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_long_text_takes_no_minutes(unit: str) -> None:
    """Seconds, where one pass over it for each name would take hours; measured to grow with the length from 0.25 to 1 MB."""
    began = time.process_time()
    for before, behind in (("", ""), ("token ", "@"), ('password="', "")):
        struck(before + unit * (30_000 // len(unit)) + behind)
    assert time.process_time() - began < 20


def test_every_field_of_a_sidecar_is_read_without_them() -> None:
    texts = list(TEXTS)
    said = sidecar_of(Path("x"), {
        "run": f"base-{TOKEN}", "execution_id": f"job-{TOKEN}", "host": TOKEN, "command": " ".join(texts), "problems": texts,
        "launcher": "srun --export=WANDB_API_KEY=planted", "driver_version": "token=planted", "torch_version": TOKEN,
        "gpus": [{"power_limit_w": "password=planted"}], "tool": "ncu",
        "options": {"kernel_filter": "regex:gemm", "kernel_name_base": "function", "ncu_options": "--section=x",
                    "launch_skip": "0", "launch_count": "1", "replay_mode": "kernel"}})
    assert "planted" not in repr(said).lower()
    assert said.selection.kernel_filter == "function regex:gemm" and len(said.problems) == len(texts)


def test_the_python_wrappers_have_the_same_words() -> None:
    ours = Path(secrets.__file__).read_text(encoding="utf-8")
    block = re.sub(r"\A.*?(?=^MARK = )", "", ours, flags=re.DOTALL | re.MULTILINE)
    assert (ROOT / "wrappers/nsl_launch.py").read_text(encoding="utf-8").endswith(block), (
        "the end of wrappers/nsl_launch.py is not what follows the imports of nsightlens/discovery/secrets.py: copy it there")


def test_no_name_of_a_real_capture_is_struck() -> None:
    """A sample of all texts of the real nsys exports: kernels, calls, NVTX ranges, processes, files."""
    captures = sqlite_captures()
    if not captures:
        pytest.skip("needs ../shared/data")
    for path in captures[::7]:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
            base.text_factory = lambda raw: raw.decode("utf-8", "replace")
            rows = base.execute("SELECT DISTINCT value FROM StringIds ORDER BY length(value), value LIMIT 5000").fetchall()
        assert [text for (text,) in rows if struck(text) != text] == []


def _suspicious() -> Iterator[str]:
    """Yield texts around each name and shape that is known: with other parts, endings, signs and letters beside it."""
    stems = ("secret", "passw", "passphrase", "credential", "authorization", "api_key", "auth-key", "private.key", "licenseKey",
             "jwt", "otp", "sessid", "sessionid", "db_pass", "pass", "token", "hf_tokens", "tokens", "cookie", "cookies", "auth",
             "bearer", "pw", "db_pwd", "pwd", "sig", "signature", "X-Amz-Signature", "key", "unsigned", "Kernel", "sigma")
    value = "aB3dE5gH7jK9mN1pQ"
    for word, before, behind in product(
            (each for stem in stems for each in (stem, stem.upper(), stem.title())), ("", "my", "My", "x_", "2", "é", "--"),
            ("", "2", "_", "s", "Value", "_read_prod", "-test", "x", "X", "é", "\u200b")):
        name = f"{before}{word}{behind}"
        yield from (f"{name}={value}", f"{name}: {value}", f"\0{name}\0{value}\0", f"{name} {value}", f'f("{name}", "{value}")')
    for program in ("mysql -p", "mysqldump -p", "mariadb -p", "sshpass -p ", "login -p ", "redis-cli -a ", "curl -u x:"):
        yield f"{program}{value}"
    for shape in (TOKEN, "tskey-" + value, "AKIA" + value.upper(), "eyJ" + value, "-----BEGIN RSA PRIVATE KEY-----x",
                  "ya29." + value, f"s3://k:{value}@b", f"//{value}@h/", f"file:/u:{value}@h", f"a@{value}", f"x, y@ {value}"):
        yield from (shape, f"see {shape} there", f"x{shape}", f"unsigned {shape}")


def test_the_first_look_keeps_no_text_from_the_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    """What leaves by the first look, in either engine of expressions, loses nothing where every text is gone through."""
    texts = [*_suspicious(), *TEXTS, *HARMLESS, *map("\0".join, COMMANDS), *HOSTILE, *SYNTAXES]
    table = TABLES["diagnostics"]
    batch = pa.RecordBatch.from_pydict({"message": pa.array(texts, pa.string())})
    quick, stored = [struck(text) for text in texts], without_secrets_in_prose(batch, table)["message"].to_pylist()
    everything = re.compile("")
    monkeypatch.setattr(secrets, "_NAMED", everything)
    monkeypatch.setattr(secrets, "_SHAPED", everything)
    assert [text for text, ours, said in zip(texts, quick, map(struck, texts), strict=True) if ours != said] == []
    assert stored == quick and sum(text != said for text, said in zip(texts, quick, strict=True)) > 1000


@pytest.mark.parametrize("name", ["void f<unsigned int>(unsigned char const*)", "KeyValueSorter", "at::sigmoid", "notproj",
                                  "tokenizer"])
def test_common_words_of_kernels_leave_by_the_first_look(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_assigned", pytest.fail)
    monkeypatch.setattr(secrets, "without_tokens", pytest.fail)
    assert struck(name) == name
