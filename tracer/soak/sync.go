package soak

import (
	"errors"
	"syscall"
)

// unsyncable tells whether the file is of a kind that has nothing to sync: a pipe, a
// terminal, a special file.
func unsyncable(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTSUP)
}
