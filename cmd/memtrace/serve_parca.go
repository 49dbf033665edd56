package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"memtrace/tracer/recording"
	"memtrace/tracer/watch"
)

// The messages of Parca's profile store, as its HTTP gateway takes them
// (proto/parca/profilestore/v1alpha1/profilestore.proto, WriteRawRequest).
type (
	parcaWrite struct {
		Series []parcaSeries `json:"series"`
	}
	parcaSeries struct {
		Labels  parcaLabels   `json:"labels"`
		Samples []parcaSample `json:"samples"`
	}
	parcaLabels struct {
		Labels []parcaLabel `json:"labels"`
	}
	parcaLabel struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	parcaSample struct {
		RawProfile []byte `json:"rawProfile"` // base64 in JSON
	}
)

// parcaRequest follows Parca's gateway: POST /profiles/writeraw.
func (p *pushFlags) parcaRequest(ctx context.Context, target watch.Target, profile []byte, _ *recording.Recording) (*http.Request, error) {
	body, err := json.Marshal(parcaWrite{[]parcaSeries{{
		Labels: parcaLabels{[]parcaLabel{
			{"__name__", "memtrace"}, {"comm", labelSafe(target.Comm)}, {"pid", strconv.Itoa(target.PID)},
		}},
		Samples: []parcaSample{{profile}},
	}}})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.parca+"/profiles/writeraw", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	return r, nil
}
