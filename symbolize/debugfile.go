package symbolize

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	debugRoot      = "/usr/lib/debug"
	maxDebugLink   = 4096      // bytes of .gnu_debuglink
	maxChecksummed = 512 << 20 // bytes of a debug file that is read whole to be trusted
)

// debugFinder opens the candidates for a separate debug file, one path at a time: nil when
// there is no such file.
type debugFinder func(path string) *os.File

// hostDebugFiles looks below this machine's /usr/lib/debug.
func hostDebugFiles(path string) *os.File {
	if !strings.HasPrefix(path, debugRoot+"/") {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return file
}

// debugFile returns the separate debug file; nil when there is none. The lock is held.
func (f *File) debugFile() *File {
	if f.debugDone || f.find == nil {
		return f.debug
	}
	f.debugDone = true
	link, checksum := f.debugLink()
	for _, candidate := range debugPaths(f.buildID, f.path, link) {
		file := f.find(candidate)
		if file == nil {
			continue
		}
		separate, err := adopt(file, candidate, nil)
		if err != nil {
			continue
		}
		if f.belongs(separate, checksum) {
			separate.find, separate.debugDone = f.find, true
			f.debug = separate
			break
		}
		separate.Close()
	}
	return f.debug
}

// debugPaths lists where a debug file may lie: by build id, then beside the file or below
// /usr/lib/debug by the name that .gnu_debuglink gives.
func debugPaths(buildID, module, link string) []string {
	var paths []string
	if len(buildID) > 2 {
		paths = append(paths, path.Join(debugRoot, ".build-id", buildID[:2], buildID[2:]+".debug"))
	}
	if link != "" && strings.HasPrefix(module, "/") {
		directory := path.Dir(path.Clean(module))
		paths = append(paths, path.Join(directory, link), path.Join(directory, ".debug", link),
			path.Join(debugRoot, directory, link))
	}
	return paths
}

// debugLink reads .gnu_debuglink: a bare file name, padded to words, and its CRC-32.
func (f *File) debugLink() (string, uint32) {
	data, err := f.SectionData(".gnu_debuglink", maxDebugLink)
	if err != nil || len(data) < 8 {
		return "", 0
	}
	name, _, terminated := bytes.Cut(data[:len(data)-4], []byte{0})
	link := string(name)
	if !terminated || link == "" || link == "." || link == ".." || strings.Contains(link, "/") {
		return "", 0
	}
	return link, binary.LittleEndian.Uint32(data[len(data)-4:])
}

// belongs says whether a debug file was made from this very file: by the build id, or by the
// checksum where there is none. A file that is its own debug file adds nothing.
func (f *File) belongs(separate *File, checksum uint32) bool {
	if f.os != nil && sameFile(f.os, separate.os) {
		return false
	}
	if f.buildID != "" {
		return f.buildID == separate.buildID
	}
	if separate.size > maxChecksummed {
		return false
	}
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, io.NewSectionReader(separate.reader, 0, separate.size)); err != nil {
		return false
	}
	return sum.Sum32() == checksum
}

// sameFile says whether two open files are one.
func sameFile(a, b *os.File) bool {
	left, errA := a.Stat()
	right, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(left, right)
}
