package output

import (
	"bytes"
	"testing"
)

// realTrace is a trace of pollloop for three seconds with all probes, exact.
const realTrace = "pollloop_all_probes.json.gz"

// Every measure of a real trace, as folded stacks and as a picture.
func TestRealTraceByEveryMeasure(t *testing.T) {
	rec := recordingOf(t, realTrace)
	for _, measure := range MeasureNames() {
		var folded, picture bytes.Buffer
		if err := Folded(&folded, rec, Options{Measure: measure}); err != nil {
			t.Fatal(err)
		}
		if folded.Len() == 0 {
			t.Errorf("%s weighs nothing", measure)
		}
		matchGolden(t, "real_"+measure+".folded", folded.Bytes())
		if err := FlameSVG(&picture, rec, Options{Measure: measure}); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, picture.Bytes())
		matchGolden(t, "real_"+measure+".svg", picture.Bytes())
	}
}
