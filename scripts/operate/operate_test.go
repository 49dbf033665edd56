// Package operate tests what operators deploy: every query of the dashboard and every alert
// rule must parse, by Prometheus's own tool, and speak of metrics that memtrace exports.
package operate

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// promtool runs Prometheus's checker and fails the test with its words.
func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	out, err := exec.Command("promtool", arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
}

func TestAlertRules(t *testing.T) { promtool(t, "check", "rules", "alerts.yml") }

// expressions returns the dashboard's queries with Grafana's variables replaced.
func expressions(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			found = append(found, strings.ReplaceAll(target.Expr, "$__rate_interval", "1m"))
		}
	}
	if len(found) < 10 {
		t.Fatalf("only %d queries in the dashboard", len(found))
	}
	return found
}

// TestDashboardQueries hands the queries to promtool as recording rules.
func TestDashboardQueries(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for i, expression := range expressions(t) {
		fmt.Fprintf(&rules, "  - record: panel_%d\n    expr: %q\n", i, expression)
	}
	path := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(path, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", path)
}

// TestMetricsExist compares the names that rules and dashboard use with those in the
// source of the exporter.
func TestMetricsExist(t *testing.T) {
	source, err := os.ReadFile("../../output/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]bool{}
	for _, match := range regexp.MustCompile(`describe\("([a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		exported["memtrace_"+match[1]] = true
	}
	alerts, err := os.ReadFile("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	used := strings.Join(expressions(t), "\n") + string(alerts)
	for _, name := range regexp.MustCompile(`memtrace_[a-z_]+`).FindAllString(used, -1) {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if !exported[name] && !exported[base] {
			t.Errorf("%s is used but not exported", name)
		}
	}
}
