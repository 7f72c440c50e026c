#!/usr/bin/env bash
# This script makes the image debian:bookworm-slim from Debian's packages alone, where no image registry can be reached.
# It needs root, debootstrap and a running Docker engine, and makes nothing where the image is there already.
set -euo pipefail
image=debian:bookworm-slim
docker image inspect "$image" >/dev/null 2>&1 && exit 0
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase bookworm "$root" >/dev/null
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
tar -C "$root" -c . | docker import - "$image"
