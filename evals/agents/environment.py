"""What of this process's environment reaches Claude Code: the machine's, and none of the user's choices."""

from __future__ import annotations

from collections.abc import Mapping

_PREFIXES = ("ANTHROPIC_", "CLAUDE_")
# Where things are and how the network is reached.
_KEPT = frozenset(
    (
        "CLAUDE_CONFIG_DIR CLAUDE_CODE_ENTRYPOINT CLAUDE_CODE_TMPDIR CLAUDE_CODE_GIT_BASH_PATH CLAUDE_CODE_CERT_STORE "
        "CLAUDE_CODE_CLIENT_CERT CLAUDE_CODE_CLIENT_KEY CLAUDE_CODE_CLIENT_KEY_PASSPHRASE "
        "CLAUDE_CODE_PROXY_RESOLVES_HOSTS ANTHROPIC_CUSTOM_HEADERS"
    ).split()
)


def without_choices(environ: Mapping[str, str]) -> dict[str, str]:
    """Claude Code's own variables, set to nothing.

    A child gets the whole environment and can only be given more. With ``CLAUDE_CODE_USE_BEDROCK=1`` in it a scripted
    run asked a real model, and paid; others choose another model or another effort than the run says.
    """
    return {name: "" for name in environ if name.startswith(_PREFIXES) and name not in _KEPT}
