package heap

import (
	"errors"
	"fmt"
	"os"
	"sort"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// space is the target's address space at one time.
type space struct {
	maps      []*procfs.ProcMap
	page      uint64
	heapStart uint64 // of the brk heap; 0 when there is none
	brk       uint64 // its end
}

// readSpace reads /proc/PID/maps.
func readSpace(process procfs.Proc) (*space, error) {
	maps, err := process.ProcMaps()
	if err != nil {
		return nil, fmt.Errorf("read the memory map of process %d: %w", process.PID, gone(err))
	}
	if len(maps) == 0 {
		return nil, ErrGone
	}
	s := &space{maps: maps, page: uint64(os.Getpagesize())}
	for _, m := range maps {
		if m.Pathname == "[heap]" {
			if s.heapStart == 0 {
				s.heapStart = uint64(m.StartAddr)
			}
			s.brk = uint64(m.EndAddr)
		}
	}
	return s, nil
}

// at returns the mapping that holds address.
func (s *space) at(address uint64) (span, bool) {
	i := sort.Search(len(s.maps), func(i int) bool { return uint64(s.maps[i].EndAddr) > address })
	if i == len(s.maps) || uint64(s.maps[i].StartAddr) > address {
		return span{}, false
	}
	return spanOf(s.maps[i]), true
}

// holds tells whether both ends of [start, start+size) are mapped.
func (s *space) holds(start, size uint64) bool {
	_, first := s.at(start)
	_, last := s.at(start + size - 1)
	return first && last && start+size > start
}

// anonymous tells whether a mapping is private, writable memory without a file.
func anonymous(m *procfs.ProcMap) bool {
	return m.Inode == 0 && m.Perms.Read && m.Perms.Write && m.Perms.Private &&
		(m.Pathname == "" || len(m.Pathname) > 6 && m.Pathname[:6] == "[anon:")
}

// gone turns an error of /proc that means the process ended into ErrGone.
func gone(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return err
}
