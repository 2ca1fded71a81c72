#!/bin/sh
# What tests/links/hosts promises. Prints "ok ..." or "FAILED ..." for each; exits 1 if any failed,
# 77 where hosts cannot be made. Takes about 20 seconds; minutes where a rate is not reached.
here=$(cd "$(dirname "$0")" && pwd)
hosts="$here/hosts"
goodput="$here/goodput.py"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM HUP
cd "$scratch" || exit 1
failures=0

check() {  # check NAME CONDITION...
  name=$1
  shift
  if "$@"; then echo "ok $name"; else echo "FAILED $name: $*"; failures=$((failures + 1)); fi
}

long=$((90000000 + $$))  # seconds no other program sleeps

# nothing_left PID: no namespace of that invocation, and no process of this test's ranks
nothing_left() {
  ! ip netns list | grep -q "^ddpsim-$1-" && ! pgrep -fx "sleep $long" > /dev/null
}

nothing_left_soon() {  # a busy machine takes its time
  for _ in $(seq 150); do
    nothing_left "$1" && return 0
    sleep 0.2
  done
  return 1
}

wait_for() {  # wait_for FILE...: until all exist
  for _ in $(seq 1200); do
    all=yes
    for file; do [ -e "$file" ] || all=no; done
    [ $all = yes ] && return 0
    sleep 0.05
  done
  return 1
}

between() {  # between LOW VALUE HIGH
  awk -v low="$1" -v value="$2" -v high="$3" 'BEGIN { exit !(low <= value && value <= high) }'
}

export long
links_before=$(ip -o link | cut -d: -f2)
"$hosts" 2 1gbit true
status=$?
[ $status = 77 ] && exit 77
check "two hosts do nothing, successfully" [ $status = 0 ]

# shellcheck disable=SC2016  # the ranks expand it
"$hosts" 2 1gbit sh -c 'address=$(ip -br address show link0 | awk "{print \$3}")
echo "$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_ADDR $MASTER_PORT \
$DDPSIM_INTERFACE $GLOO_SOCKET_IFNAME $address"' | sort > environment
cat > expected <<'END'
0 2 0 1 10.77.0.1 29500 link0 link0 10.77.0.1/24
1 2 0 1 10.77.0.1 29500 link0 link0 10.77.0.2/24
END
check "each host knows its rank, its peers and its interface" cmp -s environment expected

# reached_at RATE HOSTS SHARE: how much of that many Gbit/s, at least SHARE of them if it can
reached_at() {
  enough=$(awk -v rate="$1" -v share="$3" 'BEGIN { print share * rate }')
  "$hosts" "$2" "$1gbit" "$goodput" "stop-$1-$2" --enough "$enough" |
    awk -v rate="$1" '{ print $1 / rate }'
}
for rate in 1 2; do
  reached=$(reached_at $rate 2 0.92)
  check "goodput at $rate Gbit/s is $reached of it: at least 0.92, below 1" \
    between 0.92 "$reached" 1
done
# Beyond, a machine whose timers are later than the burst allows loses some: see hosts.
# A busy machine has no processor left to carry 5 Gbit/s, but more than the slower link does.
reached=$(reached_at 5 2 0.92)
check "goodput at 5 Gbit/s is $reached of it: more than 2 Gbit/s, below 1" between 0.4 "$reached" 1
check "four hosts reach one another at their rate" between 0.92 "$(reached_at 1 4 0.92)" 1
check "an unlimited link is faster than 5 Gbit/s" between 5 \
  "$("$hosts" 2 unlimited "$goodput" stop-unlimited --enough 5)" 10000

# shellcheck disable=SC2016
"$hosts" 2 1gbit,500mbit sh -c 'echo "$RANK $(tc qdisc show dev link0)"' > rates
check "the first host has the first rate" grep -q "^0 .* rate 1Gbit " rates
check "the second host has the second" grep -q "^1 .* rate 500Mbit " rates
"$hosts" 3 1gbit,500mbit true 2> message
check "rates for two of three hosts are refused" [ $? = 2 ]
check "and it says what was expected" grep -q "one for each of 3 hosts" message

"$hosts" 3 1gbit sleep 1 &
first=$!
"$hosts" 2 1gbit sleep 1 &
second=$!
wait $first
one=$?
wait $second
check "two invocations run at once" [ "$one$?" = 00 ]
check "they leave nothing behind" nothing_left_soon "\($first\|$second\)"

# A failing rank. Its code is the answer; the others are killed when the time is up, with their
# children.
start=$(date +%s)
# shellcheck disable=SC2016
LINK_GRACE=1 "$hosts" 3 1gbit sh -c 'if [ $RANK = 1 ]; then exit 9; fi
sleep $long & sleep $long; exit 4' 2> message &
id=$!
wait $id
check "the first failure's code is the exit code" [ $? = 9 ]
check "the others get LINK_GRACE seconds, not the usual 70" between 1 $(($(date +%s) - start)) 60
check "and it says who was killed" grep -q "1 s after rank 1 failed, killed: rank 0 2" message
check "a failed run leaves nothing behind" nothing_left $id
"$hosts" 2 1gbit sh -c "kill -SEGV \$\$" &
id=$!
wait $id
check "a crashed rank counts as 128 + its signal" [ $? = 139 ]
check "a crashed run leaves nothing behind" nothing_left $id
# shellcheck disable=SC2016
"$hosts" 2 1gbit sh -c 'sleep $long & exit 0' &
id=$!
wait $id
check "what a rank left running does not fail the run" [ $? = 0 ]
check "but does not outlive it" nothing_left $id
LINK_GRACE=1 "$hosts" 2 1gbit no-such-command 2> /dev/null &
id=$!
wait $id
check "a command that does not exist is a failure" [ $? -ne 0 ]
check "which leaves nothing behind" nothing_left $id

for pair in INT:130 TERM:143 HUP:129; do
  signal=${pair%:*}
  rm -f started.* caught.*
  # shellcheck disable=SC2016
  "$hosts" 4 5gbit sh -c 'trap "touch caught.$RANK; exit 0" '"$signal"'; touch started.$RANK
    while :; do sleep 0.1; done' 2> /dev/null &
  id=$!
  wait_for started.0 started.1 started.2 started.3
  kill "-$signal" $id
  wait $id
  check "$signal ends it with the signal's code" [ $? = "${pair#*:}" ]
  check "$signal reaches every rank" [ -e caught.0 -a -e caught.1 -a -e caught.2 -a -e caught.3 ]
  check "$signal leaves nothing behind" nothing_left $id
done

rm -f started.*
# shellcheck disable=SC2016
"$hosts" 2 5gbit sh -c 'trap "" INT; touch started.$RANK; sleep $long; sleep $long' 2> message &
id=$!
wait_for started.0 started.1
kill -INT $id
wait $id
check "ranks deaf to INT are killed" [ $? = 130 ]
check "and named" grep -q "after SIGINT, killed: rank 0 1" message
check "and leave nothing behind" nothing_left $id

early=yes
for delay in 0.02 0.04 0.06 0.08 0.1 0.12; do
  "$hosts" 4 5gbit sleep "$long" &
  id=$!
  sleep $delay
  kill -TERM $id
  wait $id 2> /dev/null
  nothing_left $id || early=no
done
check "interrupted while it makes the hosts, it leaves nothing behind" [ $early = yes ]

rm -f started.*
# shellcheck disable=SC2016
"$hosts" 2 5gbit sh -c 'touch started.$RANK; sleep $long' &
id=$!
wait_for started.0 started.1
kill -KILL $id
wait $id 2> /dev/null
check "killed outright, it leaves nothing behind" nothing_left_soon $id

refused() {  # refused CODE ARGUMENTS...
  code=$1
  shift
  "$@" > /dev/null 2> message
  [ $? = "$code" ] && [ "$(wc -l < message)" = 1 ]
}
check "one host is refused" refused 2 "$hosts" 1 1gbit true
check "five hosts are refused" refused 2 "$hosts" 5 1gbit true
check "a rate without a unit is refused" refused 2 "$hosts" 2 5 true
check "no rate at all is refused" refused 2 "$hosts" 2 0gbit true
check "no command is refused" refused 2 "$hosts" 2 1gbit
python=$(python3 -c 'import sys; print(sys.executable)')
check "without ip and tc it says so" refused 77 env PATH=/nowhere "$python" "$hosts" 2 1gbit true
if command -v setpriv > /dev/null; then
  check "without root it says so" \
    refused 77 setpriv --reuid 65534 /usr/bin/env python3 "$hosts" 2 1gbit true
fi
check "with root but without the right to make namespaces it says so" \
  refused 77 setpriv --bounding-set -sys_admin,-net_admin --inh-caps -sys_admin,-net_admin \
  "$python" "$hosts" 2 1gbit true
links_after=$(ip -o link | cut -d: -f2)
check "the machine's own interfaces are as before" [ "$links_after" = "$links_before" ]

[ $failures = 0 ]
