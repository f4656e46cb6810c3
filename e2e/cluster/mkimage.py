#!/usr/bin/env python3
"""Make a one-layer image archive (the `docker save` format, which
`ctr images import` reads) from files of this machine. No registry, no root.

mkimage.py --name localhost/pause:1 --out pause.tar --entry /pause SRC:DST ...
A SRC given with --elf also brings the shared libraries that ldd names.
"""
import argparse
import hashlib
import io
import json
import os
import platform
import subprocess
import tarfile

# A fixed date in every image, so that equal files have equal digests.
CREATED = "2026-01-01T00:00:00Z"
SEARCH_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--entry", action="append", default=[], help="one word of the entry point")
    parser.add_argument("--user", default="")
    parser.add_argument("--workdir", default="/")
    parser.add_argument("--elf", action="append", default=[], help="SRC[:DST], with its libraries")
    parser.add_argument("--dir", action="append", default=["/tmp"], help="a world-writable folder")
    parser.add_argument("files", nargs="*", help="SRC:DST")
    return parser.parse_args()


def contents(args):
    """The files of the image: path inside -> path on this machine."""
    files = {}
    for pair in args.files:
        source, target = pair.split(":")
        files[target] = source
    for pair in args.elf:
        source, _, target = pair.partition(":")
        files[target or source] = source
        libraries = subprocess.run(["ldd", source], capture_output=True, text=True, check=True)
        for word in libraries.stdout.split():
            if word.startswith("/"):
                files[word] = word
    return files


def layer(files, writable):
    buffer = io.BytesIO()
    made = set()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:

        def folder(path, mode=0o755):
            if path in ("", "/") or path in made:
                return
            folder(os.path.dirname(path))
            made.add(path)
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)

        for path in writable:
            folder(path, 0o1777)
        for path in ("/proc", "/sys", "/dev", "/etc"):
            folder(path)
        for target, source in sorted(files.items()):
            folder(os.path.dirname(target))
            real = os.path.realpath(source)
            entry = tarfile.TarInfo(target.lstrip("/"))
            entry.size = os.path.getsize(real)
            entry.mode = 0o755 if os.access(real, os.X_OK) else 0o644
            with open(real, "rb") as file:
                tar.addfile(entry, file)
    return buffer.getvalue()


def main():
    args = arguments()
    data = layer(contents(args), args.dir)
    digest = hashlib.sha256(data).hexdigest()
    config = json.dumps({
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine()),
        "os": "linux",
        "created": CREATED,
        "config": {"Entrypoint": args.entry, "User": args.user, "Env": [SEARCH_PATH], "WorkingDir": args.workdir},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]},
        "history": [{"created": CREATED, "created_by": "mkimage"}],
    }).encode()
    identity = hashlib.sha256(config).hexdigest()
    manifest = [{"Config": identity + ".json", "RepoTags": [args.name], "Layers": [digest + "/layer.tar"]}]
    partial = args.out + ".partial"
    with tarfile.open(partial, "w") as tar:
        for name, body in (
            (identity + ".json", config),
            (digest + "/layer.tar", data),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(body), 0o644
            tar.addfile(entry, io.BytesIO(body))
    os.replace(partial, args.out)
    print(args.name, args.out, os.path.getsize(args.out) >> 20, "MiB")


main()
