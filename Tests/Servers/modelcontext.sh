# SPDX-License-Identifier: Apache-2.0
# A server of the Model Context Protocol for script/servers, of the Python library mcp. Left out if it is not installed.

launch_modelcontext() {
    local d=$servers_directory modules=$servers_package/.build/test-packages/modules drop=(setpriv --pdeathsig TERM)
    modelcontext_port=
    [[ -d $modules/mcp ]] || return 0
    modelcontext_port=$(free_ports 1)
    rm -rf "$d/modelcontext-modules"
    cp -R "$modules" "$d/modelcontext-modules"
    if ((EUID == 0)); then drop+=(--reuid=65534 --regid=65534 --clear-groups --no-new-privs); fi
    "${drop[@]}" "$(python)" -I "$d/modelcontext.py" "$d/modelcontext-modules" "$modelcontext_port" >>"$d/output.log" 2>&1 &
    servers_pids+=($!)
}

export_modelcontext() {
    if [[ -z $modelcontext_port ]]; then return; fi
    export URLLOADING_TEST_MCP="http://127.0.0.1:$modelcontext_port"
}
