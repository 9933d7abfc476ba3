#!/bin/sh
# SPDX-License-Identifier: MIT
# chat.sh - guests of the chat server: sh chat.sh HOST:PORT EMPTY_DIRECTORY. Silent if all is well.
set -eu
addr=$1
cd "$2"
guests=
trap 'for guest in $guests; do kill "$guest" 2>/dev/null || :; done' EXIT

# enter NAME DESCRIPTOR: what is written to the descriptor the guest says; NAME.heard is what it
# hears.
enter() {
    mkfifo "$1.says"
    socat -t 5 - "TCP:$addr" <"$1.says" >"$1.heard" 2>"$1.words" &
    guests="$guests $!"
    eval "exec $2>$1.says"
    eval "echo $1 >&$2"
    expect "$1" welcome
}

# expect NAME LINE: NAME hears it, within ten seconds.
expect() {
    tries=0
    until grep -qx -- "$2" "$1.heard" 2>/dev/null; do
        tries=$((tries + 1))
        if [ $tries -gt 500 ]; then
            echo "$1 has not heard '$2', but:"
            tail -n 5 "$1.heard"
            exit 1
        fi
        sleep 0.02
    done
}

enter ann 3
enter bob 4
expect ann '\* bob has joined'
enter carl 5
expect ann '\* carl has joined'
expect bob '\* carl has joined'

echo 'hello, all' >&3
expect bob '<ann> hello, all'
expect carl '<ann> hello, all'
echo 'hello, ann' >&4
expect ann '<bob> hello, ann'
expect carl '<bob> hello, ann'
if grep -q '<ann>' ann.heard; then
    echo "ann hears herself"
    exit 1
fi

# A name that is taken is asked for again; so is none.
printf 'bob\n\nno blanks\ndora\n' | socat -t 10 - "TCP:$addr" >dora.heard
expect ann '\* dora has joined'
expect ann '\* dora has left'
[ "$(grep -c 'your name?' dora.heard)" = 4 ] || { cat dora.heard; exit 1; }

exec 5>&- # carl has said all
expect ann '\* carl has left'
expect bob '\* carl has left'

# One who never listens: socat -u does not read from the server.
mkfifo deaf.says
socat -u - "TCP:$addr" <deaf.says &
guests="$guests $!"
exec 6>deaf.says
echo deaf >&6
expect ann '\* deaf has joined'
line=$(printf '%0400d' 0)
said=0
until grep -qx '\* deaf has left' ann.heard; do
    said=$((said + 1))
    [ $said -le 400 ] || { echo "the deaf guest is still there"; exit 1; }
    i=0
    while [ $i -lt 20 ]; do
        echo "$line" >&4
        i=$((i + 1))
    done
    # No faster than ann listens, however busy the machine is: else she is shown out as well.
    echo "that was $said" >&4
    expect ann "<bob> that was $said"
done
echo 'still there?' >&3
expect bob '<ann> still there?'
