"""One table of secrets: what each reader, writer and printer must strike, and what looks alike and must stay."""

from __future__ import annotations

TOKEN = "hf_plantedAbCdEf0123456789"
KEY = "AKIAPLANTED0123456789"
JWT = "eyJplantedabcdefgh.eyJplanted.planted-planted"
COMMANDS: dict[tuple[str, ...], list[str]] = {
    ("--token=planted",): ["--token=***"],
    ("--token", "planted"): ["--token", "***"],
    ("--password", "planted"): ["--password", "***"],
    ("--password", "123456planted"): ["--password", "***"],
    ("--hf_token", "-planted"): ["--hf_token", "***"],
    ("--tokens", "planted"): ["--tokens", "***"],
    ("--hf-tokens=planted",): ["--hf-tokens=***"],
    ("--cookie", "planted"): ["--cookie", "***"],
    ("--cookies=planted",): ["--cookies=***"],
    ("--client-secret", "planted", "--lr", "1"): ["--client-secret", "***", "--lr", "1"],
    ("--api-key", "planted"): ["--api-key", "***"],
    ("-api_key", "planted"): ["-api_key", "***"],
    ("--account-key=planted",): ["--account-key=***"],
    ("--passphrase=a planted b",): ["--passphrase=***"],
    ("--sas=sv=2024&ss=b&sig=planted%3D",): ["--sas=sv=2024&ss=b&sig=***"],
    ("WANDB_API_KEY=planted",): ["WANDB_API_KEY=***"],
    ("HF_TOKEN=planted",): ["HF_TOKEN=***"],
    ("AWS_SECRET_ACCESS_KEY=planted/planted+1",): ["AWS_SECRET_ACCESS_KEY=***"],
    ("PGPASSWORD=planted",): ["PGPASSWORD=***"],
    ("MYSQL_PWD=planted",): ["MYSQL_PWD=***"],
    ("+auth.token=planted",): ["+auth.token=***"],
    ("--export=ALL,WANDB_API_KEY=planted",): ["--export=ALL,WANDB_API_KEY=***"],
    ("DefaultEndpointsProtocol=https;AccountName=n;AccountKey=planted==;EndpointSuffix=s",):
        ["DefaultEndpointsProtocol=https;AccountName=n;AccountKey=***;EndpointSuffix=s"],
    ("https://host/x?X-Amz-Credential=planted&X-Amz-Signature=planted&list-type=2",):
        ["https://host/x?X-Amz-Credential=***&X-Amz-Signature=***&list-type=2"],
    ("https://host/x?X-Amz-Security-Token=planted",): ["https://host/x?X-Amz-Security-Token=***"],
    ("https://host/x?Expires=1&Signature=planted0123456789",): ["https://host/x?Expires=1&Signature=***"],
    ("https://host/x?sv=1&sig=planted",): ["https://host/x?sv=1&sig=***"],
    ("https://me:planted@host/x",): ["https://***@host/x"],
    ("https://planted@host/x",): ["https://***@host/x"],
    ("s3://KEY:plan/ted+planted@bucket/x",): ["s3://***@bucket/x"],
    ("s3:/KEY:planted@bucket",): ["s3:/***@bucket"],
    ("https:/planted@host",): ["https:/***@host"],
    ("file://KEY:planted@host/x",): ["file://***@host/x"],
    ("--dsn=postgres://u:planted@db",): ["--dsn=postgres://***@db"],
    ("sh", "export TOKEN=planted; go"): ["sh", "export TOKEN=***; go"],
    ("sh", "mysqldump -pplanted db"): ["sh", "mysqldump -p*** db"],
    ("-H", "Authorization: Bearer planted"): ["-H", "Authorization: ***"],
    ("-H", "Cookie: a=planted; b=planted"): ["-H", "Cookie: ***"],
    ("x --api-key 'planted' y",): ["x --api-key *** y"],
    ('{"HF_TOKEN": "planted", "lr": 1}',): ['{"HF_TOKEN": ***, "lr": 1}'],
    ("mysql", "-u", "me", "-pplanted", "db"): ["mysql", "-u", "me", "-p***", "db"],
    ("/usr/bin/mysql", "-pplanted"): ["/usr/bin/mysql", "-p***"],
    ("sshpass", "-p", "planted", "ssh", "-p", "22", "h"): ["sshpass", "-p", "***", "ssh", "-p", "22", "h"],
    ("curl", "-u", "me:planted", "http://h"): ["curl", "-u", "***", "http://h"],
    ("redis-cli", "-a", "planted"): ["redis-cli", "-a", "***"],
    (TOKEN,): ["***"],
    (KEY,): ["***"],
    (JWT,): ["***"],
    ("x=" + TOKEN + ",y",): ["x=***,y"],
    ("ghp_planted0123456789abcdef",): ["***"],
    ("github_pat_planted0123456789",): ["***"],
    ("glpat-planted0123456789",): ["***"],
    ("sk-proj-planted0123456789planted",): ["***"],
    ("sk_live_planted0123456789",): ["***"],
    ("xoxb-planted-0123456789",): ["***"],
    ("nvapi-planted0123456789",): ["***"],
    ("AIzaplanted0123456789012345678901234567",): ["***"],
    ("npm_planted0123456789",): ["***"],
    ("dop_v1_planted0123456789",): ["***"],
}
"""The words of a command -> what is kept of them. The secret is what is called planted, or in upper case."""

TEXTS = (
    *(" ".join(words) for words in COMMANDS if "--passphrase=a planted b" not in words),
    "login failed: password = planted", "{'HF_TOKEN': 'planted', 'x': 1}", "['--token', 'planted']", "api_key: planted",
    "srun --export=ALL,WANDB_API_KEY=planted python x.py", "-H 'Cookie: a=planted; b=planted' x", "--token \\\n planted",
    "GET https://me:planted@host/x?token=planted: 403", "TOKEN=planted'planted' x", "set HF_TOKEN='planted planted'",
)
"""Sentences with secrets, as a person or a program may write them."""

HARMLESS = [
    "--max-tokens=512", "--max-tokens", "512", "--tokens", "4096", "--max-token", "512", "--num_tokens", "100",
    "--tokenizer=gpt2", "--tokenizer", "path", "--eos-token", "</s>", "--pad_token=[PAD]", "--key-frames", "3", "--keys=a", "-k",
    "2", "key=3", "--pass", "2", "--auth=none", "--cookie=auto", "--use-auth-token", "true", "-p", "8080",
    "kernel_key=gemm",
    "--sort-key", "name", "--signature=serving_default", "sig=0.05", "--token", "--lr", "0.1", "--password=", "a=b", "monkey",
    "x: y",
    "--bypass=1", "task-abcdefghijklmnopqrst", "hf_finetune_llama_v2.py", "sk-learn-benchmark-suite", "https://host:443/a@b",
    "ssh://git@host/x", "abfs://container@account/x", "s3://bucket/run", "rank0@node", "gs://bucket/a:b", "note: key: value",
]
