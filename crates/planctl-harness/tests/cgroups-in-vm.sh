#!/bin/bash
# Runs the tests of cgroups in a virtual machine whose first process delegates one as systemd does: on hosts that have
# none to delegate (containers, cgroup v1). Debian or Ubuntu on x86-64; needs root for apt, and some minutes.
set -euo pipefail
cd "$(dirname "$0")/../../.."
vm=$PWD/target/vm
mkdir -p "$vm/kernel"

command -v qemu-system-x86_64 setfattr cpio busybox > /dev/null ||
    apt-get install -y --no-install-recommends qemu-system-x86 attr cpio busybox-static
if ! ls "$vm"/kernel/boot/vmlinuz-* > /dev/null 2>&1; then
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: //p')
    (cd "$vm" && apt-get download "$package" && dpkg -x "$package"_*.deb kernel)
fi

program=$(cargo test -p planctl-harness --test processes --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*processes-[^"]*\)".*/\1/p')

rm -rf "$vm/root"
mkdir -p "$vm"/root/{bin,proc,sys,dev,tmp,run,etc,root,var/tmp,usr/bin,lib64}
copy() {
    local target
    target=$(readlink -f "$1")
    install -D "$target" "$vm/root$2"
    { ldd "$target" 2> /dev/null || true; } | sed -n 's#^[^/]*\(/[^ ]*\).*#\1#p' | while read -r library; do
        install -D "$(readlink -f "$library")" "$vm/root$library"
    done
}
for name in bash cat head tr ls sleep setsid mkdir setfattr seq rm; do copy "$(command -v $name)" "/bin/$name"; done
copy "$(command -v busybox)" /bin/busybox
copy "$program" /root/processes
ln -sf bash "$vm/root/bin/sh"
echo 'root:x:0:0:root:/root:/bin/bash' > "$vm/root/etc/passwd"
for name in bash cat head tr ls sleep setsid; do ln -sf "/bin/$name" "$vm/root/usr/bin/$name"; done
cat > "$vm/root/init" <<'END'
#!/bin/busybox sh
# A root that can be left: the first one of a kernel can't.
if [ ! -e /entered ]; then
    /bin/busybox mkdir /new && /bin/busybox mount -t tmpfs -o size=80% root /new
    for name in bin etc lib lib64 usr root init var tmp run proc sys dev; do
        [ -e /$name ] && /bin/busybox cp -a /$name /new/
    done
    /bin/busybox touch /new/entered
    exec /bin/busybox switch_root /new /init
fi
for mount in 'proc /proc' 'sysfs /sys' 'devtmpfs /dev' 'tmpfs /tmp' 'tmpfs /run' 'cgroup2 /sys/fs/cgroup'; do
    /bin/busybox mount -t ${mount% *} none ${mount#* }
done
/bin/busybox mkdir -p /dev/shm && /bin/busybox mount -t tmpfs none /dev/shm
/bin/busybox ip link set lo up
export PATH=/bin HOME=/root
unit=/sys/fs/cgroup/unit
mkdir $unit
echo '+memory +pids' > /sys/fs/cgroup/cgroup.subtree_control
setfattr -n user.delegate -v 1 $unit
echo $$ > $unit/cgroup.procs
cd /root && ./processes cgroup --nocapture 2>&1
echo "ended with $?"
/bin/busybox poweroff -f
END
chmod +x "$vm/root/init"
(cd "$vm/root" && find . | cpio --quiet -o -H newc) > "$vm/root.cpio"
# Without KVM: within another virtual machine it is often there and broken.
timeout 900 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -m 2G -smp 2 -nographic -no-reboot -nic none \
    -kernel "$vm"/kernel/boot/vmlinuz-* -initrd "$vm/root.cpio" -append 'console=ttyS0 quiet panic=-1' |
    tee "$vm/log"
grep -q '^ended with 0' "$vm/log"
