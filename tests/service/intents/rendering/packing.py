"""Archives and charts of a few words, and programs that stand for helm."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

CHART = "apiVersion: v2\nname: shop\nversion: 0.1.0\n"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}-web", namespace: "{{ .Release.Namespace }}"}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: "{{ .Values.image }}"}]
"""
FILES: Mapping[str, str] = {
    "shop/Chart.yaml": CHART,
    "shop/values.yaml": "replicas: 1\nimage: web:1\nadminPassword: hunter22\n",
    "shop/templates/web.yaml": DEPLOYMENT,
}


def tgz(
    files: Mapping[str, str | bytes] | None = None, *more: tuple[tarfile.TarInfo, bytes]
) -> bytes:
    """A .tgz of files by path, and of further members as they are."""
    content = io.BytesIO()
    # Without the time of day: tests that are named after an archive have one name everywhere.
    with (
        gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as archive,
    ):
        for name, text in (files or {}).items():
            data = text.encode() if isinstance(text, str) else text
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for member, data in more:
            archive.addfile(member, io.BytesIO(data))
    return content.getvalue()


def member(name: str, **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    found = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(found, field, value)
    return found, b""


def program(directory: Path, script: str) -> str:
    """A shell script that stands for helm."""
    path = directory / "helm"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)
