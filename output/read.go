package output

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"memtrace/tracer/recording"
)

// Bounds on what Read accepts; beyond them a file is hostile or none of ours. A recording
// of 10 000 sites with 47 frames each holds half a million objects in 170 MB.
const (
	longestRecording = 512 << 20
	mostObjects      = 4_000_000
)

// schemaReach is how far into a file its schema may stand.
const schemaReach = 1 << 16

// schemaFamily begins the name of every schema of a recording.
const schemaFamily = "memtrace/"

// Read reads one recording, plain or compressed by gzip. A recording of this schema that
// holds unknown fields, as a newer memtrace writes, or lacks known ones, as an older one
// wrote, is read all the same. An error is one line and says what is wrong with the file.
func Read(r io.Reader) (*recording.Recording, error) {
	content, schema, err := Sniff(r)
	if err != nil {
		return nil, err
	}
	if err := checkSchema(schema); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(content)
	rec := &recording.Recording{}
	if err := decoder.Decode(rec); err != nil {
		return nil, unreadable(err)
	}
	switch _, err := decoder.Token(); {
	case err == nil:
		return nil, errors.New("not a recording: something follows its end; recordings cannot be joined")
	case !errors.Is(err, io.EOF):
		return nil, unreadable(err)
	}
	return rec, nil
}

// Sniff looks at the beginning of a file: it returns the content, uncompressed, bounded and
// complete, and the schema that it names, "" where it names none.
func Sniff(r io.Reader) (content *bufio.Reader, schema string, err error) {
	content = bufio.NewReaderSize(r, schemaReach)
	magic, err := content.Peek(2)
	switch {
	case errors.Is(err, io.EOF) && len(magic) == 0:
		return nil, "", errors.New("the file is empty")
	case err != nil && !errors.Is(err, io.EOF):
		return nil, "", err
	}
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		plain, err := gzip.NewReader(content)
		if err != nil {
			return nil, "", unreadable(err)
		}
		content = bufio.NewReaderSize(&bounded{r: plain}, schemaReach)
	} else {
		content = bufio.NewReaderSize(&bounded{r: content}, schemaReach)
	}
	head, err := content.Peek(schemaReach)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, "", unreadable(err)
	}
	return content, schemaOf(head), nil
}

// checkSchema refuses what is no recording that can be read.
func checkSchema(schema string) error {
	switch {
	case schema == recording.Schema:
		return nil
	case schema == recording.SoakSchema:
		return errors.New("a soak file, not a recording")
	case strings.HasPrefix(schema, schemaFamily):
		return fmt.Errorf("its schema is %.40q, which another version of memtrace wrote; this one reads %q", schema, recording.Schema)
	case schema != "":
		return fmt.Errorf("not a recording: its schema is %.40q, not %q", schema, recording.Schema)
	}
	return errors.New("not a recording: memtrace writes those with -o FILE.json or -o FILE.json.gz")
}

// schemaOf returns the value of the key "schema" of the object that begins the text; the
// text may be cut off behind it.
func schemaOf(head []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(head))
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return ""
	}
	for {
		key, err := decoder.Token()
		if err != nil || key == json.Delim('}') {
			return ""
		}
		if key != "schema" {
			var skipped json.RawMessage
			if decoder.Decode(&skipped) != nil {
				return ""
			}
			continue
		}
		value, err := decoder.Token()
		if text, isText := value.(string); err == nil && isText {
			return text
		}
		return ""
	}
}

// Errors of the bounds.
var (
	errTooLong      = errors.New("too long")
	errTooManyParts = errors.New("too many parts")
)

// bounded passes content on up to the bounds. Objects are bounded apart from bytes because
// "{}" takes two bytes in the file and hundreds in memory.
type bounded struct {
	r       io.Reader
	bytes   int64
	objects int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.bytes += int64(n)
	b.objects += bytes.Count(p[:n], []byte("{"))
	switch {
	case b.bytes > longestRecording:
		return 0, errTooLong
	case b.objects > mostObjects:
		return 0, errTooManyParts
	}
	return n, err
}

// unreadable says in one line what is wrong with the content.
func unreadable(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("the recording is cut short: its end is missing")
	case errors.Is(err, errTooLong):
		return fmt.Errorf("longer than %s: not a recording of memtrace", bytesText(longestRecording))
	case errors.Is(err, errTooManyParts):
		return fmt.Errorf("more than %s parts: not a recording of memtrace", countText(mostObjects))
	case errors.As(err, &syntax):
		return fmt.Errorf("the recording is damaged at byte %d: %w", syntax.Offset, err)
	case errors.As(err, &kind):
		return fmt.Errorf("the recording is damaged: %.60s is a %.40s", kind.Field, kind.Value)
	}
	return fmt.Errorf("the recording is damaged: %w", err)
}
