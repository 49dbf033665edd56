package tracer

import (
	"fmt"
	"strings"
	"time"
)

// CheckRound tells what is wrong with a round specification of the contract, nil when it is
// well formed. Whether a function or marker exists is known only once the target is open.
func CheckRound(spec string) error {
	kind, rest, _ := strings.Cut(spec, ":")
	switch kind {
	case "auto", "none":
		if rest == "" && !strings.Contains(spec, ":") {
			return nil
		}
	case "func", "log":
		if rest != "" {
			return nil
		}
		return fmt.Errorf("%q names nothing after %q", spec, kind+":")
	case "usdt":
		if provider, name, found := strings.Cut(rest, ":"); found && provider != "" && name != "" {
			return nil
		}
		return fmt.Errorf("%q: want usdt:PROVIDER:NAME", spec)
	case "every":
		if every, err := time.ParseDuration(rest); err == nil && every > 0 {
			return nil
		}
		return fmt.Errorf("%q: want a time such as every:60s", spec)
	}
	return fmt.Errorf("%q: want auto, func:SYMBOL, usdt:PROVIDER:NAME, log:TEXT, every:TIME or none", spec)
}
