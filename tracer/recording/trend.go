package recording

import "time"

// TrendKind is the verdict on a series of memory readings.
type TrendKind string

// The verdicts.
const (
	Plateau  TrendKind = "plateau"
	Leak     TrendKind = "leak"
	Steps    TrendKind = "steps"
	WarmUp   TrendKind = "warming-up"
	TooShort TrendKind = "too-short"
)

// Trend is the judgement of a series and the numbers that it rests on; bytes throughout.
type Trend struct {
	Kind   TrendKind `json:"kind"`
	First  float64   `json:"first_bytes"`
	Last   float64   `json:"last_bytes"`
	Floors []float64 `json:"floor_bytes"` // the minimum of each quarter, warm-up left out
	Drift  float64   `json:"drift_bytes"` // of the floor, from the first quarter to the last
	// Slope of the local minima, in bytes an hour, and its 95 % confidence interval.
	Slope     float64 `json:"slope_bytes_per_hour"`
	SlopeLow  float64 `json:"slope_low_bytes_per_hour"`
	SlopeHigh float64 `json:"slope_high_bytes_per_hour"`
	// Step is the largest lasting change of level and when it happened; 0 when there is none.
	Step   float64       `json:"largest_step_bytes"`
	StepAt time.Duration `json:"largest_step_at_ns"`
	// WarmUpEnd is when the first growth was over; 0 when there was none.
	WarmUpEnd time.Duration `json:"warm_up_end_ns"`
	Points    int           `json:"points"`
	Span      time.Duration `json:"span_ns"`
}

// SoakReport is the judgement of a soak, one part for each start of the program.
type SoakReport struct {
	Starts []SoakStart `json:"starts"`
	Notes  []string    `json:"notes"`
}

// SoakStart is one life of the process.
type SoakStart struct {
	PID       int           `json:"pid"`
	From      time.Time     `json:"from"`
	Span      time.Duration `json:"span_ns"`
	Samples   int           `json:"samples"`
	Committed Trend         `json:"committed"`
	Live      *Trend        `json:"live,omitempty"` // nil when no heap was read
	// Summary is the sentence that answers the question, Next what to do.
	Summary string `json:"summary"`
	Next    string `json:"next"`
	// LimitIn is when the limit of the control group would be reached at the slope of the
	// floor; 0 when nothing grows or there is no limit.
	LimitIn    time.Duration `json:"limit_in_ns"`
	LimitBytes uint64        `json:"limit_bytes"`
	MaxBytes   uint64        `json:"max_bytes"` // the most that was committed
	Events     []SoakEvent   `json:"events"`
}

// SoakEvent is something that happened between two samples.
type SoakEvent struct {
	Time time.Time `json:"time"`
	What string    `json:"what"`
}
