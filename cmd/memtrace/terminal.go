package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// hasWindow tells whether the character device is a terminal, not /dev/null.
func hasWindow(file *os.File) bool {
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}
