# SPDX-License-Identifier: Apache-2.0
# A Redis server for script/servers, which keeps everything in memory. Left out where it is not installed.

launch_redis() {
    local d=$servers_directory drop=(setpriv --pdeathsig TERM)
    redis_port=
    command -v redis-server >/dev/null || return 0
    if ((EUID == 0)); then drop+=(--reuid=65534 --regid=65534 --clear-groups --no-new-privs); fi
    redis_port=$(free_ports 1)
    "${drop[@]}" redis-server --bind 127.0.0.1 --port "$redis_port" --save '' --appendonly no --daemonize no \
        --dir "$d" --maxmemory 64mb --maxmemory-policy allkeys-lru >>"$d/output.log" 2>&1 &
    servers_pids+=($!)
    await_port "$redis_port" || return 1
}

export_redis() {
    if [[ -n $redis_port ]]; then export URLLOADING_TEST_REDIS=$redis_port; fi
}
