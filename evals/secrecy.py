"""Which texts may be committed, and which look like secrets.

Two judgements, for two places. An environment or header value is a setting or a credential, so it is shown only when
it is plainly harmless (`is_harmless`). An argument is mostly neither, so it is shown unless something speaks for a
secret (`looks_secret`, `is_secret_name`). Hiding too much costs one line in .env, showing too much costs a credential.
"""

from __future__ import annotations

import re
from itertools import pairwise

_SECRET_PART = re.compile(
    r"token|key|secret|passw|passphrase|passcode|credential|auth|bearer|cookie|session|signature|webhook|conn(?:ection)?[-_]?str",
    re.IGNORECASE,
)
# Too short to be looked for inside of other words.
_SECRET_WORDS = frozenset("pat sk pwd pass pw pin otp totp mfa jwt sid sig dsn hmac salt mnemonic creds".split())
_SECRET_NAMES = frozenset(["code"])  # the key of an Azure function's address
_SWITCH = re.compile(r"--?(?:no|disable|skip|without)-")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

# What issuers put before their tokens, with what follows; each stands at the beginning of a word.
_ISSUED = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[\w-]{6}|[rsp]k_(?:live|test)_\w|whsec_\w|gh[a-z]_\w{4}|github_pat_\w|gl(?:pat|dt|rt|ptt|cbt|ft|soat)-[\w-]{4}"
    r"|xox[a-z]-\w|xapp-\w|(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{6}|AIza[\w-]{10}|ya29\.|eyJ[\w-]{6}|hf_[A-Za-z0-9]{10}|dop_v1_\w"
    r"|shp(?:at|ss|ca|pa)_\w|SG\.[\w-]{6}|lin_api_\w|ntn_\w{6}|secret_[A-Za-z0-9]{20}|figd_\w|apify_api_\w|tvly-\w|pplx-[A-Za-z0-9]{20}"
    r"|gsk_\w{6}|r8_\w{10}|dckr_pat_\w|ATATT\w{6}|nvapi-\w|sbp_[0-9a-f]{10}|sb_secret_|sntry[su]_\w|ph[cx]_\w{6}|npm_[A-Za-z0-9]{20}"
    r"|pypi-\w{16}|dapi[0-9a-f]{10}|PMAK-\w|rnd_[A-Za-z0-9]{16}|key-[0-9a-f]{10}"
    r")|-----BEGIN"
)
_UUID = re.compile(r"(?i)(?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])")
_CHUNK = re.compile(r"[A-Za-z0-9]+")
# The name of a container image's content is public.
_DIGEST = re.compile(r"sha(?:256|512):[0-9a-f]+")

_NAME_OF_WORDS = re.compile(r"[a-z]+(?:[-_][a-z]+)*")
_BOOLEAN = re.compile(r"(?i)true|false|yes|no|on|off|null|none")
_WORDS = frozenset(
    (
        "production prod development develop dev test testing staging stage local localhost preview sandbox ci default "
        "critical fatal error warn warning info notice debug trace verbose quiet silent all "
        "stdio http https sse streamable-http streaming json text plain pretty markdown html csv xml yaml utf-8 utf8 "
        "gzip br deflate identity keep-alive close no-cache no-store utc gmt latest stable main master "
        "node python auto always never enabled disabled read readonly read-only write full minimal basic"
    ).split()
)
_HARMLESS = re.compile(
    r"""
      [+-]?\d{1,5}(?:\.\d{1,4})?(?:ms|s|m|h|d|k|kb|mb|gb|%)?               # 3000, 0.5, 30s
    | v?\d{1,4}(?:\.\d{1,4}){1,3} | \d{4}-\d{2}-\d{2}                      # versions, those of MCP too
    | [a-z]{2}(?:[-_][A-Z]{2})?(?:\.UTF-?8)? | C(?:\.UTF-?8)?              # locales
    | (?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific|Etc)/[A-Z][A-Za-z_/+-]{1,30}
    | (?:127\.0\.0\.1|0\.0\.0\.0|localhost|::1|\[::1\]):?\d{0,5}
    | (?:(?:application|text|image|audio|video|multipart|\*)/[A-Za-z*][A-Za-z0-9.+*-]{0,40}(?:;\s?q=[01](?:\.\d+)?)?
        (?:,\s?|$))+                                                       # what an Accept header lists
    """,
    re.VERBOSE,
)
_ADDRESS = re.compile(
    r"(?:https?|wss?)://(?:localhost|\[::1\]|[a-z0-9-]+(?:\.[a-z0-9-]+)+)(?::\d{1,5})?"
    r"(?:/(?:v\d+|api|mcp|sse|rest|graphql|rpc|ws))*/?",
    re.IGNORECASE,
)
_PATHS = re.compile(r"\.{1,2}|~|(?:(?:~|\.{1,2})?/|[A-Za-z]:[\\/])[A-Za-z0-9 ._@+~/\\:-]*")


def is_secret_name(name: str) -> bool:
    """Whether what stands under this name is a credential, or may be: ``API_KEY``, ``--db-pwd``, ``githubPat``."""
    if _SWITCH.match(name):
        return False
    words = {found.group().lower() for found in _WORD.finditer(name)}
    return bool(_SECRET_PART.search(name)) or bool(words & _SECRET_WORDS) or name.lower() in _SECRET_NAMES


def is_harmless(value: str, name: str = "") -> bool:
    """Whether a setting's value can be nothing but a setting; under the name of a secret only a yes or no is."""
    if not value or _BOOLEAN.fullmatch(value):
        return True
    if is_secret_name(name) or looks_secret(value):
        return False
    return (
        value.lower() in _WORDS
        or _HARMLESS.fullmatch(value) is not None
        or _ADDRESS.fullmatch(value) is not None
        or _PATHS.fullmatch(value) is not None
    )


def is_setting(value: str) -> bool:
    """Whether a value can be nothing but a setting, or is a word or a name made of words.

    Masked, it would be missing from every text with that word in it, the judge's too.
    """
    return is_harmless(value) or _NAME_OF_WORDS.fullmatch(value) is not None


def looks_secret(text: str) -> bool:
    """Whether it has the form of a token: an issuer's prefix, or a run of characters that nobody chose."""
    text = _DIGEST.sub("", text)
    if _ISSUED.search(text) or _UUID.search(text):
        return True
    return any(_is_random(chunk.group()) for chunk in _CHUNK.finditer(text))


def _is_random(chunk: str) -> bool:
    """Long, and unlike words: letters and digits in turns, upper and lower case in turns, or no break at all."""
    if len(chunk) < 10:
        return False
    if len(chunk) >= 32:
        return True
    turns = sum(one.isdigit() != other.isdigit() for one, other in pairwise(chunk))
    if turns >= 3:
        return True
    if chunk.isdigit():
        return len(chunk) >= 16
    # getInvoiceById has words of four letters, a token has words of two
    parts = _WORD.findall(chunk)
    mixed = chunk != chunk.lower() and chunk != chunk.upper()
    return mixed and len(chunk) >= 16 and len(chunk) / max(len(parts), 1) < 3
