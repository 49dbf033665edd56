package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"memtrace/output"
	"memtrace/tracer/recording"
	"memtrace/tracer/watch"
)

// pushFlags says where profiles are sent, for engines that store and query them.
type pushFlags struct {
	pyroscope string
	parca     string
	every     time.Duration
}

func (p *pushFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&p.pyroscope, "push-pyroscope", "", "send a profile of each process to this Pyroscope server every --push-every")
	flags.StringVar(&p.parca, "push-parca", "", "the same for a Parca server, through its HTTP gateway")
	flags.DurationVar(&p.every, "push-every", time.Minute, "time between two profiles")
}

// check refuses addresses that are none.
func (p *pushFlags) check() error {
	for flag, address := range map[string]string{"push-pyroscope": p.pyroscope, "push-parca": p.parca} {
		if address == "" {
			continue
		}
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return usageError("--%s %q: want an address such as http://host:4040", flag, address)
		}
	}
	if p.every < time.Second {
		return usageError("--push-every %v: want at least 1s", p.every)
	}
	return nil
}

// start sends profiles until the context ends; the channel it returns is closed then.
func (p *pushFlags) start(ctx context.Context, targets *watch.Watch, log *slog.Logger) <-chan struct{} {
	done := make(chan struct{})
	var senders []func(context.Context, watch.Target, []byte, *recording.Recording) (*http.Request, error)
	if p.pyroscope != "" {
		senders = append(senders, p.pyroscopeRequest)
	}
	if p.parca != "" {
		senders = append(senders, p.parcaRequest)
	}
	go func() {
		defer close(done)
		if len(senders) == 0 {
			return
		}
		client := &http.Client{Timeout: 10 * time.Second}
		ticker := time.NewTicker(p.every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			var all sync.WaitGroup
			for _, target := range targets.Targets() {
				for _, request := range senders {
					all.Go(func() {
						if err := push(ctx, client, target, request); err != nil && ctx.Err() == nil {
							log.Warn("profile not sent", "pid", target.PID, "error", err)
						}
					})
				}
			}
			all.Wait()
		}
	}()
	return done
}

// push sends the last minute's profile of one process.
func push(ctx context.Context, client *http.Client, target watch.Target, request func(context.Context, watch.Target, []byte, *recording.Recording) (*http.Request, error)) error {
	if target.Session == nil {
		return nil
	}
	rec := target.Session.LastMinute()
	format, err := output.FormatForFile(".pb.gz")
	if err != nil {
		return err
	}
	var profile bytes.Buffer
	if err := format.Write(&profile, rec, output.Options{}); err != nil {
		return fmt.Errorf("make the profile: %w", err)
	}
	r, err := request(ctx, target, profile.Bytes(), rec)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		words, _ := io.ReadAll(io.LimitReader(answer.Body, 200))
		return fmt.Errorf("%s answered %s: %s", r.URL.Host, answer.Status, words)
	}
	return nil
}

// pyroscopeRequest follows Pyroscope's ingestion interface: POST /ingest with the profile
// as a part of a form, its name and labels in the query.
func (p *pushFlags) pyroscopeRequest(ctx context.Context, target watch.Target, profile []byte, rec *recording.Recording) (*http.Request, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("profile", "profile.pprof")
	if err != nil {
		return nil, err
	}
	if _, err := part.Write(profile); err != nil {
		return nil, err
	}
	if err := form.Close(); err != nil {
		return nil, err
	}
	from, until := rec.Session.Started, rec.Session.Started.Add(rec.Session.Duration())
	query := url.Values{
		"name":   {fmt.Sprintf("memtrace{comm=%s,pid=%d}", labelSafe(target.Comm), target.PID)},
		"from":   {strconv.FormatInt(from.Unix(), 10)},
		"until":  {strconv.FormatInt(until.Unix(), 10)},
		"format": {"pprof"}, "spyName": {"memtrace"},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.pyroscope+"/ingest?"+query.Encode(), &body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	return r, nil
}

// labelSafe keeps what a label's value may hold.
func labelSafe(text string) string {
	safe := []byte(text)
	for i, c := range safe {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			safe[i] = '_'
		}
	}
	return string(safe)
}
