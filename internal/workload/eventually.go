package workload

import (
	"testing"
	"time"
)

// Eventually waits until a condition holds; it fails the test after a minute. A loaded
// machine makes it wait longer, never fail.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("not within a minute: %s", what)
}
