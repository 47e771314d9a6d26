# Shared by the build scripts in hack: builds programs of one Kubernetes release, and the etcd
# that goes with it, from Go modules into a cache folder outside the repository. To be sourced by bash.
#
# The caller sets: module (the folder of the Go module that pins the release).
# shellcheck shell=bash

go_needed=1.26

say() { printf '%s\n' "$*" >&2; }

# The release that the tools module pins, such as v1.37.1. It is not v1.37.2: the Go module proxy answers 403 (Forbidden) when
# asked for the zip of that version of k8s.io/kubernetes (19 November 2026), so that it could not be built.
release() { sed -n 's#^require k8s.io/kubernetes \(v[0-9.]*\)$#\1#p' "$module/go.mod"; }

# Where everything that is built is kept.
cache_root() { printf '%s\n' "${EVERYNODE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/everynode}"; }

# Where the programs of that release are kept.
cache_bin() { printf '%s/kubernetes/%s/bin\n' "$(cache_root)" "$(release)"; }

# has_all FOLDER NAME...: are all of these programs there?
has_all() {
  local folder=$1 name
  shift
  for name; do [ -x "$folder/$name" ] || return 1; done
}

# missing_in FOLDER NAME...: the names that are not there, on one line.
missing_in() {
  local folder=$1 name out=()
  shift
  for name; do [ -x "$folder/$name" ] || out+=("$name"); done
  printf '%s\n' "${out[*]}"
}

# Is there a Go that can build the module? (Inside the module, Go may fetch a newer toolchain itself.)
go_usable() {
  local version
  command -v go >/dev/null || return 1
  version=$(cd "$module" && go env GOVERSION 2>/dev/null) || return 1
  version=${version#go}
  [ "$(printf '%s\n' "$go_needed" "$version" | sort -V | head -n 1)" = "$go_needed" ]
}

# take_lock FOLDER: from here on this is the only build into FOLDER.
take_lock() {
  mkdir -p "$1"
  command -v flock >/dev/null || return 0 # programs are put in place by rename: correct, only wasteful
  exec 9>"$1/.lock"
  flock -n 9 && return 0
  say "Another build into $1 is running; waiting for it."
  flock 9
}

# package_of NAME: the Go package that is the program.
package_of() {
  if [ "$1" = etcd ]; then printf 'go.etcd.io/etcd/server/v3\n'; else printf 'k8s.io/kubernetes/cmd/%s\n' "$1"; fi
}

# go_build FOLDER NAME...: builds those that are missing, each put in place by a rename.
go_build() {
  local folder=$1 name version key value started
  shift
  version=$(release)
  local major minor flags="-s -w"
  IFS=. read -r major minor _ <<<"${version#v}"
  for key in gitVersion="$version" gitMajor="$major" gitMinor="$minor" gitTreeState=clean gitCommit=; do
    for value in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
      flags+=" -X $value.$key"
    done
  done
  for name; do
    [ -x "$folder/$name" ] && continue
    say "Building $name for Kubernetes $version ..."
    started=$SECONDS
    (cd "$module" && CGO_ENABLED=0 go build -mod=readonly -trimpath -ldflags "$flags" \
      -o "$work/$name" "$(package_of "$name")" 9>&-)
    mv "$work/$name" "$folder/$name"
    say "Built $name in $((SECONDS - started)) s."
  done
}

# work_folder FOLDER: makes $work, a folder on the same file system that goes away when the script ends.
# To be called under the lock: what a killed build left is removed.
work_folder() {
  rm -rf "$1"/.build.*
  work=$(mktemp -d "$1/.build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
}
