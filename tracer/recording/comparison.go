package recording

import "time"

// ComparisonSchema names the form of a comparison (`memtrace diff --format json`).
const ComparisonSchema = "memtrace-diff/1"

// Comparison is what changed between two recordings or soaks.
type Comparison struct {
	Schema   string         `json:"schema"`
	Before   ComparisonSide `json:"before"`
	After    ComparisonSide `json:"after"`
	Summary  string         `json:"summary"`  // all verdicts in one sentence
	Verdicts []Verdict      `json:"verdicts"` // one for each question that the two can answer
	Warnings []string       `json:"warnings"` // why the two may not be comparable
	Changes  []Change       `json:"changes"`
	Sites    []SiteChange   `json:"sites"` // that changed beyond chance, the largest change first
	// SitesUnchanged counts the sites that stayed, as far as the samples tell.
	SitesUnchanged int `json:"sites_unchanged"`
	// Stacks are all sites of both, for a picture.
	Stacks []StackPair `json:"-"`
}

// StackPair is a site in both recordings, in bytes a second.
type StackPair struct {
	Entry         string
	Stack         Stack
	Before, After float64
}

// ComparisonSide describes one of the two.
type ComparisonSide struct {
	Kind       string    `json:"kind"` // "recording" or "soak"
	Command    string    `json:"command"`
	PID        int       `json:"pid"`
	Started    time.Time `json:"started"`
	DurationNS int64     `json:"duration_ns"`
	Samples    int       `json:"samples,omitempty"` // of a soak
}

// Verdict answers one question.
type Verdict struct {
	Question string   `json:"question"` // "retention", "live", "churn", "locks", "cpu"
	Answer   Judgment `json:"answer"`
	Summary  string   `json:"summary"`
}

// Judgment says which way a change went.
type Judgment string

// The judgments. Unclear is a change within the noise that is yet too large to be called none.
const (
	Better  Judgment = "better"
	Worse   Judgment = "worse"
	Same    Judgment = "same"
	Unclear Judgment = "unclear"
)

// Change is one row of the A/B table. A rate is per second, so that different durations
// compare.
type Change struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"` // "bytes", "bytes/s", "count", "count/s", "ns/s" (of a second of wall time)
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// Difference is After less Before, Ratio After over Before (0 where Before is 0).
	Difference float64 `json:"difference"`
	Ratio      float64 `json:"ratio"`
	// Noise is how large a difference the scatter of the two series makes by itself (95 %);
	// 0 where nothing tells.
	Noise       float64 `json:"noise"`
	WithinNoise bool    `json:"within_noise"`
}

// SiteChange is an allocation site that appeared, vanished, grew or shrank. Sites are
// matched by the names of their functions, so that two builds compare.
type SiteChange struct {
	Kind           string  `json:"kind"` // "appeared", "vanished", "grew", "shrank"
	Entry          string  `json:"entry"`
	Stack          Stack   `json:"stack"`
	BeforePerS     float64 `json:"before_bytes_per_second"`
	AfterPerS      float64 `json:"after_bytes_per_second"`
	BeforeCallsPer float64 `json:"before_allocs_per_second"`
	AfterCallsPer  float64 `json:"after_allocs_per_second"`
	BeforeLive     uint64  `json:"before_live_bytes"`
	AfterLive      uint64  `json:"after_live_bytes"`
}
