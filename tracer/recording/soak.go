package recording

import "time"

// SoakSchema names the form of a soak file: a header line, then a sample a line.
const SoakSchema = "memtrace-soak/1"

// SoakHeader is the first line of a soak file.
type SoakHeader struct {
	Schema  string    `json:"schema"`
	Target  Target    `json:"target"`
	EveryNS int64     `json:"every_ns"`
	Every   string    `json:"every"`
	Started time.Time `json:"started"`
	Host    string    `json:"host"`
}

// Sample is one line of a soak file. A sample whose heap could not be read has Heap false
// and zeros in the fields that come from it.
type Sample struct {
	Time              time.Time `json:"time"`
	UptimeS           float64   `json:"uptime_s"`    // of the target, by the boot clock
	StartTicks        uint64    `json:"start_ticks"` // when the process started, in ticks since boot; tells its starts apart
	BootNS            int64     `json:"boot_ns"`     // CLOCK_BOOTTIME; tells suspends and clock steps apart
	MonotonicNS       int64     `json:"monotonic_ns"`
	PID               int       `json:"pid"`
	Start             bool      `json:"start,omitempty"` // the first sample of a new start of the target
	Heap              bool      `json:"heap"`
	RSSBytes          uint64    `json:"rss_bytes"`
	PSSBytes          uint64    `json:"pss_bytes"`
	RSSAnonBytes      uint64    `json:"rss_anon_bytes"`
	SwapBytes         uint64    `json:"swap_bytes"`
	CommittedBytes    uint64    `json:"committed_bytes"`
	LiveBytes         uint64    `json:"live_bytes"`
	FreeBytes         uint64    `json:"free_bytes"`
	FreeResidentBytes uint64    `json:"free_resident_bytes"`
	TrimForecastBytes uint64    `json:"trim_forecast_bytes"`
	Arenas            int       `json:"arenas"`
	Threads           int       `json:"threads"`
	CPUNS             int64     `json:"cpu_ns"`
	Voluntary         uint64    `json:"voluntary"`
	Nonvoluntary      uint64    `json:"nonvoluntary"`
	Cgroup            Cgroup    `json:"cgroup"`
	PSI               PSI       `json:"psi"`
	CgroupPSI         PSI       `json:"cgroup_psi"`
	AllocBytes        uint64    `json:"alloc_bytes,omitempty"` // since the sample before, with --probes
	Allocs            uint64    `json:"allocs,omitempty"`
	Note              string    `json:"note,omitempty"`
}

// Cgroup is the memory controller's view of the target's group; zeros where there is none.
type Cgroup struct {
	CurrentBytes uint64 `json:"current_bytes"`
	PeakBytes    uint64 `json:"peak_bytes"`
	HighBytes    uint64 `json:"high_bytes"` // 0 = none
	MaxBytes     uint64 `json:"max_bytes"`  // 0 = none
	EventsHigh   uint64 `json:"events_high"`
	EventsMax    uint64 `json:"events_max"`
	EventsOOM    uint64 `json:"events_oom"`
}

// PSI is pressure stall information, in percent over the last ten seconds.
type PSI struct {
	MemorySomeAvg10 float64 `json:"memory_some_avg10"`
	MemoryFullAvg10 float64 `json:"memory_full_avg10"`
	IOSomeAvg10     float64 `json:"io_some_avg10"`
	IOFullAvg10     float64 `json:"io_full_avg10"`
	CPUSomeAvg10    float64 `json:"cpu_some_avg10"`
}

// Soak is a soak file read back.
type Soak struct {
	Header  SoakHeader `json:"header"`
	Samples []Sample   `json:"samples"`
	Notes   []string   `json:"notes"` // what was skipped when the file was read
}
