"""`[archive.bucket]`, `[archive.mirror]`, `[archive.encryption]`, `[archive.tiers]`: where binlogs are moved, and how they are stored
there."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from relay.config.text.amounts import checked_size, checked_time
from relay.config.text.passwords import CREDENTIALS
from relay.config.text.problems import Wrong
from relay.config.toml_section import TomlSection
from relay.config.values import NonEmpty, PathText
from relay.object_store.store_options import StoreOptions
from relay.packed.key_ring import KeySource

Time = Annotated[str, AfterValidator(checked_time)]
Size = Annotated[str, AfterValidator(checked_size)]


def _checked_bucket(text: str) -> str:
    try:
        StoreOptions(text)
    except ValueError as error:
        may_be_secret = any(mark in text for mark in "?#@")
        instead = f"{str(error)[:1].upper()}{str(error)[1:]}"
        raise Wrong("this is no bucket", instead, is_shown=not may_be_secret) from None
    return text


class BucketSection(TomlSection):
    """Object storage for binlogs. Login data that is left out comes from the environment (`AWS_ACCESS_KEY_ID`,
    `AWS_SECRET_ACCESS_KEY`, `GOOGLE_APPLICATION_CREDENTIALS`, `AZURE_STORAGE_ACCOUNT_KEY`, …), else from the role of the machine in
    its cloud."""

    url: Annotated[str, AfterValidator(_checked_bucket)]
    """Bucket and folder, for this archive alone: `s3://`, `gs://` (Google), `az://` (Azure: container and folder) or, for trials,
    `file:///directory` (created with mode 0750 if it is missing). Example: `"s3://binlogs/relay-a"`"""
    endpoint: NonEmpty | None = None
    """The address of the storage, unless it is that of Amazon, Google or Azure. Example: `"https://minio.example:9000"`"""
    region: NonEmpty | None = None
    """The region of the bucket (S3). Example: `"eu-central-1"`"""
    access_key_id: NonEmpty | None = None
    """The id of the access key (S3), or the account (Azure). Example: `"AKIAIOSFODNN7EXAMPLE"`"""
    secret_key_file: PathText | None = None
    """A file with the secret of that key. Example: `"/etc/binlog-relay/bucket.secret"`"""
    secret_key_credential: NonEmpty | None = None
    """Instead of the file, a credential of systemd with it. Example: `"bucket-secret"`"""
    credentials_file: PathText | None = None
    """The JSON file of a service account (Google). Example: `"/etc/binlog-relay/google.json"`"""

    def options(self) -> StoreOptions:
        """Return how it is opened."""
        secret = self.secret_key_file
        if self.secret_key_credential is not None:
            secret = Path(os.environ.get(CREDENTIALS, "/run/credentials")) / self.secret_key_credential
        return StoreOptions(
            self.url,
            endpoint=self.endpoint,
            region=self.region,
            access_key_id=self.access_key_id,
            secret_key_file=None if secret is None else str(secret),
            credentials_file=None if self.credentials_file is None else str(self.credentials_file),
        )


class MirrorSection(TomlSection):
    """The bucket of `[archive.bucket]` is kept as a second copy of the whole archive while the relay runs."""

    interval_s: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 2.0
    """The longest time after which what is published goes to the bucket as the next part of its file, while the bucket answers. About
    so much is lost with the relay's disk. Example: `10`"""
    keep_until_copied: bool = True
    """`keep_for` and `keep_bytes` of `[retention]` remove no binlog that is not in the bucket yet, unless the disk has less room than
    5 % of its size, or 20 GiB. `min_free` and PURGE do not wait. Example: `false`"""


class EncryptionKey(TomlSection):
    """A key of 32 bytes, for packed binlogs. `openssl rand -hex 32` generates one. Give one of `file`, `env` and `credential`."""

    id: Annotated[str, Field(min_length=1, max_length=64)]
    """Its name, which is stored in the files that are encrypted with it. Example: `"2026-11"`"""
    file: PathText | None = None
    """A file with the key. Example: `"/etc/binlog-relay/2026-11.key"`"""
    env: NonEmpty | None = None
    """An environment variable with it, as hexadecimal digits or base64. Example: `"RELAY_KEY"`"""
    credential: NonEmpty | None = None
    """A credential of systemd's with it. Example: `"relay-key-2026-11"`"""

    def source(self) -> KeySource:
        """Return the place where it is read."""
        return KeySource(self.id, None if self.file is None else str(self.file), self.env, self.credential)


class EncryptionSection(TomlSection):
    """Packed binlogs are encrypted with AES-256-GCM, on the disk and in the bucket."""

    active: NonEmpty | None = None
    """The id of the key for files that are packed from now on. Left out: they are not encrypted; those that are, are read. Example:
    `"2026-11"`"""
    keys: Annotated[tuple[EncryptionKey, ...], Field(alias="key", strict=False)] = ()
    """The keys, also those of older files, as sections `[[archive.encryption.key]]`. Example:
    `[{ id = "2026-11", file = "/etc/binlog-relay/2026-11.key" }]`"""


class TiersSection(TomlSection):
    """The times when binlogs are packed, and when they leave the disk. The oldest go first; the newest file stays as it is."""

    cold_after: Time | None = None
    """A file is packed when its newest event is older than this. Days (`d`) or hours (`h`), counted back from the newest event in
    the archive. Left out: age packs nothing. Example: `"2d"`"""
    hot_bytes: Size | None = None
    """The oldest files are packed while those that are not packed have together more bytes than this. `KiB`, `MiB`, `GiB` or `TiB`.
    Left out: size packs nothing. Example: `"200GiB"`"""
    object_after: Time | None = None
    """A packed file goes to the bucket when its newest event is older than this. Days (`d`) or hours (`h`). Left out: age moves
    nothing there. Example: `"14d"`"""
    cold_bytes: Size | None = None
    """The oldest packed files go to the bucket while those on the disk take more bytes than this, as packed. `KiB`, `MiB`, `GiB` or
    `TiB`. Left out: size moves nothing there. Example: `"100GiB"`"""
    level: Annotated[int, Field(ge=1, le=19)] = 3
    """The compression level of zstd. Example: `1`"""

    read_cache: Size = "256MiB"
    """Memory for the parts of packed files that were read last, or are read ahead: shared by all replicas. `MiB`, `GiB` or `TiB`.
    Example: `"1GiB"`"""

    @property
    def moves_to_bucket(self) -> bool:
        """True if anything is ever moved there."""
        return self.object_after is not None or self.cold_bytes is not None
