#!/bin/sh
# Prints a board's properties and state, one `name=value` per line; unknown values are empty.

# Prints the first line of the first of these files that can be read.
first() {
  for file; do
    if [ -r "$file" ]; then
      tr '\0' '\n' <"$file" | head -n 1
      return
    fi
  done
}

# Converts clock rates from kHz to MHz and prints each different number once, because the cores of a cluster share a
# clock.
megahertz() {
  cat "$@" 2>/dev/null | sort -n | uniq | awk '{ printf "%s%.0f", sep, $1 / 1000; sep = " " }'
}

cpus=/sys/devices/system/cpu
cpu=$(LC_ALL=C lscpu 2>/dev/null | sed -n 's/^Model name: *//p' | sort -u | paste -sd, -)
clock=$(megahertz "$cpus"/cpu[0-9]*/cpufreq/scaling_cur_freq)
throttled=$(vcgencmd get_throttled 2>/dev/null | sed -n 's/^throttled=//p')

echo "board=$(first /proc/device-tree/model /sys/class/dmi/id/product_name)"
echo "cpu=${cpu:-$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)}"
echo "cores=$(getconf _NPROCESSORS_ONLN)"
echo "machine=$(uname -m)"
echo "kernel=$(uname -sr)"
echo "libc=$(getconf GNU_LIBC_VERSION 2>/dev/null)"
echo "clock_mhz=${clock:-$(sed -n 's/^cpu MHz[^:]*: *//p' /proc/cpuinfo | sort -n | tail -n 1 | cut -d. -f1)}"
echo "clock_max_mhz=$(megahertz "$cpus"/cpu[0-9]*/cpufreq/scaling_max_freq)"
echo "governor=$(cat "$cpus"/cpu[0-9]*/cpufreq/scaling_governor 2>/dev/null | sort -u | paste -sd' ' -)"
echo "temperature_c=$(cat /sys/class/thermal/thermal_zone*/temp 2>/dev/null | sort -n | tail -n 1 | awk '{ print $1 / 1000 }')"
# A Raspberry Pi reports the causes of throttling as bits. On other machines the kernel counts how often it throttled.
echo "throttled=${throttled:-$(cat "$cpus"/cpu[0-9]*/thermal_throttle/core_throttle_count 2>/dev/null | awk '{ n += $1 } END { if (NR) print n }')}"
