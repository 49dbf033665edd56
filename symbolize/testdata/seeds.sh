#!/bin/sh
# Makes the ELF files that FuzzELF starts from anew: seed.c in the layouts of debug
# information that exist. Needs gcc, clang, objcopy, xz, dwz. Run it in this directory.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p elf
cp seed.c shared.c "$work"
out=$PWD/elf
clang=$(command -v clang || command -v clang-19)
cd "$work"
options="-nostdlib -shared -fPIC -O2 -g -ffile-prefix-map=$work=/src -Wl,-z,noseparate-code"
gcc $options -gdwarf-2 -o dwarf2 seed.c
gcc $options -gdwarf-4 -o dwarf4 seed.c
gcc $options -gdwarf-5 -o dwarf5 seed.c
gcc $options -gdwarf-5 -gdwarf64 -o dwarf64 seed.c
"$clang" $options -gdwarf-5 -o clang5 seed.c
gcc $options -gz=zlib -o zlib seed.c
gcc $options -flto -o lto seed.c
gcc $options -gsplit-dwarf -o split seed.c
objcopy --only-keep-debug dwarf5 onlydebug
objcopy --strip-all --add-gnu-debuglink=onlydebug dwarf5 link
objcopy -S --keep-symbol=middle --remove-section=.comment onlydebug mini
xz --keep --threads=1 mini
objcopy --strip-all --add-section .gnu_debugdata=mini.xz dwarf5 debugdata
for version in 4 5; do
	for entry in first second; do
		gcc $options -gdwarf-$version -DENTRY=$entry -o $entry shared.c
	done
	dwz --multifile=dwz$version.alt --relative first second
	mv first dwz$version
done
printf '\177ELF\002\001\001' >short
for seed in dwarf2 dwarf4 dwarf5 dwarf64 clang5 zlib lto split onlydebug link debugdata short \
	dwz4 dwz4.alt dwz5 dwz5.alt; do
	install -m 644 "$seed" "$out/$seed"
done
