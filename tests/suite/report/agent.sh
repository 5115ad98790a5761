# A night of work on a small repository. Each start moves the clock by what the work took, and commits at that time.
export GIT_AUTHOR_NAME=agent GIT_AUTHOR_EMAIL=agent@example.com GIT_COMMITTER_NAME=agent GIT_COMMITTER_EMAIL=agent@example.com
now() { cut -d. -f1 ../clock; }
work() { echo "$(( $(now) + $1 * 60 )).000" > ../clock.agent; mv ../clock.agent ../clock; }
commit() { GIT_AUTHOR_DATE="$(now) +0000" GIT_COMMITTER_DATE="$(now) +0000" git commit -qam "$1"; }
# Input, output and cached tokens, then the cost.
spent() { printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","total_cost_usd":%s,"usage":{"input_tokens":%s,"output_tokens":%s,"cache_read_input_tokens":%s},"session_id":"s-1"}\n' "$1" "$2" "$3" "$4" "$5"; }

case $n in
1)
  text 'Reading src/dates.sh and its tests first.'; tool 'cat src/dates.sh'; work 14
  cat > src/dates.sh <<'END'
# Prints a date as year, month and day.
parse() {
  case $1 in
    ????-??-??) echo "$1" | tr - ' ' ;;
    ????????) echo "$1" | sed 's/^\(....\)\(..\)\(..\)$/\1 \2 \3/' ;;
    *) return 1 ;;
  esac
}
END
  tool './check.sh'; commit 'dates: parse calendar dates in both forms'
  spent 'Calendar dates parse in both forms. Week dates and offsets are next.' 0.61 8200 5400 210000 ;;
2)
  text 'Offsets come after the time, so I strip them before the date is read.'; work 22
  sed -i 's/^parse() {/parse() {\n  set -- "${1%%T*}"/' src/dates.sh
  printf 'is "2026 11 16" 2026-11-16T08:00:00Z\nis "2026 11 16" 20261116T080000+0100\n' >> tests/dates_test.sh
  tool './check.sh'; commit 'dates: accept a time and an offset'
  spent 'All formats of the task parse.\n\n<promise>COMPLETE</promise>' 0.94 11900 7100 380000 ;;
3) text 'Week dates are missing. I read the standard on the first week of a year.'; work 3; limit $(( $(now) + 5700 )) ;;
4)
  work 18
  cat >> src/dates.sh <<'END'

# Prints the Monday of a week as year, month and day.
parse_week() {
  year=${1%%-W*} week=${1##*-W}
  date -u -d "$year-01-04 +$(( (week - 1) * 7 )) days -$(( $(date -u -d "$year-01-04" +%u) - 1 )) days" '+%Y %m %d'
}
END
  tool 'git diff --stat'; commit 'dates: find the Monday of a week'
  spent 'Weeks have their Monday. parse does not use it yet.' 0.72 9100 6000 260000 ;;
5) text 'Where is parse called?'; tool 'grep -rn parse src'; work 9
  spent 'I looked for every caller of parse. Nothing is changed yet.' 0.31 5200 1900 150000 ;;
6) touch ../at-6; wait_for go-6; tool 'sed -n 1,40p src/import.sh'; work 7
  spent 'Still reading: import.sh splits its fields before parse sees them.' 0.27 4800 1500 148000 ;;
7)
  text 'The signature of parse stays; weeks are a new case in it.'; work 25
  sed -i 's/^    \*) return 1 ;;/    ????-W??*) parse_week "${1%-?}" ;;\n    *) return 1 ;;/' src/dates.sh
  printf 'is "2026 11 16" 2026-W47-1\n' >> tests/dates_test.sh
  tool './check.sh'; commit 'dates: accept week dates'
  work 4; git rm -q tests/legacy_test.sh; commit 'tests: drop the two-digit years'
  spent 'Week dates parse. I removed tests/legacy_test.sh, which no longer applies.' 1.12 13800 8800 420000 ;;
8) work 2; echo 'FATAL: the terminal went away' >&2; exit 1 ;;
9)
  work 12
  printf '# Dates\n\nCalendar dates, week dates, times and offsets of ISO 8601.\n' > README.md
  tool './check.sh'; commit 'docs: name the formats'
  spent 'Every format of the task parses, and the tests cover each.\n\n<promise>COMPLETE</promise>' 0.48 7700 3900 230000 ;;
esac
