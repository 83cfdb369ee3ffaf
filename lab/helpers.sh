# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# What jobs use, in the guest. A job is a shell script that ends at the first
# command that fails; what it leaves in /results comes out.

# bind_all: give to vfio-pci every PCI function that is alone in its group.
# Bridges, the IOMMU's own function and virtio devices stay with the kernel.
bind_all() {
  for device in /sys/bus/pci/devices/*; do
    case $(cat "$device/class") in 0x06* | 0x0806*) continue ;; esac
    case $(cat "$device/vendor") in 0x1af4) continue ;; esac
    [ "$(ls "$device/iommu_group/devices" 2>/dev/null)" = "${device##*/}" ] || continue
    bind "${device##*/}" || echo "vfio-pci does not take ${device##*/}"
  done
}

# bind BDF
bind() {
  echo vfio-pci >"/sys/bus/pci/devices/$1/driver_override"
  [ ! -e "/sys/bus/pci/devices/$1/driver" ] ||
    echo "$1" >"/sys/bus/pci/devices/$1/driver/unbind"
  echo "$1" >/sys/bus/pci/drivers_probe
  [ "$(basename "$(readlink "/sys/bus/pci/devices/$1/driver")")" = vfio-pci ]
}

# device_with_bar GIB: the first function on vfio-pci that has a BAR of so many GiB
device_with_bar() {
  for device in /sys/bus/pci/drivers/vfio-pci/0*; do
    while read -r start end _; do
      if [ $((end - start + 1)) = $(($1 << 30)) ]; then
        echo "${device##*/}"
        return 0
      fi
    done <"$device/resource"
  done
  echo "no function on vfio-pci has a BAR of $1 GiB" >&2
  return 1
}
