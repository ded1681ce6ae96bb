#!/bin/sh
# Runs Slurm's daemons in namespaces whose first process this is: when it is killed, all end, and all
# mounts with them. Arguments are the directory of the files beside this one, and the node's name.
set -eu
dir=$1 node=$2
hostname "$node"
mount --make-rprivate /
mount -t proc proc /proc

# A /dev with four GPUs, whose driver there need not be.
mkdir "$dir/dev"
mount -t tmpfs -o mode=755 dev "$dir/dev"
for device in null zero full random urandom; do
	: >"$dir/dev/$device"
	mount --bind "/dev/$device" "$dir/dev/$device"
done
mkdir "$dir/dev/shm" "$dir/dev/pts"
ln -s /proc/self/fd "$dir/dev/fd"
for minor in 0 1 2 3; do mknod -m 666 "$dir/dev/nvidia$minor" c 195 "$minor"; done
mount --move "$dir/dev" /dev

# The prolog writes where it does on any node, and the test sees it outside.
mount -t tmpfs -o mode=755 run /run
mkdir -p /run/munge /run/gpumeter/jobs
mount --bind "$dir/jobs" /run/gpumeter/jobs

munged --force --foreground --key-file "$dir/munge.key" --socket /run/munge/socket --pid-file /run/munge/pid \
	--seed-file /run/munge/seed --log-file "$dir/munged.log" --num-threads 2 >"$dir/munged.out" 2>&1 &
while [ ! -S /run/munge/socket ]; do sleep 0.05; done
slurmctld -D -i -f "$dir/slurm.conf" >"$dir/slurmctld.out" 2>&1 &
slurmd -D -N "$node" -f "$dir/slurm.conf" >"$dir/slurmd.out" 2>&1 &
wait
