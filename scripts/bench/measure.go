package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// result is what one tool did to one workload.
type result struct {
	untraced, traced float64 // rates, medians
	ratio            float64 // time traced over time untraced, the median of the pairs
	spread           float64 // from the lowest to the highest ratio
	pairs            int
	usage            usage
	err              error
}

// measure takes the pairs of one tool on one workload.
func (p plan) measure(ctx context.Context, w *workload, t tool) result {
	if t.needs != "" {
		if _, err := exec.LookPath(t.needs); err != nil {
			return result{err: fmt.Errorf("not installed")}
		}
	}
	var untraced, traced, ratios []float64
	var r result
	for range p.pairs {
		before, with, used, err := p.pair(ctx, w, t)
		if err != nil {
			r.err = err
			break
		}
		untraced, traced, ratios = append(untraced, before), append(traced, with), append(ratios, before/with)
		r.usage.cpu, r.usage.rss = max(r.usage.cpu, used.cpu), max(r.usage.rss, used.rss)
	}
	if len(ratios) == 0 {
		return r
	}
	r.untraced, r.traced, r.ratio, r.pairs = median(untraced), median(traced), median(ratios), len(ratios)
	r.spread = slices.Max(ratios) - slices.Min(ratios)
	return r
}

// pair measures one process untraced and traced; two processes where the tool starts its
// target, or where the target does its work only once.
func (p plan) pair(ctx context.Context, w *workload, t tool) (untraced, traced float64, used usage, err error) {
	plain, err := w.start(nil)
	if err != nil {
		return 0, 0, used, err
	}
	if untraced, err = plain.rate(ctx, p.length); err != nil || w.whole || t.prefix != nil {
		plain.end()
	}
	if err != nil {
		return 0, 0, used, err
	}
	second := plain
	if w.whole || t.prefix != nil {
		if second, err = w.start(replaced(t.prefix, "{dir}", w.directory)); err != nil {
			return 0, 0, used, err
		}
	}
	defer second.end()
	if t.prefix != nil {
		traced, err = second.rate(ctx, p.length)
		return untraced, traced, used, err
	}
	at, err := t.start(second.Process.Pid, w.directory)
	if err != nil {
		return 0, 0, used, err
	}
	traced, err = second.rate(ctx, p.length)
	used, ended := at.end()
	if err == nil {
		err = ended
	}
	return untraced, traced, used, err
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// replaced puts values into words: names and values in turns.
func replaced(words []string, namesAndValues ...string) []string {
	replacer := strings.NewReplacer(namesAndValues...)
	var done []string
	for _, word := range words {
		done = append(done, replacer.Replace(word))
	}
	return done
}

// tail keeps the last of what a tool complains of.
type tail struct{ text []byte }

func (t *tail) Write(text []byte) (int, error) {
	const kept = 300
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-kept):]
	return len(text), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.text)) }

// perSecond renders a rate.
func perSecond(rate float64) string {
	if rate >= 1000 {
		return fmt.Sprintf("%.0f", rate)
	}
	return fmt.Sprintf("%.2f", rate)
}

// seconds renders a time.
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
