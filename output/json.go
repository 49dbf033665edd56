package output

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding"
	"encoding/json"
	"io"
	"reflect"
	"strings"

	"memtrace/tracer/recording"
)

// JSON writes the recording itself, one JSON object: the form that `memtrace report` and
// `memtrace diff` read. Sections are indented, each element of a list has a line; it is
// written piece by piece, since a recording can be larger than is good to hold twice.
func JSON(w io.Writer, rec *recording.Recording, _ Options) error {
	j := &jsonWriter{w: bufio.NewWriter(w)}
	j.encoder = json.NewEncoder(&j.piece)
	j.encoder.SetEscapeHTML(false)
	if err := j.value(reflect.ValueOf(rec), ""); err != nil {
		return err
	}
	j.w.WriteByte('\n')
	return j.w.Flush()
}

// JSONGzip writes the recording compressed.
func JSONGzip(w io.Writer, rec *recording.Recording, o Options) error {
	compressed := gzip.NewWriter(w)
	if err := JSON(compressed, rec, o); err != nil {
		return err
	}
	return compressed.Close()
}

// jsonWriter writes values as encoding/json does, but for the white space. Write errors
// surface when it is flushed.
type jsonWriter struct {
	w       *bufio.Writer
	piece   bytes.Buffer
	encoder *json.Encoder
}

// value writes a structure or a list of structures in lines, anything else in one piece.
func (j *jsonWriter) value(v reflect.Value, indent string) error {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Struct && !writesItself(v):
		return j.structure(v, indent)
	case v.Kind() == reflect.Slice && v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct:
		return j.list(v, indent)
	}
	return j.leaf(v)
}

func (j *jsonWriter) structure(v reflect.Value, indent string) error {
	inner := indent + "  "
	separator := "{\n"
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if options == "omitempty" && empty(v.Field(i)) {
			continue
		}
		j.w.WriteString(separator + inner + `"` + name + `": `)
		if err := j.value(v.Field(i), inner); err != nil {
			return err
		}
		separator = ",\n"
	}
	j.w.WriteString("\n" + indent + "}")
	return nil
}

func (j *jsonWriter) list(v reflect.Value, indent string) error {
	separator := "[\n"
	for i := range v.Len() {
		j.w.WriteString(separator + indent + "  ")
		if err := j.leaf(v.Index(i)); err != nil {
			return err
		}
		separator = ",\n"
	}
	j.w.WriteString("\n" + indent + "]")
	return nil
}

func (j *jsonWriter) leaf(v reflect.Value) error {
	j.piece.Reset()
	if err := j.encoder.Encode(v.Interface()); err != nil {
		return err
	}
	j.w.Write(bytes.TrimSuffix(j.piece.Bytes(), []byte("\n")))
	return nil
}

// writesItself tells whether a value has a form of its own, as times have.
func writesItself(v reflect.Value) bool {
	switch v.Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler:
		return true
	}
	return false
}

// empty tells what omitempty leaves out.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
