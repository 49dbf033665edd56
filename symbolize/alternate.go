package symbolize

import (
	"bytes"
	"encoding/hex"
	"path"
)

// alternateInfo opens the debug information that dwz moved out of several files into one,
// which .gnu_debugaltlink names: a path, then a build id. nil when there is none: then the
// names that stand there are missing, nothing else.
func (d *debugInfo) alternateInfo() *debugInfo {
	if d.alternateDone || d.file.find == nil {
		return d.alternate
	}
	d.alternateDone = true
	link, err := d.file.SectionData(".gnu_debugaltlink", maxDebugLink)
	if err != nil {
		return nil
	}
	name, id, terminated := bytes.Cut(link, []byte{0})
	if !terminated || len(id) == 0 {
		return nil
	}
	target := string(name)
	if !path.IsAbs(target) {
		target = path.Join(path.Dir(d.file.path), target)
	}
	file := d.file.find(target)
	if file == nil {
		return nil
	}
	f, err := adopt(file, target, nil)
	if err != nil {
		return nil
	}
	if f.buildID == hex.EncodeToString(id) {
		d.alternate, err = openDebugInfo(f, d.code)
	}
	if d.alternate == nil || err != nil {
		f.Close()
	}
	return d.alternate
}
