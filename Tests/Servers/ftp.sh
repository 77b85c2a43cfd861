# SPDX-License-Identifier: Apache-2.0
# FTP servers for script/servers: vsftpd, with anonymous users, without TLS, with explicit and with implicit TLS (its
# data connections must resume the TLS session of the control connection); pyftpdlib, for the user ada with the
# password secret, without TLS, and with explicit TLS over IPv6. A server that is not installed is left out.

launch_ftp() {
    local d=$servers_directory modules=$servers_package/.build/test-packages/modules
    # shellcheck disable=SC2207
    ftp_ports=($(free_ports 5))
    ftp_has_vsftpd='' ftp_has_python='' ftp_has_six=1
    mkdir -p "$d/ftp/pub" "$d/ftp/up" "$d/ftp-empty"
    cp "$d/www/1k.txt" "$d/www/1m.bin" "$d/ftp/pub/"
    cat "$d/pki/server.key" "$d/pki/server.pem" >"$d/ftp-server.pem"
    chmod 755 "$d/ftp" "$d/ftp-empty"
    chmod 777 "$d/ftp/up"
    if ((EUID == 0)); then chown -R 65534:65534 "$d/ftp" "$d/ftp-empty" "$d/ftp-server.pem"; fi
    if command -v vsftpd >/dev/null; then
        ftp_has_vsftpd=1
        launch_vsftpd 0 plain
        launch_vsftpd 1 explicit ssl_enable=YES allow_anon_ssl=YES force_anon_logins_ssl=YES force_anon_data_ssl=YES
        launch_vsftpd 2 implicit ssl_enable=YES allow_anon_ssl=YES implicit_ssl=YES
        await_port "${ftp_ports[0]}" && await_port "${ftp_ports[1]}" && await_port "${ftp_ports[2]}" || return 1
    fi
    if [[ -d $modules/pyftpdlib ]]; then
        ftp_has_python=1
        cp -R "$modules" "$d/ftp-modules"
        cp "$servers_package/Tests/Servers/ftp.py" "$d/ftp.py"
        launch_pyftpdlib 127.0.0.1 "${ftp_ports[3]}"
        if has_ipv6_loopback; then launch_pyftpdlib ::1 "${ftp_ports[4]}" "$d/ftp-server.pem"; else ftp_has_six=; fi
        await_port "${ftp_ports[3]}" || return 1
        if [[ -n $ftp_has_six ]]; then await_ftp6 "${ftp_ports[4]}" || ftp_has_six=; fi
    fi
}

# vsftpd reads fd 0 for a connection and reports errors there; it wants its configuration to be its own.
launch_vsftpd() { # number of its port, name, further settings
    local d=$servers_directory drop=()
    {
        printf '%s\n' listen=YES listen_ipv6=NO listen_address=127.0.0.1 "listen_port=${ftp_ports[$1]}" background=NO \
            seccomp_sandbox=NO connect_from_port_20=NO "secure_chroot_dir=$d/ftp-empty" xferlog_enable=YES \
            "vsftpd_log_file=$d/vsftpd-$2.log" xferlog_std_format=NO run_as_launching_user=YES ftp_username=nobody \
            anonymous_enable=YES no_anon_password=YES "anon_root=$d/ftp" local_enable=NO write_enable=YES \
            anon_upload_enable=YES anon_other_write_enable=YES anon_umask=022 anon_max_rate=50000000 \
            "rsa_cert_file=$d/ftp-server.pem" require_ssl_reuse=YES ssl_ciphers=HIGH
        if (($# > 2)); then printf '%s\n' "${@:3}"; fi
    } >"$d/vsftpd-$2.conf"
    : >"$d/vsftpd-$2.out"
    if ((EUID == 0)); then
        chown 65534:65534 "$d/vsftpd-$2.conf" "$d/vsftpd-$2.out"
        drop=(setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs)
    fi
    "${drop[@]}" vsftpd "$d/vsftpd-$2.conf" 0<>"$d/vsftpd-$2.out" >>"$d/output.log" 2>&1 &
    servers_pids+=($!)
}

launch_pyftpdlib() { # address, port, certificate and key if there is TLS
    local d=$servers_directory drop=()
    if ((EUID == 0)); then drop=(setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs); fi
    "${drop[@]}" "$(python)" -I "$d/ftp.py" "$d/ftp-modules" "$d/ftp" "$@" >>"$d/output.log" 2>&1 &
    servers_pids+=($!)
}

await_ftp6() {
    local attempt
    for ((attempt = 0; attempt < 100; attempt++)); do
        if (exec 3<>"/dev/tcp/::1/$1") 2>/dev/null; then return 0; fi
        sleep 0.05
    done
    return 1
}

export_ftp() {
    if [[ -n $ftp_has_vsftpd ]]; then
        export URLLOADING_TEST_VSFTPD="ftp://127.0.0.1:${ftp_ports[0]}"
        export URLLOADING_TEST_VSFTPD_EXPLICIT="ftp://localhost:${ftp_ports[1]}"
        export URLLOADING_TEST_VSFTPD_IMPLICIT="ftps://localhost:${ftp_ports[2]}"
    fi
    if [[ -n $ftp_has_python ]]; then
        export URLLOADING_TEST_PYFTPD="ftp://127.0.0.1:${ftp_ports[3]}"
        # Where there is no IPv6 it is left out.
        if [[ -n $ftp_has_six ]]; then export URLLOADING_TEST_PYFTPD_TLS="ftp://[::1]:${ftp_ports[4]}"; fi
    fi
    # What both serve.
    export URLLOADING_TEST_FTP_FILES="$servers_directory/ftp"
}
