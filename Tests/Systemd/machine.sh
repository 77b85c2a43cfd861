#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Starts a whole systemd in namespaces of its own, above a copy-on-write view of this machine, and runs a script in it:
#
#     unshare -m -p -f -C -u -i -n --kill-child=SIGKILL sh machine.sh FOLDER SCRIPT
#
# FOLDER has what the script needs, and appears as /run/t; the script's output is in FOLDER/out. Needs root.
set -e
folder=$1
script=$2
mount --make-rprivate /
over=$folder/over
tree=$over/tree
mkdir -p "$over"
mount -t tmpfs over "$over"
mkdir "$over/upper" "$over/work" "$tree"
mount -t overlay overlay -o "lowerdir=/,upperdir=$over/upper,workdir=$over/work" "$tree"
mount -t proc proc "$tree/proc"
mount -t sysfs sysfs "$tree/sys" 2>/dev/null || mount --rbind /sys "$tree/sys"
umount -l "$tree/sys/fs/cgroup" 2>/dev/null || true
mount -t cgroup2 cgroup "$tree/sys/fs/cgroup"
for place in run tmp dev; do mount -t tmpfs "$place" "$tree/$place"; done
for device in null zero full random urandom tty; do
    touch "$tree/dev/$device"
    mount --bind "/dev/$device" "$tree/dev/$device"
done
mkdir "$tree/dev/pts" "$tree/dev/shm"
ln -s /proc/self/fd "$tree/dev/fd"
touch "$folder/console" "$tree/dev/console"
mount --bind "$folder/console" "$tree/dev/console"
mkdir -p "$tree/run/t" "$tree/run/systemd/system" "$tree/etc/systemd/user"
mount --bind "$folder" "$tree/run/t"
cp "$folder"/url-loading-agent@* "$tree/run/systemd/system/"
cp "$folder"/url-loading-agent.* "$tree/etc/systemd/user/"
cp "$folder/url-loading-agent" "$tree/usr/bin/"
cat >"$tree/run/systemd/system/script.service" <<END
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'exec /bin/sh /run/t/$script >/run/t/out 2>&1'
ExecStopPost=/bin/sh -c 'echo "\$\$EXIT_STATUS" >/run/t/status'
END
printf '[Unit]\nRequires=script.service dbus.socket\nAfter=script.service\n' >"$tree/run/systemd/system/test.target"
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    chroot "$tree" /lib/systemd/systemd --log-target=console --unit=test.target
