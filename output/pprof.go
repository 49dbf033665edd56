package output

import (
	"io"
	"math"

	"github.com/google/pprof/profile"

	"memtrace/tracer/recording"
)

// Pprof writes the recording as a pprof profile, compressed: allocations, what of them is
// live (where lifetimes were followed), waiting for locks, arenas and direct mappings, each
// as far as its probe was on. The measure chooses which type pprof shows first.
func Pprof(w io.Writer, rec *recording.Recording, o Options) error {
	if err := CheckMeasure(o.measure()); err != nil {
		return err
	}
	return Profile(rec, o).Write(w)
}

// Profile returns the recording as a pprof profile, fully symbolized.
func Profile(rec *recording.Recording, o Options) *profile.Profile {
	b := newProfileBuilder(rec)
	b.allocations(rec.Allocation)
	b.locks(rec.Locks)
	b.arenas(rec.Arenas)
	b.mappings(rec.Mmap)
	p := b.profile
	p.TimeNanos = rec.Session.Started.UnixNano()
	if rec.Session.Started.IsZero() {
		p.TimeNanos = 0
	}
	p.DurationNanos = rec.Session.DurationNS
	p.PeriodType = &profile.ValueType{Type: "space", Unit: "bytes"}
	p.Period = max(1, signed(rec.Session.SampleBytes))
	p.DefaultSampleType = b.defaultType(o.measure())
	p.Comments = append(p.Comments, "memtrace "+printable(rec.Session.MemtraceVersion)+": "+printable(rec.Target.Command))
	for _, note := range rec.Notes {
		p.Comments = append(p.Comments, printable(note))
	}
	return p
}

// The sample types and the units of their values.
const (
	allocObjects      = "alloc_objects"
	allocSpace        = "alloc_space"
	inuseObjects      = "inuse_objects"
	inuseSpace        = "inuse_space"
	roundSpace        = "round_space"
	contentions       = "contentions"
	delay             = "delay"
	arenasCreatedType = "arenas_created"
	mmapObjects       = "mmap_objects"
	mmapSpace         = "mmap_space"
)

// profileBuilder collects samples; tables keep each function, location and mapping once.
type profileBuilder struct {
	profile   *profile.Profile
	types     map[string]int // where a sample type stands in a sample's values
	functions map[functionKey]*profile.Function
	locations map[locationKey][]*profile.Location
	modules   map[moduleKey]*profile.Mapping
}

type functionKey struct{ name, file string }

type locationKey struct {
	module  moduleKey
	address recording.Address
	leaf    string // the name of the innermost function, for frames without an address
	line    int
}

type moduleKey struct{ file, buildID string }

func newProfileBuilder(rec *recording.Recording) *profileBuilder {
	b := &profileBuilder{
		profile:   &profile.Profile{},
		types:     map[string]int{},
		functions: map[functionKey]*profile.Function{},
		locations: map[locationKey][]*profile.Location{},
		modules:   map[moduleKey]*profile.Mapping{},
	}
	if a := rec.Allocation; a != nil {
		b.sampleTypes("count", allocObjects, "bytes", allocSpace)
		if a.Lifetimes {
			b.sampleTypes("count", inuseObjects, "bytes", inuseSpace)
		}
		if rec.Rounds != nil {
			b.sampleTypes("bytes", roundSpace)
		}
	}
	if rec.Locks != nil {
		b.sampleTypes("count", contentions, "nanoseconds", delay)
	}
	if rec.Arenas != nil {
		b.sampleTypes("count", arenasCreatedType)
	}
	if rec.Mmap != nil {
		b.sampleTypes("count", mmapObjects, "bytes", mmapSpace)
	}
	if len(b.types) == 0 {
		b.sampleTypes("count", allocObjects, "bytes", allocSpace)
	}
	// The executable comes first: pprof takes the first mapping for the program.
	if rec.Target.Exe != "" {
		b.mapping(moduleKey{printable(rec.Target.Exe), rec.Target.BuildID})
	}
	return b
}

// sampleTypes adds types, each given as its unit and its name.
func (b *profileBuilder) sampleTypes(unitsAndNames ...string) {
	for i := 0; i+1 < len(unitsAndNames); i += 2 {
		b.types[unitsAndNames[i+1]] = len(b.profile.SampleType)
		b.profile.SampleType = append(b.profile.SampleType, &profile.ValueType{Type: unitsAndNames[i+1], Unit: unitsAndNames[i]})
	}
}

// defaultType is the sample type that shows a measure, as far as the profile has it.
func (b *profileBuilder) defaultType(measure string) string {
	shown := map[string]string{
		"alloc-bytes": allocSpace, "alloc-count": allocObjects, "round-bytes": roundSpace, "live-bytes": inuseSpace,
		"lock-wait": delay, "arena-created": arenasCreatedType, "mmap-bytes": mmapSpace,
	}[measure]
	if _, present := b.types[shown]; present {
		return shown
	}
	return b.profile.SampleType[len(b.profile.SampleType)-1].Type
}

// values are a sample's, by type.
type values map[string]uint64

// labels are a sample's: text by key.
type labels map[string]string

// add adds a sample; one without values or without a stack is left out.
func (b *profileBuilder) add(at profilePlace, v values, l labels) {
	some := false
	for name, value := range v {
		_, present := b.types[name]
		some = some || present && value > 0
	}
	if !some || len(at.locations) == 0 {
		return
	}
	sample := &profile.Sample{Location: at.locations, Value: make([]int64, len(b.profile.SampleType)), Label: map[string][]string{}}
	for name, value := range v {
		if i, present := b.types[name]; present {
			sample.Value[i] = signed(value)
		}
	}
	if at.module != "" {
		sample.Label["module"] = []string{at.module}
	}
	for key, text := range l {
		if text != "" {
			sample.Label[key] = []string{printable(text)}
		}
	}
	b.profile.Sample = append(b.profile.Sample, sample)
}

// signed is a count as pprof keeps it.
func signed(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
