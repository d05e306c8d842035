"""Hides the secrets in settings of Spark and in addresses before they are shown to people.

Only its name describes a setting: Hadoop, connectors and Java options carry passwords under names that cannot all be
listed. So a value is shown only if its name is known to be harmless; every other value becomes asterisks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

HIDDEN: Final = "***"

_HARMLESS: Final = re.compile(
    r"""
    spark\.(
        app\.name | master | submit\.deployMode | log\.level | ui\.(enabled|port|showConsoleProgress)
      | default\.parallelism | local\.dir | jars\.ivy | serializer | buffer\.pageSize | pyspark\.(python|driver\.python)
      | (driver|executor)\.(cores|instances|memory|memoryOverhead|memoryOverheadFactor|maxResultSize)
      | driver\.(host|port|bindAddress)
      | cores\.max | task\.(cpus|maxFailures)
      | (memory|shuffle|dynamicAllocation|speculation|scheduler|locality|io\.compression|rdd|broadcast)\.[\w.]+
      | network\.(timeout|timeoutInterval) | rpc\.(askTimeout|lookupTimeout|message\.maxSize)
      | eventLog\.(enabled|compress|rolling\.enabled)
      | sql\.(
            adaptive|files|shuffle|parquet|orc|csv|json|ansi|execution|session\.timeZone|sources|statistics|codegen|cbo
          | autoBroadcastJoinThreshold|broadcastTimeout|caseSensitive|caseInsensitiveInferSchema|catalogImplementation
          | crossJoin|debug|decimalOperations|inMemoryColumnarStorage|join|legacy|mapKeyDedupPolicy|optimizer|parser
          | preserveCharVarcharTypeInfo|pivotMaxValues|pyspark|repl|retainGroupColumns|storeAssignmentPolicy|streaming
          | subquery|timestampType|ui|variable|variant|view|warehouse\.dir|window
        )(\.[\w.]+)?
      | databricks\.delta\.[\w.]+
    )
    | silt\.[\w.]+
    """,
    re.VERBOSE,
)
_TELLING: Final = re.compile(
    r"secret|passw|pwd|passphrase|token|credential|private|auth|key|\bsas\b|signature", re.IGNORECASE
)
"""Matches a part of a name that suggests a secret."""

_SCHEME: Final = re.compile(r"[A-Za-z][\w+.-]+:/")
_USER: Final = re.compile(r"(?<=:/)(/?)[^/?#\s]*@")
_PARAMETER: Final = re.compile(r"(?P<name>[?&;][^=?&;\s]+=)[^&;\s]*")
_PLAIN_PARAMETERS: Final = frozenset(("use_ssl", "user_id", "user_agent", "session_id"))
"""The parameters of a Spark Connect address that contain no secret."""
_HOST: Final = r"(\[[0-9A-Fa-f:.%]+\]|[\w.-]+)(:\d{1,5}(?!\d))?"
_REMOTE: Final = re.compile(rf"sc://{_HOST}(/(;[\w.-]+=[^;\s]*)*;?)?")
_BEGINNING: Final = re.compile(rf"([A-Za-z][A-Za-z0-9+.-]*:/{{1,2}})?({_HOST})?(?![^/;?#:\s])/?")
_IS_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|[^/;?#\s]*:\d")
"""A beginning with a scheme or a port: a text without them may be a token alone."""


def setting(name: str, value: object) -> str:
    """Returns the value for display, without secrets."""
    if not _HARMLESS.fullmatch(name) or _TELLING.search(name):
        return HIDDEN
    return address(str(value))


def settings(values: Mapping[str, object]) -> dict[str, str]:
    """Returns the settings for display, without secrets."""
    return {name: setting(name, value) for name, value in values.items()}


def may_be_secret(name: str, value: str) -> bool:
    """Returns whether the name or the value hints at a secret, or the value is an address that contains a secret."""
    return _TELLING.search(f"{name} {value}") is not None or address(value) != value


def address(text: str) -> str:
    """Returns a URL without user, password and the values of its parameters; a path is returned unchanged."""
    if not _SCHEME.match(text):
        return text
    return _PARAMETER.sub(_parameter, _USER.sub(rf"\1{HIDDEN}@", text))


def is_remote(text: str) -> bool:
    """Returns whether a string is the address of a Spark Connect server: `sc://host:port/;name=value`."""
    return _REMOTE.fullmatch(text) is not None


def remote(text: str) -> str:
    """Returns the address of a Spark Connect server without its secrets; hides doubtful parts of a mistyped address."""
    if is_remote(text):
        return address(text)
    found = _BEGINNING.match(text) if _IS_ADDRESS.match(text) else None
    beginning = found[0] if found is not None and "@" not in text else ""
    return beginning + ("" if beginning == text else HIDDEN)


def without_secrets(message: str, address: str) -> str:
    """Returns another program's message about an address, without the secrets in the address."""
    for found in _PARAMETER.finditer(address):
        if _parameter(found) != found[0]:
            message = message.replace(found[0], _parameter(found)).replace(found[0][len(found["name"]) :], HIDDEN)
    return message


def _parameter(found: re.Match[str]) -> str:
    is_plain = found["name"][1:-1].lower() in _PLAIN_PARAMETERS
    return found[0] if is_plain else found["name"] + HIDDEN
