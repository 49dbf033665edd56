package output

import (
	"compress/gzip"
	"encoding/json"
	"io"

	"memtrace/tracer/recording"
)

// JSON writes the recording itself, one JSON object, indented: the form that `memtrace
// report` and `memtrace diff` read.
func JSON(w io.Writer, rec *recording.Recording, _ Options) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(rec)
}

// JSONGzip writes the recording compressed.
func JSONGzip(w io.Writer, rec *recording.Recording, o Options) error {
	compressed := gzip.NewWriter(w)
	if err := JSON(compressed, rec, o); err != nil {
		return err
	}
	return compressed.Close()
}
