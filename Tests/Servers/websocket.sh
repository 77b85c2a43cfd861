# SPDX-License-Identifier: Apache-2.0
# WebSocket servers for script/servers, of Python libraries: websockets, wsproto, and hypercorn, which supports HTTP/2
# as well (RFC 8441). Left out if these are not installed.

launch_websockets() {
    local d=$servers_directory modules=$servers_package/.build/test-packages/modules port
    websocket_ports=()
    [[ -d $modules/hypercorn ]] || return 0
    # shellcheck disable=SC2207
    websocket_ports=($(free_ports 4))
    rm -rf "$d/websocket-modules"
    cp -R "$modules" "$d/websocket-modules"
    launch_websocket websockets "${websocket_ports[0]}"
    launch_websocket wsproto "${websocket_ports[1]}"
    launch_websocket hypercorn "${websocket_ports[2]}" "${websocket_ports[3]}" "$d/pki/server.pem" "$d/pki/server.key"
    for port in "${websocket_ports[@]}"; do await_port "$port" || return 1; done
}

launch_websocket() {
    local d=$servers_directory drop=(setpriv --pdeathsig TERM)
    if ((EUID == 0)); then drop+=(--reuid=65534 --regid=65534 --clear-groups --no-new-privs); fi
    "${drop[@]}" "$(python)" -I "$d/websocket.py" "$d/websocket-modules" "$@" >>"$d/output.log" 2>&1 &
    servers_pids+=($!)
}

export_websockets() {
    if ((${#websocket_ports[@]} == 0)); then return; fi
    export URLLOADING_TEST_WEBSOCKETS="ws://127.0.0.1:${websocket_ports[0]}"
    export URLLOADING_TEST_WSPROTO="ws://127.0.0.1:${websocket_ports[1]}"
    export URLLOADING_TEST_HYPERCORN="https://localhost:${websocket_ports[2]}"
    export URLLOADING_TEST_HYPERCORN_H2C="http://127.0.0.1:${websocket_ports[3]}"
}
