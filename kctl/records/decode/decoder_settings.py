"""Settings of record decoders."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DecoderSettings:
    """The settings that a decoder may use.

    schema_registry: one URL, or several separated by commas. registry_user_info: its login, "user:password"; or
    registry_token. registry_ca, _cert, _key: PEM files. timeout_s: for one schema with its references. schema_id_bytes:
    the size of an id before the data, "4", "8" or "auto". schema_id_kind: "content" or "global" (Apicurio), or "auto".
    """

    schema_registry: str | None = None
    registry_user_info: str | None = field(default=None, repr=False)
    timeout_s: float = 30.0
    registry_token: str | None = field(default=None, repr=False)
    registry_ca: str | None = None
    registry_cert: str | None = None
    registry_key: str | None = None
    registry_key_password: str | None = field(default=None, repr=False)
    registry_check_hostname: bool = True
    schema_id_bytes: str = "auto"
    schema_id_kind: str = "auto"
