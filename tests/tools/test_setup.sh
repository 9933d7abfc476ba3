#!/bin/sh
# SPDX-License-Identifier: MIT
# test_setup.sh - tools/setup against a made-up machine: PATH holds fakes of apt-get, sudo, id
# and dpkg-query beside the few real commands that setup may use. Nothing is installed.
set -eu

case $0 in */*) top=${0%/*}/../.. ;; *) top=../.. ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# The fakes. apt-get writes down how it was called and "installs" a package by making a
# command of the same name, unless the word in $work/apt says how it goes wrong.
fake() { cat >"$work/bin/$1" && chmod +x "$work/bin/$1"; }

new_machine() {
    rm -rf "$work/bin" "$work/tmp" "$work/calls"
    mkdir -p "$work/bin" "$work/tmp" "$work/tools"
    for real in cat chmod date env grep mktemp rm sh sleep tail; do
        ln -s "$(command -v $real)" "$work/bin/$real"
    done
    have true
    cp "$top/tools/setup" "$work/tools/setup"
    cat >"$work/tools/packages.txt" <<END
# a comment
tiny  alpha  command:alpha  # why
tiny  beta   file:$work/bin/bet*
more  gamma                 # asked of dpkg-query
more  alpha  command:alpha
END
    echo fine >"$work/apt"
    echo 0 >"$work/uid"
    : >"$work/calls"
    fake id <<END
#!/bin/sh
cat "$work/uid"
END
    fake dpkg-query <<END
#!/bin/sh
for package; do :; done
[ -e "$work/bin/\$package" ] && echo installed
END
    fake sudo <<END
#!/bin/sh
[ ! -e "$work/password" ] || exit 1
echo "sudo \$*" >>"$work/calls"
[ "\$1" != -n ] || shift
exec "\$@"
END
    fake apt-get <<END
#!/bin/sh
echo "\$DEBIAN_FRONTEND apt-get \$*" >>"$work/calls"
mode=\$(cat "$work/apt")
case "\$mode \$*" in
locked*) echo fine >"$work/apt"; echo "E: Could not get lock lists/lock"; exit 100 ;;
broken*install*) echo "E: Unable to locate package beta" >&2; exit 100 ;;
nolists*update*) echo "E: no network" >&2; exit 100 ;;
lying*|*update*) exit 0 ;;
esac
for package; do
    case \$package in alpha|beta|gamma) : >"$work/bin/\$package" ;; *) continue ;; esac
    chmod +x "$work/bin/\$package"
done
END
}

have() { for name; do echo '#!/bin/sh' | fake "$name"; done; }

# run STATUS ARGUMENT...: runs setup and checks its exit status.
run() {
    expected=$1
    shift
    status=0
    PATH=$work/bin TMPDIR=$work/tmp "$work/tools/setup" "$@" >"$work/out" 2>&1 </dev/null ||
        status=$?
    [ $status = "$expected" ] || complain "exit $status instead of $expected"
}
says() { grep -qF -- "$1" "$work/out" || complain "does not say: $1"; }
called() { grep -qF -- "$1" "$work/calls" || complain "did not call: $1"; }
calls_nothing() { [ ! -s "$work/calls" ] || complain "called something"; }

complain() {
    echo "    $*; it said:"
    sed 's/^/    | /' "$work/out" "$work/calls"
    verdict=FAIL
}
begin() {
    case_name=$1
    verdict=ok
    rm -f "$work/password"
    new_machine
}
end() {
    echo "$verdict  setup: $case_name"
    [ $verdict = ok ] || failures=$((failures + 1))
}

begin "all present needs neither apt-get nor root"
have alpha beta gamma
rm "$work/bin/apt-get" "$work/bin/sudo"
echo 1000 >"$work/uid"
run 0 tiny more
says "setup: tiny: all present"
says "setup: more: all present"
calls_nothing
end

begin "only what is missing is installed, once, after an update"
have alpha
run 0 all
says "setup: tiny: installing beta"
says "setup: more: installing gamma"
called "noninteractive apt-get -y -o DPkg::Lock::Timeout=120 update"
called "DPkg::Lock::Timeout=120 install --no-install-recommends beta gamma"
[ "$(grep -c apt-get "$work/calls")" = 2 ] || complain "apt-get was not called twice"
[ -z "$(ls "$work/tmp")" ] || complain "left a log behind"
end

begin "a dry run installs nothing"
run 0 --dry-run tiny
says "setup: tiny: would install alpha beta"
calls_nothing
run 0 -n tiny
says "setup: tiny: would install alpha beta"
end

begin "--list tells what is there"
have alpha
run 0 --list
grep -q "tiny *alpha *present" "$work/out" || complain "alpha is not listed as present"
grep -q "more *gamma *missing" "$work/out" || complain "gamma is not listed as missing"
calls_nothing
end

begin "apt-get failing is told with its last words and the log"
echo broken >"$work/apt"
run 1 tiny
says "E: Unable to locate package beta"
says "setup: apt-get could not install alpha beta"
says "$work/tmp/sinew-setup."
end

begin "a failing update is not the end"
echo nolists >"$work/apt"
run 0 tiny
says "E: no network"
says "apt-get update failed; trying"
end

begin "a lock held by another apt is waited for"
echo locked >"$work/apt"
run 0 tiny
[ "$(grep -c update "$work/calls")" = 2 ] || complain "did not try again"
end

begin "a package that does not bring its proof is named"
echo lying >"$work/apt"
have alpha
run 1 tiny
says "setup: tiny: apt-get was content, yet"
says "beta (file:"
end

begin "without apt-get it says what to install by hand"
rm "$work/bin/apt-get"
have alpha
run 1 tiny
says "setup: there is no apt-get here; install these by hand"
says "beta (file:"
calls_nothing
end

begin "not root: goes through sudo"
echo 1000 >"$work/uid"
run 0 tiny
called "sudo -n env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get"
end

begin "not root and no sudo"
echo 1000 >"$work/uid"
rm "$work/bin/sudo"
run 1 tiny
says "setup: not root, and there is no sudo; as root, run: apt-get install alpha beta"
calls_nothing
end

begin "not root, sudo wants a password, no terminal"
echo 1000 >"$work/uid"
: >"$work/password"
run 1 tiny
says "setup: sudo wants a password and there is no terminal"
calls_nothing
end

begin "an unknown group is named, with the list, exit 2"
run 2 tiny bogus
says "setup: there is no group 'bogus'"
says "groups: tiny more"
run 2
run 2 --bogus
calls_nothing
end

begin "an odd proof is refused"
echo "tiny  delta  delta" >>"$work/tools/packages.txt"
run 1 tiny
says "'delta' is no proof"
calls_nothing
end

begin "the real packages.txt gives every package a proof"
cp "$top/tools/packages.txt" "$work/tools/packages.txt"
run 0 --list
says "core   gcc"
[ -z "$(grep -vE ' (command|file):' "$work/out")" ] || complain "a line has no proof"
end

echo "test_setup: $failures failed"
[ $failures = 0 ]
