#!/bin/sh
# Builds the root image of every sandbox: the agent and its empty mount points, nothing else.
#   image.sh AGENT_BINARY OUTPUT.erofs
# The same agent gives the same bytes. Needs mkfs.erofs (erofs-utils 1.5 or newer).
set -eu
agent=$1
output=$2

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
for name in proc sys dev cg run stage root tmp; do
  mkdir "$tree/$name"
done
# Layers are mounted on these; the root is read-only, so they exist beforehand.
mkdir "$tree/img"
layer=0
while [ "$layer" -lt 128 ]; do
  mkdir "$tree/img/$layer"
  layer=$((layer + 1))
done
# What tells the sandbox from its copies.
mkdir "$tree/identity" "$tree/given"
# File systems of the host's disk are mounted on these, and on `gofer` what makes the runtime provide them.
mkdir "$tree/gofer" "$tree/disk" "$tree/disk/main" "$tree/disk/grade"
# Over an empty /tmp the runtime would mount a tmpfs of its own.
: > "$tree/tmp/.keep"
cp "$agent" "$tree/agent"
find "$tree" -type d -exec chmod 755 {} +
chmod 755 "$tree/agent"

rm -f "$output"
# No extended attributes and no inlined tails: the runtime reads neither.
mkfs.erofs --quiet -x-1 -E noinline_data --all-root -T 0 \
  -U 5a4d107a-9e0b-4c55-8a0f-a6e27ba6e000 "$output" "$tree" > /dev/null
