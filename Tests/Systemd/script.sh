# SPDX-License-Identifier: Apache-2.0
# The lives of agents below a real systemd. Prints one line for each result; Tests/URLLoadingAgentTests checks them.
set -e
ip link set lo up
mkdir -p /run/files && chmod 777 /run/files
python3 /run/t/origin.py >/run/t/requests &
as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
arrived() {
    # Waits for a file, and says whether it is whole.
    for _ in $(seq 2400); do
        [ -e "$1" ] && break
        sleep 0.05
    done
    cmp -s "$1" /run/files/content && echo "$2 whole" || echo "$2 missing or torn"
}
program() {
    # A service `$1` of nobody that hands a download to the agent at `$2`, with the variables `$3`, of the path `$4`;
    # waits until it is accepted.
    cat >/run/systemd/system/$1.service <<END
[Service]
User=nobody
Environment=${3:-XDG_STATE_HOME=/run/files/state}
Environment=URLLOADING_AGENT=/usr/bin/url-loading-agent HOME=/run/files
Environment=SWIFT_BACKTRACE=enable=no
ExecStart=/run/t/program $2 org.example.$1 submit http://127.0.0.1:8000/${4:-slow} /run/files/$1.bin
StandardOutput=append:/run/files/$1.log
StandardError=append:/run/files/$1.log
END
    # The program opens its output once more, which the manager would create as root.
    touch /run/files/$1.log
    chown 65534:65534 /run/files/$1.log
    systemctl daemon-reload
    systemctl start $1.service
    for _ in $(seq 2400); do
        grep -q accepted /run/files/$1.log 2>/dev/null && return
        sleep 0.05
    done
    cat /run/files/$1.log
}
half_arrived() {
    for _ in $(seq 2400); do
        [ -n "$(find /run/files -maxdepth 1 -name '.urlloading*' -size +90k)" ] && return
        sleep 0.05
    done
    echo "nothing of $1 arrived"
}
python3 - <<END
import sys; sys.path.insert(0, "/run/t")
import origin
open("/run/files/content", "wb").write(origin.CONTENT)
END

# An agent of a system account, started by its socket.
systemctl start url-loading-agent@nobody.socket
program account /run/url-loading/nobody/agent.sock
systemctl stop account.service
echo "account agent $(systemctl is-active url-loading-agent@nobody.service)"
arrived /run/files/account.bin account

# Another user cannot connect.
setpriv --reuid=65533 --regid=65533 --clear-groups python3 -c '
import socket
try: socket.socket(socket.AF_UNIX).connect("/run/url-loading/nobody/agent.sock")
except PermissionError: print("other user refused")'

# Its restart and its death refuse no program.
$as_nobody python3 /run/t/clients.py /run/url-loading/nobody/agent.sock 4 &
clients=$!
sleep 1
systemctl restart url-loading-agent@nobody.service
sleep 1
systemctl kill -s KILL url-loading-agent@nobody.service
wait $clients

# An agent that the program starts ends with the program's service, and the next start resumes its transfers.
systemctl stop url-loading-agent@nobody.socket url-loading-agent@nobody.service
program forked - "" stalls
pgrep -f /run/files/state >/dev/null && echo "forked agent runs"
half_arrived forked
systemctl stop forked.service
# The manager waits for the program; the agent puts its download in order first.
for _ in $(seq 200); do
    pgrep -f /run/files/state >/dev/null || break
    sleep 0.05
done
pgrep -f /run/files/state >/dev/null && echo "forked agent lives" || echo "forked agent ended"
[ -e /run/files/forked.bin ] && echo "forked too early"
systemctl start forked.service
arrived /run/files/forked.bin forked
systemctl stop forked.service

# An agent that the user's service manager starts for the program, without installed units; one that is killed is
# replaced, although its socket is left.
mkdir /run/units
mv /etc/systemd/user/url-loading-agent.* /run/units/
loginctl enable-linger nobody
systemctl start user@65534.service
manager="env XDG_RUNTIME_DIR=/run/user/65534 $as_nobody systemctl --user"
program transient - "XDG_STATE_HOME=/run/files/transient XDG_RUNTIME_DIR=/run/user/65534" stalls
half_arrived transient
systemctl stop transient.service
echo "transient agent $($manager is-active url-loading-agent.service)"
$manager kill -s KILL url-loading-agent.service
sleep 0.2
[ -e /run/files/transient.bin ] && echo "transient too early"
systemctl start transient.service
arrived /run/files/transient.bin transient
systemctl stop transient.service
$manager stop url-loading-agent.service || true

# An agent of the user's service manager with installed units, whose socket the program starts, and then one whose
# socket is enabled.
mv /run/units/* /etc/systemd/user/
mkdir -p /etc/systemd/user/url-loading-agent.service.d
printf '[Service]\nEnvironment=XDG_STATE_HOME=/run/files/users\n' >/etc/systemd/user/url-loading-agent.service.d/state.conf
$manager daemon-reload
program installed - "XDG_STATE_HOME=/run/files/users XDG_RUNTIME_DIR=/run/user/65534"
systemctl stop installed.service
echo "installed agent $($manager is-active url-loading-agent.socket)"
arrived /run/files/installed.bin installed
program users /run/user/65534/url-loading/agent.sock
systemctl stop users.service
arrived /run/files/users.bin users
echo done
