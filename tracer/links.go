package tracer

import (
	"errors"
	"io"
	"sync"
)

// closeAll closes all links at once, because the kernel makes each wait for a grace period.
func closeAll[L io.Closer](links []L) error {
	errs := make([]error, len(links))
	var closing sync.WaitGroup
	for i, l := range links {
		closing.Go(func() { errs[i] = l.Close() })
	}
	closing.Wait()
	return errors.Join(errs...)
}
