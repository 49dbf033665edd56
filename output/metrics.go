package output

import (
	"sort"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"memtrace/tracer/recording"
)

// MetricsTarget is one traced process as the metrics show it.
type MetricsTarget struct {
	PID       int
	Comm      string
	Up        bool
	Recording *recording.Recording // nil until the probes are in
	// At is when the recording was taken. Its samples carry this time, so that rates are
	// right however much later it is scraped; zero = now.
	At time.Time
}

// Metrics is the Prometheus collector of what is being traced, with the names of the
// project's contract. Its series are bounded: a thread is known by its name, and at most
// `sites` sites of a process have series of their own, the rest is "other".
//
// A site that once had its own series keeps it, so that no counter falls when another
// site overtakes it.
type Metrics struct {
	targets func() []MetricsTarget
	sites   int
	version string

	mutex sync.Mutex
	named map[string]map[string]bool // process → sites that have their own series
}

// NewMetrics makes a collector. It calls targets for each scrape; targets must not wait on
// the processes.
func NewMetrics(targets func() []MetricsTarget, sites int, version string) *Metrics {
	return &Metrics{targets: targets, sites: sites, version: version, named: map[string]map[string]bool{}}
}

// describe makes a metric's description; all but the last ones carry the process.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("memtrace_"+name, help, labels, nil)
}

// The metrics, in the order of the contract.
var (
	allocsDesc        = describe("allocs_total", "Calls that made a new block.", "pid", "comm", "thread")
	allocBytesDesc    = describe("alloc_bytes_total", "Bytes of new blocks, as requested.", "pid", "comm", "thread")
	freesDesc         = describe("frees_total", "Calls that released a block.", "pid", "comm", "thread")
	freeBytesDesc     = describe("free_bytes_total", "Usable bytes of the blocks released.", "pid", "comm", "thread")
	siteBytesDesc     = describe("site_alloc_bytes_total", "Bytes of new blocks by the function that asked for them, estimated from sampled stacks.", "pid", "comm", "site")
	roundsDesc        = describe("rounds_total", "Rounds of work that were seen.", "pid", "comm")
	roundBytesDesc    = describe("round_alloc_bytes", "Bytes of new blocks in a round of work.", "pid", "comm")
	arenasDesc        = describe("arenas", "Arenas of the allocator.", "pid", "comm")
	arenasCreatedDesc = describe("arenas_created_total", "Arenas created since the probes went in.", "pid", "comm")
	liveDesc          = describe("heap_live_bytes", "Bytes in use in arenas and mmapped blocks, thread caches included.", "pid", "comm")
	freeDesc          = describe("heap_free_bytes", "Free bytes in arenas, resident or not.", "pid", "comm")
	freeResidentDesc  = describe("heap_free_resident_bytes", "Free bytes in arenas that are resident.", "pid", "comm")
	forecastDesc      = describe("heap_trim_forecast_bytes", "What malloc_trim(0) would return now.", "pid", "comm")
	trimsDesc         = describe("malloc_trims_total", "Calls of malloc_trim.", "pid", "comm")
	trimSecondsDesc   = describe("malloc_trim_seconds", "How long malloc_trim took.", "pid", "comm")
	lockWaitsDesc     = describe("lock_waits_total", "Sleeps in futex waits.", "pid", "comm", "lock")
	lockSecondsDesc   = describe("lock_wait_seconds_total", "Time slept in futex waits.", "pid", "comm", "lock")
	lockHandoffsDesc  = describe("lock_handoffs_total", "Wakes that passed the lock to a sleeper.", "pid", "comm", "lock")
	lockQueueDesc     = describe("lock_queue_max", "The most threads that slept on the lock at once.", "pid", "comm", "lock")
	switchesDesc      = describe("context_switches_total", "Context switches.", "pid", "comm", "thread", "kind")
	committedDesc     = describe("process_committed_bytes", "Private memory that counts against the host: resident anonymous memory and swap.", "pid", "comm")
	hitsDesc          = describe("probe_hits_total", "Times that a probe ran.", "pid", "comm")
	dutyDesc          = describe("duty_cycle", "Share of the time during which the allocation probes were in.", "pid", "comm")
	lostDesc          = describe("lost_total", "What could not be recorded.", "pid", "comm", "kind")
	upDesc            = describe("target_up", "Whether the process is being traced.", "pid", "comm")
	buildDesc         = describe("build_info", "The build of memtrace, always 1.", "version")
)

// Describe sends nothing: the labels' values are only known from the targets, so the
// registry checks the metrics as they come.
func (m *Metrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics of every target.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(buildDesc, prometheus.GaugeValue, 1, m.version)
	targets := m.targets()
	m.forget(targets)
	for _, target := range targets {
		s := sender{ch: ch, pid: strconv.Itoa(target.PID), comm: printable(target.Comm)}
		up := 0.0
		if target.Up {
			up = 1
		}
		s.gauge(upDesc, up)
		s.at = target.At
		if target.Recording == nil {
			continue
		}
		s.allocation(target.Recording.Allocation)
		s.siteBytes(target.Recording.Allocation, m.choose(s.pid, target.Recording.Allocation))
		s.rounds(target.Recording.Rounds)
		s.arenas(target.Recording.Arenas)
		s.heap(target.Recording.Heap)
		s.locks(target.Recording.Locks)
		s.scheduling(target.Recording.Scheduling)
		s.overhead(target.Recording)
	}
}

// forget drops what is remembered of processes that are gone.
func (m *Metrics) forget(targets []MetricsTarget) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	present := map[string]bool{}
	for _, target := range targets {
		present[strconv.Itoa(target.PID)] = true
	}
	for pid := range m.named {
		if !present[pid] {
			delete(m.named, pid)
		}
	}
}

// choose returns the names of the sites that have series of their own: those that had one
// before, then the largest others while there is room.
func (m *Metrics) choose(pid string, allocation *recording.Allocation) map[string]bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	named := m.named[pid]
	if named == nil {
		named = map[string]bool{}
		m.named[pid] = named
	}
	if allocation == nil {
		return named
	}
	for _, site := range allocation.Sites {
		if len(named) >= m.sites {
			break
		}
		named[siteName(site)] = true
	}
	copied := make(map[string]bool, len(named))
	for name := range named {
		copied[name] = true
	}
	return copied
}

// siteName is the function that called the allocator, or its module where it has no name.
func siteName(site recording.Site) string {
	for _, frame := range site.Stack {
		if frame.Function != "" {
			return printable(frame.Function)
		}
		if frame.Module != "" {
			return printable(frame.Module) + "+0x" + strconv.FormatUint(frame.Offset, 16)
		}
	}
	return "unknown"
}

// sender sends the metrics of one target.
type sender struct {
	ch        chan<- prometheus.Metric
	pid, comm string
	at        time.Time
}

// send sends a metric with the time of its recording.
func (s sender) send(metric prometheus.Metric) {
	if !s.at.IsZero() {
		metric = prometheus.NewMetricWithTimestamp(s.at, metric)
	}
	s.ch <- metric
}

func (s sender) counter(desc *prometheus.Desc, value float64, labels ...string) {
	s.send(prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value, append([]string{s.pid, s.comm}, labels...)...))
}

func (s sender) gauge(desc *prometheus.Desc, value float64, labels ...string) {
	s.send(prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, append([]string{s.pid, s.comm}, labels...)...))
}

// allocation sums the threads of one name: series must not grow with threads that come and go.
func (s sender) allocation(a *recording.Allocation) {
	if a == nil {
		return
	}
	byName := map[string]*recording.AllocationTotals{}
	for _, thread := range a.Threads {
		label := printable(thread.Name)
		sum := byName[label]
		if sum == nil {
			sum = &recording.AllocationTotals{}
			byName[label] = sum
		}
		sum.Allocs += thread.Allocs
		sum.AllocBytes += thread.AllocBytes
		sum.Frees += thread.Frees
		sum.FreeBytes += thread.FreeBytes
	}
	for label, sum := range byName {
		s.counter(allocsDesc, float64(sum.Allocs), label)
		s.counter(allocBytesDesc, float64(sum.AllocBytes), label)
		s.counter(freesDesc, float64(sum.Frees), label)
		s.counter(freeBytesDesc, float64(sum.FreeBytes), label)
	}
}

// siteBytes gives the chosen sites a series each, and the rest one together.
func (s sender) siteBytes(a *recording.Allocation, own map[string]bool) {
	if a == nil {
		return
	}
	sums := map[string]uint64{}
	for _, site := range a.Sites {
		name := siteName(site)
		if !own[name] {
			name = "other"
		}
		sums[name] += site.AllocBytes
	}
	for name, bytes := range sums {
		s.counter(siteBytesDesc, float64(bytes), name)
	}
}

func (s sender) rounds(r *recording.Rounds) {
	if r == nil {
		return
	}
	s.counter(roundsDesc, float64(r.Count))
	buckets := map[float64]uint64{}
	var count uint64
	for _, bucket := range r.BytesHistogram {
		count += bucket.Rounds
		buckets[float64(bucket.UptoBytes)] = count
	}
	s.send(prometheus.MustNewConstHistogram(roundBytesDesc, count, r.Bytes.Mean*float64(count), buckets, s.pid, s.comm))
}

// trimBuckets are the upper bounds, in seconds, of the histogram of malloc_trim's duration.
var trimBuckets = []float64{0.0001, 0.001, 0.01, 0.1, 1, 10}

func (s sender) arenas(a *recording.Arenas) {
	if a == nil {
		return
	}
	s.counter(arenasCreatedDesc, float64(len(a.Created)))
	s.counter(trimsDesc, float64(len(a.Trims)))
	buckets := map[float64]uint64{}
	var sum float64
	for _, upper := range trimBuckets {
		buckets[upper] = 0
	}
	for _, trim := range a.Trims {
		seconds := float64(trim.DurationNS) / 1e9
		sum += seconds
		for _, upper := range trimBuckets {
			if seconds <= upper {
				buckets[upper]++
			}
		}
	}
	s.send(prometheus.MustNewConstHistogram(trimSecondsDesc, uint64(len(a.Trims)), sum, buckets, s.pid, s.comm))
}

func (s sender) heap(h *recording.Heap) {
	if h == nil {
		return
	}
	var resident uint64
	for _, arena := range h.Arenas {
		resident += arena.FreeResidentBytes
	}
	s.gauge(arenasDesc, float64(len(h.Arenas)))
	s.gauge(liveDesc, float64(h.MallInfo.Uordblks+h.MallInfo.Hblkhd))
	s.gauge(freeDesc, float64(h.MallInfo.Fordblks))
	s.gauge(freeResidentDesc, float64(resident))
	s.gauge(forecastDesc, float64(h.TrimForecastBytes))
	s.gauge(committedDesc, float64(h.Ledger.CommittedBytes))
}

// locks sums locks of one name, which is what a person looks for; the kind tells what has none.
func (s sender) locks(l *recording.Locks) {
	if l == nil {
		return
	}
	type sums struct {
		waits, handoffs, queue uint64
		waited                 int64
	}
	byName := map[string]*sums{}
	for i, lock := range l.Locks {
		// The kind comes first, so that rules can leave out what threads wait on for work.
		name := lock.Kind
		if lock.Name != "" && i < mostLockSeries {
			name += " " + printable(lock.Name)
		}
		sum := byName[name]
		if sum == nil {
			sum = &sums{}
			byName[name] = sum
		}
		sum.waits += lock.Waits
		sum.handoffs += lock.Handoffs
		sum.waited += lock.WaitNS.Total
		sum.queue = max(sum.queue, lock.QueueMax)
	}
	for name, sum := range byName {
		s.counter(lockWaitsDesc, float64(sum.waits), name)
		s.counter(lockSecondsDesc, float64(sum.waited)/1e9, name)
		s.counter(lockHandoffsDesc, float64(sum.handoffs), name)
		s.gauge(lockQueueDesc, float64(sum.queue), name)
	}
}

// mostLockSeries is how many locks of a process have their own name in the metrics.
const mostLockSeries = 20

func (s sender) scheduling(sched *recording.Scheduling) {
	if sched == nil {
		return
	}
	type sums struct{ voluntary, nonvoluntary uint64 }
	byName := map[string]sums{}
	for _, thread := range sched.Threads {
		sum := byName[printable(thread.Name)]
		sum.voluntary += thread.Voluntary
		sum.nonvoluntary += thread.Nonvoluntary
		byName[printable(thread.Name)] = sum
	}
	for name, sum := range byName {
		s.counter(switchesDesc, float64(sum.voluntary), name, "voluntary")
		s.counter(switchesDesc, float64(sum.nonvoluntary), name, "nonvoluntary")
	}
}

// overhead sends what the trace costs and what it lost.
func (s sender) overhead(rec *recording.Recording) {
	s.counter(hitsDesc, float64(rec.Overhead.ProbeHits))
	s.gauge(dutyDesc, rec.Overhead.DutyCycle)
	losses := map[string]uint64{
		"stacks": rec.Losses.StacksLost, "sites": rec.Losses.SitesLost, "threads": rec.Losses.ThreadsLost,
		"events": rec.Losses.EventsLost, "locks": rec.Losses.LocksLost, "blocks": rec.Losses.BlocksLost,
		"hits": rec.Losses.MissedHits, "reads": rec.Losses.FailedReads,
	}
	kinds := make([]string, 0, len(losses))
	for kind := range losses {
		kinds = append(kinds, kind)
	}
	sort.Strings(kinds)
	for _, kind := range kinds {
		s.counter(lostDesc, float64(losses[kind]), kind)
	}
}
