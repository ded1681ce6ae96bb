package schema

import (
	"errors"
	"io/fs"
	"path"
)

// loadData reads the tables of spec/data, each of which may be missing.
func loadData(root fs.FS, spec *Spec, faults *Faults) {
	entries, err := fs.ReadDir(root, "data")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		faults.Add(Pos{File: "spec/data"}, "cannot be read: %v", err)
	}
	for _, entry := range entries {
		switch name := path.Join("data", entry.Name()); name {
		case "data/xids.yaml":
			var x XIDFile
			if read(root, name, &x, faults) {
				spec.XIDs = &x
			}
		case "data/health.yaml":
			var h HealthFile
			if read(root, name, &h, faults) {
				spec.Health = &h
			}
		default:
			faults.Add(Pos{File: path.Join("spec", name)}, "only xids.yaml and health.yaml belong here")
		}
	}
}
