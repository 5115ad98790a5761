# The programs of a plugin that came from git, which holds no programs: read by the scripts beside this one, each of
# which has a program's name. Where the user has installed the programs, they are run in its place. Where not, the user is
# told once a session what to do, and everything is allowed. Nothing is built or downloaded here.
# A plugin laid out by `ralph install`, or from a release archive, has the programs themselves in this folder.

name=${0##*/}
root=${CLAUDE_PLUGIN_ROOT:-${0%/*}/..}
home=${HOME:-/nonexistent}

# Folders of the user's and the system's, never PATH: a project may be on it. All our programs have to be there: others
# have a program called ralph, too. The mark, with this process's number, keeps a link to this script from running in circles.
if [ "${_RALPH_STAND_IN:-}" != "$$" ]; then
    for folder in "${CARGO_HOME:-$home/.cargo}/bin" "$home/.local/bin" \
        "${RALPH_DATA_DIR:-${XDG_DATA_HOME:-$home/.local/share}/ralph}/plugin/ralph/bin" \
        "$home/Library/Application Support/ralph/plugin/ralph/bin" /usr/local/bin /opt/homebrew/bin; do
        case $folder in /*) ;; *) continue ;; esac
        if [ -x "$folder/ralph-stop-hook" ] && [ -x "$folder/ralph-session-start-hook" ] && [ -x "$folder/$name" ]; then
            _RALPH_STAND_IN=$$
            export _RALPH_STAND_IN
            exec "$folder/$name" "$@"
        fi
    done
fi

# What follows needs nothing but the system's own programs: PATH may name folders of the project.
PATH=/usr/bin:/bin:/run/current-system/sw/bin

# It stands in JSON, and in a shell's single quotes.
case $root in *[\"\\\']*) root='the folder of this plugin' ;; esac
advice="Ralph was installed without its programs, so it does nothing yet. Build them with: cargo install --locked --path '$root' \
(or unpack a release archive and run its 'bin/ralph install'). Open sessions then have them at once."

# Tells the user, where this session has not been told. $1 is yes where it may be said without a note of it.
tell_once() {
    note=${CLAUDE_PLUGIN_DATA:+$CLAUDE_PLUGIN_DATA/told}
    session=${CLAUDE_CODE_SESSION_ID:-unknown}
    last=
    [ -n "$note" ] && [ -r "$note" ] && read -r last <"$note"
    [ "$last" = "$session" ] && return
    if { [ -n "$note" ] && printf '%s\n' "$session" 2>/dev/null >"$note"; } || [ "$1" = yes ]; then
        printf '{"systemMessage":"%s"}' "$advice"
    fi
}

case $name in
ralph-stop-hook)
    cat >/dev/null
    tell_once no
    ;;
ralph-session-start-hook)
    input=$(cat)
    case $input in
    *'"hook_event_name":"UserPromptExpansion"'*)
        case $input in
        *'"command_name":"ralph:'*) printf '{"decision":"block","reason":"%s"}' "$advice" ;;
        esac
        ;;
    *) tell_once yes ;;
    esac
    ;;
*)
    case "${1:-} ${2:-}" in
    # A hook that wakes no session.
    'wake '*) ;;
    # A slash command on a client that did not ask us first: its answer is what the agent reads.
    'relay '* | *' --slash') printf '%s\n' "Tell the user: $advice" ;;
    *)
        printf '%s\n' "$advice" >&2
        exit 69
        ;;
    esac
    ;;
esac
exit 0
