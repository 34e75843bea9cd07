#!/bin/busybox sh
# init: the first process of the emulated machine: a disk in memory, then the tests, then off.
# ttyS0 shows what happens; ttyS1 takes the results: "status: N NAME", and the XML of each program.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp TMPDIR=/mnt disk=/run/disk
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
ln -s /proc/self/fd /dev/fd
stty -F /dev/ttyS1 raw -echo

# ext4 on a loop device: direct I/O as on a disk, which a file system in memory does not have.
insmod /loop.ko max_loop=1
truncate -s 1G $disk
/mke2fs -q -F -t ext4 -m0 -O ^has_journal $disk
losetup /dev/loop0 $disk
mount -t ext4 /dev/loop0 /mnt

echo "== $(uname -sr), $(nproc) processors, $(awk '/MemTotal/ { print $2 }' /proc/meminfo) kB"
cd /mnt || poweroff -f
for program in /tests/*; do
  name=${program##*/}
  "$program" --gtest_output="xml:/tmp/$name.xml" --gtest_brief=1
  status=$?
  [ ! -f "/tmp/$name.xml" ] || cat "/tmp/$name.xml" >/dev/ttyS1
  echo "status: $status $name" >/dev/ttyS1
  echo "== $name ended with $status"
done
sync
poweroff -f
