package output

import (
	"fmt"
	"io"
	"runtime"
	"testing"

	"memtrace/tracer/recording"
)

// countingWriter counts what is written.
type countingWriter struct{ bytes int64 }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.bytes += int64(len(p))
	return len(p), nil
}

// fullRecording is large in every section: 10 000 sites that 500 threads share, 10 000
// rounds, 1000 locks, 1000 events of arenas, 1000 places that map memory.
func fullRecording(t testing.TB) *recording.Recording {
	rec := largeRecording(t)
	sites := rec.Allocation.Sites
	for i := range sites {
		sites[i].LiveBytes, sites[i].LiveBlocks, sites[i].BytesPerRound = uint64(i), 1, float64(i)
		for j := range 5 {
			sites[i].Threads = append(sites[i].Threads, recording.SiteThread{TID: (i + j) % 500, Name: fmt.Sprint("pool-", (i+j)%500), Allocs: 2, AllocBytes: 100})
		}
	}
	for i := range rec.Rounds.Series {
		rec.Rounds.Series[i] = recording.Round{Index: uint64(i), TID: 1 + i%500, StartNS: int64(i) * 600_000, DurationNS: 90_000_000, AllocBytes: uint64(i)}
	}
	rec.Mmap = &recording.Mmap{}
	for i := range 1000 {
		stack := sites[i].Stack
		rec.Locks.Locks = append(rec.Locks.Locks, recording.Lock{Address: recording.Address(i), Kind: "mutex", Waits: 5, Waiters: []recording.LockWaiter{{Stack: stack, Waits: 5, WaitNS: 1e6}}})
		rec.Arenas.Created = append(rec.Arenas.Created, recording.ArenaEvent{TimeNS: int64(i) * 1e6, TID: 1 + i%500, Stack: stack})
		rec.Mmap.Sites = append(rec.Mmap.Sites, recording.MmapSite{Stack: stack, Maps: 1, MappedBytes: 4096})
	}
	return rec
}

// No format of a full recording is larger than what a person would send, but the recording
// itself.
func TestFormatsStayBounded(t *testing.T) {
	const most = 10 << 20
	rec := fullRecording(t)
	for _, format := range formats() {
		name := format.Suffixes[0]
		if name == ".json" || name == ".folded" {
			continue // these hold every stack in full
		}
		var size countingWriter
		if err := format.Write(&size, rec, Options{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if size.bytes > most {
			t.Errorf("%s has %d bytes, want at most %d", name, size.bytes, most)
		}
	}
}

// BenchmarkFormats writes a full recording in each format. alloc-MiB/op bounds from above
// what it takes beyond the recording itself.
func BenchmarkFormats(b *testing.B) {
	rec := fullRecording(b)
	for _, format := range formats() {
		b.Run(format.Suffixes[0], func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for b.Loop() {
				if err := format.Write(io.Discard, rec, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/(1<<20), "alloc-MiB/op")
		})
	}
}
