#!/bin/sh
# Epilog of Slurm: takes a job out of what the prolog wrote. In slurm.conf:
# Epilog=/etc/slurm/epilog.d/gpumeter.sh
set -eu
trap 'exit 0' EXIT # an epilog that fails drains the node: no job waits for what only counts it
dir=${GPUMETER_SLURM_JOB_MAPPING_DIR:-/run/gpumeter/jobs}
[ -d "$dir" ] || exit 0

exec 9>"$dir/.lock"
flock -w 10 9
for file in "$dir"/[0-9]*; do
	[ -f "$file" ] && grep -qx "$SLURM_JOB_ID" "$file" || continue
	grep -vx "$SLURM_JOB_ID" "$file" >"$dir/.next" || [ $? -eq 1 ] # 1: none is left; above: the disk is full
	if [ -s "$dir/.next" ]; then mv "$dir/.next" "$file"; else rm -f "$file" "$dir/.next"; fi
done
rm -f "$dir/jobs/$SLURM_JOB_ID.json"
