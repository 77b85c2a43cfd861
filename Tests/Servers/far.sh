# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Puts relays with delay, jitter and cut segments between the tests and the servers that `start_servers` has started.
# Data connections of FTP go past them, and so does what is reached at ::1, by the ports in URLLOADING_NEAR_*.

far_near=()

start_far() { # seed
    local program name url
    program=$(swift build --show-bin-path)/FarProgram
    coproc FAR { exec "$program" "$1"; }
    far_pid=$FAR_PID
    while IFS='=' read -r name url; do
        far_near+=("$name=$url")
        export "${name/_TEST_/_NEAR_}=$url"
        echo "$name $url" >&"${FAR[1]}"
    done < <(env | grep -E '^URLLOADING_TEST_[A-Z0-9_]+=[a-z0-9]+://[^[]')
    echo >&"${FAR[1]}"
    while read -r -u "${FAR[0]}" name url; do
        [[ -n $name ]] || return 0
        export "$name=$url"
    done
    echo "far: the relays did not start" >&2
    return 1
}

stop_far() {
    local line
    for line in "${far_near[@]}"; do
        export "${line?}"
        line=${line%%=*}
        unset "${line/_TEST_/_NEAR_}"
    done
    far_near=()
    kill "$far_pid" 2>/dev/null || true
    wait "$far_pid" 2>/dev/null || true
}
