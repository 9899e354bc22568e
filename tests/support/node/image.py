"""A container image made here of a static busybox: nothing has to be fetched."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from hashlib import sha256
from pathlib import Path
from typing import Any

REFERENCE = "localhost/dovetail-test:1"
APPLETS = (
    *("sh", "sleep", "cat", "env", "dd", "tail", "true", "false", "taskset", "ls", "stat"),
    *("echo", "touch", "rm", "test", "kill", "nc", "wget", "httpd"),
)
FOLDERS = ("bin", "proc", "sys", "dev", "etc", "tmp", "run")
OCI = "application/vnd.oci.image"


def write(target: Path, busybox: Path = Path("/bin/busybox")) -> None:
    """An archive in the OCI layout, to be imported."""
    layer = _archive(
        [(_entry(name, tarfile.DIRTYPE), b"") for name in FOLDERS]
        + [(_entry("bin/busybox"), busybox.read_bytes())]
        + [(_entry(f"bin/{name}", tarfile.SYMTYPE, "busybox"), b"") for name in APPLETS]
    )
    packed = gzip.compress(layer, mtime=0)
    config = _json(
        architecture="amd64",
        os="linux",
        config={"Entrypoint": ["/bin/tail", "-f", "/dev/null"], "Env": ["PATH=/bin"]},
        rootfs={"type": "layers", "diff_ids": [_digest(layer)]},
    )
    manifest = _json(
        schemaVersion=2,
        mediaType=f"{OCI}.manifest.v1+json",
        config=_described(config, "config.v1+json"),
        layers=[_described(packed, "layer.v1.tar+gzip")],
    )
    named = {"io.containerd.image.name": REFERENCE}
    index = _json(
        schemaVersion=2,
        manifests=[{**_described(manifest, "manifest.v1+json"), "annotations": named}],
    )
    files = {"oci-layout": _json(imageLayoutVersion="1.0.0"), "index.json": index}
    for blob in (packed, config, manifest):
        files[f"blobs/sha256/{sha256(blob).hexdigest()}"] = blob
    target.write_bytes(_archive([(_entry(name), data) for name, data in files.items()]))


def _json(**values: Any) -> bytes:
    return json.dumps(values).encode()


def _digest(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def _described(data: bytes, kind: str) -> dict[str, Any]:
    return {"mediaType": f"{OCI}.{kind}", "digest": _digest(data), "size": len(data)}


def _entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.type, entry.linkname = 0o755, kind, link
    return entry


def _archive(files: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for entry, data in files:
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return held.getvalue()
