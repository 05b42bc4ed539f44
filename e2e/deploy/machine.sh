#!/bin/bash
# Boots systemd as process 1 of a machine made of this one's files, with a release installed as docs/installing.md says.
# usage: machine.sh <release> <scratch> <Debian's packages, unpacked> <units to start> [<name> <address> <network namespace> <disk>]; in
# new mount, pid, network, host name, IPC and cgroup namespaces. With a name the release is only unpacked, and the machine has an
# interface to the bridge `lan` of the other namespace. With a disk, a folder, the data of etcd, containerd and the kubelet are on it.
set -eu
release=$1
scratch=$2
packages=$3
wants=$4
name=${5:-}
address=${6:-}
lan=${7:-}
disk=${8:-}

mount --make-rprivate /
mount -t tmpfs none "$scratch"
root=$scratch/root
mkdir "$scratch/upper" "$scratch/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" "$root"
mkdir -p "$root/opt/coxswain"
if [ -n "$name" ]; then mount --bind "$release" "$root/opt/coxswain"; else cp -a "$release/." "$root/opt/coxswain"; fi
mkdir -p "$root/opt/debian"
[ ! -d "$packages" ] || mount --bind "$packages" "$root/opt/debian"

ip link set lo up
if [ -n "$name" ]; then
  ip link add eth0 type veth peer name "$name" netns "$lan"
  ip addr add "$address/24" dev eth0
  ip link set eth0 up
  nsenter --net="/run/netns/$lan" ip link set "$name" master lan up
  ip route add default via "${address%.*}.254"
else
  ip link add machine0 type bridge
  ip addr add 10.111.0.1/24 dev machine0
  ip link set machine0 up
  ip route add default via 10.111.0.2
fi

mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else
  mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
  while IFS=: read -r _ controllers _; do
    case $controllers in
      "") mkdir "$root/sys/fs/cgroup/unified" && mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup/unified" ;;
      name=systemd) mkdir "$root/sys/fs/cgroup/systemd" && mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd" ;;
      *) mkdir "$root/sys/fs/cgroup/$controllers" && mount -t cgroup -o "$controllers" cgroup "$root/sys/fs/cgroup/$controllers" ;;
    esac
  done </proc/self/cgroup
fi
for folder in dev run tmp; do mount -t tmpfs tmpfs "$root/$folder"; done
for device in null zero full random urandom tty; do cp -a "/dev/$device" "$root/dev/$device"; done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=0666,mode=0620,gid=5
ln -s pts/ptmx "$root/dev/ptmx"

# An overlay cannot be the upper layer of another one.
for folder in containerd coxswain docker kubelet; do
  mkdir -p "$root/var/lib/$folder"
  mount -t tmpfs tmpfs "$root/var/lib/$folder"
done
if [ -n "$disk" ]; then
  for folder in containerd etcd kubelet; do
    chown --reference="$root/var/lib/$folder" "$disk/$folder"
    mount --bind "$disk/$folder" "$root/var/lib/$folder"
  done
fi

# What would change the machine that this one stands on, or wait for hardware.
units=$root/etc/systemd/system
rm -rf "$units"/*.wants
for unit in "$root"/lib/systemd/system/{sysinit,local-fs,sockets,timers,multi-user}.target.wants/* "$root"/lib/systemd/system/network-online.target; do
  case ${unit##*/} in
    systemd-journald*) ;;
    *) ln -sf /dev/null "$units/${unit##*/}" ;;
  esac
done

cd "$root"
rm -rf var/lib/etcd/default etc/cni/net.d/*
install_by_hand() { # as docs/installing.md says
  for program in coxswain kube-apiserver kube-controller-manager kube-scheduler kubelet coxswain-services; do
    ln -sf /opt/coxswain/bin/$program usr/bin/$program
  done
  mkdir -p etc/systemd/system/kubelet.service.d var/lib/kubelet
  cp opt/coxswain/systemd/*.service etc/systemd/system
  cp opt/coxswain/systemd/kubelet.service.d/10-kubeadm.conf etc/systemd/system/kubelet.service.d
  cp opt/coxswain/systemd/coxswain-users.conf usr/lib/sysusers.d/coxswain.conf
  cp opt/coxswain/systemd/kubelet-config.yaml var/lib/kubelet/config.yaml
  cp opt/coxswain/systemd/kubeadm-flags.env var/lib/kubelet/kubeadm-flags.env
  chroot . systemd-sysusers
  chroot . /usr/bin/coxswain certs --node-name=machine --apiserver-names=10.96.0.1,10.111.0.1 --kubelet-names=10.111.0.1
  cat >etc/default/etcd <<'X'
ETCD_LISTEN_CLIENT_URLS=https://127.0.0.1:2379
ETCD_ADVERTISE_CLIENT_URLS=https://127.0.0.1:2379
ETCD_CERT_FILE=/etc/kubernetes/pki/etcd/server.crt
ETCD_KEY_FILE=/etc/kubernetes/pki/etcd/server.key
ETCD_TRUSTED_CA_FILE=/etc/kubernetes/pki/etcd/ca.crt
ETCD_CLIENT_CERT_AUTH=true
X
  echo 'KUBE_SCHEDULER_ARGS=--secure-port=10359 --v=1' >etc/kubernetes/kube-scheduler.env
  echo 'COXSWAIN_SERVICES_ARGS=--node-name=machine' >etc/kubernetes/coxswain-services.env
  echo 'KUBELET_EXTRA_ARGS=--hostname-override=machine --fail-swap-on=false' >etc/default/kubelet
}
if [ -n "$name" ]; then
  echo "$name" >etc/hostname
  # Every machine resolves its own name.
  printf '127.0.0.1 localhost\n%s %s\n' "$address" "$name" >etc/hosts
else
  install_by_hand
fi

# What a container runtime needs everywhere: a network, and here the images that this machine makes.
mkdir -p etc/containerd etc/cni/net.d
cat >etc/containerd/config.toml <<'X'
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "coxswain.local/pause:3.6"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
X
[ -n "$name" ] || cat >etc/cni/net.d/10-machine.conflist <<'X'
{"cniVersion":"0.4.0","name":"machine","plugins":[{"type":"bridge","bridge":"cni0","isGateway":true,
"ipam":{"type":"host-local","ranges":[[{"subnet":"10.244.0.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]}}]}
X
mkdir etc/systemd/system/containerd.service.d
printf '[Service]\nOOMScoreAdjust=0\n' >etc/systemd/system/containerd.service.d/oom.conf

printf '[Unit]\nWants=%s\n' "$wants" >etc/systemd/system/machine.target
mkdir outside
pivot_root . outside
umount --lazy /outside
mount --make-rshared / # as systemd does where it finds no container
exec env -i container=machine PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=machine.target
