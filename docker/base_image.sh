#!/usr/bin/env bash
# This script makes a base image from Debian's packages, whose signatures debootstrap checks, where no image registry can
# be reached. `invoke docker-image` then prefers the base image to the one that the Dockerfile names.
# It needs root, debootstrap and a running Docker engine, and makes nothing where the image is there already.
set -euo pipefail
image=litebnn-base:bookworm-slim
docker image inspect "$image" >/dev/null 2>&1 && exit 0
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase bookworm "$root" >/dev/null
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
tar -C "$root" -c . | docker import - "$image"
