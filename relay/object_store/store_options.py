"""The address of a bucket, the origin of its credentials, and the time limits for its answers."""

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from relay.disk.file_calls import make_directory
from relay.object_store.object_errors import StoreRefused

_PART_TRIES: Final = 10
_PART_TIMEOUT_S: Final = 60.0
_PART_GIVE_UP_S: Final = 180.0
"""The limit for one part, from its first try on."""
SCHEMES: Final = ("s3", "gs", "az", "file")


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The options contain no secret, and can be pickled.

    `url`: `s3://BUCKET/PREFIX`, `gs://…`, `az://CONTAINER/…` or `file:///DIRECTORY`. `endpoint`: of a storage that is not Amazon's
    (Google's, Azure's). What is left out comes from the environment (`AWS_…`, `GOOGLE_…`, `AZURE_STORAGE_…`), else from the machine's
    role in its cloud. `access_key_id` goes with `secret_key_file`; for Azure it is the account. `credentials_file`: Google's JSON
    file of a service account. `tries`, `give_up_s`: a call that fails is retried as long as neither is reached.
    """

    url: str
    endpoint: str | None = None
    region: str | None = None
    access_key_id: str | None = None
    secret_key_file: str | None = None
    credentials_file: str | None = None
    connect_timeout_s: float = 5.0
    timeout_s: float = 30.0
    tries: int = 8
    give_up_s: float = 60.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in SCHEMES or (parts.scheme != "file" and not parts.netloc) or "@" in parts.netloc:
            wanted = "s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///DIRECTORY"
            raise ValueError(f"a bucket is written {wanted}")
        if parts.query or parts.fragment or "?" in self.url or "#" in self.url:
            # The text there may be a secret: it is not repeated.
            raise ValueError(
                "a bucket's url ends with the folder: what stands behind ? or # (such as a SAS token) would be shown in logs. Give the "
                "key by secret_key_file or the environment"
            )

    @property
    def scheme(self) -> str:
        """The kind of storage."""
        return urlsplit(self.url).scheme

    @property
    def bucket(self) -> str:
        """The bucket's name."""
        return urlsplit(self.url).netloc

    @property
    def prefix(self) -> str:
        """The beginning of all keys, without slashes at its ends; may be empty."""
        return urlsplit(self.url).path.strip("/")

    def make(self, *, for_uploads: bool = False) -> Any:
        """Return the store of obstore's. for_uploads: of files in parts, of which one that fails is sent again. Raises:
        StoreRefused."""
        # A relay without a bucket does not load it.
        from obstore.exceptions import BaseError
        from obstore.store import AzureStore, GCSStore, LocalStore, S3Store

        timeout_s = max(self.timeout_s, _PART_TIMEOUT_S) if for_uploads else self.timeout_s
        client: dict[str, Any] = {
            "timeout": datetime.timedelta(seconds=timeout_s),
            "connect_timeout": datetime.timedelta(seconds=self.connect_timeout_s),
            "allow_http": self.endpoint is not None and self.endpoint.startswith("http://"),
        }
        # Tries are counted and named in one place, `relay.object_store.trying`; but obstore sends a failed part of an upload again.
        tries: dict[str, Any] = {"max_retries": 0, "retry_timeout": datetime.timedelta(seconds=timeout_s)}
        if for_uploads:
            tries = {"max_retries": _PART_TRIES, "retry_timeout": datetime.timedelta(seconds=_PART_GIVE_UP_S)}
        common: dict[str, Any] = {"prefix": self.prefix or None, "client_options": client, "retry_config": tries}
        try:
            if self.scheme == "file":
                # Its objects have the umask's modes: below a directory that others cannot enter, these say nothing.
                directory = Path(urlsplit(self.url).path)
                make_directory(directory)
                return LocalStore(directory)
            settings: dict[str, Any] = {**common, **self._config()}
            if self.scheme == "s3":
                return S3Store(self.bucket, **settings)
            if self.scheme == "gs":
                return GCSStore(self.bucket, **settings)
            return AzureStore(self.bucket, **settings)
        except OSError as error:
            what = "its directory cannot be made" if self.scheme == "file" else "its credentials cannot be read"
            what = f"{what}: {error.filename}: {error.strerror}"
            raise StoreRefused(what, url=self.url) from None
        except (BaseError, ValueError) as error:
            raise StoreRefused(str(error).partition("\n")[0], url=self.url) from None

    def _config(self) -> dict[str, str]:
        secret = None if self.secret_key_file is None else Path(self.secret_key_file).read_text().strip()
        if self.scheme == "s3":
            found = {
                "endpoint": self.endpoint,
                "region": self.region,
                "access_key_id": self.access_key_id,
                "secret_access_key": secret,
            }
        elif self.scheme == "gs":
            found = {"service_account": self.credentials_file, "base_url": self.endpoint}
        else:
            found = {"account_name": self.access_key_id, "account_key": secret, "endpoint": self.endpoint}
        return {name: value for name, value in found.items() if value is not None}
