package main

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"memtrace/output"
	"memtrace/tracer/recording"
	"memtrace/tracer/watch"
)

// traced is what the pages show: the processes of a watch, or the one of a trace.
type traced interface {
	Targets() []watch.Target
	// Waiting is how many more processes would be traced if there were room.
	Waiting() int
	// Looked tells whether the processes have been looked for once.
	Looked() bool
}

// pages answers the requests of memtrace serve, and of a trace with --listen.
type pages struct {
	*http.ServeMux
	targets traced
}

// newPages makes the handler of all paths. guarded tells whether a password protects them:
// without one a request must name the host it means, so that no page of another site can
// read the answers through a name that it points here.
func newPages(targets traced, sites int, guarded bool) http.Handler {
	p := &pages{ServeMux: http.NewServeMux(), targets: targets}
	registry := prometheus.NewRegistry()
	registry.MustRegister(output.NewMetrics(p.metricsTargets, sites, version()),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	p.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	p.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	p.HandleFunc("GET /-/ready", p.ready)
	p.HandleFunc("GET /api/recording", p.recording)
	p.HandleFunc("GET /flamegraph", p.flameGraph)
	p.HandleFunc("GET /{$}", p.landing)
	if guarded {
		return p
	}
	return http.NewCrossOriginProtection().Handler(p)
}

// metricsTargets lists the processes for a scrape.
func (p *pages) metricsTargets() []output.MetricsTarget {
	var targets []output.MetricsTarget
	for _, target := range p.targets.Targets() {
		m := output.MetricsTarget{PID: target.PID, Comm: target.Comm}
		if target.Session != nil {
			m.Recording, m.At = target.Session.Latest()
			m.Up = !target.Ended()
		}
		targets = append(targets, m)
	}
	return targets
}

// ready says whether the processes have been looked at.
func (p *pages) ready(w http.ResponseWriter, _ *http.Request) {
	if !p.targets.Looked() {
		http.Error(w, "still looking for processes", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// lastMinute returns the picture of the last minute of the process that a request names, or
// of the only one.
func (p *pages) lastMinute(w http.ResponseWriter, r *http.Request) *recording.Recording {
	targets := p.targets.Targets()
	wanted := r.URL.Query().Get("pid")
	for _, target := range targets {
		if target.Session != nil && (wanted == strconv.Itoa(target.PID) || wanted == "" && len(targets) == 1) {
			return judged(target.Session.LastMinute())
		}
	}
	http.Error(w, "which process? Add ?pid=PID with one that is traced; / lists them", http.StatusNotFound)
	return nil
}

func (p *pages) recording(w http.ResponseWriter, r *http.Request) {
	if rec := p.lastMinute(w, r); rec != nil {
		p.answer(w, "application/json", rec, ".json", output.Options{})
	}
}

func (p *pages) flameGraph(w http.ResponseWriter, r *http.Request) {
	measure := r.URL.Query().Get("measure")
	if measure != "" && output.CheckMeasure(measure) != nil {
		http.Error(w, "no such measure", http.StatusBadRequest)
		return
	}
	if rec := p.lastMinute(w, r); rec != nil {
		p.answer(w, "image/svg+xml", rec, ".svg", output.Options{Measure: measure})
	}
}

// answer renders a recording whole before it sends it, so that an error is an error.
func (p *pages) answer(w http.ResponseWriter, kind string, rec *recording.Recording, suffix string, options output.Options) {
	format, err := output.FormatForFile(suffix)
	var body bytes.Buffer
	if err == nil {
		err = format.Write(&body, rec, options)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.Write(body.Bytes())
}

// landingPage lists what there is to see.
var landingPage = template.Must(template.New("landing").Parse(`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>memtrace</title>
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:50rem;padding:0 1rem}
td,th{text-align:left;padding:.2rem 1rem .2rem 0;vertical-align:top}</style>
<h1>memtrace {{.Version}}</h1>
<p><a href="/metrics">Metrics</a> · <a href="/-/healthy">healthy</a> · <a href="/-/ready">ready</a></p>
{{if .Targets}}<table><tr><th>Process<th>Name<th>State</tr>
{{range .Targets}}<tr><td>{{.PID}}<td>{{.Comm}}<td>{{if .Err}}not traced: {{.Err}}{{else}}traced · last minute:
<a href="/api/recording?pid={{.PID}}">recording</a>, <a href="/flamegraph?pid={{.PID}}">flame graph</a>{{end}}</tr>
{{end}}</table>{{else}}<p>No process to trace yet.</p>{{end}}
{{if .Waiting}}<p>{{.Waiting}} more wait: --most bounds how many are traced at once.</p>{{end}}
</html>
`))

func (p *pages) landing(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	landingPage.Execute(w, struct {
		Version string
		Targets []watch.Target
		Waiting int
	}{version(), p.targets.Targets(), p.targets.Waiting()})
}
