# SPDX-License-Identifier: Apache-2.0
# Redis servers for script/servers, which keep everything in memory: one, and one that is full. Left out where Redis is
# not installed.

launch_redis() {
    local d=$servers_directory drop=(setpriv --pdeathsig TERM)
    redis_port= redis_full_port=
    command -v redis-server >/dev/null || return 0
    if ((EUID == 0)); then drop+=(--reuid=65534 --regid=65534 --clear-groups --no-new-privs); fi
    read -r redis_port redis_full_port <<<"$(free_ports 2)"
    local common=(--bind 127.0.0.1 --save '' --appendonly no --daemonize no --dir "$d")
    "${drop[@]}" redis-server --port "$redis_port" "${common[@]}" --maxmemory 64mb --maxmemory-policy allkeys-lru \
        >>"$d/output.log" 2>&1 &
    servers_pids+=($!)
    "${drop[@]}" redis-server --port "$redis_full_port" "${common[@]}" --maxmemory 1 --maxmemory-policy noeviction \
        >>"$d/output.log" 2>&1 &
    servers_pids+=($!)
    await_port "$redis_port" && await_port "$redis_full_port" || return 1
}

export_redis() {
    if [[ -n $redis_port ]]; then
        export URLLOADING_TEST_REDIS=$redis_port URLLOADING_TEST_REDIS_FULL=$redis_full_port
    fi
}
