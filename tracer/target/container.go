package target

import (
	"path"
	"strings"
)

// runtimes are the words by which container managers mark their control groups. The id
// follows in the same path element after the prefix, or is the next element.
var runtimes = []struct{ prefix, name string }{
	{"cri-containerd-", "kubernetes"}, {"crio-", "kubernetes"},
	{"docker-", "docker"}, {"libpod-", "podman"}, {"lxc.payload.", "lxc"},
}

// parseContainer reads /proc/PID/cgroup and names the container, as "docker:ID"; "" when
// the process runs in none that is known. Ids are shortened to 12 characters as their
// managers do.
func parseContainer(cgroup string) string {
	for line := range strings.Lines(cgroup) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		if name := containerOf(fields[2]); name != "" {
			return name
		}
	}
	return ""
}

// containerOf looks for a container in one control group's path, the innermost first.
func containerOf(group string) string {
	kubernetes := strings.Contains(group, "kubepods")
	for ; group != "/" && group != "." && group != ""; group = path.Dir(group) {
		element := strings.TrimSuffix(path.Base(group), ".scope")
		parent := path.Base(path.Dir(group))
		for _, runtime := range runtimes {
			id, found := strings.CutPrefix(element, runtime.prefix)
			if !found || id == "" {
				continue
			}
			name := runtime.name
			if kubernetes {
				name = "kubernetes"
			}
			return name + ":" + shortID(id)
		}
		switch {
		case !isID(element):
		case kubernetes:
			return "kubernetes:" + shortID(element)
		case parent == "docker" || parent == "libpod_parent":
			return "docker:" + shortID(element)
		}
	}
	return ""
}

// isID recognises the 64 hexadecimal digits of a container id.
func isID(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

func shortID(id string) string {
	if isID(id) {
		return id[:12]
	}
	return id
}
