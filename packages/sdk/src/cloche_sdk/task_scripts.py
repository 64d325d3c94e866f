"""Shell scripts that do background tasks where the agent of a platform has none: run inside the sandbox, by any sh.

A task has a supervisor, which is a process of the agent with a tag. What it is asked and how it ended lie in a folder
of the user's own, as do its two streams, so that any later connection can read them. Everything that the task starts
carries its id in its environment: that is how it is found when the task ends, also where it left the session. The
supervisor and its helpers carry it as CLOCHE_SUPERVISOR.
"""

from __future__ import annotations

__all__ = ["CANCEL", "LIST", "READ", "START"]

_COMMON = r"""
umask 077
caller_path=${PATH-}
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$caller_path
root=${HOME:-/tmp}/.cloche-tasks
id=$1
at=$root/$id
nap() { sleep "$1" 2>/dev/null || sleep 1; }
now() { date -u +%Y-%m-%dT%H:%M:%SZ; }
ours() { [ -d "$root" ] && [ ! -L "$root" ] && [ -O "$root" ]; }
# When a process began, in ticks: with its number this names it for good. Fails for one that has ended.
birth() {
  line=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  set -- ${line##*) }
  [ "$1" != Z ] && echo "${20}"
}
# What is kept of a stream: what a file has beyond the limit does not count.
bytes() {
  size=0
  [ ! -f "$1" ] || [ -L "$1" ] || size=$(wc -c < "$1")
  if [ "$limit" -gt 0 ] && [ "$size" -gt "$limit" ]; then echo "$limit"; else echo "$size"; fi
}
# Signals everything that carries the id of this task under a name; fails where there is nothing.
sweep() {
  swept=1
  for file in $(grep -ls "${2:-CLOCHE_TASK}=$id" /proc/[0-9]*/environ 2>/dev/null); do
    file=${file#/proc/}
    kill "-$1" "${file%/environ}" 2>/dev/null && swept=0
  done
  return $swept
}
purge() {
  turns=0
  while sweep KILL && [ $turns -lt 50 ]; do turns=$((turns + 1)); nap 0.05; done
}
conclude() { printf '%s %s %s\n' "$1" "$2" "$(now)" > "$at.$$" && mv "$at.$$" "$at.status"; }
look() {
  state=running reason=- code=- finished=-
  read -r digest pid born started limit < "$at.request" || return 1
  [ -f "$at.status" ] || [ "$(birth "$pid")" = "$born" ] || [ -f "$at.status" ] || state=lost
  [ ! -f "$at.status" ] || { state=ended; read -r reason code finished < "$at.status"; }
  out_size=$(bytes "$at.out") err_size=$(bytes "$at.err")
}
"""

# Arguments: id, command, seconds, most bytes of each stream (0: no limit), digest of the request, most tasks that may
# run, most that are kept, and NAME=VALUE for its environment. Prints one line: started TIME, same, conflict, full or
# refused.
START = (
    _COMMON
    + r"""
command=$2 seconds=$3 limit=$4 digest=$5 most=$6 kept=$7
shift 7
mkdir -m 700 "$root" 2>/dev/null
ours || { echo refused; exit 1; }
started=$(now) born=$(birth $$)
printf '%s\n' "$digest $$ $born $started $limit" > "$at.$$" || { echo refused; exit 1; }
if ! ln "$at.$$" "$at.request" 2>/dev/null; then
  rm -f "$at.$$"
  read -r before rest < "$at.request" || { echo refused; exit 1; }
  if [ "$before" = "$digest" ]; then echo same; else echo conflict; fi
  exit 0
fi
rm -f "$at.$$"
running=0
for other in "$root"/*.request; do
  other=${other%.request}
  [ ! -f "$other.status" ] && read -r before pid begun rest < "$other.request" && [ "$(birth "$pid")" = "$begun" ] &&
    running=$((running + 1))
done
[ "$running" -le "$most" ] || { rm -f "$at.request"; echo full; exit 0; }
ls -t "$root"/*.status 2>/dev/null | tail -n "+$((kept + 1))" | while read -r old; do rm -f "${old%.status}".*; done
mkfifo "$at.1" "$at.2" || { rm -f "$at.request"; echo refused; exit 1; }

reason=
stop() {
  [ -z "$reason" ] || return
  reason=$1
  kill -TERM "-$leader" 2>/dev/null
  turns=0
  sweep TERM && while sweep 0 && [ $turns -lt 10 ]; do turns=$((turns + 1)); nap 0.1; done
  kill -KILL "-$leader" 2>/dev/null
  purge
}
# Takes one stream to its end, or until its file is over the limit.
take() {
  trap '' TERM USR1 XFSZ
  trap - USR2
  if [ "$limit" -eq 0 ]; then cat > "$1"; return; fi
  (ulimit -f $((limit / 512 + 1)); exec cat) > "$1"
  [ "$(wc -c < "$1")" -le "$limit" ] || [ "$(birth $$)" != "$born" ] || kill -USR2 $$
}
trap 'stop cancelled' TERM
trap 'stop timeout' USR1
trap 'stop output_limit' USR2
take "$at.out" < "$at.1" > /dev/null 2>&1 & taking_out=$!
take "$at.err" < "$at.2" > /dev/null 2>&1 & taking_err=$!
apart=$(command -v setsid)
set -- /usr/bin/env -u CLOCHE_SUPERVISOR "PATH=$caller_path" "$@" "CLOCHE_TASK=$id" /bin/sh -c "$command"
$apart "$@" < /dev/null > "$at.1" 2> "$at.2" & leader=$!
(
  trap 'kill $napping 2>/dev/null; exit' TERM
  sleep "$seconds" & napping=$!
  wait $napping && [ "$(birth $$)" = "$born" ] && kill -USR1 $$
) > /dev/null 2>&1 & timer=$!
printf 'started %s\n' "$started"
exec > /dev/null 2>&1
wait $leader
code=$?
if [ -n "$reason" ]; then
  wait $leader
  again=$?
  [ $again -eq 127 ] || code=$again
fi
trap '' TERM USR1 USR2
kill -TERM $timer
# Also after an end of its own: what a task leaves behind does not outlive it.
kill -KILL "-$leader" 2>/dev/null
purge
turns=0
while [ $turns -lt 20 ] && { birth $taking_out || birth $taking_err; }; do turns=$((turns + 1)); nap 0.05; done
conclude "${reason:-exit}" "$code"
rm -f "$at.1" "$at.2"
"""
)

# A line of a task, and the parts of its streams right behind it.
_SHOW = r"""
show() {
  out_first=$2 err_first=$3 out_part=$((out_size - $2)) err_part=$((err_size - $3))
  [ $out_part -ge 0 ] || { out_first=$out_size out_part=0; }
  [ $err_part -ge 0 ] || { err_first=$err_size err_part=0; }
  [ $out_part -le "$4" ] || out_part=$4
  [ $err_part -le "$4" ] || err_part=$4
  echo "task $1 $state $reason $code $started $finished $out_first $out_size $out_part $err_first $err_size $err_part"
  [ $out_part -eq 0 ] || tail -c "+$((out_first + 1))" "$at.out" | head -c $out_part
  [ $err_part -eq 0 ] || tail -c "+$((err_first + 1))" "$at.err" | head -c $err_part
}
"""

# Arguments: id, offset of standard output, offset of standard error, most bytes of each, seconds to wait.
READ = (
    _COMMON
    + _SHOW
    + r"""
ours && look || { echo missing; exit 0; }
end=$(($(date +%s) + $5))
while [ $state = running ] && [ "$out_size" -le "$2" ] && [ "$err_size" -le "$3" ] && [ "$(date +%s)" -lt $end ]; do
  nap 0.1
  look || { echo missing; exit 0; }
done
show "$id" "$2" "$3" "$4"
"""
)

# Arguments: id, offset of standard output, offset of standard error, most bytes of each.
CANCEL = (
    _COMMON
    + _SHOW
    + r"""
ours && look || { echo missing; exit 0; }
[ $state != running ] || kill -TERM "$pid"
turns=0
while [ $state = running ] && [ $turns -lt 60 ]; do
  turns=$((turns + 1))
  nap 0.1
  look || { echo missing; exit 0; }
done
if [ $state != ended ]; then
  [ $state != running ] || kill -KILL "$pid"
  purge
  sweep KILL CLOCHE_SUPERVISOR
  [ $state != running ] || [ -f "$at.status" ] || conclude cancelled 137
  look
fi
show "$id" "$2" "$3" "$4"
"""
)

# Takes no arguments. Prints a line of each task, oldest first.
LIST = (
    _COMMON
    + _SHOW
    + r"""
ours || exit 0
for file in $(ls -tr "$root"/*.request 2>/dev/null); do
  id=${file#"$root"/}
  id=${id%.request}
  at=$root/$id
  look && show "$id" 0 0 0
done
"""
)
