# Shared by up and down: where an engine lives, who holds it, whether it answers. Sourced, not run.

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

say() { printf 'engine: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

# locate DIR: sets dir, name (of cgroup and process), socket and url.
locate() {
  dir=$(realpath -m -- "$1")
  name=pi-test-engine-$(printf %s "$dir" | cksum | cut -d' ' -f1)
  socket=$dir/engine.sock
  url=unix://$socket
}

# answers URL: true when a Docker engine answers /_ping there within 2 s. python3, as a bare Debian has no curl.
answers() {
  case $1 in
    unix://* | tcp://*) python3 -ISc '
import socket, sys
kind, _, where = sys.argv[1].partition("://")
try:
    if kind == "unix":
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(2)
        link.connect(where)
    else:
        host, _, port = where.rstrip("/").rpartition(":")
        link = socket.create_connection((host.strip("[]"), int(port)), 2)
    link.sendall(b"GET /_ping HTTP/1.0\r\nHost: engine\r\n\r\n")
    sys.exit(b" 200 " not in link.recv(64))
except (OSError, ValueError):
    sys.exit(1)
' "$1" && return 0 ;;
  esac
  # What the lines above cannot speak (ssh, TLS) the engine own client can.
  case $1 in
    ssh://* | tcp://*) command -v docker >/dev/null && timeout 10 docker -H "$1" version >/dev/null 2>&1 ;;
    *) return 1 ;;
  esac
}

# holder: prints the pid of this engine's holder; false when none lives. A pid is used again after its process
# ended, so the process must also carry this engine's name and folder in its arguments.
holder() {
  local pid args
  [ -f "$dir/holder.pid" ] && read -r pid <"$dir/holder.pid" && [[ $pid =~ ^[1-9][0-9]*$ ]] || return 1
  mapfile -d '' -t args 2>/dev/null <"/proc/$pid/cmdline" || return 1
  [ "${#args[@]}" -ge 3 ] && [ "${args[-1]}" = "$name" ] && [ "${args[-2]}" = "$dir" ] || return 1
  printf '%s\n' "$pid"
}

# has_ended PID: true when the process is gone, or only waits for its parent to ask how it ended.
has_ended() { ! grep -qsE '^State:[[:space:]]+[^ZX]' "/proc/$1/status"; }

# wait_ended PID TENTHS: true as soon as the process has ended.
wait_ended() {
  local try
  for ((try = 0; try < $2; try++)); do
    has_ended "$1" && return
    sleep 0.1
  done
  has_ended "$1"
}

# An engine that was killed leaves the empty control groups of its containers behind.
sweep_cgroups() {
  find /sys/fs/cgroup -depth -type d \( -path "*/$name/*" -o -name "$name" \) -exec rmdir {} + 2>/dev/null || true
}
