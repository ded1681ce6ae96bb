#!/bin/sh
# Prolog of Slurm: writes which GPUs a job was given, for gpumeter --slurm.job-mapping-dir (and for
# dcgm-exporter, whose format it is). In slurm.conf: Prolog=/etc/slurm/prolog.d/gpumeter.sh
# PrologFlags=Alloc makes it run when the job gets its nodes, and not at its first step.
set -eu
trap 'exit 0' EXIT # a prolog that fails drains the node: no job waits for what only counts it
dir=${GPUMETER_SLURM_JOB_MAPPING_DIR:-/run/gpumeter/jobs}
[ -n "${SLURM_JOB_GPUS:-}" ] || exit 0

# Words that Slurm's own commands may set stand between quotes in what follows.
word() { printf '%s' "$1" | tr -d '\000-\037"\\'; }

umask 022
mkdir -p "$dir/jobs"
cat >"$dir/jobs/.$SLURM_JOB_ID" <<END
{"user": "$(word "${SLURM_JOB_USER:-}")", "account": "$(word "${SLURM_JOB_ACCOUNT:-}")", "partition": "$(word "${SLURM_JOB_PARTITION:-}")", "qos": "$(word "${SLURM_JOB_QOS:-}")", "name": "$(word "${SLURM_JOB_NAME:-}")", "sluid": "$(word "${SLURM_JOB_SLUID:-}")"}
END
mv "$dir/jobs/.$SLURM_JOB_ID" "$dir/jobs/$SLURM_JOB_ID.json"

# One job at a time changes the files: jobs that share a GPU may begin together.
exec 9>"$dir/.lock"
flock -w 10 9
for gpu in $(printf '%s' "$SLURM_JOB_GPUS" | tr ',' ' '); do
	grep -qx "$SLURM_JOB_ID" "$dir/$gpu" 2>/dev/null || echo "$SLURM_JOB_ID" >>"$dir/$gpu"
done
