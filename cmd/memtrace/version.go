package main

import (
	"runtime"
	"runtime/debug"
)

// release is the version that the next release will carry.
const release = "0.1.0"

// version is the release, and the commit it was built from where the build knows it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	revision, modified := "", ""
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			revision = setting.Value[:min(len(setting.Value), 12)]
		case "vcs.modified":
			if setting.Value == "true" {
				modified = "+changes"
			}
		}
	}
	if revision == "" {
		return release
	}
	return release + "-" + revision + modified
}

// versionLine is what --version prints.
func versionLine() string {
	return "memtrace " + version() + " " + runtime.GOOS + "/" + runtime.GOARCH + " " + runtime.Version()
}
